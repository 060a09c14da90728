//! From line number to slot: an open-addressing table that never allocates after its creation.
//!
//! What costs time in such a table is not memory but branches that go the other way than expected:
//! a search that does not end at its first entry. So the table is sparse, and an entry holds 8 bits
//! of the hashed line number beside the slot, so that a miss, the usual case for reads of a
//! database, touches nothing but the table. The caller remembers where an entry stands and removes
//! it by position, which leaves a tombstone; once there are as many tombstones as slots the table is
//! built anew, which is a nanosecond per removal. Tested against a map.

/// An entry that nothing was put in since the last rebuild.
const EMPTY: u32 = u32::MAX;
/// An entry that something was taken out of.
const TOMBSTONE: u32 = u32::MAX - 1;
/// Bits of a slot number.
pub(super) const SLOT_BITS: u32 = 24;
/// Most slots: the last two numbers would make an entry look empty.
pub(super) const MOST_SLOTS: usize = (1 << SLOT_BITS) - 2;

/// The table.
#[derive(Clone, Debug)]
pub(super) struct Index {
    entries: Box<[u32]>,
    shift: u32,
    tombstones: usize,
    most_tombstones: usize,
}

impl Index {
    /// A table for up to `count` slots.
    pub(super) fn new(count: usize) -> Self {
        assert!(count <= MOST_SLOTS, "slot numbers have {SLOT_BITS} bits");
        // A sixteenth full while that fits in a second-level cache, then a quarter.
        let factor = if count <= 1 << 15 { 16 } else { 4 };
        let size = (count * factor).next_power_of_two();
        Self {
            entries: vec![EMPTY; size].into_boxed_slice(),
            shift: 64 - size.trailing_zeros(),
            tombstones: 0,
            most_tombstones: count,
        }
    }

    /// Fibonacci hashing: the high bits of the product are the home, the low ones the tag.
    #[inline]
    fn hash(key: u64) -> u64 {
        key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// The tag of a hash, where an entry has it.
    #[inline]
    fn tag(hash: u64) -> u32 {
        (hash as u32) << SLOT_BITS
    }

    /// The slot of `key`, where `key_of` gives the key of a slot.
    #[inline]
    pub(super) fn find(&self, key: u64, key_of: impl Fn(u32) -> u64) -> Option<u32> {
        let hash = Self::hash(key);
        let mut at = (hash >> self.shift) as usize;
        loop {
            let entry = self.entries[at & (self.entries.len() - 1)];
            if entry == EMPTY {
                return None;
            }
            if (entry ^ Self::tag(hash)) >> SLOT_BITS == 0 && entry != TOMBSTONE {
                let slot = entry & ((1 << SLOT_BITS) - 1);
                if key_of(slot) == key {
                    return Some(slot);
                }
            }
            at += 1;
        }
    }

    /// Enters `slot` under `key`, which is not in the table, and says where.
    #[inline]
    pub(super) fn insert(&mut self, key: u64, slot: u32) -> u32 {
        let hash = Self::hash(key);
        let mut at = (hash >> self.shift) as usize;
        while self.entries[at & (self.entries.len() - 1)] < TOMBSTONE {
            at += 1;
        }
        at &= self.entries.len() - 1;
        self.tombstones -= usize::from(self.entries[at] == TOMBSTONE);
        self.entries[at] = Self::tag(hash) | slot;
        at as u32
    }

    /// Takes out what stands at `position`; true where the table should be built anew.
    #[inline]
    pub(super) fn remove(&mut self, position: u32) -> bool {
        self.entries[position as usize] = TOMBSTONE;
        self.tombstones += 1;
        self.tombstones > self.most_tombstones
    }

    /// Takes everything out.
    pub(super) fn clear(&mut self) {
        self.entries.fill(EMPTY);
        self.tombstones = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::Index;

    /// Keys with one home and one tag are told apart by asking for the key itself.
    #[test]
    fn keys_that_look_alike_are_told_apart() {
        let mut index = Index::new(16);
        let looks = |key| (Index::hash(key) >> index.shift, Index::tag(Index::hash(key)));
        let twin =
            (1..10_000_000).find(|key| looks(*key) == looks(0)).expect("there are 65,536 looks");
        index.insert(twin, 3);
        assert_eq!(index.find(0, |_| twin), None);
        assert_eq!(index.find(twin, |_| twin), Some(3));
    }

    proptest! {
        #[test]
        fn holds_what_a_map_holds(
            steps in prop::collection::vec((any::<bool>(), 0u64..40), 1..600),
            // Keys whose tags are all equal, and keys whose tags are not.
            stride in prop::sample::select(vec![1u64, 256, 1 << 40, 0x1234_5678_9abc]),
        ) {
            let mut index = Index::new(16);
            let mut keys = [0u64; 16];
            let mut positions = [0u32; 16];
            let mut free: Vec<u32> = (0..16).collect();
            let mut oracle: BTreeMap<u64, u32> = BTreeMap::new();
            for (put, key) in steps {
                let key = key.wrapping_mul(stride);
                let found = index.find(key, |slot| keys[slot as usize]);
                prop_assert_eq!(found, oracle.get(&key).copied());
                match found {
                    Some(slot) if !put => {
                        oracle.remove(&key);
                        free.push(slot);
                        if index.remove(positions[slot as usize]) {
                            index.clear();
                            for (&key, &slot) in &oracle {
                                positions[slot as usize] = index.insert(key, slot);
                            }
                        }
                    }
                    None if put => {
                        let Some(slot) = free.pop() else { continue };
                        keys[slot as usize] = key;
                        positions[slot as usize] = index.insert(key, slot);
                        oracle.insert(key, slot);
                    }
                    _ => {}
                }
            }
        }
    }
}
