//! The lines of the cache: free, clean, dirty, or in flight (being destaged).
//!
//! Dirty lines queue in the order in which they were written, so the head is the least recently
//! written one. Lines whose destage was sent queue in that order; those up to the last landing are
//! clean, the rest in flight. The queues are exact but lazy: a line that moves on leaves its old
//! entry behind, which no longer bears the line's stamp and is skipped when it comes to the front.
//! So a queue is read and written in sequence, where linked lists would touch four random nodes per
//! move, and landing costs nothing. A queue that is full of stale entries is swept, at a constant
//! cost per move in the long run. Nothing allocates after creation.

use super::index::{Index, SLOT_BITS};

/// Where a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// It holds nothing.
    Free,
    /// Its destage was sent; it is clean once that has landed.
    Sent,
    /// It holds what the device does not have yet.
    Dirty,
}

/// A line's latest move: stamp, state and slot in one word. Stamps count moves in 38 bits, so two
/// words are the same move unless 2.7e11 moves lie between them, which no stale entry outlives.
type Move = u64;

const STATE_SHIFT: u32 = SLOT_BITS;
const STAMP_SHIFT: u32 = SLOT_BITS + 2;

fn slot_of(entry: Move) -> u32 {
    (entry & ((1 << SLOT_BITS) - 1)) as u32
}

#[derive(Clone, Copy, Debug, Default)]
struct Line {
    key: u64,
    latest: Move,
    /// Where the index has it.
    position: u32,
}

/// All lines of a cache.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    all: Box<[Line]>,
    stamp: u64,
    /// Lines sent up to this stamp are clean.
    landed: u64,
    dirty_count: usize,
    in_flight_count: usize,
    free: Vec<u32>,
    dirty: Queue,
    sent: Queue,
    index: Index,
}

impl Lines {
    /// `count` free lines.
    pub(super) fn new(count: usize) -> Self {
        assert!(count > 0, "a cache has at least one line");
        Self {
            all: vec![Line::default(); count].into_boxed_slice(),
            stamp: 0,
            landed: 0,
            dirty_count: 0,
            in_flight_count: 0,
            free: (0..count as u32).rev().collect(),
            dirty: Queue::new(count),
            sent: Queue::new(count),
            index: Index::new(count),
        }
    }

    /// Lines in all.
    pub(super) fn capacity(&self) -> usize {
        self.all.len()
    }

    /// Dirty lines, those in flight not counted.
    #[inline]
    pub(super) fn dirty(&self) -> usize {
        self.dirty_count
    }

    /// Whether a destage is on its way.
    #[inline]
    pub(super) fn has_in_flight(&self) -> bool {
        self.in_flight_count > 0
    }

    /// The slot that holds `line`.
    #[inline]
    pub(super) fn find(&self, line: u64) -> Option<u32> {
        self.index.find(line, |slot| self.all[slot as usize].key)
    }

    /// The line that `slot` holds.
    pub(super) fn key(&self, slot: u32) -> u64 {
        self.all[slot as usize].key
    }

    /// Where `slot` is.
    #[inline]
    pub(super) fn state(&self, slot: u32) -> State {
        match self.all[slot as usize].latest >> STATE_SHIFT & 3 {
            0 => State::Free,
            1 => State::Sent,
            _ => State::Dirty,
        }
    }

    /// Makes a held line the most recently written dirty one; says whether it was dirty.
    #[inline]
    pub(super) fn make_dirty(&mut self, slot: u32) -> bool {
        let was_dirty = self.leave(slot);
        self.enter_dirty(slot);
        was_dirty
    }

    /// Takes in a line that is not held, in a free slot or else that of the oldest clean line;
    /// false where there is neither.
    #[inline]
    pub(super) fn insert_dirty(&mut self, line: u64) -> bool {
        let slot = if let Some(slot) = self.free.pop() {
            slot
        } else if let Some(entry) = self.sent.front(&self.all)
            && entry >> STAMP_SHIFT <= self.landed
        {
            self.sent.first += 1;
            let slot = slot_of(entry);
            self.forget(slot);
            slot
        } else {
            return false;
        };
        self.all[slot as usize].key = line;
        self.all[slot as usize].position = self.index.insert(line, slot);
        self.enter_dirty(slot);
        true
    }

    /// The least recently written dirty line, which the caller sends.
    #[inline]
    pub(super) fn oldest_dirty(&mut self) -> Option<u32> {
        let oldest = self.dirty.front(&self.all).map(slot_of);
        self.dirty.first += usize::from(oldest.is_some());
        oldest
    }

    /// Marks a dirty line as being destaged.
    #[inline]
    pub(super) fn send(&mut self, slot: u32) {
        let was_dirty = self.leave(slot);
        assert!(was_dirty, "only dirty lines are destaged");
        self.in_flight_count += 1;
        let entry = self.stamp_on(slot, State::Sent);
        self.sent.push(entry, &self.all);
    }

    /// Everything in flight has arrived and is clean.
    #[inline]
    pub(super) fn land(&mut self) {
        self.landed = self.stamp;
        self.in_flight_count = 0;
    }

    /// Drops a held line; says whether it was dirty.
    pub(super) fn remove(&mut self, slot: u32) -> bool {
        let was_dirty = self.leave(slot);
        self.forget(slot);
        self.stamp_on(slot, State::Free);
        self.free.push(slot);
        was_dirty
    }

    /// The held lines from `first` up to but not including `end`, in the order of their slots.
    pub(super) fn held_between(&self, first: u64, end: u64) -> Vec<u64> {
        (0..self.all.len() as u32)
            .filter(|&slot| self.state(slot) != State::Free)
            .map(|slot| self.key(slot))
            .filter(|key| (first..end).contains(key))
            .collect()
    }

    #[inline]
    fn forget(&mut self, slot: u32) {
        if self.index.remove(self.all[slot as usize].position) {
            self.rebuild(slot);
        }
    }

    #[cold]
    fn rebuild(&mut self, without: u32) {
        self.index.clear();
        for slot in 0..self.all.len() as u32 {
            if slot != without && self.state(slot) != State::Free {
                let line = &mut self.all[slot as usize];
                line.position = self.index.insert(line.key, slot);
            }
        }
    }

    /// Counts a held line out of its state; says whether that was dirty.
    #[inline]
    fn leave(&mut self, slot: u32) -> bool {
        let latest = self.all[slot as usize].latest;
        let was_dirty = self.state(slot) == State::Dirty;
        let in_flight = !was_dirty && latest >> STAMP_SHIFT > self.landed;
        self.dirty_count -= usize::from(was_dirty);
        self.in_flight_count -= usize::from(in_flight);
        was_dirty
    }

    #[inline]
    fn enter_dirty(&mut self, slot: u32) {
        self.dirty_count += 1;
        let entry = self.stamp_on(slot, State::Dirty);
        self.dirty.push(entry, &self.all);
    }

    #[inline]
    fn stamp_on(&mut self, slot: u32, state: State) -> Move {
        self.stamp += 1;
        let entry = self.stamp << STAMP_SHIFT | (state as u64) << STATE_SHIFT | u64::from(slot);
        self.all[slot as usize].latest = entry;
        entry
    }
}

/// Moves into one state, oldest first; those that a later move has overtaken are stale.
#[derive(Clone, Debug)]
struct Queue {
    ring: Box<[Move]>,
    /// Positions of the first entry and one past the last; they only grow.
    first: usize,
    end: usize,
}

impl Queue {
    fn new(count: usize) -> Self {
        // At most `count` entries are not stale, so a sweep frees at least three quarters.
        let size = (count * 4).next_power_of_two();
        Self { ring: vec![0; size].into_boxed_slice(), first: 0, end: 0 }
    }

    #[inline]
    fn push(&mut self, entry: Move, lines: &[Line]) {
        if self.end - self.first == self.ring.len() {
            self.sweep(lines);
        }
        let mask = self.ring.len() - 1;
        self.ring[self.end & mask] = entry;
        self.end += 1;
    }

    #[cold]
    fn sweep(&mut self, lines: &[Line]) {
        let mask = self.ring.len() - 1;
        let mut kept = self.first;
        for at in self.first..self.end {
            let entry = self.ring[at & mask];
            if lines[slot_of(entry) as usize].latest == entry {
                self.ring[kept & mask] = entry;
                kept += 1;
            }
        }
        self.end = kept;
    }

    /// The oldest entry that is not stale; stale ones in front of it are dropped.
    #[inline]
    fn front(&mut self, lines: &[Line]) -> Option<Move> {
        let mask = self.ring.len() - 1;
        while self.first != self.end {
            let entry = self.ring[self.first & mask];
            if lines[slot_of(entry) as usize].latest == entry {
                return Some(entry);
            }
            self.first += 1;
        }
        None
    }
}
