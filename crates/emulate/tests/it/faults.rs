//! Faults that were ordered, and a loop device, through the eyes of programs.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use emulate::{Emulation, Faults, Options, Served};
use units::Nanos;

use crate::support::{Mounted, device, is_mounted, requests};

#[test]
fn a_device_that_has_failed_answers_with_an_error() {
    let Some(mut mounted) = Mounted::new(device(1, 1, 1, 8), false) else { return };
    mounted.stop();
    let faults = Faults { fail_after: Some(Nanos(0)), ..Faults::default() };
    mounted.start_with(device(1, 1, 1, 8), false, faults);
    let file = File::create(mounted.path().join("file")).unwrap();
    file.write_all_at(b"lost", 0).unwrap();
    assert_eq!(file.sync_all().unwrap_err().raw_os_error(), Some(libc::EIO));
}

#[test]
fn a_bad_range_fails_and_the_rest_is_read() {
    let Some(mut mounted) = Mounted::with(device(1, 1, 1, 8), false, |path| {
        fs::write(path.join("file"), vec![3; 1 << 20]).unwrap();
    }) else {
        return;
    };
    mounted.stop();
    let faults = Faults { fail_range: Some(512 << 10..513 << 10), ..Faults::default() };
    mounted.start_with(device(1, 1, 1, 8), false, faults);
    let file = File::open(mounted.path().join("file")).unwrap();
    let mut block = [0; 4096];
    file.read_exact_at(&mut block, 0).unwrap();
    assert_eq!(block, [3; 4096]);
    let error = file.read_exact_at(&mut block, 512 << 10).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EIO));
}

#[test]
fn a_stall_ends() {
    let Some(mut mounted) = Mounted::new(device(1, 1, 1, 8), false) else { return };
    mounted.stop();
    let faults = Faults { stall: Some(Nanos(0)..Nanos(300_000_000)), ..Faults::default() };
    let start = Instant::now();
    mounted.start_with(device(1, 1, 1, 8), false, faults);
    let file = File::create(mounted.path().join("file")).unwrap();
    file.sync_all().unwrap();
    assert!(start.elapsed() >= Duration::from_millis(300));
}

#[test]
fn a_loop_device_carries_a_file_system_and_is_gone_afterwards() {
    let missing = emulate::directories_missing().or_else(emulate::blocks_missing);
    if let Some((why, _)) = missing {
        println!("skipped: {why}");
        return;
    }
    if Command::new("mkfs.ext4").arg("-V").output().is_err() {
        println!("skipped: no mkfs.ext4");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("served");
    fs::create_dir(&directory).unwrap();
    let file = directory.join("disk");
    File::create(&file).unwrap().set_len(64 << 20).unwrap();
    let served = Served {
        name: "test".to_owned(),
        device: device(20, 20, 50, 8),
        directories: vec![directory.clone()],
        exports: Vec::new(),
        blocks: vec![file],
    };
    let emulation = match Emulation::start(vec![served], &Options::default()) {
        Err(error) if error.to_string().contains("loop device") => {
            println!("skipped: {error}");
            return;
        }
        started => started.unwrap(),
    };
    let block = emulation.blocks().next().unwrap().to_owned();
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", "100", program]).args(arguments).arg(&block);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run("mkfs.ext4", &["-q", "-F"]);
    run("fsck.ext4", &["-f", "-n"]);
    run("blkdiscard", &["-f"]);
    let outcome = emulation.stop().unwrap().remove(0);
    let counts = ["read", "write", "trim", "flush"].map(|op| requests(&outcome, op) > 0);
    assert_eq!(counts, [true; 4], "{:?}", outcome.ops);
    assert!(!is_mounted(&directory));
    let listed = Command::new("losetup").arg(&block).output().unwrap();
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(!text.contains("disk"), "still attached: {text}");
}
