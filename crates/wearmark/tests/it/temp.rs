//! `wearmark temp`: sorts and joins on a disk and on models.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::full_disk::Small;
use crate::program::{command, fine, finish, listing, place, refused, run};

fn json(dir: &std::path::Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&fine(dir, arguments)).expect("--json prints JSON")
}

#[test]
fn a_sweep_names_the_fastest_and_leaves_nothing() {
    let dir = place();
    let sort = ["temp", "sort", "-n", "20000", "-m", "256KiB", "-c", "4KiB,16KiB"];
    let text = fine(dir.path(), &sort);
    assert_eq!(text.lines().count(), 3, "{text}");
    assert_eq!(text.matches('*').count(), 1, "{text}");
    let found = json(dir.path(), &[&sort[..], &["--json"]].concat());
    let plan = &found[0]["sort"]["plan"];
    assert_eq!(found[0]["sort"]["verified"], true);
    assert_eq!(plan["merge_count"], 1);
    let read = found[0]["sort"]["phases"][1]["read_bytes"].as_u64();
    assert_eq!(read, plan["read_bytes"].as_u64());
    assert_eq!(listing(dir.path()), [""; 0]);
}

#[test]
fn models_write_nothing_and_give_the_same_twice() {
    let dir = place();
    let join = ["temp", "join", "-n", "5000", "-m", "128KiB", "-c", "4KiB", "-p", "intel-x25-e"];
    let arguments = [&join[..], &["-p", "aws-gp3", "--json"]].concat();
    let (first, second) = (json(dir.path(), &arguments), json(dir.path(), &arguments));
    assert_eq!(first, second);
    assert_eq!(first[1]["place"], "aws-gp3");
    assert_eq!(first[0]["join"]["rows"], 5000);
    assert_eq!(listing(dir.path()), [""; 0]);
}

#[test]
fn requests_become_traces() {
    let dir = place();
    let sort = ["temp", "sort", "-n", "20000", "-m", "256KiB", "-c", "4KiB,8KiB", "--trace", "t"];
    fine(dir.path(), &sort);
    assert_eq!(listing(dir.path()), ["t-4KiB.parquet", "t-8KiB.parquet"]);
    let info = fine(dir.path(), &["trace", "info", "t-4KiB.parquet"]);
    assert!(info.contains("runs") && info.contains("merges"), "{info}");
    fine(dir.path(), &["sim", "t-8KiB.parquet", "-p", "intel-x25-e", "--closed"]);
}

#[test]
fn mistakes_are_refused() {
    let dir = place();
    let at = dir.path();
    refused(at, &["temp", "sort", "-c", "5000"], "multiples of");
    refused(at, &["temp", "sort", "-m", "16KiB"], "at least 5 are needed");
    refused(at, &["temp", "sort", "-d", "absent"], "absent");
    refused(at, &["temp", "join", "--width", "9000"], "holds none");
    refused(at, &["temp", "sort", "-p", "no-such-disk"], "no-such-disk");
    refused(at, &["temp", "sort", "-n", "200000000000", "-m", "1GiB"], "free");
    let ran = run(at, &["temp", "sort", "--keys", "zipf"]);
    assert!(ran.code == Some(2) && ran.err.contains("zipf:N"), "{ran:?}");
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    let dir = place();
    let Some(small) = Small::mount(dir.path(), "8m") else { return };
    refused(small.0, &["temp", "sort", "-n", "200000", "-q"], "free");
    // There is room at the start and none later: the file is sparse, or somebody else fills it.
    fs::write(dir.path().join("filler"), vec![1u8; 7 << 20]).unwrap();
    refused(small.0, &["temp", "join", "-n", "30000", "-m", "256KiB", "-q"], "free");
    assert_eq!(listing(small.0), ["filler"]);
}

#[test]
fn ctrl_c_keeps_what_was_done() {
    let dir = place();
    let sort = ["temp", "sort", "-n", "3000000", "-c", "8KiB,16KiB,32KiB,64KiB", "--json"];
    let child = command(dir.path(), &sort).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(400));
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let ran = finish(child);
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(listing(dir.path()), [""; 0]);
}
