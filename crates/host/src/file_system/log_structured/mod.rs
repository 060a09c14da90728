//! Log-structured file systems: everything is appended, and a cleaner makes room.
//!
//! - [`segments`]: blocks in a log of segments, victims, and the plainest log that cleans itself.
//! - `nilfs2.rs`: one log for everything; an fsync is a checkpoint of the whole file system.
//! - `f2fs.rs`: six logs by kind; an fsync writes data and the node above them.
//!
//! Both write into the first place that is free and never ask what lies beside it, so that small
//! writes of a database become large ones, at the price of cleaning. Segments begin at multiples of
//! their length; the first one holds what has a fixed place.

mod f2fs;
mod nilfs2;
pub mod segments;
mod table;
mod victims;

pub(super) use f2fs::F2fs;
pub(super) use nilfs2::Nilfs2;
pub(super) use table::Table;
pub use victims::Policy;

/// When and what a cleaner cleans by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cleaner {
    /// Which segments; without one nothing is cleaned in the background.
    pub policy: Option<Policy>,
    /// Time between two steps, ns.
    pub interval_ns: u64,
    /// Segments of a step.
    pub segments_per_clean: u32,
    /// The same two where fewer segments are free than `start_below` says (nilfs2).
    pub urgent_interval_ns: u64,
    /// Segments of such a step.
    pub urgent_segments: u32,
    /// Cleaning starts when a smaller share of the segments is free (nilfs2).
    pub start_below: f64,
    /// It stops when a larger share is; both 0: it always cleans.
    pub stop_above: f64,
    /// What was alive so recently is still needed, and so is a segment written so recently
    /// (nilfs2), ns.
    pub protection_ns: u64,
    /// Share of a segment that must be dead, or it is left for a full round (nilfs2).
    pub min_reclaimable: f64,
}

/// When f2fs overwrites a block where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overwrite {
    /// Never but past the page cache.
    Never,
    /// For fdatasync, and for an fsync of at most 8 pages.
    #[default]
    Fsync,
    /// When more than 70 % of the space is in use.
    Utilization,
    /// Whenever the block exists.
    Always,
}

/// What a log-structured file system is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Whether a sync flushes the cache of the device (nilfs2 before Linux 3 did not).
    pub flushes: bool,
    /// When a block is overwritten in place (f2fs).
    pub in_place: Overwrite,
    /// The cleaner.
    pub cleaner: Cleaner,
}

const SECOND: u64 = 1_000_000_000;

impl Settings {
    /// The defaults of nilfs-utils 2.2 and Linux 6.
    pub fn nilfs2() -> Self {
        Self {
            segment_bytes: 8 << 20,
            flushes: true,
            in_place: Overwrite::Never,
            cleaner: Cleaner {
                policy: Some(Policy::OldestFirst),
                interval_ns: 5 * SECOND,
                segments_per_clean: 2,
                urgent_interval_ns: SECOND,
                urgent_segments: 4,
                start_below: 0.10,
                stop_above: 0.20,
                protection_ns: 3600 * SECOND,
                min_reclaimable: 0.10,
            },
        }
    }

    /// The defaults of f2fs (fs/f2fs/gc.h).
    pub fn f2fs() -> Self {
        Self {
            segment_bytes: 2 << 20,
            in_place: Overwrite::Fsync,
            cleaner: Cleaner {
                policy: Some(Policy::CostBenefit),
                interval_ns: 30 * SECOND,
                segments_per_clean: 1,
                protection_ns: 0,
                min_reclaimable: 0.0,
                ..Self::nilfs2().cleaner
            },
            ..Self::nilfs2()
        }
    }
}
