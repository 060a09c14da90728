//! A study on a server, small: loaded, captured, predicted, really run on an emulated volume;
//! killed there and gone on with.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{command, finish, place, run};
use crate::schema;

const STUDY: &str = "\
[study]
name = 'volume'
[oltp]
dbms = 'postgresql'
workload = 'commit'
rows = 1000
terminals = 4
warmup = '1s'
duration = '2s'
rounds = 1
[[scenario]]
profile = 'aws-gp3'
log = 'intel-p5600'
run = 'emulated'
[[scenario]]
profile = 'hgst-hds72107'
run = 'predicted'
";

/// Why a server cannot run on an emulated device here.
fn missing() -> Option<String> {
    let server =
        dbms::Programs::find(dbms::System::Postgresql).err().map(|error| error.to_string());
    server.or_else(|| emulate::directories_missing().map(|(cause, _)| cause))
}

#[test]
fn killed_on_an_emulated_volume_it_goes_on_to_the_same_page() {
    if let Some(why) = missing() {
        return println!("skipped: {why}");
    }
    let dir = place();
    fs::write(dir.path().join("volume.toml"), STUDY).unwrap();
    let run_dir = dir.path().join("runs/volume-001");
    let arguments = ["study", "run", "volume.toml"];

    // kill -9 while the load runs on the volume: after the run here is kept.
    let mut child = command(dir.path(), &arguments).spawn().unwrap();
    let (started, partial) = (Instant::now(), run_dir.join("places.partial.jsonl"));
    let mounted = || {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        mounts.contains(run_dir.join("database-log").to_str().unwrap())
    };
    while !mounted() {
        assert!(started.elapsed() < Duration::from_mins(2), "no volume was ever mounted");
        assert!(child.try_wait().unwrap().is_none(), "{:?}", finish(child));
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    finish(child);
    let kept = fs::read_to_string(&partial).unwrap();
    assert_eq!(kept.lines().count(), 1, "the run here is kept: {kept}");

    // It goes on behind that run, and nothing of the killed one is left.
    let ran = run(dir.path(), &arguments);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out, ran.err);
    assert!(!mounted(), "something is still mounted");
    let places: Value =
        serde_json::from_slice(&fs::read(run_dir.join("places.json")).unwrap()).unwrap();
    let first: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(places[0]["runs"][0], first[1], "the run here was not made again");
    let left = crate::program::listing(&run_dir);
    for name in ["database", "database-log", "loaded", "loaded-log", "load.out", "emulator.err"] {
        assert!(!left.iter().any(|found| found == name), "{name} is left: {left:?}");
    }

    let result: Value =
        serde_json::from_slice(&fs::read(run_dir.join("result.json")).unwrap()).unwrap();
    let published = include_str!("../../../../docs/reference/result.schema.json");
    let faults = schema::faults(&serde_json::from_str(published).unwrap(), &result);
    assert!(faults.is_empty(), "result.json against its schema: {faults:#?}");
    let [here, volume, disk] = [0, 1, 2].map(|index| &result["places"][index]);
    assert_eq!(here["name"], "here");
    assert_eq!(volume["name"], "aws-gp3, log on intel-p5600");
    // What the volume and the log's device were asked by every transaction.
    let flushes = volume["runs"][0]["io"].as_array().unwrap().iter().find(|io| io["op"] == "flush");
    assert!(flushes.unwrap()["requests"].as_f64().unwrap() > 0.0, "{volume}");
    assert_eq!(disk["runs"], serde_json::json!([]), "it is only predicted");
    check_predictions([here, volume, disk], &run_dir);
}

/// What is predicted of the same transactions, where the capture could be had.
fn check_predictions([here, volume, disk]: [&Value; 3], run_dir: &std::path::Path) {
    if !run_dir.join("captured-logical.parquet").exists() {
        return println!("skipped: the kernel's tracepoints cannot be used");
    }
    let captured = fs::read(run_dir.join("captured-run.json")).unwrap();
    let captured: Value = serde_json::from_slice(&captured).unwrap();
    let cost = &captured["runs"][0]["server"]["capture_cost"];
    // Each turn of a second needs fifty transactions: beside other tests there may be fewer.
    if captured["runs"][0]["result"]["transactions_per_s"].as_f64().unwrap() > 1000.0 {
        assert!(cost["turns"].as_u64().is_some_and(|turns| turns >= 2), "off and on: {cost}");
    }
    let ready = captured["runs"][0]["server"]["start"]["log_ready"].as_u64();
    assert!(ready.is_some_and(|bytes| (1..1 << 30).contains(&bytes)), "segments: {ready:?}");
    let as_run = &volume["as_run"];
    assert!(as_run["sync_less_ns"].as_f64().is_some_and(|less| less < 1e6), "{as_run}");
    let beside = &as_run["figures"]["transactions_per_min"];
    assert!(beside.as_f64().is_some_and(|per_min| per_min > 0.0), "{volume}");
    // The same machine a minute later, whatever else it does.
    let speed = as_run["speed"].as_f64().unwrap();
    assert!((0.2..5.0).contains(&speed) && speed != 1.0, "processors were measured: {as_run}");
    let per_min = |place: &Value| place["predicted"]["figures"]["transactions_per_min"].as_f64();
    assert!(per_min(disk).unwrap() < per_min(here).unwrap(), "a disk that turns is slower");
    // Not always the first: where a busy machine made few transactions, reading the tables for the
    // first time takes as long.
    let limits = disk["predicted"]["limits"].as_array().unwrap();
    let flush = limits.iter().find(|limit| limit["what"] == "log flush");
    assert!(flush.is_some_and(|limit| limit["share"].as_f64().unwrap() > 0.25), "{disk}");
    // Flushes of the log are most of what is asked; as many are predicted, by half.
    let flushes = |of: &Value| {
        let io = of["io"].as_array().unwrap().iter().find(|io| io["op"] == "flush");
        io.and_then(|io| io["requests"].as_f64()).unwrap()
    };
    let ratio = flushes(&volume["predicted"]) / flushes(&volume["runs"][0]);
    assert!((0.5..2.0).contains(&ratio), "flushes predicted over measured: {ratio}; {volume}");
    let page = fs::read_to_string(run_dir.join("report.html")).unwrap();
    for word in [
        "What devices are asked",
        "Limited by",
        "log flush",
        "Really run",
        "hgst-hds72107",
        "The server",
    ] {
        assert!(page.to_lowercase().contains(&word.to_lowercase()), "no '{word}' on the page");
    }
}

const EMBEDDED: &str = "\
[study]
name = 'embedded'
[oltp]
dbms = 'sqlite'
workload = 'commit'
rows = 1000
terminals = 4
warmup = '1s'
duration = '4s'
rounds = 1
[[scenario]]
profile = 'hgst-hds72107'
run = 'emulated'
";

/// SQLite is a library: what it does on a disk is found by running it there, in virtual time.
#[test]
fn an_embedded_database_is_predicted_by_running_it() {
    if let Some((why, _)) = emulate::directories_missing() {
        return println!("skipped: {why}");
    }
    let dir = place();
    fs::write(dir.path().join("embedded.toml"), EMBEDDED).unwrap();
    let ran = run(dir.path(), &["study", "run", "embedded.toml"]);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out, ran.err);
    let run_dir = dir.path().join("runs/embedded-001");
    let result: Value =
        serde_json::from_slice(&fs::read(run_dir.join("result.json")).unwrap()).unwrap();
    let published = include_str!("../../../../docs/reference/result.schema.json");
    let faults = schema::faults(&serde_json::from_str(published).unwrap(), &result);
    assert!(faults.is_empty(), "result.json against its schema: {faults:#?}");
    let predicted = &result["places"][1]["predicted"];
    assert_eq!(predicted["by"], "engine", "{predicted}");
    // A flush of this disk waits for its platter: 7,200 turns a minute, a commit each.
    let per_min = predicted["figures"]["transactions_per_min"].as_f64().unwrap();
    assert!((per_min / 7_100.0 - 1.0).abs() < 0.1, "{per_min}");
    assert!(!predicted["limits"].as_array().unwrap().is_empty(), "{predicted}");
    let page = fs::read_to_string(run_dir.join("report.html")).unwrap();
    assert!(page.contains("predicted by the engine itself in virtual time"));
}
