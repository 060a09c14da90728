//! Zones: the host interface of a ZNS device (NVMe Zoned Namespace Command Set 1.1).

use super::{FlashParameters, Flaw, Geometry};

/// The zones of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneParameters {
    /// Pages of a zone: whole erase blocks.
    pub zone_pages: u32,
    /// Zones that may be partly written at a time.
    pub open_most: u32,
    /// Free zones below which the host cleans, where it writes through a log of its own; requests
    /// are zone commands where `None`.
    pub host_log_low_zones: Option<u32>,
}

/// How zones lie in the planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneLayout {
    /// Planes of a zone.
    pub width: u32,
    /// Blocks of a zone in each of its planes.
    pub depth: u32,
    /// Sets of planes; zone `z` is in set `z % groups`.
    pub groups: u32,
    /// Zones of the device.
    pub zones: u32,
}

impl ZoneParameters {
    /// Where the zones of a device of `geometry` are.
    pub fn layout(&self, geometry: &Geometry) -> Result<ZoneLayout, Flaw> {
        let field = "zones.size";
        if self.zone_pages == 0 || !self.zone_pages.is_multiple_of(geometry.pages_per_block) {
            let block = u64::from(geometry.pages_per_block) * u64::from(geometry.page_bytes);
            let cause = format!("a zone is a whole number of erase blocks of {block} bytes");
            return Err(Flaw::new(field, cause));
        }
        let blocks = self.zone_pages / geometry.pages_per_block;
        let width = blocks.min(geometry.plane_count());
        if !geometry.plane_count().is_multiple_of(width) || !blocks.is_multiple_of(width) {
            let planes = geometry.plane_count();
            let cause =
                format!("its {blocks} blocks must divide the {planes} planes, or the planes it");
            return Err(Flaw::new(field, cause));
        }
        let (groups, depth) = (geometry.plane_count() / width, blocks / width);
        let zones = groups * (geometry.blocks_per_plane / depth);
        Ok(ZoneLayout { width, depth, groups, zones })
    }

    /// Pages of all zones.
    pub fn pages(&self, geometry: &Geometry) -> u64 {
        let zones = self.layout(geometry).map_or(0, |layout| layout.zones);
        u64::from(zones) * u64::from(self.zone_pages)
    }

    /// Refuses what cannot be on the device of `parameters`.
    pub(crate) fn flaw(&self, parameters: &FlashParameters) -> Result<(), Flaw> {
        let ZoneLayout { zones, .. } = self.layout(&parameters.geometry)?;
        if self.open_most == 0 {
            return Err(Flaw::new("zones.open_most", "at least one zone is written at a time"));
        }
        let logical = u64::from(parameters.logical_pages);
        let Some(low) = self.host_log_low_zones else {
            if !logical.is_multiple_of(u64::from(self.zone_pages)) {
                return Err(Flaw::new(
                    "over_provisioning",
                    "the capacity is no whole number of zones",
                ));
            }
            if logical > self.pages(&parameters.geometry) {
                let cause = format!("there is flash for {zones} zones only");
                return Err(Flaw::new("over_provisioning", cause));
            }
            return Ok(());
        };
        if self.open_most < 2 {
            let cause = "the host's log writes new pages and moved ones to a zone each";
            return Err(Flaw::new("zones.open_most", cause));
        }
        if low < 2 {
            let cause = "the host needs one free zone for new data and one for moves";
            return Err(Flaw::new("zones.low_zones", cause));
        }
        let room = u64::from(zones.saturating_sub(low + 2)) * u64::from(self.zone_pages);
        if logical >= room {
            let cause = format!(
                "it cannot hold the data: of {zones} zones {} are reserved for the host's cleaning \
                 and its open zones, which leaves {room} pages for {logical}",
                low + 2
            );
            return Err(Flaw::new("over_provisioning", cause));
        }
        Ok(())
    }
}
