//! Requests in flight, found by device, command and first sector.
//!
//! Open addressing with linear probing and backward-shift deletion: the table stays as small as the
//! device's queue is deep, so it lives in the first-level cache. Requests of equal key leave in the
//! order in which they came: they share a home slot, insertion goes behind the cluster, and a
//! backward shift never passes one in front of another.

use super::MOST_IN_FLIGHT;

/// Requests of one key that may be in flight together; beyond, the oldest is given up. It bounds
/// the time of a search where completions are missing.
const MOST_ALIKE: usize = 64;
const EMPTY: u16 = u16::MAX;

/// What is looked up: sector << 3 | command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub place: u64,
    /// Index of the device, below `u16::MAX`.
    pub device: u16,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub key: Key,
    /// Bytes that have not completed.
    pub bytes: u32,
    /// Its row among the requests.
    pub row: usize,
    /// When it was issued, ns; `u64::MAX` while it waits in a queue.
    pub issued: u64,
}

/// The table.
pub(super) struct InFlight {
    slots: Vec<Entry>,
    count: usize,
    shift: u32,
}

/// Entries that `insert` gave up to keep its bounds.
pub(super) type GivenUp = u64;

const NOTHING: Entry = Entry { key: Key { place: 0, device: EMPTY }, bytes: 0, row: 0, issued: 0 };

impl Default for InFlight {
    fn default() -> Self {
        Self { slots: vec![NOTHING; 256], count: 0, shift: 64 - 8 }
    }
}

impl InFlight {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.count
    }

    #[inline]
    fn home(&self, key: Key) -> usize {
        // Fibonacci hashing: the high bits of the product depend on all bits of the key.
        let mixed = (key.place ^ (u64::from(key.device) << 56)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> self.shift) as usize
    }

    #[inline]
    fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    /// Adds an entry behind those of the same key.
    #[inline]
    pub(super) fn insert(&mut self, entry: Entry) -> GivenUp {
        let mut given_up = 0;
        if self.count * 2 >= self.slots.len() {
            given_up += self.make_room();
        }
        let mut slot = self.home(entry.key);
        let mut alike = 0;
        while self.slots[slot].key.device != EMPTY {
            alike += usize::from(self.slots[slot].key == entry.key);
            slot = self.next(slot);
        }
        if alike >= MOST_ALIKE {
            self.take_oldest(entry.key);
            return 1 + given_up + self.insert(entry);
        }
        self.slots[slot] = entry;
        self.count += 1;
        given_up
    }

    /// Removes the oldest entry of that key and size, or else the oldest of that key.
    #[inline]
    pub(super) fn take(&mut self, key: Key, bytes: u32) -> Option<Entry> {
        let mut slot = self.home(key);
        let mut oldest = None;
        loop {
            let found = &self.slots[slot];
            if found.key == key {
                if found.bytes == bytes {
                    return Some(self.remove(slot));
                }
                oldest = oldest.or(Some(slot));
            } else if found.key.device == EMPTY {
                return oldest.map(|slot| self.remove(slot));
            }
            slot = self.next(slot);
        }
    }

    #[cold]
    fn take_oldest(&mut self, key: Key) {
        let mut slot = self.home(key);
        while self.slots[slot].key != key {
            slot = self.next(slot);
        }
        self.remove(slot);
    }

    /// Empties a slot and moves what follows in its cluster one home-ward, where that is allowed.
    #[inline]
    fn remove(&mut self, mut hole: usize) -> Entry {
        let removed = self.slots[hole];
        let mask = self.slots.len() - 1;
        let mut slot = hole;
        loop {
            slot = self.next(slot);
            let entry = self.slots[slot];
            if entry.key.device == EMPTY {
                break;
            }
            // An entry may move into the hole unless its home lies behind the hole.
            let from_home = slot.wrapping_sub(self.home(entry.key)) & mask;
            let from_hole = slot.wrapping_sub(hole) & mask;
            if from_home >= from_hole {
                self.slots[hole] = entry;
                hole = slot;
            }
        }
        self.slots[hole] = NOTHING;
        self.count -= 1;
        removed
    }

    /// Doubles the table, or gives up the older half where it has its largest size.
    #[cold]
    fn make_room(&mut self) -> GivenUp {
        let mut entries: Vec<Entry> = Vec::with_capacity(self.count);
        // From an empty slot on, clusters come whole and equal keys in their order.
        let start = self.slots.iter().position(|entry| entry.key.device == EMPTY);
        let start = start.expect("the table is at most half full");
        let (tail, front) = self.slots.split_at(start);
        entries.extend(front.iter().chain(tail).filter(|entry| entry.key.device != EMPTY));
        let mut given_up = 0;
        if self.count >= MOST_IN_FLIGHT {
            // Rows are in the order of time, and unlike times never equal.
            let mut rows: Vec<usize> = entries.iter().map(|entry| entry.row).collect();
            let middle = rows.len() / 2;
            let median = *rows.select_nth_unstable(middle).1;
            entries.retain(|entry| entry.row > median);
            given_up = (self.count - entries.len()) as u64;
        } else {
            self.slots = vec![NOTHING; self.slots.len() * 2];
            self.shift -= 1;
        }
        self.slots.fill(NOTHING);
        self.count = 0;
        for entry in entries {
            self.insert(entry);
        }
        given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn entry(place: u64, row: usize) -> Entry {
        let bytes = 512 * (1 + row as u32 % 2);
        Entry { key: Key { place, device: (place % 3) as u16 }, bytes, row, issued: 0 }
    }

    proptest! {
        /// Against a list searched from its front.
        #[test]
        fn it_is_a_queue_per_key(
            steps in prop::collection::vec((0u64..40, any::<bool>()), 1..2000),
        ) {
            let mut table = InFlight::default();
            let mut list: VecDeque<Entry> = VecDeque::new();
            for (row, (place, add)) in steps.into_iter().enumerate() {
                let new = entry(place, row);
                if add {
                    let alike = list.iter().filter(|old| old.key == new.key).count();
                    if alike == MOST_ALIKE {
                        let oldest = list.iter().position(|old| old.key == new.key);
                        list.remove(oldest.expect("there"));
                    }
                    let given_up = table.insert(new);
                    prop_assert_eq!(given_up, u64::from(alike == MOST_ALIKE));
                    list.push_back(new);
                } else {
                    let same = |old: &Entry| old.key == new.key && old.bytes == new.bytes;
                    let at = list.iter().position(same);
                    let at = at.or(list.iter().position(|old| old.key == new.key));
                    let expected = at.and_then(|at| list.remove(at)).map(|old| old.row);
                    prop_assert_eq!(table.take(new.key, new.bytes).map(|old| old.row), expected);
                }
                prop_assert_eq!(table.len(), list.len());
            }
        }
    }

    #[test]
    fn the_older_half_is_given_up_when_nothing_ever_completes() {
        let mut table = InFlight::default();
        let rows = 4 * MOST_IN_FLIGHT;
        let given_up: u64 = (0..rows).map(|row| table.insert(entry(row as u64 * 8, row))).sum();
        assert!(table.len() <= MOST_IN_FLIGHT && table.len() >= MOST_IN_FLIGHT / 2);
        assert_eq!(given_up as usize + table.len(), rows);
        let newest = entry((rows as u64 - 1) * 8, 0).key;
        assert_eq!(table.take(newest, 512).map(|entry| entry.row), Some(rows - 1));
        assert!(table.take(entry(0, 0).key, 512).is_none(), "the oldest is gone");
    }
}
