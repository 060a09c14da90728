//! Writes that are answered before they are in place: memory of a controller behind a battery, and
//! md's journal in write-back mode.
//!
//! Room is counted in what the owner likes (bytes, columns). A write of a range that waits here
//! already is absorbed; a write that finds no room waits until others are in place. Writes go to
//! their places in the order they came, once more than `keep` of the room is taken or the owner
//! says that it is time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::map::Wanted;
use super::runner::Asker;

/// Dirty ranges, and who waits for room.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    room: u64,
    keep: u64,
    /// Writes to their places at a time.
    most: usize,
    used: u64,
    running: usize,
    /// Ranges that are not being written yet, in order, with their cost.
    queue: VecDeque<(Wanted, u64)>,
    queued: BTreeSet<(u64, u64)>,
    /// Ranges whose newest bytes are here: offset and length, with how often.
    dirty: BTreeMap<(u64, u64), u32>,
    /// Of the queue, how many are to be written in any case.
    due: usize,
    stalled: VecDeque<(Asker, Wanted, u64)>,
    pub absorbed: u64,
    pub hits: u64,
    pub stalls: u64,
}

impl Memory {
    pub fn new(room: u64, keep: u64, most: usize) -> Self {
        Self {
            room,
            keep,
            most,
            used: 0,
            running: 0,
            queue: VecDeque::new(),
            queued: BTreeSet::new(),
            dirty: BTreeMap::new(),
            due: 0,
            stalled: VecDeque::new(),
            absorbed: 0,
            hits: 0,
            stalls: 0,
        }
    }

    /// Whether the range lies here as a whole, as far as one write knows.
    pub fn holds(&mut self, wanted: &Wanted) -> bool {
        let before = self.dirty.range(..=(wanted.offset, u64::MAX)).next_back();
        let end = wanted.offset + wanted.bytes;
        let found = before.is_some_and(|((offset, bytes), _)| offset + bytes >= end);
        self.hits += u64::from(found);
        found
    }

    /// Takes a write in; if there is no room it waits, and this says no.
    pub fn take(&mut self, asker: Asker, wanted: Wanted, cost: u64) -> bool {
        let range = (wanted.offset, wanted.bytes);
        if self.stalled.is_empty() {
            if self.queued.contains(&range) {
                self.absorbed += 1;
                return true;
            }
            if self.used + cost <= self.room || self.used == 0 {
                self.used += cost;
                self.queue.push_back((wanted, cost));
                self.queued.insert(range);
                *self.dirty.entry(range).or_default() += 1;
                return true;
            }
        }
        self.stalls += 1;
        self.stalled.push_back((asker, wanted, cost));
        false
    }

    /// The next one that waited for room and has it now.
    pub fn admit(&mut self) -> Option<(Asker, Wanted)> {
        let (_, _, cost) = self.stalled.front()?;
        if self.used + cost > self.room && self.used > 0 {
            return None;
        }
        let (asker, wanted, cost) = self.stalled.pop_front().expect("it is there");
        let others = std::mem::take(&mut self.stalled);
        let taken = self.take(asker, wanted, cost);
        assert!(taken, "there is room");
        self.stalled = others;
        Some((asker, wanted))
    }

    /// The next range to be written to its place.
    pub fn destage(&mut self) -> Option<Wanted> {
        let is_time = self.used > self.keep || self.due > 0;
        if self.running == self.most || !is_time {
            return None;
        }
        let (wanted, _) = self.queue.pop_front()?;
        self.queued.remove(&(wanted.offset, wanted.bytes));
        self.due = self.due.saturating_sub(1);
        self.running += 1;
        Some(wanted)
    }

    /// A range is in its place.
    pub fn destaged(&mut self, wanted: &Wanted, cost: u64) {
        self.running -= 1;
        self.used -= cost;
        let range = (wanted.offset, wanted.bytes);
        let count = self.dirty.get_mut(&range).expect("it was taken in");
        *count -= 1;
        if *count == 0 {
            self.dirty.remove(&range);
        }
    }

    /// Everything in the queue is to be written.
    pub fn all_due(&mut self) {
        self.due = self.queue.len();
    }
}
