//! Sweeps from outside: cells that are processes, stopping and going on, expectations.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{command, fine, finish, listing, place, refused, run};

const SWEEP: &str = r#"
[study]
name = "small"
title = "Which drive?"

[sweep]
question = "Which drive answers sooner?"
learned = "The one without an arm."
once = ["trace generate random -n 2000 --option rate=50/s -o {once}/t.parquet"]
before = ["trace scale {once}/t.parquet --factor {factor} -o t.parquet"]
run = "sim t.parquet --profile {device}"

[[axis]]
name = "device"
label = "Drive"
values = ["hgst-hds72107", "micron-7400"]

[[axis]]
name = "factor"
values = ["1", "2"]

[[figure]]
name = "Mean"
unit = "us"
at = "devices.0.open_loop.breakdown.all.mean_ns"
times = 1e-3
better = "less"

[[figure]]
name = "p99"
unit = "us"
at = "devices.0.open_loop.classes.op=read.response"
quantile = 0.99
times = 1e-3

[picture]
figure = "Mean"
over = "device"
by = "factor"

[[expect]]
what = "An arm takes longer"
figure = "Mean"
of = { device = "hgst-hds72107" }
than = { device = "micron-7400" }
at_least = 20
"#;

fn sweep(directory: &Path, text: &str) {
    fs::write(directory.join("small.toml"), text).unwrap();
}

fn result(directory: &Path) -> Value {
    let text = fs::read(directory.join("runs/small-001/result.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn every_combination_is_what_its_command_says() {
    let dir = place();
    sweep(dir.path(), SWEEP);
    let plan = fine(dir.path(), &["study", "run", "small.toml", "--dry-run"]);
    assert!(plan.starts_with("4 cells, each: wearmark sim t.parquet"), "{plan}");
    assert_eq!(listing(dir.path()), ["small.toml"], "nothing was done");
    let said = fine(dir.path(), &["study", "run", "small.toml"]);
    assert!(said.contains("Which drive answers sooner?") && said.contains("holds"), "{said}");
    assert!(said.lines().any(|line| line.starts_with("DRIVE") && line.ends_with("P99")), "{said}");
    let found = result(dir.path());
    let cells = found["cells"].as_array().unwrap();
    let shown: Vec<_> = cells.iter().map(|cell| &cell["settings"]["factor"]).collect();
    assert_eq!(shown, ["1", "2", "1", "2"]);
    // The same by hand.
    let once = dir.path().join("runs/small-001/once/t.parquet");
    let made = ["trace", "scale", once.to_str().unwrap(), "--factor", "2", "-o", "t.parquet"];
    fine(dir.path(), &made);
    let told = fine(dir.path(), &["sim", "t.parquet", "-p", "hgst-hds72107", "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    let mean_ns = told["devices"][0]["open_loop"]["breakdown"]["all"]["mean_ns"].as_f64().unwrap();
    let mean_us = cells[1]["figures"]["Mean"].as_f64().unwrap();
    assert!((mean_us - mean_ns / 1e3).abs() < 1e-6, "{mean_us} {mean_ns}");
    assert!(cells[1]["figures"]["p99"].as_f64().unwrap() > mean_us);
    // Two runs compare, by the figures of which it is known what is better.
    let ran = run(dir.path(), &["compare", "runs/small-001", "runs/small-001/result.json"]);
    assert_eq!(ran.code, Some(3), "a single run proves nothing: {ran:?}");
    assert_eq!(ran.out.matches(": Mean ").count(), 4, "{ran:?}");
    assert!(ran.out.contains("hgst-hds72107, 1: Mean") && !ran.out.contains("p99"), "{ran:?}");
    // A report is made anew without running anything.
    let page = dir.path().join("runs/small-001/report.html");
    let first = fs::read(&page).unwrap();
    fs::remove_file(&page).unwrap();
    fine(dir.path(), &["report", "runs/small-001"]);
    assert_eq!(fs::read(&page).unwrap(), first);
}

#[test]
fn what_does_not_hold_is_a_finding() {
    let dir = place();
    sweep(dir.path(), &SWEEP.replace("at_least = 20", "at_least = 1e6"));
    let ran = run(dir.path(), &["study", "run", "small.toml", "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let found: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(found["expected"][0]["holds"], false);
    let [low, high] = [0, 1].map(|at| found["expected"][0]["ratio"][at].as_f64().unwrap());
    assert!(20.0 < low && low <= high && high < 1e6, "{low} {high}");
}

#[test]
fn a_sweep_that_was_stopped_goes_on_with_the_cells_that_are_missing() {
    let dir = place();
    let many: Vec<String> = (1..60).map(|factor| format!("\"{factor}\"")).collect();
    let text = SWEEP.replace("[\"1\", \"2\"]", &format!("[{}]", many.join(", ")));
    sweep(dir.path(), &text);
    let whole = place();
    sweep(whole.path(), &text);
    let child = command(dir.path(), &["study", "run", "small.toml"]).spawn().unwrap();
    let first = dir.path().join("runs/small-001/cell-003.json");
    let began = Instant::now();
    while !first.exists() {
        assert!(began.elapsed() < Duration::from_mins(1), "no cell was done");
        std::thread::sleep(Duration::from_millis(5));
    }
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let ran = finish(child);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(ran.err.contains("The same command goes on from there"), "{ran:?}");
    let written = fs::metadata(&first).unwrap().modified().unwrap();
    fine(dir.path(), &["study", "run", "small.toml"]);
    assert_eq!(fs::metadata(&first).unwrap().modified().unwrap(), written, "it was done again");
    fine(whole.path(), &["study", "run", "small.toml"]);
    assert_eq!(result(dir.path()), result(whole.path()));
    let left = listing(&dir.path().join("runs/small-001"));
    assert!(
        left.iter().all(|name| !name.starts_with("cell-") || name.contains(".json")),
        "{left:?}"
    );
}

#[test]
fn mistakes_of_a_sweep_are_told() {
    let dir = place();
    for (from, to, cause) in [
        ("--profile {device}", "--profile {drive}", "small.toml: no axis is called 'drive'"),
        ("\"micron-7400\"]", "\"micron-74\"]", "micron-74"),
        (
            "all.mean_ns",
            "all.mean",
            "it printed no number at 'devices.0.open_loop.breakdown.all.mean'",
        ),
        ("title =", "titel =", "small.toml:"),
    ] {
        let text = SWEEP.replacen(from, to, 1).replace("micron-7400\" }", "hgst-hds72107\" }");
        sweep(dir.path(), &text);
        refused(dir.path(), &["study", "run", "small.toml"], cause);
    }
}

#[test]
fn shipped_sweeps_are_shown_and_two_hold() {
    let dir = place();
    let shown = fine(dir.path(), &["study", "show", "modern/page-size"]);
    assert!(shown.contains("[sweep]") && shown.contains("page"), "{shown}");
    fs::write(dir.path().join("own.toml"), &shown).unwrap();
    assert_eq!(fine(dir.path(), &["study", "show", "own.toml"]), shown);
    for name in ["modern/slc-cache", "modern/in-place-or-log"] {
        let ran = run(dir.path(), &["study", "run", name]);
        assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
    }
}
