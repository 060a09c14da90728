//! What happened inside a flash device, in pages and blocks.
//!
//! Invariants: programs = host pages + moved pages + folded pages; the mean of the pages in use is
//! taken at every choice of a victim, which is where the theory of cleaning defines it, so that a
//! measured write amplification can be compared with its closed form exactly.

use super::snapshot::{Reader, Writer};
use crate::SnapshotError;

/// Counts since the device was made, preconditioned or reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pages programmed for requests.
    pub host_pages: u64,
    /// Pages read for requests.
    pub read_pages: u64,
    /// Pages read because a request wrote a part of them.
    pub merged_pages: u64,
    /// Pages that a request asked for and nobody has written.
    pub unwritten_pages: u64,
    /// Pages that a trim took away.
    pub trimmed_pages: u64,
    /// Live pages that cleaning copied.
    pub moved_pages: u64,
    /// Of them those that wear levelling wanted moved.
    pub levelled_pages: u64,
    /// Live pages that were moved from an SLC cache to dense cells.
    pub folded_pages: u64,
    /// Blocks erased.
    pub erased_blocks: u64,
    /// Victims chosen by the cleaning policy.
    pub victims: u64,
    /// Sum over the choices of victims: pages of the plane in blocks that are not free, without
    /// those of open blocks that are still to be written.
    pub in_use_pages_sum: u64,
}

impl Counts {
    const FIELDS: usize = 11;

    /// Pages programmed in all.
    pub fn programmed_pages(&self) -> u64 {
        self.host_pages + self.moved_pages + self.folded_pages
    }

    /// Write amplification: pages programmed per page that requests wrote; 1 where none were.
    pub fn write_amplification(&self) -> f64 {
        if self.host_pages == 0 {
            return 1.0;
        }
        self.programmed_pages() as f64 / self.host_pages as f64
    }

    /// Mean number of pages of a plane in blocks that hold data, when a victim was chosen; `None`
    /// where none was.
    pub fn in_use_pages_mean(&self) -> Option<f64> {
        (self.victims > 0).then(|| self.in_use_pages_sum as f64 / self.victims as f64)
    }

    fn fields(&self) -> [u64; Self::FIELDS] {
        [
            self.host_pages,
            self.read_pages,
            self.merged_pages,
            self.unwritten_pages,
            self.trimmed_pages,
            self.moved_pages,
            self.levelled_pages,
            self.folded_pages,
            self.erased_blocks,
            self.victims,
            self.in_use_pages_sum,
        ]
    }

    pub(crate) fn save(&self, to: &mut Writer) {
        to.u64s(&self.fields());
    }

    pub(crate) fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        let mut fields = [0; Self::FIELDS];
        from.u64s(&mut fields)?;
        let [
            host_pages,
            read_pages,
            merged_pages,
            unwritten_pages,
            trimmed_pages,
            moved_pages,
            levelled_pages,
            folded_pages,
            erased_blocks,
            victims,
            in_use_pages_sum,
        ] = fields;
        *self = Self {
            host_pages,
            read_pages,
            merged_pages,
            unwritten_pages,
            trimmed_pages,
            moved_pages,
            levelled_pages,
            folded_pages,
            erased_blocks,
            victims,
            in_use_pages_sum,
        };
        Ok(())
    }
}

/// What happened at the zones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneCounts {
    /// Zones reset.
    pub resets: u64,
    /// Pages refused: they were not at the write pointer of their zone, or no whole pages.
    pub misplaced_pages: u64,
    /// Pages refused: too many zones were open.
    pub over_limit_pages: u64,
    /// Pages of trims that did not cover their zone, which changes nothing.
    pub kept_pages: u64,
    /// Pages that the host's log moved: they are host pages for the device.
    pub host_moved_pages: u64,
}
