//! Where data and nodes lie on the device, and what of it is free.
//!
//! The device is cut into turns of two metadata chunks, which are copies of each other (DUP, the
//! default of mkfs on one device), and a data chunk. Super blocks lie at 64 KiB, 64 MiB and
//! 256 GiB. What becomes free can be written again after the next transaction commit.

use std::collections::BTreeMap;
use std::ops::Range;

use super::tree::NODE_BYTES;
use crate::file_system::BLOCK_BYTES;

/// Bytes before the first chunk.
const HEAD_BYTES: u64 = 1 << 20;

/// A data chunk is this many metadata chunks.
const DATA_SHARE: u64 = 8;

/// First bytes of the super blocks.
const SUPERS: [u64; 3] = [64 << 10, 64 << 20, 256 << 30];

/// Free extents that one allocation looks at before it takes fresh space.
const LOOKS: usize = 64;

/// Blocks that a table of pages has numbers for.
const MOST_BLOCKS: u64 = 1 << 31;

/// Space of a device.
#[derive(Clone, Debug)]
pub(super) struct Space {
    chunk_bytes: u64,
    /// Blocks for data; without a capacity as many as there are numbers for.
    blocks: u64,
    supers: usize,
    /// By first block: free blocks in a row, below `fresh`.
    free: BTreeMap<u64, u64>,
    fresh: u64,
    pinned: Vec<Range<u64>>,
    free_nodes: Vec<u64>,
    fresh_node: u64,
    pinned_nodes: Vec<u64>,
    used_blocks: u64,
}

impl Space {
    /// A device of `capacity_bytes`; 0 for one that is large enough.
    pub fn new(capacity_bytes: u64) -> Self {
        let known = if capacity_bytes == 0 { u64::MAX } else { capacity_bytes };
        let chunk_bytes = (known / 20).clamp(16 << 20, 256 << 20) / (1 << 20) * (1 << 20);
        let turns = known.saturating_sub(HEAD_BYTES) / ((2 + DATA_SHARE) * chunk_bytes);
        let blocks = turns.saturating_mul(DATA_SHARE * chunk_bytes / BLOCK_BYTES);
        Self {
            chunk_bytes,
            blocks: blocks.min(MOST_BLOCKS),
            supers: if capacity_bytes == 0 {
                2
            } else {
                SUPERS.iter().filter(|start| **start < capacity_bytes).count()
            },
            free: BTreeMap::new(),
            fresh: 0,
            pinned: Vec::new(),
            free_nodes: Vec::new(),
            fresh_node: 0,
            pinned_nodes: Vec::new(),
            used_blocks: 0,
        }
    }

    /// First bytes of the super blocks of this device.
    pub fn supers(&self) -> &'static [u64] {
        &SUPERS[..self.supers]
    }

    /// Blocks in use, and all of them.
    pub fn used(&self) -> [u64; 2] {
        [self.used_blocks, self.blocks]
    }

    /// First byte of a data block.
    pub fn offset(&self, block: u64) -> u64 {
        let in_chunk = DATA_SHARE * self.chunk_bytes / BLOCK_BYTES;
        let turn = (2 + DATA_SHARE) * self.chunk_bytes;
        let start = HEAD_BYTES + block / in_chunk * turn + 2 * self.chunk_bytes;
        start + block % in_chunk * BLOCK_BYTES
    }

    /// Data blocks from `block` to the end of its chunk.
    fn left_in_chunk(&self, block: u64) -> u64 {
        let in_chunk = DATA_SHARE * self.chunk_bytes / BLOCK_BYTES;
        in_chunk - block % in_chunk
    }

    /// First bytes of the two copies of a node.
    pub fn copies(&self, node: u64) -> [u64; 2] {
        let in_chunk = self.chunk_bytes / NODE_BYTES;
        let turn = (2 + DATA_SHARE) * self.chunk_bytes;
        let first = HEAD_BYTES + node / in_chunk * turn + node % in_chunk * NODE_BYTES;
        [first, first + self.chunk_bytes]
    }

    /// Up to `count` blocks in a row, at least one; `None` where the device is full.
    pub fn take(&mut self, count: u64) -> Option<Range<u64>> {
        let fits = self.free.iter().take(LOOKS).find(|(_, free)| **free >= count);
        let found = fits.map(|(start, free)| (*start, *free));
        let range = if let Some((start, free)) = found {
            self.free.remove(&start);
            if free > count {
                self.free.insert(start + count, free - count);
            }
            start..start + count
        } else if self.fresh < self.blocks {
            let start = self.fresh;
            let end = self.blocks.min(start + count.min(self.left_in_chunk(start)));
            self.fresh = end;
            start..end
        } else {
            // Only pieces are left.
            let (start, free) = self.free.pop_first()?;
            let taken = free.min(count);
            if free > taken {
                self.free.insert(start + taken, free - taken);
            }
            start..start + taken
        };
        self.used_blocks += range.end - range.start;
        Some(range)
    }

    /// Blocks are in no use after the next commit.
    pub fn give_back(&mut self, range: Range<u64>) {
        self.pinned.push(range);
    }

    /// A place for a node.
    pub fn take_node(&mut self) -> u64 {
        loop {
            let node = self.free_nodes.pop().unwrap_or_else(|| {
                self.fresh_node += 1;
                self.fresh_node - 1
            });
            let is_super = |offset: u64| {
                SUPERS.iter().any(|start| (offset..offset + NODE_BYTES).contains(start))
            };
            if !self.copies(node).into_iter().any(is_super) {
                return node;
            }
        }
    }

    /// A node is in no use after the next commit.
    pub fn give_back_node(&mut self, node: u64) {
        self.pinned_nodes.push(node);
    }

    /// A transaction is on the device.
    pub fn committed(&mut self) {
        for range in std::mem::take(&mut self.pinned) {
            let (mut start, mut count) = (range.start, range.end - range.start);
            self.used_blocks -= count;
            // Free extents grow together within a chunk.
            let in_chunk = DATA_SHARE * self.chunk_bytes / BLOCK_BYTES;
            if !range.end.is_multiple_of(in_chunk) {
                count += self.free.remove(&range.end).unwrap_or(0);
            }
            let before = self.free.range(..start).next_back().map(|(at, free)| (*at, *free));
            if let Some((at, free)) = before
                && at + free == start
                && !start.is_multiple_of(in_chunk)
            {
                (start, count) = (at, free + count);
            }
            self.free.insert(start, count);
        }
        self.free_nodes.append(&mut self.pinned_nodes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Nothing is given twice, nothing is lost, and all of it can be used again.
        #[test]
        fn what_is_free_is_free_once(
            steps in prop::collection::vec(
                (prop_oneof![1_u64..4, 1_u64..40_000], any::<bool>(), any::<bool>()),
                1..80,
            ),
        ) {
            let mut space = Space::new(1 << 30);
            let [_, all] = space.used();
            let mut held: Vec<Range<u64>> = Vec::new();
            for (count, gives, commits) in steps {
                if gives && !held.is_empty() {
                    space.give_back(held.swap_remove(count as usize % held.len()));
                } else if let Some(range) = space.take(count) {
                    prop_assert!(range.end <= all && !range.is_empty());
                    let ends = [space.offset(range.start), space.offset(range.end - 1)];
                    let bytes = (range.end - range.start - 1) * BLOCK_BYTES;
                    prop_assert_eq!(ends[0] + bytes, ends[1], "in one chunk");
                    prop_assert!(ends[1] + BLOCK_BYTES <= 1 << 30);
                    let is_apart =
                        |other: &Range<u64>| other.end <= range.start || range.end <= other.start;
                    prop_assert!(held.iter().all(is_apart), "{:?} twice", range);
                    held.push(range);
                }
                if commits {
                    space.committed();
                }
            }
            space.committed();
            let used: u64 = held.iter().map(|range| range.end - range.start).sum();
            prop_assert_eq!(space.used(), [used, all]);
            let mut left = all - used;
            while let Some(range) = space.take(1 << 20) {
                left -= range.end - range.start;
            }
            prop_assert_eq!(left, 0);
        }
    }
}
