//! The lines of the cache: free, clean, dirty, or in flight (being destaged).
//!
//! Three rings of lines, doubly linked by slot numbers: dirty ones in the order in which they were
//! last written, those whose destage was sent, and clean ones in the order in which they were sent.
//! Landing joins the second ring to the third in a few stores, so a line's state tells only whether
//! it is dirty. The rings have their anchors in the same array, so that linking has no branches; a
//! line is 24 bytes, and the lines of a 16 MB cache fit in the second-level cache of a processor.
//! Nothing allocates after creation.

use super::index::Index;
use crate::SnapshotError;
use crate::snapshot::{SnapshotReader, SnapshotWriter};

/// Where a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u32)]
pub(super) enum State {
    /// It holds nothing.
    #[default]
    Free,
    /// Its destage was sent; it is clean once that has landed.
    Sent,
    /// It holds what the device does not have yet.
    Dirty,
}

#[derive(Clone, Copy, Debug, Default)]
struct Line {
    key: u64,
    next: u32,
    previous: u32,
    state: State,
}

/// A ring, by the distance of its anchor from the end of the array.
#[derive(Clone, Copy, Debug)]
enum Ring {
    Dirty = 3,
    InFlight = 2,
    Clean = 1,
}

/// All lines of a cache.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    /// The lines, then the anchors of the three rings.
    all: Nodes,
    dirty_count: usize,
    free: Vec<u32>,
    index: Index,
}

#[derive(Clone, Debug)]
struct Nodes(Box<[Line]>);

impl Nodes {
    #[inline]
    fn key(&self, slot: u32) -> u64 {
        self.0[slot as usize].key
    }

    fn anchor(&self, ring: Ring) -> u32 {
        (self.0.len() - ring as usize) as u32
    }

    /// Every ring has only its anchor.
    fn empty_rings(&mut self) {
        for ring in [Ring::Dirty, Ring::InFlight, Ring::Clean] {
            let anchor = self.anchor(ring);
            self.link(anchor, anchor);
        }
    }

    #[inline]
    fn link(&mut self, before: u32, after: u32) {
        self.0[before as usize].next = after;
        self.0[after as usize].previous = before;
    }

    #[inline]
    fn unlink(&mut self, slot: u32) {
        let Line { next, previous, .. } = self.0[slot as usize];
        self.link(previous, next);
    }

    /// To the young end of a ring.
    #[inline]
    fn append(&mut self, ring: Ring, slot: u32) {
        let anchor = self.anchor(ring);
        let youngest = self.0[anchor as usize].previous;
        self.link(youngest, slot);
        self.link(slot, anchor);
    }

    #[inline]
    fn oldest(&self, ring: Ring) -> Option<u32> {
        let anchor = self.anchor(ring);
        let oldest = self.0[anchor as usize].next;
        (oldest != anchor).then_some(oldest)
    }

    /// Slots of a ring, oldest first.
    fn slots(&self, ring: Ring) -> impl Iterator<Item = u32> + '_ {
        let anchor = self.anchor(ring);
        let next = move |slot: &u32| Some(self.0[*slot as usize].next);
        std::iter::successors(next(&anchor), next).take_while(move |slot| *slot != anchor)
    }
}

impl Lines {
    /// `count` free lines.
    pub(super) fn new(count: usize) -> Self {
        assert!(count > 0, "a cache has at least one line");
        let mut all = Nodes(vec![Line::default(); count + 3].into_boxed_slice());
        all.empty_rings();
        Self {
            all,
            dirty_count: 0,
            free: (0..count as u32).rev().collect(),
            index: Index::new(count),
        }
    }

    /// Lines in all.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.all.0.len() - 3
    }

    /// Dirty lines, those in flight not counted.
    #[inline]
    pub(super) fn dirty(&self) -> usize {
        self.dirty_count
    }

    /// Whether a destage is on its way.
    #[inline]
    pub(super) fn has_in_flight(&self) -> bool {
        self.all.oldest(Ring::InFlight).is_some()
    }

    /// The slot that holds `line`.
    #[inline]
    pub(super) fn find(&self, line: u64) -> Option<u32> {
        self.index.find(line, |slot| self.all.key(slot))
    }

    /// The line that `slot` holds.
    #[inline]
    pub(super) fn key(&self, slot: u32) -> u64 {
        self.all.key(slot)
    }

    /// Where `slot` is.
    #[inline]
    pub(super) fn state(&self, slot: u32) -> State {
        self.all.0[slot as usize].state
    }

    /// Makes a held line the most recently written dirty one; says whether it was dirty.
    #[inline]
    pub(super) fn make_dirty(&mut self, slot: u32) -> bool {
        let was_dirty = self.state(slot) == State::Dirty;
        self.all.unlink(slot);
        self.dirty_count += usize::from(!was_dirty);
        self.all.0[slot as usize].state = State::Dirty;
        self.all.append(Ring::Dirty, slot);
        was_dirty
    }

    /// Takes in a line that is not held, in a free slot or else that of the oldest clean line;
    /// false where there is neither.
    #[inline]
    pub(super) fn insert_dirty(&mut self, line: u64) -> bool {
        let slot = if let Some(slot) = self.free.pop() {
            slot
        } else if let Some(slot) = self.all.oldest(Ring::Clean) {
            self.all.unlink(slot);
            self.index.remove(self.key(slot), slot);
            slot
        } else {
            return false;
        };
        self.index.insert(line, slot);
        let own = &mut self.all.0[slot as usize];
        (own.key, own.state) = (line, State::Dirty);
        self.dirty_count += 1;
        self.all.append(Ring::Dirty, slot);
        true
    }

    /// The least recently written dirty line.
    #[inline]
    pub(super) fn oldest_dirty(&self) -> Option<u32> {
        self.all.oldest(Ring::Dirty)
    }

    /// Marks a dirty line as being destaged.
    #[inline]
    pub(super) fn send(&mut self, slot: u32) {
        assert!(self.state(slot) == State::Dirty, "only dirty lines are destaged");
        self.all.unlink(slot);
        self.dirty_count -= 1;
        self.all.0[slot as usize].state = State::Sent;
        self.all.append(Ring::InFlight, slot);
    }

    /// Everything in flight has arrived and is clean.
    #[inline]
    pub(super) fn land(&mut self) {
        let (flight, clean) = (self.all.anchor(Ring::InFlight), self.all.anchor(Ring::Clean));
        let Line { next: first, previous: last, .. } = self.all.0[flight as usize];
        if first == flight {
            return;
        }
        let youngest = self.all.0[clean as usize].previous;
        self.all.link(youngest, first);
        self.all.link(last, clean);
        self.all.link(flight, flight);
    }

    /// The destage of one line has arrived; what was sent before may still be on its way.
    pub(super) fn land_one(&mut self, slot: u32) {
        assert!(self.state(slot) == State::Sent, "only what was sent lands");
        self.all.unlink(slot);
        self.all.append(Ring::Clean, slot);
    }

    /// Drops a held line; says whether it was dirty.
    pub(super) fn remove(&mut self, slot: u32) -> bool {
        let was_dirty = self.state(slot) == State::Dirty;
        self.dirty_count -= usize::from(was_dirty);
        self.all.unlink(slot);
        self.index.remove(self.key(slot), slot);
        self.all.0[slot as usize].state = State::Free;
        self.free.push(slot);
        was_dirty
    }

    /// The held lines from `first` up to but not including `end`, in the order of their slots.
    pub(super) fn held_between(&self, first: u64, end: u64) -> Vec<u64> {
        (0..self.capacity() as u32)
            .filter(|&slot| self.state(slot) != State::Free)
            .map(|slot| self.key(slot))
            .filter(|key| (first..end).contains(key))
            .collect()
    }

    /// Into a snapshot: the lines of every ring, in order. Which slot holds which
    /// line is not part of it: no answer depends on that.
    pub(super) fn save(&self, to: &mut SnapshotWriter) {
        for ring in [Ring::Dirty, Ring::InFlight, Ring::Clean] {
            to.u64s(&self.all.slots(ring).map(|slot| self.key(slot)).collect::<Vec<_>>());
        }
    }

    /// Out of one.
    pub(super) fn load(&mut self, from: &mut SnapshotReader) -> Result<(), SnapshotError> {
        *self = Self::new(self.capacity());
        for ring in [Ring::Dirty, Ring::InFlight, Ring::Clean] {
            for key in from.u64_list(self.free.len())? {
                if self.find(key).is_some() {
                    return Err(from.damaged("a line is held twice"));
                }
                let slot = self.free.pop().expect("no more keys than free slots");
                self.index.insert(key, slot);
                let is_dirty = matches!(ring, Ring::Dirty);
                let state = if is_dirty { State::Dirty } else { State::Sent };
                self.dirty_count += usize::from(is_dirty);
                self.all.0[slot as usize] = Line { key, state, ..Line::default() };
                self.all.append(ring, slot);
            }
        }
        Ok(())
    }
}
