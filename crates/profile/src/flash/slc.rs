//! An SLC cache: blocks of dense cells that are written one bit per cell until they are folded.
//!
//! A cell of three or four bits that is given one bit is programmed as fast as SLC and holds a
//! third or a quarter of the data. Drives write to some blocks that way and fold them later: they
//! read the pages and program them densely, while the die is idle or when the cache is full. What a
//! host sees is a write cliff: fast until the cache is full, then as fast as folding (or dense
//! cells) allows, fast again after a pause. What it does not see is that folded data were
//! programmed twice.
//!
//! - **fixed**: blocks of each plane that hold nothing else; they come off the over-provisioning.
//! - **dynamic**: up to as many blocks, but only those that are free; they are folded before
//!   cleaning would have to do with fewer.

use super::{FlashParameters, Flaw, Isolation, Translation};

/// The SLC cache of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlcParameters {
    /// Most blocks of each plane that are written as SLC.
    pub blocks: u32,
    /// Whether they are taken from the free ones instead of set apart.
    pub dynamic: bool,
    /// Reading a page of it, ns.
    pub read_ns: u32,
    /// Programming a page of it, ns.
    pub program_ns: u32,
    /// How long a die has been idle when it begins to fold, ns; never where `None`.
    pub fold_after_ns: Option<u64>,
    /// What a write does that finds the cache full.
    pub when_full: WhenFull,
}

/// What a write does that finds the SLC cache full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// It waits until the block that was written first is folded.
    #[default]
    Fold,
    /// It goes to dense cells.
    Direct,
}

impl SlcParameters {
    /// Refuses what cannot be on the device of `parameters`.
    pub(crate) fn flaw(&self, parameters: &FlashParameters) -> Result<(), Flaw> {
        let bits = parameters.timing.cell.bits() as u32;
        if bits == 1 {
            return Err(Flaw::new("slc_cache", "all cells of the device are SLC"));
        }
        if parameters.geometry.pages_per_block < bits {
            let cause = format!("a block has fewer pages than a cell has bits, {bits}");
            return Err(Flaw::new("slc_cache", cause));
        }
        if self.blocks < 2 {
            let cause = "a plane needs two blocks, one that is written and one that is folded";
            return Err(Flaw::new("slc_cache.share", cause));
        }
        if self.blocks >= parameters.geometry.blocks_per_plane {
            return Err(Flaw::new("slc_cache.share", "nothing is left for dense cells"));
        }
        if self.when_full == WhenFull::Direct && !self.dynamic && self.fold_after_ns.is_none() {
            let cause = "writes pass a full cache, so it must be folded in idle time";
            return Err(Flaw::new("slc_cache.fold_after_us", cause));
        }
        if parameters.translation != Translation::Page || parameters.zones.is_some() {
            return Err(Flaw::new("slc_cache", "it works with the page map only"));
        }
        if parameters.host_streams != 1 || parameters.streams.isolation != Isolation::Initial {
            return Err(Flaw::new("slc_cache", "its blocks take data of all streams: give one"));
        }
        if parameters.summary_bytes.is_some() {
            return Err(Flaw::new("summary_bytes", "blocks of the SLC cache have no summaries"));
        }
        Ok(())
    }
}
