//! What programs rely on in a file system, on a served directory whose power is cut: what each call
//! promises is kept, and what it does not promise may be lost.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use emulate::Fate;
use rustix::fs::{FallocateFlags, copy_file_range, fallocate, fdatasync};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

use crate::support::{Mounted, device, requests};

const BLOCK: usize = 4096;

/// A directory that remembers what was not synced, with a durable file `old` of eight blocks of 1.
fn forgetful() -> Option<Mounted> {
    Mounted::with(device(1, 1, 1, 64), true, |path| {
        fs::write(path.join("old"), vec![1; 8 * BLOCK]).unwrap();
    })
}

fn open(path: &Path, flags: i32) -> File {
    OpenOptions::new().read(true).write(true).create(true).custom_flags(flags).open(path).unwrap()
}

/// A block of a value, aligned as direct I/O wants it, and what it lies in.
fn aligned(value: u8) -> (Vec<u8>, usize) {
    let bytes = vec![value; 2 * BLOCK];
    let start = bytes.as_ptr().align_offset(BLOCK);
    (bytes, start)
}

/// Blocks by their value; panics where one is mixed.
fn blocks(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let value = |block: &[u8]| {
        assert!(block.iter().all(|byte| *byte == block[0]), "a block is written as a whole");
        block[0]
    };
    bytes.chunks(BLOCK).map(value).collect()
}

/// A program that replaces a file by renaming another over it finds one of the two, whatever of the
/// changes around it was durable.
#[test]
fn a_rename_over_a_file_is_whole_in_a_torn_power_cut() {
    let mut seen = [0, 0];
    for seed in 0..24 {
        let Some(mut mounted) = forgetful() else { return };
        let path = mounted.path();
        fs::write(path.join("before"), "noise").unwrap();
        let new = open(&path.join("new"), 0);
        new.write_all_at(&[2; BLOCK], 0).unwrap();
        new.sync_all().unwrap();
        fs::rename(path.join("new"), path.join("old")).unwrap();
        fs::write(path.join("after"), "noise").unwrap();
        drop(new);
        mounted.cut_power(Fate::Some { seed });
        match blocks(&path.join("old"))[..] {
            [1, 1, 1, 1, 1, 1, 1, 1] => seen[0] += 1,
            [2] => seen[1] += 1,
            ref other => panic!("seed {seed}: {other:?}"),
        }
    }
    assert!(seen.iter().all(|times| *times >= 4), "both happen: {seen:?}");
}

#[test]
fn a_directory_that_is_not_empty_is_not_replaced() {
    let Some(mut mounted) = forgetful() else { return };
    let path = mounted.path();
    for name in ["full", "empty", "third"] {
        fs::create_dir(path.join(name)).unwrap();
    }
    fs::write(path.join("full/file"), "kept").unwrap();
    let error = fs::rename(path.join("empty"), path.join("full")).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::DirectoryNotEmpty);
    fs::rename(path.join("full"), path.join("empty")).unwrap();
    assert_eq!(fs::read_to_string(path.join("empty/file")).unwrap(), "kept");
    mounted.stop();
}

#[test]
fn names_are_durable_with_a_sync_of_their_directory_or_their_file() {
    let Some(mut mounted) = forgetful() else { return };
    let path = mounted.path();
    fs::create_dir(path.join("kept")).unwrap();
    File::create(path.join("kept/by-directory")).unwrap();
    File::open(path.join("kept")).unwrap().sync_all().unwrap();
    File::create(path.join("by-itself")).unwrap().sync_all().unwrap();
    fs::create_dir(path.join("lost")).unwrap();
    File::create(path.join("kept/lost")).unwrap();
    fs::remove_file(path.join("old")).unwrap();
    mounted.cut_power(Fate::All);
    assert!(path.join("kept/by-directory").exists() && path.join("by-itself").exists());
    assert!(!path.join("lost").exists() && !path.join("kept/lost").exists());
    assert_eq!(blocks(&path.join("old")), [1; 8]);
}

/// A write with `O_DSYNC` makes durable what it wrote, and not what lies beside it.
#[test]
fn a_durable_write_makes_its_own_range_durable() {
    let Some(mut mounted) = forgetful() else { return };
    let path = mounted.path().join("old");
    let (plain, forced) =
        (open(&path, libc::O_DIRECT), open(&path, libc::O_DIRECT | libc::O_DSYNC));
    let (bytes, start) = aligned(2);
    let block = &bytes[start..start + BLOCK];
    for at in [1, 2, 4] {
        plain.write_all_at(block, (at * BLOCK) as u64).unwrap();
    }
    let (bytes, start) = aligned(3);
    forced.write_all_at(&bytes[start..start + BLOCK], 2 * BLOCK as u64).unwrap();
    drop((plain, forced));
    mounted.cut_power(Fate::All);
    assert_eq!(blocks(&path), [1, 1, 3, 1, 1, 1, 1, 1]);
}

#[test]
fn a_mapped_file_is_durable_with_its_sync() {
    let Some(mut mounted) = forgetful() else { return };
    let path = mounted.path().join("old");
    let file = open(&path, 0);
    let flags = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping of a file that nobody makes shorter; it is only used below.
    let map = unsafe {
        let at = mmap(std::ptr::null_mut(), 8 * BLOCK, flags, MapFlags::SHARED, &file, 0).unwrap();
        std::slice::from_raw_parts_mut(at.cast::<u8>(), 8 * BLOCK)
    };
    map[..BLOCK].fill(2);
    // SAFETY: the range is that of the mapping.
    unsafe { msync(map.as_mut_ptr().cast(), BLOCK, MsyncFlags::SYNC).unwrap() };
    map[BLOCK..2 * BLOCK].fill(3);
    // SAFETY: nobody uses the mapping any more.
    unsafe { munmap(map.as_mut_ptr().cast(), 8 * BLOCK).unwrap() };
    drop(file);
    mounted.cut_power(Fate::All);
    assert_eq!(blocks(&path), [2, 1, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn files_are_copied_within_the_directory() {
    let Some(mut mounted) = forgetful() else { return };
    let path = mounted.path();
    let (from, to) = (open(&path.join("old"), 0), open(&path.join("copy"), 0));
    from.write_all_at(&[2; BLOCK], 0).unwrap();
    let (mut source, mut target) = (0, BLOCK as u64);
    while source < 2 * BLOCK as u64 {
        let left = 2 * BLOCK - source as usize;
        let got = copy_file_range(&from, Some(&mut source), &to, Some(&mut target), left).unwrap();
        assert!(got > 0, "there is more to copy");
    }
    fdatasync(&to).unwrap();
    drop((from, to));
    mounted.cut_power(Fate::All);
    assert_eq!(blocks(&path.join("copy")), [0, 2, 1]);
    assert_eq!(blocks(&path.join("old")), [1; 8], "the source was not synced");
}

#[test]
fn space_is_taken_zeroed_and_given_back() {
    let Some(mut mounted) = forgetful() else { return };
    let path = mounted.path().join("old");
    let file = open(&path, 0);
    let block = BLOCK as u64;
    let change = |flags, at, count| fallocate(&file, flags, at * block, count * block);
    change(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 1, 2).unwrap();
    change(FallocateFlags::ZERO_RANGE, 4, 1).unwrap();
    change(FallocateFlags::empty(), 8, 2).unwrap();
    change(FallocateFlags::KEEP_SIZE, 10, 2).unwrap();
    assert_eq!(blocks(&path), [1, 0, 0, 1, 0, 1, 1, 1, 0, 0]);
    let error = change(FallocateFlags::COLLAPSE_RANGE, 0, 1).unwrap_err();
    assert_eq!(error, rustix::io::Errno::OPNOTSUPP, "refused, not done by halves");
    file.sync_all().unwrap();
    change(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 5, 3).unwrap();
    drop(file);
    let outcome = mounted.cut_power(Fate::All);
    assert_eq!(blocks(&path), [1, 0, 0, 1, 0, 1, 1, 1, 0, 0]);
    assert!(requests(&outcome, "trim") >= 2, "{outcome:?}");
}

/// The kernel writes back for `syncfs` and `sync`, but tells a FUSE file system nothing of them, so
/// they cannot be kept: `docs/guide/emulating.md` says so.
#[test]
fn a_sync_of_the_whole_file_system_writes_back_and_promises_nothing() {
    let Some(mut mounted) = forgetful() else { return };
    let path = mounted.path().join("old");
    let file = open(&path, 0);
    file.write_all_at(&[2; BLOCK], 0).unwrap();
    // SAFETY: it takes a descriptor and touches no memory of ours.
    assert_eq!(unsafe { libc::syncfs(file.as_raw_fd()) }, 0);
    drop(file);
    let outcome = mounted.cut_power(Fate::All);
    assert!(requests(&outcome, "write") >= 1, "{outcome:?}");
    assert_eq!(requests(&outcome, "flush"), 0, "the kernel tells now: keep the promise");
    assert_eq!(blocks(&path), [1; 8]);
}
