//! Translation layers: where a logical page is, and what writing it takes.
//!
//! A translation layer is one file here that implements [`Mapping`]; [`super::Flash`] cuts requests
//! into pages, asks it page by page, and is itself the [`crate::Device`]. The layer issues its
//! operations to the [`Nand`], whose timelines say how long they take.

pub mod block;
pub mod page;
pub mod zoned;

pub use block::BlockMapped;
pub use page::PageMapped;
pub use page::slc::SlcCached;
pub use zoned::Zoned;

use super::nand::Nand;
use super::snapshot::{Reader, Writer};
use super::{Blocks, Counts, StreamCounts, ZoneCounts};
use crate::SnapshotError;
use crate::observe::{Off, Watch};
use stats::rng::Rng;

/// Times that a device is written over at random to be steady.
pub(super) const ROUNDS: u64 = 4;

/// Writes the first `pages` logical pages in order, and where `random` over and over.
fn write_out<M: Mapping + ?Sized>(
    mapping: &mut M,
    nand: &mut Nand,
    pages: u32,
    random: bool,
    seed: u64,
) {
    let mut rng = Rng::new(seed);
    let overwrites = if random { ROUNDS * u64::from(pages) } else { 0 };
    let bytes = nand.page_bytes();
    // Each is written when the one before is done: only the order matters here.
    let mut now = 0;
    for k in 0..u64::from(pages) + overwrites {
        let lpn = if k < u64::from(pages) { k } else { rng.below(u64::from(pages)) };
        let write = PageWrite { lpn: lpn as u32, bytes, stream: 0, arrived_ns: now };
        now = mapping.write(nand, now, write, &mut Off);
    }
}

/// A read of one logical page or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRead {
    /// The logical page.
    pub lpn: u32,
    /// Bytes of it that are wanted.
    pub bytes: u32,
}

/// A write of one logical page or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageWrite {
    /// The logical page.
    pub lpn: u32,
    /// Bytes of it that are written; fewer than a page means that the rest is kept.
    pub bytes: u32,
    /// Stream of the request: what it belongs to.
    pub stream: u16,
    /// When the data are at the controller, ns.
    pub arrived_ns: u64,
}

/// A flash translation layer.
pub trait Mapping: Send {
    /// Loads what requests to `lpn` will need, long before they come; gives anything that keeps
    /// the loads from being optimised away. Any value of `lpn` is allowed.
    fn touch(&self, _lpn: u32) -> u32 {
        0
    }

    /// Reads at `now`; gives when the data are at the controller, ns.
    fn read<W: Watch>(&mut self, nand: &mut Nand, now: u64, read: PageRead, watch: &mut W) -> u64;

    /// Writes at `now`; gives when the data are in the cells, ns.
    fn write<W: Watch>(
        &mut self,
        nand: &mut Nand,
        now: u64,
        write: PageWrite,
        watch: &mut W,
    ) -> u64;

    /// Forgets the data of logical page `lpn`.
    fn trim(&mut self, lpn: u32);

    /// Forgets the data of `pages` at `now`, one by one unless the layer knows better.
    fn trim_all<W: Watch>(
        &mut self,
        _nand: &mut Nand,
        _now: u64,
        pages: std::ops::Range<u32>,
        _watch: &mut W,
    ) {
        pages.for_each(|lpn| self.trim(lpn));
    }

    /// Puts the first `pages` logical pages of an empty device in place: written once, in order, or
    /// where `random` over and over at random until the state is steady. `nand` is scratch.
    ///
    /// Writes it out, unless the layer knows better.
    fn precondition(&mut self, nand: &mut Nand, pages: u32, random: bool, seed: u64) {
        write_out(self, nand, pages, random, seed);
    }

    /// The physical page that holds logical page `lpn`, where one does.
    fn locate(&self, lpn: u32) -> Option<u32>;

    /// What happened so far.
    fn counts(&self) -> &Counts;

    /// Starts counting anew, wear not included.
    fn reset_counts(&mut self);

    /// Pages in an SLC cache, where there is one.
    fn cached_pages(&self) -> Option<u64> {
        None
    }

    /// What happened at the zones, where there are some.
    fn zone_counts(&self) -> Option<ZoneCounts> {
        None
    }

    /// Counts by host stream, the last one of what is in no stream; empty where there are none.
    fn stream_counts(&self) -> Vec<StreamCounts> {
        Vec::new()
    }

    /// The blocks.
    fn blocks(&self) -> &Blocks;

    /// Verifies everything that must hold between requests; for tests, since it visits every page.
    ///
    /// # Panics
    /// Where it does not.
    fn audit(&self);

    /// Writes the state.
    fn save(&self, to: &mut Writer);

    /// Reads back what [`Mapping::save`] wrote.
    ///
    /// # Errors
    /// Where the bytes are not of such a layer.
    fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError>;
}
