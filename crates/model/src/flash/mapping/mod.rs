//! Translation layers: where a logical page is, and what writing it takes.
//!
//! A translation layer is one file here that implements [`Mapping`]; [`super::Flash`] cuts requests
//! into pages, asks it page by page, and is itself the [`crate::Device`]. The layer issues its
//! operations to the [`Nand`], whose timelines say how long they take.

pub mod page;

pub use page::PageMapped;

use super::nand::Nand;
use super::snapshot::{Reader, Writer};
use super::{Blocks, Counts, Error};

/// A write of one logical page or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageWrite {
    /// The logical page.
    pub lpn: u32,
    /// Bytes of it that are written; fewer than a page means that the rest is kept.
    pub bytes: u32,
    /// Stream of the request: what it belongs to.
    pub stream: u16,
}

/// A flash translation layer.
pub trait Mapping: Send {
    /// Loads what requests to `lpn` will need, long before they come; gives anything that keeps
    /// the loads from being optimised away. Any value of `lpn` is allowed.
    fn touch(&self, _lpn: u32) -> u32 {
        0
    }

    /// Reads `bytes` of logical page `lpn` at `now`; gives when they are at the controller, ns.
    fn read(&mut self, nand: &mut Nand, now: u64, lpn: u32, bytes: u32) -> u64;

    /// Writes at `now`; gives when the data are in the cells, ns.
    fn write(&mut self, nand: &mut Nand, now: u64, write: PageWrite) -> u64;

    /// Forgets the data of logical page `lpn`.
    fn trim(&mut self, lpn: u32);

    /// The physical page that holds logical page `lpn`, where one does.
    fn locate(&self, lpn: u32) -> Option<u32>;

    /// What happened so far.
    fn counts(&self) -> &Counts;

    /// Starts counting anew, wear not included.
    fn reset_counts(&mut self);

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
    fn load(&mut self, from: &mut Reader) -> Result<(), Error>;
}
