//! File systems: which requests a device gets for reads, writes and syncs of files.
//!
//! - Update in place with block groups ([`Kind::Ext2`], [`Kind::Ext3`], [`Kind::Ext4`]): a file
//!   map of indirect blocks or extents, and a [`Journal`] or none.
//! - Extents with a log of items ([`Kind::Xfs`]).
//! - Logs that are cleaned ([`Kind::Nilfs2`], [`Kind::F2fs`]): [`log_structured`].
//! - Copy on write of data and trees ([`Kind::Btrfs`]).
//!
//! The counts per operation of ext, xfs and btrfs are those of Linux 6.18 on a loop device (ext2
//! and ext3 through the ext4 driver): bytes, requests and flushes of appends, overwrites, creates
//! and syncs agree within 2 % (`tests/it/fsync_cost.rs`, `copy_on_write.rs`). Those of nilfs2 and
//! f2fs follow from the rules of their sources and were not counted on a kernel. Not modelled:
//! reads of metadata (maps are in memory), removal of files, quotas and extended attributes.
//!
//! A commit is written with a flush before and after its last block, as on a device without
//! forced unit access.

mod copy_on_write;
mod in_place;
mod layout;
pub mod log_structured;
mod map;

use std::ops::Range;

use copy_on_write::CopyOnWrite;
use in_place::InPlace;
use layout::{Layout, NoSpace, Pages};
use log_structured::{F2fs, Nilfs2, segments};
use serde::{Deserialize, Serialize};
use trace::Op;

use crate::page_cache::{DirtyPage, PAGE_BYTES, Span};

/// Bytes of a block of the file system; the same as a page.
pub const BLOCK_BYTES: u64 = 4096;

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
    /// A log, with checkpoints of everything.
    Nilfs2,
    /// Six logs, with a node above every thousand blocks.
    F2fs,
    /// Copy on write of data and trees, with a log tree for syncs.
    Btrfs,
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
    /// Bytes of the device; 0: as large as needed.
    pub capacity_bytes: u64,
    /// Whether btrfs copies data on write (`nodatacow` does not).
    pub data_cow: bool,
    /// The log of a log-structured file system; others have none.
    pub log: log_structured::Settings,
}

impl Settings {
    /// The defaults of `kind`: HZ 250, requests of 1280 KiB, a journal of 64 MiB.
    pub fn new(kind: Kind) -> Self {
        let journal = match kind {
            Kind::Ext2 | Kind::Nilfs2 | Kind::F2fs | Kind::Btrfs => Journal::None,
            Kind::Ext3 | Kind::Ext4 | Kind::Xfs => Journal::Ordered,
        };
        Self {
            kind,
            journal,
            journal_bytes: 64 << 20,
            request_bytes: 1280 << 10,
            tick_ns: 4_000_000,
            capacity_bytes: 0,
            data_cow: true,
            log: match kind {
                Kind::F2fs => log_structured::Settings::f2fs(),
                _ => log_structured::Settings::nilfs2(),
            },
        }
    }

    /// Whether requests of that cause exist here.
    pub fn has_cause(&self, cause: Cause) -> bool {
        cause != Cause::Clean || self.is_log()
    }

    /// Whether everything is written to a log that needs cleaning.
    pub fn is_log(&self) -> bool {
        matches!(self.kind, Kind::Nilfs2 | Kind::F2fs)
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
    /// Segments that a cleaner reads, and what it moves.
    Clean,
}

impl Cause {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 6] =
        [Self::Data, Self::ReadAhead, Self::Fill, Self::Metadata, Self::Journal, Self::Clean];

    /// The name on the screen, in JSON and of the stream of a physical trace.
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::ReadAhead => "read_ahead",
            Self::Fill => "fill",
            Self::Metadata => "metadata",
            Self::Journal => "journal",
            Self::Clean => "clean",
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
    /// Bytes of it that are metadata, beside the data or moved blocks of the same log.
    pub metadata_bytes: u64,
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

/// A file system.
///
/// Once it has no space left it does nothing more: see [`FileSystem::failure`].
pub struct FileSystem {
    settings: Settings,
    layout: Box<dyn Layout>,
    failure: Option<NoSpace>,
    /// Bytes asked for that have no content on the device and read as zeros.
    hole_bytes: u64,
}

impl FileSystem {
    /// An empty file system.
    pub fn new(settings: Settings) -> Self {
        let layout: Box<dyn Layout> = match settings.kind {
            Kind::Ext2 | Kind::Ext3 | Kind::Ext4 | Kind::Xfs => {
                Box::new(InPlace::new(settings.clone()))
            }
            Kind::Nilfs2 => Box::new(Nilfs2::new(settings.clone())),
            Kind::Btrfs => Box::new(CopyOnWrite::new(settings.clone())),
            Kind::F2fs => Box::new(F2fs::new(settings.clone())),
        };
        Self { settings, layout, failure: None, hole_bytes: 0 }
    }

    /// Why it could not go on, where the device is full.
    pub fn failure(&self) -> Option<String> {
        self.failure.as_ref().map(NoSpace::to_string)
    }

    /// Does something unless the device is full.
    fn attempt(&mut self, what: impl FnOnce(&mut dyn Layout) -> Result<(), NoSpace>) {
        if self.failure.is_none() {
            self.failure = what(&mut *self.layout).err();
        }
    }

    /// Adds a file of `bytes` that was there before, all of it with content (`written`) or only
    /// allocated (fallocate). Costs no I/O. ext2 and ext3 fill what they allocate.
    pub fn add(&mut self, file: u32, bytes: u64, written: bool) {
        self.attempt(|layout| layout.add(file, bytes, written));
    }

    /// Size of a file, 0 where it does not exist.
    pub fn file_bytes(&self, file: u32) -> u64 {
        self.layout.file_bytes(file)
    }

    /// Whether O_DIRECT passes the page cache when it writes.
    pub fn is_direct_io_direct(&self) -> bool {
        self.settings.journal != Journal::Data && self.settings.kind != Kind::Nilfs2
    }

    /// Bytes asked for that were read from no device, because nothing was written there.
    pub fn hole_bytes(&self) -> u64 {
        self.hole_bytes
    }

    /// A caller wrote `span`, at `now_ns`: the file exists, is so long, and has a new time stamp.
    pub fn touch(&mut self, now_ns: u64, span: Span) {
        self.layout.touch(now_ns, span);
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
        while page < pages.end {
            let extent = self.layout.find(file, page);
            let Some(extent) = extent else {
                let next = self.layout.next_mapped(file, page);
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
        let pages_written = Pages { at_ns, file: span.file, dirty: &all, is_direct: true };
        self.attempt(|layout| layout.write(pages_written, out));
        if !self.layout.writes_sectors() {
            return;
        }
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

    /// Writes pages of a file back; [`FileSystem::sync`] or [`FileSystem::settle`] follows.
    pub fn write(&mut self, at_ns: u64, file: u32, pages: &[DirtyPage], out: &mut Vec<Physical>) {
        let pages = Pages { at_ns, file, dirty: pages, is_direct: false };
        self.attempt(|layout| layout.write(pages, out));
    }

    /// The pages written since the last sync were written back for themselves, not for a sync.
    pub fn settle(&mut self, at_ns: u64, out: &mut Vec<Physical>) {
        self.attempt(|layout| layout.settle(at_ns, out));
    }

    /// Makes a file durable whose pages were written back; `at_ns` never falls.
    pub fn sync(&mut self, at_ns: u64, name: u32, sync: Sync, out: &mut Vec<Physical>) {
        self.attempt(|layout| layout.sync(at_ns, name, sync, out));
    }

    /// Does what timers ask for until `now_ns`: commits, metadata home, cleaning.
    pub fn wake(&mut self, now_ns: u64, out: &mut Vec<Physical>) {
        self.attempt(|layout| layout.wake(now_ns, out));
    }

    /// Writes home everything, as sync(2) and an unmount do.
    pub fn sync_all(&mut self, at_ns: u64, out: &mut Vec<Physical>) {
        self.attempt(|layout| layout.sync_all(at_ns, out));
    }

    /// Whether a sync of `file` writes the dirty pages of all files.
    pub fn sync_takes_all(&self, file: u32, sync: Sync) -> bool {
        self.layout.sync_takes_all(file, sync)
    }

    /// When the file system writes all dirty pages by itself, ns.
    pub fn takes_all_ns(&self) -> Option<u64> {
        self.layout.takes_all_ns()
    }

    /// Checks every invariant; for tests.
    pub fn audit(&self) {
        self.layout.audit();
    }

    /// Whether the file system writes every dirty page by itself now, of which there are so many.
    pub fn wants_all(&self, dirty_pages: u64) -> bool {
        self.layout.wants_all(dirty_pages)
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
        metadata_bytes: 0,
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
