//! `kind = "hdd"`: what the model of a disk needs to know, and the sections of a profile that state
//! it.

mod geometry;
mod section;
mod seek;

pub use geometry::{Geometry, Order, Sparing, Zone};
pub(crate) use section::check_hdd;
pub use section::{
    BufferSpec, BusSpec, HddSpec, OverheadSpec, ProtocolSpec, QueueSpec, SeekSpec, ZoneSpec,
};
pub use seek::SeekCurve;

/// Bytes of a sector.
pub const SECTOR_BYTES: u64 = 512;

/// All parameters of a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct HddParameters {
    /// Where sectors are.
    pub geometry: Geometry,
    /// Logical sectors that the host sees, at most those of the geometry; all where `None`.
    pub sectors: Option<u64>,
    /// Turns per minute.
    pub rpm: u32,
    /// Seek times of reads.
    pub seek: SeekCurve,
    /// Time to another head on the same cylinder, ns.
    pub head_switch_ns: u64,
    /// Added to a seek or head switch before a write, ns.
    pub write_settle_ns: i64,
    /// Command processing.
    pub overhead: Overheads,
    /// The way to the host.
    pub bus: BusParameters,
    /// The buffer.
    pub buffer: BufferParameters,
    /// Command queueing.
    pub queue: QueueParameters,
}

impl HddParameters {
    /// Sectors that the host sees.
    ///
    /// # Panics
    /// Where a geometry is impossible: the check of a profile refuses it before.
    pub fn sector_count(&self) -> u64 {
        let all = self.geometry.sectors();
        self.sectors.unwrap_or(all).min(all)
    }
}

/// Command processing times, ns; `[after a read, after a write]`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overheads {
    /// Read found in the buffer.
    pub read_hit_ns: [u64; 2],
    /// Read from the platter.
    pub read_miss_ns: [u64; 2],
    /// Write reported from the buffer.
    pub write_hit_ns: [u64; 2],
    /// Write reported from the platter.
    pub write_miss_ns: [u64; 2],
    /// At the end of a read.
    pub read_completion_ns: u64,
    /// At the end of a write.
    pub write_completion_ns: u64,
}

/// The bus and its protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BusParameters {
    /// A sector of a read, ns.
    pub read_sector_ns: u64,
    /// A sector of a write, ns.
    pub write_sector_ns: u64,
    /// Before data move, ns.
    pub preparation_ns: u64,
    /// To come back to the bus for the data of a read or of a write, ns.
    pub reselect_ns: u64,
    /// To come back to the bus for the status of a write, ns.
    pub status_reselect_ns: u64,
    /// From the command of a write to the request for its data, ns.
    pub write_data_delay_ns: u64,
    /// From the command of a write to the start of the arm, ns.
    pub write_move_delay_ns: u64,
    /// A write that needs the arm touches the platter no sooner, ns.
    pub write_move_least_ns: u64,
    /// Share of a read that is in the buffer before it comes back to the bus, 0 to 1.
    pub read_watermark: f64,
}

/// The buffer between bus and platter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BufferParameters {
    /// Segments for reads; none without a buffer that caches.
    pub segments: u32,
    /// Sectors that a segment holds.
    pub segment_sectors: u32,
    /// How far a read is continued.
    pub read_ahead: ReadAhead,
    /// Most sectors that it goes on for.
    pub read_ahead_most_sectors: u32,
    /// Whether it may replace what the host has just read.
    pub read_ahead_over_requested: bool,
    /// Whether a read that was found in the buffer starts it anew.
    pub read_ahead_after_hit: bool,
    /// Whether sectors that pass before the first requested one are kept.
    pub keep_passed: bool,
    /// Whether a read starts with whatever sector comes first.
    pub immediate_read: bool,
    /// Whether a write starts with whatever sector comes first.
    pub immediate_write: bool,
    /// Whether written data serve reads.
    pub read_written: bool,
    /// Writes that may wait in the buffer after they were reported; 0 without write-back.
    pub write_back: u32,
    /// Sectors that they may have together.
    pub write_back_sectors: u32,
}

/// How far a read is continued while nothing else is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadAhead {
    /// Not at all.
    #[default]
    None,
    /// To the end of the track of the last requested sector.
    Track,
    /// To the end of its cylinder.
    Cylinder,
    /// Until the segment is full.
    Segment,
    /// To the end of the next track, where the reads before came along the track before.
    NextTrack,
}

/// Command queueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueParameters {
    /// Commands that the disk holds and orders by positioning time; 1 serves in order of arrival.
    pub depth: u32,
    /// A command that waited so long goes first, ns.
    pub most_wait_ns: u64,
}

impl Default for QueueParameters {
    fn default() -> Self {
        Self { depth: 1, most_wait_ns: 1_000_000_000 }
    }
}
