//! The model of the host beside the kernel: the same calls, and what the device got for them.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::program::fine;

/// Whether file systems cannot be made here, which is said.
pub fn missing(make: &str) -> bool {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root makes a file system");
        return true;
    }
    if let Some((why, _)) = emulate::blocks_missing() {
        println!("skipped: {why}");
        return true;
    }
    if Command::new(make).arg("-V").output().is_err() {
        println!("skipped: no {make}");
        return true;
    }
    false
}

fn loops() -> usize {
    let devices = fs::read_dir("/sys/class/block").unwrap();
    devices
        .filter(|device| device.as_ref().unwrap().path().join("loop/backing_file").exists())
        .count()
}

/// Half a second of commits on SQLite: appends and overwrites, each with its sync.
fn calls(dir: &Path) {
    let words = "oltp run lite --workload commit --rows 2000 --users 2 --warmup 0s \
                 --duration 500ms --trace lite";
    fine(dir, &words.split_whitespace().collect::<Vec<_>>());
}

fn check(kind: &str) {
    if missing(&format!("mkfs.{kind}")) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let dir = place.path();
    calls(dir);
    let stack = format!("[page_cache]\nmemory = \"16GiB\"\n[file_system]\nkind = \"{kind}\"\n");
    fs::write(dir.join("stack.toml"), stack).unwrap();
    fs::create_dir(dir.join("fs")).unwrap();
    let before = loops();
    let words = "trace host lite-logical.parquet --host stack.toml -o below.parquet --run-in fs \
                 --real-output real.parquet --json --quiet";
    let said = fine(dir, &words.split_whitespace().collect::<Vec<_>>());
    let found: Value = serde_json::from_str(&said).unwrap();
    let figure = |side: &str, place: &str| {
        let value = found["real"][side].pointer(place).and_then(Value::as_f64);
        value.unwrap_or_else(|| panic!("{side} {place}: {found}"))
    };
    // The bars of docs/bars.md.
    for (place, allowed) in
        [("/files/write/requests", 0.15), ("/files/write/bytes", 0.1), ("/other/flushes", 0.05)]
    {
        let (modelled, real) = (figure("modelled", place), figure("real", place));
        assert!(real > 50.0, "{kind} {place}: {found}");
        assert!((modelled / real - 1.0).abs() <= allowed, "{kind} {place}: {found}");
    }
    assert_eq!(found["real"]["lost"], 0);
    let info = fine(dir, &["trace", "info", "real.parquet", "--json"]);
    let info: Value = serde_json::from_str(&info).unwrap();
    assert!(info.to_string().contains("other"), "{info}");
    assert_eq!(fs::read_dir(dir.join("fs")).unwrap().count(), 0, "nothing is left");
    // Other tests attach devices too.
    assert!(loops() <= before + 2, "the loop device is given back");
}

#[test]
fn ext4_gets_what_the_model_says() {
    check("ext4");
}

#[test]
fn ext2_gets_what_the_model_says() {
    check("ext2");
}

#[test]
fn xfs_gets_what_the_model_says() {
    check("xfs");
}

#[test]
fn a_directory_that_cannot_be_used_is_told() {
    if missing("mkfs.ext4") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    calls(place.path());
    let stack = "[page_cache]\nmemory = \"16GiB\"\n[file_system]\nkind = \"ext4\"\n";
    fs::write(place.path().join("stack.toml"), stack).unwrap();
    let words =
        "trace host lite-logical.parquet --host stack.toml -o below.parquet --run-in absent";
    let words: Vec<_> = words.split_whitespace().collect();
    crate::program::refused(place.path(), &words, "absent");
}
