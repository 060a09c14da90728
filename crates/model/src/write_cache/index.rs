//! From line number to slot: a hash table with chains that never allocates after its creation.
//!
//! What costs time in such a table is not memory but branches that go the other way than expected.
//! So the head of a chain says in one word which slot comes first, a tag of the hash of its line
//! number, and whether there is more than one. A miss, the usual case for reads of a database, is
//! one load and one branch that is nearly always taken, whether the chain is empty or not; putting
//! a line in has no branch at all, and taking it out one. Two other tables were slower here: open
//! addressing (at a sixteenth full, one search in sixteen looks at a second entry) and words of
//! seven tags compared at once (twice the instructions). Tested against a map.

use profile::write_cache::MOST_CACHE_LINES;

/// Bits of a slot number.
const SLOT_BITS: u32 = 24;
/// Most slots: the last numbers are the caller's, and one would make a chain look empty.
const MOST_SLOTS: usize = (1 << SLOT_BITS) - 8;
const _: () = assert!(MOST_CACHE_LINES <= MOST_SLOTS, "what a profile allows can be numbered");
const SLOT: u32 = (1 << SLOT_BITS) - 1;
/// Others may follow; that they do not is certain where it is not set.
const MORE: u32 = 1 << SLOT_BITS;
/// The lowest bit of the tag. The highest one of every tag is set, so that nothing looks like
/// [`EMPTY`].
const TAG_SHIFT: u32 = SLOT_BITS + 1;
/// The end of a chain.
const EMPTY: u32 = SLOT;

/// The table.
#[derive(Clone, Debug)]
pub(super) struct Index {
    heads: Box<[u32]>,
    /// By slot, what was at the head when it came.
    rest: Box<[u32]>,
    shift: u32,
}

impl Index {
    /// A table for up to `count` slots.
    pub(super) fn new(count: usize) -> Self {
        assert!(count <= MOST_SLOTS, "slot numbers have {SLOT_BITS} bits");
        // An eighth full while that fits in a second-level cache, then a half.
        let factor = if count <= 1 << 15 { 8 } else { 2 };
        let size = (count * factor).next_power_of_two();
        Self {
            heads: vec![EMPTY; size].into_boxed_slice(),
            rest: vec![EMPTY; count].into_boxed_slice(),
            shift: 64 - size.trailing_zeros(),
        }
    }

    /// Fibonacci hashing: the high bits of the product are the home, lower ones the tag.
    #[inline]
    fn hash(key: u64) -> u64 {
        key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// The tag of a hash, where an entry has it.
    #[inline]
    fn tag(hash: u64) -> u32 {
        1 << 31 | (hash as u32) >> 2 & 0x3f << TAG_SHIFT
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize & (self.heads.len() - 1)
    }

    /// The slot of `key`, where `key_of` gives the key of a slot.
    #[inline]
    pub(super) fn find(&self, key: u64, key_of: impl Fn(u32) -> u64) -> Option<u32> {
        let hash = Self::hash(key);
        let tag = Self::tag(hash);
        let mut entry = self.heads[self.home(hash)];
        // One branch for both questions.
        let looks_alike = u32::from((entry ^ tag) >> TAG_SHIFT == 0);
        if looks_alike | entry & MORE == 0 {
            return None;
        }
        while entry != EMPTY {
            let slot = entry & SLOT;
            if (entry ^ tag) >> TAG_SHIFT == 0 && key_of(slot) == key {
                return Some(slot);
            }
            entry = self.rest[slot as usize];
        }
        None
    }

    /// Enters `slot` under `key`, which is not in the table.
    #[inline]
    pub(super) fn insert(&mut self, key: u64, slot: u32) {
        let hash = Self::hash(key);
        let head = &mut self.heads[(hash >> self.shift) as usize];
        let more = if *head == EMPTY { 0 } else { MORE };
        self.rest[slot as usize] = *head;
        *head = Self::tag(hash) | more | slot;
    }

    /// Takes out `slot`, which is in the table under `key`.
    #[inline]
    pub(super) fn remove(&mut self, key: u64, slot: u32) {
        let home = self.home(Self::hash(key));
        let head = &mut self.heads[home];
        if *head & SLOT == slot {
            *head = self.rest[slot as usize];
        } else {
            self.remove_from_chain(home, slot);
        }
    }

    #[cold]
    #[inline(never)]
    fn remove_from_chain(&mut self, home: usize, slot: u32) {
        let mut before = self.heads[home];
        loop {
            assert!(before != EMPTY, "what is removed is in the table");
            let after = self.rest[(before & SLOT) as usize];
            if after & SLOT == slot {
                self.rest[(before & SLOT) as usize] = self.rest[slot as usize];
                return;
            }
            before = after;
        }
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
        let looks = |key| (index.home(Index::hash(key)), Index::tag(Index::hash(key)));
        let twin =
            (1..10_000_000).find(|key| looks(*key) == looks(0)).expect("there are 8,192 looks");
        index.insert(twin, 3);
        assert_eq!(index.find(0, |_| twin), None);
        assert_eq!(index.find(twin, |_| twin), Some(3));
    }

    proptest! {
        #[test]
        fn holds_what_a_map_holds(
            steps in prop::collection::vec((any::<bool>(), 0usize..40), 1..600),
            // Keys far apart, keys whose tags are all equal, and keys that share two chains.
            kind in 0usize..4,
        ) {
            let mut index = Index::new(16);
            let mut keys = [0u64; 16];
            let mut free: Vec<u32> = (0..16).collect();
            let mut oracle: BTreeMap<u64, u32> = BTreeMap::new();
            let crowded = |key: &u64| index.home(Index::hash(*key)) < 2;
            let crowd: Vec<u64> = (0..).filter(crowded).take(40).collect();
            for (put, number) in steps {
                let key = match kind {
                    0 => number as u64,
                    1 => number as u64 * 256,
                    2 => (number as u64).wrapping_mul(0x1234_5678_9abc),
                    _ => crowd[number],
                };
                let found = index.find(key, |slot| keys[slot as usize]);
                prop_assert_eq!(found, oracle.get(&key).copied());
                match found {
                    Some(slot) if !put => {
                        oracle.remove(&key);
                        free.push(slot);
                        index.remove(key, slot);
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
