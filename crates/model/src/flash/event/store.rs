//! Where the pages are, without time: the page map of the event model.
//!
//! The same structure as [`crate::flash::PageMapped`], but what there is one step of cleaning is
//! here cut into the operations that dies carry out: choose a victim, move its next live page,
//! erase it. Pages of the map itself follow the logical pages and are kept like them.
//!
//! Invariants: as for the page map; a plane keeps one free block that only moves may open.

use profile::flash::{FlashParameters, Geometry, NONE};

use super::Reason;
use super::slc::Cache;
use crate::SnapshotError;
use crate::flash::blocks::BlockState;
use crate::flash::gc::Victim;
use crate::flash::snapshot::{Reader, Writer};
use crate::flash::{Blocks, Counts};

/// The open block of a stream: its next page and its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Frontier {
    pub next: u32,
    pub end: u32,
}

/// A victim and the next page of it to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cleaning {
    victim: u32,
    page: u32,
}

/// The page map.
#[derive(Clone, Debug)]
pub(super) struct Store<V> {
    pub geometry: Geometry,
    map: Vec<u32>,
    reverse: Vec<u32>,
    pub blocks: Blocks,
    /// By plane, then stream; the last one is for moves where they are kept apart.
    frontiers: Vec<Frontier>,
    host_streams: u32,
    width: u32,
    victims: V,
    cleaning: Vec<Option<Cleaning>>,
    /// Live pages of each plane, with those that are on their way.
    load: Vec<u32>,
    load_most: u32,
    look: u32,
    /// Blocks that are written as SLC first.
    pub slc: Option<Cache>,
    pub counts: Counts,
}

impl<V: Victim> Store<V> {
    /// Nothing written; `pages` logical and map pages.
    pub fn new(parameters: &FlashParameters, victims: V, pages: u32) -> Self {
        let geometry = parameters.geometry;
        let planes = geometry.plane_count() as usize;
        let width = parameters.host_streams + u32::from(parameters.gc.separate);
        let reserve = parameters.reserved_blocks_per_plane();
        Self {
            geometry,
            map: vec![NONE; pages as usize],
            reverse: vec![NONE; geometry.page_count() as usize],
            blocks: Blocks::new(&geometry),
            frontiers: vec![Frontier::default(); planes * width as usize],
            host_streams: parameters.host_streams,
            width,
            victims,
            cleaning: vec![None; planes],
            load: vec![0; planes],
            load_most: (geometry.blocks_per_plane - reserve) * geometry.pages_per_block,
            look: parameters.wear.dynamic_look_blocks,
            slc: Cache::of(parameters),
            counts: Counts::default(),
        }
    }

    /// Logical and map pages.
    pub fn page_count(&self) -> usize {
        self.map.len()
    }

    /// The physical page of `lpn`.
    pub fn find(&self, lpn: u32) -> Option<u32> {
        self.map.get(lpn as usize).copied().filter(|ppn| *ppn != NONE)
    }

    /// The plane of a physical page.
    pub fn plane_of(&self, ppn: u32) -> u32 {
        ppn / self.geometry.pages_per_block / self.geometry.blocks_per_plane
    }

    /// The place of a physical page in its block.
    pub fn page_of(&self, ppn: u32) -> u32 {
        ppn % self.geometry.pages_per_block
    }

    /// The number that decides the times of a physical page: its place in its block, or one beyond
    /// those where it is written as SLC.
    pub fn timed_page(&self, ppn: u32) -> u32 {
        match self.blocks.get(ppn / self.geometry.pages_per_block).state {
            BlockState::Slc => self.geometry.pages_per_block,
            _ => self.page_of(ppn),
        }
    }

    /// Whether `plane` can take one more page for good.
    pub fn can_hold(&self, plane: u32) -> bool {
        self.load[plane as usize] < self.load_most
    }

    /// A page is on its way to `plane`.
    pub fn expect(&mut self, plane: u32) {
        self.load[plane as usize] += 1;
    }

    fn frontier(&self, plane: u32, stream: u16) -> usize {
        (plane * self.width + u32::from(stream) % self.host_streams) as usize
    }

    /// Whether a host page of `stream` finds a place in `plane` now.
    pub fn has_room(&self, plane: u32, stream: u16) -> bool {
        if let Some(cache) = &self.slc {
            if cache.has_room(plane, &self.blocks) {
                return true;
            }
            if cache.must_fold(plane, &self.blocks) {
                return false;
            }
        }
        let Frontier { next, end } = self.frontiers[self.frontier(plane, stream)];
        next < end || self.blocks.free_count(plane) > 1
    }

    /// Whether a host page waits until `plane` has folded a block of the SLC cache.
    pub fn must_fold(&self, plane: u32) -> bool {
        self.slc.as_ref().is_some_and(|cache| cache.must_fold(plane, &self.blocks))
    }

    /// Whether `plane` has something to fold.
    pub fn can_fold(&self, plane: u32) -> bool {
        self.slc.as_ref().is_some_and(|cache| cache.can_fold(plane))
    }

    fn is_cached(&self, plane: u32) -> bool {
        self.slc.as_ref().is_some_and(|cache| cache.has_room(plane, &self.blocks))
    }

    /// The number that the next host page of `stream` in `plane` has, as [`Store::timed_page`]
    /// counts; none where it finds no place.
    pub fn next_number(&self, plane: u32, stream: u16) -> Option<u32> {
        let dense = || self.number_at(self.frontier(plane, stream));
        let number = || if self.is_cached(plane) { self.geometry.pages_per_block } else { dense() };
        self.has_room(plane, stream).then(number)
    }

    /// The number that the next page moved within `plane` has in its block.
    pub fn next_moved_number(&self, plane: u32) -> u32 {
        self.number_at((plane * self.width + self.width - 1) as usize)
    }

    fn number_at(&self, frontier: usize) -> u32 {
        let Frontier { next, end } = self.frontiers[frontier];
        if next == end { 0 } else { self.page_of(next) }
    }

    /// Whether the victim of `plane` has live pages left.
    pub fn has_live(&self, plane: u32) -> bool {
        let Cleaning { victim, .. } = self.cleaning[plane as usize].expect("a victim");
        self.blocks.get(victim).valid > 0
    }

    /// Writes `lpn` to `plane`, which expects it.
    pub fn write(&mut self, lpn: u32, plane: u32, stream: u16) -> u32 {
        let ppn = self.take_for_host(plane, stream);
        self.map_to(lpn, ppn)
    }

    /// Writes `lpn` to dense cells of `plane`, which expects it.
    pub fn write_dense(&mut self, lpn: u32, plane: u32) -> u32 {
        let at = self.frontier(plane, 0);
        self.place(lpn, plane, at)
    }

    /// Takes a page of `plane`, which expects one, for data that are outdated already.
    pub fn waste(&mut self, plane: u32, stream: u16) -> u32 {
        self.load[plane as usize] -= 1;
        let ppn = self.take_for_host(plane, stream);
        self.reverse[ppn as usize] = NONE;
        ppn
    }

    /// The next page of `plane` for data of `stream`, in the SLC cache where that has room.
    fn take_for_host(&mut self, plane: u32, stream: u16) -> u32 {
        if !self.is_cached(plane) {
            return self.take(plane, self.frontier(plane, stream));
        }
        let pages = self.geometry.pages_per_block;
        let cache = self.slc.as_mut().expect("a cache with room");
        let cached = &mut cache.by_plane[plane as usize];
        let open = cached.open.get_or_insert_with(|| {
            let block = self.blocks.open(plane, self.look);
            self.blocks.all[block as usize].state = BlockState::Slc;
            Frontier { next: block * pages, end: block * pages + cache.pages }
        });
        let ppn = open.next;
        open.next += 1;
        if open.next == open.end {
            cached.open = None;
            cached.full.push_back(ppn / pages);
        }
        ppn
    }

    fn take(&mut self, plane: u32, at: usize) -> u32 {
        if self.frontiers[at].next == self.frontiers[at].end {
            self.close(plane, at);
            let first = self.blocks.open(plane, self.look) * self.geometry.pages_per_block;
            let end = first + self.geometry.pages_per_block;
            self.frontiers[at] = Frontier { next: first, end };
        }
        let ppn = self.frontiers[at].next;
        self.frontiers[at].next += 1;
        ppn
    }

    fn place(&mut self, lpn: u32, plane: u32, at: usize) -> u32 {
        let ppn = self.take(plane, at);
        self.map_to(lpn, ppn)
    }

    fn map_to(&mut self, lpn: u32, ppn: u32) -> u32 {
        self.blocks.all[(ppn / self.geometry.pages_per_block) as usize].valid += 1;
        self.reverse[ppn as usize] = lpn;
        let old = std::mem::replace(&mut self.map[lpn as usize], ppn);
        self.forget(old);
        ppn
    }

    fn close(&mut self, plane: u32, at: usize) {
        let end = self.frontiers[at].end;
        if end != 0 {
            let block = end / self.geometry.pages_per_block - 1;
            let info = &mut self.blocks.all[block as usize];
            info.state = BlockState::Closed;
            self.victims.closed(plane, block, info.valid);
        }
    }

    fn forget(&mut self, ppn: u32) {
        if ppn == NONE {
            return;
        }
        let block = ppn / self.geometry.pages_per_block;
        let plane = self.plane_of(ppn);
        self.load[plane as usize] -= 1;
        let info = &mut self.blocks.all[block as usize];
        info.valid -= 1;
        if info.state == BlockState::Closed {
            let valid = info.valid;
            self.victims.invalidated(plane, block, valid);
        }
    }

    /// Forgets `lpn`.
    pub fn trim(&mut self, lpn: u32) {
        let old = std::mem::replace(&mut self.map[lpn as usize], NONE);
        self.counts.trimmed_pages += u64::from(old != NONE);
        self.forget(old);
    }

    /// Whether `plane` is in the middle of a victim.
    pub fn is_cleaning(&self, plane: u32) -> bool {
        self.cleaning[plane as usize].is_some()
    }

    /// Chooses a victim for `plane`; `false` where there is none with anything to gain.
    pub fn begin(&mut self, plane: u32, reason: Reason) -> bool {
        let folds = reason != Reason::Short;
        let cache = self.slc.as_mut().filter(|cache| folds || cache.lends(plane));
        if let Some(victim) = cache.and_then(|cache| cache.fold(plane)) {
            self.cleaning[plane as usize] = Some(Cleaning { victim, page: 0 });
            return true;
        }
        if folds {
            return false;
        }
        let Some(victim) = self.victims.take(plane, &self.blocks) else { return false };
        let used = self.geometry.blocks_per_plane - self.blocks.free_count(plane);
        let first = (plane * self.width) as usize;
        let open = &self.frontiers[first..first + self.width as usize];
        let unwritten: u32 = open.iter().map(|frontier| frontier.end - frontier.next).sum();
        self.counts.victims += 1;
        self.counts.in_use_pages_sum += u64::from(used * self.geometry.pages_per_block - unwritten);
        self.blocks.all[victim as usize].state = BlockState::Cleaning;
        self.cleaning[plane as usize] = Some(Cleaning { victim, page: 0 });
        true
    }

    /// Moves the next live page of the victim of `plane`: gives the logical page and its numbers in
    /// the old and the new block, as [`Store::timed_page`] counts; `None` where no page is left.
    pub fn move_next(&mut self, plane: u32) -> Option<(u32, u32, u32)> {
        let Cleaning { victim, page } = self.cleaning[plane as usize].expect("a victim");
        let pages = self.geometry.pages_per_block;
        if self.blocks.get(victim).valid == 0 {
            return None;
        }
        let live = (page..pages).find(|page| {
            let ppn = victim * pages + page;
            self.find(self.reverse[ppn as usize]) == Some(ppn)
        });
        let page = live.expect("a block with live pages behind those already moved");
        self.cleaning[plane as usize] = Some(Cleaning { victim, page: page + 1 });
        let lpn = self.reverse[(victim * pages + page) as usize];
        self.load[plane as usize] += 1;
        let from = self.timed_page(victim * pages + page);
        let at = (plane * self.width + self.width - 1) as usize;
        let to = self.place(lpn, plane, at);
        let folds = from == pages;
        self.counts.folded_pages += u64::from(folds);
        self.counts.moved_pages += u64::from(!folds);
        Some((lpn, from, to % pages))
    }

    /// The victim of `plane` was erased.
    pub fn erased(&mut self, plane: u32) {
        let Cleaning { victim, .. } = self.cleaning[plane as usize].take().expect("a victim");
        self.counts.erased_blocks += 1;
        if let Some(cache) = &mut self.slc {
            cache.by_plane[plane as usize].is_folding = false;
        }
        self.blocks.release(plane, victim);
    }

    pub fn save(&self, to: &mut Writer) {
        let Self {
            geometry: _, map, reverse, blocks, frontiers, host_streams: _, width: _, ..
        } = self;
        let Self { victims, cleaning, load, load_most: _, look: _, slc, counts, .. } = self;
        to.u32s(map);
        to.u32s(reverse);
        blocks.save(to);
        for Frontier { next, end } in frontiers {
            to.u32s(&[*next, *end]);
        }
        victims.save(to);
        for cleaning in cleaning {
            let Cleaning { victim, page } = cleaning.unwrap_or(Cleaning { victim: NONE, page: 0 });
            to.u32s(&[victim, page]);
        }
        to.u32s(load);
        if let Some(cache) = slc {
            cache.save(to);
        }
        counts.save(to);
    }

    pub fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        let (logical, physical) = (self.map.len(), self.reverse.len());
        from.indices(&mut self.map, physical)?;
        from.indices(&mut self.reverse, logical)?;
        self.blocks.load(from)?;
        let mut pair = [0; 2];
        for frontier in &mut self.frontiers {
            from.u32s(&mut pair)?;
            *frontier = Frontier { next: pair[0], end: pair[1] };
            if frontier.next > frontier.end || frontier.end as usize > physical {
                return Err(from.damaged());
            }
        }
        self.victims.load(from)?;
        for cleaning in &mut self.cleaning {
            from.u32s(&mut pair)?;
            let [victim, page] = pair;
            if victim != NONE
                && (victim >= self.geometry.block_count() || page > self.geometry.pages_per_block)
            {
                return Err(from.damaged());
            }
            *cleaning = (victim != NONE).then_some(Cleaning { victim, page });
        }
        from.u32s(&mut self.load)?;
        if let Some(cache) = &mut self.slc {
            cache.load(from, self.geometry.block_count(), self.geometry.pages_per_block)?;
        }
        self.counts.load(from)
    }

    /// Live pages in the SLC cache; none where there is no cache.
    pub fn cached_pages(&self) -> Option<u64> {
        self.slc.as_ref()?;
        let cached = self.blocks.all.iter().filter(|block| block.state == BlockState::Slc);
        Some(cached.map(|block| u64::from(block.valid)).sum())
    }

    /// The blocks of the cache of `plane`, as the cache lists them and as the blocks say.
    fn audit_cache(&self, plane: u32) {
        let Some(cache) = &self.slc else { return };
        let cached = &cache.by_plane[plane as usize];
        let open = cached.open.map(|open| open.next / self.geometry.pages_per_block);
        let victim = self.cleaning[plane as usize].map(|cleaning| cleaning.victim);
        let folded = victim.filter(|_| cached.is_folding);
        let mut listed: Vec<u32> = cached.full.iter().copied().chain(open).chain(folded).collect();
        listed.sort_unstable();
        let is_cached = |block: &u32| self.blocks.get(*block).state == BlockState::Slc;
        let own: Vec<u32> = self.blocks.of_plane(plane).filter(is_cached).collect();
        assert_eq!(listed, own, "blocks of the cache of plane {plane}");
    }

    /// Verifies maps and counts.
    pub fn audit(&self) {
        let pages = self.geometry.pages_per_block;
        let mut valid = vec![0u16; self.blocks.all.len()];
        for (lpn, &ppn) in self.map.iter().enumerate().filter(|(_, ppn)| **ppn != NONE) {
            assert_eq!(self.reverse[ppn as usize] as usize, lpn, "physical page {ppn}");
            valid[(ppn / pages) as usize] += 1;
        }
        for (number, (block, valid)) in self.blocks.all.iter().zip(&valid).enumerate() {
            assert_eq!(block.valid, *valid, "live pages of block {number}");
            assert!(block.state != BlockState::Free || *valid == 0, "block {number} is not free");
        }
        for plane in 0..self.geometry.plane_count() {
            let live: u32 =
                self.blocks.of_plane(plane).map(|block| u32::from(valid[block as usize])).sum();
            assert!(live <= self.load[plane as usize], "pages of plane {plane} nobody expected");
            self.audit_cache(plane);
        }
    }
}
