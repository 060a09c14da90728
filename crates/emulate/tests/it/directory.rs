//! A directory on a modelled device, through the eyes of programs.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{
    FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink,
};
use std::time::{Duration, Instant};

use emulate::Fate;

use crate::support::{Mounted, device, is_mounted, requests};

const KIB: usize = 1024;

/// A device that takes no time worth speaking of.
fn fast() -> Box<dyn model::Device> {
    device(1, 1, 1, 64)
}

#[test]
fn what_is_written_is_read_back_now_and_after_a_restart() {
    let Some(mut mounted) = Mounted::with(fast(), false, |path| {
        fs::write(path.join("old"), "old").unwrap();
    }) else {
        return;
    };
    let path = mounted.path();
    assert_eq!(fs::read_to_string(path.join("old")).unwrap(), "old");
    let bytes: Vec<u8> = (0..3_000_000u32).map(|i| ((i * 7) >> 3) as u8).collect();
    fs::write(path.join("new"), &bytes).unwrap();
    assert!(fs::read(path.join("new")).unwrap() == bytes);
    let outcome = mounted.stop();
    assert!(!is_mounted(&path));
    assert!(requests(&outcome, "read") >= 1, "{outcome:?}");
    assert!(fs::read(path.join("new")).unwrap() == bytes, "below, once it is unmounted");
    mounted.start(fast(), false);
    assert!(fs::read(path.join("new")).unwrap() == bytes, "served again");
    mounted.stop();
}

/// Times are at least those of the model; how much longer a busy machine makes them is no defect.
#[test]
fn reads_writes_and_syncs_take_the_time_of_the_device() {
    let Some(mut mounted) = Mounted::with(device(3000, 5000, 7000, 8), false, |path| {
        fs::write(path.join("file"), vec![1; 64 * KIB]).unwrap();
    }) else {
        return;
    };
    let path = mounted.path().join("file");
    let open = |flags: i32| {
        OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path).unwrap()
    };
    let file = open(libc::O_DIRECT);
    let mut aligned = vec![0u8; 8 * KIB];
    let start = aligned.as_ptr().align_offset(4 * KIB);
    let block = &mut aligned[start..start + 4 * KIB];
    let timed = |action: &mut dyn FnMut()| {
        let start = Instant::now();
        action();
        start.elapsed()
    };
    let read = timed(&mut || file.read_exact_at(block, 0).unwrap());
    assert!(read >= Duration::from_millis(3), "{read:?}");
    let write = timed(&mut || file.write_all_at(block, 4096).unwrap());
    assert!(write >= Duration::from_millis(5), "{write:?}");
    let sync = timed(&mut || file.sync_data().unwrap());
    assert!(sync >= Duration::from_millis(7), "{sync:?}");
    let forced = open(libc::O_DIRECT | libc::O_DSYNC);
    let write = timed(&mut || forced.write_all_at(block, 8192).unwrap());
    assert!(write >= Duration::from_millis(12), "{write:?}");
    let outcome = mounted.stop();
    let counts = ["read", "write", "trim"].map(|op| requests(&outcome, op));
    assert_eq!(counts, [1, 2, 0], "{outcome:?}");
    let service = |op: &str| outcome.ops.iter().find(|found| found.op == op).unwrap();
    assert!((service("read").service_us_p50 - 3000.0).abs() < 10.0, "{outcome:?}");
}

#[test]
fn reads_that_the_kernel_has_cached_cost_nothing() {
    let Some(mut mounted) = Mounted::with(fast(), false, |path| {
        fs::write(path.join("file"), vec![1; 64 * KIB]).unwrap();
    }) else {
        return;
    };
    for _ in 0..50 {
        assert_eq!(fs::read(mounted.path().join("file")).unwrap().len(), 64 * KIB);
    }
    let outcome = mounted.stop();
    assert!(requests(&outcome, "read") <= 4, "{outcome:?}");
}

/// Two hundred pages apart from one another: a close leaves them in memory as on a disk, a sync
/// writes all of them.
#[test]
fn a_close_writes_little_and_a_sync_all() {
    for is_synced in [false, true] {
        let Some(mut mounted) = Mounted::with(fast(), false, |path| {
            fs::write(path.join("file"), vec![1; 2048 * KIB]).unwrap();
        }) else {
            return;
        };
        let path = mounted.path().join("file");
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        (0..200).for_each(|at| file.write_all_at(&[2; 4096], at * 8192).unwrap());
        drop(file);
        if is_synced {
            File::open(&path).unwrap().sync_all().unwrap();
        }
        let outcome = mounted.stop();
        let written = requests(&outcome, "write");
        let expected = if is_synced { 200..=200 } else { 1..=20 };
        assert!(expected.contains(&written), "{is_synced}: {outcome:?}");
        assert_eq!(fs::read(&path).unwrap()[199 * 8192], 2);
    }
}

#[test]
fn the_kernel_reads_ahead_as_on_the_disk_below() {
    let Some(mut mounted) = Mounted::new(fast(), false) else { return };
    let number = |path: &std::path::Path| {
        let device = fs::metadata(path).unwrap().dev();
        format!("{}:{}", libc::major(device), libc::minor(device))
    };
    // The parent is on the disk below; of a partition its disk has the queue.
    let disk = format!("/sys/dev/block/{}", number(mounted.path().parent().unwrap()));
    let queue = ["queue", "../queue"].map(|queue| format!("{disk}/{queue}/read_ahead_kb"));
    let Some(below) = queue.iter().find_map(|path| fs::read_to_string(path).ok()) else {
        println!("skipped: the test directory is on no disk");
        return;
    };
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root sets read-ahead");
        return;
    }
    let own = format!("/sys/class/bdi/{}/read_ahead_kb", number(&mounted.path()));
    assert_eq!(fs::read_to_string(own).unwrap(), below);
    mounted.stop();
}

#[test]
fn names_links_times_and_permissions_are_those_of_a_file_system() {
    let Some(mut mounted) = Mounted::new(fast(), false) else { return };
    let path = mounted.path();
    fs::create_dir(path.join("d")).unwrap();
    fs::write(path.join("a"), "a").unwrap();
    fs::write(path.join("b"), "b").unwrap();
    fs::rename(path.join("a"), path.join("b")).unwrap();
    fs::hard_link(path.join("b"), path.join("d/c")).unwrap();
    symlink("b", path.join("s")).unwrap();
    fs::set_permissions(path.join("b"), fs::Permissions::from_mode(0o640)).unwrap();
    let long_ago = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    File::options().write(true).open(path.join("b")).unwrap().set_modified(long_ago).unwrap();
    File::open(&path).unwrap().sync_all().unwrap();
    let meta = fs::metadata(path.join("d/c")).unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o640);
    assert_eq!(meta.modified().unwrap(), long_ago);
    // A socket has a mode and an owner, and somebody answers.
    let listener = std::os::unix::net::UnixListener::bind(path.join("socket")).unwrap();
    fs::set_permissions(path.join("socket"), fs::Permissions::from_mode(0o777)).unwrap();
    std::os::unix::net::UnixStream::connect(path.join("socket")).unwrap();
    drop(listener);
    fs::remove_file(path.join("socket")).unwrap();
    // A file that is open and removed can still be read and written.
    let mut open = File::options().read(true).write(true).open(path.join("b")).unwrap();
    fs::remove_file(path.join("b")).unwrap();
    open.seek(SeekFrom::End(0)).unwrap();
    open.write_all(b"more").unwrap();
    open.seek(SeekFrom::Start(0)).unwrap();
    let mut text = String::new();
    open.read_to_string(&mut text).unwrap();
    assert_eq!(text, "amore");
    assert!(fs::remove_dir(path.join("d")).is_err(), "it is not empty");
    drop(open);
    mounted.stop();
    assert_eq!(fs::read_to_string(path.join("d/c")).unwrap(), "amore");
    let mut names: Vec<_> =
        fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["d", "s"]);
}

#[test]
fn a_full_device_says_so() {
    let Some(mut mounted) = Mounted::new(fast(), false) else { return };
    let file = File::create(mounted.path().join("large")).unwrap();
    let block = vec![7; 1 << 20];
    let mut wrote = 0;
    // The kernel takes in what it can keep; the refusal comes with the sync.
    let error = loop {
        if let Err(error) = file.write_all_at(&block, wrote << 20).and_then(|()| file.sync_data()) {
            break error;
        }
        wrote += 1;
        assert!(wrote <= 256, "the device holds 256 MiB");
    };
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
    assert!(wrote >= 200, "{wrote} MiB");
    drop(file);
    fs::remove_file(mounted.path().join("large")).unwrap();
    fs::write(mounted.path().join("small"), "fits").unwrap();
    mounted.stop();
}

#[test]
fn a_power_cut_takes_what_was_not_synced() {
    let Some(mut mounted) = Mounted::with(fast(), true, |path| {
        fs::write(path.join("old"), "old").unwrap();
    }) else {
        return;
    };
    let path = mounted.path();
    let synced = File::create(path.join("synced")).unwrap();
    synced.write_all_at(b"kept", 0).unwrap();
    synced.sync_all().unwrap();
    synced.write_all_at(b"lost", 0).unwrap();
    fs::write(path.join("never"), "lost").unwrap();
    fs::remove_file(path.join("old")).unwrap();
    let outcome = mounted.cut_power(Fate::All);
    assert!(synced.sync_all().is_err(), "the device is gone");
    assert!(outcome.lost.unwrap().names >= 1, "{outcome:?}");
    assert_eq!(fs::read_to_string(path.join("synced")).unwrap(), "kept");
    assert_eq!(fs::read_to_string(path.join("old")).unwrap(), "old");
    assert!(!path.join("never").exists() && !is_mounted(&path));
}

#[test]
fn files_that_do_not_fit_are_refused_and_nothing_stays_mounted() {
    if let Some((why, _)) = emulate::directories_missing() {
        println!("skipped: {why}");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    File::create(root.path().join("large")).unwrap().set_len(1 << 30).unwrap();
    let served = emulate::Served {
        name: "small".to_owned(),
        device: fast(),
        directories: vec![root.path().to_owned()],
        exports: Vec::new(),
        blocks: Vec::new(),
    };
    let error =
        emulate::Emulation::start(vec![served], &emulate::Options::default()).err().unwrap();
    assert!(error.to_string().contains("1GiB"), "{error}");
    assert!(!is_mounted(root.path()));
}

#[test]
fn another_model_takes_over_while_files_are_in_use() {
    let Some(mut mounted) = Mounted::new(device(1, 1, 50_000, 8), false) else { return };
    let file = File::create(mounted.path().join("file")).unwrap();
    let start = Instant::now();
    file.sync_all().unwrap();
    assert!(start.elapsed() >= Duration::from_millis(50));
    assert!(mounted.emulation().replace("test", fast()));
    assert!(!mounted.emulation().replace("other", fast()));
    // Until the order has come through, a sync takes 50 ms; a hundred of them would take 5 s.
    for _ in 0..100 {
        file.sync_all().unwrap();
    }
    let outcome = mounted.stop();
    let flush = outcome.ops.iter().find(|op| op.op == "flush").unwrap();
    assert!(flush.service_us_p50 < 1000.0, "{outcome:?}");
}
