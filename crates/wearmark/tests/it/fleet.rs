//! `wearmark fleet` from outside: plans, results that are files, stopping and going on.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{command, fine, finish, listing, place, refused, run};

/// Traces `traces/0.parquet` and so on, of this many requests each.
fn traces(directory: &Path, count: usize, requests: &str) {
    fs::create_dir(directory.join("traces")).unwrap();
    for seed in 0..count {
        let (seed, to) = (seed.to_string(), format!("traces/{seed}.parquet"));
        let made = ["trace", "generate", "random", "-n", requests, "--option", "rate=200/s"];
        fine(directory, &[&made[..], &["--seed", &seed, "-o", &to]].concat());
    }
}

fn contents(directory: &Path) -> Vec<(String, String)> {
    let of = |name: String| {
        let text = fs::read_to_string(directory.join(&name)).unwrap();
        (name, text)
    };
    listing(directory).into_iter().map(of).collect()
}

const PLAN: [&str; 7] =
    ["fleet", "plan", "traces", "--profile", "intel-x25-e", "--profile", "generic-slc-8g"];

#[test]
fn jobs_are_done_once_and_alike_by_one_thread_many_or_single_commands() {
    let dir = place();
    traces(dir.path(), 3, "3000");
    let said = fine(dir.path(), &[&PLAN[..], &["--seed", "1", "--seed", "2"]].concat());
    assert!(said.starts_with("12 jobs, 36,000 requests"), "{said}");
    let one = fine(dir.path(), &["fleet", "run", "--threads", "1"]);
    assert!(one.starts_with("12 jobs done, 0 done before, 0 failed"), "{one}");
    let again = fine(dir.path(), &["fleet", "run"]);
    assert!(again.starts_with("0 jobs done, 12 done before"), "{again}");
    fine(dir.path(), &["fleet", "run", "--threads", "5", "--results", "many"]);
    let jobs = ["fleet", "run", "--executor", "exec", "--results", "it's single"];
    let commands = fine(dir.path(), &jobs);
    assert_eq!(commands.lines().count(), 12);
    for line in commands.lines() {
        let job = line.rsplit(' ').next().unwrap();
        assert!(line.contains(r"--results 'it'\''s single' --job"), "{line}");
        fine(dir.path(), &["fleet", "run", "--results", "it's single", "--job", job]);
    }
    let results = contents(&dir.path().join("fleet-results"));
    assert_eq!(results.len(), 12);
    assert!(results == contents(&dir.path().join("many")), "threads change the results");
    assert!(results == contents(&dir.path().join("it's single")), "so do single commands");
    assert_eq!(fine(dir.path(), &jobs), "", "nothing is left to do");
}

#[test]
fn ray_needs_the_python_package() {
    let dir = place();
    traces(dir.path(), 1, "100");
    fine(dir.path(), &PLAN);
    let mut asked = command(dir.path(), &["fleet", "run", "--executor", "ray"]);
    let output = asked.env("WEARMARK_PYTHON", "no-python").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("error: no-python has no package 'wearmark'"), "{said}");
    assert!(said.contains("hint: pip install 'wearmark[ray]'"), "{said}");
}

#[test]
fn collected_rows_are_those_of_the_simulator() {
    let dir = place();
    traces(dir.path(), 2, "2000");
    fine(dir.path(), &PLAN);
    let job = {
        let plan = fs::read_to_string(dir.path().join("fleet.jsonl")).unwrap();
        let line: Value = serde_json::from_str(plan.lines().nth(1).unwrap()).unwrap();
        line["id"].as_str().unwrap().to_owned()
    };
    fine(dir.path(), &["fleet", "run", "--job", &job]);
    let some = run(dir.path(), &["fleet", "collect"]);
    assert_eq!(some.code, Some(3), "{some:?}");
    assert!(some.out.contains("3 of 4 jobs have no result yet"), "{some:?}");
    fine(dir.path(), &["fleet", "run"]);
    let said = fine(dir.path(), &["fleet", "collect", "--output", "rows.jsonl", "--worst", "1"]);
    assert!(said.contains("generic-slc-8g     2") && said.contains("WORST"), "{said}");
    let rows = fs::read_to_string(dir.path().join("rows.jsonl")).unwrap();
    let row: Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    assert_eq!((&row["op"], &row["requests"]), (&"all".into(), &2000.into()));
    let profile = row["profile"].as_str().unwrap();
    let trace = format!("traces/{}", row["trace"].as_str().unwrap());
    let alone = fine(dir.path(), &["sim", &trace, "--profile", profile, "--json"]);
    let alone: Value = serde_json::from_str(&alone).unwrap();
    let outcome = &alone["devices"][0]["open_loop"];
    assert_eq!(row["span_ns"], outcome["span_ns"]);
    assert_eq!(outcome["requests"], row["requests"]);
    let json = fine(dir.path(), &["fleet", "collect", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["devices"][0]["jobs"], 2);
}

#[test]
fn every_stream_can_be_a_load_of_its_own() {
    let dir = place();
    let lines = |at: u64| format!("{},{},4096,R,{:.3}\n", at % 3, at * 8, at as f64 * 0.01);
    fs::write(dir.path().join("v.spc"), (0..300).map(lines).collect::<String>()).unwrap();
    let plan = ["fleet", "plan", "v.spc", "--profile", "intel-x25-e", "--by-stream"];
    let said = fine(dir.path(), &plan);
    assert!(said.starts_with("3 jobs, 300 requests"), "{said}");
    fine(dir.path(), &["fleet", "run"]);
    fine(dir.path(), &["fleet", "collect", "--output", "rows.jsonl"]);
    let rows = fs::read_to_string(dir.path().join("rows.jsonl")).unwrap();
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let streams: Vec<&str> = rows
        .iter()
        .filter(|row| row["op"] == "all")
        .map(|row| row["stream"].as_str().unwrap())
        .collect();
    assert_eq!(streams, ["asu0", "asu1", "asu2"]);
    assert!(rows.iter().all(|row| row["requests"] == 100));
}

#[test]
fn what_cannot_be_done_is_told_and_does_not_end_the_rest() {
    let dir = place();
    traces(dir.path(), 2, "1000");
    let far = ["trace", "generate", "random", "-n", "100", "--option", "range=100GiB"];
    fine(dir.path(), &[&far[..], &["-o", "traces/far.parquet"]].concat());
    fine(dir.path(), &PLAN);
    let changed = ["trace", "generate", "random", "-n", "1000", "--seed", "77"];
    fine(dir.path(), &[&changed[..], &["-o", "traces/1.parquet"]].concat());
    let ran = run(dir.path(), &["fleet", "run"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.starts_with("2 jobs done, 0 done before, 4 failed"), "{ran:?}");
    let json = run(dir.path(), &["fleet", "run", "--json", "--quiet"]);
    let told: Value = serde_json::from_str(&json.out).unwrap();
    let causes: Vec<&str> = told["failed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|failed| failed["cause"].as_str().unwrap())
        .collect();
    let count = |what: &str| causes.iter().filter(|cause| cause.contains(what)).count();
    assert_eq!((count("is not the file that was planned"), causes.len()), (2, 4), "{causes:?}");
    refused(dir.path(), &["fleet", "run", "--job", "abc"], "fleet.jsonl: it has no job 'abc'");
    let plan = fs::read_to_string(dir.path().join("fleet.jsonl")).unwrap();
    fs::write(dir.path().join("edited.jsonl"), plan.replace("\"seed\":1", "\"seed\":9")).unwrap();
    refused(dir.path(), &["fleet", "run", "edited.jsonl"], "edited.jsonl: line 2: job");
    refused(dir.path(), &["fleet", "run", "traces/0.parquet"], "traces/0.parquet");
    fs::create_dir(dir.path().join("empty")).unwrap();
    let empty = ["fleet", "plan", "empty", "--profile", "intel-x25-e", "-o", "e.jsonl"];
    refused(dir.path(), &empty, "there is no trace with requests in it");
    refused(dir.path(), &[&PLAN[..], &["--profile", "intel-x25-e"]].concat(), "two profiles");
}

#[test]
fn a_fleet_that_was_stopped_goes_on() {
    let dir = place();
    traces(dir.path(), 12, "150000");
    fine(dir.path(), &PLAN);
    let child = command(dir.path(), &["fleet", "run", "--threads", "1"]).spawn().unwrap();
    let results = dir.path().join("fleet-results");
    let began = Instant::now();
    let done = || results.is_dir() && listing(&results).iter().any(|name| name.ends_with("jsonl"));
    while !done() {
        assert!(began.elapsed() < Duration::from_mins(1), "no job is ever done");
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let stopped = finish(child);
    assert_eq!(stopped.code, Some(130), "{stopped:?}");
    let before = contents(&results);
    assert!((1..24).contains(&before.len()), "{} of 24 jobs", before.len());
    let rest = fine(dir.path(), &["fleet", "run"]);
    let expected = format!("{} jobs done, {} done before", 24 - before.len(), before.len());
    assert!(rest.starts_with(&expected), "{rest}");
    let after = contents(&results);
    assert!(after.len() == 24 && before.iter().all(|job| after.contains(job)));
}
