//! The log of xfs: items of what changed, formatted in memory and written by a log force in
//! sectors of 512 bytes, one of them the header of the record
//! (Documentation/filesystems/xfs-delayed-logging-design.rst).
//!
//! An inode is about 150 bytes and fits a sector, so that a small commit is 1 KiB. What a creation
//! and a new extent log was counted on Linux 6.18 with the defaults of mkfs (xfsprogs 6.1): 2 KiB
//! for an allocation (free-space trees, group header), 2 KiB for a creation (directory, inode
//! tree), 18 KiB for a chunk of 64 inodes.

use std::collections::BTreeSet;

use trace::Op;

use super::{Cause, InPlace, Physical, attached_flush, request};

const SECTOR: u64 = 512;

/// Inodes that are allocated together.
const CHUNK: u64 = 64;

/// What changed since the last force.
#[derive(Clone, Debug, Default)]
pub(super) struct Items {
    inodes: BTreeSet<u64>,
    /// Bytes of other items.
    bytes: u64,
    created: u64,
    /// Where the next sector of the log goes, from its start.
    head: u64,
}

impl Items {
    pub fn inode(&mut self, inode: u64) {
        self.inodes.insert(inode);
    }

    pub fn allocation(&mut self) {
        self.bytes += 2 << 10;
    }

    pub fn create(&mut self) {
        if self.created % CHUNK == CHUNK - 1 {
            self.bytes += 18 << 10;
        }
        self.created += 1;
        self.bytes += 2 << 10;
    }
}

impl InPlace {
    /// Writes what changed to the log, with a flush before and after; a flush alone where nothing
    /// did would be the caller's.
    pub(super) fn force_log(&mut self, at_ns: u64, out: &mut Vec<Physical>) {
        let inodes = std::mem::take(&mut self.items.inodes).len() as u64;
        let items = std::mem::take(&mut self.items.bytes) + inodes * SECTOR;
        if items == 0 {
            return;
        }
        let ring = self.settings.journal_bytes;
        let mut left = (SECTOR + items).next_multiple_of(SECTOR);
        attached_flush(at_ns, out);
        while left > 0 {
            let bytes = left.min(ring - self.items.head).min(self.settings.request_bytes);
            let offset = self.space.journal().start * super::BLOCK_BYTES + self.items.head;
            out.push(Physical { offset, bytes, ..request(at_ns, Op::Write, Cause::Journal) });
            self.items.head = (self.items.head + bytes) % ring;
            left -= bytes;
        }
        attached_flush(at_ns, out);
        for file in self.files.values_mut() {
            (file.is_changed, file.is_touched) = (false, false);
        }
    }
}
