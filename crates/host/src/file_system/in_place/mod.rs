//! File systems that overwrite files in place: ext2 to ext4, and xfs.
//!
//! What they share: the map of a file, reservations, time stamps that change once a tick, and
//! metadata that are written home later. The journal of ext, and what ext2 does without one, are in
//! `ext.rs`, the log of xfs in `log_items.rs`.

mod ext;
mod log_items;
mod space;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use space::Space;
use trace::Op;

use super::layout::{Layout, NoSpace, Pages};
use super::map::{Extent, Map};
use super::{
    BLOCK_BYTES, Cause, Journal, Kind, Physical, Settings, Sync, attached_flush, flush, request,
};
use crate::page_cache::{DirtyPage, Span};

/// Time between two wake-ups of the commit timer and of the write-back of metadata, ns.
const WAKE_NS: u64 = 5_000_000_000;

/// Age at which metadata that a journal keeps safe are written home, ns.
const EXPIRE_NS: u64 = 30_000_000_000;

/// One file.
#[derive(Clone, Debug, Default)]
struct File {
    inode: u64,
    map: Map,
    bytes: u64,
    /// Size that the inode has, as far as it was written back.
    bytes_on_device: u64,
    /// Blocks that were set aside for it and hold nothing yet.
    reserved: Range<u64>,
    /// Blocks of the map: the indirect ones by their sequence number, and the one above them.
    indirect: BTreeMap<u64, u64>,
    /// Tick of its last change.
    tick: Option<u64>,
    /// Time stamps changed since the last commit.
    is_touched: bool,
    /// A change that fdatasync must make durable: size, blocks, existence.
    is_changed: bool,
    /// Blocks that a sync without a journal has to write for it.
    own_metadata: BTreeSet<u64>,
}

/// ext2 to ext4 and xfs.
pub(super) struct InPlace {
    settings: Settings,
    space: Space,
    files: BTreeMap<u32, File>,
    next_inode: u64,
    /// Entries in the directory.
    entries: u64,
    directory: Vec<u64>,
    journal: ext::JournalState,
    items: log_items::Items,
    /// Metadata to be written home, with the time since when; under a journal only committed ones.
    home: BTreeMap<u64, u64>,
    next_wake_ns: u64,
}

impl InPlace {
    /// An empty one.
    pub fn new(settings: Settings) -> Self {
        let (together, areas) = match settings.kind {
            Kind::Ext4 => (16, 1),
            Kind::Xfs => (1, 4),
            _ => (1, 1),
        };
        Self {
            space: Space::new(together, settings.journal_bytes, areas),
            files: BTreeMap::new(),
            next_inode: 12,
            entries: 0,
            directory: Vec::new(),
            journal: ext::JournalState::default(),
            items: log_items::Items::default(),
            home: BTreeMap::new(),
            next_wake_ns: WAKE_NS,
            settings,
        }
    }

    fn has_indirect_blocks(&self) -> bool {
        matches!(self.settings.kind, Kind::Ext2 | Kind::Ext3)
    }

    fn inode_changed(&mut self, now_ns: u64, file: u32, inode: u64) {
        let block = self.space.inode_block(inode);
        if self.settings.kind == Kind::Xfs {
            self.items.inode(inode);
            self.home.entry(block).or_insert(now_ns);
        } else {
            self.metadata(now_ns, block);
            self.files.get_mut(&file).expect("a file").own_metadata.insert(block);
        }
    }

    fn create(&mut self, now_ns: u64, name: u32) {
        let inode = self.next_inode;
        self.next_inode += 1;
        let file = File { inode, is_changed: true, ..File::default() };
        self.files.insert(name, file);
        if self.settings.kind == Kind::Xfs {
            self.items.create();
        } else {
            self.create_in_place(now_ns, name, inode);
        }
        self.inode_changed(now_ns, name, inode);
    }

    /// Blocks of the pages in runs that are one request each; allocates and changes metadata.
    fn place(&mut self, at_ns: u64, name: u32, pages: &[DirtyPage]) -> Vec<Run> {
        if !self.files.contains_key(&name) {
            self.create(at_ns, name);
        }
        let most = self.settings.request_bytes / BLOCK_BYTES;
        let mut runs: Vec<Run> = Vec::new();
        // Pages that were written before mostly lie in few extents; these do not move.
        let mut known: Option<Extent> = None;
        let mut next_page = None;
        for dirty in pages {
            let inside = known.filter(|extent| extent.holds(dirty.page));
            known = inside.or_else(|| {
                let found = self.files.get(&name)?.map.find(dirty.page);
                found.filter(|extent| extent.written)
            });
            let block = match known {
                Some(extent) => extent.block + (dirty.page - extent.page),
                None => self.block_for(at_ns, name, dirty.page),
            };
            match runs.last_mut() {
                Some(run)
                    if next_page == Some(dirty.page)
                        && run.block + run.count == block
                        && run.count < most =>
                {
                    run.count += 1;
                    run.data_bytes += dirty.data_bytes;
                }
                _ => runs.push(Run { block, count: 1, data_bytes: dirty.data_bytes }),
            }
            next_page = Some(dirty.page + 1);
        }
        let until = pages.last().map_or(0, |page| page.until);
        let file = self.files.get_mut(&name).expect("created above");
        file.bytes = file.bytes.max(until);
        if until > file.bytes_on_device {
            file.bytes_on_device = until;
            file.is_changed = true;
            let inode = file.inode;
            self.inode_changed(at_ns, name, inode);
        }
        runs
    }

    fn block_for(&mut self, at_ns: u64, name: u32, page: u64) -> u64 {
        let file = self.files.get_mut(&name).expect("a file that is written exists");
        let inode = file.inode;
        if let Some(extent) = file.map.find(page) {
            if file.map.mark_written(page) {
                file.is_changed = true;
                self.inode_changed(at_ns, name, inode);
            }
            return extent.block;
        }
        file.is_changed = true;
        if self.has_indirect_blocks() {
            self.map_indirect(at_ns, name, page);
        }
        let block = self.allocate(name);
        let file = self.files.get_mut(&name).expect("a file that is written exists");
        file.map.insert(Extent { page, block, count: 1, written: true });
        self.inode_changed(at_ns, name, inode);
        if self.settings.kind != Kind::Xfs {
            self.metadata(at_ns, self.space.bitmap_of(block));
            self.metadata(at_ns, Space::descriptor_of(block));
        }
        block
    }

    /// The next block of a file's reservation, which is made where there is none.
    fn allocate(&mut self, name: u32) -> u64 {
        let file = self.files.get_mut(&name).expect("a file that grows exists");
        if file.reserved.is_empty() {
            let size = (file.bytes / BLOCK_BYTES).max(1).next_power_of_two();
            let (least, most) = match self.settings.kind {
                // Rounded up to 16 KiB .. 8 MiB (mballoc's normalisation).
                Kind::Ext4 => (4, 2048),
                // Speculative preallocation: 64 KiB, doubling with the file.
                Kind::Xfs => {
                    self.items.allocation();
                    (16, 1 << 16)
                }
                // ext2 and ext3: windows of 8 blocks that double.
                _ => (8, 1024),
            };
            let blocks = size.clamp(least, most);
            file.reserved = self.space.reserve(file.inode as usize, blocks);
        }
        let block = file.reserved.start;
        file.reserved.start += 1;
        block
    }

    /// Writes the metadata home that are due since `since_ns` or longer; neighbours together.
    fn write_home(&mut self, at_ns: u64, since_ns: u64, out: &mut Vec<Physical>) {
        let due: Vec<u64> =
            self.home.iter().filter(|(_, at)| **at <= since_ns).map(|(block, _)| *block).collect();
        for block in &due {
            self.home.remove(block);
        }
        if !self.settings.is_journalled() && self.settings.kind != Kind::Xfs {
            for file in self.files.values_mut() {
                file.own_metadata.retain(|block| self.home.contains_key(block));
            }
        }
        let most = self.settings.request_bytes / BLOCK_BYTES;
        for run in due.chunk_by(|a, b| a + 1 == *b) {
            for part in run.chunks(most as usize) {
                let (offset, bytes) = (part[0] * BLOCK_BYTES, part.len() as u64 * BLOCK_BYTES);
                out.push(Physical { offset, bytes, ..request(at_ns, Op::Write, Cause::Metadata) });
            }
        }
    }
}

impl Layout for InPlace {
    /// Adds a file of `bytes` that was there before, all of it with content (`written`) or only
    /// allocated (fallocate). Costs no I/O. ext2 and ext3 fill what they allocate.
    fn add(&mut self, file: u32, bytes: u64, written: bool) -> Result<(), NoSpace> {
        let inode = self.next_inode;
        self.next_inode += 1;
        let written = written || self.has_indirect_blocks();
        let mut made = File { inode, bytes, bytes_on_device: bytes, ..File::default() };
        let pages = bytes.div_ceil(BLOCK_BYTES);
        let mut page = 0;
        while page < pages {
            let mut count = pages - page;
            if self.has_indirect_blocks() {
                count = count.min(ext::pages_to_next_indirect(page));
                let area = inode as usize;
                ext::add_indirect(&mut made, page, || self.space.reserve(area, 1).start);
            }
            let blocks = self.space.reserve(inode as usize, count);
            let count = blocks.end - blocks.start;
            made.map.insert(Extent { page, block: blocks.start, count, written });
            page += count;
        }
        assert!(self.files.insert(file, made).is_none(), "a file is added once");
        Ok(())
    }

    /// Size of a file, 0 where it does not exist.
    fn file_bytes(&self, file: u32) -> u64 {
        self.files.get(&file).map_or(0, |file| file.bytes)
    }

    /// A caller wrote `span`, at `now_ns`: the file exists, is so long, and has a new time stamp.
    fn touch(&mut self, now_ns: u64, span: Span) {
        if !self.files.contains_key(&span.file) {
            self.create(now_ns, span.file);
        }
        let tick = now_ns / self.settings.tick_ns;
        let file = self.files.get_mut(&span.file).expect("created above");
        file.bytes = file.bytes.max(span.offset + span.bytes);
        if file.tick != Some(tick) {
            (file.tick, file.is_touched) = (Some(tick), true);
            let inode = file.inode;
            self.inode_changed(now_ns, span.file, inode);
        }
    }

    /// Writes pages of a file back, allocating blocks for those that have none.
    fn write(&mut self, pages: Pages, out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        let Pages { at_ns, file, dirty: pages, .. } = pages;
        let runs = self.place(at_ns, file, pages);
        if self.settings.journal == Journal::Data {
            self.commit(at_ns, pages.len() as u64, out);
        }
        for Run { block, count, data_bytes } in runs {
            let bytes = count * BLOCK_BYTES;
            let padding_bytes = bytes - data_bytes;
            let offset = block * BLOCK_BYTES;
            out.push(Physical {
                offset,
                bytes,
                padding_bytes,
                ..request(at_ns, Op::Write, Cause::Data)
            });
        }
        Ok(())
    }

    /// Makes a file durable whose pages were written back; `at_ns` never falls.
    fn sync(
        &mut self,
        at_ns: u64,
        name: u32,
        sync: Sync,
        out: &mut Vec<Physical>,
    ) -> Result<(), NoSpace> {
        let Some(file) = self.files.get(&name) else {
            flush(at_ns, out);
            return Ok(());
        };
        let wanted = file.is_changed || (sync == Sync::Fsync && file.is_touched);
        if self.settings.kind == Kind::Xfs {
            if wanted { self.force_log(at_ns, out) } else { flush(at_ns, out) }
        } else if !self.settings.is_journalled() {
            self.write_own_metadata(name, at_ns, out);
            flush(at_ns, out);
        } else if wanted {
            self.commit_for(at_ns, name, out);
        } else {
            flush(at_ns, out);
        }
        Ok(())
    }

    /// Does what timers ask for until `now_ns`: commits every 5 s, metadata home after 30 s.
    fn wake(&mut self, now_ns: u64, out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        while self.next_wake_ns <= now_ns {
            let at_ns = self.next_wake_ns;
            if self.settings.kind == Kind::Xfs {
                self.force_log(at_ns, out);
            } else if self.settings.is_journalled() {
                self.commit(at_ns, 0, out);
            }
            if let Some(since_ns) = at_ns.checked_sub(EXPIRE_NS) {
                self.write_home(at_ns, since_ns, out);
            }
            self.next_wake_ns += WAKE_NS;
            if self.home.is_empty() && self.next_wake_ns <= now_ns {
                let rest = (now_ns - self.next_wake_ns) / WAKE_NS;
                self.next_wake_ns += rest * WAKE_NS;
            }
        }
        Ok(())
    }

    /// Writes home everything, as sync(2) and an unmount do.
    fn sync_all(&mut self, at_ns: u64, out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        if self.settings.kind == Kind::Xfs {
            self.force_log(at_ns, out);
        } else if self.settings.is_journalled() {
            self.commit(at_ns, 0, out);
        }
        self.write_home(at_ns, u64::MAX, out);
        flush(at_ns, out);
        Ok(())
    }

    fn find(&self, file: u32, page: u64) -> Option<Extent> {
        self.files.get(&file)?.map.find(page)
    }

    fn next_mapped(&self, file: u32, page: u64) -> Option<u64> {
        self.files.get(&file)?.map.next_mapped(page)
    }

    fn writes_sectors(&self) -> bool {
        true
    }
}

/// Pages in a row on the device.
struct Run {
    block: u64,
    count: u64,
    data_bytes: u64,
}
