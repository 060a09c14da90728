//! The lines of the cache in four states: free, clean, dirty and in flight (being destaged).
//!
//! Each state but free is a queue in the order in which its lines entered it, so the head of the
//! dirty queue is the least recently written dirty line and the head of the clean queue the one
//! that has been clean the longest. The queues are exact but lazy: a line that moves on leaves its
//! old entry behind, which no longer bears the line's stamp and is skipped when it comes to the
//! front. So every queue is read and written in sequence, where linked lists would touch four
//! random nodes per move; a queue that is full of stale entries is swept, at a constant cost per
//! move in the long run. Nothing allocates after creation.

use super::index::{Index, SLOT_BITS};

/// Where a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    Free,
    Clean,
    Dirty,
    InFlight,
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
    free: Vec<u32>,
    clean: Queue,
    dirty: Queue,
    in_flight: Queue,
    counts: [usize; 4],
    index: Index,
}

impl Lines {
    /// `count` free lines.
    pub(super) fn new(count: usize) -> Self {
        assert!(count > 0, "a cache has at least one line");
        Self {
            all: vec![Line::default(); count].into_boxed_slice(),
            stamp: 0,
            free: (0..count as u32).rev().collect(),
            clean: Queue::new(count),
            dirty: Queue::new(count),
            in_flight: Queue::new(count),
            counts: [count, 0, 0, 0],
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
        self.counts[State::Dirty as usize]
    }

    /// Whether a destage is on its way.
    #[inline]
    pub(super) fn has_in_flight(&self) -> bool {
        self.counts[State::InFlight as usize] > 0
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
            1 => State::Clean,
            2 => State::Dirty,
            _ => State::InFlight,
        }
    }

    /// Makes a held line the most recently written dirty one; says whether it was dirty.
    #[inline]
    pub(super) fn make_dirty(&mut self, slot: u32) -> bool {
        let was_dirty = self.state(slot) == State::Dirty;
        self.move_to(slot, State::Dirty);
        was_dirty
    }

    /// Takes in a line that is not held, in a free slot or else that of the oldest clean line;
    /// false where there is neither.
    #[inline]
    pub(super) fn insert_dirty(&mut self, line: u64) -> bool {
        let slot = if let Some(slot) = self.free.pop() {
            slot
        } else if let Some(slot) = self.clean.front(&self.all) {
            self.forget(slot);
            slot
        } else {
            return false;
        };
        self.all[slot as usize].key = line;
        self.all[slot as usize].position = self.index.insert(line, slot);
        self.move_to(slot, State::Dirty);
        true
    }

    /// The least recently written dirty line.
    pub(super) fn oldest_dirty(&mut self) -> Option<u32> {
        self.dirty.front(&self.all)
    }

    /// Marks a dirty line as being destaged.
    pub(super) fn send(&mut self, slot: u32) {
        assert!(self.state(slot) == State::Dirty, "only dirty lines are destaged");
        self.move_to(slot, State::InFlight);
    }

    /// Everything in flight has arrived and is clean.
    pub(super) fn land(&mut self) {
        while let Some(slot) = self.in_flight.front(&self.all) {
            self.move_to(slot, State::Clean);
        }
    }

    /// Drops a held line; says whether it was dirty.
    pub(super) fn remove(&mut self, slot: u32) -> bool {
        let was_dirty = self.state(slot) == State::Dirty;
        // Free before it is forgotten: a rebuild of the index takes what is not free.
        self.move_to(slot, State::Free);
        self.free.push(slot);
        self.forget(slot);
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

    #[inline]
    fn move_to(&mut self, slot: u32, state: State) {
        self.stamp += 1;
        let entry = self.stamp << STAMP_SHIFT | (state as u64) << STATE_SHIFT | u64::from(slot);
        self.counts[self.state(slot) as usize] -= 1;
        self.counts[state as usize] += 1;
        self.all[slot as usize].latest = entry;
        match state {
            State::Free => {}
            State::Clean => self.clean.push(entry, &self.all),
            State::Dirty => self.dirty.push(entry, &self.all),
            State::InFlight => self.in_flight.push(entry, &self.all),
        }
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

    /// The slot of the oldest entry that is not stale; stale ones in front of it are dropped.
    #[inline]
    fn front(&mut self, lines: &[Line]) -> Option<u32> {
        let mask = self.ring.len() - 1;
        while self.first != self.end {
            let entry = self.ring[self.first & mask];
            let slot = slot_of(entry);
            if lines[slot as usize].latest == entry {
                return Some(slot);
            }
            self.first += 1;
        }
        None
    }
}
