//! A fast device in front of a slow one: versions of pages through all modes, what passes by, what
//! is written home, and the rates.

use std::collections::BTreeMap;

use host::volume::cache::pages::{FAST, PAGE_BYTES, Pages, SLOW};
use host::volume::cache::{CacheDevice, CacheMode, CacheSettings};
use host::volume::plan::{Part, Plan, Stage};
use model::Device;
use proptest::prelude::*;
use trace::Op;
use units::Nanos;

use super::load::{Constant, Draws, closed, request};

const MIB: u64 = 1 << 20;

/// The two devices as versions of pages, and the newest version of each.
struct Content {
    pages: Pages,
    fast: BTreeMap<u64, u64>,
    slow: BTreeMap<u64, u64>,
    newest: BTreeMap<u64, u64>,
    version: u64,
}

/// The pages of the parts of `stage` that do `op` on `member`, in order.
fn pages_of(plan: &Plan, stage: Stage, op: Op, member: usize) -> Vec<u64> {
    let parts = plan.stage(stage).iter().filter(|part| part.op == op && part.member == member);
    let pages = parts.flat_map(|part: &Part| {
        assert_eq!(part.offset % PAGE_BYTES + part.bytes % PAGE_BYTES, 0);
        part.offset / PAGE_BYTES..(part.offset + part.bytes) / PAGE_BYTES
    });
    pages.collect()
}

impl Content {
    fn write(&mut self, first: u64, count: u64) {
        self.version += 1;
        let mut plan = Plan::default();
        self.pages.plan(Op::Write, first * PAGE_BYTES, count * PAGE_BYTES, &mut plan);
        let pages: Vec<u64> = (first..first + count).collect();
        let slow = pages_of(&plan, Stage::Store, Op::Write, SLOW);
        let slots = pages_of(&plan, Stage::Store, Op::Write, FAST);
        for page in &pages {
            self.newest.insert(*page, self.version);
        }
        for page in &slow {
            assert!(pages.contains(page));
            self.slow.insert(*page, self.version);
        }
        // Slots are given to pages in order; if they run out, no bucket was clean.
        for (slot, _) in slots.iter().zip(&pages) {
            self.fast.insert(*slot, self.version);
        }
        assert!(slots.len() + slow.len() >= pages.len(), "a page went nowhere");
    }

    fn read(&mut self, first: u64, count: u64) {
        let mut plan = Plan::default();
        self.pages.plan(Op::Read, first * PAGE_BYTES, count * PAGE_BYTES, &mut plan);
        let missed = pages_of(&plan, Stage::Fetch, Op::Read, SLOW);
        let slots = pages_of(&plan, Stage::Fetch, Op::Read, FAST);
        let hit: Vec<u64> = (first..first + count).filter(|page| !missed.contains(page)).collect();
        assert_eq!(hit.len(), slots.len(), "each page once");
        let newest = |page: &u64| self.newest.get(page).copied().unwrap_or(0);
        for (page, slot) in hit.iter().zip(&slots) {
            assert_eq!(self.fast.get(slot).copied(), Some(newest(page)), "page {page}, fast");
        }
        for page in &missed {
            let found = self.slow.get(page).copied().unwrap_or(0);
            assert_eq!(found, newest(page), "page {page}, slow");
        }
        let entered: Vec<(u64, u64)> = pages_of(&plan, Stage::Store, Op::Write, FAST)
            .into_iter()
            .zip(missed.iter().map(newest))
            .collect();
        self.fast.extend(entered);
    }

    fn write_back(&mut self, most: u64) -> u64 {
        let mut plan = Plan::default();
        let count = self.pages.write_back(most, &mut plan);
        let from = pages_of(&plan, Stage::Fetch, Op::Read, FAST);
        let to = pages_of(&plan, Stage::Store, Op::Write, SLOW);
        assert_eq!((from.len() as u64, to.len() as u64), (count, count));
        assert!(to.is_sorted());
        for (slot, page) in from.iter().zip(&to) {
            assert_eq!(self.fast[slot], self.newest[page], "page {page} on its way home");
            self.slow.insert(*page, self.fast[slot]);
        }
        count
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn the_newest_version_is_read_whatever_happens(
        mode in 0..3_usize, buckets in 4..12_u64, cutoff in 0..30_u64,
        steps in prop::collection::vec((0..10_u32, 0..100_u64, 1..12_u64), 1..300),
    ) {
        let settings = CacheSettings {
            mode: [CacheMode::WriteThrough, CacheMode::WriteBack, CacheMode::WriteAround][mode],
            bucket_bytes: 4 * PAGE_BYTES,
            sequential_cutoff_bytes: cutoff * PAGE_BYTES,
            ..CacheSettings::new(buckets * 4 * PAGE_BYTES)
        };
        let pages = Pages::new(&settings);
        let (fast, slow, newest) = Default::default();
        let mut content = Content { pages, fast, slow, newest, version: 0 };
        for (what, first, count) in steps {
            match what {
                0..4 => content.write(first, count),
                4..8 => content.read(first, count),
                8 => drop(content.write_back(count)),
                _ => {
                    let mut plan = Plan::default();
                    let (offset, bytes) = (first * PAGE_BYTES, count * PAGE_BYTES);
                    content.pages.plan(Op::Trim, offset, bytes, &mut plan);
                    // What was trimmed may be anything; here the slow device has it as new.
                    for page in first..first + count {
                        content.slow.insert(page, 0);
                        content.newest.insert(page, 0);
                    }
                }
            }
            content.pages.assert_consistent();
        }
        while content.write_back(16) > 0 {}
        prop_assert_eq!(content.pages.dirty_pages(), 0);
        prop_assert_eq!(
            content.newest.iter().filter(|(_, version)| **version > 0).collect::<Vec<_>>(),
            content.slow.iter().filter(|(_, version)| **version > 0).collect::<Vec<_>>()
        );
    }
}

fn device(settings: &CacheSettings) -> CacheDevice {
    let fast = Constant::new(10_000, 20_000, 1 << 40);
    let slow = Constant::new(1_000_000, 2_000_000, 1 << 40);
    CacheDevice::new(Box::new(fast), Box::new(slow), settings).unwrap()
}

fn mode(mode: CacheMode) -> CacheSettings {
    CacheSettings { mode, ..CacheSettings::new(64 * MIB) }
}

#[test]
fn each_mode_answers_when_its_devices_have_done_their_part() {
    let times = |settings: &CacheSettings| {
        let mut device = device(settings);
        let mut now = 0;
        let mut at = |op, offset, len| {
            now += 100_000_000;
            device.submit(Nanos(now), &request(op, offset, len)).0 - now
        };
        // Write, read it, read something else twice.
        let found = [
            at(Op::Write, 0, 8192),
            at(Op::Read, 0, 8192),
            at(Op::Read, MIB, 8192),
            at(Op::Read, MIB, 8192),
        ];
        assert_eq!(device.pages().counts.bypassed, 0);
        found
    };
    let (fast, slow) = (10_000, 1_000_000);
    assert_eq!(times(&mode(CacheMode::WriteThrough)), [2 * slow, fast, slow, fast]);
    assert_eq!(times(&mode(CacheMode::WriteBack)), [2 * fast, fast, slow, fast]);
    assert_eq!(times(&mode(CacheMode::WriteAround)), [2 * slow, slow, slow, fast]);
}

#[test]
fn long_streams_pass_by() {
    let mut device = device(&mode(CacheMode::WriteBack));
    for step in 0..12 {
        device.submit(Nanos(step << 40), &request(Op::Write, step * 512 * 1024, 512 << 10));
    }
    // Seven of 512 KiB are below 4 MiB, the eighth reaches it.
    assert_eq!(device.pages().counts.bypassed, 5);
    let [fast, slow] = device.members();
    let home = device.pages().counts.written_back_bytes;
    assert_eq!(slow.write_bytes - home, 5 * (512 << 10));
    assert_eq!(fast.write_bytes, 7 * (512 << 10));
}

#[test]
fn dirty_pages_go_home_at_the_rate_of_the_excess_and_then_slowly() {
    // 1023 buckets of 16 pages; 10 % of them may be dirty.
    let settings = CacheSettings {
        bucket_bytes: 64 << 10,
        sequential_cutoff_bytes: 0,
        ..mode(CacheMode::WriteBack)
    };
    let mut device = device(&settings);
    let capacity = device.pages().capacity_pages();
    assert_eq!(capacity, 1023 * 16);
    let dirty = capacity / 2;
    for page in 0..dirty / 16 {
        device.submit(Nanos(page * 100_000), &request(Op::Write, page << 16, 1 << 16));
    }
    // The rate is worked out again every 5 s.
    let start = 10_000_000_000;
    assert!(device.queued().unwrap().next_completion(Nanos(start)).is_none());
    let before = device.pages().dirty_pages();
    assert!(before < dirty);
    // The excess e falls as de/dt = -e / 40 s.
    for seconds in [20, 40, 80] {
        let queued = device.queued().unwrap();
        assert!(queued.next_completion(Nanos(start + seconds * 1_000_000_000)).is_none());
        let target = capacity as f64 * 0.1;
        let expected = target + (before as f64 - target) * (-(seconds as f64) / 40.0).exp();
        let found = device.pages().dirty_pages() as f64;
        assert!((found / expected - 1.0).abs() < 0.02, "{found} dirty, expected {expected:.0}");
    }
}

#[test]
fn above_70_percent_dirty_writes_go_through() {
    let settings = CacheSettings { sequential_cutoff_bytes: 0, ..mode(CacheMode::WriteBack) };
    let mut device = device(&settings);
    let capacity = device.pages().capacity_pages();
    // As fast as can be: next to nothing goes home meanwhile.
    for page in 0..capacity * 8 / 10 / 16 {
        device.submit(Nanos(0), &request(Op::Write, page << 16, 1 << 16));
    }
    let dirty = device.pages().dirty_pages() as f64 / capacity as f64;
    assert!((0.69..0.71).contains(&dirty), "{dirty}");
    assert!(device.pages().counts.through > 0);
}

#[test]
fn reads_of_a_hot_set_have_the_rate_of_hits_and_misses() {
    // A quarter of what is read fits; every page is as likely.
    let settings = CacheSettings { sequential_cutoff_bytes: 0, ..mode(CacheMode::WriteThrough) };
    let mut device = device(&settings);
    let capacity = 4 * device.pages().capacity_pages() * PAGE_BYTES;
    let mut draws = Draws(3);
    closed(&mut device, 8, 60_000, || draws.mixed(1.0, 4096, capacity));
    let before = device.pages().counts;
    let mut draws = Draws(4);
    let [_, slow] = device.members();
    assert_eq!(slow.read_bytes, before.miss_bytes);
    for request in (0..40_000_u64).map(|_| draws.mixed(1.0, 4096, capacity)) {
        device.submit(Nanos(1 << 50), &request);
    }
    let counts = device.pages().counts;
    let (hits, misses) =
        (counts.hit_bytes - before.hit_bytes, counts.miss_bytes - before.miss_bytes);
    // LRU of buckets under uniform reads: a bucket is lost whole, so that at most a quarter hits.
    let share = hits as f64 / (hits + misses) as f64;
    assert!((0.22..=0.252).contains(&share), "{share} of the bytes hit");
}
