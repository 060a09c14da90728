//! Cutting, moving and joining traces from the command line, and files that were cut off.

use std::fs;
use std::path::Path;

use formats::own;
use trace::Trace;

use crate::program::{fine, place, run};

/// Six requests on two ASUs, at 1 to 6 ms, on the addresses 0, 4 KiB and 1 GiB.
const SPC: &str = "0,0,4096,W,0.001\n1,2097152,8192,R,0.002\n0,8,4096,W,0.003\n\
    0,0,4096,R,0.004\n1,2097168,8192,R,0.005\n0,8,4096,W,0.006\n";

fn made(dir: &Path, arguments: &[&str]) -> Trace {
    let command = [&["trace"], arguments, &["-o", "out.parquet"]].concat();
    let said = fine(dir, &command);
    let trace = own::read(&dir.join("out.parquet")).unwrap();
    let expected = format!("{} requests written to out.parquet\n", trace.count());
    assert_eq!(said, expected);
    trace
}

fn steps(trace: &Trace) -> Vec<&str> {
    let facts = trace.origin.facts.iter();
    facts.filter(|(key, _)| key.starts_with("step.")).map(|(_, step)| step.as_str()).collect()
}

#[test]
fn each_operation_does_what_it_says_and_notes_it() {
    let dir = place();
    let dir = dir.path();
    fs::write(dir.join("t.spc"), SPC).unwrap();
    let part = made(dir, &["slice", "t.spc", "--time", "1ms..4ms", "--stream", "asu0"]);
    assert_eq!((part.due.as_slice(), part.streams.len()), ([1_000_000, 2_000_000].as_slice(), 1));
    assert!(steps(&part)[0].starts_with("slice: due 1000000 to 4000000 ns; streams asu0; 2 of 6"));
    let part = made(dir, &["slice", "t.spc", "--region", "1GiB.."]);
    assert_eq!(part.offset, [1 << 30, (1 << 30) + 8192]);
    let small = made(dir, &["remap", "t.spc", "--onto", "2MiB"]);
    assert_eq!(small.offset, [0, 1 << 20, 4096, 0, (1 << 20) + 8192, 4096]);
    let small = made(dir, &["remap", "t.spc", "--onto", "1MiB", "--rule", "modulo"]);
    assert_eq!(small.offset, [0, 0, 4096, 0, 8192, 4096]);
    let dense = made(dir, &["scale", "t.spc", "--factor", "0.5"]);
    assert_eq!((dense.due[0], dense.due[5]), (0, 2_500_000));
    let dense = made(dir, &["scale", "t.spc", "--rate", "2k/s"]);
    assert_eq!(dense.span().0, 3_000_000);
    let both = made(dir, &["merge", "t.spc", "t.spc", "--start", "0s,500us", "--shared"]);
    assert_eq!((both.count(), both.due[1], both.extent().0), (12, 500_000, (1 << 30) + 16384));
    assert_eq!(both.streams[3].name, "2.asu1");
    let nameless = made(dir, &["anonymise", "t.spc", "--seed", "7"]);
    assert!(!format!("{:?}", nameless.origin).contains("t.spc"), "{:?}", nameless.origin);
    assert_eq!(nameless.streams[0].name, "stream1");
    fs::rename(dir.join("out.parquet"), dir.join("in.parquet")).unwrap();
    let twice = made(dir, &["scale", "in.parquet", "--factor", "2"]);
    assert_eq!(steps(&twice).len(), 2, "{:?}", twice.origin);
}

#[test]
fn what_cannot_be_done_says_why_and_what_to_do() {
    let dir = place();
    let dir = dir.path();
    fs::write(dir.join("t.spc"), SPC).unwrap();
    for (arguments, error, hint) in [
        (&["slice", "t.spc", "--stream", "x"][..], "no stream is called 'x'", "trace info"),
        (&["slice", "t.spc", "--time", "2s..1s"], "the time span ends where it begins", "10s..20s"),
        (&["remap", "t.spc", "--onto", "4KiB"], "do not fit on a device", "modulo"),
        (&["scale", "t.spc", "--factor=-1"], "times cannot be multiplied by -1", "positive"),
        (
            &["merge", "t.spc", "--start", "1s,2s"],
            "2 values for --start, but 1 traces",
            "one value",
        ),
    ] {
        let ran = run(dir, &[&["trace"], arguments, &["-o", "out.parquet"]].concat());
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        let (cause, advice) = ran.err.split_once("hint: ").expect("a hint");
        assert!(cause.contains(error) && advice.contains(hint), "{arguments:?}: {ran:?}");
        assert!(!dir.join("out.parquet").exists());
    }
}

#[test]
fn a_trace_that_was_cut_off_is_refused_and_read_leniently() {
    let dir = place();
    let dir = dir.path();
    fs::write(dir.join("t.spc"), SPC).unwrap();
    fine(dir, &["trace", "convert", "t.spc", "t.parquet"]);
    let whole = fs::read(dir.join("t.parquet")).unwrap();
    fs::write(dir.join("t.parquet"), &whole[..whole.len() - 100]).unwrap();
    let ran = run(dir, &["trace", "info", "t.parquet"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("its first 6 requests are whole"), "{ran:?}");
    assert!(ran.err.contains("hint: add --lenient"), "{ran:?}");
    let ran = run(dir, &["trace", "convert", "--lenient", "t.parquet", "again.parquet"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("bytes of t.parquet were left out"), "{ran:?}");
    assert_eq!(own::read(&dir.join("again.parquet")).unwrap().count(), 6);
}
