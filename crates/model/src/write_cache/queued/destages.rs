//! What the cache writes back, when, and what waits for it.

use std::collections::btree_map::Entry;

use trace::{Op, Request};
use units::{Bytes, Nanos};

use super::QueuedCache;
use crate::Device;
use crate::write_cache::DESTAGE_STREAM;
use crate::write_cache::lru::State;

/// Lines that the device writes.
#[derive(Clone, Debug)]
pub(super) struct Destage {
    pub first: u64,
    pub end: u64,
    /// Slots of requests that wait for it.
    pub waiting: Vec<u32>,
}

impl<D: Device> QueuedCache<D> {
    /// Sends what is to be written back now, up to the depth.
    pub(super) fn pump(&mut self) {
        loop {
            let dirty = self.lines.dirty();
            self.draining = dirty > if self.draining { self.low_lines } else { self.high_lines };
            let is_wanted =
                self.draining || !self.stalled.is_empty() || self.clock >= self.idle_from;
            if !is_wanted || self.destages.len() >= self.depth {
                return;
            }
            let Some(oldest) = self.lines.oldest_dirty() else { return };
            self.destage_around(self.lines.key(oldest), None);
        }
    }

    /// Destages the dirty `line` and its dirty neighbours, for which `waiting` waits.
    pub(super) fn destage_around(&mut self, line: u64, waiting: Option<u32>) {
        let mut first = line;
        while line - first + 1 < self.coalesce_lines && first > 0 && self.is_dirty(first - 1) {
            first -= 1;
        }
        let mut end = line + 1;
        while end - first < self.coalesce_lines && self.is_dirty(end) {
            end += 1;
        }
        self.sent += 1;
        for line in first..end {
            let slot = self.lines.find(line).expect("just looked up");
            self.lines.send(slot);
            self.last_of.insert(line, self.sent);
        }
        self.counts.destages += 1;
        self.counts.destaged_lines += end - first;
        if let Some(slot) = waiting {
            self.open[slot as usize].waits += 1;
        }
        let destage = Destage { first, end, waiting: waiting.into_iter().collect() };
        self.destages.insert(self.sent, destage);
        let request = Request {
            due: Nanos(self.clock),
            offset: Bytes(first << self.line_shift),
            len: ((end - first) << self.line_shift) as u32,
            op: Op::Write,
            stream: DESTAGE_STREAM,
        };
        let (now, ticket) = (Nanos(self.clock), self.sent << 1 | 1);
        self.device().arrive(now, ticket, &request);
    }

    /// Destage `number` has landed: its lines are clean, unless they were written or sent again.
    pub(super) fn landed(&mut self, number: u64) {
        let Destage { first, end, waiting } =
            self.destages.remove(&number).expect("the device has it");
        for line in first..end {
            let Entry::Occupied(last) = self.last_of.entry(line) else { continue };
            if *last.get() != number {
                continue;
            }
            last.remove();
            if let Some(slot) = self.lines.find(line)
                && self.lines.state(slot) == State::Sent
            {
                self.lines.land_one(slot);
            }
        }
        for slot in waiting {
            self.waited(slot);
        }
        // In order: the first that still finds no line keeps the others waiting.
        while let Some((slot, line)) = self.stalled.pop_front() {
            self.write(slot, line, false);
            if self.stalled.front().is_some_and(|(front, _)| *front == slot) {
                break;
            }
        }
    }
}
