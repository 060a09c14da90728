//! File systems: which requests a device gets for reads, writes and syncs of files.
//!
//! - Update in place with block groups ([`Kind::Ext2`], [`Kind::Ext3`], [`Kind::Ext4`]): a file
//!   map of indirect blocks or extents, and a [`Journal`] or none.
//! - Extents with a log of items ([`Kind::Xfs`]).
//!
//! The counts per operation are those of Linux 6.18 on a loop device (ext2 and ext3 through the
//! ext4 driver): bytes, requests and flushes of appends, overwrites, creates and syncs agree
//! within 2 % (`tests/it/fsync_cost.rs`). Not modelled: reads of metadata (maps are in memory),
//! removal of files, quotas and extended attributes.
//!
//! A commit is written with a flush before and after its last block, as on a device without
//! forced unit access.

mod in_place;
mod log_items;
pub mod log_structured;
mod map;
mod space;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use map::{Extent, Map};
use serde::{Deserialize, Serialize};
use space::Space;
use trace::Op;

use crate::page_cache::{DirtyPage, PAGE_BYTES, Span};

/// Bytes of a block of the file system; the same as a page.
pub const BLOCK_BYTES: u64 = 4096;

/// Time between two wake-ups of the commit timer and of the write-back of metadata, ns.
const WAKE_NS: u64 = 5_000_000_000;

/// Age at which metadata that a journal keeps safe are written home, ns.
const EXPIRE_NS: u64 = 30_000_000_000;

/// Which file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Indirect blocks, no journal.
    Ext2,
    /// Indirect blocks and a journal.
    Ext3,
    /// Extents and a journal.
    Ext4,
    /// Extents and a log of items in sectors of 512 bytes.
    Xfs,
}

/// What the journal of ext3 and ext4 holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Journal {
    /// There is none.
    None,
    /// Metadata; data are written before.
    #[default]
    Ordered,
    /// Data too: they are written twice, and direct I/O becomes buffered.
    Data,
    /// Metadata; a sync writes one block with what changed instead of a commit (Linux 5.10).
    FastCommit,
}

/// What a file system is like.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Which one.
    pub kind: Kind,
    /// What its journal holds; xfs has its own.
    pub journal: Journal,
    /// Bytes of the journal.
    pub journal_bytes: u64,
    /// Longest request, bytes (`max_sectors_kb`); a multiple of the block.
    pub request_bytes: u64,
    /// Time in which the time stamps of a file change once, ns: a tick of the kernel.
    pub tick_ns: u64,
}

impl Settings {
    /// The defaults of `kind`: HZ 250, requests of 1280 KiB, a journal of 64 MiB.
    pub fn new(kind: Kind) -> Self {
        let journal = if kind == Kind::Ext2 { Journal::None } else { Journal::Ordered };
        Self {
            kind,
            journal,
            journal_bytes: 64 << 20,
            request_bytes: 1280 << 10,
            tick_ns: 4_000_000,
        }
    }

    fn is_journalled(&self) -> bool {
        self.journal != Journal::None
    }
}

/// Why the device gets a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Content of files that a caller asked for or wrote.
    Data,
    /// Content read before anyone asks.
    ReadAhead,
    /// The rest of a page of which a part is overwritten.
    Fill,
    /// Inodes, bitmaps, maps, directories at their home.
    Metadata,
    /// The journal or log.
    Journal,
}

impl Cause {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 5] =
        [Self::Data, Self::ReadAhead, Self::Fill, Self::Metadata, Self::Journal];

    /// The name on the screen, in JSON and of the stream of a physical trace.
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::ReadAhead => "read_ahead",
            Self::Fill => "fill",
            Self::Metadata => "metadata",
            Self::Journal => "journal",
        }
    }
}

/// A request to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Physical {
    /// When it is issued, ns.
    pub at_ns: u64,
    /// What it does.
    pub op: Op,
    /// First byte; zero for a flush.
    pub offset: u64,
    /// Bytes; zero for a flush.
    pub bytes: u64,
    /// Why.
    pub cause: Cause,
    /// Bytes of it that no caller asked for or wrote, to fill blocks; for data only.
    pub padding_bytes: u64,
    /// Bytes of it that are read ahead; for reads only.
    pub ahead_bytes: u64,
    /// A flush that is part of a write (PREFLUSH, FUA on a device without it): the kernel counts
    /// no request for it.
    pub is_attached: bool,
}

/// How much a sync must make durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sync {
    /// Content, and what is needed to find it.
    #[default]
    Fdatasync,
    /// Time stamps too.
    Fsync,
}

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

/// A file system.
pub struct FileSystem {
    settings: Settings,
    space: Space,
    files: BTreeMap<u32, File>,
    next_inode: u64,
    /// Entries in the directory.
    entries: u64,
    directory: Vec<u64>,
    journal: in_place::JournalState,
    items: log_items::Items,
    /// Metadata to be written home, with the time since when; under a journal only committed ones.
    home: BTreeMap<u64, u64>,
    next_wake_ns: u64,
    /// Bytes asked for that have no content on the device and read as zeros.
    hole_bytes: u64,
}

impl FileSystem {
    /// An empty file system.
    pub fn new(settings: Settings) -> Self {
        let (together, areas) = match settings.kind {
            Kind::Ext2 | Kind::Ext3 => (1, 1),
            Kind::Ext4 => (16, 1),
            Kind::Xfs => (1, 4),
        };
        Self {
            space: Space::new(together, settings.journal_bytes, areas),
            files: BTreeMap::new(),
            next_inode: 12,
            entries: 0,
            directory: Vec::new(),
            journal: in_place::JournalState::default(),
            items: log_items::Items::default(),
            home: BTreeMap::new(),
            next_wake_ns: WAKE_NS,
            hole_bytes: 0,
            settings,
        }
    }

    /// Adds a file of `bytes` that was there before, all of it with content (`written`) or only
    /// allocated (fallocate). Costs no I/O. ext2 and ext3 fill what they allocate.
    pub fn add(&mut self, file: u32, bytes: u64, written: bool) {
        let inode = self.next_inode;
        self.next_inode += 1;
        let written = written || self.has_indirect_blocks();
        let mut made = File { inode, bytes, bytes_on_device: bytes, ..File::default() };
        let pages = bytes.div_ceil(BLOCK_BYTES);
        let mut page = 0;
        while page < pages {
            let mut count = pages - page;
            if self.has_indirect_blocks() {
                count = count.min(in_place::pages_to_next_indirect(page));
                let area = inode as usize;
                in_place::add_indirect(&mut made, page, || self.space.reserve(area, 1).start);
            }
            let blocks = self.space.reserve(inode as usize, count);
            let count = blocks.end - blocks.start;
            made.map.insert(Extent { page, block: blocks.start, count, written });
            page += count;
        }
        assert!(self.files.insert(file, made).is_none(), "a file is added once");
    }

    fn has_indirect_blocks(&self) -> bool {
        matches!(self.settings.kind, Kind::Ext2 | Kind::Ext3)
    }

    /// Size of a file, 0 where it does not exist.
    pub fn file_bytes(&self, file: u32) -> u64 {
        self.files.get(&file).map_or(0, |file| file.bytes)
    }

    /// Whether O_DIRECT passes the page cache.
    pub fn is_direct_io_direct(&self) -> bool {
        self.settings.journal != Journal::Data
    }

    /// Bytes asked for that were read from no device, because nothing was written there.
    pub fn hole_bytes(&self) -> u64 {
        self.hole_bytes
    }

    /// A caller wrote `span`, at `now_ns`: the file exists, is so long, and has a new time stamp.
    pub fn touch(&mut self, now_ns: u64, span: Span) {
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

    /// Reads pages of a file; `asked` bytes of them were asked for, the last `ahead` pages were
    /// not at all.
    pub fn read(
        &mut self,
        at_ns: u64,
        file: u32,
        pages: Range<u64>,
        wanted: Wanted,
        out: &mut Vec<Physical>,
    ) {
        let asked_end = pages.end - wanted.ahead_pages;
        let (mut found, mut asked_pages, mut page) = (Vec::new(), 0, pages.start);
        let map = self.files.get(&file).map(|file| &file.map);
        while page < pages.end {
            let extent = map.and_then(|map| map.find(page));
            let Some(extent) = extent else {
                let next = map.and_then(|map| map.next_mapped(page));
                page = next.unwrap_or(pages.end).min(pages.end);
                continue;
            };
            let most = self.settings.request_bytes / BLOCK_BYTES;
            let count = extent.count.min(pages.end - page).min(most);
            if extent.written {
                let ahead = (page + count).saturating_sub(asked_end.max(page));
                asked_pages += count - ahead;
                found.push((extent.block * BLOCK_BYTES, count * BLOCK_BYTES, ahead * BLOCK_BYTES));
            }
            page += count;
        }
        // Asked bytes fall on the pages with content first; what does not fit there are zeros.
        let mut asked = wanted.asked_bytes.min(asked_pages * BLOCK_BYTES);
        self.hole_bytes += wanted.asked_bytes - asked;
        for (offset, bytes, ahead_bytes) in found {
            let here = asked.min(bytes - ahead_bytes);
            asked -= here;
            let cause = match wanted.cause {
                Cause::Data if ahead_bytes == bytes => Cause::ReadAhead,
                cause => cause,
            };
            let data = if cause == Cause::Fill { bytes } else { here + ahead_bytes };
            let padding_bytes = bytes - data;
            let op = Op::Read;
            out.push(Physical {
                offset,
                bytes,
                padding_bytes,
                ahead_bytes,
                ..request(at_ns, op, cause)
            });
        }
    }

    /// Reads `span` past the page cache.
    pub fn read_direct(&mut self, at_ns: u64, span: Span, out: &mut Vec<Physical>) {
        let sectors = to_sectors(span);
        let pages = span.pages();
        let wanted = Wanted { asked_bytes: 0, ahead_pages: 0, cause: Cause::Data };
        let first = out.len();
        self.read(at_ns, span.file, pages.clone(), wanted, out);
        // Only whole files are that simple: the first and last block are cut to sectors, where
        // nothing in front or behind is a hole.
        let got: u64 = out[first..].iter().map(|request| request.bytes).sum();
        let mut asked = span.bytes;
        if got == (pages.end - pages.start) * BLOCK_BYTES {
            let head = sectors.start - pages.start * BLOCK_BYTES;
            let tail = pages.end * BLOCK_BYTES - sectors.end;
            out[first].offset += head;
            out[first].bytes -= head;
            out.last_mut().expect("a read").bytes -= tail;
        }
        for request in &mut out[first..] {
            let here = asked.min(request.bytes);
            asked -= here;
            request.padding_bytes = request.bytes - here;
        }
        self.hole_bytes += asked;
    }

    /// Writes pages of a file back, allocating blocks for those that have none.
    pub fn write(&mut self, at_ns: u64, file: u32, pages: &[DirtyPage], out: &mut Vec<Physical>) {
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
    }

    /// Writes `span` past the page cache, in sectors of 512 bytes.
    pub fn write_direct(&mut self, at_ns: u64, span: Span, out: &mut Vec<Physical>) {
        let (sectors, pages) = (to_sectors(span), span.pages());
        let all: Vec<DirtyPage> = pages
            .clone()
            .map(|page| {
                let end = (page + 1) * PAGE_BYTES;
                let until = end.min(span.offset + span.bytes);
                let data_bytes = until - span.offset.max(page * PAGE_BYTES);
                DirtyPage { page, data_bytes, until }
            })
            .collect();
        let first = out.len();
        self.write(at_ns, span.file, &all, out);
        let writes = out[first..].iter_mut();
        let mut data = writes.filter(|request| request.cause == Cause::Data);
        let head = sectors.start - pages.start * BLOCK_BYTES;
        let tail = pages.end * BLOCK_BYTES - sectors.end;
        if let Some(request) = data.next() {
            request.offset += head;
            request.bytes -= head;
            request.padding_bytes -= head;
            let last = data.last().unwrap_or(request);
            last.bytes -= tail;
            last.padding_bytes -= tail;
        }
    }

    /// Blocks of the pages in runs that are one request each; allocates and changes metadata.
    fn place(&mut self, at_ns: u64, name: u32, pages: &[DirtyPage]) -> Vec<Run> {
        if !self.files.contains_key(&name) {
            self.create(at_ns, name);
        }
        let most = self.settings.request_bytes / BLOCK_BYTES;
        let mut runs: Vec<Run> = Vec::new();
        let mut next_page = None;
        for dirty in pages {
            let block = self.block_for(at_ns, name, dirty.page);
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
                // Windows of 8 blocks that double.
                Kind::Ext2 | Kind::Ext3 => (8, 1024),
                // Rounded up to 16 KiB .. 8 MiB (mballoc's normalisation).
                Kind::Ext4 => (4, 2048),
                // Speculative preallocation: 64 KiB, doubling with the file.
                Kind::Xfs => {
                    self.items.allocation();
                    (16, 1 << 16)
                }
            };
            let blocks = size.clamp(least, most);
            file.reserved = self.space.reserve(file.inode as usize, blocks);
        }
        let block = file.reserved.start;
        file.reserved.start += 1;
        block
    }

    /// Makes a file durable whose pages were written back; `at_ns` never falls.
    pub fn sync(&mut self, at_ns: u64, name: u32, sync: Sync, out: &mut Vec<Physical>) {
        let Some(file) = self.files.get(&name) else { return flush(at_ns, out) };
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
    }

    /// Does what timers ask for until `now_ns`: commits every 5 s, metadata home after 30 s.
    pub fn wake(&mut self, now_ns: u64, out: &mut Vec<Physical>) {
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
    }

    /// Writes home everything, as sync(2) and an unmount do.
    pub fn sync_all(&mut self, at_ns: u64, out: &mut Vec<Physical>) {
        if self.settings.kind == Kind::Xfs {
            self.force_log(at_ns, out);
        } else if self.settings.is_journalled() {
            self.commit(at_ns, 0, out);
        }
        self.write_home(at_ns, u64::MAX, out);
        flush(at_ns, out);
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

/// What a read is for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Bytes that a caller asked for.
    pub asked_bytes: u64,
    /// Pages at the end that are read ahead.
    pub ahead_pages: u64,
    /// Data, or the fill of a page.
    pub cause: Cause,
}

/// Pages in a row on the device.
struct Run {
    block: u64,
    count: u64,
    data_bytes: u64,
}

/// The sectors of 512 bytes that hold `span`, as bytes.
fn to_sectors(span: Span) -> Range<u64> {
    span.offset / 512 * 512..(span.offset + span.bytes).next_multiple_of(512)
}

fn request(at_ns: u64, op: Op, cause: Cause) -> Physical {
    Physical {
        at_ns,
        op,
        offset: 0,
        bytes: 0,
        cause,
        padding_bytes: 0,
        ahead_bytes: 0,
        is_attached: false,
    }
}

/// A flush that is a request of its own.
fn flush(at_ns: u64, out: &mut Vec<Physical>) {
    out.push(request(at_ns, Op::Flush, Cause::Data));
}

/// A flush that belongs to the write of a commit.
fn attached_flush(at_ns: u64, out: &mut Vec<Physical>) {
    out.push(Physical { is_attached: true, ..request(at_ns, Op::Flush, Cause::Journal) });
}
