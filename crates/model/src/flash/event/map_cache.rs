//! The part of the page map that is in memory (DFTL): translation pages, least recently used out.
//!
//! A translation page holds the places of as many logical pages as numbers of four bytes fit in a
//! page. Which places it holds is not kept here: the store has them all.
//!
//! Invariant: at most the given number of pages is cached; a page is in the list exactly while it
//! is cached.

use std::collections::BTreeMap;

use crate::SnapshotError;
use crate::flash::snapshot::{Reader, Writer};

const NO_PAGE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    older: u32,
    newer: u32,
    cached: bool,
    dirty: bool,
}

/// Outcome of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// It is there.
    Hit,
    /// It is not, and nobody fetches it yet.
    Miss,
    /// It is not, and is being fetched.
    Fetching,
}

/// The cached part of the map.
#[derive(Clone, Debug)]
pub(super) struct MapCache {
    entries: Vec<Entry>,
    oldest: u32,
    newest: u32,
    used: u32,
    most: u32,
    /// Logical pages whose places one page holds.
    per_page: u32,
    /// Operations that wait for a page.
    waiting: BTreeMap<u32, Vec<u32>>,
    /// Lookups that found their page, and those that did not.
    pub hits: u64,
    pub misses: u64,
}

impl MapCache {
    /// For `logical_pages`, with `most` pages of `page_bytes` in memory.
    pub fn new(logical_pages: u32, page_bytes: u32, most: u32) -> Self {
        let per_page = page_bytes / 4;
        let entry = Entry { older: NO_PAGE, newer: NO_PAGE, cached: false, dirty: false };
        Self {
            entries: vec![entry; logical_pages.div_ceil(per_page) as usize],
            oldest: NO_PAGE,
            newest: NO_PAGE,
            used: 0,
            most,
            per_page,
            waiting: BTreeMap::new(),
            hits: 0,
            misses: 0,
        }
    }

    /// Translation pages of the first `logical_pages`.
    pub fn pages_for(&self, logical_pages: u64) -> u32 {
        logical_pages.div_ceil(u64::from(self.per_page)) as u32
    }

    /// The translation page of `lpn`.
    pub fn page_of(&self, lpn: u32) -> u32 {
        lpn / self.per_page
    }

    /// Looks up `page` for operation `op`, which waits where it is not there; a `write` changes it.
    pub fn look_up(&mut self, page: u32, op: u32, write: bool) -> Lookup {
        let entry = &mut self.entries[page as usize];
        if entry.cached {
            entry.dirty |= write;
            self.hits += 1;
            self.unlink(page);
            self.link(page);
            return Lookup::Hit;
        }
        self.misses += 1;
        let waiting = self.waiting.entry(page).or_default();
        waiting.push(op);
        if waiting.len() == 1 { Lookup::Miss } else { Lookup::Fetching }
    }

    /// Marks `page` as changed, where it is cached; `false` where it is not.
    pub fn change(&mut self, page: u32) -> bool {
        let entry = &mut self.entries[page as usize];
        entry.dirty |= entry.cached;
        entry.cached
    }

    /// `page` was fetched: gives what waited for it, and the changed page that it drove out.
    pub fn fetched(&mut self, page: u32) -> (Vec<u32>, Option<u32>) {
        let mut out = None;
        if self.used == self.most {
            let victim = self.oldest;
            self.unlink(victim);
            let entry = &mut self.entries[victim as usize];
            out = entry.dirty.then_some(victim);
            (entry.cached, entry.dirty) = (false, false);
            self.used -= 1;
        }
        self.entries[page as usize].cached = true;
        self.link(page);
        self.used += 1;
        (self.waiting.remove(&page).unwrap_or_default(), out)
    }

    pub fn save(&self, to: &mut Writer) {
        let Self { entries, oldest, newest, used, most: _, per_page: _, .. } = self;
        let Self { waiting, hits, misses, .. } = self;
        for Entry { older, newer, cached, dirty } in entries {
            to.u32s(&[*older, *newer, u32::from(*cached), u32::from(*dirty)]);
        }
        to.u32s(&[*oldest, *newest, *used]);
        to.u64(waiting.len() as u64);
        for (page, operations) in waiting {
            to.u32(*page);
            to.list(operations.iter().copied());
        }
        to.u64s(&[*hits, *misses]);
    }

    /// Out of a snapshot of a device with this many `operations`.
    pub fn load(&mut self, from: &mut Reader, operations: usize) -> Result<(), SnapshotError> {
        let pages = self.entries.len();
        let fits = |page: u32| (page as usize) < pages || page == NO_PAGE;
        for entry in &mut self.entries {
            let mut numbers = [0; 4];
            from.u32s(&mut numbers)?;
            let [older, newer, cached, dirty] = numbers;
            if !fits(older) || !fits(newer) {
                return Err(from.damaged());
            }
            *entry = Entry { older, newer, cached: cached != 0, dirty: dirty != 0 };
        }
        let mut numbers = [0; 3];
        from.u32s(&mut numbers)?;
        [self.oldest, self.newest, self.used] = numbers;
        if !fits(self.oldest) || !fits(self.newest) || self.used > self.most {
            return Err(from.damaged());
        }
        self.waiting.clear();
        for _ in 0..from.count()? {
            self.waiting.insert(from.below(pages)?, from.list(operations)?);
        }
        let mut numbers = [0; 2];
        from.u64s(&mut numbers)?;
        [self.hits, self.misses] = numbers;
        Ok(())
    }

    fn unlink(&mut self, page: u32) {
        let Entry { older, newer, .. } = self.entries[page as usize];
        match older {
            NO_PAGE => self.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
        match newer {
            NO_PAGE => self.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
    }

    fn link(&mut self, page: u32) {
        let older = std::mem::replace(&mut self.newest, page);
        let entry = &mut self.entries[page as usize];
        (entry.older, entry.newer) = (older, NO_PAGE);
        match older {
            NO_PAGE => self.oldest = page,
            older => self.entries[older as usize].newer = page,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_page_goes_and_changed_ones_are_told() {
        let mut cache = MapCache::new(5 * 1024, 4096, 2);
        assert_eq!((cache.pages_for(5 * 1024), cache.page_of(1024)), (5, 1));
        assert_eq!(cache.look_up(0, 7, true), Lookup::Miss);
        assert_eq!(cache.look_up(0, 8, false), Lookup::Fetching);
        assert_eq!(cache.fetched(0), (vec![7, 8], None));
        assert!(cache.change(0) && !cache.change(1));
        assert_eq!(cache.look_up(1, 9, false), Lookup::Miss);
        assert_eq!(cache.fetched(1), (vec![9], None));
        assert_eq!(cache.look_up(0, 10, false), Lookup::Hit);
        assert_eq!(cache.fetched(2), (vec![], None), "1 was the older one and unchanged");
        assert_eq!(cache.fetched(3), (vec![], Some(0)), "0 had changed");
        assert_eq!(cache.look_up(2, 11, false), Lookup::Hit);
        assert_eq!((cache.hits, cache.misses), (2, 3));
    }
}
