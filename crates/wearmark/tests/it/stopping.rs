//! A command that reads without end is stopped by the first signal.

use std::io::Write;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::program::{command, finish, place};

/// Feeds a command lines without end; asks it to stop after a moment, and expects that it does.
#[track_caller]
fn check(arguments: &[&str], signal: rustix::process::Signal) {
    let dir = place();
    let mut child: Child = command(dir.path(), arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let feeding = std::thread::spawn(move || {
        let lines = b"0,0,4096,R,0\n".repeat(1_000);
        // Ends with the pipe.
        while input.write_all(&lines).is_ok() {}
    });
    std::thread::sleep(Duration::from_millis(300));
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, signal).unwrap();
    let asked = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if asked.elapsed() > Duration::from_mins(1) {
            child.kill().unwrap();
            panic!("{arguments:?} goes on after {signal:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let ran = finish(child);
    feeding.join().unwrap();
    assert_eq!((ran.code, ran.out.as_str()), (Some(130), ""), "{arguments:?}: {}", ran.err);
    assert!(ran.err.contains("Stopped: "), "{}", ran.err);
}

#[test]
fn reading_an_endless_trace_can_be_stopped() {
    use rustix::process::Signal;
    check(&["trace", "info", "--format", "spc", "-"], Signal::INT);
    check(&["trace", "convert", "--format", "spc", "-", "t.parquet"], Signal::TERM);
    check(&["sim", "--format", "spc", "--profile", "intel-p3700", "-"], Signal::INT);
}
