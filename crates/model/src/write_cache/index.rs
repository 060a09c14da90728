//! From line number to slot: an open-addressing table that never allocates after its creation.
//!
//! Linear probing at a load of at most a half, deletion by shifting back (Knuth, The Art of
//! Computer Programming 3, algorithm 6.4 R), Fibonacci hashing. The table holds slots only; the key
//! of a slot is the caller's, so an entry is four bytes and 4096 lines fit in the first-level cache.

/// Marks an empty entry.
const EMPTY: u32 = u32::MAX;

/// The table.
#[derive(Clone, Debug)]
pub(super) struct Index {
    entries: Vec<u32>,
    mask: usize,
    shift: u32,
}

impl Index {
    /// A table for up to `count` slots.
    pub(super) fn new(count: usize) -> Self {
        let size = (count * 2).next_power_of_two().max(2);
        Self { entries: vec![EMPTY; size], mask: size - 1, shift: 64 - size.trailing_zeros() }
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// The slot of `key`, where `key_of` gives the key of a slot.
    #[inline]
    pub(super) fn find(&self, key: u64, key_of: impl Fn(u32) -> u64) -> Option<u32> {
        let mut at = self.home(key);
        loop {
            let slot = self.entries[at & self.mask];
            if slot == EMPTY {
                return None;
            }
            if key_of(slot) == key {
                return Some(slot);
            }
            at += 1;
        }
    }

    /// Enters `slot` under `key`, which is not in the table.
    #[inline]
    pub(super) fn insert(&mut self, key: u64, slot: u32) {
        let mut at = self.home(key) & self.mask;
        while self.entries[at] != EMPTY {
            at = (at + 1) & self.mask;
        }
        self.entries[at] = slot;
    }

    /// Takes `slot`, entered under `key`, out.
    #[inline]
    pub(super) fn remove(&mut self, key: u64, slot: u32, key_of: impl Fn(u32) -> u64) {
        let mut hole = self.home(key) & self.mask;
        while self.entries[hole] != slot {
            assert!(self.entries[hole] != EMPTY, "only slots in the table are removed");
            hole = (hole + 1) & self.mask;
        }
        let mut at = hole;
        loop {
            at = (at + 1) & self.mask;
            let moved = self.entries[at];
            if moved == EMPTY {
                break;
            }
            // An entry may move back into the hole unless its home lies between the two.
            let distance_home = at.wrapping_sub(self.home(key_of(moved))) & self.mask;
            let distance_hole = at.wrapping_sub(hole) & self.mask;
            if distance_home >= distance_hole {
                self.entries[hole] = moved;
                hole = at;
            }
        }
        self.entries[hole] = EMPTY;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::Index;

    proptest! {
        #[test]
        fn holds_what_a_map_holds(
            steps in prop::collection::vec((any::<bool>(), 0u64..40), 1..400),
        ) {
            let mut index = Index::new(16);
            let mut keys = [0u64; 16];
            let mut free: Vec<u32> = (0..16).collect();
            let mut oracle = BTreeMap::new();
            for (put, key) in steps {
                let found = index.find(key, |slot| keys[slot as usize]);
                prop_assert_eq!(found, oracle.get(&key).copied());
                match found {
                    Some(slot) if !put => {
                        index.remove(key, slot, |slot| keys[slot as usize]);
                        oracle.remove(&key);
                        free.push(slot);
                    }
                    None if put => {
                        let Some(slot) = free.pop() else { continue };
                        keys[slot as usize] = key;
                        index.insert(key, slot);
                        oracle.insert(key, slot);
                    }
                    _ => {}
                }
            }
        }
    }
}
