//! fio takes what the iolog writer writes, and replays all of it.

use std::path::Path;
use std::process::Command;

use formats::{ReadOptions, fio_iolog, read};
use trace::generate::{OltpLike, oltp_like};
use trace::{Op, Trace};

/// The count behind `"key" : ` in the section of that name of fio's JSON.
fn total(json: &serde_json::Value, section: &str) -> u64 {
    json["jobs"][0][section]["total_ios"].as_u64().expect("a count")
}

fn replay(directory: &Path, log: &Path) -> Option<serde_json::Value> {
    let mut fio = Command::new("fio");
    fio.current_dir(directory).arg("--name=replay").arg("--ioengine=psync");
    fio.arg(format!("--read_iolog={}", log.display())).arg("--output-format=json");
    let Ok(output) = fio.output() else {
        println!("skipped: there is no fio");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    for complaint in ["bad iolog", "bad ddir", "ignoring"] {
        let said =
            text.contains(complaint) || String::from_utf8_lossy(&output.stderr).contains(complaint);
        assert!(!said, "{complaint}: {text}");
    }
    let start = text.find('{').expect("JSON");
    Some(serde_json::from_str(&text[start..]).expect("JSON"))
}

/// A small load with data, log and flushes that lasts 0.2 s, in files that exist.
fn load(directory: &Path) -> Trace {
    let mut trace = oltp_like(&OltpLike { transactions: 100, ..OltpLike::default() });
    trace.service = None;
    trace.chains = None;
    let span = trace.span().0.max(1);
    for row in 0..trace.count() {
        trace.due[row] = trace.due[row] * 200_000 / span * 1000;
        trace.offset[row] %= 4 << 20;
    }
    for stream in &trace.streams {
        std::fs::write(directory.join(&stream.name), vec![7; 6 << 20]).expect("written");
    }
    trace
}

#[test]
fn fio_replays_every_request_of_what_is_written() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let trace = load(directory.path());
    let log = directory.path().join("replay.log");
    let losses = fio_iolog::write(&trace, &log).expect("written");
    assert!(losses.is_empty(), "{losses:?}");
    let Some(json) = replay(directory.path(), &log) else { return };
    let count = |op: Op| trace.op.iter().filter(|found| **found == op).count() as u64;
    assert!(count(Op::Read) > 0 && count(Op::Write) > 0 && count(Op::Flush) > 0);
    assert_eq!(total(&json, "read"), count(Op::Read));
    assert_eq!(total(&json, "write"), count(Op::Write));
    let flushes = json["jobs"][0]["sync"]["lat_ns"]["N"].as_u64();
    assert_eq!(flushes, Some(count(Op::Flush)));
    let elapsed_ms = json["jobs"][0]["job_runtime"].as_u64().expect("ms");
    assert!(elapsed_ms >= 190, "the times were not kept: {elapsed_ms} ms");

    // What fio was given reads back as it was, with times from the first request.
    let read_back = read(&log, &ReadOptions::default()).expect("reads").trace;
    let due: Vec<u64> = trace.due.iter().map(|due| due - trace.due[0]).collect();
    assert_eq!((&read_back.due, &read_back.op), (&due, &trace.op));
    assert_eq!(read_back.origin.facts["start_ns"], trace.due[0].to_string());
}

#[test]
fn what_fio_writes_is_read() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut fio = Command::new("fio");
    fio.current_dir(directory.path()).args(["--name=w", "--rw=randrw", "--size=256k", "--bs=4k"]);
    fio.args([
        "--filename=x.dat",
        "--ioengine=psync",
        "--write_iolog=w.log",
        "--output-format=json",
    ]);
    let Ok(output) = fio.output() else {
        println!("skipped: there is no fio");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let json = serde_json::from_str(&text[text.find('{').expect("JSON")..]).expect("JSON");
    let log = directory.path().join("w.log");
    let reading = read(&log, &ReadOptions::default()).expect("reads");
    let count = |op: Op| reading.trace.op.iter().filter(|found| **found == op).count() as u64;
    assert_eq!((count(Op::Read), count(Op::Write)), (total(&json, "read"), total(&json, "write")));
    assert_eq!(reading.trace.streams[0].name, "x.dat");
}
