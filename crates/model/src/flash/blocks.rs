//! What is known about every erase block, and which ones are free.
//!
//! Free blocks wait in one queue per plane. By default the one that was erased longest ago is used
//! next, which levels wear for uniform loads by itself; dynamic wear levelling takes the least worn
//! of those that wait longest ([`super::wear`]).
//!
//! Invariants: a block is free, open (being written), closed (full), of an SLC cache, or retired;
//! valid pages never exceed the pages of a block; the sum of all valid pages is the number of
//! mapped pages.

use profile::flash::Geometry;

use super::snapshot::{Reader, Writer};
use crate::SnapshotError;

/// The life of a block between two erases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockState {
    /// Erased and not yet written to.
    Free = 0,
    /// Being written.
    Open = 1,
    /// Written full.
    Closed = 2,
    /// Taken out of the closed ones, being cleaned.
    Cleaning = 3,
    /// Worn out, never used again.
    Retired = 4,
    /// Being written or written full with one bit per cell, for an SLC cache.
    Slc = 5,
}

impl BlockState {
    fn of(code: u8) -> Option<Self> {
        [Self::Free, Self::Open, Self::Closed, Self::Cleaning, Self::Retired, Self::Slc]
            .into_iter()
            .find(|state| *state as u8 == code)
    }
}

/// One erase block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Times that it was erased.
    pub erase_count: u32,
    /// Pages of it that hold data.
    pub valid: u16,
    /// What it is used for.
    pub state: BlockState,
    /// The host stream that it was opened for; the number of streams where it takes moved pages of
    /// all of them.
    pub stream: u8,
}

/// All blocks of a device and the free ones of each plane.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocks {
    /// By block number.
    pub(crate) all: Vec<Block>,
    per_plane: u32,
    /// A ring per plane, `per_plane` entries each.
    ring: Vec<u32>,
    first: Vec<u32>,
    free: Vec<u32>,
}

impl Blocks {
    /// All blocks erased and free, in order.
    pub fn new(geometry: &Geometry) -> Self {
        let planes = geometry.plane_count() as usize;
        let fresh = Block { erase_count: 0, valid: 0, state: BlockState::Free, stream: 0 };
        Self {
            all: vec![fresh; geometry.block_count() as usize],
            per_plane: geometry.blocks_per_plane,
            ring: (0..geometry.block_count()).collect(),
            first: vec![0; planes],
            free: vec![geometry.blocks_per_plane; planes],
        }
    }

    /// The block `number`.
    #[inline]
    pub fn get(&self, number: u32) -> Block {
        self.all[number as usize]
    }

    /// Numbers of the blocks of `plane`.
    pub fn of_plane(&self, plane: u32) -> std::ops::Range<u32> {
        plane * self.per_plane..(plane + 1) * self.per_plane
    }

    /// Free blocks of `plane`.
    #[inline]
    pub fn free_count(&self, plane: u32) -> u32 {
        self.free[plane as usize]
    }

    /// Free blocks of the device.
    pub fn free_total(&self) -> u64 {
        self.free.iter().map(|&free| u64::from(free)).sum()
    }

    /// Takes the block of `plane` that was freed longest ago and opens it; of the first `look` in
    /// the queue the least worn one.
    ///
    /// # Panics
    /// Where no block is free: cleaning failed to keep its reserve.
    pub(crate) fn open(&mut self, plane: u32, look: u32) -> u32 {
        let (at, free) = (plane as usize, self.free[plane as usize]);
        assert!(free > 0, "plane {plane} has no free block: cleaning kept no reserve");
        let slot =
            |k: u32| (plane * self.per_plane + (self.first[at] + k) % self.per_plane) as usize;
        let front = slot(0);
        if look > 1 {
            let worn = |k: &u32| self.all[self.ring[slot(*k)] as usize].erase_count;
            let best = (0..look.min(free)).min_by_key(worn).expect("one block at least");
            self.ring.swap(front, slot(best));
        }
        let number = self.ring[front];
        self.first[at] = (self.first[at] + 1) % self.per_plane;
        self.free[at] -= 1;
        let block = &mut self.all[number as usize];
        assert!(block.state == BlockState::Free && block.valid == 0, "block {number} is not free");
        block.state = BlockState::Open;
        number
    }

    /// Frees a cleaned and erased block of `plane`.
    pub(crate) fn release(&mut self, plane: u32, number: u32) {
        let block = &mut self.all[number as usize];
        assert!(block.valid == 0, "block {number} was erased with {} live pages", block.valid);
        block.state = BlockState::Free;
        block.erase_count += 1;
        let at = plane as usize;
        let slot = (self.first[at] + self.free[at]) % self.per_plane;
        self.ring[(plane * self.per_plane + slot) as usize] = number;
        self.free[at] += 1;
    }

    /// Erases a cleaned block for the last time.
    pub(crate) fn retire(&mut self, number: u32) {
        let block = &mut self.all[number as usize];
        assert!(block.valid == 0, "block {number} was retired with {} live pages", block.valid);
        block.state = BlockState::Retired;
        block.erase_count += 1;
    }

    /// Counts erases from here on.
    pub(crate) fn forget_wear(&mut self) {
        self.all.iter_mut().for_each(|block| block.erase_count = 0);
    }

    pub(crate) fn save(&self, to: &mut Writer) {
        for block in &self.all {
            to.u32(block.erase_count);
            let stream = u32::from(block.stream) << 24;
            to.u32(stream | u32::from(block.valid) << 8 | block.state as u32);
        }
        to.u32s(&self.ring);
        to.u32s(&self.first);
        to.u32s(&self.free);
    }

    pub(crate) fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        for block in &mut self.all {
            block.erase_count = from.u32()?;
            let word = from.u32()?;
            block.state = BlockState::of(word as u8).ok_or_else(|| from.damaged())?;
            (block.valid, block.stream) = ((word >> 8) as u16, (word >> 24) as u8);
        }
        let blocks = self.all.len();
        from.indices(&mut self.ring, blocks)?;
        from.u32s(&mut self.first)?;
        from.u32s(&mut self.free)
    }
}
