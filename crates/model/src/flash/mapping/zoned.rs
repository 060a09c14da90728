//! Zones as a translation layer: see `crate::flash::zones`.
//!
//! Pages of a zone go to its planes in turn, so that a zone is as parallel as it is wide; all of
//! its blocks are opened with its first page, which is what open zones cost a device. A reset
//! erases them: the zone is empty at once, and what comes next for its dies waits.
//!
//! Invariants, audited: exactly the pages below the write pointer hold data; an empty zone has no
//! blocks; at most the allowed number of zones is partly written; programs = host pages. Blocks
//! that are worn out are used on, as a zone would go offline with them.

use profile::flash::{
    AllocationScheme, FlashParameters, Geometry, NONE, Order, ZoneLayout, ZoneParameters,
};

use super::{Mapping, PageRead, PageWrite};
use crate::SnapshotError;
use crate::flash::blocks::BlockState;
use crate::flash::nand::{Nand, PageAt};
use crate::flash::snapshot::{Reader, Writer};
use crate::flash::{Blocks, Counts, ZoneCounts};
use crate::observe::Watch;

/// A device of zones.
#[derive(Clone, Debug)]
pub struct Zoned {
    geometry: Geometry,
    layout: ZoneLayout,
    zone_pages: u32,
    open_most: u32,
    open: u32,
    /// By zone: pages written.
    written: Vec<u32>,
    /// By zone, then block: [`NONE`] where the zone is empty.
    blocks_of: Vec<u32>,
    /// Planes in the order in which the pages of zones take them.
    planes: Vec<u32>,
    blocks: Blocks,
    look: u32,
    counts: Counts,
    pub(crate) zone_counts: ZoneCounts,
}

impl Zoned {
    /// An empty device of `parameters` with as many `zones` as fit into this many `pages`.
    ///
    /// # Panics
    /// Where such a device cannot be; [`FlashParameters::check`] finds that first.
    pub fn new(parameters: &FlashParameters, zones: &ZoneParameters, pages: u32) -> Self {
        let geometry = parameters.geometry;
        let layout = zones.layout(&geometry).expect("zones that were checked");
        let order = match parameters.allocation {
            AllocationScheme::Static(order) | AllocationScheme::ByDie(order) => order,
            AllocationScheme::RoundRobin | AllocationScheme::Dynamic => Order::CWDP,
        };
        let count = (pages / zones.zone_pages) as usize;
        Self {
            geometry,
            layout,
            zone_pages: zones.zone_pages,
            open_most: zones.open_most,
            open: 0,
            written: vec![0; count],
            blocks_of: vec![NONE; count * (layout.width * layout.depth) as usize],
            planes: order.planes(&geometry),
            blocks: Blocks::new(&geometry),
            look: parameters.wear.dynamic_look_blocks,
            counts: Counts::default(),
            zone_counts: ZoneCounts::default(),
        }
    }

    /// Blocks of a zone.
    fn width(&self) -> u32 {
        self.layout.width * self.layout.depth
    }

    /// The plane of the block at `place` of `zone`.
    fn plane(&self, zone: u32, place: u32) -> u32 {
        let group = zone % self.layout.groups;
        self.planes[(group * self.layout.width + place % self.layout.width) as usize]
    }

    /// Where page `lpn` is or will be: plane and physical page.
    fn place(&self, lpn: u32) -> (u32, u32) {
        let (zone, page) = (lpn / self.zone_pages, lpn % self.zone_pages);
        let (slot, row) = (page % self.layout.width, page / self.layout.width);
        let pages = self.geometry.pages_per_block;
        let place = row / pages * self.layout.width + slot;
        let block = self.blocks_of[(zone * self.width() + place) as usize];
        (self.plane(zone, place), block * pages + row % pages)
    }

    /// Whether `lpn` is the next page of its zone, and may be written; counts it where not.
    fn may_write(&mut self, lpn: u32, whole: bool) -> bool {
        let (zone, page) = (lpn / self.zone_pages, lpn % self.zone_pages);
        if !whole || self.written[zone as usize] != page {
            self.zone_counts.misplaced_pages += 1;
            return false;
        }
        if page == 0 && self.open == self.open_most {
            self.zone_counts.over_limit_pages += 1;
            return false;
        }
        true
    }

    /// Advances the write pointer of the zone of `lpn`, opening and closing the zone.
    fn advance(&mut self, lpn: u32) {
        let zone = lpn / self.zone_pages;
        let written = self.written[zone as usize];
        if written == 0 {
            self.open += 1;
            for place in 0..self.width() {
                let block = self.blocks.open(self.plane(zone, place), self.look);
                let at = (zone * self.width() + place) as usize;
                self.blocks_of[at] = block;
            }
        }
        self.written[zone as usize] = written + 1;
        let (_, ppn) = self.place(lpn);
        let block = &mut self.blocks.all[(ppn / self.geometry.pages_per_block) as usize];
        block.valid += 1;
        if u32::from(block.valid) == self.geometry.pages_per_block {
            block.state = BlockState::Closed;
        }
        self.open -= u32::from(written + 1 == self.zone_pages);
    }

    /// Empties `zone` at `now`.
    fn reset<W: Watch>(&mut self, nand: &mut Nand, zone: u32, now: u64, watch: &mut W) {
        let written = std::mem::take(&mut self.written[zone as usize]);
        if written == 0 {
            return;
        }
        self.zone_counts.resets += 1;
        self.counts.trimmed_pages += u64::from(written);
        self.open -= u32::from(written < self.zone_pages);
        for place in 0..self.width() {
            let at = (zone * self.width() + place) as usize;
            let block = std::mem::replace(&mut self.blocks_of[at], NONE);
            let plane = self.plane(zone, place);
            self.blocks.all[block as usize].valid = 0;
            self.blocks.release(plane, block);
            self.counts.erased_blocks += 1;
            nand.erase(plane, now, watch);
        }
    }
}

impl Mapping for Zoned {
    fn read<W: Watch>(&mut self, nand: &mut Nand, now: u64, read: PageRead, watch: &mut W) -> u64 {
        if self.locate(read.lpn).is_none() {
            self.counts.unwritten_pages += 1;
            return now;
        }
        self.counts.read_pages += 1;
        let (plane, ppn) = self.place(read.lpn);
        let page = ppn % self.geometry.pages_per_block;
        nand.read(now, PageAt { plane, page }, read.bytes, watch)
    }

    fn write<W: Watch>(
        &mut self,
        nand: &mut Nand,
        now: u64,
        write: PageWrite,
        watch: &mut W,
    ) -> u64 {
        if !self.may_write(write.lpn, write.bytes == self.geometry.page_bytes) {
            return write.arrived_ns;
        }
        self.advance(write.lpn);
        self.counts.host_pages += 1;
        let (plane, ppn) = self.place(write.lpn);
        let page = ppn % self.geometry.pages_per_block;
        nand.program((now, write.arrived_ns), PageAt { plane, page }, watch)
    }

    /// Changes nothing: zones are given back whole, by [`Mapping::trim_all`].
    fn trim(&mut self, _lpn: u32) {
        self.zone_counts.kept_pages += 1;
    }

    fn trim_all<W: Watch>(
        &mut self,
        nand: &mut Nand,
        now: u64,
        pages: std::ops::Range<u32>,
        watch: &mut W,
    ) {
        let zones = pages.start.div_ceil(self.zone_pages)..pages.end / self.zone_pages;
        let whole = zones.end.saturating_sub(zones.start) * self.zone_pages;
        self.zone_counts.kept_pages += u64::from(pages.end.saturating_sub(pages.start) - whole);
        for zone in zones {
            self.reset(nand, zone, now, watch);
        }
    }

    /// Zones are written in order whatever `random` says.
    fn precondition(&mut self, _nand: &mut Nand, pages: u32, _random: bool, _seed: u64) {
        (0..pages).for_each(|lpn| self.advance(lpn));
    }

    fn locate(&self, lpn: u32) -> Option<u32> {
        let (zone, page) = (lpn / self.zone_pages, lpn % self.zone_pages);
        (page < self.written[zone as usize]).then(|| self.place(lpn).1)
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn zone_counts(&self) -> Option<ZoneCounts> {
        Some(self.zone_counts)
    }

    fn reset_counts(&mut self) {
        self.counts = Counts::default();
        self.zone_counts = ZoneCounts::default();
    }

    fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    fn audit(&self) {
        let mut valid = vec![0; self.blocks.all.len()];
        let partly = |written: &&u32| **written > 0 && **written < self.zone_pages;
        assert_eq!(self.written.iter().filter(partly).count() as u32, self.open, "open zones");
        assert!(self.open <= self.open_most, "{} zones are open", self.open);
        for (zone, &written) in self.written.iter().enumerate() {
            let own = zone * self.width() as usize..(zone + 1) * self.width() as usize;
            let empty = self.blocks_of[own].iter().all(|block| *block == NONE);
            assert_eq!(written == 0, empty, "the blocks of zone {zone}");
            for page in 0..written {
                let (plane, ppn) = self.place(zone as u32 * self.zone_pages + page);
                let block = ppn / self.geometry.pages_per_block;
                assert!(self.blocks.of_plane(plane).contains(&block), "block {block}");
                assert_eq!(ppn % self.geometry.pages_per_block, valid[block as usize]);
                valid[block as usize] += 1;
            }
        }
        for (block, valid) in self.blocks.all.iter().zip(valid) {
            assert_eq!(u32::from(block.valid), valid);
        }
    }

    fn save(&self, to: &mut Writer) {
        to.u32(self.open);
        to.u32s(&self.written);
        to.u32s(&self.blocks_of);
        self.blocks.save(to);
        self.counts.save(to);
        let ZoneCounts { resets, misplaced_pages, over_limit_pages, kept_pages, host_moved_pages } =
            self.zone_counts;
        to.u64s(&[resets, misplaced_pages, over_limit_pages, kept_pages, host_moved_pages]);
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        self.open = from.u32()?;
        from.u32s(&mut self.written)?;
        if self.written.iter().any(|written| *written > self.zone_pages) {
            return Err(from.damaged());
        }
        let blocks = self.blocks.all.len();
        from.indices(&mut self.blocks_of, blocks)?;
        self.blocks.load(from)?;
        self.counts.load(from)?;
        let mut numbers = [0; 5];
        from.u64s(&mut numbers)?;
        let [resets, misplaced_pages, over_limit_pages, kept_pages, host_moved_pages] = numbers;
        self.zone_counts =
            ZoneCounts { resets, misplaced_pages, over_limit_pages, kept_pages, host_moved_pages };
        Ok(())
    }
}
