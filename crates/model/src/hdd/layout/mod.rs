//! Where a sector is: from its logical number to cylinder, head and angle.
//!
//! A disk is divided into zones of equal sectors per track. Within a zone logical sectors fill a
//! track, then the next track of the cylinder, then the next cylinder ([`Order::Cylinders`]), or
//! the cylinder alternately up and down so that a cylinder switch needs no head switch
//! ([`Order::Serpentine`]). The first sector of a track is turned against that of the track before
//! by the track skew, or the cylinder skew where the arm moves. Sectors that are kept back as
//! spares ([`Sparing`]) and those that were found bad and skipped (slips) carry no logical number.
//!
//! The terms are those of the parameter files of DiskSim (see [`profile::hdd`]); the arithmetic is
//! our own.
//!
//! Invariants: every logical sector has one place, no two share one, and consecutive ones are
//! either neighbours on a track or at a boundary that [`Place::run`] ends at. Tested against a slow
//! oracle that walks the physical sectors one by one.

use profile::hdd::{Geometry, Order, Sparing, Zone};

use super::angle::TURN;

/// Where a run of logical sectors starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Cylinder.
    pub cylinder: u32,
    /// Head.
    pub head: u32,
    /// Angle at which the sector starts, in ticks.
    pub angle: u64,
    /// Ticks that a sector takes.
    pub sector_ticks: u64,
    /// Logical sectors from here to the end of the neighbours on this track, at least 1.
    pub run: u32,
    /// Logical sectors before this one whose neighbours they are on this track.
    pub run_before: u32,
}

/// A zone made ready for the arithmetic of [`Layout::locate`].
#[derive(Clone, Debug)]
struct Band {
    first_lbn: u64,
    first_cylinder: u32,
    sectors_per_track: u32,
    sector_ticks: u64,
    offset_ticks: u64,
    track_skew_ticks: u64,
    /// From the first track of a cylinder to the first track of the next.
    cylinder_step_ticks: u64,
    /// Data sectors, reserved ones included, and physical sectors of a group that shares spares.
    group_data: u64,
    group_physical: u64,
    reserved: u64,
    /// Data sectors before a slip, and the physical sectors skipped up to and including it.
    slips: Vec<(u64, u64)>,
}

/// The mapping of a whole disk.
#[derive(Clone, Debug)]
pub struct Layout {
    bands: Vec<Band>,
    heads: u32,
    order: Order,
    sectors: u64,
    cylinders: u32,
}

impl Layout {
    /// The mapping of `geometry`.
    ///
    /// # Panics
    /// Where the geometry is impossible: the check of a profile has refused it before.
    pub fn new(geometry: &Geometry) -> Self {
        assert!(geometry.heads > 0 && !geometry.zones.is_empty(), "a disk has heads and zones");
        let mut first_lbn = 0;
        let mut bands = Vec::with_capacity(geometry.zones.len());
        for zone in &geometry.zones {
            let (band, sectors) = Band::new(geometry, zone, first_lbn);
            bands.push(band);
            first_lbn += sectors;
        }
        let last = geometry.zones.iter().map(|zone| zone.last_cylinder).max();
        Self {
            bands,
            heads: geometry.heads,
            order: geometry.order,
            sectors: first_lbn,
            cylinders: last.map_or(0, |last| last + 1),
        }
    }

    /// Logical sectors that the zones hold.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Cylinders that the arm travels over.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// Where logical sector `lbn` is.
    #[inline]
    pub fn locate(&self, lbn: u64) -> Place {
        assert!(lbn < self.sectors, "the trace check keeps requests on the disk");
        let index = self.bands.partition_point(|band| band.first_lbn <= lbn) - 1;
        let band = &self.bands[index];
        let next_lbn = self.bands.get(index + 1).map_or(self.sectors, |next| next.first_lbn);
        let (physical, data_run, data_before) = band.physical(lbn - band.first_lbn);
        let per_track = u64::from(band.sectors_per_track);
        let (track, sector) = (physical / per_track, physical % per_track);
        let in_zone = track / u64::from(self.heads);
        let nth = track % u64::from(self.heads);
        let head = match self.order {
            Order::Serpentine if in_zone % 2 == 1 => u64::from(self.heads) - 1 - nth,
            _ => nth,
        };
        let angle = band.offset_ticks
            + in_zone * band.cylinder_step_ticks
            + nth * band.track_skew_ticks
            + sector * band.sector_ticks;
        let run = data_run.min(per_track - sector).min(next_lbn - lbn);
        Place {
            cylinder: band.first_cylinder + in_zone as u32,
            head: head as u32,
            angle: angle % TURN,
            sector_ticks: band.sector_ticks,
            run: run as u32,
            run_before: data_before.min(sector).min(lbn - band.first_lbn) as u32,
        }
    }
}

impl Band {
    fn new(geometry: &Geometry, zone: &Zone, first_lbn: u64) -> (Self, u64) {
        let per_track = u64::from(zone.sectors_per_track);
        let (group_data, group_physical) = zone.group(geometry);
        // Rounded to a tick: a hundred thousand cylinders drift by a millionth of a turn.
        let ticks = |sectors: f64| {
            let turns = sectors / per_track as f64;
            ((turns - turns.floor()) * TURN as f64).round() as u64 % TURN
        };
        let skew = geometry.heads.saturating_sub(1);
        let step = f64::from(skew) * zone.track_skew_sectors + zone.cylinder_skew_sectors;
        let slip_unit = if geometry.sparing == Sparing::Tracks { per_track } else { 1 };
        let band = Self {
            first_lbn,
            first_cylinder: zone.first_cylinder,
            sectors_per_track: zone.sectors_per_track,
            sector_ticks: TURN / per_track,
            offset_ticks: ticks(zone.offset_sectors),
            track_skew_ticks: ticks(zone.track_skew_sectors),
            cylinder_step_ticks: ticks(step),
            group_data,
            group_physical,
            reserved: u64::from(zone.reserved_sectors),
            slips: slips(zone, slip_unit, group_data, group_physical),
        };
        (band, zone.data_sectors(geometry))
    }

    /// From a logical sector of the zone to its physical one, with the number of logical sectors
    /// from it to the next gap, and of those before it since the last.
    #[inline]
    fn physical(&self, lbn: u64) -> (u64, u64, u64) {
        let data = lbn + self.reserved;
        let (group, within) = (data / self.group_data, data % self.group_data);
        let mut physical = group * self.group_physical + within;
        let (mut run, mut before) = (self.group_data - within, within);
        if !self.slips.is_empty() {
            let index = self.slips.partition_point(|(key, _)| *key <= data);
            let first = self.slips.partition_point(|(key, _)| *key < group * self.group_data);
            let skipped = |count: usize| if count == 0 { 0 } else { self.slips[count - 1].1 };
            physical += skipped(index) - skipped(first);
            if let Some((key, _)) = self.slips.get(index) {
                run = run.min(key - data);
            }
            if index > first {
                before = before.min(data - self.slips[index - 1].0);
            }
        }
        (physical, run, before)
    }
}

/// The slips of a zone as (data sectors before it, physical sectors skipped so far).
fn slips(zone: &Zone, unit: u64, group_data: u64, group_physical: u64) -> Vec<(u64, u64)> {
    let mut numbers = zone.slips.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let mut out: Vec<(u64, u64)> = Vec::with_capacity(numbers.len());
    let (mut current, mut in_group) = (u64::MAX, 0);
    for number in numbers {
        let physical = u64::from(number) * unit;
        let (group, within) = (physical / group_physical, physical % group_physical);
        if group != current {
            (current, in_group) = (group, 0);
        }
        let data = within - in_group;
        // One among the spares, or beyond what they make up for, moves no data.
        if data >= group_data || in_group + unit > group_physical - group_data {
            continue;
        }
        in_group += unit;
        let total = out.last().map_or(0, |(_, total)| *total) + unit;
        out.push((group * group_data + data, total));
    }
    out
}

#[cfg(test)]
mod tests;
