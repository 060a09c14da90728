//! The main job, small: one warehouse and a few seconds of everything; interrupted, killed,
//! resumed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{command, finish, place, run};
use crate::schema;

const STUDY: &str = "\
[study]
name = 'mini'
[probe]
range = '64MiB'
budget = '6s'
[oltp]
warehouses = 1
warmup = '1s'
duration = '2s'
[validate]
duration = '2s'
[[scenario]]
profile = 'intel-x25-e'
";

/// Waits until `path` is there, for two minutes at most.
fn wait_for(path: &Path) {
    let start = Instant::now();
    while !path.exists() {
        assert!(start.elapsed() < Duration::from_mins(2), "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn study(dir: &Path) -> PathBuf {
    fs::write(dir.join("mini.toml"), STUDY).unwrap();
    dir.join("runs/mini-001")
}

/// Sends a signal to a child by its id.
fn signal(child: &std::process::Child, signal: &str) {
    let id = child.id().to_string();
    let sent = std::process::Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn interrupted_killed_and_resumed_it_ends_with_a_report() {
    let dir = place();
    let run_dir = study(dir.path());
    let arguments = ["study", "run", "mini.toml"];

    // Ctrl-C while the database is loaded or run.
    let child = command(dir.path(), &arguments).spawn().unwrap();
    wait_for(&run_dir.join("database"));
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, "-INT");
    let ran = finish(child);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(ran.err.contains("The same command goes on from there"), "{ran:?}");
    assert!(!run_dir.join("oltp.json").exists() && !run_dir.join("database").exists());

    // kill -9 in the middle of the probe.
    let child = command(dir.path(), &arguments).spawn().unwrap();
    let partial = run_dir.join("measurements.partial.jsonl");
    wait_for(&partial);
    while fs::metadata(&partial).is_ok_and(|metadata| metadata.len() == 0) {
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(&child, "-KILL");
    assert_eq!(finish(child).code, None);
    let oltp = fs::read(run_dir.join("oltp.json")).unwrap();

    // kill -9 in the middle of the replay: whole rounds are kept.
    let child = command(dir.path(), &arguments).spawn().unwrap();
    let partial = run_dir.join("replay.partial.jsonl");
    wait_for(&partial);
    let lines = || fs::read_to_string(&partial).unwrap_or_default().matches('\n').count();
    while lines() == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, "-KILL");
    assert_eq!(finish(child).code, None);
    let kept: Value =
        serde_json::from_str(fs::read_to_string(&partial).unwrap().lines().next().unwrap())
            .unwrap();

    // The fourth time it goes on where it was, to the end.
    let ran = run(dir.path(), &arguments);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out, ran.err);
    let last = ran.out.lines().last().unwrap();
    assert_eq!(last, format!("Report: {}", run_dir.join("report.html").display()));
    assert!(ran.out.lines().count() <= 40, "more than a screen:\n{}", ran.out);
    assert_eq!(fs::read(run_dir.join("oltp.json")).unwrap(), oltp, "a done stage was done again");
    let rounds: Vec<Value> =
        serde_json::from_slice(&fs::read(run_dir.join("replay.json")).unwrap()).unwrap();
    assert!(rounds[0] == kept, "a whole round was replayed again");
    check_run(&run_dir);

    // The report can be made again, and as JSON.
    let ran = run(dir.path(), &["report", "runs/mini-001", "--json"]);
    let result: Value = serde_json::from_str(&ran.out).expect("--json prints JSON");
    assert_eq!(result["study"]["study"]["name"], "mini");
}

/// The artifacts of a complete run agree with each other and with the published schema.
fn check_run(run_dir: &Path) {
    let result: Value =
        serde_json::from_slice(&fs::read(run_dir.join("result.json")).unwrap()).unwrap();
    let published = include_str!("../../../../docs/reference/result.schema.json");
    let faults = schema::faults(&serde_json::from_str(published).unwrap(), &result);
    assert!(faults.is_empty(), "result.json against its schema: {faults:#?}");

    assert!(result["oltp"]["transactions_per_min"].as_f64().unwrap() > 0.0);
    let requests = result["validation"]["requests"].as_u64().unwrap();
    let by_operation = result["validation"]["operations"].as_array().unwrap().iter();
    let sum: u64 = by_operation.map(|operation| operation["requests"].as_u64().unwrap()).sum();
    assert_eq!(requests, sum, "requests in = requests out, by operation");
    let rounds: Vec<Value> =
        serde_json::from_slice(&fs::read(run_dir.join("replay.json")).unwrap()).unwrap();
    let replayed = rounds.iter().map(|round| round["a"]["response_ns"].as_array().unwrap().len());
    assert!(replayed.sum::<usize>() as u64 >= requests, "late rounds are left out");
    assert!((4..=8).contains(&rounds.len()), "{} rounds", rounds.len());
    let drift = result["validation"]["drift"].as_array().unwrap();
    assert!(drift.len() == 4 && drift.iter().all(|one| one["replay"]["factor"].is_number()));

    let report = fs::read_to_string(run_dir.join("report.html")).unwrap();
    // The simulator in it takes up to two of the three megabytes.
    assert!((20_000..3_000_000).contains(&report.len()), "report of {} bytes", report.len());
    assert!(report.contains(r#"<section id="what-if""#) && report.contains("requests of the load"));
    let events = fs::read_to_string(run_dir.join("events.jsonl")).unwrap();
    // A killed run may tear one line of the stream; no more.
    let torn = events.lines().filter(|line| serde_json::from_str::<Value>(line).is_err()).count();
    assert!(torn <= 1, "{torn} torn lines");
    let left: Vec<String> = crate::program::listing(run_dir);
    assert!(!left.iter().any(|name| name.contains(".tmp") || name.contains("partial")), "{left:?}");
}
