//! Cleaning of the page map: moving the live pages of a victim away and erasing it.
//!
//! - **foreground**: when a write leaves fewer free blocks in its plane than the threshold, whole
//!   victims are cleaned until there are enough; the die is busy with it, and what comes next
//!   waits.
//! - **deferred**: as foreground, but the planes of a die are only looked at when a request comes
//!   for it; an idle die leaves its work to the next request (Agrawal et al., USENIX ATC 2008).
//! - **incremental**: below the threshold every write is followed by at most this many moves; only
//!   a plane at its last free blocks cleans to the end.
//! - **idle**: as foreground, and besides, while a die has nothing to do, its planes clean up to a
//!   higher threshold, page by page. It is worked out when the die is next asked for something: as
//!   nothing touched the die meanwhile, that is exact for pages that belong to their plane, and
//!   where they do not, cleaning sees pages as dead that died elsewhere in the meantime. A move
//!   that has begun ends.
//!
//! Invariants: only live pages move, each once; a victim is erased when no live page is left.

use profile::flash::{GcMode, NONE};

use super::{Cleaning, NO_CLEANING, PageMapped};
use crate::flash::allocation::Allocation;
use crate::flash::blocks::BlockState;
use crate::flash::gc::Victim;
use crate::flash::nand::Nand;
use crate::observe::Watch;

/// A plane always has a dead page in a closed block when it is cleaned, so some victim gains one;
/// even random choices find them long before this.
const VICTIMS_MOST_PER_BLOCK: u64 = 10_000;

impl<V: Victim, A: Allocation> PageMapped<V, A> {
    /// What the die of `plane` did while it was idle, before a request at `now`.
    #[inline]
    pub(super) fn before<W: Watch>(
        &mut self,
        nand: &mut Nand,
        plane: u32,
        now: u64,
        watch: &mut W,
    ) {
        match self.mode {
            GcMode::Idle { after_ns, until_blocks } => {
                let from = nand.free_at(plane) + after_ns;
                if from < now {
                    self.clean_idle(nand, plane, (from, now, until_blocks), watch);
                }
            }
            GcMode::Deferred => self.clean_die(nand, plane, now, watch),
            GcMode::Foreground | GcMode::Incremental { .. } => {}
        }
    }

    /// Cleans what is due in the die of `plane`.
    fn clean_die<W: Watch>(&mut self, nand: &mut Nand, plane: u32, now: u64, watch: &mut W) {
        let planes = self.geometry.planes_per_die;
        let first = plane / planes * planes;
        for plane in first..first + planes {
            if self.blocks.free_count(plane) < self.low {
                self.clean(nand, plane, now, watch);
            }
        }
    }

    /// What a write to `plane` at `now` leads to.
    #[inline]
    pub(super) fn after_write<W: Watch>(
        &mut self,
        nand: &mut Nand,
        plane: u32,
        now: u64,
        watch: &mut W,
    ) {
        let low = if self.mode == GcMode::Deferred { 2 } else { self.low };
        if self.blocks.free_count(plane) < low || self.works_on(plane) {
            self.clean(nand, plane, now, watch);
        }
    }

    /// Whether incremental cleaning is in the middle of a victim.
    #[inline]
    fn works_on(&self, plane: u32) -> bool {
        matches!(self.mode, GcMode::Incremental { .. })
            && self.cleaning[plane as usize].victim != NONE
    }

    #[cold]
    fn clean<W: Watch>(&mut self, nand: &mut Nand, plane: u32, now: u64, watch: &mut W) {
        let mut ns = 0;
        if let GcMode::Incremental { pages_per_write } = self.mode {
            ns += self.step(nand, plane, pages_per_write).unwrap_or(0);
        }
        // The last block but one is for the moves themselves.
        let enough = match self.mode {
            GcMode::Incremental { .. } => self.low.min(2),
            _ => self.low,
        };
        let mut victims_most = VICTIMS_MOST_PER_BLOCK * u64::from(self.geometry.blocks_per_plane);
        while self.blocks.free_count(plane) < enough {
            assert!(victims_most > 0, "cleaning plane {plane} leads nowhere");
            victims_most -= 1;
            let Some(step_ns) = self.step(nand, plane, u32::MAX) else { break };
            ns += step_ns;
        }
        if ns > 0 {
            nand.clean(plane, now, ns, watch);
        }
    }

    /// Cleans planes of the die of `plane` in its idle time between two moments until each has so
    /// many free blocks.
    #[cold]
    fn clean_idle<W: Watch>(
        &mut self,
        nand: &mut Nand,
        plane: u32,
        (mut at, until, until_blocks): (u64, u64, u32),
        watch: &mut W,
    ) {
        let planes = self.geometry.planes_per_die;
        let first = plane / planes * planes;
        for plane in first..first + planes {
            while at < until
                && (self.blocks.free_count(plane) < until_blocks
                    || self.cleaning[plane as usize].victim != NONE)
            {
                if self.cleaning[plane as usize].victim == NONE && !self.has_a_block_to_gain(plane)
                {
                    break;
                }
                let Some(ns) = self.step(nand, plane, 1) else { break };
                at = nand.clean(plane, at, ns, watch);
            }
        }
    }

    /// Whether `plane` has dead pages for a block, so that cleaning it in idle time leads
    /// somewhere.
    fn has_a_block_to_gain(&self, plane: u32) -> bool {
        let valid = self.blocks.of_plane(plane).map(|block| self.blocks.get(block).valid);
        let live: u64 = valid.map(u64::from).sum();
        self.in_use_pages(plane) >= live + u64::from(self.geometry.pages_per_block)
    }

    /// Chooses a victim for `plane`; `false` where there is none.
    fn begin(&mut self, plane: u32) -> bool {
        let chosen = self.wear.coldest(plane, &self.blocks);
        let levelling = chosen.is_some();
        let victim = if let Some(block) = chosen {
            self.victims.remove(plane, block, &self.blocks);
            block
        } else {
            let Some(block) = self.victims.take(plane, &self.blocks) else { return false };
            self.counts.victims += 1;
            self.counts.in_use_pages_sum += self.in_use_pages(plane);
            block
        };
        let info = &mut self.blocks.all[victim as usize];
        assert!(info.state == BlockState::Closed, "block {victim} is no victim: {info:?}");
        info.state = BlockState::Cleaning;
        self.cleaning[plane as usize] = Cleaning { victim, page: 0, levelling };
        true
    }

    /// Pages of `plane` in blocks that are not free, written ones only.
    fn in_use_pages(&self, plane: u32) -> u64 {
        let used = self.geometry.blocks_per_plane - self.blocks.free_count(plane);
        let open = &self.frontiers[(plane * self.width) as usize..][..self.width as usize];
        let unwritten: u32 = open.iter().map(|frontier| frontier.end - frontier.next).sum();
        u64::from(used * self.geometry.pages_per_block - unwritten)
    }

    /// Moves at most `budget` live pages of the victim of `plane`, choosing one where there is
    /// none, and erases it where none is left. Gives the time it takes, ns; `None` where there is
    /// nothing to clean.
    fn step(&mut self, nand: &Nand, plane: u32, budget: u32) -> Option<u64> {
        if self.cleaning[plane as usize].victim == NONE && !self.begin(plane) {
            return None;
        }
        let Cleaning { victim, mut page, levelling } = self.cleaning[plane as usize];
        let pages = self.geometry.pages_per_block;
        let (mut ns, mut left) = (0, budget);
        while left > 0 && page < pages && self.blocks.get(victim).valid > 0 {
            let length = left.min(pages - page);
            let live = self.gather(victim * pages + page, length);
            ns += self.relocate(nand, plane, live);
            self.counts.moved_pages += live as u64;
            self.counts.levelled_pages += if levelling { live as u64 } else { 0 };
            left -= live as u32;
            page += length;
        }
        self.cleaning[plane as usize].page = page;
        if self.blocks.get(victim).valid == 0 {
            self.cleaning[plane as usize] = NO_CLEANING;
            self.counts.erased_blocks += 1;
            self.tally.erased(self.blocks.get(victim).stream);
            ns += nand.erase_ns();
            if self.wear.is_worn_out(self.blocks.get(victim).erase_count + 1) {
                self.retire_or_release(plane, victim);
            } else {
                self.blocks.release(plane, victim);
            }
        } else {
            assert!(page < pages || left == 0, "block {victim} has live pages that were not found");
        }
        Some(ns)
    }

    /// A block at the end of its life is used no more, unless the plane cannot spare it for its
    /// data or for the moves of the next victim.
    fn retire_or_release(&mut self, plane: u32, victim: u32) {
        let pages = self.geometry.pages_per_block;
        let most = &mut self.live_most[plane as usize];
        let fits = A::BOUND || self.live[plane as usize] + pages <= *most;
        let reserve = self.blocks.free_count(plane) > 0;
        if self.wear.has_spare(plane) && fits && reserve {
            self.wear.use_spare(plane);
            *most -= pages;
            self.blocks.retire(victim);
        } else {
            self.blocks.release(plane, victim);
        }
    }

    /// Puts the physical pages among `length` from `first` that are live into `moving`; gives how
    /// many there are.
    fn gather(&mut self, first: u32, length: u32) -> usize {
        let mut live = 0;
        let range = first as usize..(first + length) as usize;
        for (&lpn, ppn) in self.reverse[range].iter().zip(first..) {
            // Without a branch: whether a page is live is as good as a coin toss.
            self.moving[live] = lpn;
            live += usize::from(self.map.get(lpn as usize) == Some(&ppn));
        }
        live
    }

    /// Moves the first `live` pages of `moving` to the frontier for them; gives the time it takes.
    fn relocate(&mut self, nand: &Nand, plane: u32, live: usize) -> u64 {
        let victim = self.cleaning[plane as usize].victim;
        let at = self.frontier_for_moves(plane, victim);
        self.tally_moves(plane, at, victim, live as u64);
        let (mut done, mut ns) = (0, 0);
        while done < live {
            self.ready(plane, at);
            let frontier = &mut self.frontiers[at];
            let (first, room) = (frontier.next, frontier.end - frontier.next);
            let count = (room as usize).min(live - done);
            frontier.next += count as u32;
            let lpns = &self.moving[done..done + count];
            self.reverse[first as usize..first as usize + count].copy_from_slice(lpns);
            let target = first / self.geometry.pages_per_block;
            ns += if let Some(copy_ns) = nand.uniform_copy_ns() {
                copy_ns * count as u64
            } else {
                let pages = self.geometry.pages_per_block;
                let from = lpns.iter().map(|lpn| self.map[*lpn as usize] % pages);
                from.zip(first..).map(|(from, to)| nand.copy_ns(from, to % pages)).sum()
            };
            for (&lpn, ppn) in lpns.iter().zip(first..) {
                self.map[lpn as usize] = ppn;
            }
            self.blocks.all[target as usize].valid += count as u16;
            self.blocks.all[victim as usize].valid -= count as u16;
            done += count;
        }
        ns
    }
}
