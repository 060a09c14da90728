//! f2fs: six logs by kind, a table of nodes, and roll-forward syncs.
//!
//! Rules of Documentation/filesystems/f2fs.rst and fs/f2fs (segment.h, gc.c, file.c, checkpoint.c,
//! Linux 4.9 to 6.x):
//!
//! - An inode maps 923 blocks, a node 1018. A table (NAT) says where nodes are, so that a block
//!   that moves changes one node and nothing above it.
//! - A sync writes data and the changed nodes of its file, then flushes; where nothing but blocks
//!   in place was written, it flushes alone.
//! - Overwriting in place is a policy ([`Overwrite`]); direct I/O does it wherever a block exists.
//! - A checkpoint, every 60 s, writes all nodes, the changed NAT and SIT entries - into the
//!   journals of the summary where they are few - and one of two packs. What died before it can be
//!   written again only then.
//! - With few free segments the logs take holes of closed segments (SSR); with fewer still,
//!   greedy cleaning in the foreground; in the background the cleaner moves one segment at a time
//!   while the device has been idle for 5 s.
//!
//! Simplified: a section is a segment; directories are one block and one inode; moved blocks are
//! written at once; a sync always flushes.

mod checkpoint;
mod cleaner;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use checkpoint::{Areas, NAT_ENTRIES, SIT_ENTRIES};
use writes::Writes;

use super::Overwrite;
use super::segments::{Live, Shape, Store};
use super::table::Table;
use crate::file_system::layout::{Layout, NoSpace, Pages};
use crate::file_system::map::Extent;
use crate::file_system::{BLOCK_BYTES, Cause, Physical, Settings, Sync, flush};
use crate::page_cache::{DirtyPage, Span};

/// Blocks that an inode maps, and a node.
const IN_INODE: u64 = 923;
const IN_NODE: u64 = 1018;

/// Nodes that the inode names itself.
const DIRECT_NODES: u64 = 2;

/// Keys of nodes of nodes follow those of nodes.
const INDIRECT: u64 = 1 << 39;

/// Time between two checkpoints, ns.
const CHECKPOINT_NS: u64 = 60_000_000_000;

/// Pages of an fsync that are written in place.
const FEW_PAGES: usize = 8;

/// Share of the space in use above which blocks are overwritten under that policy.
const HIGH_UTILIZATION: f64 = 0.70;

/// The logs.
const HOT_DATA: usize = 0;
const WARM_DATA: usize = 1;
const COLD_DATA: usize = 2;
const HOT_NODE: usize = 3;
const WARM_NODE: usize = 4;
const COLD_NODE: usize = 5;
const LOGS: usize = 6;

/// The file that stands for the directory.
const DIRECTORY: u32 = (1 << 23) - 1;

#[derive(Clone, Debug, Default)]
struct File {
    bytes: u64,
    tick: Option<u64>,
    /// Time stamps changed since the inode was written.
    is_touched: bool,
    /// Size, blocks or existence did.
    is_changed: bool,
    pages: Table,
    nodes: Table,
    /// Numbers of the nodes in the NAT, by the same keys.
    numbers: Table,
    dirty_nodes: BTreeSet<u64>,
}

/// What a block of the store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Page(u32, u64),
    Node(u32, u64),
}

const NODE_BIT: u64 = 1 << 63;

impl Owner {
    fn packed(self) -> u64 {
        match self {
            Self::Page(file, page) => u64::from(file) << 40 | page,
            Self::Node(file, key) => NODE_BIT | u64::from(file) << 40 | key,
        }
    }

    fn unpacked(packed: u64) -> Self {
        let (file, at) = ((packed & !NODE_BIT) >> 40, packed & ((1 << 40) - 1));
        let file = file as u32;
        if packed & NODE_BIT == 0 { Self::Page(file, at) } else { Self::Node(file, at) }
    }
}

/// The file system.
pub(in crate::file_system) struct F2fs {
    settings: Settings,
    areas: Areas,
    store: Store,
    /// By block of the store: what it is.
    owners: Vec<u64>,
    files: BTreeMap<u32, File>,
    next_number: u32,
    has_new_entries: bool,
    dirty_nodes: u64,
    /// Numbers of nodes, and segments, whose entries changed since they were written.
    nat: BTreeSet<u32>,
    sit: BTreeSet<u32>,
    pack: u64,
    user_blocks: u64,
    reserved_segments: u32,
    pending: Vec<(u32, Vec<DirtyPage>)>,
    live: Vec<Live>,
    has_changes: bool,
    next_checkpoint_ns: u64,
    next_clean_ns: u64,
    sleep_ns: u64,
    last_write_ns: u64,
    /// Blocks appended, by cause: data, moved, nodes.
    written_blocks: [u64; 3],
}

impl F2fs {
    pub fn new(settings: Settings) -> Self {
        let log = settings.log;
        let in_segment = log.segment_bytes / BLOCK_BYTES;
        let segments = settings.capacity_bytes / log.segment_bytes;
        let pairs = |blocks: u64| 2 * blocks.div_ceil(in_segment) * in_segment;
        let after = |range: &Range<u64>, blocks: u64| range.end..range.end + blocks;
        // The super block; two packs; the tables twice; a summary for each segment.
        let packs = in_segment..3 * in_segment;
        let sit = after(&packs, pairs(segments.div_ceil(SIT_ENTRIES)));
        let nat = after(&sit, pairs((segments * in_segment / 64).div_ceil(NAT_ENTRIES)));
        let summaries = after(&nat, segments.next_multiple_of(in_segment));
        let main = summaries.end;
        let segments = segments.saturating_sub(main / in_segment).max(2 * LOGS as u64) as u32;
        let (reserved_segments, kept_segments) = over_provision(segments);
        let shape =
            Shape { segments, segment_blocks: in_segment as u32, logs: LOGS, holds_dead: true };
        Self {
            areas: Areas { packs, sit, nat, summaries, main },
            store: Store::new(shape),
            owners: Vec::new(),
            files: BTreeMap::new(),
            next_number: 4,
            has_new_entries: false,
            dirty_nodes: 0,
            nat: BTreeSet::new(),
            sit: BTreeSet::new(),
            pack: 0,
            user_blocks: u64::from(segments.saturating_sub(kept_segments)) * in_segment,
            reserved_segments,
            pending: Vec::new(),
            live: Vec::new(),
            has_changes: false,
            next_checkpoint_ns: CHECKPOINT_NS,
            next_clean_ns: log.cleaner.interval_ns,
            sleep_ns: log.cleaner.interval_ns,
            last_write_ns: 0,
            written_blocks: [0; 3],
            settings,
        }
    }

    fn offset(&self, place: u32) -> u64 {
        (self.areas.main + u64::from(place)) * BLOCK_BYTES
    }

    fn name(&mut self, owner: Owner) -> u32 {
        self.owners.push(owner.packed());
        (self.owners.len() - 1) as u32
    }

    /// Appends a block to a log, whose summary is written when its segment is full.
    fn append(
        &mut self,
        log: usize,
        block: u32,
        [now_ns, written_ns]: [u64; 2],
        out: &mut Writes,
    ) -> Result<u32, NoSpace> {
        if !self.store.has_room(log) {
            let full = self.store.open_segment(log);
            self.take_holes(log, now_ns);
            if let Some(segment) = full {
                let block = self.areas.summaries.start + u64::from(segment);
                out.add(block * BLOCK_BYTES, Cause::Metadata, 0);
            }
        }
        if let Some(place) = self.store.find(block) {
            self.sit.insert(place / self.store.shape().segment_blocks);
        }
        let place = self.store.append(log, block, now_ns, written_ns)?;
        self.sit.insert(place / self.store.shape().segment_blocks);
        self.has_changes = true;
        Ok(place)
    }

    /// Lets a log without room go on in the holes of a closed segment of its kind, where free
    /// segments are short (need_SSR).
    fn take_holes(&mut self, log: usize, now_ns: u64) {
        let reserved = self.reserved_segments;
        if self.store.free_segments() > 2 * reserved + self.segments_for_nodes() {
            return;
        }
        let is_node = log >= HOT_NODE;
        let store = &self.store;
        let victim = store.victim_that(|segment| {
            (store.log_of(segment) >= HOT_NODE) == is_node && store.holes_in(segment) > 0
        });
        if let Some(victim) = victim {
            self.store.open_holes(log, victim, now_ns);
        }
    }

    /// Segments that the nodes in memory need.
    fn segments_for_nodes(&self) -> u32 {
        self.dirty_nodes.div_ceil(u64::from(self.store.shape().segment_blocks)) as u32
    }

    fn mark_node(&mut self, name: u32, key: u64) {
        let file = self.files.get_mut(&name).expect("a file with nodes exists");
        if file.dirty_nodes.insert(key) {
            self.dirty_nodes += 1;
        }
        if file.numbers.get(key).is_none() {
            file.numbers.set(key, self.next_number);
            self.next_number += 1;
            // The node that names it changes too.
            if let Some(parent) = parent_of(key) {
                self.mark_node(name, parent);
            }
        }
    }

    /// Writes data pages, in place where the policy and `is_sync` say so.
    fn write_pages(
        &mut self,
        at_ns: u64,
        name: u32,
        pages: &[DirtyPage],
        in_place: bool,
        out: &mut Writes,
    ) -> Result<(), NoSpace> {
        for dirty in pages {
            let known = self.files.get(&name).and_then(|file| file.pages.get(dirty.page));
            let place = known.and_then(|block| self.store.find(block)).filter(|_| in_place);
            let place = if let Some(place) = place {
                place
            } else {
                let block = known.unwrap_or_else(|| self.name(Owner::Page(name, dirty.page)));
                let place = self.append(WARM_DATA, block, [at_ns, at_ns], out)?;
                self.written_blocks[0] += 1;
                self.mark_node(name, node_of(dirty.page));
                let file = self.files.get_mut(&name).expect("a file that is written exists");
                if known.is_none() {
                    file.pages.set(dirty.page, block);
                    file.is_changed = true;
                }
                place
            };
            out.add(self.offset(place), Cause::Data, dirty.data_bytes);
        }
        self.last_write_ns = at_ns;
        self.assert_counted();
        Ok(())
    }

    /// Whether pages are overwritten where they are.
    fn is_in_place(&self, pages: usize, sync: Option<Sync>) -> bool {
        match self.settings.log.in_place {
            Overwrite::Never => false,
            Overwrite::Always => true,
            Overwrite::Fsync => {
                sync == Some(Sync::Fdatasync) || (sync.is_some() && pages <= FEW_PAGES)
            }
            Overwrite::Utilization => {
                self.store.live_blocks() as f64 > HIGH_UTILIZATION * self.user_blocks as f64
            }
        }
    }

    /// Writes what was handed down.
    fn write_pending(
        &mut self,
        at_ns: u64,
        sync: Option<Sync>,
        out: &mut Vec<Physical>,
    ) -> Result<(), NoSpace> {
        for (name, pages) in std::mem::take(&mut self.pending) {
            let in_place = self.is_in_place(pages.len(), sync);
            self.write_now(at_ns, name, &pages, in_place, out)?;
        }
        Ok(())
    }

    fn write_now(
        &mut self,
        at_ns: u64,
        name: u32,
        pages: &[DirtyPage],
        in_place: bool,
        out: &mut Vec<Physical>,
    ) -> Result<(), NoSpace> {
        // A segment at a time, so that cleaning keeps up.
        for part in pages.chunks(self.store.shape().segment_blocks as usize) {
            self.check_space(part.len() as u64)?;
            self.balance(at_ns, out)?;
            let mut writes = Writes::new(at_ns, self.settings.request_bytes, out);
            self.write_pages(at_ns, name, part, in_place, &mut writes)?;
        }
        Ok(())
    }

    fn check_space(&self, blocks: u64) -> Result<(), NoSpace> {
        let live = self.store.live_blocks() + self.dirty_nodes;
        if live + blocks <= self.user_blocks {
            return Ok(());
        }
        let user = self.user_blocks;
        Err(NoSpace(format!("no space left on f2fs: {live} of {user} blocks are in use")))
    }

    /// Writes the changed nodes of a file.
    fn write_nodes(&mut self, at_ns: u64, name: u32, out: &mut Writes) -> Result<(), NoSpace> {
        let Some(file) = self.files.get_mut(&name) else { return Ok(()) };
        let dirty = std::mem::take(&mut file.dirty_nodes);
        self.dirty_nodes -= dirty.len() as u64;
        for key in dirty {
            let file = &self.files[&name];
            let number = file.numbers.get(key).expect("a node has a number");
            let known = file.nodes.get(key);
            let block = known.unwrap_or_else(|| self.name(Owner::Node(name, key)));
            let log = match (name, key) {
                (DIRECTORY, _) => HOT_NODE,
                (_, INDIRECT..) => COLD_NODE,
                _ => WARM_NODE,
            };
            let place = self.append(log, block, [at_ns, at_ns], out)?;
            self.written_blocks[2] += 1;
            self.nat.insert(number);
            self.files.get_mut(&name).expect("a file").nodes.set(key, block);
            out.add(self.offset(place), Cause::Metadata, 0);
        }
        Ok(())
    }

    /// The inode is written with the nodes.
    fn mark_inode(&mut self, name: u32) {
        let file = self.files.get_mut(&name).expect("a file");
        if std::mem::take(&mut file.is_changed) | std::mem::take(&mut file.is_touched) {
            self.mark_node(name, 0);
        }
    }

    fn assert_counted(&self) {
        let written: u64 = self.written_blocks.iter().sum();
        assert_eq!(self.store.appended_blocks(), written, "blocks of the logs by cause");
    }
}

impl Layout for F2fs {
    fn add(&mut self, name: u32, bytes: u64, _written: bool) -> Result<(), NoSpace> {
        let count = bytes.div_ceil(BLOCK_BYTES);
        self.check_space(count + count / IN_NODE + 2)?;
        let file = File { bytes, ..File::default() };
        assert!(self.files.insert(name, file).is_none(), "a file is added once");
        let mut ignored = Vec::new();
        self.mark_node(name, 0);
        for first in (0..count).step_by(1 << 16) {
            let page = |page| DirtyPage { page, data_bytes: BLOCK_BYTES, until: 0 };
            let pages: Vec<_> = (first..count.min(first + (1 << 16))).map(page).collect();
            ignored.clear();
            self.write_now(0, name, &pages, false, &mut ignored)?;
        }
        self.checkpoint(0, &mut ignored)
    }

    fn file_bytes(&self, file: u32) -> u64 {
        self.files.get(&file).map_or(0, |file| file.bytes)
    }

    fn touch(&mut self, now_ns: u64, span: Span) {
        let is_new = !self.files.contains_key(&span.file);
        let file = self.files.entry(span.file).or_default();
        let tick = Some(now_ns / self.settings.tick_ns);
        let end = span.offset + span.bytes;
        file.is_touched |= file.tick != tick;
        file.is_changed |= is_new || end > file.bytes;
        file.tick = tick;
        file.bytes = file.bytes.max(end);
        self.has_new_entries |= is_new;
        self.has_changes = true;
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

    fn write(&mut self, pages: Pages, out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        let Pages { at_ns, file, dirty, is_direct } = pages;
        if is_direct {
            return self.write_now(at_ns, file, dirty, true, out);
        }
        self.pending.push((file, dirty.to_vec()));
        Ok(())
    }

    fn settle(&mut self, at_ns: u64, out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        self.write_pending(at_ns, None, out)
    }

    fn sync(
        &mut self,
        at_ns: u64,
        name: u32,
        sync: Sync,
        out: &mut Vec<Physical>,
    ) -> Result<(), NoSpace> {
        self.write_pending(at_ns, Some(sync), out)?;
        if let Some(file) = self.files.get(&name) {
            if file.is_changed || (sync == Sync::Fsync && file.is_touched) {
                self.mark_inode(name);
            }
            let mut writes = Writes::new(at_ns, self.settings.request_bytes, out);
            self.write_nodes(at_ns, name, &mut writes)?;
            self.assert_counted();
        }
        flush(at_ns, out);
        Ok(())
    }

    fn wake(&mut self, now_ns: u64, out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        while self.next_checkpoint_ns.min(self.next_clean_ns) <= now_ns {
            if self.next_clean_ns < self.next_checkpoint_ns {
                let at_ns = self.next_clean_ns;
                self.next_clean_ns = at_ns + self.clean_idle(at_ns, out)?;
            } else {
                if self.has_changes {
                    self.checkpoint(self.next_checkpoint_ns, out)?;
                }
                self.next_checkpoint_ns += CHECKPOINT_NS;
            }
        }
        Ok(())
    }

    fn sync_all(&mut self, at_ns: u64, out: &mut Vec<Physical>) -> Result<(), NoSpace> {
        self.write_pending(at_ns, None, out)?;
        self.checkpoint(at_ns, out)
    }

    fn audit(&self) {
        self.store.audit();
        let tables = self.files.values().flat_map(|file| [&file.pages, &file.nodes]);
        let mut known = 0;
        for block in tables.flat_map(Table::iter) {
            assert!(self.store.find(block).is_some(), "block {block} is nowhere");
            known += 1;
        }
        assert_eq!(known, self.store.live_blocks(), "blocks that something refers to");
        let dirty = self.files.values().map(|file| file.dirty_nodes.len() as u64);
        assert_eq!(self.dirty_nodes, dirty.sum::<u64>(), "changed nodes");
    }
}

/// The node that maps a page: 0 is the inode.
fn node_of(page: u64) -> u64 {
    page.checked_sub(IN_INODE).map_or(0, |behind| 1 + behind / IN_NODE)
}

/// The node that names a node, `None` for the inode.
fn parent_of(key: u64) -> Option<u64> {
    match key {
        0 => None,
        1..=DIRECT_NODES | INDIRECT.. => Some(0),
        _ => Some(INDIRECT + (key - 1 - DIRECT_NODES) / IN_NODE),
    }
}

/// Segments that cleaning needs, and those that users cannot fill: the share that leaves users the
/// most (get_best_overprovision, mkfs.f2fs).
fn over_provision(segments: u32) -> (u32, u32) {
    let shares: Vec<f64> = if segments < 256 {
        (0..=17).map(|step| 10.0 + 5.0 * f64::from(step)).collect()
    } else {
        (1..=1000).map(|step| 0.01 * f64::from(step)).collect()
    };
    let of = |share: f64| {
        let reserved = (2.0 * (100.0 / share + 1.0) + LOGS as f64) as u32;
        let spare = f64::from(segments.saturating_sub(reserved)) * share / 100.0;
        (reserved, reserved.max(spare as u32) + 2)
    };
    let all = shares.into_iter().map(of);
    all.min_by_key(|(reserved, kept)| (*kept, *reserved)).expect("there are shares")
}
