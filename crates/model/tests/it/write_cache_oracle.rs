//! The write cache against a slow and obvious one: a list of dirty lines, a list of clean ones.
//!
//! The oracle has no watermarks and no background (both are properties of their own), so every
//! destage comes from a stall, a read that meets dirty lines, or a flush.

use std::collections::BTreeMap;

use model::{Device, Linear, WriteCache};
use proptest::prelude::*;
use trace::{Op, Request};
use units::{Bytes, Nanos};

use crate::support::{counter, load, plain, run, small_cache};

const LINE: u64 = 4096;
const COALESCE: u64 = 4;

/// `dirty` and `clean` map the age of an entry to its line; the smallest age is the oldest.
struct Oracle {
    device: Linear,
    capacity: usize,
    clock: u64,
    dirty: BTreeMap<u64, u64>,
    clean: BTreeMap<u64, u64>,
    sent: Vec<u64>,
    sent_until: u64,
    early_until: u64,
    ports_free: Vec<u64>,
    next_port: usize,
    destages: u64,
    hits: u64,
}

impl Oracle {
    fn age(map: &BTreeMap<u64, u64>, line: u64) -> Option<u64> {
        map.iter().find(|(_, own)| **own == line).map(|(age, _)| *age)
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn holds(&self, line: u64) -> bool {
        Self::age(&self.dirty, line).is_some()
            || Self::age(&self.clean, line).is_some()
            || self.sent.contains(&line)
    }

    fn drop_line(&mut self, line: u64) {
        self.dirty.retain(|_, own| *own != line);
        self.clean.retain(|_, own| *own != line);
        self.sent.retain(|own| *own != line);
    }

    fn land(&mut self) {
        for line in std::mem::take(&mut self.sent) {
            let age = self.tick();
            self.clean.insert(age, line);
        }
    }

    fn destage(&mut self, now: u64, line: u64) -> u64 {
        let is_dirty = |this: &Self, line| Self::age(&this.dirty, line).is_some();
        let mut first = line;
        while line - first + 1 < COALESCE && first > 0 && is_dirty(self, first - 1) {
            first -= 1;
        }
        let mut end = line + 1;
        while end - first < COALESCE && is_dirty(self, end) {
            end += 1;
        }
        for line in first..end {
            self.dirty.retain(|_, own| *own != line);
            self.sent.push(line);
        }
        let request = Request {
            due: Nanos(now),
            offset: Bytes(first * LINE),
            len: ((end - first) * LINE) as u32,
            op: Op::Write,
            stream: 0,
        };
        self.destages += 1;
        let completion = self.device.submit(Nanos(now), &request).0;
        self.sent_until = self.sent_until.max(completion);
        completion
    }

    fn hit(&mut self, now: u64) -> u64 {
        // In turn where that one is free by then, else the one that is free first.
        let ports = &mut self.ports_free;
        let earliest = (0..ports.len()).min_by_key(|&port| ports[port]).unwrap();
        let port = if ports[self.next_port] <= now { self.next_port } else { earliest };
        self.next_port = (port + 1) % ports.len();
        ports[port] = ports[port].max(now) + 1_000;
        ports[port]
    }

    fn put(&mut self, now: u64, ready: u64, line: u64) -> u64 {
        let mut ready = ready;
        if !self.holds(line) {
            if self.dirty.len() + self.sent.len() == self.capacity {
                if self.sent.is_empty() {
                    let oldest = *self.dirty.values().next().unwrap();
                    self.destage(now, oldest);
                }
                self.land();
                ready = ready.max(self.sent_until);
                self.early_until = ready;
            } else if self.early_until > now {
                ready = ready.max(self.early_until);
            }
            if self.dirty.len() + self.sent.len() + self.clean.len() == self.capacity {
                self.clean.pop_first();
            }
        }
        self.drop_line(line);
        let age = self.tick();
        self.dirty.insert(age, line);
        ready
    }

    fn submit(&mut self, now: u64, request: &Request) -> u64 {
        if self.sent_until <= now {
            self.land();
        }
        let first = request.offset.0 / LINE;
        let end = (request.offset.0 + u64::from(request.len.max(1)) - 1) / LINE + 1;
        match request.op {
            Op::Write if end - first > self.capacity as u64 => {
                (first..end).for_each(|line| self.drop_line(line));
                self.device.submit(Nanos(now), request).0
            }
            Op::Write => {
                let ready = (first..end).fold(now, |ready, line| self.put(now, ready, line));
                self.hit(ready)
            }
            Op::Read if (first..end).all(|line| self.holds(line)) => {
                self.hits += 1;
                self.hit(now)
            }
            Op::Read => {
                let mut ready = now;
                for line in first..end {
                    if Self::age(&self.dirty, line).is_some() {
                        ready = ready.max(self.destage(now, line));
                    }
                }
                self.device.submit(Nanos(now), request).0.max(ready)
            }
            Op::Trim => {
                (first..end).for_each(|line| self.drop_line(line));
                self.device.submit(Nanos(now), request).0
            }
            Op::Flush => {
                let mut ready = if self.sent.is_empty() { now } else { self.sent_until };
                while let Some(oldest) = self.dirty.values().next().copied() {
                    ready = ready.max(self.destage(now, oldest));
                }
                self.device.submit(Nanos(now), request).0.max(ready)
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_cache_does_what_the_lists_do(
        load in load(250),
        lines in 1u64..24,
        ports in 1usize..4,
    ) {
        let device = || Linear::new(&plain(30_000.0, 2.0), 1);
        let mut parameters = small_cache(lines);
        parameters.coalesce_bytes = (COALESCE * LINE) as u32;
        parameters.ports = ports as u32;
        let mut cache = WriteCache::new(device(), &parameters);
        let mut oracle = Oracle {
            device: device(),
            capacity: lines as usize,
            clock: 0,
            dirty: BTreeMap::new(),
            clean: BTreeMap::new(),
            sent: Vec::new(),
            sent_until: 0,
            early_until: 0,
            ports_free: vec![0; ports],
            next_port: 0,
            destages: 0,
            hits: 0,
        };
        let expected: Vec<u64> =
            load.iter().map(|(now, request)| oracle.submit(*now, request)).collect();
        prop_assert_eq!(run(&mut cache, &load), expected);
        prop_assert_eq!(counter(&cache, "cache_destages"), oracle.destages);
        prop_assert_eq!(counter(&cache, "cache_read_hits"), oracle.hits);
        prop_assert_eq!(counter(&cache, "cache_dirty_lines"), oracle.dirty.len() as u64);
    }
}

/// A full cache in front of a slow device runs at the device's pace, an emptying one at its own.
#[test]
fn a_burst_is_absorbed_and_then_stalls() {
    let mut cache = WriteCache::new(Linear::new(&plain(1e6, 0.0), 1), &small_cache(100));
    let mut now = 0;
    let mut times = Vec::new();
    for i in 0..300u64 {
        // Every second line, so that nothing coalesces.
        let request = crate::support::request(Op::Write, i * 2 * LINE, LINE as u32);
        let completion = cache.submit(Nanos(now), &request).0;
        times.push(completion - now);
        now = completion;
    }
    assert!(times[..100].iter().all(|time| *time == 1_000), "absorbed");
    assert!(times[100..].iter().all(|time| *time == 1_001_000), "stalled: {:?}", &times[100..110]);
    assert_eq!(counter(&cache, "cache_stalls"), 200);
}

#[test]
fn the_background_keeps_between_its_watermarks() {
    let mut parameters = small_cache(100);
    parameters.high_watermark = 0.5;
    parameters.low_watermark = 0.2;
    let mut cache = WriteCache::new(Linear::new(&plain(10_000.0, 0.0), 1), &parameters);
    let write = |i: u64| crate::support::request(Op::Write, i * 2 * LINE, LINE as u32);
    for i in 0..51 {
        cache.submit(Nanos(i * 1_000), &write(i));
    }
    assert_eq!(counter(&cache, "cache_dirty_lines"), 51, "just above the high watermark");
    // Ten milliseconds later the background has reached the low one and stopped.
    cache.submit(Nanos(10_000_000), &write(60));
    assert_eq!(counter(&cache, "cache_dirty_lines"), 21);
    assert_eq!(counter(&cache, "cache_destaged_lines"), 31);
}

#[test]
fn an_idle_cache_empties_itself() {
    let mut parameters = small_cache(100);
    parameters.idle_destage_after_ns = Some(5_000_000.0);
    let mut cache = WriteCache::new(Linear::new(&plain(10_000.0, 0.0), 1), &parameters);
    for i in 0..20u64 {
        cache.submit(Nanos(i), &crate::support::request(Op::Write, i * LINE, LINE as u32));
    }
    let read = crate::support::request(Op::Read, 1 << 30, 4096);
    cache.submit(Nanos(4_000_000), &read);
    assert_eq!(counter(&cache, "cache_destages"), 0, "not idle for long enough");
    cache.submit(Nanos(20_000_000), &read);
    assert_eq!(counter(&cache, "cache_dirty_lines"), 0);
    assert_eq!(counter(&cache, "cache_destages"), 5, "twenty adjacent lines in writes of four");
}

#[test]
fn a_protected_cache_acknowledges_flushes() {
    let mut parameters = small_cache(100);
    let device = || Linear::new(&plain(1e6, 0.0), 1);
    let write = crate::support::request(Op::Write, 0, 4096);
    let flush = crate::support::request(Op::Flush, 0, 0);
    let mut drains = WriteCache::new(device(), &parameters);
    drains.submit(Nanos(0), &write);
    // One destage of 1 ms, then the device's flush of 30 us and 0.1 ns per byte.
    assert_eq!(drains.submit(Nanos(2_000), &flush).0, 2_000 + 1_000_000 + 30_000 + 410);
    parameters.power_loss_protected = true;
    let mut protected = WriteCache::new(device(), &parameters);
    protected.submit(Nanos(0), &write);
    assert_eq!(protected.submit(Nanos(2_000), &flush).0, 3_000);
}
