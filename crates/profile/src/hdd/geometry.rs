//! Where the sectors of a disk are: zones, skews and spares, as a profile states them.
//!
//! The terms are those of the parameter files of the DiskSim 4.0 reference manual (Bucy, Schindler,
//! Schlosser and Ganger, CMU-PDL-08-101, diskmodel chapter).

/// How logical tracks follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// All tracks of a cylinder by head, then the next cylinder from head 0.
    #[default]
    Cylinders,
    /// Every other cylinder of a zone backwards, so that the arm moves without a head switch.
    Serpentine,
}

/// Which sectors are kept back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sparing {
    /// None; or at the end of the disk, which no logical sector reaches.
    #[default]
    None,
    /// Whole tracks at the end of a zone; slips are track numbers.
    Tracks,
    /// Sectors at the end of each track.
    Track,
    /// Sectors at the end of each cylinder.
    Cylinder,
    /// Sectors at the end of each range of cylinders.
    Range,
    /// Sectors at the end of each zone.
    Zone,
}

/// A band of cylinders with equal tracks.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder, inclusive.
    pub last_cylinder: u32,
    /// Sectors on each track.
    pub sectors_per_track: u32,
    /// Angle of the first sector of the zone, in sectors.
    pub offset_sectors: f64,
    /// Skew where only the head changes, in sectors.
    pub track_skew_sectors: f64,
    /// Skew where the cylinder changes, in sectors.
    pub cylinder_skew_sectors: f64,
    /// Sectors at the front that carry no logical number.
    pub reserved_sectors: u32,
    /// Spares per unit of [`Sparing`].
    pub spares: u32,
    /// Numbers of skipped sectors, counted from the front of the zone (of tracks with
    /// [`Sparing::Tracks`]).
    pub slips: Vec<u32>,
}

/// Everything that decides where a sector is.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    /// Recording surfaces.
    pub heads: u32,
    /// How tracks follow each other.
    pub order: Order,
    /// What is kept back.
    pub sparing: Sparing,
    /// Cylinders that share spares, with [`Sparing::Range`].
    pub range_cylinders: u32,
    /// From the first logical sector to the last.
    pub zones: Vec<Zone>,
}

impl Geometry {
    /// Logical sectors that the zones hold.
    pub fn sectors(&self) -> u64 {
        self.zones.iter().map(|zone| zone.data_sectors(self)).sum()
    }
}

impl Zone {
    /// Sectors for data of each group that shares spares, and all sectors of such a group.
    ///
    /// # Panics
    /// Where spares leave no room for data: the check of a profile refuses it before.
    pub fn group(&self, geometry: &Geometry) -> (u64, u64) {
        let per_track = u64::from(self.sectors_per_track);
        let per_cylinder = per_track * u64::from(geometry.heads);
        let physical = self.physical_sectors(geometry);
        let spares = u64::from(self.spares);
        let (group_physical, group_spares) = match geometry.sparing {
            Sparing::None => (physical, self.slips.len() as u64),
            Sparing::Tracks => (physical, spares * per_track),
            Sparing::Track => (per_track, spares),
            Sparing::Cylinder => (per_cylinder, spares),
            Sparing::Range => (per_cylinder * u64::from(geometry.range_cylinders), spares),
            Sparing::Zone => (physical, spares),
        };
        assert!(group_spares < group_physical.min(physical), "a zone holds data besides spares");
        (group_physical - group_spares, group_physical)
    }

    /// Logical sectors that the zone holds.
    ///
    /// # Panics
    /// As [`Zone::group`], and where reserved sectors leave no room.
    pub fn data_sectors(&self, geometry: &Geometry) -> u64 {
        let (group_data, group_physical) = self.group(geometry);
        let physical = self.physical_sectors(geometry);
        // A range may be cut short by the end of the zone; it keeps its spares.
        let (groups, rest) = (physical / group_physical, physical % group_physical);
        let data = groups * group_data + rest.saturating_sub(group_physical - group_data);
        let reserved = u64::from(self.reserved_sectors);
        assert!(reserved < data, "a zone holds data besides its reserved sectors");
        data - reserved
    }

    fn physical_sectors(&self, geometry: &Geometry) -> u64 {
        let cylinders = u64::from(self.last_cylinder - self.first_cylinder) + 1;
        cylinders * u64::from(self.sectors_per_track) * u64::from(geometry.heads)
    }
}
