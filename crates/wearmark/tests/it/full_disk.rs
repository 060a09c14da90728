//! A full disk: one error that says so, and nothing half-written that looks whole.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::program::{fine, listing, place, refused, run};

/// A small file system in memory, unmounted at the end.
pub struct Small<'a>(pub &'a Path);

impl<'a> Small<'a> {
    /// Mounts it; `None` with a printed reason where that is not allowed.
    pub fn mount(at: &'a Path, size: &str) -> Option<Self> {
        let options = format!("size={size}");
        let mut mount = Command::new("mount");
        let done = mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at).output();
        if done.as_ref().is_ok_and(|output| output.status.success()) {
            return Some(Self(at));
        }
        println!("skipped: cannot mount a tmpfs (needs root): {done:?}");
        None
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        // Lazily: the kernel may still be closing the files of a ring of a process that has ended.
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_study_that_will_not_fit_is_refused_before_it_starts() {
    let dir = place();
    let Some(small) = Small::mount(dir.path(), "64m") else { return };
    refused(small.0, &["study", "run", "quickstart"], "free, but the study needs about");
    assert_eq!(listing(&small.0.join("runs")), [""; 0]);
}

#[test]
fn a_probe_that_fills_the_disk_removes_its_file() {
    let dir = place();
    let Some(small) = Small::mount(dir.path(), "24m") else { return };
    let ran = run(small.0, &["probe", ".", "--range", "64MiB", "--quiet"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("error:") && ran.err.contains("hint:"), "{ran:?}");
    assert_eq!(listing(small.0), [""; 0], "the probe's file was left behind");
}

#[test]
fn a_trace_that_does_not_fit_is_absent_not_torn() {
    let dir = place();
    let Some(small) = Small::mount(dir.path(), "1m") else { return };
    let lines = |count: u64| -> String {
        let line = |i| format!("0,{},4096,W,{i}.5", i * 7919 % 100_003);
        (0..count).map(line).collect::<Vec<_>>().join("\n")
    };
    fs::write(dir.path().join("t.spc"), lines(20_000)).unwrap();
    // Writes until nothing more fits; that this ends in an error is the point.
    assert!(fs::write(dir.path().join("filler"), vec![1u8; 1 << 20]).is_err());
    refused(small.0, &["trace", "convert", "t.spc", "t.parquet"], "t.parquet");
    assert_eq!(listing(small.0), ["filler", "t.spc"]);
    fs::remove_file(dir.path().join("filler")).unwrap();
    fine(small.0, &["trace", "convert", "t.spc", "t.parquet"]);
}

#[test]
fn a_database_that_fills_the_disk_ends_in_an_error() {
    let dir = place();
    let Some(small) = Small::mount(dir.path(), "40m") else { return };
    let ran = run(small.0, &["oltp", "run", ".", "--duration", "1s", "--quiet"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("error:") && ran.err.contains("hint:"), "{ran:?}");
    // What is left, if anything, must not be taken for a loaded database.
    let again = run(small.0, &["oltp", "check", "order_entry.db"]);
    assert_eq!(again.code, Some(2), "{again:?}");
}
