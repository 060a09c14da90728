//! The read cache against lists, and its misses against Che's approximation; then durable writes
//! and flushes of the write cache, with and without protection against power loss.

use model::WriteCache;
use model::{Device, Linear, ReadCache};
use profile::read_cache::{ReadCacheParameters, ReadPolicy};
use profile::write_cache::WriteCacheParameters;
use proptest::prelude::*;
use stats::rng::Rng;
use trace::{Op, Request};
use units::{Bytes, Nanos};

use crate::support::{counter, load, plain, request, small_cache};

const LINE: u64 = 4096;

fn parameters(lines: u64, policy: ReadPolicy) -> ReadCacheParameters {
    ReadCacheParameters {
        capacity: Bytes(lines * LINE),
        line_bytes: LINE as u32,
        policy,
        hit_base_ns: 1_000.0,
        hit_ns_per_byte: 0.0,
        ports: 1,
    }
}

fn cache(lines: u64, policy: ReadPolicy) -> ReadCache<Linear> {
    ReadCache::new(Linear::new(&plain(50_000.0, 0.0), 1), &parameters(lines, policy))
}

/// Slots in a row; LRU looks for the oldest use, CLOCK moves a hand.
struct Oracle {
    /// Line, time of its last use, whether it was read since the hand came by.
    slots: Vec<Option<(u64, u64, bool)>>,
    /// Slots that were emptied, the last one is filled first.
    emptied: Vec<usize>,
    hand: usize,
    clock: u64,
    policy: ReadPolicy,
}

impl Oracle {
    fn find(&self, line: u64) -> Option<usize> {
        self.slots.iter().position(|slot| slot.is_some_and(|own| own.0 == line))
    }

    fn read(&mut self, lines: std::ops::Range<u64>) -> bool {
        let hit = lines.clone().all(|line| self.find(line).is_some());
        for line in lines {
            self.clock += 1;
            if let Some(at) = self.find(line) {
                self.slots[at] = Some((line, self.clock, true));
            } else {
                let at = self.room();
                self.slots[at] = Some((line, self.clock, false));
            }
        }
        hit
    }

    fn room(&mut self) -> usize {
        if let Some(at) = self.emptied.pop() {
            return at;
        }
        if self.policy == ReadPolicy::Lru {
            let used = |at: &usize| self.slots[*at].map(|own| own.1);
            return (0..self.slots.len()).min_by_key(used).expect("slots");
        }
        loop {
            let at = self.hand;
            self.hand = (self.hand + 1) % self.slots.len();
            let slot = self.slots[at].as_mut().expect("full");
            if !std::mem::take(&mut slot.2) {
                return at;
            }
        }
    }

    fn trim(&mut self, lines: std::ops::Range<u64>) {
        for line in lines {
            if let Some(at) = self.find(line) {
                self.slots[at] = None;
                self.emptied.push(at);
            }
        }
    }
}

proptest! {
    #[test]
    fn hits_are_those_of_lists(load in load(300), lines in 1u64..40, clock in any::<bool>()) {
        let policy = if clock { ReadPolicy::Clock } else { ReadPolicy::Lru };
        let mut cache = cache(lines, policy);
        let mut oracle = Oracle {
            slots: vec![None; lines as usize],
            emptied: (0..lines as usize).rev().collect(),
            hand: 0,
            clock: 0,
            policy,
        };
        let mut hits = 0;
        for (now, request) in load {
            let done = cache.submit(Nanos(now), &request).0;
            let last = request.offset.0 + u64::from(request.len.max(1)) - 1;
            let span = request.offset.0 / LINE..last / LINE + 1;
            match request.op {
                Op::Read => {
                    let hit = oracle.read(span);
                    hits += u64::from(hit);
                    let least = if hit { 1_000 } else { 50_000 };
                    prop_assert!(done >= now + least);
                }
                Op::Trim => oracle.trim(span),
                _ => {}
            }
            prop_assert_eq!(counter(&cache, "read_cache_hits"), hits);
        }
    }
}

/// Pages by Zipf's law with exponent 0.8; misses within half a percent of Che's approximation.
#[test]
fn lru_misses_as_theory_says() {
    let (pages, lines) = (20_000usize, 2_000u64);
    let weight = |page: usize| (page as f64 + 1.0).powf(-0.8);
    let sum: f64 = (0..pages).map(weight).sum();
    let share: Vec<f64> = (0..pages).map(|page| weight(page) / sum).collect();
    let held = |t: f64| share.iter().map(|p| -(-p * t).exp_m1()).sum::<f64>();
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if held(middle) < lines as f64 { low = middle } else { high = middle }
    }
    let expected: f64 = share.iter().map(|p| p * (-p * low).exp()).sum();
    let mut upto = share.clone();
    for page in 1..pages {
        upto[page] += upto[page - 1];
    }
    let mut cache = cache(lines, ReadPolicy::Lru);
    let (mut rng, mut misses) = (Rng::new(4), 0);
    let (warm, count) = (100_000u64, 1_000_000u64);
    for k in 0..warm + count {
        let draw = rng.unit();
        let page = upto.partition_point(|share| *share <= draw).min(pages - 1) as u64;
        let before = counter(&cache, "read_cache_misses");
        cache.submit(Nanos(k * 1_000_000), &request(Op::Read, page * LINE, LINE as u32));
        misses += if k < warm { 0 } else { counter(&cache, "read_cache_misses") - before };
    }
    let found = misses as f64 / count as f64;
    println!("misses {found:.4}, theory {expected:.4}");
    assert!((found / expected - 1.0).abs() < 0.005, "misses {found}, theory {expected}");
}

#[test]
fn a_hit_waits_for_the_fetch_and_no_longer() {
    let mut cache = cache(4, ReadPolicy::Lru);
    let mut at = |now, op, line: u64| cache.submit(Nanos(now), &request(op, line * LINE, 4096)).0;
    assert_eq!(at(0, Op::Read, 0), 50_000);
    assert_eq!(at(10_000, Op::Read, 0), 51_000, "the line is on its way");
    assert_eq!(at(60_000, Op::Read, 0), 61_000);
    assert_eq!(at(70_000, Op::Write, 0), 120_000, "writes go to the device");
    assert_eq!(at(200_000, Op::Read, 0), 201_000, "and leave the line");
    assert_eq!(at(300_000, Op::Write, 1), 350_000);
    assert_eq!(at(400_000, Op::Read, 1), 450_000, "but make none");
    at(500_000, Op::Trim, 0);
    assert_eq!(at(600_000, Op::Read, 0), 650_000);
}

/// 50 us per write of the device, 1 us per touch of the cache, 30 us per flush of the device.
#[test]
fn durable_writes_and_flushes_cost_what_the_protection_leaves() {
    let with = |power_loss_protected| {
        let parameters =
            WriteCacheParameters { power_loss_protected, durable_streams: 0b10, ..small_cache(64) };
        WriteCache::new(Linear::new(&plain(50_000.0, 0.0), 1), &parameters)
    };
    let write = |line: u64, stream| Request { stream, ..request(Op::Write, line * LINE, 4096) };
    let flush = request(Op::Flush, 0, 0);
    // Protected, both cost the interface only.
    let mut cache = with(true);
    assert_eq!(cache.submit(Nanos(0), &write(0, 0)).0, 1_000);
    assert_eq!(cache.submit(Nanos(10_000), &write(8, 1)).0, 11_000);
    assert_eq!(cache.submit(Nanos(20_000), &flush).0, 21_000);
    assert_eq!(counter(&cache, "cache_destages"), 0);
    // Unprotected, a durable write waits for itself, a flush for all.
    let mut cache = with(false);
    assert_eq!(cache.submit(Nanos(0), &write(0, 0)).0, 1_000);
    assert_eq!(cache.submit(Nanos(10_000), &write(8, 1)).0, 10_000 + 1_000 + 50_000);
    let dirty = |cache: &WriteCache<Linear>| counter(cache, "cache_dirty_lines");
    assert_eq!((counter(&cache, "cache_destages"), dirty(&cache)), (0, 1));
    // It replaces what was dirty of its line, whole; of a part the rest is written back first.
    cache.submit(Nanos(100_000), &write(8, 0));
    assert_eq!(cache.submit(Nanos(200_000), &write(8, 1)).0, 251_000);
    assert_eq!(counter(&cache, "cache_trimmed_dirty_lines"), 1);
    cache.submit(Nanos(300_000), &write(8, 0));
    let part = Request { len: 512, ..write(8, 1) };
    assert_eq!(cache.submit(Nanos(400_000), &part).0, 400_000 + 1_000 + 2 * 50_000);
    assert_eq!((counter(&cache, "cache_destages"), dirty(&cache)), (1, 1));
    assert_eq!(counter(&cache, "cache_durable_writes"), 3);
    let drained = cache.submit(Nanos(600_000), &flush).0;
    assert!(drained >= 600_000 + 50_000 + 30_000, "a destage, then the device's flush: {drained}");
    assert_eq!(dirty(&cache), 0);
}
