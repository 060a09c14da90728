//! A write cache over a device that looks at its queue: arithmetic, conservation, what overtakes.

use model::flash::build;
use model::{Device, QueuedCache};
use profile::flash::{EventParameters, FlashParameters, Geometry};
use profile::write_cache::WriteCacheParameters;
use proptest::prelude::*;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use crate::kinds::{aged, kinds, rows};
use crate::support::counter;

/// Four dies on channels of their own: 4 us to transfer a page, 500 us to program it, 50 us to
/// read.
fn four_dies() -> FlashParameters {
    let mut parameters = model::flash::reference::configuration_a();
    parameters.geometry = Geometry {
        channels: 4,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: 64,
        pages_per_block: 16,
        page_bytes: 4096,
    };
    parameters.timing.bus_transfers_per_s = 1024e6;
    parameters.logical_pages = 2048;
    parameters.gc.low_blocks = 3;
    parameters.behind_cache = true;
    parameters.events = Some(EventParameters::default());
    parameters
}

/// Four lines of a page each, which take 1 us; nothing is coalesced.
fn cache(depth: u32) -> QueuedCache<Box<dyn model::flash::FlashDevice>> {
    let parameters = WriteCacheParameters {
        capacity: Bytes(4 * 4096),
        hit_base_ns: 1_000.0,
        ports: 64,
        coalesce_bytes: 4096,
        destage_depth: depth,
        ..WriteCacheParameters::default()
    };
    QueuedCache::new(build(&four_dies(), 1).expect("it can exist"), &parameters)
}

/// (due us, op, page) of whole pages.
fn responses_us(depth: u32, rows: &[(u64, Op, u64)]) -> Vec<u64> {
    let streams = vec![Stream { name: "data".to_owned() }];
    let mut trace = Trace { streams, ..Trace::default() };
    for &(due, op, page) in rows {
        let len = if op == Op::Flush { 0 } else { 4096 };
        let (due, offset) = (Nanos(due * 1000), Bytes(page * 4096));
        trace.push(Request { due, offset, len, op, stream: 0 });
    }
    let mut completions = vec![0; rows.len()];
    cache(depth).submit_due(&trace, 0..rows.len(), &mut completions);
    completions.iter().zip(&trace.due).map(|(at, due)| (at - due) / 1000).collect()
}

/// A destage takes 504 us: with one at a time a line is free every 504 us, with four on four dies
/// four lines are.
#[test]
fn the_device_has_as_many_destages_as_the_depth() {
    let rows: Vec<_> = (0..12).map(|page| (0, Op::Write, page)).collect();
    let one: Vec<u64> = (0..12u64).map(|k| 1 + 504 * k.saturating_sub(3)).collect();
    assert_eq!(responses_us(1, &rows), one);
    let two: Vec<u64> = (0..12u64).map(|k| 1 + 504 * (k.saturating_sub(2) / 2)).collect();
    assert_eq!(responses_us(2, &rows), two);
    let four: Vec<u64> = (0..12u64).map(|k| 1 + 504 * (k / 4)).collect();
    assert_eq!(responses_us(4, &rows), four);
    assert_eq!(responses_us(32, &rows), four, "there are four lines");
}

#[test]
fn reads_flushes_and_hits_go_by_what_waits() {
    let rows = [
        (0, Op::Write, 0),
        (0, Op::Write, 1),
        // Nobody wrote it: the device answers at once, beside the cache.
        (10, Op::Read, 9),
        (10, Op::Read, 1),
        (20, Op::Flush, 0),
        // Comes after the flush and is not covered by it.
        (30, Op::Write, 2),
        // Waits for no line, although 3 and 4 take the last ones.
        (40, Op::Write, 3),
        (41, Op::Write, 4),
        (42, Op::Write, 2),
    ];
    // The flush sends both lines to their dies at 20 us; 4 waits for the first to land, at 524 us.
    // For 4 the device was sent 2 and 3 at 41 us, so its own flush from 524 us on takes until 545.
    assert_eq!(responses_us(4, &rows), [1, 1, 0, 1, 525, 1, 1, 484, 1]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn lines_are_conserved_and_every_request_completes(rows in rows(200)) {
        let trace = aged(&rows);
        for (name, make) in kinds() {
            let mut device = make();
            if !name.ends_with("cache over events") {
                continue;
            }
            let mut completions = vec![0; trace.count()];
            device.submit_due(&trace, 0..trace.count(), &mut completions);
            prop_assert!(completions.iter().zip(&trace.due).all(|(at, due)| at >= due));
            let count = |name| counter(device.as_ref(), name);
            prop_assert_eq!(
                count("cache_written_lines"),
                count("cache_destaged_lines") + count("cache_dirty_lines")
                    + count("cache_overwritten_lines") + count("cache_trimmed_dirty_lines")
            );
            prop_assert!(count("cache_dirty_lines") <= 24);
        }
    }
}
