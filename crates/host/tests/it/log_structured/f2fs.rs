//! f2fs: what a sync costs under each policy, what cleaning keeps, and where every page is.

use std::collections::BTreeSet;

use host::file_system::{BLOCK_BYTES, Cause, Sync};
use proptest::prelude::*;
use stats::rng;

use super::support::Bench;

const TICK: u64 = 4_000_000;
const SECOND: u64 = 1_000_000_000;

fn bench(more: &str) -> Bench {
    Bench::new(&format!("kind = \"f2fs\"\ncapacity = \"4GB\"\n{more}"))
}

#[test]
fn an_append_is_data_and_a_node_and_one_flush() {
    for sync in [Sync::Fdatasync, Sync::Fsync] {
        let mut bench = bench("");
        bench.write(1, 0, 1);
        bench.sync(1, sync);
        bench.take();
        for page in 1..900 {
            bench.write(1, page, 1);
            bench.sync(1, sync);
            // Page 512 is the first of another segment, in both logs: two summaries.
            let summaries = if page == 512 { 2 } else { 0 };
            let expected = [2 + summaries, 2 + summaries, 1];
            assert_eq!(bench.take(), expected, "page {page}: 8 KiB and a flush");
        }
        // Behind what the inode maps, a node has the block and the inode the length.
        bench.write(1, 1000, 1);
        bench.sync(1, sync);
        bench.take();
        for page in 1001..1100 {
            bench.write(1, page, 1);
            bench.sync(1, sync);
            // Segments of data and of nodes end at pages of their own.
            let summary = u64::from(page == 1062);
            assert_eq!(bench.take()[0], 3 + summary, "page {page}");
        }
        bench.files.audit();
    }
}

#[test]
fn an_overwrite_costs_what_the_policy_says() {
    // Blocks and flushes of: fdatasync of 1 page and of 20; fsync of 1 page and of 20, in a tick
    // of its own (the inode is written too); write-back of 20 without a sync.
    for (policy, blocks) in [
        ("fsync", [1, 20, 2, 22, 20]),
        ("never", [2, 21, 3, 22, 20]),
        ("always", [1, 20, 2, 21, 20]),
        ("utilization", [2, 21, 3, 22, 20]),
    ] {
        let mut bench = bench(&format!("in_place = \"{policy}\"\n"));
        bench.files.add(1, (64 << 20) + 4096, true);
        bench.now_ns = 100 * TICK;
        let mut found = Vec::new();
        for (pages, sync) in [
            (1, Some(Sync::Fdatasync)),
            (20, Some(Sync::Fdatasync)),
            (1, Some(Sync::Fsync)),
            (20, Some(Sync::Fsync)),
            (20, None),
        ] {
            bench.now_ns += TICK;
            bench.write(1, 2000 + found.len() as u64 * 40, pages);
            match sync {
                Some(sync) => bench.sync(1, sync),
                None => bench.files.settle(bench.now_ns, &mut bench.out),
            }
            let [written, _, flushes] = bench.take();
            assert_eq!(flushes, u64::from(sync.is_some()));
            found.push(written);
        }
        assert_eq!(found, blocks, "{policy}");
    }
}

#[test]
fn direct_writes_overwrite_in_place() {
    let mut bench = bench("in_place = \"never\"\n");
    bench.files.add(1, 8 << 20, true);
    let before = bench.places(1);
    let span = host::page_cache::Span { file: 1, offset: 40 * BLOCK_BYTES, bytes: 8192 };
    bench.files.touch(TICK, span);
    bench.files.write_direct(TICK, span, &mut bench.out);
    assert_eq!(bench.take(), [2, 1, 0]);
    assert_eq!(bench.places(1), before);
}

#[test]
fn a_checkpoint_writes_nodes_and_a_pack() {
    let mut bench = bench("in_place = \"never\"\n[file_system.cleaner]\npolicy = \"off\"\n");
    bench.files.add(1, (64 << 20) + 4096, true);
    bench.now_ns = SECOND;
    bench.write(1, 5000, 1);
    bench.files.settle(bench.now_ns, &mut bench.out);
    assert_eq!(bench.take()[0], 1);
    bench.wait(58 * SECOND);
    assert_eq!(bench.take(), [0, 0, 0]);
    bench.wait(SECOND);
    // A node and the inode; head, summaries and tail of the pack. The tail waits for the others.
    let [blocks, _, flushes] = bench.take();
    assert!((5..=7).contains(&blocks), "{blocks} blocks");
    assert_eq!(flushes, 2);
    bench.wait(180 * SECOND);
    assert_eq!(bench.take()[0], 0, "nothing changed");
}

/// Overwrites random pages of a device that is full to `share`; blocks written per block, and
/// blocks that the cleaner moved.
fn overwrite_full(share: f64, turns: u64) -> (f64, u64) {
    let text = "kind = \"f2fs\"\ncapacity = \"256MiB\"\nsegment_size = \"256KiB\"\n\
                in_place = \"never\"\n";
    let mut bench = Bench::new(text);
    let pages = (share * 65536.0) as u64;
    bench.files.add(1, pages * BLOCK_BYTES, true);
    let (mut written, mut moved) = (0, 0);
    for turn in 0..turns {
        bench.now_ns += 1_000_000;
        bench.write(1, rng::at(9, turn) % pages, 1);
        bench.files.settle(bench.now_ns, &mut bench.out);
        bench.wait(0);
        let cleaned = bench.out.iter().filter(|request| request.cause == Cause::Clean);
        moved +=
            cleaned.filter(|request| request.op == trace::Op::Write).map(|r| r.bytes).sum::<u64>();
        written += bench.take()[0];
    }
    bench.files.audit();
    (written as f64 / turns as f64, moved / BLOCK_BYTES)
}

#[test]
fn a_device_that_fills_up_cleans_and_goes_on() {
    let (half, moved) = overwrite_full(0.4, 200_000);
    assert!(half < 1.3, "{half} blocks each");
    assert!(moved < 2000, "holes are enough, but {moved} blocks were moved");
    let (full, _) = overwrite_full(0.8, 200_000);
    assert!(full > half && full < 1.5, "{full} blocks each");
}

#[test]
fn a_full_device_says_so() {
    let text = "kind = \"f2fs\"\ncapacity = \"256MiB\"\n";
    let mut bench = Bench::new(text);
    let mut page = 0;
    while bench.files.failure().is_none() {
        bench.write(1, page, 256);
        bench.files.settle(0, &mut bench.out);
        page += 256;
    }
    let failure = bench.files.failure().unwrap();
    assert!(failure.starts_with("no space left on f2fs: "), "{failure}");
    assert!((30_000..60_000).contains(&page), "{page} of 65536 pages");
    // It stays so, and does nothing more.
    bench.take();
    bench.write(1, 0, 1);
    bench.files.settle(0, &mut bench.out);
    assert_eq!(bench.take()[0], 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Any mix of writes, syncs, write-back, checkpoints and cleaning: every page has a place of
    /// its own in the main area, and what was overwritten in place stays there.
    #[test]
    fn every_page_has_a_place_of_its_own(
        in_place in prop::sample::select(vec!["fsync", "never", "utilization", "always"]),
        steps in prop::collection::vec((0_u32..3, 0_u64..3000, 1_u64..600, 0_u32..6), 1..80),
    ) {
        let mut bench = Bench::new(&format!(
            "kind = \"f2fs\"\ncapacity = \"64MiB\"\nsegment_size = \"256KiB\"\n\
             in_place = \"{in_place}\"\n[file_system.cleaner]\ninterval = \"1s\"\n"
        ));
        bench.files.add(0, 300 * BLOCK_BYTES, true);
        let mut pages: [BTreeSet<u64>; 3] = [(0..300).collect(), BTreeSet::new(), BTreeSet::new()];
        for (file, page, count, what) in steps {
            bench.write(file, page, count);
            match what {
                0 => bench.files.settle(bench.now_ns, &mut bench.out),
                1..=3 => bench.files.sync(bench.now_ns, file, Sync::Fdatasync, &mut bench.out),
                _ => bench.files.sync(bench.now_ns, file, Sync::Fsync, &mut bench.out),
            }
            if let Some(failure) = bench.files.failure() {
                prop_assert!(failure.contains("no space left"), "{}", failure);
                let live: usize = pages.iter().map(BTreeSet::len).sum();
                prop_assert!(live + count as usize > 5000, "{} with {} pages", failure, live);
                return Ok(());
            }
            pages[file as usize].extend(page..page + count);
            bench.wait(5 * SECOND);
            bench.files.audit();
        }
        let mut taken = BTreeSet::new();
        for (file, pages) in pages.iter().enumerate() {
            let places = bench.places(file as u32);
            prop_assert_eq!(&places.keys().copied().collect::<BTreeSet<u64>>(), pages);
            for place in places.into_values() {
                let device = 256 << 10..64 << 20;
                prop_assert!(device.contains(&place), "{} is off the device", place);
                prop_assert!(taken.insert(place), "two pages at {}", place);
            }
        }
    }
}
