//! What a probe run measured: the input of a fit and of the report's device figures.
//!
//! Distributions are kept as histogram buckets, never as percentiles only, so that runs merge and
//! any quantile can be asked later. Saved as `measurements.json` in the run directory.

use events::Warning;
use serde::{Deserialize, Serialize};
use trace::Op;

/// Everything one probe run measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurements {
    /// Version of this file's shape.
    pub schema: u32,
    /// What was measured.
    pub target: Target,
    /// One entry per cell of the plan, in the order measured. A cell may appear more than once:
    /// repeats show the noise floor.
    pub cells: Vec<CellResult>,
    /// The load that commits; absent where the target must not be written or the run was cut short.
    #[serde(default)]
    pub commit_load: Option<CommitLoad>,
    /// Writes after a pause, for as long as a cache may take them; none where the target must not
    /// be written.
    #[serde(default)]
    pub burst: Option<Burst>,
    /// What makes the run as a whole suspect.
    pub warnings: Vec<Warning>,
}

/// Share of a cell's measured time that runs before it without being counted.
pub const WARM_UP_SHARE: f64 = 0.1;

/// Size of the requests that write the range from end to end before the first cell.
pub const FILL_BYTES: u32 = 128 << 10;

/// A cell that begins after a pause and is measured from its first request on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    /// How long the device was left alone, seconds.
    pub pause_s: f64,
    /// The cell; its windows show when the burst was over.
    pub result: CellResult,
}

/// The file or device under test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Path as the user gave it.
    pub path: String,
    /// `file` or `block_device`.
    pub kind: String,
    /// Bytes that the cells address.
    pub range_bytes: u64,
    /// Logical block: smallest O_DIRECT transfer and alignment.
    pub logical_block_bytes: u32,
    /// File system type, block device name, model, scheduler, rotational flag, write cache,
    /// mount options: whatever sysfs tells, by its sysfs name.
    pub facts: std::collections::BTreeMap<String, String>,
}

/// Where the next request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Each request starts where the previous one of its thread ended.
    Sequential,
    /// Uniform over the range, aligned to the request size.
    Random,
}

/// What makes a write durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Nothing: the device's cache may hold it.
    None,
    /// `fdatasync` after every write; the flush is a class of its own in the result.
    Flush,
    /// The file is opened with O_DSYNC.
    Dsync,
}

/// When the next request is issued.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// When one of `depth` outstanding requests completes.
    Closed,
    /// Poisson arrivals; response time counts from the intended start.
    Poisson {
        /// Requests per second.
        rate_per_s: f64,
    },
}

/// One point of the plan: a workload held for a while.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Where requests go.
    pub order: Order,
    /// Share of reads: 1 reads only, 0 writes only, 0.5 the papers' mixed load.
    pub read_share: f64,
    /// Bytes per request.
    pub size_bytes: u32,
    /// Outstanding requests (an upper bound for Poisson arrivals).
    pub depth: u32,
    /// What makes writes durable.
    pub durability: Durability,
    /// When requests are issued.
    pub arrival: Arrival,
}

/// What one cell measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The workload.
    pub cell: Cell,
    /// Seconds from the start of the run.
    pub started_s: f64,
    /// Measured seconds, warm-up excluded.
    pub elapsed_s: f64,
    /// Requests completed in that time (flushes not counted).
    pub requests: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// User CPU per request of the issuing threads, ns.
    pub cpu_user_ns: f64,
    /// Kernel CPU per request of the issuing threads, ns.
    pub cpu_system_ns: f64,
    /// One per operation seen.
    pub classes: Vec<ClassResult>,
    /// Rate over time, for steadiness and for the eye.
    pub windows: Vec<Window>,
    /// Whether the cell was steady; `None` where it was too short to say.
    pub steady: Option<bool>,
    /// What disturbed it.
    pub warnings: Vec<Warning>,
}

/// Times of one operation within a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassResult {
    /// The operation.
    pub op: Op,
    /// Completion - issue.
    pub service: Distribution,
    /// Completion - due; equals `service` for a closed loop.
    pub response: Distribution,
}

/// A distribution of times, ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Samples.
    pub count: u64,
    /// Exact mean.
    pub mean_ns: f64,
    /// Exact extremes.
    pub min_ns: u64,
    /// Exact extremes.
    pub max_ns: u64,
    /// (value, count) of every non-empty histogram bucket, ascending; relative error 2^-8 or less.
    pub buckets: Vec<(u64, u64)>,
}

/// What the commit load measured; see [`crate::commit_load`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommitLoad {
    /// Seed of the load.
    pub seed: u64,
    /// Bytes that it addresses.
    pub range_bytes: u64,
    /// Requests measured.
    pub requests: u64,
    /// Response times by class.
    pub classes: Vec<CommitClass>,
}

/// Times of one class of requests within the commit load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommitClass {
    /// The operation.
    pub op: Op,
    /// Whether it starts where the previous request of its operation and stream ended.
    pub order: Order,
    /// Bytes; of a flush, what was written since the one before.
    pub size_bytes: u32,
    /// Completion - the moment at which the load would have asked.
    pub response: Distribution,
}

/// One interval of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Seconds from the start of the cell.
    pub at_s: f64,
    /// Requests completed in it per second.
    pub iops: f64,
    /// 99th percentile of service times in it, ns.
    pub p99_ns: u64,
}
