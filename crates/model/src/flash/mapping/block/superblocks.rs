//! Superblocks: erase blocks of several planes that are written, merged and erased as one.
//!
//! Page `j` of a superblock is page `j / width` of its part `j % width`, so neighbouring pages lie
//! in different planes and work at the same time (Lee et al., "A Case for Flash Memory SSD in
//! Enterprise Database Applications", SIGMOD 2008, section 2.2: 1 MiB over eight erase units in
//! four chips). Planes form groups of `width`; those of a group are as far apart as there are
//! groups, so that a superblock spreads over channels first. Logical block `l` lives in group `l
//! mod groups`.
//!
//! Which logical page is where is kept page by page, although real layers of this kind keep it by
//! block and only their logs by page: what they may do is decided by the layers, and this much is
//! the same for all and can be audited.
//!
//! Invariants: a physical page is live exactly where `map[reverse[ppn]] == ppn`; pages of a
//! superblock are programmed in ascending order, each once between two erases; a superblock is
//! erased only when no page of it is live.

use profile::flash::{FlashParameters, Geometry, NONE};

use crate::SnapshotError;
use crate::flash::blocks::BlockState;
use crate::flash::device::PathApart;
use crate::flash::mapping::{PageRead, PageWrite};
use crate::flash::nand::{Nand, PageAt};
use crate::flash::snapshot::{Reader, Writer};
use crate::flash::{Blocks, Counts};
use crate::observe::{Cause, ForGc, Watch};

/// What a merge works with: the dies, from when on, and who watches.
#[derive(Debug)]
pub(super) struct Work<'a, W> {
    pub(super) nand: &'a mut Nand,
    pub(super) now: u64,
    pub(super) watch: &'a mut W,
}

/// The superblocks of a device and the pages in them.
#[derive(Clone, Debug)]
pub struct Superblocks {
    geometry: Geometry,
    width: u32,
    groups: u32,
    /// Pages of a superblock.
    pages: u32,
    map: Vec<u32>,
    reverse: Vec<u32>,
    pub(super) blocks: Blocks,
    /// By superblock: its erase blocks, `width` each. Superblock `s` is one of group
    /// `s / blocks_per_plane`.
    parts: Vec<u32>,
    /// By superblock: pages programmed since it was opened.
    fill: Vec<u32>,
    /// By group: numbers that no superblock in use has.
    unused: Vec<Vec<u32>>,
    look: u32,
    pub(super) counts: Counts,
}

impl Superblocks {
    /// Everything erased.
    pub(super) fn new(parameters: &FlashParameters, width: u32) -> Self {
        let geometry = parameters.geometry;
        let groups = geometry.plane_count() / width;
        let superblocks = geometry.block_count() / width;
        let of_group = |group: u32| {
            let first = group * geometry.blocks_per_plane;
            (first..first + geometry.blocks_per_plane).rev().collect()
        };
        Self {
            geometry,
            width,
            groups,
            pages: geometry.pages_per_block * width,
            map: vec![NONE; parameters.logical_pages as usize],
            reverse: vec![NONE; geometry.page_count() as usize],
            blocks: Blocks::new(&geometry),
            parts: vec![NONE; geometry.block_count() as usize],
            fill: vec![0; superblocks as usize],
            unused: (0..groups).map(of_group).collect(),
            look: parameters.wear.dynamic_look_blocks,
            counts: Counts::default(),
        }
    }

    /// Pages of a superblock, and so of a logical block.
    pub(super) fn pages(&self) -> u32 {
        self.pages
    }

    /// Logical blocks of the device.
    pub(super) fn logical_blocks(&self) -> usize {
        self.map.len().div_ceil(self.pages as usize)
    }

    /// Groups of planes.
    pub(super) fn groups(&self) -> u32 {
        self.groups
    }

    /// The group in which logical block `logical` lives.
    pub(super) fn group_of(&self, logical: u32) -> u32 {
        logical % self.groups
    }

    /// Pages of `superblock` that were programmed.
    pub(super) fn fill(&self, superblock: u32) -> u32 {
        self.fill[superblock as usize]
    }

    /// The physical page `j` of `superblock`.
    pub(super) fn ppn(&self, superblock: u32, j: u32) -> u32 {
        let part = self.parts[(superblock * self.width + j % self.width) as usize];
        part * self.geometry.pages_per_block + j / self.width
    }

    /// Where logical page `lpn` is; [`NONE`] where nowhere. Any number is allowed.
    pub(super) fn find(&self, lpn: u32) -> u32 {
        self.map.get(lpn as usize).copied().unwrap_or(NONE)
    }

    /// The logical page that is live in page `j` of `superblock`.
    pub(super) fn live(&self, superblock: u32, j: u32) -> Option<u32> {
        let ppn = self.ppn(superblock, j);
        let lpn = self.reverse[ppn as usize];
        (self.find(lpn) == ppn).then_some(lpn)
    }

    fn plane_of(&self, ppn: u32) -> u32 {
        ppn / self.geometry.pages_per_block / self.geometry.blocks_per_plane
    }

    /// Opens a superblock of `group`.
    pub(super) fn open(&mut self, group: u32) -> u32 {
        let number = self.unused[group as usize].pop();
        let number = number.expect("the layer keeps superblocks in reserve");
        for i in 0..self.width {
            let block = self.blocks.open(i * self.groups + group, self.look);
            self.parts[(number * self.width + i) as usize] = block;
        }
        self.fill[number as usize] = 0;
        number
    }

    /// Takes page `j` of `superblock` for `lpn`, whose old page dies.
    fn take(&mut self, superblock: u32, j: u32, lpn: u32) -> u32 {
        let fill = &mut self.fill[superblock as usize];
        assert!(j >= *fill, "page {j} of superblock {superblock} was programmed before");
        *fill = j + 1;
        let ppn = self.ppn(superblock, j);
        let old = std::mem::replace(&mut self.map[lpn as usize], ppn);
        self.forget(old);
        self.reverse[ppn as usize] = lpn;
        self.blocks.all[(ppn / self.geometry.pages_per_block) as usize].valid += 1;
        ppn
    }

    fn forget(&mut self, ppn: u32) {
        if ppn != NONE {
            self.blocks.all[(ppn / self.geometry.pages_per_block) as usize].valid -= 1;
        }
    }

    /// Programs page `j` of `superblock` with new data of `lpn`, not before `start`; gives the end.
    pub(super) fn program<W: Watch>(
        &mut self,
        nand: &mut Nand,
        at: (u64, u64),
        (superblock, j): (u32, u32),
        lpn: u32,
        watch: &mut W,
    ) -> u64 {
        let ppn = self.take(superblock, j, lpn);
        self.counts.host_pages += 1;
        let page = j / self.width;
        nand.program(at, PageAt { plane: self.plane_of(ppn), page }, watch)
    }

    /// Moves `lpn`, if it is anywhere, to page `j` of `superblock`.
    pub(super) fn copy<W: Watch>(
        &mut self,
        work: &mut Work<W>,
        (superblock, j): (u32, u32),
        lpn: u32,
    ) {
        let from = self.find(lpn);
        if from == NONE {
            return;
        }
        let to = self.take(superblock, j, lpn);
        self.counts.moved_pages += 1;
        let (source, target) = (self.plane_of(from), self.plane_of(to));
        let pages = self.geometry.pages_per_block;
        let now = work.now;
        let mut aside = ForGc(work.watch);
        let nand = &mut *work.nand;
        if source == target {
            let ns = nand.copy_ns(from % pages, to % pages);
            nand.clean(target, now, ns, &mut aside);
        } else {
            let (read_from, written_from) = (nand.free_at(source), nand.free_at(target));
            let page = PageAt { plane: source, page: from % pages };
            let read = nand.read(now, page, self.geometry.page_bytes, &mut aside);
            nand.count_as_cleaning(source, read_from.max(now));
            let page = PageAt { plane: target, page: to % pages };
            nand.program((now, read), page, &mut aside);
            nand.count_as_cleaning(target, written_from.max(now));
        }
    }

    /// Moves every live page of logical block `logical` from page `first` on to its own place in
    /// `superblock`.
    pub(super) fn copy_rest<W: Watch>(
        &mut self,
        work: &mut Work<W>,
        superblock: u32,
        (logical, first): (u32, u32),
    ) {
        for j in first..self.pages {
            self.copy(work, (superblock, j), logical * self.pages + j);
        }
    }

    /// Erases `superblock`, in which nothing lives any more.
    pub(super) fn erase<W: Watch>(&mut self, work: &mut Work<W>, superblock: u32) {
        for part in 0..self.width {
            let part = &mut self.parts[(superblock * self.width + part) as usize];
            let block = std::mem::replace(part, NONE);
            let plane = block / self.geometry.blocks_per_plane;
            let erase_ns = work.nand.erase_ns();
            work.nand.clean(plane, work.now, erase_ns, &mut ForGc(work.watch));
            self.blocks.release(plane, block);
            self.counts.erased_blocks += 1;
        }
        self.fill[superblock as usize] = 0;
        self.unused[(superblock / self.geometry.blocks_per_plane) as usize].push(superblock);
    }

    /// Reads a page at `now`.
    pub(super) fn read<W: Watch>(
        &mut self,
        nand: &mut Nand,
        now: u64,
        read: PageRead,
        watch: &mut W,
    ) -> u64 {
        let ppn = self.find(read.lpn);
        if ppn == NONE {
            self.counts.unwritten_pages += 1;
            return now;
        }
        self.counts.read_pages += 1;
        let page = ppn % self.geometry.pages_per_block;
        nand.read(now, PageAt { plane: self.plane_of(ppn), page }, read.bytes, watch)
    }

    /// When the rest of a page is there of which a part is written.
    pub(super) fn merge<W: Watch>(
        &mut self,
        nand: &mut Nand,
        now: u64,
        write: PageWrite,
        watch: &mut W,
    ) -> u64 {
        let page_bytes = self.geometry.page_bytes;
        if write.bytes >= page_bytes || self.find(write.lpn) == NONE {
            return write.arrived_ns;
        }
        self.counts.merged_pages += 1;
        let whole = PageRead { lpn: write.lpn, bytes: page_bytes };
        let mut read = PathApart::new(watch);
        let end = self.read(nand, now, whole, &mut read).max(write.arrived_ns);
        self.counts.read_pages -= 1;
        watch.spend(Cause::Medium, end - write.arrived_ns);
        end
    }

    /// Forgets `lpn`.
    pub(super) fn trim(&mut self, lpn: u32) {
        let old = std::mem::replace(&mut self.map[lpn as usize], NONE);
        self.counts.trimmed_pages += u64::from(old != NONE);
        self.forget(old);
    }

    /// Verifies the maps, the counts of live pages, and that the superblocks in use are `used`.
    pub(super) fn audit(&self, used: &[u32]) {
        let pages = self.geometry.pages_per_block;
        let mut valid = vec![0u16; self.blocks.all.len()];
        for (lpn, &ppn) in self.map.iter().enumerate().filter(|(_, ppn)| **ppn != NONE) {
            assert_eq!(self.reverse[ppn as usize] as usize, lpn, "physical page {ppn}");
            valid[(ppn / pages) as usize] += 1;
        }
        let mut parts_used = vec![false; self.blocks.all.len()];
        for &superblock in used {
            let first = (superblock * self.width) as usize;
            for &part in &self.parts[first..first + self.width as usize] {
                assert!(!parts_used[part as usize], "block {part} is part of two superblocks");
                parts_used[part as usize] = true;
            }
        }
        for (number, block) in self.blocks.all.iter().enumerate() {
            assert_eq!(block.valid, valid[number], "live pages of block {number}");
            let free = block.state == BlockState::Free;
            assert_eq!(free, !parts_used[number], "block {number} is {:?}", block.state);
        }
        let unused: usize = self.unused.iter().map(Vec::len).sum();
        assert_eq!(unused + used.len(), self.fill.len(), "superblocks are lost");
    }

    pub(super) fn save(&self, to: &mut Writer) {
        to.u32s(&self.map);
        to.u32s(&self.reverse);
        self.blocks.save(to);
        to.u32s(&self.parts);
        to.u32s(&self.fill);
        for unused in &self.unused {
            save_list(unused, to);
        }
        self.counts.save(to);
    }

    pub(super) fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        from.u32s(&mut self.map)?;
        from.u32s(&mut self.reverse)?;
        self.blocks.load(from)?;
        from.u32s(&mut self.parts)?;
        from.u32s(&mut self.fill)?;
        let most = self.geometry.blocks_per_plane as usize;
        for unused in &mut self.unused {
            *unused = load_list(from, most)?;
        }
        self.counts.load(from)
    }
}

/// Writes a list of changing length.
pub(super) fn save_list(list: &[u32], to: &mut Writer) {
    to.u32(list.len() as u32);
    for value in list {
        to.u32(*value);
    }
}

/// Reads a list of at most `most` numbers.
pub(super) fn load_list(from: &mut Reader, most: usize) -> Result<Vec<u32>, SnapshotError> {
    let length = from.u32()? as usize;
    if length > most {
        return Err(from.damaged());
    }
    (0..length).map(|_| from.u32()).collect()
}
