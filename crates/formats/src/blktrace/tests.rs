//! Records built here, whole, cut, damaged and split into files.

use std::io::Cursor;
use std::path::Path;

use proptest::prelude::*;
use trace::{Op, Trace};

use super::super::{Format, Notes, ReadOptions, read, read_from};
use super::record::RECORD_BYTES;
use crate::Error;

const QUEUE: u32 = 1;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;
const READ: u32 = 1 << 16;
const WRITE: u32 = 2 << 16;

#[derive(Clone, Copy)]
struct Raw {
    time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    error: u16,
    payload: u16,
}

impl Raw {
    fn new(time: u64, action: u32, sector: u64, bytes: u32) -> Self {
        Self { time, sector, bytes, action, error: 0, payload: 0 }
    }

    fn encode(&self, big: bool) -> Vec<u8> {
        let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let long = |value: u64| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let short = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut record = Vec::new();
        record.extend(word(0x6561_7407));
        record.extend(word(9));
        record.extend(long(self.time));
        record.extend(long(self.sector));
        record.extend([word(self.bytes), word(self.action), word(77)].concat());
        record.extend([word(254 << 20 | 3), word(2)].concat());
        record.extend([short(self.error), short(self.payload)].concat());
        assert_eq!(record.len(), RECORD_BYTES);
        // A magic inside of a payload must not be taken for a record.
        record.extend(word(0x6561_7407).iter().cycle().take(usize::from(self.payload)));
        record
    }
}

fn encode(records: &[Raw], big: bool) -> Vec<u8> {
    records.iter().flat_map(|record| record.encode(big)).collect()
}

/// Two requests, and all else that a file may hold.
fn example() -> Vec<Raw> {
    vec![
        Raw { payload: 8, ..Raw::new(900, 1 | 1 << 26, 0, 0) },
        Raw { payload: 5, ..Raw::new(950, 1 << 26, 0, 0) },
        Raw::new(1000, QUEUE | READ, 100, 4096),
        Raw::new(1100, ISSUE | READ, 100, 4096),
        Raw::new(1150, 10, 0, 0),
        Raw { payload: 20, ..Raw::new(1200, 0x100 | ISSUE | WRITE | (8 << 16), 7, 512) },
        Raw { error: 5, ..Raw::new(1300, COMPLETE | READ, 100, 4096) },
        Raw::new(1250, 255, 0, 0),
        Raw::new(1400, COMPLETE | WRITE | (8 << 16), 7, 512),
    ]
}

fn parse(bytes: Vec<u8>, options: &ReadOptions) -> crate::Result<(Trace, Notes)> {
    read_from(Cursor::new(bytes), Path::new("cap"), Format::Blktrace, options)
}

fn strict(bytes: Vec<u8>) -> crate::Result<(Trace, Notes)> {
    parse(bytes, &ReadOptions::default())
}

fn count(notes: &Notes, what: &str) -> u64 {
    notes.counted.iter().find(|counted| counted.what.contains(what)).map_or(0, |found| found.count)
}

#[test]
fn records_become_requests_in_both_byte_orders() {
    for big in [false, true] {
        let (trace, notes) = strict(encode(&example(), big)).expect("reads");
        assert_eq!((&trace.due, &trace.offset), (&vec![0, 100], &vec![51200, 3584]));
        assert_eq!((&trace.len, &trace.op), (&vec![4096, 512], &vec![Op::Read, Op::Write]));
        assert_eq!(trace.service, Some(vec![200, 200]));
        assert_eq!(trace.streams[0].name, "254:3");
        assert_eq!(trace.origin.layer, "device");
        assert_eq!(trace.origin.facts["first_event_ns"], "1000");
        assert_eq!(trace.origin.facts["start_ns"], "100");
        let clock = 0x6561_7407_u64 * 1_000_000_001;
        assert_eq!(trace.origin.facts["wall_clock_ns"], clock.to_string());
        for (what, expected) in [
            ("notes", 2),
            ("with an error", 1),
            ("queue events", 1),
            ("unplugs", 1),
            ("unknown kind", 1),
        ] {
            assert_eq!(count(&notes, what), expected, "{what}");
        }
    }
}

#[test]
fn it_is_recognised_by_its_magic() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("x");
    std::fs::write(&path, encode(&example(), true)).expect("written");
    let reading = read(&path, &ReadOptions::default()).expect("reads");
    assert_eq!(reading.detected.format, Format::Blktrace);
    assert!(reading.detected.evidence.contains("big endian"), "{:?}", reading.detected);
}

#[test]
fn a_cut_or_damaged_record_is_named_and_left_out_leniently() {
    let whole = encode(&example(), false);
    let mut cut = whole.clone();
    cut.truncate(whole.len() - 1);
    let error = strict(cut.clone()).expect_err("cut");
    assert_eq!(error.to_string(), "cap: byte 417: the last record is cut off");
    let lenient = ReadOptions { lenient: true, ..ReadOptions::default() };
    let (trace, notes) = parse(cut, &lenient).expect("leniently");
    assert_eq!((trace.count(), notes.bad), (2, 1));
    let mut damaged = whole.clone();
    damaged[56 + 53 + 1] = 1; // The magic of the queue event.
    let error = strict(damaged.clone()).expect_err("damaged").to_string();
    assert!(error.starts_with("cap: byte 109: the magic of a record is missing"), "{error}");
    let (trace, notes) = parse(damaged, &lenient).expect("leniently");
    assert_eq!((trace.count(), notes.bad, count(&notes, "queue events")), (2, 1, 0));
}

#[test]
fn other_versions_and_other_files_are_refused() {
    let mut later = encode(&example(), false);
    later[0] = 8;
    let error = strict(later).expect_err("version 8");
    assert!(matches!(error, Error::Record { offset: 0, .. }));
    assert!(error.to_string().contains("version 8 of blk_io_trace; this build reads 7"), "{error}");
    let error = strict(b"something else".to_vec()).expect_err("foreign").to_string();
    assert!(error.contains("not the magic"), "{error}");
    let far = encode(&[Raw::new(0, ISSUE | READ, u64::MAX / 512, 512)], false);
    let error = strict(far).expect_err("beyond").to_string();
    assert!(error.contains("has no byte address"), "{error}");
    assert!(strict(Vec::new()).expect("empty").0.is_empty());
}

#[test]
fn files_of_all_processors_are_merged_by_time() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let requests = 30_000u64;
    let mut files = vec![Vec::new(); 3];
    for n in 0..requests {
        // Issued on one processor, completed on another; the third is idle after the start.
        let other = if n < 3 { 2 } else { 1 };
        files[0].push(Raw::new(n * 1000, ISSUE | READ, n * 8, 4096));
        files[other].push(Raw::new(n * 1000 + 700, COMPLETE | READ, n * 8, 4096));
    }
    for (cpu, records) in files.iter().enumerate() {
        let path = directory.path().join(format!("sda.blktrace.{cpu}"));
        std::fs::write(path, encode(records, false)).expect("written");
    }
    std::fs::write(directory.path().join("sda.blktrace.3"), b"").expect("written");
    let path = directory.path().join("sda.blktrace.1");
    let reading = read(&path, &ReadOptions::default()).expect("reads");
    assert_eq!(reading.trace.count() as u64, requests);
    assert_eq!(reading.trace.service, Some(vec![700; requests as usize]));
    assert_eq!(reading.notes.out_of_order + count(&reading.notes, "out of order"), 0);
}

#[test]
fn runs_of_processors_in_one_file_are_put_in_order() {
    let mut records = Vec::new();
    for run in 0..20u64 {
        let issues = (0..500).map(|n| Raw::new((run * 500 + n) * 1000, ISSUE | READ, n * 8, 4096));
        let ends =
            (0..500).map(|n| Raw::new((run * 500 + n) * 1000 + 300, COMPLETE | READ, n * 8, 4096));
        records.extend(ends);
        records.extend(issues);
    }
    let (trace, notes) = strict(encode(&records, false)).expect("reads");
    assert_eq!((trace.count(), trace.service), (10_000, Some(vec![300; 10_000])));
    assert!(count(&notes, "out of order in the file") > 0);
}

proptest! {
    #[test]
    fn any_bytes_are_a_trace_or_an_error(tail: Vec<u8>, lenient: bool, queued_times: bool) {
        let options = ReadOptions { lenient, queued_times, ..ReadOptions::default() };
        for head in [Vec::new(), encode(&example(), false)] {
            if let Ok((trace, _)) = parse([head, tail.clone()].concat(), &options) {
                prop_assert_eq!(trace.validate(), Ok(()));
            }
        }
    }
}
