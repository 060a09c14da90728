//! The page map: any logical page may be in any physical page of its plane.
//!
//! Two flat arrays of 32-bit numbers, logical to physical (`map`) and back (`reverse`). A physical
//! page is live exactly where the two agree: `map[reverse[ppn]] == ppn`; there is no bitmap, and a
//! page dies by its logical page being mapped elsewhere. Each plane has open blocks (*frontiers*),
//! one per host stream and, where cleaning is kept apart from new data, one more for moved pages
//! or, where streams are persistently isolated, one more for each of them.
//!
//! Cleaning is in [`clean`]. Invariants, audited in tests: the maps agree for every mapped page;
//! valid counts are those of the maps; no block is in two places; a plane never runs out of free
//! blocks. The slow oracle in `tests/it/flash` agrees page for page.

mod clean;
mod open;
pub mod slc;
mod state;
mod steady;

use profile::flash::{FlashParameters, GcMode, Geometry, Isolation, NONE};

use super::{Mapping, PageRead, PageWrite, write_out};
use crate::SnapshotError;
use crate::flash::allocation::Allocation;
use crate::flash::blocks::BlockState;
use crate::flash::device::PathApart;
use crate::flash::gc::Victim;
use crate::flash::nand::{Nand, PageAt};
use crate::flash::snapshot::{Reader, Writer};
use crate::flash::streams::{StreamCounts, Tally};
use crate::flash::wear::WearLevelling;
use crate::flash::{Blocks, Counts};
use crate::observe::{Cause, Watch};

/// An open block and where the next page of it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frontier {
    /// First page that is still to be written; equal to `end` where the block is full or there is
    /// none.
    next: u32,
    /// One past the last page of the block.
    end: u32,
}

const CLOSED: Frontier = Frontier { next: 0, end: 0 };

/// A block that is being cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cleaning {
    /// The block; [`NONE`] where the plane cleans none.
    victim: u32,
    /// The next page of it to look at.
    page: u32,
    /// Whether wear levelling, not the policy, chose it.
    levelling: bool,
}

const NO_CLEANING: Cleaning = Cleaning { victim: NONE, page: 0, levelling: false };

/// The page-mapped translation layer with cleaning policy `V` and allocation `A`.
#[derive(Clone, Debug)]
pub struct PageMapped<V, A> {
    map: Vec<u32>,
    reverse: Vec<u32>,
    blocks: Blocks,
    /// By plane, then stream.
    frontiers: Vec<Frontier>,
    host_streams: u32,
    /// Frontiers per plane: one for each stream, then those for moved pages.
    width: u32,
    /// Whether moved pages stay in their stream.
    persistent: bool,
    tally: Tally,
    victims: V,
    allocation: A,
    /// By plane.
    cleaning: Vec<Cleaning>,
    mode: GcMode,
    /// Cleaning starts below this many free blocks of a plane.
    low: u32,
    wear: WearLevelling,
    /// Live pages by plane, and how many each may hold; only where pages choose their plane.
    live: Vec<u32>,
    live_most: Vec<u32>,
    geometry: Geometry,
    counts: Counts,
    /// Programming the summary of a block that a request has filled.
    summary_ns: u64,
    /// Live pages of a victim while they move.
    moving: Vec<u32>,
}

impl<V: Victim, A: Allocation> PageMapped<V, A> {
    /// An empty device.
    pub fn new(parameters: &FlashParameters, victims: V, allocation: A) -> Self {
        let geometry = parameters.geometry;
        let planes = geometry.plane_count() as usize;
        let width = parameters.frontiers_per_plane();
        let reserve = parameters.reserved_blocks_per_plane();
        Self {
            map: vec![NONE; parameters.logical_pages as usize],
            reverse: vec![NONE; geometry.page_count() as usize],
            blocks: Blocks::new(&geometry),
            frontiers: vec![CLOSED; planes * width as usize],
            host_streams: parameters.host_streams,
            width,
            persistent: parameters.streams.isolation == Isolation::Persistent,
            tally: Tally::new(parameters.host_streams),
            victims,
            allocation,
            cleaning: vec![NO_CLEANING; planes],
            mode: parameters.gc.mode,
            low: parameters.gc.low_blocks,
            wear: WearLevelling::new(&parameters.wear, planes, parameters.spare_blocks_per_plane()),
            live: vec![0; planes],
            live_most: vec![
                (geometry.blocks_per_plane - reserve) * geometry.pages_per_block;
                planes
            ],
            geometry,
            counts: Counts::default(),
            summary_ns: parameters.summary_ns(),
            moving: vec![0; geometry.pages_per_block as usize],
        }
    }

    #[inline]
    fn block_of(&self, ppn: u32) -> u32 {
        ppn / self.geometry.pages_per_block
    }

    #[inline]
    fn plane_of_block(&self, block: u32) -> u32 {
        block / self.geometry.blocks_per_plane
    }

    /// The place of `ppn` in its block.
    #[inline]
    fn page_of(&self, ppn: u32) -> u32 {
        ppn % self.geometry.pages_per_block
    }

    /// Whether physical page `ppn` holds data.
    #[inline]
    fn is_live(&self, ppn: u32) -> bool {
        let lpn = self.reverse[ppn as usize];
        self.map.get(lpn as usize) == Some(&ppn)
    }

    /// Invalidates page `ppn`.
    #[inline]
    fn invalidate(&mut self, ppn: u32) {
        let block = self.block_of(ppn);
        let info = &mut self.blocks.all[block as usize];
        info.valid -= 1;
        let (valid, state) = (info.valid, info.state);
        if state == BlockState::Closed || !A::BOUND {
            let plane = self.plane_of_block(block);
            if state == BlockState::Closed {
                self.victims.invalidated(plane, block, valid);
            }
            if !A::BOUND {
                self.live[plane as usize] -= 1;
            }
        }
    }

    /// Maps `lpn` to the next page of frontier `at` of `plane` and gives that page.
    #[inline]
    fn place(&mut self, lpn: u32, plane: u32, at: usize) -> u32 {
        self.ready(plane, at);
        let ppn = self.frontiers[at].next;
        self.frontiers[at].next += 1;
        let block = self.block_of(ppn);
        self.blocks.all[block as usize].valid += 1;
        self.reverse[ppn as usize] = lpn;
        let old = std::mem::replace(&mut self.map[lpn as usize], ppn);
        if !A::BOUND {
            self.live[plane as usize] += 1;
        }
        if old != NONE {
            self.invalidate(old);
        }
        ppn
    }
}

impl<V: Victim, A: Allocation> Mapping for PageMapped<V, A> {
    #[inline]
    fn touch(&self, lpn: u32) -> u32 {
        self.map.get(lpn as usize).copied().unwrap_or(NONE)
    }

    #[inline]
    fn read<W: Watch>(&mut self, nand: &mut Nand, now: u64, read: PageRead, watch: &mut W) -> u64 {
        let ppn = self.map[read.lpn as usize];
        if ppn == NONE {
            self.counts.unwritten_pages += 1;
            return now;
        }
        self.counts.read_pages += 1;
        let plane = self.plane_of_block(self.block_of(ppn));
        self.before(nand, plane, now, watch);
        nand.read(now, PageAt { plane, page: self.page_of(ppn) }, read.bytes, watch)
    }

    #[inline]
    fn write<W: Watch>(
        &mut self,
        nand: &mut Nand,
        now: u64,
        write: PageWrite,
        watch: &mut W,
    ) -> u64 {
        let mut start = write.arrived_ns;
        if write.bytes < self.geometry.page_bytes && self.map[write.lpn as usize] != NONE {
            self.counts.merged_pages += 1;
            let whole = PageRead { lpn: write.lpn, bytes: self.geometry.page_bytes };
            start = start.max(self.read(nand, now, whole, &mut PathApart::new(watch)));
            watch.spend(Cause::Medium, start - write.arrived_ns);
            self.counts.read_pages -= 1;
        }
        let (live, most) = (&self.live, &self.live_most);
        let room = |plane: u32| live[plane as usize] < most[plane as usize];
        let plane = self.allocation.plane(write.lpn, nand, room);
        self.before(nand, plane, now, watch);
        let stream = u32::from(write.stream) % self.host_streams;
        let at = (plane * self.width + stream) as usize;
        let ppn = self.place(write.lpn, plane, at);
        self.counts.host_pages += 1;
        let page = self.page_of(ppn);
        let mut end = nand.program((now, start), PageAt { plane, page }, watch);
        if self.summary_ns > 0 && page + 1 == self.geometry.pages_per_block {
            end = nand.work(plane, end, self.summary_ns, watch);
        }
        self.after_write(nand, plane, now, watch);
        end
    }

    fn trim(&mut self, lpn: u32) {
        let old = std::mem::replace(&mut self.map[lpn as usize], NONE);
        if old != NONE {
            self.counts.trimmed_pages += 1;
            self.invalidate(old);
        }
    }

    fn precondition(&mut self, nand: &mut Nand, pages: u32, random: bool, seed: u64) {
        if pages > 0 && !self.construct(pages, random, seed) {
            write_out(self, nand, pages, random, seed);
        }
    }

    fn locate(&self, lpn: u32) -> Option<u32> {
        self.map.get(lpn as usize).copied().filter(|ppn| *ppn != NONE)
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn reset_counts(&mut self) {
        self.counts = Counts::default();
        self.reset_tally();
    }

    fn stream_counts(&self) -> Vec<StreamCounts> {
        self.tally()
    }

    fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    fn audit(&self) {
        self.audit_maps();
    }

    fn save(&self, to: &mut Writer) {
        self.save_state(to);
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        self.load_state(from)
    }
}
