//! The lines of the cache in four lists: free, clean, dirty and in flight (being destaged).
//!
//! Each list is in the order in which its lines entered it, so the head of the dirty list is the
//! least recently written dirty line and the head of the clean list the one that has been clean the
//! longest. Every operation is O(1) in the number of lines, and nothing allocates after creation.

use super::index::Index;

/// Where a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    Free,
    Clean,
    Dirty,
    InFlight,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    previous: u32,
    next: u32,
}

/// All lines of a cache.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    /// One node per line, then one sentinel per list.
    nodes: Vec<Node>,
    states: Vec<State>,
    counts: [usize; 4],
    index: Index,
}

impl Lines {
    /// `count` free lines.
    pub(super) fn new(count: usize) -> Self {
        assert!(count > 0 && count < u32::MAX as usize - 4, "between one line and 2^32");
        let mut nodes = vec![Node { key: 0, previous: 0, next: 0 }; count + 4];
        for list in count..count + 4 {
            nodes[list].previous = list as u32;
            nodes[list].next = list as u32;
        }
        let mut this = Self {
            nodes,
            states: vec![State::Free; count],
            counts: [0; 4],
            index: Index::new(count),
        };
        for slot in 0..count as u32 {
            this.append(slot, State::Free);
        }
        this
    }

    /// Lines in all.
    pub(super) fn capacity(&self) -> usize {
        self.states.len()
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
        self.index.find(line, |slot| self.nodes[slot as usize].key)
    }

    /// The line that `slot` holds.
    pub(super) fn key(&self, slot: u32) -> u64 {
        self.nodes[slot as usize].key
    }

    /// Where `slot` is.
    #[inline]
    pub(super) fn state(&self, slot: u32) -> State {
        self.states[slot as usize]
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
        let slot = if let Some(slot) = self.head(State::Free) {
            slot
        } else if let Some(slot) = self.head(State::Clean) {
            self.forget(slot);
            slot
        } else {
            return false;
        };
        self.nodes[slot as usize].key = line;
        self.index.insert(line, slot);
        self.move_to(slot, State::Dirty);
        true
    }

    /// The least recently written dirty line.
    pub(super) fn oldest_dirty(&self) -> Option<u32> {
        self.head(State::Dirty)
    }

    /// Marks a dirty line as being destaged.
    pub(super) fn send(&mut self, slot: u32) {
        assert!(self.state(slot) == State::Dirty, "only dirty lines are destaged");
        self.move_to(slot, State::InFlight);
    }

    /// Everything in flight has arrived and is clean.
    pub(super) fn land(&mut self) {
        while let Some(slot) = self.head(State::InFlight) {
            self.move_to(slot, State::Clean);
        }
    }

    /// Drops a held line; says whether it was dirty.
    pub(super) fn remove(&mut self, slot: u32) -> bool {
        let was_dirty = self.state(slot) == State::Dirty;
        self.forget(slot);
        self.move_to(slot, State::Free);
        was_dirty
    }

    /// The held lines from `first` up to but not including `end`, in the order of their slots.
    pub(super) fn held_between(&self, first: u64, end: u64) -> Vec<u64> {
        let held = self.states.iter().zip(&self.nodes);
        held.filter(|(state, node)| **state != State::Free && (first..end).contains(&node.key))
            .map(|(_, node)| node.key)
            .collect()
    }

    fn forget(&mut self, slot: u32) {
        let nodes = &self.nodes;
        let key = nodes[slot as usize].key;
        self.index.remove(key, slot, |slot| nodes[slot as usize].key);
    }

    #[inline]
    fn sentinel(&self, list: State) -> usize {
        self.states.len() + list as usize
    }

    #[inline]
    fn head(&self, list: State) -> Option<u32> {
        let first = self.nodes[self.sentinel(list)].next;
        ((first as usize) < self.states.len()).then_some(first)
    }

    #[inline]
    fn move_to(&mut self, slot: u32, list: State) {
        let Node { previous, next, .. } = self.nodes[slot as usize];
        self.nodes[previous as usize].next = next;
        self.nodes[next as usize].previous = previous;
        self.counts[self.states[slot as usize] as usize] -= 1;
        self.append(slot, list);
    }

    #[inline]
    fn append(&mut self, slot: u32, list: State) {
        let sentinel = self.sentinel(list);
        let last = self.nodes[sentinel].previous;
        self.nodes[slot as usize].previous = last;
        self.nodes[slot as usize].next = sentinel as u32;
        self.nodes[last as usize].next = slot;
        self.nodes[sentinel].previous = slot;
        self.states[slot as usize] = list;
        self.counts[list as usize] += 1;
    }
}
