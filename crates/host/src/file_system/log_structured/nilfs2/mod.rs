//! nilfs2: one log, and checkpoints of the whole file system.
//!
//! Rules of Linux 2.6.32 (fs/nilfs2/segment.c, segment.h, file.c, inode.c):
//!
//! - A checkpoint writes, in a row, a summary, the dirty data of all files, their changed B-tree
//!   nodes of every level, then the files of metadata - inodes, checkpoints, segment usage, and
//!   the DAT - and a super root. An fsync waits for one; so does an fdatasync of a file whose
//!   inode changed.
//! - Any other fdatasync writes a summary and the dirty data of its file.
//! - A checkpoint follows 5 s after the first change, and a log of dirty data when more than 3600
//!   pages are dirty.
//! - Files map to virtual blocks, and the DAT maps these to the device. A moved block changes its
//!   DAT entry; one that is overwritten gets another entry, so that its leaf and every node above
//!   change too.
//! - The cleaner (nilfs-utils, `cleanerd`) reads whole segments and writes what lives in them, or
//!   lived within the protection period, as part of a checkpoint. Nobody else frees the DAT entries
//!   of blocks that ended: those in a segment become free with it (`nilfs_ioctl_free_vblocknrs`).
//!
//! Simplified: checkpoints, segment usage and the bitmap of inodes are one block each time; new
//! DAT entries are taken in order and reused in the order in which they became free; a file is a
//! tree as dense as one that was written from its beginning to its end.

mod cleaner;
mod dat;
mod log;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dat::{CHILDREN, DIRECT, Dat, DatPart, LEVEL_BITS, Tree};
use log::{Item, Part};
use trace::Op;

use super::segments::{Live, Shape, Store};
use super::table::Table;
use crate::file_system::layout::{Layout, NoSpace, Pages};
use crate::file_system::map::Extent;
use crate::file_system::{
    BLOCK_BYTES, Cause, Physical, Settings, Sync, attached_flush, flush, request,
};
use crate::page_cache::{DirtyPage, Span};

/// Time from the first change to a checkpoint, ns.
const TIMEOUT_NS: u64 = 5_000_000_000;

/// Dirty pages that start a log of data (`NILFS_SC_DEFAULT_WATERMARK`).
const WATERMARK: u64 = 3600;

/// Least time between two writes of the super block, ns.
const SUPERBLOCK_NS: u64 = 10_000_000_000;

/// Inodes in a block.
const INODES: u64 = 32;

/// No block.
const NONE: u32 = u32::MAX;

/// Owners of blocks beside files: inodes, checkpoints, segment usage; the DAT; moved blocks.
const INODE_FILE: u64 = 1 << 32;
const DAT_FILE: u64 = INODE_FILE + 3;
const MOVED: u64 = DAT_FILE + 2;

#[derive(Clone, Debug, Default)]
struct File {
    inode: u64,
    bytes: u64,
    tick: Option<u64>,
    /// Size or time stamps changed since the last checkpoint.
    is_inode_changed: bool,
    /// It was written since it was synced.
    is_dirty: bool,
    pages: Table,
    nodes: Tree,
}

/// The file system.
pub(in crate::file_system) struct Nilfs2 {
    settings: Settings,
    store: Store,
    reserved_segments: u32,
    /// Names of blocks of the DAT itself come first in the store, virtual blocks behind them.
    dat_names: u32,
    /// By name: what of the DAT it is.
    dat_parts: Vec<DatPart>,
    files: BTreeMap<u32, File>,
    /// Names of the inode blocks; of the checkpoints and the segment usage.
    inodes: Table,
    dirty_inodes: BTreeSet<u64>,
    usage: [u32; 2],
    dat: Dat,
    /// Virtual blocks that are no longer part of the present, and since when; still protected.
    ended: VecDeque<(u64, u32)>,
    /// DAT entries whose blocks are dead, by the segment that they lie in.
    dead: BTreeMap<u32, Vec<u32>>,
    pending: Vec<(u32, Vec<DirtyPage>)>,
    items: Vec<Item>,
    live: Vec<Live>,
    /// When the first change since the last checkpoint was made.
    changed_ns: Option<u64>,
    /// A log of data without a sync was written since the last checkpoint.
    is_unclosed: bool,
    next_superblock_ns: u64,
    next_clean_ns: u64,
    is_cleaning: bool,
    /// Blocks written, by cause: data, moved, metadata.
    written_blocks: [u64; 3],
}

impl Nilfs2 {
    pub fn new(settings: Settings) -> Self {
        let log = settings.log;
        let segment_blocks = (log.segment_bytes / BLOCK_BYTES) as u32;
        // The first segment has the super block.
        let segments =
            ((settings.capacity_bytes / log.segment_bytes).saturating_sub(1) as u32).max(1);
        let blocks = u64::from(segments) * u64::from(segment_blocks);
        let shape = Shape { segments, segment_blocks, logs: 1, holds_dead: false };
        Self {
            store: Store::new(shape),
            // 5 %, at least 8 (mkfs.nilfs2 -m).
            reserved_segments: (segments / 20).max(8),
            dat_names: (blocks / 100 + 64) as u32,
            dat_parts: Vec::new(),
            files: BTreeMap::new(),
            inodes: Table::default(),
            dirty_inodes: BTreeSet::new(),
            usage: [NONE; 2],
            dat: Dat::default(),
            ended: VecDeque::new(),
            dead: BTreeMap::new(),
            pending: Vec::new(),
            items: Vec::new(),
            live: Vec::new(),
            changed_ns: None,
            is_unclosed: false,
            next_superblock_ns: SUPERBLOCK_NS,
            next_clean_ns: log.cleaner.interval_ns,
            is_cleaning: false,
            written_blocks: [0; 3],
            settings,
        }
    }

    /// A new virtual block for what the table has at `index`; the old one ends, and is protected
    /// unless `frees`.
    fn renew(&mut self, now_ns: u64, old: Option<u32>, frees: bool) -> u32 {
        if let Some(old) = old {
            if frees {
                self.store.remove(old);
                self.dat.give_back(old - self.dat_names);
            } else {
                self.dat.change(old - self.dat_names);
                self.ended.push_back((now_ns, old));
            }
        }
        self.dat_names + self.dat.take()
    }

    /// Virtual blocks whose protection is over are dead from now on.
    fn expire(&mut self, now_ns: u64) {
        let protection_ns = self.settings.log.cleaner.protection_ns;
        while let Some((ended_ns, block)) = self.ended.front().copied() {
            if ended_ns + protection_ns > now_ns {
                break;
            }
            self.ended.pop_front();
            let entry = block - self.dat_names;
            match self.store.find(block) {
                Some(place) => {
                    let segment = place / self.store.shape().segment_blocks;
                    self.dead.entry(segment).or_default().push(entry);
                }
                None => self.dat.give_back(entry),
            }
            self.store.remove(block);
        }
    }

    /// Frees the DAT entries of the dead blocks of a segment that is cleaned.
    fn forget_dead(&mut self, segment: u32) {
        for entry in self.dead.remove(&segment).unwrap_or_default() {
            self.dat.give_back(entry);
        }
    }

    /// Adds pending data to the log.
    fn add_data(&mut self, at_ns: u64) {
        for (name, pages) in std::mem::take(&mut self.pending) {
            for page in &pages {
                let file = self.files.get_mut(&name).expect("a file that is written exists");
                let old = file.pages.get(page.page);
                file.nodes.touch(page.page);
                let block = self.renew(at_ns, old, false);
                let file = self.files.get_mut(&name).expect("a file that is written exists");
                file.pages.set(page.page, block);
                let part = Part::Data(page.data_bytes);
                let owner = u64::from(name);
                self.items.push(Item { block, owner, part, written_ns: at_ns });
            }
        }
    }

    /// Adds everything else of a checkpoint to the log: nodes, files of metadata, what the cleaner
    /// moves, the DAT, a super root.
    fn add_metadata(&mut self, at_ns: u64) {
        self.add_nodes(at_ns);
        for index in std::mem::take(&mut self.dirty_inodes) {
            let block = self.renew(at_ns, self.inodes.get(index), false);
            self.inodes.set(index, block);
            self.items.push(Item::metadata(block, INODE_FILE, at_ns));
        }
        for which in 0..2 {
            let old = Some(self.usage[which]).filter(|block| *block != NONE);
            self.usage[which] = self.renew(at_ns, old, true);
            let owner = INODE_FILE + 1 + which as u64;
            self.items.push(Item::metadata(self.usage[which], owner, at_ns));
        }
        self.expire(at_ns);
        self.add_moved();
        let mut dat = std::mem::take(&mut self.dat);
        for index in std::mem::take(&mut dat.dirty) {
            dat.tree.touch(index);
            let block = self.name_in(&mut dat.blocks, index, DatPart::Block(index));
            self.items.push(Item::metadata(block, DAT_FILE, at_ns));
        }
        dat.tree.take_dirty(|table, key| {
            let block = self.name_in(table, key, DatPart::Node(key));
            self.items.push(Item { part: Part::Node, ..Item::metadata(block, DAT_FILE, at_ns) });
        });
        self.dat = dat;
        self.items.push(Item::metadata(NONE, DAT_FILE + 1, at_ns));
        (self.changed_ns, self.is_unclosed) = (None, false);
    }

    /// Adds the changed nodes of files.
    fn add_nodes(&mut self, at_ns: u64) {
        let mut changed = Vec::new();
        for (name, file) in &mut self.files {
            if !file.nodes.dirty.is_empty() || file.is_inode_changed {
                self.dirty_inodes.insert(file.inode / INODES);
                changed.push((*name, std::mem::take(&mut file.nodes)));
            }
            (file.is_inode_changed, file.is_dirty) = (false, false);
        }
        for (name, mut nodes) in changed {
            nodes.take_dirty(|table, key| {
                let block = self.renew(at_ns, table.get(key), false);
                table.set(key, block);
                let node = Item::metadata(block, u64::from(name), at_ns);
                self.items.push(Item { part: Part::Node, ..node });
            });
            self.files.get_mut(&name).expect("a file").nodes = nodes;
        }
    }

    /// Adds what lives in the victims, as far as the checkpoint has not renewed it already.
    fn add_moved(&mut self) {
        for live in std::mem::take(&mut self.live) {
            match live.block.checked_sub(self.dat_names) {
                None => match self.dat_parts[live.block as usize] {
                    DatPart::Block(index) => {
                        self.dat.dirty.insert(index);
                    }
                    DatPart::Node(key) => {
                        // A node is rewritten with the first leaf below it.
                        let (level, node) = (key >> LEVEL_BITS, key & ((1 << LEVEL_BITS) - 1));
                        self.dat.tree.dirty.insert(node * CHILDREN.pow(level as u32));
                    }
                },
                Some(entry) if self.store.find(live.block) == Some(live.place) => {
                    self.dat.change(entry);
                    let moved = Item::metadata(live.block, MOVED, live.written_ns);
                    self.items.push(Item { part: Part::Moved, ..moved });
                }
                Some(_) => {}
            }
        }
    }

    /// The name of a block of the DAT, which keeps it for ever.
    fn name_in(&mut self, table: &mut Table, index: u64, part: DatPart) -> u32 {
        table.get(index).unwrap_or_else(|| {
            let block = self.dat_parts.len() as u32;
            assert!(block < self.dat_names, "the DAT is larger than any device needs");
            self.dat_parts.push(part);
            table.set(index, block);
            block
        })
    }

    fn offset(&self, place: u32) -> u64 {
        self.settings.log.segment_bytes + u64::from(place) * BLOCK_BYTES
    }

    /// ENOSPC of a writer: the reserve is for the cleaner.
    fn check_space(&self, blocks: u64) -> Result<(), NoSpace> {
        let shape = self.store.shape();
        let needed = (blocks + blocks / 100 + 64).div_ceil(u64::from(shape.segment_blocks));
        if u64::from(self.store.free_segments()) >= needed + u64::from(self.reserved_segments) {
            return Ok(());
        }
        Err(NoSpace(format!(
            "no space left on nilfs2: {} of {} segments are free, and {} are kept for the cleaner; \
             {} blocks live or are protected",
            self.store.free_segments(),
            shape.segments,
            self.reserved_segments,
            self.store.live_blocks(),
        )))
    }

    fn checkpoint(&mut self, at_ns: u64, out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        let pages: usize = self.pending.iter().map(|(_, pages)| pages.len()).sum();
        self.check_space(pages as u64)?;
        self.add_data(at_ns);
        self.add_metadata(at_ns);
        self.write_items(at_ns, Some(out))?;
        if at_ns >= self.next_superblock_ns {
            self.next_superblock_ns = at_ns + SUPERBLOCK_NS;
            attached_flush(at_ns, out);
            let bytes = BLOCK_BYTES;
            out.push(Physical { bytes, ..request(at_ns, Op::Write, Cause::Metadata) });
        }
        Ok(())
    }

    /// A log of data alone.
    fn write_data(&mut self, at_ns: u64, out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        let pages: usize = self.pending.iter().map(|(_, pages)| pages.len()).sum();
        self.check_space(pages as u64)?;
        self.add_data(at_ns);
        self.write_items(at_ns, Some(out))
    }

    /// Whether a sync of a file is a checkpoint.
    fn needs_checkpoint(&self, file: u32, sync: Sync) -> bool {
        let Some(file) = self.files.get(&file) else { return false };
        file.is_dirty && (sync == Sync::Fsync || file.is_inode_changed || self.is_unclosed)
    }
}

impl Layout for Nilfs2 {
    fn add(&mut self, name: u32, bytes: u64, _written: bool) -> Result<(), NoSpace> {
        let inode = self.files.len() as u64 + 11;
        let file = File { inode, bytes, is_inode_changed: true, ..File::default() };
        assert!(self.files.insert(name, file).is_none(), "a file is added once");
        let count = bytes.div_ceil(BLOCK_BYTES);
        self.check_space(count)?;
        let mut leaves = Table::default();
        for first in (0..count).step_by(CHILDREN as usize) {
            let page = |page| DirtyPage { page, data_bytes: BLOCK_BYTES, until: 0 };
            let pages = (first..count.min(first + CHILDREN)).map(page).collect();
            self.pending.push((name, pages));
            self.add_data(0);
            if count > DIRECT {
                // A leaf gets its entry while its pages do.
                let leaf = self.renew(0, None, false);
                leaves.set(first / CHILDREN, leaf);
                self.items.push(Item::metadata(leaf, u64::from(name), 0));
            }
            if self.items.len() > 1 << 16 {
                self.write_items(0, None)?;
            }
        }
        let mut nodes = std::mem::take(&mut self.files.get_mut(&name).expect("added above").nodes);
        nodes.nodes = leaves;
        nodes.take_dirty(|table, key| {
            if table.get(key).is_none() {
                let node = self.renew(0, None, false);
                table.set(key, node);
                self.items.push(Item::metadata(node, u64::from(name), 0));
            }
        });
        self.files.get_mut(&name).expect("added above").nodes = nodes;
        self.add_metadata(0);
        self.write_items(0, None)
    }

    fn file_bytes(&self, file: u32) -> u64 {
        self.files.get(&file).map_or(0, |file| file.bytes)
    }

    fn touch(&mut self, now_ns: u64, span: Span) {
        let inode = self.files.len() as u64 + 11;
        let file = self.files.entry(span.file).or_insert_with(|| File {
            inode,
            is_inode_changed: true,
            ..File::default()
        });
        let tick = Some(now_ns / self.settings.tick_ns);
        let end = span.offset + span.bytes;
        file.is_inode_changed |= file.tick != tick || end > file.bytes;
        file.tick = tick;
        file.bytes = file.bytes.max(end);
        file.is_dirty = true;
        self.changed_ns.get_or_insert(now_ns);
    }

    fn find(&self, file: u32, page: u64) -> Option<Extent> {
        let pages = &self.files.get(&file)?.pages;
        let place = |page| self.store.find(pages.get(page)?);
        let first = place(page)?;
        let most = self.settings.request_bytes / BLOCK_BYTES;
        let follows = |count: &u64| place(page + count) == first.checked_add(*count as u32);
        let count = 1 + (1..most).take_while(follows).count() as u64;
        Some(Extent { page, block: self.offset(first) / BLOCK_BYTES, count, written: true })
    }

    fn next_mapped(&self, file: u32, page: u64) -> Option<u64> {
        self.files.get(&file)?.pages.next(page)
    }

    fn write(&mut self, pages: Pages, _out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        let Pages { at_ns, file, dirty, .. } = pages;
        self.pending.push((file, dirty.to_vec()));
        self.changed_ns.get_or_insert(at_ns);
        Ok(())
    }

    fn settle(&mut self, at_ns: u64, out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.is_unclosed = true;
        self.write_data(at_ns, out)
    }

    fn sync(
        &mut self,
        at_ns: u64,
        name: u32,
        sync: Sync,
        out: &mut Vec<Physical>,
    ) -> Result<(), NoSpace> {
        if self.needs_checkpoint(name, sync) {
            self.checkpoint(at_ns, out)?;
        } else if !self.pending.is_empty() {
            self.write_data(at_ns, out)?;
        }
        if let Some(file) = self.files.get_mut(&name) {
            file.is_dirty = false;
        }
        if self.settings.log.flushes {
            flush(at_ns, out);
        }
        Ok(())
    }

    fn wake(&mut self, now_ns: u64, out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        loop {
            let timeout_ns = self.takes_all_ns().unwrap_or(u64::MAX);
            let at_ns = timeout_ns.min(self.next_clean_ns);
            if at_ns > now_ns {
                return Ok(());
            }
            if at_ns == timeout_ns {
                self.checkpoint(at_ns, out)?;
            } else {
                self.next_clean_ns = self.clean(at_ns, out)?;
            }
        }
    }

    fn sync_all(&mut self, at_ns: u64, out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        if self.changed_ns.is_some() {
            self.checkpoint(at_ns, out)?;
        }
        flush(at_ns, out);
        Ok(())
    }

    fn sync_takes_all(&self, file: u32, sync: Sync) -> bool {
        self.needs_checkpoint(file, sync)
    }

    fn takes_all_ns(&self) -> Option<u64> {
        self.changed_ns.map(|at_ns| at_ns + TIMEOUT_NS)
    }

    fn wants_all(&self, dirty_pages: u64) -> bool {
        dirty_pages > WATERMARK
    }

    fn audit(&self) {
        self.store.audit();
        let mut known = self.ended.len() + self.dat_parts.len();
        known += self.usage.iter().filter(|block| **block != NONE).count();
        let tables = self.files.values().flat_map(|file| [&file.pages, &file.nodes.nodes]);
        for table in tables.chain([&self.inodes]) {
            for block in table.iter() {
                assert!(self.store.find(block).is_some(), "virtual block {block} is nowhere");
                known += 1;
            }
        }
        assert_eq!(known as u64, self.store.live_blocks(), "blocks that something refers to");
        // What is dead keeps its entry until its segment is cleaned.
        let dead: usize = self.dead.values().map(Vec::len).sum();
        let entries = self.dat.entries as usize - self.dat.reusable.len();
        assert_eq!(known + dead, entries + self.dat_parts.len(), "entries of the DAT in use");
    }
}
