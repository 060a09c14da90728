//! The shape of a B-tree of btrfs: which items are in which leaf, and which nodes changed.
//!
//! Nodes are 16 KiB with a header of 101 bytes; an item in a leaf has a header of 25, and a node
//! points to up to 493 children (Linux 6.18, include/uapi/linux/btrfs_tree.h). A full leaf gives
//! items to its neighbours; where these are full too, it is split in the middle (fs/btrfs/ctree.c).

use std::collections::BTreeMap;
use std::ops::Bound::{self, Excluded, Unbounded};

/// Bytes of a node.
pub(super) const NODE_BYTES: u64 = 16 << 10;

/// Bytes for items in a leaf.
const LEAF_BYTES: u64 = NODE_BYTES - 101;

/// Bytes of an item's header.
const ITEM_BYTES: u64 = 25;

/// Children of a node that is no leaf.
const CHILDREN: usize = 493;

/// Object, type, offset.
pub(super) type Key = (u64, u8, u64);

#[derive(Clone, Debug, Default)]
struct Leaf {
    /// By key: bytes with the header.
    items: BTreeMap<Key, u64>,
    bytes: u64,
    is_dirty: bool,
}

impl Leaf {
    /// Takes items from the beginning or end of a neighbour while there is room; returns the least
    /// key of what it took.
    fn take_from(&mut self, other: &mut Self, from_start: bool) -> Option<Key> {
        let mut least = None;
        while other.items.len() > 1 {
            let entry = if from_start {
                other.items.first_key_value()
            } else {
                other.items.last_key_value()
            };
            let (key, bytes) = entry.map(|(key, bytes)| (*key, *bytes)).expect("several items");
            if self.bytes + bytes > LEAF_BYTES {
                break;
            }
            other.items.remove(&key);
            other.bytes -= bytes;
            self.items.insert(key, bytes);
            self.bytes += bytes;
            self.is_dirty = true;
            least = Some(least.map_or(key, |least: Key| least.min(key)));
        }
        least
    }
}

/// A tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    /// By first key; the first one has the least key there is.
    leaves: BTreeMap<Key, Leaf>,
}

impl Tree {
    fn leaf_of(&mut self, key: Key) -> (Key, &mut Leaf) {
        if self.leaves.is_empty() {
            self.leaves.insert((0, 0, 0), Leaf::default());
        }
        let (first, leaf) = self.leaves.range_mut(..=key).next_back().expect("a first leaf");
        (*first, leaf)
    }

    /// Inserts an item of `bytes`, or changes it.
    pub fn put(&mut self, key: Key, bytes: u64) {
        let (first, leaf) = self.leaf_of(key);
        let whole = bytes + ITEM_BYTES;
        leaf.bytes = leaf.bytes + whole - leaf.items.insert(key, whole).unwrap_or(0);
        leaf.is_dirty = true;
        if leaf.bytes > LEAF_BYTES {
            self.make_room(first);
        }
    }

    /// Makes room in a leaf that is too full: moves items to the leaf behind, then to the one
    /// before; where neither has room, the second half of the items gets a leaf of its own.
    fn make_room(&mut self, first: Key) {
        let mut leaf = self.leaves.remove(&first).expect("the leaf that is full");
        if let Some((key, mut behind)) = self.neighbour((Excluded(first), Unbounded), false) {
            let key = behind.take_from(&mut leaf, false).unwrap_or(key);
            self.leaves.insert(key, behind);
        }
        let mut key = first;
        if leaf.bytes > LEAF_BYTES
            && let Some((before, mut other)) = self.neighbour((Unbounded, Excluded(first)), true)
        {
            if other.take_from(&mut leaf, true).is_some() {
                key = *leaf.items.first_key_value().expect("half of a leaf stays").0;
            }
            self.leaves.insert(before, other);
        }
        if leaf.bytes > LEAF_BYTES {
            let at = *leaf.items.keys().nth(leaf.items.len().div_ceil(2)).expect("several items");
            let items = leaf.items.split_off(&at);
            let bytes = items.values().sum();
            leaf.bytes -= bytes;
            self.leaves.insert(at, Leaf { items, bytes, is_dirty: true });
        }
        self.leaves.insert(key, leaf);
    }

    /// Takes out the first or last leaf of a range.
    fn neighbour(&mut self, keys: (Bound<Key>, Bound<Key>), last: bool) -> Option<(Key, Leaf)> {
        let mut range = self.leaves.range(keys);
        let key = *if last { range.next_back() } else { range.next() }?.0;
        self.leaves.remove_entry(&key)
    }

    /// Removes an item, where there is one.
    pub fn remove(&mut self, key: Key) {
        let (first, leaf) = self.leaf_of(key);
        let Some(bytes) = leaf.items.remove(&key) else { return };
        leaf.bytes -= bytes;
        leaf.is_dirty = true;
        if leaf.items.is_empty() && first != (0, 0, 0) {
            self.leaves.remove(&first);
            // The parent changes, and with it the leaf before in what is counted.
            self.leaf_of(key).1.is_dirty = true;
        }
    }

    /// Whether there is such an item.
    pub fn has(&self, key: Key) -> bool {
        let leaf = self.leaves.range(..=key).next_back();
        leaf.is_some_and(|(_, leaf)| leaf.items.contains_key(&key))
    }

    /// Keys of items between two keys, the second one excluded.
    pub fn keys_between(&self, from: Key, to: Key) -> Vec<Key> {
        let before = self.leaves.range(..=from).next_back().map_or(from, |(first, _)| *first);
        let leaves = self.leaves.range(before..to);
        leaves.flat_map(|(_, leaf)| leaf.items.range(from..to).map(|(key, _)| *key)).collect()
    }

    /// Nodes of all levels.
    pub fn nodes(&self) -> u64 {
        let (mut sum, mut level) = (self.leaves.len(), self.leaves.len());
        while level > 1 {
            level = level.div_ceil(CHILDREN);
            sum += level;
        }
        sum as u64
    }

    /// Nodes that changed since the last time, with those above them up to the root.
    pub fn take_dirty(&mut self) -> u64 {
        let mut dirty: Vec<usize> = Vec::new();
        for (rank, leaf) in self.leaves.values_mut().enumerate() {
            if std::mem::take(&mut leaf.is_dirty) {
                dirty.push(rank);
            }
        }
        let (mut sum, mut level) = (dirty.len(), self.leaves.len());
        while level > 1 && !dirty.is_empty() {
            for rank in &mut dirty {
                *rank /= CHILDREN;
            }
            dirty.dedup();
            sum += dirty.len();
            level = level.div_ceil(CHILDREN);
        }
        sum as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_leaf_is_split_when_it_is_full() {
        let mut tree = Tree::default();
        // 16283 / (53 + 25) = 208 items.
        (0..208).for_each(|at| tree.put((1, 108, at), 53));
        assert_eq!((tree.nodes(), tree.take_dirty()), (1, 1));
        // Two halves and a root.
        tree.put((1, 108, 208), 53);
        assert_eq!((tree.nodes(), tree.take_dirty()), (3, 3));
        tree.put((1, 108, 209), 53);
        assert_eq!(tree.take_dirty(), 2);
        tree.put((1, 108, 5), 53);
        tree.put((1, 108, 209), 53);
        assert_eq!((tree.nodes(), tree.take_dirty()), (3, 3));
        // Behind the end: what is full moves to the left, so that leaves stay full.
        (210..208 * 500).for_each(|at| tree.put((1, 108, at), 53));
        assert!((500..=502).contains(&tree.leaves.len()), "{} leaves", tree.leaves.len());
        assert_eq!(tree.nodes(), tree.leaves.len() as u64 + 2 + 1);
        assert!(tree.take_dirty() >= 500);
        assert_eq!(tree.take_dirty(), 0);
    }

    proptest! {
        #[test]
        fn a_tree_is_a_map(steps in prop::collection::vec((0_u64..90, 0_u64..4000), 1..200)) {
            let (mut tree, mut map) = (Tree::default(), BTreeMap::new());
            for (at, bytes) in steps {
                let key = (1, 1, at);
                if bytes < 800 {
                    tree.remove(key);
                    map.remove(&key);
                } else {
                    tree.put(key, bytes);
                    map.insert(key, bytes);
                }
                let keys = tree.keys_between((1, 1, 20), (1, 1, 70));
                let known = map.range((1, 1, 20)..(1, 1, 70)).map(|(key, _)| *key);
                prop_assert_eq!(keys, known.collect::<Vec<_>>());
                (0..90).for_each(|at| {
                    assert_eq!(tree.has((1, 1, at)), map.contains_key(&(1, 1, at)));
                });
                for leaf in tree.leaves.values() {
                    prop_assert_eq!(leaf.bytes, leaf.items.values().sum::<u64>());
                    prop_assert!(leaf.bytes <= LEAF_BYTES);
                }
                let needed = map.values().map(|bytes| bytes + ITEM_BYTES).sum::<u64>();
                prop_assert!(tree.leaves.len() as u64 >= needed.div_ceil(LEAF_BYTES));
            }
        }
    }
}
