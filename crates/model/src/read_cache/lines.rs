//! The lines of a read cache: which are present, and which one goes next.
//!
//! One array of slots for both policies: LRU links them in the order of their last use, CLOCK
//! sweeps them in the order of their numbers. Free slots are taken first. Tested through the cache.

use std::collections::BTreeMap;

use profile::read_cache::ReadPolicy;

use crate::SnapshotError;
use crate::snapshot::{SnapshotReader, SnapshotWriter};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Slot {
    line: u64,
    /// When its data were fetched, ns.
    fetched: u64,
    /// LRU: neighbours in use; the anchor is the last slot.
    older: u32,
    newer: u32,
    /// CLOCK: read since the hand came by.
    used: bool,
}

/// The lines.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    slots: Vec<Slot>,
    /// Slots that hold nothing, the next one last.
    free: Vec<u32>,
    by_line: BTreeMap<u64, u32>,
    policy: ReadPolicy,
    hand: u32,
}

impl Lines {
    /// `count` lines, at least one.
    pub(super) fn new(count: usize, policy: ReadPolicy) -> Self {
        let anchor = Slot { older: count as u32, newer: count as u32, ..Slot::default() };
        let mut slots = vec![Slot::default(); count];
        slots.push(anchor);
        let free = (0..count as u32).rev().collect();
        Self { slots, free, by_line: BTreeMap::new(), policy, hand: 0 }
    }

    fn anchor(&self) -> u32 {
        self.slots.len() as u32 - 1
    }

    /// Whether `line` is present.
    pub(super) fn holds(&self, line: u64) -> bool {
        self.by_line.contains_key(&line)
    }

    /// Lines of `span` that are present.
    pub(super) fn present_in(&self, span: std::ops::Range<u64>) -> Vec<u64> {
        self.by_line.range(span).map(|(line, _)| *line).collect()
    }

    /// Uses `line`, which is present; gives when its data were fetched, ns.
    pub(super) fn touch(&mut self, line: u64) -> u64 {
        let slot = self.by_line[&line];
        self.slots[slot as usize].used = true;
        self.unlink(slot);
        self.append(slot);
        self.slots[slot as usize].fetched
    }

    /// `line` was fetched by `fetched`; it takes the place of another where all are taken. Data
    /// that were there before stay as old as they are.
    pub(super) fn fetch(&mut self, line: u64, fetched: u64) {
        if self.holds(line) {
            self.touch(line);
            return;
        }
        let slot = self.free.pop().unwrap_or_else(|| self.evict());
        self.slots[slot as usize] = Slot { line, fetched, ..Slot::default() };
        self.by_line.insert(line, slot);
        self.append(slot);
    }

    /// Drops `line`, which is present.
    pub(super) fn forget(&mut self, line: u64) {
        let slot = self.by_line.remove(&line).expect("a line that is present");
        self.unlink(slot);
        self.free.push(slot);
    }

    /// Drops the line that goes next; gives its slot.
    fn evict(&mut self) -> u32 {
        let slot = match self.policy {
            ReadPolicy::Lru => self.slots[self.anchor() as usize].newer,
            ReadPolicy::Clock => self.sweep(),
        };
        self.by_line.remove(&self.slots[slot as usize].line);
        self.unlink(slot);
        slot
    }

    /// Moves the hand to a line that was not used since it came by, which it does within two
    /// rounds.
    fn sweep(&mut self) -> u32 {
        loop {
            let slot = self.hand;
            self.hand = if slot + 1 == self.anchor() { 0 } else { slot + 1 };
            if !std::mem::take(&mut self.slots[slot as usize].used) {
                return slot;
            }
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { older, newer, .. } = self.slots[slot as usize];
        self.slots[older as usize].newer = newer;
        self.slots[newer as usize].older = older;
    }

    /// Makes `slot` the one used last. Seen from the anchor, `newer` is the oldest one.
    fn append(&mut self, slot: u32) {
        let anchor = self.anchor();
        let youngest = self.slots[anchor as usize].older;
        self.slots[youngest as usize].newer = slot;
        self.slots[anchor as usize].older = slot;
        (self.slots[slot as usize].older, self.slots[slot as usize].newer) = (youngest, anchor);
    }

    /// Into a snapshot: lines in the order of their use, each with its slot; then the free ones.
    pub(super) fn save(&self, to: &mut SnapshotWriter) {
        to.u64(self.by_line.len() as u64);
        let mut slot = self.slots[self.anchor() as usize].newer;
        while slot != self.anchor() {
            let Slot { line, fetched, used, newer, older: _ } = self.slots[slot as usize];
            to.u64s(&[u64::from(slot), line, fetched, u64::from(used)]);
            slot = newer;
        }
        for slot in &self.free {
            to.u64(u64::from(*slot));
        }
        to.u64(u64::from(self.hand));
    }

    /// Out of one.
    pub(super) fn load(&mut self, from: &mut SnapshotReader) -> Result<(), SnapshotError> {
        let count = self.slots.len() - 1;
        *self = Self::new(count, self.policy);
        self.free.clear();
        let present = from.below(count + 1)?;
        for _ in 0..present {
            let [slot, line, fetched, used] = from.array()?;
            if slot >= count as u64 || self.by_line.insert(line, slot as u32).is_some() {
                return Err(from.damaged("a line of the cache is in two places"));
            }
            self.slots[slot as usize] = Slot { line, fetched, used: used != 0, ..Slot::default() };
            self.append(slot as u32);
        }
        for _ in present..count {
            self.free.push(from.below(count)? as u32);
        }
        self.hand = from.below(count)? as u32;
        Ok(())
    }
}
