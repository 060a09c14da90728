//! Blocks in the order of their last touch, which can be asked both ways: how deep is this block,
//! and which block is that deep.
//!
//! A Fenwick tree over the times of last touches (Olken, LBL-12370, 1981) gives the first answer by
//! a prefix sum and the second by a descent. Times are renumbered when they run out, so memory is
//! in proportion to the blocks. Tested against a list.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use stats::rng::mix;

use super::tally::Tally;

/// A block of a stream.
pub(super) type Key = (u16, u64);

/// Where in its block a request began; `None` where none did.
pub(super) type Start = Option<u16>;

/// Hashes keys by [`mix`]: they are numbers, and no one chooses them to collide.
#[derive(Default)]
pub(super) struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0.rotate_left(20) ^ value.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
}

/// Blocks by the time of their last touch.
pub(super) struct Recency {
    slots: HashMap<Key, (u32, Start), BuildHasherDefault<Mixer>>,
    /// The block of each time that is the last of its block.
    keys: Vec<Key>,
    live: Tally,
}

const FIRST_CAPACITY: usize = 256;

impl Recency {
    pub fn new() -> Self {
        Self { slots: HashMap::default(), keys: Vec::new(), live: Tally::empty(FIRST_CAPACITY) }
    }

    /// Distinct blocks.
    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// Where a request began in that block, if the block was ever touched.
    pub fn known(&self, key: Key) -> Option<Start> {
        self.slots.get(&key).map(|(_, start)| *start)
    }

    /// Blocks touched since that one was; `None` where it never was.
    pub fn depth(&self, key: Key) -> Option<u32> {
        let (slot, _) = self.slots.get(&key)?;
        Some(self.live.total() - self.live.below(*slot as usize + 1))
    }

    /// The block that `depth` others were touched after.
    pub fn at(&self, depth: u32) -> Option<(Key, Start)> {
        let rank = self.live.total().checked_sub(depth + 1)?;
        let key = self.keys[self.live.find(rank)];
        Some((key, self.slots[&key].1))
    }

    /// Touches a block; `start` says where in it a request begins, if one does.
    pub fn touch(&mut self, key: Key, start: Start) {
        if self.keys.len() == self.live.capacity() {
            self.renumber();
        }
        let slot = self.keys.len() as u32;
        self.keys.push(key);
        self.live.add(slot as usize);
        let entry = self.slots.entry(key).or_insert((u32::MAX, None));
        if entry.0 != u32::MAX {
            self.live.remove(entry.0 as usize);
        }
        *entry = (slot, start.or(entry.1));
    }

    fn renumber(&mut self) {
        let mut keys = Vec::with_capacity(self.slots.len() * 2);
        for (slot, key) in self.keys.iter().enumerate() {
            let place = self.slots.get_mut(key).expect("every key has a slot");
            if place.0 as usize == slot {
                place.0 = keys.len() as u32;
                keys.push(*key);
            }
        }
        let capacity = (keys.len() * 2).max(FIRST_CAPACITY).next_power_of_two();
        self.live = Tally::full(keys.len(), capacity);
        self.keys = keys;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn agrees_with_a_list(
            touches in prop::collection::vec((0u16..2, 0u64..40, any::<bool>()), 1..900),
        ) {
            let mut recency = Recency::new();
            let mut list: Vec<(Key, Start)> = Vec::new();
            for (at, (stream, block, starts)) in touches.into_iter().enumerate() {
                let key = (stream, block);
                let start = starts.then_some(at as u16);
                let depth = list.iter().rev().position(|(other, _)| *other == key);
                prop_assert_eq!(recency.depth(key), depth.map(|depth| depth as u32));
                let mut kept = None;
                if let Some(depth) = depth {
                    kept = list.remove(list.len() - 1 - depth).1;
                }
                list.push((key, start.or(kept)));
                recency.touch(key, start);
                prop_assert_eq!(recency.count(), list.len());
                let middle = list.len() / 2;
                prop_assert_eq!(recency.at(middle as u32), Some(list[list.len() - 1 - middle]));
                prop_assert_eq!(recency.at(list.len() as u32), None);
                prop_assert_eq!(recency.known(key), Some(start.or(kept)));
            }
        }
    }
}
