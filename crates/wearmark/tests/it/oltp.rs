//! `wearmark oltp` from outside: runs that are kept, swept and compared; private servers.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{fine, listing, place, refused, run};

/// A short run of the commit workload, kept in `save`.
fn commit(directory: &Path, extra: &[&str]) -> String {
    let mut arguments = vec!["oltp", "run", ".", "--workload", "commit", "--rows", "200"];
    arguments.extend(["--users", "3", "--warmup", "100ms", "--duration", "300ms", "--no-capture"]);
    arguments.extend(["--synchronous", "off", "--quiet"]);
    arguments.extend(extra);
    fine(directory, &arguments)
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn runs_that_got_slower_are_a_finding() {
    let dir = place();
    let screen = commit(dir.path(), &["--repeat", "5", "--save", "old.json", "--html", "old.html"]);
    assert!(screen.contains("run by run") && screen.contains("input audit: passed"), "{screen}");
    let page = fs::read_to_string(dir.path().join("old.html")).unwrap();
    assert!(page.contains("commit on SQLite") && page.contains("Throughput run by run"));
    let mut set = json(&dir.path().join("old.json"));
    assert_eq!(set["runs"].as_array().unwrap().len(), 5);

    // The same runs at half the throughput.
    for run in set["runs"].as_array_mut().unwrap() {
        let result = &mut run["result"];
        result["transactions_per_s"] =
            (result["transactions_per_s"].as_f64().unwrap() / 2.0).into();
    }
    fs::write(dir.path().join("new.json"), set.to_string()).unwrap();
    let same = run(dir.path(), &["oltp", "compare", "old.json", "old.json"]);
    assert_eq!(same.code, Some(0), "{}{}", same.out, same.err);
    assert!(same.out.contains("no difference shown"), "{}", same.out);
    let arguments = ["oltp", "compare", "old.json", "new.json", "--html", "c.html"];
    let worse = run(dir.path(), &arguments);
    assert_eq!(worse.code, Some(1), "{}{}", worse.out, worse.err);
    let line = worse.out.lines().find(|line| line.starts_with("transactions")).unwrap();
    assert!(line.contains("0.500") && line.contains("REGRESSED"), "{line}");
    let better = run(dir.path(), &["oltp", "compare", "new.json", "old.json", "--json"]);
    assert_eq!(better.code, Some(0));
    let better: Value = serde_json::from_str(&better.out).unwrap();
    assert_eq!(better[0]["verdict"], "better");
}

#[test]
fn two_runs_prove_nothing_and_unlike_runs_do_not_compare() {
    let dir = place();
    commit(dir.path(), &["--repeat", "2", "--save", "a.json"]);
    let out = fine(dir.path(), &["oltp", "compare", "a.json", "a.json"]);
    assert!(out.contains("unproven"), "{out}");
    let arguments = ["oltp", "run", ".", "--workload", "bank", "--branches", "1", "--users", "2"];
    let short = ["--warmup", "0s", "--duration", "200ms", "--no-capture", "--save", "b.json"];
    fine(dir.path(), &[&arguments[..], &short[..], &["--quiet"]].concat());
    refused(dir.path(), &["oltp", "compare", "a.json", "b.json"], "different things");
    fs::write(dir.path().join("c.json"), "{}").unwrap();
    refused(dir.path(), &["oltp", "compare", "a.json", "c.json"], "c.json");
}

#[test]
fn a_sweep_goes_on_where_it_was_stopped() {
    let dir = place();
    let sweep = |over: &str| {
        let arguments =
            ["oltp", "sweep", ".", "--over", over, "--workload", "commit", "--rows", "99"];
        let short = ["--warmup", "0s", "--duration", "200ms", "--no-capture", "--quiet"];
        let kept = ["--save", "s.json", "--html", "s.html", "--synchronous", "off"];
        fine(dir.path(), &[&arguments[..], &short[..], &kept[..]].concat())
    };
    sweep("users=1,2");
    let before = json(&dir.path().join("s.json"));
    let screen = sweep("users=1,2,4");
    assert!(screen.starts_with("USERS") && screen.lines().count() == 4, "{screen}");
    let after = json(&dir.path().join("s.json"));
    let runs = after["runs"].as_array().unwrap();
    assert_eq!(runs[..2], before["runs"].as_array().unwrap()[..], "points are not run again");
    assert_eq!((runs.len(), &runs[2]["at"]), (3, &Value::from("4")));
    assert!(fs::read_to_string(dir.path().join("s.html")).unwrap().contains("Over users"));
    let other = ["oltp", "sweep", ".", "--over", "buffer=1MiB", "--save", "s.json"];
    refused(dir.path(), &other, "holds a sweep over 'users'");
    refused(dir.path(), &["oltp", "sweep", ".", "--over", "colour=red"], "cannot be swept");
    refused(dir.path(), &["oltp", "sweep", ".", "--over", "users"], "users");
}

#[test]
fn a_mistyped_option_costs_no_server() {
    let dir = place();
    let server = ["oltp", "run", "pg", "--dbms", "postgresql"];
    for (wrong, cause) in [
        (["--users", "0"], "users"),
        (["--mix", "1,2"], "mix"),
        (["--workload", "orders"], "workload"),
        (["--warehouses", "0"], "warehouses"),
    ] {
        refused(dir.path(), &[&server[..], &wrong[..]].concat(), cause);
    }
    assert_eq!(listing(dir.path()), [""; 0]);
}
