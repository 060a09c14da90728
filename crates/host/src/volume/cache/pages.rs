//! Which pages are in the fast device, where, and what happens to a request for that reason.
//!
//! Pure: no devices, no time. As bcache does it (drivers/md/bcache, Kernel documentation
//! admin-guide/bcache.rst):
//! - the fast device is cut into buckets; data are appended to an open bucket, whatever their place
//!   on the slow device, and a new version of a page goes to a new place. Dirty and clean pages
//!   have an open bucket each (bcache has one per task and sorts them out later);
//! - a bucket is taken again as a whole, the one used longest ago that holds nothing dirty;
//! - streams longer than the cutoff pass by the cache; what they write is forgotten here;
//! - in write-back mode dirty pages are written home in the order of their addresses, and while
//!   more than 70 % of the pages are dirty writes go through to the slow device.
//!
//! In pages of 4 KiB; a page that is touched in part counts as there as a whole. Page versions are
//! tracked in a test, through all modes.

use std::collections::{BTreeSet, HashMap, VecDeque};

use trace::Op;

use super::settings::{CacheMode, CacheSettings};
use crate::volume::lru::Lru;
use crate::volume::plan::{Part, Plan, Stage};

/// The fast device among the members of a cache.
pub const FAST: usize = 0;
/// The slow one.
pub const SLOW: usize = 1;

/// What is cached.
pub const PAGE_BYTES: u64 = 4096;

/// Streams that are followed (`RECENT_SEQUENTIAL_IO`, drivers/md/bcache/request.c).
const STREAMS: usize = 128;

/// Where a page lies on the fast device.
#[derive(Clone, Copy, Debug)]
struct Slot {
    bucket: u32,
    index: u32,
    dirty: bool,
}

/// A bucket: the pages written to it, in order, and how many of them are still their newest
/// version.
#[derive(Clone, Debug, Default)]
struct Bucket {
    pages: Vec<u64>,
    live: u32,
    dirty: u32,
}

/// What happened to requests. In requests and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Bytes read from the fast device.
    pub hit_bytes: u64,
    /// Bytes read from the slow one.
    pub miss_bytes: u64,
    /// Requests that passed by because their stream is long.
    pub bypassed: u64,
    /// Writes that went through to the slow device in write-back mode.
    pub through: u64,
    /// Bytes of dirty pages written home.
    pub written_back_bytes: u64,
    /// Buckets taken again.
    pub reused_buckets: u64,
}

/// The pages of a cache.
#[derive(Clone, Debug)]
pub struct Pages {
    mode: CacheMode,
    per_bucket: usize,
    room: u64,
    cutoff_bytes: u64,
    dirty_through: f64,
    index: HashMap<u64, Slot>,
    /// Buckets that are full and hold nothing dirty, by their number.
    clean: Lru<()>,
    buckets: Vec<Bucket>,
    free: VecDeque<u32>,
    /// The bucket that is being filled, of clean and of dirty pages.
    open: [Option<u32>; 2],
    dirty: BTreeSet<u64>,
    /// Where the last write home ended.
    cursor: u64,
    /// Ends of recent streams with their lengths, newest last.
    streams: VecDeque<(u64, u64)>,
    /// Something entered since the last flush of its metadata.
    pub(super) is_unlogged: bool,
    /// What happened.
    pub counts: CacheCounts,
}

impl Pages {
    /// An empty cache. Bucket 0 holds its metadata.
    pub fn new(settings: &CacheSettings) -> Self {
        let count = (settings.size_bytes / settings.bucket_bytes) as u32;
        let per_bucket = (settings.bucket_bytes / PAGE_BYTES) as usize;
        Self {
            mode: settings.mode,
            per_bucket,
            room: u64::from(count - 1) * per_bucket as u64,
            cutoff_bytes: settings.sequential_cutoff_bytes,
            dirty_through: settings.dirty_through,
            index: HashMap::new(),
            clean: Lru::new(count as usize),
            buckets: vec![Bucket::default(); count as usize],
            free: (1..count).collect(),
            open: [None; 2],
            dirty: BTreeSet::new(),
            cursor: 0,
            streams: VecDeque::new(),
            is_unlogged: false,
            counts: CacheCounts::default(),
        }
    }

    /// Pages that the slow device does not have.
    pub fn dirty_pages(&self) -> u64 {
        self.dirty.len() as u64
    }

    /// Pages that there is room for.
    pub fn capacity_pages(&self) -> u64 {
        self.room
    }

    /// Adds to `plan` what a request asks of the two devices. A read is answered after
    /// [`Stage::Fetch`].
    pub fn plan(&mut self, op: Op, offset: u64, bytes: u64, plan: &mut Plan) {
        match op {
            Op::Read => self.read(offset, bytes, plan),
            Op::Write => self.write(offset, bytes, plan),
            Op::Trim => {
                // Pages that are trimmed in part stay.
                let end = (offset + bytes) / PAGE_BYTES;
                (offset.div_ceil(PAGE_BYTES)..end).for_each(|page| self.forget(page));
                plan.push(Stage::Store, Part { member: SLOW, op, offset, bytes });
            }
            Op::Flush => {
                if std::mem::take(&mut self.is_unlogged) {
                    let (op, bytes) = (Op::Write, PAGE_BYTES);
                    plan.push(Stage::Log, Part { member: FAST, op, offset: 0, bytes });
                }
                for member in [FAST, SLOW] {
                    plan.push(Stage::Store, Part { member, op, offset: 0, bytes: 0 });
                }
            }
        }
    }

    fn read(&mut self, offset: u64, bytes: u64, plan: &mut Plan) {
        let passes_by = self.is_long(offset, bytes);
        self.counts.bypassed += u64::from(passes_by);
        let mut missed = Vec::new();
        for (page, start, end) in pieces(offset, bytes) {
            let bytes = end - start;
            if let Some(slot) = self.index.get(&page).copied() {
                self.clean.touch(u64::from(slot.bucket));
                self.counts.hit_bytes += bytes;
                let offset = self.place(slot) + start % PAGE_BYTES;
                plan.push(Stage::Fetch, Part { member: FAST, op: Op::Read, offset, bytes });
            } else {
                self.counts.miss_bytes += bytes;
                let part = Part { member: SLOW, op: Op::Read, offset: start, bytes };
                plan.push(Stage::Fetch, part);
                missed.push((page, start, end));
            }
        }
        if passes_by {
            return;
        }
        for (page, start, end) in missed {
            if !self.append(page, start, end, false, plan) {
                return;
            }
        }
    }

    fn write(&mut self, offset: u64, bytes: u64, plan: &mut Plan) {
        let is_long = self.is_long(offset, bytes);
        let is_full = self.dirty.len() as f64 > self.dirty_through * self.room as f64;
        // A page that is dirty and written in part cannot be forgotten.
        let ends = [offset / PAGE_BYTES, (offset + bytes - 1) / PAGE_BYTES];
        let is_whole = offset.is_multiple_of(PAGE_BYTES) && bytes.is_multiple_of(PAGE_BYTES);
        let keeps = !is_whole && ends.iter().any(|page| self.dirty.contains(page));
        let passes_by = (is_long || self.mode == CacheMode::WriteAround) && !keeps;
        self.counts.bypassed += u64::from(is_long && passes_by);
        let goes_back = self.mode == CacheMode::WriteBack && !passes_by && (!is_full || keeps);
        self.counts.through +=
            u64::from(self.mode == CacheMode::WriteBack && !passes_by && !goes_back);
        let mut is_in = !passes_by;
        for (page, start, end) in pieces(offset, bytes) {
            let stays = self.dirty.contains(&page) && end - start < PAGE_BYTES;
            if is_in || stays {
                is_in = self.append(page, start, end, goes_back || stays, plan);
            } else {
                self.forget(page);
            }
            if !is_in || !goes_back {
                let (op, bytes) = (Op::Write, end - start);
                plan.push(Stage::Store, Part { member: SLOW, op, offset: start, bytes });
            }
        }
    }

    /// Whether the stream that `offset` continues has reached the cutoff.
    fn is_long(&mut self, offset: u64, bytes: u64) -> bool {
        let known = self.streams.iter().position(|(end, _)| *end == offset);
        let before = known.and_then(|at| self.streams.remove(at)).map_or(0, |(_, length)| length);
        if self.streams.len() == STREAMS {
            self.streams.pop_front();
        }
        self.streams.push_back((offset + bytes, before + bytes));
        self.cutoff_bytes > 0 && before + bytes >= self.cutoff_bytes
    }

    /// Puts a page into the cache at a new place. If every bucket is dirty it does not; then a
    /// dirty page that is written in part is written where it is, any other is forgotten.
    fn append(&mut self, page: u64, start: u64, end: u64, dirty: bool, plan: &mut Plan) -> bool {
        let Some(bucket) = self.open_bucket(dirty) else {
            let slot = self.index.get(&page).copied();
            match slot.filter(|slot| slot.dirty && end - start < PAGE_BYTES) {
                Some(slot) => {
                    let (offset, bytes) = (self.place(slot) + start % PAGE_BYTES, end - start);
                    plan.push(Stage::Store, Part { member: FAST, op: Op::Write, offset, bytes });
                }
                None => self.forget(page),
            }
            return false;
        };
        self.forget(page);
        let entry = &mut self.buckets[bucket as usize];
        let slot = Slot { bucket, index: entry.pages.len() as u32, dirty };
        entry.pages.push(page);
        entry.live += 1;
        entry.dirty += u32::from(dirty);
        if dirty {
            self.dirty.insert(page);
        }
        self.index.insert(page, slot);
        self.is_unlogged = true;
        let (offset, bytes) = (self.place(slot) + start % PAGE_BYTES, end - start);
        plan.push(Stage::Store, Part { member: FAST, op: Op::Write, offset, bytes });
        if self.buckets[bucket as usize].pages.len() == self.per_bucket {
            self.open[usize::from(dirty)] = None;
            self.settle(bucket);
        }
        true
    }

    /// The bucket that is being filled; the one used longest ago is taken again if none is free.
    fn open_bucket(&mut self, dirty: bool) -> Option<u32> {
        let open = usize::from(dirty);
        if self.open[open].is_none() {
            if self.free.is_empty() {
                let victim = self.clean.oldest_first().next()?.0 as u32;
                let pages = std::mem::take(&mut self.buckets[victim as usize].pages);
                for (page, index) in pages.into_iter().zip(0..) {
                    let slot = self.index.get(&page);
                    if slot.is_some_and(|slot| (slot.bucket, slot.index) == (victim, index)) {
                        self.index.remove(&page);
                    }
                }
                self.buckets[victim as usize].live = 0;
                self.settle(victim);
                self.counts.reused_buckets += 1;
            }
            self.open[open] = self.free.pop_front();
        }
        self.open[open]
    }

    /// Drops a page.
    fn forget(&mut self, page: u64) {
        let Some(slot) = self.index.remove(&page) else { return };
        let bucket = &mut self.buckets[slot.bucket as usize];
        bucket.live -= 1;
        if slot.dirty {
            bucket.dirty -= 1;
            self.dirty.remove(&page);
        }
        self.settle(slot.bucket);
    }

    /// Puts a bucket that is not being filled where it belongs: free, clean, or neither.
    fn settle(&mut self, bucket: u32) {
        if self.open.contains(&Some(bucket)) {
            return;
        }
        let number = u64::from(bucket);
        let entry = &mut self.buckets[bucket as usize];
        if entry.live == 0 {
            entry.pages.clear();
            self.clean.remove(number);
            self.free.push_back(bucket);
        } else if entry.dirty > 0 {
            self.clean.remove(number);
        } else if self.clean.peek(number).is_none() {
            self.clean.insert(number, ());
        }
    }

    fn place(&self, slot: Slot) -> u64 {
        (u64::from(slot.bucket) * self.per_bucket as u64 + u64::from(slot.index)) * PAGE_BYTES
    }

    /// Adds to `plan` the next dirty pages in the order of their addresses, at most `most` in a
    /// row, from the fast device to the slow one; how many.
    pub fn write_back(&mut self, most: u64, plan: &mut Plan) -> u64 {
        let next = self.dirty.range(self.cursor..).next().or_else(|| self.dirty.first());
        let Some(&first) = next else { return 0 };
        let mut page = first;
        while page < first + most && self.dirty.remove(&page) {
            let slot = self.index.get_mut(&page).expect("a dirty page is cached");
            slot.dirty = false;
            let slot = *slot;
            self.buckets[slot.bucket as usize].dirty -= 1;
            self.settle(slot.bucket);
            let (offset, bytes) = (self.place(slot), PAGE_BYTES);
            plan.push(Stage::Fetch, Part { member: FAST, op: Op::Read, offset, bytes });
            let offset = page * PAGE_BYTES;
            plan.push(Stage::Store, Part { member: SLOW, op: Op::Write, offset, bytes });
            page += 1;
        }
        self.cursor = page;
        self.counts.written_back_bytes += (page - first) * PAGE_BYTES;
        page - first
    }

    /// Every count again from what it counts: for tests.
    pub fn assert_consistent(&self) {
        let sum =
            |of: fn(&Bucket) -> u32| self.buckets.iter().map(|b| of(b) as usize).sum::<usize>();
        assert_eq!(sum(|bucket| bucket.live), self.index.len(), "live pages");
        assert_eq!(sum(|bucket| bucket.dirty), self.dirty.len(), "dirty pages");
        let open: Vec<u32> = self.open.iter().flatten().copied().collect();
        let dirty = (0..)
            .zip(&self.buckets)
            .filter(|(number, bucket)| bucket.dirty > 0 && !open.contains(number));
        let known = self.free.len() + self.clean.len() + open.len() + dirty.count();
        assert_eq!(known + 1, self.buckets.len(), "buckets");
    }
}

/// The pages of a range: number, first byte, end.
fn pieces(offset: u64, bytes: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    let end = offset + bytes;
    (offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES))
        .map(move |page| (page, offset.max(page * PAGE_BYTES), end.min((page + 1) * PAGE_BYTES)))
}
