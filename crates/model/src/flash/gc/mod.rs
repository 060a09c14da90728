//! Which block is cleaned next, and when.
//!
//! A policy is one file here: a type that implements [`Victim`], a variant of
//! [`profile::flash::GcPolicy`] and its lines in [`chosen`]. See `docs/adding-an-ftl.md`.
//!
//! Invariants of every policy: a victim is a closed block of the plane asked for; a block that was
//! taken is not offered again before it is closed again; as long as some closed block has a dead
//! page, taking victims one after another reaches one. Property-tested against slow oracles.

pub mod by_stream;
pub mod chosen;
pub mod cost_benefit;
pub mod d_choices;
pub mod fifo;
pub mod greedy;
mod members;
pub mod windowed;

pub use by_stream::ByStream;
pub use chosen::Chosen;
pub use cost_benefit::CostBenefit;
pub use d_choices::DChoices;
pub use fifo::Fifo;
pub use greedy::Greedy;
pub use windowed::Windowed;

use profile::flash::Geometry;

use super::Blocks;
use super::snapshot::{Reader, Writer};
use crate::SnapshotError;

/// Chooses the block that a plane cleans next.
///
/// The translation layer tells a policy of every change to a closed block; open and free blocks are
/// no business of it. The translation layer is generic: calls of the usual policy are static, those
/// of the others a branch ([`Chosen`]).
pub trait Victim: Send + Clone {
    /// `block` of `plane` was opened for host stream `stream`.
    fn opened(&mut self, _plane: u32, _block: u32, _stream: u8) {}

    /// `block` of `plane` was written full; `valid` of its pages still hold data.
    fn closed(&mut self, plane: u32, block: u32, valid: u16);

    /// A page of the closed `block` of `plane` died and leaves `valid` live ones.
    fn invalidated(&mut self, plane: u32, block: u32, valid: u16);

    /// Takes the block to clean next out of the closed ones of `plane`; `None` where there is none.
    fn take(&mut self, plane: u32, blocks: &Blocks) -> Option<u32>;

    /// Takes `block` of `plane`, which is closed, out: wear levelling wants it.
    fn remove(&mut self, plane: u32, block: u32, blocks: &Blocks);

    /// In the steady state of uniform random writes at fill factor `rho`, the share of the closed
    /// blocks of `pages` pages that have at least `l` live ones, for `l` from 1 to `pages`; `None`
    /// where no theory says.
    fn steady_tail(&self, _rho: f64, _pages: u32) -> Option<Vec<f64>> {
        None
    }

    /// Writes everything that decides later choices.
    fn save(&self, to: &mut Writer);

    /// Reads back what [`Victim::save`] wrote.
    ///
    /// # Errors
    /// Where the bytes are not of such a policy.
    fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError>;
}

/// Everything that a policy may size its tables by.
#[derive(Clone, Copy, Debug)]
pub struct PolicyContext<'a> {
    /// The device.
    pub geometry: &'a Geometry,
    /// Sets of blocks that victims are chosen from, in each plane: all blocks are one, unless
    /// streams have their own.
    pub pools_per_plane: u32,
    /// Decides every random choice.
    pub seed: u64,
}

impl PolicyContext<'_> {
    /// Sets of blocks that victims are chosen from.
    pub fn pool_count(&self) -> u32 {
        self.geometry.plane_count() * self.pools_per_plane
    }
}
