//! On a device that breaks: every failure is an error with its place, never a wrong output.

use std::sync::atomic::AtomicU64;

use events::{Hint, Quiet};
use io::engine::{Fault, FaultyDevice};
use spill::{Error, Keys, TempFile, join, sort};

use crate::support::{Impatient, listing, place, resources, rows};

/// The error of a sort whose device breaks after `good` requests.
fn broken_sort(fault: Fault, good: u64) -> Error {
    let dir = place();
    let medium = FaultyDevice::new(TempFile::new(dir.path(), false, 8).unwrap(), fault, good);
    let rows = rows(20_000, 100, Keys::Random);
    let error = sort(&&medium, rows, resources(256 << 10, 4096, 8), false, &Quiet).unwrap_err();
    drop(medium);
    assert_eq!(listing(dir.path()), [""; 0], "a temporary file was left after {error}");
    error
}

#[test]
fn a_full_disk_says_so() {
    // 20,000 rows are 500 clusters: this is in the runs and this in the merge.
    for good in [3, 400] {
        let error = broken_sort(Fault::Errno(libc::ENOSPC), good);
        assert!(error.to_string().contains("no space left"), "{error}");
        assert!(error.hint().unwrap().contains("free some space"));
    }
}

#[test]
fn a_failing_disk_names_the_request() {
    let error = broken_sort(Fault::Errno(libc::EIO), 700);
    let text = error.to_string();
    assert!(text.contains("read of 4096 bytes at offset"), "{text}");
    assert!(error.hint().unwrap().contains("dmesg"));
    let error = broken_sort(Fault::Half, 700);
    assert!(error.to_string().contains("transferred 2048 of 4096 bytes"), "{error}");
    let error = broken_sort(Fault::NoEngine(libc::ENOMEM), 0);
    assert!(error.to_string().contains("cannot set up"), "{error}");
}

#[test]
fn a_failing_disk_ends_a_join() {
    for good in [10, 300, 700] {
        let dir = place();
        let inner = TempFile::new(dir.path(), false, 8).unwrap();
        let medium = FaultyDevice::new(inner, Fault::Errno(libc::EIO), good);
        let inputs = (rows(10_000, 100, Keys::Ascending), rows(10_000, 100, Keys::Uniform(10_000)));
        let done = join(&&medium, inputs, resources(128 << 10, 4096, 8), false, &Quiet);
        assert!(matches!(done, Err(Error::Io(_))), "after {good} good requests");
    }
}

#[test]
fn an_interruption_ends_it_anywhere() {
    for asked in [1, 3, 100, 600] {
        let dir = place();
        let sink = Impatient(AtomicU64::new(asked));
        let medium = TempFile::new(dir.path(), false, 8).unwrap();
        let sorted = sort(
            &medium,
            rows(20_000, 100, Keys::Random),
            resources(256 << 10, 4096, 8),
            false,
            &sink,
        );
        assert!(matches!(sorted, Err(Error::Interrupted)), "asked {asked} times");
        let sink = Impatient(AtomicU64::new(asked));
        let inputs = (rows(10_000, 100, Keys::Ascending), rows(10_000, 100, Keys::Random));
        let joined = join(&medium, inputs, resources(128 << 10, 4096, 8), false, &sink);
        assert!(matches!(joined, Err(Error::Interrupted)), "asked {asked} times");
        drop(medium);
        assert_eq!(listing(dir.path()), [""; 0]);
    }
}
