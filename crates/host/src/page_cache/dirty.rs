//! Dirty pages by file: which bytes of them were written, since when, and which are written back
//! next.

use std::collections::BTreeMap;

use super::{DirtyPage, PAGE_BYTES};

/// Pages that one file writes in a turn of the flusher before it is the next file's turn
/// (`MAX_WRITEBACK_PAGES` of Linux 2.6.32).
pub(super) const TURN_PAGES: usize = 1024;

/// The bytes of a page that were written since it was clean.
#[derive(Clone, Copy, Debug)]
struct Written {
    from: u16,
    to: u16,
    /// Bytes that a caller wrote, each byte once; the rest of the page is padding.
    data: u16,
}

impl Written {
    fn of(self, page: u64) -> DirtyPage {
        let (data_bytes, to) = (u64::from(self.data), u64::from(self.to));
        DirtyPage { page, data_bytes, until: page * PAGE_BYTES + to }
    }
}

#[derive(Debug, Default)]
struct File {
    pages: BTreeMap<u64, Written>,
    /// When the oldest of them became dirty.
    since_ns: u64,
    /// Where the next turn begins.
    cursor: u64,
}

/// All dirty pages.
#[derive(Debug, Default)]
pub(super) struct DirtyPages {
    /// By number.
    files: Vec<File>,
    count: u64,
    data_bytes: u64,
}

impl DirtyPages {
    /// Dirty pages.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Bytes that callers wrote into them.
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Writes `from..to` of a page; returns how many of these bytes were dirty already.
    ///
    /// A page knows one range. Two writes with a gap between them make the gap part of it; bytes
    /// in the gap count as data when they are written later, until the whole range is.
    pub fn write(&mut self, now_ns: u64, file: u32, page: u64, from: u64, to: u64) -> u64 {
        let file = file as usize;
        if self.files.len() <= file {
            self.files.resize_with(file + 1, File::default);
        }
        let file = &mut self.files[file];
        if file.pages.is_empty() {
            file.since_ns = now_ns;
        }
        // Places in a page and its 4096 bytes fit 16 bits.
        let (from, to) = (from as u16, to as u16);
        let mut fresh = to - from;
        let written = file.pages.entry(page).or_insert_with(|| {
            self.count += 1;
            Written { from, to: from, data: 0 }
        });
        let (low, high) = (written.from.min(from), written.to.max(to));
        fresh = fresh.min((high - low) - written.data);
        *written = Written { from: low, to: high, data: written.data + fresh };
        self.data_bytes += u64::from(fresh);
        u64::from(to - from - fresh)
    }

    /// Takes all pages of a file, in order.
    pub fn take_all(&mut self, file: u32) -> Vec<DirtyPage> {
        let Some(held) = self.files.get_mut(file as usize) else { return Vec::new() };
        let pages = std::mem::take(&mut held.pages);
        self.count -= pages.len() as u64;
        let taken = pages.into_iter().map(|(page, written)| written.of(page));
        let taken: Vec<_> = taken.collect();
        self.data_bytes -= taken.iter().map(|page| page.data_bytes).sum::<u64>();
        taken
    }

    /// Takes one page, which is clean then.
    pub fn take_page(&mut self, file: u32, page: u64) -> Option<DirtyPage> {
        let taken = self.files.get_mut(file as usize)?.pages.remove(&page)?.of(page);
        self.count -= 1;
        self.data_bytes -= taken.data_bytes;
        Some(taken)
    }

    /// Takes the run of dirty pages without a gap that `page` is in, `most` pages at most.
    pub fn take_run(&mut self, file: u32, page: u64, most: usize) -> Vec<DirtyPage> {
        let Some(File { pages, .. }) = self.files.get(file as usize) else { return Vec::new() };
        let mut first = page;
        while first > 0 && pages.contains_key(&(first - 1)) && page - first < most as u64 / 2 {
            first -= 1;
        }
        (first..).take(most).map_while(|page| self.take_page(file, page)).collect()
    }

    /// Takes the pages of a file in the range, in order.
    pub fn take_range(&mut self, file: u32, pages: std::ops::Range<u64>) -> Vec<DirtyPage> {
        let Some(held) = self.files.get(file as usize) else { return Vec::new() };
        let found: Vec<u64> = held.pages.range(pages).map(|(page, _)| *page).collect();
        found.into_iter().filter_map(|page| self.take_page(file, page)).collect()
    }

    /// The file whose oldest dirty page is the oldest, and since when it is dirty.
    pub fn oldest(&self) -> Option<(u32, u64)> {
        let dirty = (0..).zip(&self.files).filter(|(_, file)| !file.pages.is_empty());
        dirty.map(|(name, file)| (name, file.since_ns)).min_by_key(|(name, at)| (*at, *name))
    }

    /// Takes up to [`TURN_PAGES`] pages of `file`, going on where its last turn ended. What is
    /// left of it queues up behind the files that are dirty now.
    pub fn take_turn(&mut self, now_ns: u64, file: u32) -> Vec<DirtyPage> {
        let Some(held) = self.files.get_mut(file as usize) else { return Vec::new() };
        let mut found: Vec<u64> =
            held.pages.range(held.cursor..).map(|(page, _)| *page).take(TURN_PAGES).collect();
        if found.is_empty() {
            found.extend(held.pages.keys().take(TURN_PAGES));
        }
        held.cursor = found.last().map_or(0, |page| page + 1);
        held.since_ns = now_ns;
        found.into_iter().filter_map(|page| self.take_page(file, page)).collect()
    }
}
