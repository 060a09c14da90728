//! `[device.zones]`: a flash device whose host interface are zones (ZNS). Where the section is
//! there, requests are zone commands, or go through a log of the host's that translates them.

use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::flash::{Geometry, ZoneParameters};
use crate::rules::{Flaw, flaw};

/// `[device.zones]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZonesSpec {
    /// Where the choices come from, or the grounds for assuming them.
    pub source: String,
    /// Whether nobody published them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
    /// Size of a zone, whole erase blocks.
    pub size: Bytes,
    /// Zones that may be partly written at a time.
    pub open_most: u32,
    /// Whether the host writes through a log of its own, so that any request may come; otherwise
    /// writes that are not at the write pointer of their zone are refused and counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub translate: bool,
    /// Free zones below which the host cleans.
    #[serde(default = "three", skip_serializing_if = "is_three")]
    pub low_zones: u32,
}

fn three() -> u32 {
    3
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
fn is_three(value: &u32) -> bool {
    *value == 3
}

impl ZonesSpec {
    pub(super) fn parameters(&self, geometry: &Geometry) -> ZoneParameters {
        let pages = self.size.0 / u64::from(geometry.page_bytes.max(1));
        ZoneParameters {
            zone_pages: u32::try_from(pages).unwrap_or(0),
            open_most: self.open_most,
            host_log_low_zones: self.translate.then_some(self.low_zones),
        }
    }

    /// Pages that requests address where the device has `pages`: whole zones, unless they are
    /// translated.
    pub(super) fn logical_pages(&self, geometry: &Geometry, pages: u32) -> u32 {
        let zone_pages = self.parameters(geometry).zone_pages.max(1);
        if self.translate { pages } else { pages / zone_pages * zone_pages }
    }

    pub(super) fn check(&self, page: Bytes) -> Result<(), Flaw> {
        if self.source.trim().is_empty() {
            let cause = "it is empty; name the source, or the grounds for assuming";
            return flaw("device.zones.source", cause);
        }
        if page.0 > 0 && !self.size.0.is_multiple_of(page.0) {
            return flaw("device.zones.size", "a zone is a whole number of pages");
        }
        Ok(())
    }
}
