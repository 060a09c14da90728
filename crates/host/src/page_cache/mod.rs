//! The page cache: which reads of a file reach the file system, and when its writes do.
//!
//! - Replacement: [`replacement`]. Read-ahead: [`read_ahead`].
//! - Write-back as Linux has it (mm/page-writeback.c of 2.6.32, same defaults in 6.x): the flusher
//!   wakes every 5 s and writes files that are dirty for 30 s; above the background limit (10 % of
//!   memory) it writes file by file, oldest first, up to 1024 pages in a turn, at the bandwidth of
//!   the device; above the hard limit (20 %) the writer itself writes until it is below.
//! - A write of a part of a page that is not cached reads that page first.
//! - O_DIRECT passes by: it writes back dirty pages of its range before, and a direct write drops
//!   the cached ones.
//!
//! The cache issues no I/O: it appends [`Action`]s, which the stack hands to the file system in
//! order. Invariant, asserted: bytes written by callers = bytes in actions + bytes overwritten
//! while dirty + bytes still dirty.

mod dirty;
pub mod read_ahead;
pub mod replacement;

use dirty::DirtyPages;
use read_ahead::{ReadAhead, Window};
use replacement::{Policy, Replacement, Victim};

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;

/// Most pages that leave together where memory is short: those beside a dirty victim.
const CLUSTER_PAGES: usize = 256;

/// Pages of a request that are looked ahead for: more would push each other out.
const LOOK_AHEAD_PAGES: usize = 16;

/// What a page cache is like.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Bytes for pages, at least one page.
    pub memory_bytes: u64,
    /// Which page leaves.
    pub policy: Policy,
    /// Longest window of read-ahead in pages; 0 reads what is asked for.
    pub read_ahead_pages: u64,
    /// Share of the memory above which the flusher writes, 0 to 1.
    pub dirty_background: f64,
    /// Share of the memory above which writers write themselves.
    pub dirty_hard: f64,
    /// Time between two wake-ups of the flusher, ns.
    pub wake_ns: u64,
    /// Age from which it writes a file whatever the limits say, ns.
    pub expire_ns: u64,
    /// How fast the flusher writes above the background limit, bytes per second.
    pub write_back_bytes_per_s: u64,
}

impl Default for Settings {
    /// The defaults of Linux with 1 GiB; its first estimate of a device is 100 MiB/s.
    fn default() -> Self {
        Self {
            memory_bytes: 1 << 30,
            policy: Policy::Lru,
            read_ahead_pages: 32,
            dirty_background: 0.10,
            dirty_hard: 0.20,
            wake_ns: 5_000_000_000,
            expire_ns: 30_000_000_000,
            write_back_bytes_per_s: 100 << 20,
        }
    }
}

/// Bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The file.
    pub file: u32,
    /// First byte.
    pub offset: u64,
    /// Bytes, at least one.
    pub bytes: u64,
}

impl Span {
    /// The pages that it touches.
    pub fn pages(&self) -> std::ops::Range<u64> {
        self.offset / PAGE_BYTES..(self.offset + self.bytes).div_ceil(PAGE_BYTES)
    }

    /// The bytes of `page` that it covers.
    fn within(&self, page: u64) -> std::ops::Range<u64> {
        let start = page * PAGE_BYTES;
        let from = self.offset.max(start) - start;
        from..(self.offset + self.bytes).min(start + PAGE_BYTES) - start
    }

    fn bytes_within(&self, page: u64) -> u64 {
        let part = self.within(page);
        part.end - part.start
    }
}

/// A page to be written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirtyPage {
    /// Its number in the file.
    pub page: u64,
    /// Bytes of it that callers wrote, each counted once.
    pub data_bytes: u64,
    /// End of the last byte written, in the file.
    pub until: u64,
}

/// Why pages are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A caller asked for bytes of them, so many.
    Asked(u64),
    /// Part of a page is to be overwritten.
    Fill,
}

/// What the file system is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read pages. The last `ahead` of them were not asked for.
    Read {
        /// The file.
        file: u32,
        /// First page.
        first: u64,
        /// Pages.
        pages: u64,
        /// Pages at the end that are read ahead.
        ahead: u64,
        /// Why the others are read.
        want: Want,
    },
    /// Write pages back, in the order of the file.
    Write {
        /// When: the flusher works between requests. ns.
        at_ns: u64,
        /// The file.
        file: u32,
        /// The pages, ascending.
        pages: Vec<DirtyPage>,
    },
}

/// What the cache did so far, in bytes of callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Asked for by reads.
    pub read_bytes: u64,
    /// Of these, found in the cache.
    pub hit_bytes: u64,
    /// Written by callers.
    pub written_bytes: u64,
    /// Of these, overwritten by a later write before they were written back.
    pub absorbed_bytes: u64,
    /// Of these, handed down.
    pub handed_down_bytes: u64,
}

/// A page cache.
pub struct PageCache {
    settings: Settings,
    pages: Replacement,
    dirty: DirtyPages,
    /// By file.
    readers: Vec<ReadAhead>,
    counts: Counts,
    victims: Vec<Victim>,
    next_wake_ns: u64,
    next_turn_ns: u64,
}

impl PageCache {
    /// An empty cache.
    pub fn new(settings: Settings) -> Self {
        let bytes = settings.memory_bytes.max(PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES;
        Self {
            pages: Replacement::new(settings.policy, bytes),
            next_wake_ns: settings.wake_ns,
            settings,
            dirty: DirtyPages::default(),
            readers: Vec::new(),
            counts: Counts::default(),
            victims: Vec::new(),
            next_turn_ns: 0,
        }
    }

    /// What happened so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Bytes of callers that are written in memory only.
    pub fn dirty_bytes(&self) -> u64 {
        self.dirty.data_bytes()
    }

    /// Pages with such bytes.
    pub fn dirty_pages(&self) -> u64 {
        self.dirty.count()
    }

    /// Whether a page of a file is cached.
    pub fn contains(&self, file: u32, page: u64) -> bool {
        self.pages.contains(key(file, page))
    }

    /// A read through the cache from a file of `file_bytes`, at `now_ns`.
    pub fn read(&mut self, now_ns: u64, span: Span, file_bytes: u64, out: &mut Vec<Action>) {
        let asked = span.pages();
        let last_page = file_bytes.div_ceil(PAGE_BYTES).max(asked.end);
        let reader = span.file as usize;
        if self.readers.len() <= reader {
            self.readers.resize(reader + 1, ReadAhead::default());
        }
        let mut reader = self.readers[reader].clone();
        let max = self.settings.read_ahead_pages;
        self.counts.read_bytes += span.bytes;
        let mut page = asked.start;
        while page < asked.end {
            if self.pages.hit(key(span.file, page)) {
                self.counts.hit_bytes += span.bytes_within(page);
                if reader.is_marked(page) {
                    let window = reader.at_mark(max);
                    let fetch = Fetch { now_ns, span, asked: 0..0, last_page };
                    self.fetch(window, &fetch, out);
                }
                page += 1;
                continue;
            }
            let before = self.cached_before(span.file, page, max.max(1));
            let window = reader.at_miss(page, asked.end - page, before, max);
            assert_eq!(window.first, page, "a window for a miss begins with it");
            let end = (window.first + window.pages).min(asked.end);
            self.fetch(window, &Fetch { now_ns, span, asked: page..end, last_page }, out);
            page = end;
        }
        reader.passed(asked.end - 1);
        self.readers[span.file as usize] = reader;
    }

    /// Loads what a request for `span` will need into the caches of the processor.
    pub fn look_ahead(&self, span: Span) {
        for page in span.pages().take(LOOK_AHEAD_PAGES) {
            self.pages.look_ahead(key(span.file, page));
        }
    }

    /// A write through the cache to a file that had `file_bytes` before, at `now_ns`.
    pub fn write(&mut self, now_ns: u64, span: Span, file_bytes: u64, out: &mut Vec<Action>) {
        for page in span.pages() {
            let part = span.within(page);
            let old = file_bytes.saturating_sub(page * PAGE_BYTES).min(PAGE_BYTES);
            let covers = part.start == 0 && part.end >= old;
            if !self.pages.hit_by_write(key(span.file, page)) {
                if old > 0 && !covers {
                    let (file, first, want) = (span.file, page, Want::Fill);
                    out.push(Action::Read { file, first, pages: 1, ahead: 0, want });
                }
                self.touch(now_ns, span.file, page, out);
                self.pages.set_dirty(key(span.file, page), true);
            }
            self.counts.written_bytes += part.end - part.start;
            self.counts.absorbed_bytes +=
                self.dirty.write(now_ns, span.file, page, part.start, part.end);
        }
        self.limit(now_ns, out);
    }

    /// Writes back every dirty page of a file.
    pub fn sync(&mut self, now_ns: u64, file: u32, out: &mut Vec<Action>) {
        let pages = self.dirty.take_all(file);
        self.hand_down(now_ns, file, pages, out);
    }

    /// Writes back every dirty page.
    pub fn sync_all(&mut self, now_ns: u64, out: &mut Vec<Action>) {
        while let Some((file, _)) = self.dirty.oldest() {
            self.sync(now_ns, file, out);
        }
    }

    /// Prepares a read (`drops` false) or write past the cache.
    pub fn pass(&mut self, now_ns: u64, span: Span, drops: bool, out: &mut Vec<Action>) {
        let pages = self.dirty.take_range(span.file, span.pages());
        self.hand_down(now_ns, span.file, pages, out);
        if drops {
            for page in span.pages() {
                self.pages.remove(key(span.file, page));
            }
        }
    }

    /// Lets the flusher do what was due until `now_ns`.
    pub fn wake(&mut self, now_ns: u64, out: &mut Vec<Action>) {
        while self.next_wake_ns <= now_ns {
            let at_ns = self.next_wake_ns;
            while let Some((file, since_ns)) = self.dirty.oldest()
                && since_ns + self.settings.expire_ns <= at_ns
            {
                self.sync(at_ns, file, out);
            }
            if self.dirty.count() == 0 {
                // Nothing becomes dirty before now, so the wake-ups between do nothing.
                let rest = (now_ns - at_ns) / self.settings.wake_ns;
                self.next_wake_ns += rest * self.settings.wake_ns;
            }
            self.next_wake_ns += self.settings.wake_ns;
        }
        while self.over(self.settings.dirty_background) && self.next_turn_ns <= now_ns {
            self.turn(self.next_turn_ns, out);
        }
    }

    /// Acts on the limits after a write.
    fn limit(&mut self, now_ns: u64, out: &mut Vec<Action>) {
        while self.over(self.settings.dirty_hard) {
            self.turn(now_ns, out);
        }
        if self.over(self.settings.dirty_background) && self.next_turn_ns <= now_ns {
            self.next_turn_ns = now_ns;
            self.turn(now_ns, out);
        }
    }

    fn over(&self, share: f64) -> bool {
        let bytes = self.dirty.count() * PAGE_BYTES;
        bytes > 0 && bytes as f64 > share * self.pages.capacity() as f64
    }

    /// One turn of write-back. The next one is due when the device has written this one.
    fn turn(&mut self, at_ns: u64, out: &mut Vec<Action>) {
        let Some((file, _)) = self.dirty.oldest() else { return };
        let pages = self.dirty.take_turn(at_ns, file);
        let bytes = pages.len() as u64 * PAGE_BYTES;
        let rate = self.settings.write_back_bytes_per_s.max(1);
        let spent = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
        self.next_turn_ns = self.next_turn_ns.max(at_ns) + spent as u64;
        self.hand_down(at_ns, file, pages, out);
    }

    fn hand_down(&mut self, at_ns: u64, file: u32, pages: Vec<DirtyPage>, out: &mut Vec<Action>) {
        if pages.is_empty() {
            return;
        }
        for page in &pages {
            self.pages.set_dirty(key(file, page.page), false);
            self.counts.handed_down_bytes += page.data_bytes;
        }
        let counts = &self.counts;
        assert_eq!(
            counts.written_bytes,
            counts.handed_down_bytes + counts.absorbed_bytes + self.dirty.data_bytes(),
            "every byte written is handed down, overwritten or dirty"
        );
        out.push(Action::Write { at_ns, file, pages });
    }

    /// Uses a page, inserting it; dirty victims are written back with the dirty pages beside them.
    fn touch(&mut self, now_ns: u64, file: u32, page: u64, out: &mut Vec<Action>) {
        let mut victims = std::mem::take(&mut self.victims);
        self.pages.access(key(file, page), PAGE_BYTES, &mut victims);
        for victim in victims.drain(..).filter(|victim| victim.dirty) {
            let (file, page) = ((victim.key >> 40) as u32, victim.key & ((1 << 40) - 1));
            let run = self.dirty.take_run(file, page, CLUSTER_PAGES);
            self.hand_down(now_ns, file, run, out);
        }
        self.victims = victims;
    }

    /// Cached pages without a gap in front of `page`, `max` at most.
    fn cached_before(&self, file: u32, page: u64, max: u64) -> u64 {
        let before = (page.saturating_sub(max)..page).rev();
        before.take_while(|page| self.contains(file, *page)).count() as u64
    }

    /// Reads the pages of a window that are not cached, a request per gap, and caches them.
    fn fetch(&mut self, window: Window, fetch: &Fetch, out: &mut Vec<Action>) {
        let Fetch { now_ns, span, ref asked, last_page } = *fetch;
        let end = (window.first + window.pages).min(last_page);
        let mut page = window.first;
        while page < end {
            if self.contains(span.file, page) {
                if asked.contains(&page) {
                    self.counts.hit_bytes += span.bytes_within(page);
                }
                page += 1;
                continue;
            }
            let first = page;
            let mut bytes = 0;
            while page < end && !self.contains(span.file, page) {
                if asked.contains(&page) {
                    bytes += span.bytes_within(page);
                }
                page += 1;
            }
            let ahead = page - asked.end.clamp(first, page);
            let (file, want) = (span.file, Want::Asked(bytes));
            out.push(Action::Read { file, first, pages: page - first, ahead, want });
            for page in first..page {
                self.touch(now_ns, span.file, page, out);
            }
        }
    }
}

/// What a read needs to know of its request while it fetches windows for it.
struct Fetch {
    now_ns: u64,
    span: Span,
    /// Pages that the request itself asks for here.
    asked: std::ops::Range<u64>,
    /// End of the file: nothing is read ahead from there on.
    last_page: u64,
}

fn key(file: u32, page: u64) -> u64 {
    assert!(file < 1 << 24 && page < 1 << 40, "a page of a file has a key of 64 bits");
    u64::from(file) << 40 | page
}
