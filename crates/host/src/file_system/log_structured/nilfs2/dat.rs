//! Trees of nodes above the blocks of files, and the DAT, which maps virtual blocks to the device.

use std::collections::{BTreeSet, VecDeque};

use crate::file_system::log_structured::table::Table;

/// Children of a node, and of the root in the inode; blocks that an inode maps without nodes.
pub(super) const CHILDREN: u64 = 255;
const ROOT_CHILDREN: u64 = 3;
pub(super) const DIRECT: u64 = 7;

/// Entries of the DAT in a block, and blocks of entries behind one bitmap.
const ENTRIES: u64 = 128;
const GROUP: u64 = 256;

/// A node is a level above this many bits of a number.
pub(super) const LEVEL_BITS: u32 = 40;

/// The nodes above the blocks of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    /// By level and number.
    pub nodes: Table,
    /// Leaves that changed.
    pub dirty: BTreeSet<u64>,
    /// Blocks of the file.
    pub blocks: u64,
}

impl Tree {
    /// A block of the file moved or is new.
    pub fn touch(&mut self, block: u64) {
        self.blocks = self.blocks.max(block + 1);
        self.dirty.insert(block / CHILDREN);
    }

    /// Takes the changed nodes of all levels, leaves first, as keys of the table.
    pub fn take_dirty(&mut self, mut each: impl FnMut(&mut Table, u64)) {
        let mut dirty = std::mem::take(&mut self.dirty);
        let mut count = if self.blocks > DIRECT { self.blocks.div_ceil(CHILDREN) } else { 0 };
        let mut level = 0;
        while count > 0 && !dirty.is_empty() {
            for node in &dirty {
                each(&mut self.nodes, level << LEVEL_BITS | node);
            }
            if count <= ROOT_CHILDREN {
                break;
            }
            count = count.div_ceil(CHILDREN);
            dirty = dirty.into_iter().map(|node| node / CHILDREN).collect();
            level += 1;
        }
    }
}

/// The map of virtual blocks: which entries are in use, and what of it changed.
#[derive(Clone, Debug, Default)]
pub(super) struct Dat {
    /// Entries that were ever in use.
    pub entries: u32,
    pub reusable: VecDeque<u32>,
    pub tree: Tree,
    pub blocks: Table,
    pub dirty: BTreeSet<u64>,
}

impl Dat {
    /// The block of the DAT that has an entry; a bitmap stands before every group of blocks, and a
    /// descriptor before all of them.
    pub fn block_of(entry: u32) -> u64 {
        let block = u64::from(entry) / ENTRIES;
        2 + block / GROUP * (GROUP + 1) + block % GROUP
    }

    pub fn change(&mut self, entry: u32) {
        self.dirty.insert(Self::block_of(entry));
    }

    pub fn change_bitmap(&mut self, entry: u32) {
        self.change(entry);
        let group = u64::from(entry) / ENTRIES / GROUP;
        self.dirty.extend([0, 1 + group * (GROUP + 1)]);
    }

    pub fn take(&mut self) -> u32 {
        let entry = self.reusable.pop_front().unwrap_or_else(|| {
            self.entries += 1;
            self.entries - 1
        });
        self.change_bitmap(entry);
        entry
    }

    pub fn give_back(&mut self, entry: u32) {
        self.change_bitmap(entry);
        self.reusable.push_back(entry);
    }
}

/// A block of the DAT, or a node above its blocks.
#[derive(Clone, Copy, Debug)]
pub(super) enum DatPart {
    Block(u64),
    Node(u64),
}
