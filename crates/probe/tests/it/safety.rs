//! The rules of what may be measured and written.

use std::fs;

use events::{Hint, Quiet};
use fit::measurement::Order;
use io::Error;
use io::target::{Need, TargetSpec, inspect, prepare};
use probe::plan::closed;
use probe::{PlanKind, dry_run, run};

use crate::{options, scratch};

const RANGE: u64 = 4 << 20;
const NEED: Need = Need { range_bytes: RANGE, keep_file: false, must_write: true };

fn refused(spec: &TargetSpec, need: &Need, expected: fn(&Error) -> bool) {
    let error = inspect(spec, need).expect_err("must be refused");
    assert!(expected(&error), "{error:?}");
    assert!(error.hint().is_some(), "{error}");
    assert!(prepare(spec, need).is_err());
}

#[test]
fn a_file_of_the_users_is_only_read() {
    let Some(directory) = scratch() else { return };
    let path = directory.path().join("precious");
    fs::write(&path, vec![42u8; RANGE as usize]).unwrap();
    refused(&TargetSpec::new(&path), &NEED, |e| matches!(e, Error::WouldDestroy { .. }));

    // A plan of our choosing leaves out what writes, and says so.
    let mut plan = options(&path, Vec::new(), RANGE);
    plan.plan = PlanKind::Quick;
    plan.cell_seconds = Some(0.01);
    let measured = run(&plan, &Quiet, &mut |_| {}).unwrap();
    assert!(measured.cells.iter().all(|result| result.cell.read_share >= 1.0));
    assert!(measured.warnings.iter().any(|warning| warning.code == "target_read_only"));
    assert!(fs::read(&path).unwrap().iter().all(|byte| *byte == 42), "the file was written");
}

#[test]
fn a_file_named_twice_is_written_and_stays() {
    let Some(directory) = scratch() else { return };
    let path = directory.path().join("scratch");
    fs::write(&path, vec![42u8; RANGE as usize]).unwrap();
    let mut plan = options(&path, vec![closed(Order::Random, 0.0, 4096, 1)], RANGE);
    plan.target.i_will_lose_data = Some(path.clone());
    run(&plan, &Quiet, &mut |_| {}).unwrap();
    assert!(fs::read(&path).unwrap().iter().any(|byte| *byte != 42));

    plan.target.i_will_lose_data = Some(directory.path().join("other"));
    refused(&plan.target, &NEED, |e| matches!(e, Error::NamedDifferently { .. }));
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let Some(directory) = scratch() else { return };
    let check = |path: &str, expected| refused(&TargetSpec::new(path), &NEED, expected);
    check("/dev/null", |e| matches!(e, Error::WrongKind { kind: "character device", .. }));
    let missing = directory.path().join("no/such/file");
    check(missing.to_str().unwrap(), |e| matches!(e, Error::NoParent { .. }));
    let huge = Need { range_bytes: 1 << 55, ..NEED };
    refused(&TargetSpec::new(directory.path()), &huge, |e| matches!(e, Error::TooFewFree { .. }));
    let small = directory.path().join("small");
    fs::write(&small, [0u8; 100]).unwrap();
    let reads = Need { must_write: false, ..NEED };
    refused(&TargetSpec::new(&small), &reads, |e| matches!(e, Error::TooSmall { .. }));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "something was created");
}

#[test]
fn the_disk_that_is_mounted_is_refused() {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let disk = table.lines().find_map(|line| {
        let source = line.split_once(" - ")?.1.split_ascii_whitespace().nth(1)?;
        source
            .starts_with("/dev/")
            .then(|| source.to_owned())
            .filter(|path| fs::metadata(path).is_ok())
    });
    let Some(disk) = disk else {
        println!("skipped: no mounted disk is visible");
        return;
    };
    let spec = TargetSpec { path: disk.clone().into(), i_will_lose_data: Some(disk.into()) };
    refused(&spec, &NEED, |e| matches!(e, Error::InUse { .. }));
}

#[test]
fn a_left_over_file_is_taken_over_and_one_in_use_is_passed_by() {
    let Some(directory) = scratch() else { return };
    let spec = TargetSpec::new(directory.path());
    let kept = Need { keep_file: true, ..NEED };
    let first = prepare(&spec, &kept).unwrap();
    let second = prepare(&spec, &NEED).unwrap();
    assert_ne!(first.info.path, second.info.path, "two runs shared a file");
    let (first_path, second_path) = (first.info.path.clone(), second.info.path.clone());
    drop((first, second));
    assert!(first_path.exists() && !second_path.exists());
    let third = prepare(&spec, &NEED).unwrap();
    if !has_xattrs(&first_path) {
        println!("skipped: no extended attributes here, left-over files cannot be told apart");
        return;
    }
    assert_eq!(third.info.path, first_path);
    // A file of that name which is not ours is passed by, too.
    drop(third);
    fs::write(&first_path, b"mine").unwrap();
    let fourth = prepare(&spec, &NEED).unwrap();
    assert_ne!(fourth.info.path, first_path);
    assert_eq!(fs::read(&first_path).unwrap(), b"mine");
}

fn has_xattrs(path: &std::path::Path) -> bool {
    let mut value = [0u8; 16];
    rustix::fs::getxattr(path, "user.wearmark", &mut value).is_ok()
}

/// A small tmpfs that fills up: the run ends before or while it writes, and leaves nothing.
#[test]
fn a_full_disk_ends_the_run_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"])
        .arg(place)
        .output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        println!("skipped: may not mount a small tmpfs");
        return;
    }
    let outcome = dry_run(&options(place, vec![closed(Order::Random, 1.0, 4096, 1)], 64 << 20));
    // Somebody else fills the disk between the check and the run.
    fs::write(place.join("other"), vec![0u8; 6 << 20]).unwrap();
    let fits = options(place, vec![closed(Order::Random, 1.0, 4096, 1)], 1 << 20);
    let small = run(&fits, &Quiet, &mut |_| {});
    let left = fs::read_dir(place).unwrap().count();
    let _ = std::process::Command::new("umount").arg(place).status();
    assert!(matches!(outcome, Err(probe::Error::Io(Error::TooFewFree { .. }))), "{outcome:?}");
    assert!(small.is_ok(), "{small:?}");
    assert_eq!(left, 1, "the created file stayed behind");
}
