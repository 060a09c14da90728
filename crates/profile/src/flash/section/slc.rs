//! `[device.slc_cache]`: blocks of a flash device that are written as SLC first.

use serde::{Deserialize, Serialize};

use crate::Parameter;
use crate::flash::{Geometry, SlcParameters, WhenFull};
use crate::rules::{Flaw, optional, share, time};

/// `[device.slc_cache]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlcCacheSpec {
    /// Share of the blocks of each plane, 0 to 1.
    pub share: Parameter,
    /// Whether they are taken from the free ones instead of set apart.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dynamic: bool,
    /// Reading a page of the cache, us.
    pub read_us: Parameter,
    /// Programming a page of the cache, us.
    pub program_us: Parameter,
    /// How long a die has been idle when it begins to fold, us; never where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fold_after_us: Option<Parameter>,
    /// What a write does that finds the cache full: `fold` (it waits) or `direct` (to dense cells).
    #[serde(default)]
    pub when_full: WhenFull,
}

impl SlcCacheSpec {
    pub(super) fn parameters(&self, geometry: &Geometry) -> SlcParameters {
        let ns = |us: &Parameter| (us.value * 1e3).round() as u32;
        SlcParameters {
            blocks: (self.share.value * f64::from(geometry.blocks_per_plane)) as u32,
            dynamic: self.dynamic,
            read_ns: ns(&self.read_us),
            program_ns: ns(&self.program_us),
            fold_after_ns: self.fold_after_us.as_ref().map(|us| super::ns(Some(us))),
            when_full: self.when_full,
        }
    }

    pub(super) fn check(&self) -> Result<(), Flaw> {
        share("device.slc_cache.share", &self.share)?;
        time("device.slc_cache.read_us", &self.read_us)?;
        time("device.slc_cache.program_us", &self.program_us)?;
        for (field, us) in [("read_us", &self.read_us), ("program_us", &self.program_us)] {
            if us.value > 4e6 {
                let cause = "it is longer than any flash takes".to_owned();
                return Err((format!("device.slc_cache.{field}"), cause));
            }
        }
        optional(time, "device.slc_cache.fold_after_us", self.fold_after_us.as_ref())
    }
}
