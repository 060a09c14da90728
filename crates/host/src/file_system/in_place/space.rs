//! Where things lie on the device: metadata at fixed places of every group, files in reservations
//! taken from what is left, in order.
//!
//! A group is 8 blocks x block size = 32,768 blocks of 4 KiB (128 MiB): bitmaps and 512 blocks of
//! inodes; ext4 packs those of 16 groups together (flex_bg, the default of mke2fs).

use std::ops::Range;

use super::BLOCK_BYTES;

/// Blocks of a group.
const GROUP_BLOCKS: u64 = 8 * BLOCK_BYTES;

/// Blocks of a group's bitmaps and inodes: two bitmaps, 8192 inodes of 256 bytes.
const GROUP_METADATA: u64 = 2 + INODES_PER_GROUP / INODES_PER_BLOCK;

const INODES_PER_GROUP: u64 = 8192;
const INODES_PER_BLOCK: u64 = 16;

/// Superblock and group descriptors, 64 to a block.
const HEAD_BLOCKS: u64 = 65;

/// The device as a row of blocks.
#[derive(Clone, Debug)]
pub(super) struct Space {
    /// Groups whose metadata lie together.
    together: u64,
    journal_blocks: u64,
    /// Next free block of each area that files are spread over.
    next: Vec<u64>,
    /// Blocks of an area; areas repeat along the device.
    area_blocks: u64,
}

impl Space {
    /// A device with the metadata of `together` groups in one place, a journal behind the first
    /// ones, and files spread over `areas` areas of 1 GiB (one area: all of it in order).
    pub fn new(together: u64, journal_bytes: u64, areas: usize) -> Self {
        let area_blocks = if areas > 1 { (1 << 30) / BLOCK_BYTES } else { u64::MAX };
        let next = (0..areas as u64).map(|area| area.saturating_mul(area_blocks)).collect();
        let journal_blocks = journal_bytes / BLOCK_BYTES;
        Self { together, journal_blocks, next, area_blocks }
    }

    fn zone(&self) -> u64 {
        self.together * GROUP_BLOCKS
    }

    /// The blocks of the journal.
    pub fn journal(&self) -> Range<u64> {
        let start = HEAD_BLOCKS + self.together * GROUP_METADATA;
        start..start + self.journal_blocks
    }

    /// End of the metadata that begin at or before `block`, within its zone.
    fn metadata_end(&self, block: u64) -> u64 {
        let zone = block / self.zone() * self.zone();
        if zone == 0 { self.journal().end } else { zone + self.together * GROUP_METADATA }
    }

    /// Reserves up to `blocks` blocks in a row, at least one, in an area.
    pub fn reserve(&mut self, area: usize, blocks: u64) -> Range<u64> {
        let area = area % self.next.len();
        let mut start = self.next[area];
        start = start.max(self.metadata_end(start));
        let mut end = start + blocks.max(1);
        end = end.min((start / self.zone() + 1) * self.zone());
        if self.area_blocks != u64::MAX {
            end = end.min((start / self.area_blocks + 1) * self.area_blocks);
        }
        self.next[area] = end;
        if self.area_blocks != u64::MAX && end.is_multiple_of(self.area_blocks) {
            // The next area of the same turn.
            self.next[area] = end + (self.next.len() as u64 - 1) * self.area_blocks;
        }
        start..end
    }

    /// The block bitmap that has the bit of `block`.
    pub fn bitmap_of(&self, block: u64) -> u64 {
        let zone = block / self.zone() * self.zone();
        let group = block % self.zone() / GROUP_BLOCKS;
        zone + if zone == 0 { HEAD_BLOCKS } else { 0 } + group
    }

    /// The group descriptor of `block`.
    pub fn descriptor_of(block: u64) -> u64 {
        (1 + block / GROUP_BLOCKS / 64).min(HEAD_BLOCKS - 1)
    }

    /// The block of the inode table that holds inode `number`.
    pub fn inode_block(&self, number: u64) -> u64 {
        let group = number / INODES_PER_GROUP;
        let zone = group / self.together * self.zone();
        let tables = zone + if zone == 0 { HEAD_BLOCKS } else { 0 } + 2 * self.together;
        let table = tables + group % self.together * (GROUP_METADATA - 2);
        table + number % INODES_PER_GROUP / INODES_PER_BLOCK
    }

    /// The inode bitmap that has the bit of inode `number`.
    pub fn inode_bitmap(&self, number: u64) -> u64 {
        let group = number / INODES_PER_GROUP;
        self.bitmap_of(group * GROUP_BLOCKS) + self.together
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_never_lie_on_metadata() {
        for (together, areas) in [(1, 1), (16, 1), (1, 4)] {
            let mut space = Space::new(together, 64 << 20, areas);
            let mut taken = std::collections::BTreeMap::new();
            for turn in 0..2000 {
                let range = space.reserve(turn % 4, 1 + turn as u64 * 7 % 900);
                for block in [range.start, range.end - 1] {
                    let own = space.metadata_end(block);
                    assert!(block >= own, "{together} {areas}: {block} is metadata below {own}");
                    assert!(space.bitmap_of(block) < own);
                }
                assert!(taken.insert(range.start, range.end).is_none());
            }
            let ranges: Vec<_> = taken.into_iter().collect();
            assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "ranges overlap");
            assert!(space.inode_block(12) < space.journal().start);
            assert!(space.inode_bitmap(12) < space.inode_block(0));
        }
    }
}
