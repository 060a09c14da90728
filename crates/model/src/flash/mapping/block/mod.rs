//! Translation layers that map whole logical blocks, as early SSDs did: little memory, and random
//! writes that cost a merge.
//!
//! | layer | a write that does not fit in its block goes to |
//! |---|---|
//! | [`Replacement`] | a new copy of the block, completed when another block is written |
//! | [`Bast`] | a log block of its own (Kim et al. 2002) |
//! | [`Fast`] | log blocks that all blocks share (Lee et al. 2007) |
//!
//! Kim et al., "A Space-Efficient Flash Translation Layer for CompactFlash Systems", 2002; Lee et
//! al., "A Log Buffer-Based Flash Translation Layer Using Fully-Associative Sector Translation",
//! 2007.
//!
//! All three write a page in place while its block is still erased there, and work on superblocks
//! of any width ([`Superblocks`]). Merges are work of the dies that the writes after them wait for.
//!
//! A layer implements [`Layer`]; reads, trims, audits and snapshots are the same for all.

mod bast;
mod fast;
mod replacement;
mod superblocks;

pub use bast::Bast;
pub use fast::Fast;
pub use replacement::Replacement;
pub use superblocks::Superblocks;

use profile::flash::FlashParameters;

use super::{Mapping, PageRead, PageWrite};
use crate::SnapshotError;
use crate::flash::nand::Nand;
use crate::flash::snapshot::{Reader, Writer};
use crate::flash::{Blocks, Counts};
use crate::observe::Watch;

/// Decides which page of which superblock a write goes to.
pub trait Layer: Send {
    /// Writes `lpn` at `now`, its data complete at `start`; gives the end of the program, which
    /// `watch` is told of.
    fn write<W: Watch>(
        &mut self,
        superblocks: &mut Superblocks,
        nand: &mut Nand,
        at: (u64, u64),
        lpn: u32,
        watch: &mut W,
    ) -> u64;

    /// Every superblock in use.
    fn used(&self) -> Vec<u32>;

    /// Writes everything that decides later writes.
    fn save(&self, to: &mut Writer);

    /// Reads back what [`Layer::save`] wrote.
    ///
    /// # Errors
    /// Where the bytes are not of such a layer.
    fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError>;
}

/// A translation layer of logical blocks.
#[derive(Clone, Debug)]
pub struct BlockMapped<L> {
    superblocks: Superblocks,
    layer: L,
}

impl<L: Layer> BlockMapped<L> {
    /// An empty device; `layer` makes the layer for this many logical blocks.
    pub fn new(parameters: &FlashParameters, width: u32, layer: impl FnOnce(usize) -> L) -> Self {
        let superblocks = Superblocks::new(parameters, width);
        let layer = layer(superblocks.logical_blocks());
        Self { superblocks, layer }
    }
}

impl<L: Layer> Mapping for BlockMapped<L> {
    fn touch(&self, lpn: u32) -> u32 {
        self.superblocks.find(lpn)
    }

    fn read<W: Watch>(&mut self, nand: &mut Nand, now: u64, read: PageRead, watch: &mut W) -> u64 {
        self.superblocks.read(nand, now, read, watch)
    }

    fn write<W: Watch>(
        &mut self,
        nand: &mut Nand,
        now: u64,
        write: PageWrite,
        watch: &mut W,
    ) -> u64 {
        let start = self.superblocks.merge(nand, now, write, watch);
        self.layer.write(&mut self.superblocks, nand, (now, start), write.lpn, watch)
    }

    fn trim(&mut self, lpn: u32) {
        self.superblocks.trim(lpn);
    }

    fn locate(&self, lpn: u32) -> Option<u32> {
        Some(self.superblocks.find(lpn)).filter(|ppn| *ppn != profile::flash::NONE)
    }

    fn counts(&self) -> &Counts {
        &self.superblocks.counts
    }

    fn reset_counts(&mut self) {
        self.superblocks.counts = Counts::default();
    }

    fn blocks(&self) -> &Blocks {
        &self.superblocks.blocks
    }

    fn audit(&self) {
        self.superblocks.audit(&self.layer.used());
    }

    fn save(&self, to: &mut Writer) {
        self.superblocks.save(to);
        self.layer.save(to);
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        self.superblocks.load(from)?;
        self.layer.load(from)
    }
}
