//! The blocks of the event model that are written as SLC: see [`profile::flash::SlcParameters`].
//!
//! The rules are those of the timelines (`crate::flash::mapping::SlcCached`): a page goes to the
//! cache where it has room, what is folded first was written first, and what is still live of it
//! moves to dense cells of the same plane. A block that is folded is a victim like another, so that
//! a plane either folds or cleans, and all planes of a die can do so together.
//!
//! Invariants, audited: a block of the cache is open, full, or the victim of its plane; an open one
//! has pages left; there are never more of them than the cache has.

use std::collections::VecDeque;

use profile::flash::{FlashParameters, SlcParameters, WhenFull};

use super::store::Frontier;
use crate::SnapshotError;
use crate::flash::Blocks;
use crate::flash::snapshot::{Reader, Writer};

/// The blocks of the cache in one plane.
#[derive(Clone, Debug, Default)]
pub(super) struct Cached {
    /// The one that is written.
    pub open: Option<Frontier>,
    /// Full ones, the one written first in front.
    pub full: VecDeque<u32>,
    /// Whether the victim of the plane is one.
    pub is_folding: bool,
}

impl Cached {
    pub fn blocks(&self) -> u32 {
        self.full.len() as u32 + u32::from(self.open.is_some()) + u32::from(self.is_folding)
    }
}

/// The cache of a device.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    slc: SlcParameters,
    /// Pages of a block that is written as SLC.
    pub pages: u32,
    /// Free blocks that a dynamic cache leaves to cleaning.
    low: u32,
    pub by_plane: Vec<Cached>,
}

impl Cache {
    /// The empty cache of `parameters`, where they have one.
    pub fn of(parameters: &FlashParameters) -> Option<Self> {
        let geometry = &parameters.geometry;
        parameters.slc.map(|slc| Self {
            slc,
            pages: geometry.pages_per_block / parameters.timing.cell.bits() as u32,
            low: parameters.gc.low_blocks,
            by_plane: vec![Cached::default(); geometry.plane_count() as usize],
        })
    }

    /// Whether `plane` takes one more page.
    pub fn has_room(&self, plane: u32, blocks: &Blocks) -> bool {
        let cached = &self.by_plane[plane as usize];
        let kept = if self.slc.dynamic { self.low } else { 1 };
        cached.open.is_some()
            || (cached.blocks() < self.slc.blocks && blocks.free_count(plane) > kept)
    }

    /// Whether a page that finds no room waits until `plane` has folded a block: where it is to
    /// wait, or where the block only needs to be erased.
    pub fn must_fold(&self, plane: u32, blocks: &Blocks) -> bool {
        let cached = &self.by_plane[plane as usize];
        let is_dead = cached.full.front().is_some_and(|block| blocks.get(*block).valid == 0);
        let waits = self.slc.when_full == WhenFull::Fold && self.can_fold(plane);
        (waits || is_dead) && !self.has_room(plane, blocks)
    }

    /// Whether `plane` has a block to fold, or folds one.
    pub fn can_fold(&self, plane: u32) -> bool {
        let cached = &self.by_plane[plane as usize];
        cached.is_folding || !cached.full.is_empty()
    }

    /// Whether folding gives `plane` a block that cleaning needs.
    pub fn lends(&self, plane: u32) -> bool {
        self.slc.dynamic && self.can_fold(plane)
    }

    /// Takes the block that `plane` folds next.
    pub fn fold(&mut self, plane: u32) -> Option<u32> {
        let cached = &mut self.by_plane[plane as usize];
        let victim = cached.full.pop_front()?;
        cached.is_folding = true;
        Some(victim)
    }

    pub fn save(&self, to: &mut Writer) {
        for Cached { open, full, is_folding } in &self.by_plane {
            let Frontier { next, end } = open.unwrap_or_default();
            to.u32s(&[next, end, u32::from(*is_folding)]);
            to.list(full.iter().copied());
        }
    }

    pub fn load(
        &mut self,
        from: &mut Reader,
        blocks: u32,
        pages: u32,
    ) -> Result<(), SnapshotError> {
        for cached in &mut self.by_plane {
            let mut numbers = [0; 3];
            from.u32s(&mut numbers)?;
            let [next, end, is_folding] = numbers;
            if next > end || u64::from(end) > u64::from(blocks) * u64::from(pages) {
                return Err(from.damaged());
            }
            cached.open = (end > 0).then_some(Frontier { next, end });
            cached.is_folding = is_folding == 1;
            cached.full = from.list(blocks as usize)?;
        }
        Ok(())
    }
}
