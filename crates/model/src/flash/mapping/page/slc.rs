//! The page map behind an SLC cache: see `crate::flash::slc`.
//!
//! Blocks of the cache are blocks of the page map that cleaning does not see: a page in one is
//! mapped like any other, but a block is full with a part of its pages, and they have times of
//! their own. Folding moves the live pages of the block that was written first to the blocks for
//! moved pages of the same plane, as cleaning would, and counts them apart.
//!
//! Planes that take part in one multi-plane command need not be in step here: drives open the
//! blocks of their cache in all planes of a die at once.
//!
//! Invariants, audited: those of the page map; a block of the cache is open or waits to be folded,
//! in the order in which it was written; programs = host pages + moved pages + folded pages.

use std::collections::VecDeque;

use profile::flash::{FlashParameters, NONE, SlcParameters, WhenFull};

use super::super::{Mapping, PageRead, PageWrite};
use super::{CLOSED, Frontier, PageMapped};
use crate::SnapshotError;
use crate::flash::allocation::Allocation;
use crate::flash::blocks::BlockState;
use crate::flash::device::PathApart;
use crate::flash::gc::Victim;
use crate::flash::nand::{Nand, PageAt};
use crate::flash::snapshot::{Reader, Writer};
use crate::flash::{Blocks, Counts};
use crate::observe::{Cause, Purpose, Watch};

/// The blocks of the cache in one plane.
#[derive(Clone, Debug, Default, PartialEq)]
struct Cached {
    /// The one that is written.
    open: Option<Frontier>,
    /// Full ones, the one written first in front.
    full: VecDeque<u32>,
    /// Pages of that one that were looked at.
    folded: u32,
}

impl Cached {
    fn blocks(&self) -> u32 {
        self.full.len() as u32 + u32::from(self.open.is_some())
    }
}

/// A page map behind an SLC cache.
#[derive(Clone, Debug)]
pub struct SlcCached<V, A> {
    main: PageMapped<V, A>,
    slc: SlcParameters,
    /// Pages of a block that is written as SLC.
    pages: u32,
    /// By plane.
    cached: Vec<Cached>,
}

impl<V: Victim, A: Allocation> SlcCached<V, A> {
    /// An empty cache of `slc` before an empty page map.
    pub fn new(parameters: &FlashParameters, slc: SlcParameters, main: PageMapped<V, A>) -> Self {
        let geometry = &parameters.geometry;
        Self {
            main,
            slc,
            pages: geometry.pages_per_block / parameters.timing.cell.bits() as u32,
            cached: vec![Cached::default(); geometry.plane_count() as usize],
        }
    }

    /// The place of `ppn` in its block as times go: all pages of the cache are alike.
    fn timed_page(&self, ppn: u32) -> u32 {
        match self.main.blocks.get(self.main.block_of(ppn)).state {
            BlockState::Slc => self.main.geometry.pages_per_block,
            _ => self.main.page_of(ppn),
        }
    }

    /// Lets the open block of the cache of `plane` be folded, where it is full.
    fn close_full(&mut self, plane: u32) {
        let cached = &mut self.cached[plane as usize];
        if let Some(full) = cached.open.take_if(|open| open.next == open.end) {
            cached.full.push_back((full.end - 1) / self.main.geometry.pages_per_block);
        }
    }

    /// Whether the cache of `plane` takes a page; opens a block of it where it must and can.
    fn make_room(&mut self, plane: u32) -> bool {
        self.close_full(plane);
        let cached = &mut self.cached[plane as usize];
        if cached.open.is_some() {
            return true;
        }
        let pages = self.main.geometry.pages_per_block;
        let free = self.main.blocks.free_count(plane);
        let lends = if self.slc.dynamic { free > self.main.low } else { free > 1 };
        if cached.blocks() >= self.slc.blocks || !lends {
            return false;
        }
        let block = self.main.open_block(plane, 0, self.main.wear.look());
        self.main.blocks.all[block as usize].state = BlockState::Slc;
        let first = block * pages;
        self.cached[plane as usize].open = Some(Frontier { next: first, end: first + self.pages });
        true
    }

    /// Maps `lpn` to the next page of the cache of `plane`, which has room.
    fn place(&mut self, lpn: u32, plane: u32) {
        let open = self.cached[plane as usize].open.as_mut().expect("the cache has room");
        let ppn = open.next;
        open.next += 1;
        let main = &mut self.main;
        let block = main.block_of(ppn);
        main.blocks.all[block as usize].valid += 1;
        main.reverse[ppn as usize] = lpn;
        let old = std::mem::replace(&mut main.map[lpn as usize], ppn);
        if !A::BOUND {
            main.live[plane as usize] += 1;
        }
        if old != NONE {
            main.invalidate(old);
        }
    }

    /// Whether the block of `plane` that would be folded next only needs to be erased.
    fn is_dead(&self, plane: u32) -> bool {
        let next = self.cached[plane as usize].full.front();
        next.is_some_and(|block| self.main.blocks.get(*block).valid == 0)
    }

    /// Folds at most `budget` live pages of the block of `plane` that was written first, and erases
    /// it where none is left. Gives the time it takes, ns; `None` where there is nothing to fold.
    fn fold(&mut self, nand: &Nand, plane: u32, budget: u32) -> Option<u64> {
        let victim = *self.cached[plane as usize].full.front()?;
        let pages = self.main.geometry.pages_per_block;
        let at = ((plane + 1) * self.main.width - 1) as usize;
        let (mut ns, mut left) = (0, budget);
        let mut page = self.cached[plane as usize].folded;
        while left > 0 && page < self.pages && self.main.blocks.get(victim).valid > 0 {
            let ppn = victim * pages + page;
            if self.main.is_live(ppn) {
                let to = self.main.place(self.main.reverse[ppn as usize], plane, at);
                ns += nand.copy_ns(pages, self.main.page_of(to));
                self.main.counts.folded_pages += 1;
                left -= 1;
            }
            page += 1;
        }
        self.cached[plane as usize].folded = page;
        if self.main.blocks.get(victim).valid == 0 {
            let cached = &mut self.cached[plane as usize];
            cached.full.pop_front();
            cached.folded = 0;
            self.main.blocks.release(plane, victim);
            self.main.counts.erased_blocks += 1;
            ns += nand.erase_ns();
        }
        Some(ns)
    }

    /// Folds a whole block of `plane`, which keeps its die busy; `false` where there is none.
    fn fold_block<W: Watch>(
        &mut self,
        nand: &mut Nand,
        plane: u32,
        now: u64,
        watch: &mut W,
    ) -> bool {
        let Some(ns) = self.fold(nand, plane, u32::MAX) else { return false };
        nand.occupy((plane, now), ns, Purpose::Folding, watch);
        // Folding opens blocks too, and may leave too few free ones.
        if !self.slc.dynamic {
            self.main.after_write(nand, plane, now, watch);
        }
        true
    }

    /// What the die of `plane` folded while it was idle, before a request at `now`.
    fn fold_idle<W: Watch>(&mut self, nand: &mut Nand, plane: u32, now: u64, watch: &mut W) {
        let Some(after_ns) = self.slc.fold_after_ns else { return };
        let mut at = nand.free_at(plane) + after_ns;
        let planes = self.main.geometry.planes_per_die;
        let first = plane / planes * planes;
        for plane in first..first + planes {
            self.close_full(plane);
            while at < now {
                let Some(ns) = self.fold(nand, plane, 1) else { break };
                at = nand.occupy((plane, at), ns, Purpose::Folding, watch);
                self.main.after_write(nand, plane, at, watch);
                at = nand.free_at(plane).max(at);
            }
        }
    }

    /// Programs `lpn`, whose data are there at `start`, wherever there is room.
    fn program<W: Watch>(
        &mut self,
        nand: &mut Nand,
        (now, start): (u64, u64),
        (lpn, plane): (u32, u32),
        watch: &mut W,
    ) -> u64 {
        let mut cached = self.make_room(plane);
        if !cached && (self.slc.when_full == WhenFull::Fold || self.is_dead(plane)) {
            cached = self.fold_block(nand, plane, now, watch) && self.make_room(plane);
        }
        let page = if cached {
            self.place(lpn, plane);
            self.main.geometry.pages_per_block
        } else {
            let at = (plane * self.main.width) as usize;
            let ppn = self.main.place(lpn, plane, at);
            self.main.page_of(ppn)
        };
        nand.program((now, start), PageAt { plane, page }, watch)
    }
}

impl<V: Victim, A: Allocation> Mapping for SlcCached<V, A> {
    fn touch(&self, lpn: u32) -> u32 {
        self.main.touch(lpn)
    }

    fn read<W: Watch>(&mut self, nand: &mut Nand, now: u64, read: PageRead, watch: &mut W) -> u64 {
        let ppn = self.main.map[read.lpn as usize];
        if ppn == NONE {
            self.main.counts.unwritten_pages += 1;
            return now;
        }
        self.main.counts.read_pages += 1;
        let plane = self.main.plane_of_block(self.main.block_of(ppn));
        self.fold_idle(nand, plane, now, watch);
        self.main.before(nand, plane, now, watch);
        // Both may have moved it, within its plane.
        let page = self.timed_page(self.main.map[read.lpn as usize]);
        nand.read(now, PageAt { plane, page }, read.bytes, watch)
    }

    fn write<W: Watch>(
        &mut self,
        nand: &mut Nand,
        now: u64,
        write: PageWrite,
        watch: &mut W,
    ) -> u64 {
        let mut start = write.arrived_ns;
        if write.bytes < self.main.geometry.page_bytes && self.locate(write.lpn).is_some() {
            self.main.counts.merged_pages += 1;
            let whole = PageRead { lpn: write.lpn, bytes: self.main.geometry.page_bytes };
            start = start.max(self.read(nand, now, whole, &mut PathApart::new(watch)));
            watch.spend(Cause::Medium, start - write.arrived_ns);
            self.main.counts.read_pages -= 1;
        }
        let (live, most) = (&self.main.live, &self.main.live_most);
        let room = |plane: u32| live[plane as usize] < most[plane as usize];
        let plane = self.main.allocation.plane(write.lpn, nand, room);
        self.fold_idle(nand, plane, now, watch);
        self.main.before(nand, plane, now, watch);
        self.main.counts.host_pages += 1;
        let end = self.program(nand, (now, start), (write.lpn, plane), watch);
        while self.slc.dynamic
            && self.main.blocks.free_count(plane) < self.main.low
            && self.fold_block(nand, plane, now, watch)
        {}
        self.main.after_write(nand, plane, now, watch);
        end
    }

    fn trim(&mut self, lpn: u32) {
        self.main.trim(lpn);
    }

    /// All data in dense cells, the cache empty.
    fn precondition(&mut self, nand: &mut Nand, pages: u32, random: bool, seed: u64) {
        self.main.precondition(nand, pages, random, seed);
    }

    fn locate(&self, lpn: u32) -> Option<u32> {
        self.main.locate(lpn)
    }

    fn counts(&self) -> &Counts {
        &self.main.counts
    }

    fn cached_pages(&self) -> Option<u64> {
        let blocks = self.main.blocks.all.iter();
        let cached = blocks.filter(|block| block.state == BlockState::Slc);
        Some(cached.map(|block| u64::from(block.valid)).sum())
    }

    fn reset_counts(&mut self) {
        self.main.reset_counts();
    }

    fn blocks(&self) -> &Blocks {
        &self.main.blocks
    }

    fn audit(&self) {
        self.main.audit();
        let pages = self.main.geometry.pages_per_block;
        for (plane, cached) in self.cached.iter().enumerate() {
            let own = self.main.blocks.of_plane(plane as u32);
            let is_cached = |block: &u32| self.main.blocks.get(*block).state == BlockState::Slc;
            let open = cached.open.map(|open| (open.end - 1) / pages);
            let mut listed: Vec<u32> = cached.full.iter().copied().chain(open).collect();
            listed.sort_unstable();
            assert_eq!(listed, own.filter(is_cached).collect::<Vec<_>>(), "plane {plane}");
            assert!(cached.blocks() <= self.slc.blocks, "blocks of the cache of plane {plane}");
        }
    }

    fn save(&self, to: &mut Writer) {
        self.main.save(to);
        for cached in &self.cached {
            let open = cached.open.unwrap_or(CLOSED);
            to.u32s(&[open.next, open.end, cached.folded, cached.full.len() as u32]);
            for block in &cached.full {
                to.u32(*block);
            }
        }
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        self.main.load(from)?;
        let blocks = self.main.geometry.block_count();
        let physical = self.main.reverse.len();
        for cached in &mut self.cached {
            let mut numbers = [0; 4];
            from.u32s(&mut numbers)?;
            let [next, end, folded, count] = numbers;
            if next > end || end as usize > physical || folded > self.pages || count > blocks {
                return Err(from.damaged());
            }
            cached.open = (end > 0).then_some(Frontier { next, end });
            cached.folded = folded;
            cached.full.clear();
            for _ in 0..count {
                let block = from.u32()?;
                if block >= blocks {
                    return Err(from.damaged());
                }
                cached.full.push_back(block);
            }
        }
        Ok(())
    }
}
