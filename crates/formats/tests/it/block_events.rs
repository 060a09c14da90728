//! Captured block traces: counts and latencies as they were measured when they were taken.

use formats::{Format, Notes, ReadOptions, Reading, read};
use trace::Op;

use crate::shared::sample;

fn count(notes: &Notes, what: &str) -> u64 {
    notes.counted.iter().find(|counted| counted.what.contains(what)).map_or(0, |found| found.count)
}

fn us(nanos: f64) -> f64 {
    (nanos / 100.0).round() / 10.0
}

/// Mean, median and 99th percentile in us, to one decimal.
fn shape(service: &[u64]) -> (f64, f64, f64) {
    let mut sorted = service.to_vec();
    sorted.sort_unstable();
    let at = |share: f64| us(sorted[(share * sorted.len() as f64) as usize] as f64);
    let mean = sorted.iter().sum::<u64>() as f64 / sorted.len() as f64;
    (us(mean), at(0.5), at(0.99))
}

/// A fio run of random reads and writes: 14,147 reads and 6,132 writes by its own account, one of
/// which fell outside of the capture or the other way round.
#[test]
fn a_captured_run_has_the_counts_and_latencies_of_its_load() {
    let Some(path) = sample("own-randrw70-20281.blktrace.zst") else { return };
    let Reading { trace, detected, notes } = read(&path, &ReadOptions::default()).expect("reads");
    assert_eq!((detected.format, trace.count()), (Format::Blktrace, 20_280));
    let reads = trace.op.iter().filter(|op| **op == Op::Read).count() as i64;
    let writes = trace.op.iter().filter(|op| **op == Op::Write).count() as i64;
    assert!((reads - 14_147).abs() <= 1 && (writes - 6_132).abs() <= 1, "{reads} {writes}");
    for what in ["(Q)", "(G)", "(I)", "(D)", "(C)"] {
        assert!((20_280..=20_281).contains(&count(&notes, what)), "{what} {notes:?}");
    }
    let service = trace.service.as_ref().expect("measured");
    assert_eq!(shape(service), (73.3, 59.3, 322.9));
    assert!(notes.warnings.is_empty(), "{:?}", notes.warnings);

    let options = ReadOptions { queued_times: true, ..ReadOptions::default() };
    let queued = read(&path, &options).expect("reads").trace;
    let wait: f64 = queued.origin.facts["queue_wait_ns_mean"].parse().expect("a number");
    let (mean, _, _) = shape(queued.service.as_ref().expect("measured"));
    assert_eq!((queued.count(), mean, us(wait + 1000.0 * mean)), (20_280, 73.3, 85.4));
}

#[test]
fn text_of_blkparse_is_read() {
    let Some(path) = sample("blkparse-default-java-10k.txt.zst") else { return };
    let Reading { trace, detected, notes } = read(&path, &ReadOptions::default()).expect("reads");
    assert_eq!(detected.format, Format::Blkparse);
    assert_eq!(
        (count(&notes, "(D)"), count(&notes, "(C)"), count(&notes, "(Q)")),
        (1694, 1694, 1695)
    );
    assert_eq!((trace.count(), trace.op.iter().all(|op| *op == Op::Read)), (1694, true));
    // The first one: issued at 5.462 us, completed at 13,163.464. Times begin with it.
    assert_eq!((trace.due[0], trace.offset[0], trace.len[0]), (0, 282_624 * 512, 4096));
    assert_eq!(trace.origin.facts["start_ns"], "5462");
    assert_eq!(trace.service.expect("measured")[0], 13_163_464 - 5462);
    assert_eq!(trace.streams[0].name, "259:2");
}
