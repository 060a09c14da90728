//! Copy on write: btrfs.
//!
//! Nothing is overwritten: data go to a new extent, and so does every node of a tree from the
//! changed leaf to the root. Rules (fs/btrfs, Linux 6.18):
//!
//! - Data written back become an extent per run of pages. An item of the file's tree, one of the
//!   extent tree and checksums of 4 bytes per block follow; the old extent is free when its last
//!   block is. `nodatacow` overwrites what exists, without checksums.
//! - A sync writes the data, then the changed nodes of a tree of its own, the log tree, the node
//!   above it, a flush and a super block with forced unit access.
//! - A transaction commit, every 30 s, writes the changed nodes of all trees, a flush and all super
//!   blocks, and drops the log tree. Nodes have two copies.
//! - An extent that is dirty reserves metadata of 2 x 8 levels of nodes; where that is too much for
//!   the device, dirty pages are written and, with new extents, the transaction is committed early.
//!
//! The shape of log and file trees is kept item by item, so that a log tree grows by a level where
//! the real one does: that is the whole difference between syncs of 72 and of 136 KiB
//! (`tests/it/copy_on_write.rs`).
//!
//! Simplified: one subvolume, one directory; checksums as a dense tree; five nodes of trees that
//! change with every commit; no compression, snapshots or inline files.

mod space;
mod tree;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use space::Space;
use trace::Op;
use tree::{Key, NODE_BYTES, Tree};

use super::layout::{Layout, NoSpace, Pages};
use super::log_structured::Table;
use super::map::Extent;
use super::{BLOCK_BYTES, Cause, Physical, Settings, Sync, attached_flush, flush, request};
use crate::page_cache::{DirtyPage, Span};

/// Time from the start of a transaction to its commit, ns.
const COMMIT_NS: u64 = 30_000_000_000;

/// Blocks of the longest extent: 128 MiB.
const EXTENT_BLOCKS: u64 = 32_768;

/// Blocks whose checksums fill a leaf, and an item of a log.
const CHECKSUMS: u64 = 4064;
const CHECKSUMS_PER_ITEM: u64 = 1000;

/// Nodes of the root, extent, free-space and two other trees that every commit was seen to write.
const COMMON_NODES: u64 = 5;

/// Metadata reserved for an extent: nodes of 8 levels, twice.
const RESERVED_PER_EXTENT: u64 = 2 * 8 * NODE_BYTES;

/// Reservations that a device takes at a time are a share of its capacity: 1 / this. 2000 random
/// pages of 64 MiB were written on 1 GiB in 0.93 requests each (nodatacow): some 570 at a time.
const RESERVABLE: u64 = 7;

/// A block that was allocated (fallocate) and reads as zeros.
const UNWRITTEN: u32 = 1 << 31;

const INODE_ITEM: u8 = 1;
const INODE_REF: u8 = 12;
const DIR_INDEX: u8 = 96;
const EXTENT_DATA: u8 = 108;
const EXTENT_CSUM: u8 = 128;
const EXTENT_ITEM: u8 = 168;

/// Bytes of items without their header. A name has about 8.
const INODE_BYTES: u64 = 160;
const REF_BYTES: u64 = 10 + NAME_BYTES;
const DIR_BYTES: u64 = 30 + NAME_BYTES;
const EXTENT_BYTES: u64 = 53;
const EXTENT_ITEM_BYTES: u64 = 24 + 29;
const NAME_BYTES: u64 = 8;

/// Object of checksums; that of the directory.
const CSUM_OBJECT: u64 = u64::MAX - 9;
const DIRECTORY: u64 = 256;

#[derive(Clone, Debug, Default)]
struct File {
    inode: u64,
    bytes: u64,
    pages: Table,
    /// Extents that are not in the log tree: page, block, blocks, whether they have checksums.
    to_log: Vec<(u64, u64, u64, bool)>,
    /// It was written since it was synced or committed.
    is_changed: bool,
}

/// Blocks of an extent, and how many of them are still part of a file.
#[derive(Clone, Copy, Debug)]
struct Shared {
    count: u64,
    live: u64,
}

/// btrfs.
pub(super) struct CopyOnWrite {
    settings: Settings,
    space: Space,
    files: BTreeMap<u32, File>,
    next_inode: u64,
    /// Files and directories; extents.
    file_tree: Tree,
    extent_tree: Tree,
    extents: BTreeMap<u64, Shared>,
    /// Leaves of checksums that changed.
    checksums: BTreeSet<u64>,
    log_tree: Tree,
    /// Where nodes are, oldest first.
    nodes: VecDeque<u64>,
    log_nodes: Vec<u64>,
    opened_ns: Option<u64>,
    /// Extents that were allocated since the last commit.
    reserved_extents: u64,
    /// Runs of pages that are dirty above, and the file and end of the last one.
    dirty_extents: u64,
    last_end: (u32, u64),
}

impl CopyOnWrite {
    pub fn new(settings: Settings) -> Self {
        Self {
            space: Space::new(settings.capacity_bytes),
            files: BTreeMap::new(),
            next_inode: DIRECTORY + 1,
            file_tree: Tree::default(),
            extent_tree: Tree::default(),
            extents: BTreeMap::new(),
            checksums: BTreeSet::new(),
            log_tree: Tree::default(),
            nodes: VecDeque::new(),
            log_nodes: Vec::new(),
            opened_ns: None,
            reserved_extents: 0,
            dirty_extents: 0,
            last_end: (u32::MAX, 0),
            settings,
        }
    }

    fn create(&mut self, name: u32) -> &mut File {
        let inode = self.next_inode;
        self.next_inode += 1;
        self.file_tree.put((DIRECTORY, DIR_INDEX, inode), DIR_BYTES);
        self.file_tree.put((inode, INODE_ITEM, 0), INODE_BYTES);
        self.file_tree.put((inode, INODE_REF, DIRECTORY), REF_BYTES);
        self.files.entry(name).or_insert(File { inode, ..File::default() })
    }

    /// Blocks in a row, which become an extent.
    fn allocate(&mut self, count: u64) -> Result<std::ops::Range<u64>, NoSpace> {
        let Some(range) = self.space.take(count) else {
            let [used, all] = self.space.used();
            let said = format!("no space left on btrfs: {used} of {all} data blocks are in use");
            return Err(NoSpace(said));
        };
        let count = range.end - range.start;
        self.extent_tree.put((range.start, EXTENT_ITEM, count), EXTENT_ITEM_BYTES);
        self.extents.insert(range.start, Shared { count, live: count });
        Ok(range)
    }

    /// A block is no longer part of a file.
    fn drop_block(&mut self, block: u64) {
        let (start, shared) = self.extents.range_mut(..=block).next_back().expect("an extent");
        shared.live -= 1;
        if shared.live == 0 {
            let (start, count) = (*start, shared.count);
            self.extents.remove(&start);
            self.extent_tree.remove((start, EXTENT_ITEM, count));
            self.space.give_back(start..start + count);
            if self.settings.data_cow {
                self.checksums.extend(start / CHECKSUMS..=(start + count - 1) / CHECKSUMS);
            }
        }
    }

    /// The file's tree has one extent for these pages now.
    fn put_extent(&mut self, name: u32, page: u64, count: u64) {
        let file = &self.files[&name];
        let key = |page: u64| -> Key { (file.inode, EXTENT_DATA, page) };
        let end = page + count;
        // What is left of the extent that reached behind the end has an item of its own.
        if file.pages.get(end).is_some() && !self.file_tree.has(key(end)) {
            self.file_tree.put(key(end), EXTENT_BYTES);
        }
        for inner in self.file_tree.keys_between(key(page), key(end)) {
            self.file_tree.remove(inner);
        }
        self.file_tree.put(key(page), EXTENT_BYTES);
    }

    /// Pages get content at `block` and behind.
    fn place(&mut self, name: u32, page: u64, block: u64, count: u64) {
        self.put_extent(name, page, count);
        let has_checksums = self.settings.data_cow;
        let file = self.files.get_mut(&name).expect("a file that is written exists");
        file.to_log.push((page, block, count, has_checksums));
        let mut old = Vec::new();
        for at in 0..count {
            let known = file.pages.set(page + at, (block + at) as u32);
            old.extend(known.map(|known| u64::from(known & !UNWRITTEN)));
        }
        for (old, at) in old.into_iter().zip(block..) {
            if old != at {
                self.drop_block(old);
            }
        }
        if has_checksums {
            self.checksums.extend(block / CHECKSUMS..=(block + count - 1) / CHECKSUMS);
        }
    }

    /// Whether a page is overwritten where it is.
    fn in_place(&self, name: u32, page: u64) -> Option<u32> {
        let known = self.files[&name].pages.get(page)?;
        (!self.settings.data_cow || known & UNWRITTEN != 0).then_some(known)
    }

    /// Writes a run of pages.
    fn write_run(
        &mut self,
        at_ns: u64,
        name: u32,
        run: &[DirtyPage],
        out: &mut Vec<Physical>,
    ) -> Result<(), NoSpace> {
        let mut left = run;
        while let Some(first) = left.first() {
            let known = self.in_place(name, first.page);
            // As many pages as are treated alike.
            let alike = left.iter().zip(0..EXTENT_BLOCKS as u32).take_while(|(dirty, at)| {
                let expected = known.map(|known| known + at);
                self.in_place(name, dirty.page) == expected
            });
            let mut count = alike.count();
            let block = if let Some(known) = known {
                let block = u64::from(known & !UNWRITTEN);
                if known & UNWRITTEN != 0 {
                    self.place(name, first.page, block, count as u64);
                }
                block
            } else {
                let range = self.allocate(count as u64)?;
                self.reserved_extents += 1;
                count = (range.end - range.start) as usize;
                self.place(name, first.page, range.start, count as u64);
                range.start
            };
            let (now, behind) = left.split_at(count);
            self.issue_data(at_ns, block, now, out);
            left = behind;
        }
        Ok(())
    }

    fn issue_data(&self, at_ns: u64, block: u64, pages: &[DirtyPage], out: &mut Vec<Physical>) {
        let most = self.settings.request_bytes / BLOCK_BYTES;
        for (part, at) in pages.chunks(most as usize).zip((block..).step_by(most as usize)) {
            let bytes = part.len() as u64 * BLOCK_BYTES;
            let data_bytes: u64 = part.iter().map(|dirty| dirty.data_bytes).sum();
            out.push(Physical {
                offset: self.space.offset(at),
                bytes,
                padding_bytes: bytes - data_bytes,
                ..request(at_ns, Op::Write, Cause::Data)
            });
        }
    }

    /// Writes both copies of new nodes, each copy a request.
    fn write_nodes(
        &mut self,
        at_ns: u64,
        count: u64,
        cause: Cause,
        out: &mut Vec<Physical>,
    ) -> std::ops::Range<usize> {
        let first = self.nodes.len();
        for _ in 0..count {
            let node = self.space.take_node();
            self.nodes.push_back(node);
            for offset in self.space.copies(node) {
                let bytes = NODE_BYTES;
                out.push(Physical { offset, bytes, ..request(at_ns, Op::Write, cause) });
            }
        }
        first..self.nodes.len()
    }

    /// A flush, super blocks, and forced unit access for the first of them.
    fn write_supers(&self, at_ns: u64, count: usize, cause: Cause, out: &mut Vec<Physical>) {
        flush(at_ns, out);
        for offset in self.space.supers().iter().take(count) {
            let bytes = BLOCK_BYTES;
            out.push(Physical { offset: *offset, bytes, ..request(at_ns, Op::Write, cause) });
        }
        attached_flush(at_ns, out);
    }

    /// Puts what changed of a file into the log tree.
    fn log(&mut self, name: u32) {
        let file = self.files.get_mut(&name).expect("a file that is synced exists");
        file.is_changed = false;
        self.log_tree.put((file.inode, INODE_ITEM, 0), INODE_BYTES);
        self.log_tree.put((file.inode, INODE_REF, DIRECTORY), REF_BYTES);
        for (page, block, count, has_checksums) in file.to_log.drain(..) {
            self.log_tree.put((file.inode, EXTENT_DATA, page), EXTENT_BYTES);
            if !has_checksums {
                continue;
            }
            for first in (block..block + count).step_by(CHECKSUMS_PER_ITEM as usize) {
                let blocks = CHECKSUMS_PER_ITEM.min(block + count - first);
                self.log_tree.put((CSUM_OBJECT, EXTENT_CSUM, first), 4 * blocks);
            }
        }
    }

    fn commit(&mut self, at_ns: u64, out: &mut Vec<Physical>) {
        if self.opened_ns.take().is_none() {
            return;
        }
        let changed: Vec<u64> =
            self.files.values().filter(|file| file.is_changed).map(|file| file.inode).collect();
        for inode in changed {
            self.file_tree.put((inode, INODE_ITEM, 0), INODE_BYTES);
        }
        let mut changed = self.file_tree.take_dirty() + self.extent_tree.take_dirty();
        let [used, _] = self.space.used();
        let leaves = used.div_ceil(CHECKSUMS);
        if !self.checksums.is_empty() {
            changed += self.checksums.len() as u64 + u64::from(leaves > 1);
            self.checksums.clear();
        }
        self.write_nodes(at_ns, changed + COMMON_NODES, Cause::Metadata, out);
        self.write_supers(at_ns, usize::MAX, Cause::Metadata, out);
        // What the new nodes replace is the oldest part of the trees, as far as anyone can tell.
        let all = self.file_tree.nodes() + self.extent_tree.nodes() + leaves + COMMON_NODES;
        while self.nodes.len() as u64 > all {
            let old = self.nodes.pop_front().expect("more nodes than needed");
            self.space.give_back_node(old);
        }
        for node in self.log_nodes.drain(..) {
            self.space.give_back_node(node);
        }
        self.space.committed();
        self.log_tree = Tree::default();
        for file in self.files.values_mut() {
            file.to_log.clear();
        }
        self.reserved_extents = 0;
    }

    /// Whether the reservations of this many extents are too much.
    fn is_too_much(&self, extents: u64) -> bool {
        let most = self.settings.capacity_bytes / RESERVABLE;
        most > 0 && extents * RESERVED_PER_EXTENT > most
    }
}

impl Layout for CopyOnWrite {
    fn add(&mut self, name: u32, bytes: u64, written: bool) -> Result<(), NoSpace> {
        assert!(!self.files.contains_key(&name), "a file is added once");
        self.create(name).bytes = bytes;
        let count = bytes.div_ceil(BLOCK_BYTES);
        let mut page = 0;
        while page < count {
            let range = self.allocate(EXTENT_BLOCKS.min(count - page))?;
            let flag = if written { 0 } else { UNWRITTEN };
            self.put_extent(name, page, range.end - range.start);
            let file = self.files.get_mut(&name).expect("created above");
            for block in range {
                file.pages.set(page, block as u32 | flag);
                page += 1;
            }
        }
        self.opened_ns = Some(0);
        self.commit(0, &mut Vec::new());
        Ok(())
    }

    fn file_bytes(&self, file: u32) -> u64 {
        self.files.get(&file).map_or(0, |file| file.bytes)
    }

    fn touch(&mut self, now_ns: u64, span: Span) {
        if !self.files.contains_key(&span.file) {
            self.create(span.file);
        }
        let file = self.files.get_mut(&span.file).expect("created above");
        file.bytes = file.bytes.max(span.offset + span.bytes);
        file.is_changed = true;
        self.opened_ns.get_or_insert(now_ns);
        if self.last_end != (span.file, span.offset) {
            self.dirty_extents += 1;
        }
        self.last_end = (span.file, span.offset + span.bytes);
    }

    fn find(&self, file: u32, page: u64) -> Option<Extent> {
        let pages = &self.files.get(&file)?.pages;
        let first = pages.get(page)?;
        let most = self.settings.request_bytes / BLOCK_BYTES;
        let offset = self.space.offset(u64::from(first & !UNWRITTEN));
        let follows = |count: &u64| {
            pages.get(page + count) == Some(first + *count as u32)
                && self.space.offset(u64::from(first & !UNWRITTEN) + count)
                    == offset + count * BLOCK_BYTES
        };
        let count = 1 + (1..most).take_while(follows).count() as u64;
        let block = offset / BLOCK_BYTES;
        Some(Extent { page, block, count, written: first & UNWRITTEN == 0 })
    }

    fn next_mapped(&self, file: u32, page: u64) -> Option<u64> {
        self.files.get(&file)?.pages.next(page)
    }

    fn write(&mut self, pages: Pages, out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        let Pages { at_ns, file, dirty, .. } = pages;
        for run in dirty.chunk_by(|a, b| a.page + 1 == b.page) {
            if self.is_too_much(self.reserved_extents) {
                self.commit(at_ns, out);
            }
            self.dirty_extents = self.dirty_extents.saturating_sub(1);
            self.opened_ns.get_or_insert(at_ns);
            self.write_run(at_ns, file, run, out)?;
        }
        Ok(())
    }

    fn sync(
        &mut self,
        at_ns: u64,
        name: u32,
        _sync: Sync,
        out: &mut Vec<Physical>,
    ) -> Result<(), NoSpace> {
        let file = self.files.get(&name);
        if !file.is_some_and(|file| file.is_changed || !file.to_log.is_empty()) {
            flush(at_ns, out);
            return Ok(());
        }
        self.log(name);
        // The root of the log trees is a node of its own.
        let count = self.log_tree.take_dirty() + 1;
        let written = self.write_nodes(at_ns, count, Cause::Journal, out);
        self.log_nodes.extend(self.nodes.drain(written));
        self.write_supers(at_ns, 1, Cause::Journal, out);
        Ok(())
    }

    fn wake(&mut self, now_ns: u64, out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        if let Some(at_ns) = self.opened_ns.map(|at_ns| at_ns + COMMIT_NS)
            && at_ns <= now_ns
        {
            self.commit(at_ns, out);
        }
        Ok(())
    }

    fn sync_all(&mut self, at_ns: u64, out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        self.commit(at_ns, out);
        Ok(())
    }

    fn wants_all(&self, dirty_pages: u64) -> bool {
        self.is_too_much(self.dirty_extents.min(dirty_pages))
    }

    fn audit(&self) {
        let mut live = BTreeMap::new();
        for block in self.files.values().flat_map(|file| file.pages.iter()) {
            let block = u64::from(block & !UNWRITTEN);
            let found = self.extents.range(..=block).next_back();
            let (start, shared) = found.expect("a block is in an extent");
            assert!(block < start + shared.count, "block {block} is in no extent");
            *live.entry(*start).or_insert(0) += 1;
        }
        let known: BTreeMap<u64, u64> =
            self.extents.iter().map(|(start, shared)| (*start, shared.live)).collect();
        assert_eq!(live, known, "live blocks by extent");
    }
}
