//! `wearmark emulate`: what it serves, and that nothing is left of it.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::program::{command, fine, finish, place, refused, run};

/// Whether the machine can serve directories; says why not.
fn is_possible() -> bool {
    if let Some((why, _)) = emulate::directories_missing() {
        println!("skipped: {why}");
        return false;
    }
    true
}

fn is_mounted(path: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    mounts.lines().any(|line| line.split(' ').nth(1) == path.to_str())
}

/// Waits until it is so; a busy machine may take long.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_mins(1), "still not: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), signal).unwrap();
}

#[test]
fn a_command_runs_on_the_device_and_its_result_is_that_of_the_emulation() {
    if !is_possible() {
        return;
    }
    let dir = place();
    fs::create_dir(dir.path().join("db")).unwrap();
    let arguments = ["emulate", "aws-gp3", "--dir", "db", "--json", "--"];
    let write = ["dd", "if=/dev/zero", "of=db/file", "bs=4096", "count=5", "oflag=direct"];
    let printed = fine(dir.path(), &[&arguments[..], &write].concat());
    let found: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let device = &found["devices"][0];
    assert_eq!(device["device"], "aws-gp3");
    let written = device["ops"].as_array().unwrap().iter().find(|op| op["op"] == "write").unwrap();
    assert_eq!((written["requests"].as_u64(), written["bytes"].as_u64()), (Some(5), Some(20480)));
    // 346 us and 1 us per KiB, with a scatter of 0.46 over the root of five; the third of a
    // millisecond that the rate cap lets pass.
    let mean = written["service_us_mean"].as_f64().unwrap();
    assert!((200.0..600.0).contains(&mean), "{printed}");
    assert_eq!(fs::read(dir.path().join("db/file")).unwrap(), vec![0; 20480]);
    let failed = run(dir.path(), &[&arguments[..4], &["--", "false"]].concat());
    assert_eq!(failed.code, Some(1), "{failed:?}");
}

#[test]
fn what_stands_above_a_device_is_served_too() {
    if !is_possible() {
        return;
    }
    let dir = place();
    for name in ["a", "b"] {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    let stack =
        "[volume]\nlevel = \"raid1\"\nmembers = 2\n[volume.controller]\ncache = \"64MiB\"\n";
    fs::write(dir.path().join("raid.toml"), stack).unwrap();
    let disk = "hgst-hds72107";
    let arguments = ["emulate", disk, disk, "--dir", "a", "--dir", "b", "--json"];
    let hosts = ["--host", "raid.toml", "--host", "none", "--", "sh", "-c"];
    let both = "for d in a b; do dd if=/dev/zero of=$d/file bs=4096 count=9 oflag=dsync; done";
    let printed = fine(dir.path(), &[&arguments[..], &hosts, &[both]].concat());
    let found: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let mean = |device: usize| {
        let ops = found["devices"][device]["ops"].as_array().unwrap();
        let flushed = ops.iter().find(|op| op["op"] == "flush").unwrap();
        assert_eq!(flushed["requests"], 9, "{printed}");
        flushed["service_us_mean"].as_f64().unwrap()
    };
    // Memory with a battery acknowledges at once, a disk that turns does not.
    assert!(mean(0) < 500.0 && mean(1) > 2000.0, "{printed}");
    let three = ["--host", "raid.toml", "--host", "none", "--host", "none", "--for", "1s"];
    refused(dir.path(), &[&arguments[..], &three].concat(), "3 hosts for 2 profiles");
}

#[test]
fn a_signal_ends_it_and_nothing_stays_mounted() {
    if !is_possible() {
        return;
    }
    let dir = place();
    let db = dir.path().join("db");
    fs::create_dir(&db).unwrap();
    let db = db.canonicalize().unwrap();
    for how in [Signal::INT, Signal::TERM, Signal::KILL] {
        let child =
            command(dir.path(), &["emulate", "intel-x25-e", "--dir", "db"]).spawn().unwrap();
        until("it is mounted", || is_mounted(&db));
        fs::write(db.join("file"), format!("{how:?}")).unwrap();
        fs::File::open(db.join("file")).unwrap().sync_all().unwrap();
        signal(&child, how);
        let ran = finish(child);
        if how == Signal::KILL {
            until("the mount of a killed emulator is taken away", || !is_mounted(&db));
        } else {
            assert_eq!(ran.code, Some(0), "{ran:?}");
            assert!(ran.out.contains("write"), "{ran:?}");
            assert!(!is_mounted(&db), "{how:?}");
        }
        assert_eq!(fs::read_to_string(db.join("file")).unwrap(), format!("{how:?}"));
    }
}

/// An emulation of `db` in the background, from when it is mounted.
pub struct Running(Child);

impl Running {
    pub fn start(directory: &Path, arguments: &[&str]) -> Self {
        let child = command(directory, arguments).spawn().unwrap();
        let db = directory.join("db").canonicalize().unwrap();
        until("it is mounted", || is_mounted(&db));
        Self(child)
    }

    pub fn end(self) {
        signal(&self.0, Signal::INT);
        let ran = finish(self.0);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
}

#[test]
fn orders_change_the_device_while_it_is_served() {
    if !is_possible() {
        return;
    }
    let dir = place();
    fs::create_dir(dir.path().join("db")).unwrap();
    let refused_here = |arguments: &[&str], cause| refused(dir.path(), arguments, cause);
    refused_here(&["emulate", "status", "db"], "nothing is emulated there");
    let served = Running::start(dir.path(), &["emulate", "aws-gp2", "--dir", "db"]);
    let status = || -> serde_json::Value {
        let text = fine(dir.path(), &["emulate", "status", "db", "--json"]);
        serde_json::from_str(&text).unwrap()
    };
    let write = |name: &str| {
        let file = fs::File::create(dir.path().join("db").join(name))?;
        rustix::io::write(&file, &[1; 4096])?;
        file.sync_all()
    };
    write("before").unwrap();
    until("the write is counted", || status()["io_credits"].as_u64() < Some(5_400_000));
    fine(dir.path(), &["emulate", "set", "db", "limits.iops.credits_at_start=0"]);
    until("the credits are gone", || status()["io_credits"].as_u64() < Some(1_000));
    refused_here(&["emulate", "set", "db", "fail=on", "device.flush.bas_us=1"], "bas_us");
    write("a refused order changes nothing").unwrap();
    fine(dir.path(), &["emulate", "set", "db", "fail=on"]);
    until("it fails", || write("failing").is_err());
    fine(dir.path(), &["emulate", "set", "db", "profile=intel-320", "fail=off"]);
    until("it works again", || write("after").is_ok());
    assert_eq!(status().get("io_credits"), None, "another device, without credits");
    served.end();
    assert_eq!(fs::read(dir.path().join("db/after")).unwrap(), [1; 4096]);
}

#[test]
fn a_power_cut_comes_in_its_window() {
    if !is_possible() {
        return;
    }
    let dir = place();
    fs::create_dir(dir.path().join("db")).unwrap();
    let cut = ["emulate", "intel-320", "--dir", "db", "--power-cut", "100ms..300ms", "--torn", "3"];
    let start = Instant::now();
    let out = fine(dir.path(), &cut);
    assert!(start.elapsed() >= Duration::from_millis(100), "not before the window");
    assert!(out.contains("the power cut took 0 bytes"), "{out}");
}

#[test]
fn mistakes_are_refused_before_anything_is_mounted() {
    let dir = place();
    fs::create_dir(dir.path().join("db")).unwrap();
    refused(dir.path(), &["emulate", "no-such", "--dir", "db"], "no-such");
    let backwards =
        run(dir.path(), &["emulate", "aws-gp3", "--dir", "db", "--power-cut", "2s..1s"]);
    assert!(backwards.code == Some(2) && backwards.err.contains("window"), "{backwards:?}");
    if !is_possible() {
        return;
    }
    refused(dir.path(), &["emulate", "aws-gp3", "--dir", "absent"], "absent");
    let two = ["emulate", "aws-gp3", "intel-320", "--dir", "db"];
    refused(dir.path(), &two, "2 profiles for 1 places");
}
