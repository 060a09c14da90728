//! nilfs2: what a sync costs, and what its cleaner takes.

use std::collections::BTreeSet;

use host::file_system::{BLOCK_BYTES, Cause, Sync};
use host::{FileLayer, Spec, Stack};
use proptest::prelude::*;
use stats::rng;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use super::support::Bench;

const TICK: u64 = 4_000_000;
const SECOND: u64 = 1_000_000_000;

/// Pages of 5.5 GB: three levels of nodes, of 5263, 21 and 1 nodes.
const PAGES: u64 = 5_500_000_000 / BLOCK_BYTES;

/// Least, most and mean blocks of an overwrite of 4 KiB and an fsync in a file of three levels.
fn blocks_per_overwrite(page: impl Fn(u64) -> u64) -> (u64, u64, f64) {
    let mut bench = Bench::new("kind = \"nilfs2\"\ncapacity = \"16GB\"\n");
    bench.files.add(1, PAGES * BLOCK_BYTES, true);
    let (mut least, mut most, mut sum) = (u64::MAX, 0, 0);
    for turn in 0..500 {
        bench.now_ns += TICK;
        bench.write(1, page(turn), 1);
        bench.sync(1, Sync::Fsync);
        let rows = bench.out.iter().filter(|request| request.op == Op::Write);
        let rows: Vec<_> = rows.map(|request| (request.offset, request.bytes)).collect();
        // A log is in a row; where its segment is full, another one begins elsewhere.
        assert!(rows.len() <= 2, "{rows:?}");
        let [blocks, _, flushes] = bench.take();
        assert_eq!(flushes, 1);
        if turn >= 100 {
            (least, most, sum) = (least.min(blocks), most.max(blocks), sum + blocks);
        }
    }
    bench.files.audit();
    (least, most, sum as f64 / 400.0)
}

#[test]
fn an_overwrite_with_fsync_is_15_to_18_blocks_in_a_row() {
    // Summary, data, 3 nodes, inode, checkpoint, usage, super root: 9. The DAT: descriptor,
    // bitmap, new entries, old entries and its nodes.
    let (least, most, mean) = blocks_per_overwrite(|turn| 1000 + turn);
    assert!(least >= 15 && most <= 18, "{least} to {most} blocks, {mean}");
    // Over all of the file the old entries of data, leaf and node lie apart: up to 3 blocks more.
    let (least, most, mean) = blocks_per_overwrite(|turn| rng::at(3, turn) % PAGES);
    assert!(least >= 15 && most <= 18 + 3, "{least} to {most} blocks, {mean}");
}

#[test]
fn fdatasync_of_an_unchanged_inode_writes_data_and_a_summary() {
    let mut bench = Bench::new("kind = \"nilfs2\"\ncapacity = \"1GB\"\n");
    bench.files.add(1, 64 << 20, true);
    bench.now_ns = 100 * TICK;
    bench.write(1, 0, 1);
    bench.sync(1, Sync::Fdatasync);
    // The first write of a tick changes the time stamp: a checkpoint.
    assert!(bench.take()[0] > 10);
    for turn in 1..20 {
        bench.write(1, turn * 7, 1);
        bench.sync(1, Sync::Fdatasync);
        assert_eq!(bench.take(), [2, 1, 1], "turn {turn}");
    }
    // Data that were written back without a sync leave a log open: a checkpoint closes it.
    bench.write(1, 5, 3);
    bench.files.settle(bench.now_ns, &mut bench.out);
    assert_eq!(bench.take(), [4, 1, 0]);
    bench.write(1, 5, 1);
    bench.sync(1, Sync::Fdatasync);
    assert!(bench.take()[0] > 10);
    bench.write(1, 5, 1);
    bench.sync(1, Sync::Fdatasync);
    assert_eq!(bench.take(), [2, 1, 1]);
    // Nothing was written since: a flush.
    bench.sync(1, Sync::Fsync);
    assert_eq!(bench.take(), [0, 0, 1]);
    // Five seconds after the first change: a checkpoint.
    bench.wait(5 * SECOND - 1);
    assert_eq!(bench.take()[0], 0);
    bench.wait(1);
    assert!(bench.take()[0] > 8);
    bench.wait(60 * SECOND);
    assert_eq!(bench.take()[0], 0);
}

fn stack(text: &str) -> FileLayer {
    let text = format!("[file_system]\nkind = \"nilfs2\"\n{text}");
    Spec::from_toml(&text, "stack.toml").expect(&text).file_layer.unwrap()
}

/// `count` writes of 8 KiB to random pages of a file of `bytes`, `gap_ns` apart, a sync behind
/// each `per_sync`.
fn overwrites(bytes: u64, count: u64, gap_ns: u64, per_sync: u64) -> Trace {
    let streams = vec![Stream { name: "data".to_owned() }];
    let mut trace = Trace { streams, ..Trace::default() };
    let first = Request { due: Nanos(0), offset: Bytes(0), len: 512, op: Op::Read, stream: 0 };
    trace.push(first);
    trace.push(Request { offset: Bytes(bytes - 512), ..first });
    for turn in 0..count {
        let due = Nanos((turn + 1) * gap_ns);
        let offset = Bytes(rng::at(5, turn) % (bytes / 8192) * 8192);
        trace.push(Request { due, offset, len: 8192, op: Op::Write, stream: 0 });
        if turn % per_sync == 0 {
            trace.push(Request { due, offset: Bytes(0), len: 0, op: Op::Flush, stream: 0 });
        }
    }
    trace
}

#[test]
fn a_log_that_is_not_cleaned_says_that_it_is_full() {
    let spec =
        stack("capacity = \"1GB\"\nsync = \"fsync\"\n[file_system.cleaner]\npolicy = \"off\"\n");
    let trace = overwrites(512 << 20, 100_000, 5_000_000, 1);
    let mut stack = Stack::new(&spec, &trace);
    let mut taken = 0;
    let error = loop {
        match stack.submit(&trace.request(taken)) {
            Ok(()) => taken += 1,
            Err(error) => break error.to_string(),
        }
    };
    assert!(
        error.contains("no space left on nilfs2: ") && error.contains("s of the trace"),
        "{error}"
    );
    // Room for about 430 MB of logs of some 70 KiB; two calls each.
    assert!((8_000..20_000).contains(&taken), "{taken} calls");
    let files = "capacity = \"500MB\"\n";
    let mut small = Stack::new(&self::stack(files), &trace);
    assert!(small.submit(&trace.request(0)).is_err(), "the files alone are too large");
}

#[test]
fn cleaning_every_second_reads_two_segments_a_second_and_keeps_up() {
    let spec = stack(
        "capacity = \"1GB\"\nsync = \"fsync\"\n[file_system.cleaner]\ninterval = \"1s\"\n\
         urgent_interval = \"1s\"\nurgent_segments_per_clean = 2\n\
         start_below = 0.0\nstop_above = 0.0\nprotection_period = \"1ns\"\nmin_reclaimable = 0.0\n",
    );
    // What happens between 200 s and 400 s: the log has come round several times by then.
    let run = |seconds: u64| {
        let trace = overwrites(256 << 20, 20 * seconds, SECOND / 20, 1);
        let mut stack = Stack::new(&spec, &trace);
        trace.requests().for_each(|request| stack.submit(&request).expect("the cleaner keeps up"));
        let (_, account) = stack.finish();
        let cleaned = account.causes["clean"];
        let moved = cleaned.write.bytes;
        [cleaned.read.bytes, moved, account.physical.write.bytes - moved].map(|bytes| bytes as f64)
    };
    let (early, late) = (run(200), run(400));
    let [read, moved, new] = [0, 1, 2].map(|at| late[at] - early[at]);
    // 16.8 MB/s are examined; u of that is written back, and the rest is room for the log.
    let read_mb_per_s = read / 1e6 / 200.0;
    assert!((read_mb_per_s / 16.8 - 1.0).abs() < 0.01, "{read_mb_per_s} MB/s");
    let (u, room) = (moved / read, 1.0 - new / read);
    assert!((u - room).abs() < 0.01 && u < 0.95, "live share {u}, by the room made {room}");
}

#[test]
fn dirty_pages_leave_above_3600_and_after_five_seconds() {
    let streams = vec![Stream { name: "data".to_owned() }];
    let mut trace = Trace { streams, ..Trace::default() };
    let write = |at_ns, page| Request {
        due: Nanos(at_ns),
        offset: Bytes(page * BLOCK_BYTES),
        len: 4096,
        op: Op::Write,
        stream: 0,
    };
    (0..5000).for_each(|page| trace.push(write(1000 + page, page)));
    trace.push(write(20 * SECOND, 0));
    let spec = stack("capacity = \"1GB\"\n");
    let mut stack = Stack::new(&spec, &trace);
    trace.requests().for_each(|request| stack.submit(&request).expect("there is room"));
    let (physical, account) = stack.finish();
    let blocks_until = |end_ns: u64| {
        let due = physical.due.iter().zip(&physical.len).filter(|(due, _)| **due < end_ns);
        due.map(|(_, len)| u64::from(*len) / BLOCK_BYTES).sum::<u64>()
    };
    // 3601 pages in three segments, and the summaries: 16 bytes for a page, rounded up thrice.
    assert_eq!(blocks_until(5000), 3601 + 16);
    // The checkpoint 5 s after the first write has the other 1399 and all nodes.
    assert_eq!(blocks_until(5 * SECOND + 1000), 3601 + 16);
    let rest = blocks_until(5 * SECOND + 1001) - 3601 - 16;
    assert!((1399 + 6..1399 + 120).contains(&rest), "{rest} blocks");
    assert_eq!(account.kept.dirty_bytes, 4096, "the last write");
}

#[test]
fn old_kernels_do_not_flush_in_a_sync() {
    for (text, flushes) in [("", 1), ("flush_on_sync = false\n", 0)] {
        let mut bench = Bench::new(&format!("kind = \"nilfs2\"\ncapacity = \"1GB\"\n{text}"));
        bench.write(1, 0, 1);
        bench.sync(1, Sync::Fsync);
        assert_eq!(bench.take()[2], flushes);
    }
}

#[test]
fn within_the_protection_period_nothing_is_cleaned() {
    let text = "capacity = \"2GB\"\nsync = \"fsync\"\n[file_system.cleaner]\n\
                start_below = 1.0\nstop_above = 1.0\nmin_reclaimable = 0.0\n";
    let trace = overwrites(256 << 20, 2000, SECOND / 20, 4);
    let mut stack = Stack::new(&stack(text), &trace);
    trace
        .requests()
        .for_each(|request| stack.submit(&request).expect("room for a hundred seconds"));
    let (_, account) = stack.finish();
    assert!(!account.causes.contains_key(Cause::Clean.name()), "{account:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Any mix of writes, syncs, write-back and cleaning: every page has a place of its own, and
    /// everything that the store holds is referred to.
    #[test]
    fn every_page_has_a_place_of_its_own(
        protection in prop::sample::select(vec!["1ns", "3s"]),
        policy in prop::sample::select(vec!["greedy", "cost_benefit", "oldest_first"]),
        steps in prop::collection::vec((0_u32..3, 0_u64..400, 1_u64..30, 0_u32..6), 1..120),
    ) {
        let mut bench = Bench::new(&format!(
            "kind = \"nilfs2\"\ncapacity = \"32MiB\"\nsegment_size = \"256KiB\"\n\
             [file_system.cleaner]\npolicy = \"{policy}\"\ninterval = \"100ms\"\n\
             start_below = 0.9\n\
             stop_above = 0.9\nurgent_interval = \"100ms\"\nprotection_period = \"{protection}\"\n\
             min_reclaimable = 0.02\n"
        ));
        bench.files.add(0, 300 * BLOCK_BYTES, true);
        let mut pages: [BTreeSet<u64>; 3] = [(0..300).collect(), BTreeSet::new(), BTreeSet::new()];
        for (file, page, count, what) in steps {
            bench.write(file, page, count);
            pages[file as usize].extend(page..page + count);
            match what {
                0 => bench.files.settle(bench.now_ns, &mut bench.out),
                1..=3 => bench.sync(file, Sync::Fdatasync),
                _ => bench.sync(file, Sync::Fsync),
            }
            prop_assert_eq!(bench.files.failure(), None);
            bench.wait(300_000_000);
            bench.files.audit();
        }
        let mut taken = BTreeSet::new();
        for (file, pages) in pages.iter().enumerate() {
            let places = bench.places(file as u32);
            prop_assert_eq!(&places.keys().copied().collect::<BTreeSet<u64>>(), pages);
            for place in places.into_values() {
                let log = 256 << 10..32 << 20;
                prop_assert!(log.contains(&place), "{} is off the log", place);
                prop_assert!(taken.insert(place), "two pages at {}", place);
            }
        }
    }
}
