//! The page cache: windows on the device, limits, timers, direct I/O, conservation.

use std::collections::{BTreeMap, BTreeSet};

use host::page_cache::replacement::Policy;
use host::page_cache::{Action, PAGE_BYTES, PageCache, Settings, Span, Want};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn span(file: u32, offset: u64, bytes: u64) -> Span {
    Span { file, offset, bytes }
}

/// Pages of the writes among `actions`, with their times.
fn writes(actions: &[Action]) -> Vec<(u64, u32, Vec<u64>)> {
    let written = actions.iter().filter_map(|action| match action {
        Action::Write { at_ns, file, pages } => {
            Some((*at_ns, *file, pages.iter().map(|page| page.page).collect()))
        }
        Action::Read { .. } => None,
    });
    written.collect()
}

#[test]
fn a_sequential_reader_sees_the_windows_of_linux_6_18() {
    let settings = Settings { read_ahead_pages: 640, ..Settings::default() };
    let mut cache = PageCache::new(settings);
    let (mut out, mut found) = (Vec::new(), Vec::new());
    for page in 0..100 {
        cache.read(0, span(1, page * PAGE_BYTES, PAGE_BYTES), 64 << 20, &mut out);
        for action in out.drain(..) {
            let Action::Read { first, pages, .. } = action else { panic!("a read writes nothing") };
            found.push((page * 4, first * 4, pages * 4));
        }
    }
    assert_eq!(found, [(0, 0, 16), (4, 16, 64), (16, 80, 256), (80, 336, 512), (336, 848, 1024)]);
}

#[test]
fn the_end_of_the_file_ends_read_ahead() {
    let mut cache = PageCache::new(Settings { read_ahead_pages: 640, ..Settings::default() });
    let mut out = Vec::new();
    for page in 0..10 {
        cache.read(0, span(1, page * PAGE_BYTES, PAGE_BYTES), 10 * PAGE_BYTES, &mut out);
    }
    let pages: u64 = out
        .iter()
        .map(|action| match action {
            Action::Read { pages, .. } => *pages,
            Action::Write { .. } => 0,
        })
        .sum();
    assert_eq!(pages, 10);
}

#[test]
fn the_flusher_writes_files_that_are_dirty_for_30_s_at_its_5_s_wake_ups() {
    let mut cache = PageCache::new(Settings::default());
    let mut out = Vec::new();
    cache.write(SECOND, span(1, 0, PAGE_BYTES), 0, &mut out);
    cache.write(7 * SECOND, span(2, 0, PAGE_BYTES), 0, &mut out);
    cache.write(8 * SECOND, span(1, 9 * PAGE_BYTES, PAGE_BYTES), 0, &mut out);
    cache.wake(34 * SECOND, &mut out);
    assert_eq!(writes(&out), []);
    cache.wake(100 * SECOND, &mut out);
    assert_eq!(writes(&out), [(35 * SECOND, 1, vec![0, 9]), (40 * SECOND, 2, vec![0])]);
    assert_eq!(cache.dirty_bytes(), 0);
}

#[test]
fn above_the_background_limit_the_flusher_writes_at_the_bandwidth_of_the_device() {
    // 100 pages of memory: the flusher writes from 11 dirty pages on, a writer from 21.
    let settings = Settings {
        memory_bytes: 100 * PAGE_BYTES,
        write_back_bytes_per_s: PAGE_BYTES,
        ..Settings::default()
    };
    let mut cache = PageCache::new(settings);
    let mut out = Vec::new();
    for page in 0..10 {
        cache.write(0, span(1, page * PAGE_BYTES, PAGE_BYTES), 0, &mut out);
    }
    assert_eq!(writes(&out), []);
    cache.write(0, span(1, 10 * PAGE_BYTES, PAGE_BYTES), 0, &mut out);
    assert_eq!(writes(&out), [(0, 1, (0..11).collect())]);
    out.clear();
    // The device is busy for 11 s with that: the background limit has to wait, the hard one not.
    for page in 0..20 {
        cache.write(SECOND, span(1, page * PAGE_BYTES, PAGE_BYTES), 0, &mut out);
    }
    assert_eq!(writes(&out), []);
    cache.write(SECOND, span(1, 20 * PAGE_BYTES, PAGE_BYTES), 0, &mut out);
    // The turn goes on behind page 10, where the last one ended, and then begins again.
    assert_eq!(writes(&out), [(SECOND, 1, (11..21).collect())]);
    out.clear();
    cache.wake(20 * SECOND, &mut out);
    assert_eq!(writes(&out), []);
    cache.wake(21 * SECOND, &mut out);
    assert_eq!(writes(&out), [(21 * SECOND, 1, (0..11).collect())]);
}

#[test]
fn direct_io_writes_back_what_it_passes_and_drops_what_it_overwrites() {
    let mut cache = PageCache::new(Settings::default());
    let mut out = Vec::new();
    for page in 0..4 {
        cache.write(0, span(1, page * PAGE_BYTES, PAGE_BYTES), 0, &mut out);
    }
    cache.pass(5, span(1, PAGE_BYTES, PAGE_BYTES), false, &mut out);
    assert!(cache.contains(1, 1));
    cache.pass(6, span(1, 2 * PAGE_BYTES, PAGE_BYTES), true, &mut out);
    assert!(!cache.contains(1, 2) && cache.contains(1, 3));
    assert_eq!(writes(&out), [(5, 1, vec![1]), (6, 1, vec![2])]);
}

#[test]
fn a_part_of_a_page_that_is_not_cached_is_filled_first() {
    let mut cache = PageCache::new(Settings::default());
    let mut out = Vec::new();
    cache.write(0, span(1, 100, 50), 3 * PAGE_BYTES, &mut out);
    cache.write(0, span(1, PAGE_BYTES, PAGE_BYTES), 3 * PAGE_BYTES, &mut out);
    // Up to the end of the file and beyond: nothing of the old content is left.
    cache.write(0, span(1, 2 * PAGE_BYTES, 600), 2 * PAGE_BYTES + 600, &mut out);
    cache.write(0, span(1, 7 * PAGE_BYTES + 8, 8), 3 * PAGE_BYTES, &mut out);
    let fill = Action::Read { file: 1, first: 0, pages: 1, ahead: 0, want: Want::Fill };
    assert_eq!(out, [fill]);
}

proptest! {
    /// Slow oracle: bytes in sets. Asked bytes are hits or reads, each page is read at most once
    /// while cached, and what is handed down is what was written since the page was clean.
    #[test]
    fn bytes_are_conserved(
        pages in 4_u64..40,
        policy in prop::sample::select(Policy::ALL.to_vec()),
        steps in prop::collection::vec((0_u8..6, 0_u32..2, 0_u64..60_000, 1_u64..9000), 1..120),
    ) {
        let settings =
            Settings { memory_bytes: pages * PAGE_BYTES, policy, ..Settings::default() };
        let mut cache = PageCache::new(settings);
        let mut dirty: BTreeMap<(u32, u64), BTreeSet<u64>> = BTreeMap::new();
        let (mut asked, mut handed, mut now) = (0, 0, 0);
        // Before each step what is old enough is written back, as it is then.
        const WAKE: u8 = u8::MAX;
        let steps = steps.into_iter().flat_map(|step| [(WAKE, 0, 0, 0), step]);
        for (what, file, offset, bytes) in steps {
            let mut out = Vec::new();
            let at = span(file, offset, bytes);
            match what {
                WAKE => {
                    now += SECOND;
                    cache.wake(now, &mut out);
                }
                0 | 1 => cache.read(now, at, 100_000, &mut out),
                2 | 3 => {
                    // Within one page and from its start, so that dirty bytes are exact.
                    let page = offset / PAGE_BYTES;
                    let bytes = bytes.min(PAGE_BYTES);
                    cache.write(now, span(file, page * PAGE_BYTES, bytes), 100_000, &mut out);
                    dirty.entry((file, page)).or_default().extend(0..bytes);
                }
                4 => cache.sync(now, file, &mut out),
                _ => cache.pass(now, at, true, &mut out),
            }
            for action in out {
                match action {
                    Action::Read { want: Want::Asked(bytes), pages, ahead, .. } => {
                        prop_assert!(bytes <= (pages - ahead) * PAGE_BYTES);
                        asked += bytes;
                    }
                    Action::Read { .. } => {}
                    Action::Write { file, pages, .. } => {
                        for page in pages {
                            let bytes = dirty.remove(&(file, page.page));
                            let bytes = bytes.map_or(0, |bytes| bytes.len() as u64);
                            prop_assert_eq!(bytes, page.data_bytes, "page {}", page.page);
                            handed += bytes;
                        }
                    }
                }
            }
        }
        let counts = cache.counts();
        prop_assert_eq!(counts.read_bytes, counts.hit_bytes + asked);
        prop_assert_eq!(counts.handed_down_bytes, handed);
        let left: usize = dirty.values().map(BTreeSet::len).sum();
        prop_assert_eq!(cache.dirty_bytes(), left as u64);
    }
}
