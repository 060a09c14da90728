//! Parameters of the linear response-time model, and the sections of a profile that state them.

mod jitter;
mod section;

pub use jitter::JitterSpec;
pub(crate) use section::check_linear;
pub use section::{
    After, DetectionSpec, FlushSpec, LineSpec, LinearSpec, MixedSpec, PatternsSpec, ResidualSpec,
};

use trace::Op;
use units::Bytes;

use crate::Quantiles;

/// How a request's address relates to the one before it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// It starts where the previous one ended.
    Sequential = 0,
    /// It does not.
    Random = 1,
}

/// Whose previous request decides whether a request is sequential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detection {
    /// The previous one of the same operation and stream.
    #[default]
    PerStream,
    /// The previous one of the same operation.
    Global,
}

/// Service time of one operation in one pattern at depth 1, and what it can reach at depth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Time of a request of size zero (`b`), ns.
    pub base_ns: f64,
    /// Time per byte (`a`), ns.
    pub ns_per_byte: f64,
    /// Requests per second that the device reaches at any depth, where known.
    pub ceiling_iops: Option<f64>,
    /// Bytes per second that the device reaches at any depth, where known.
    pub ceiling_bytes_per_s: Option<f64>,
}

impl Line {
    /// `b + a x`, ns.
    #[inline]
    pub fn at(&self, size_bytes: u32) -> f64 {
        self.base_ns + self.ns_per_byte * f64::from(size_bytes)
    }
}

/// What the device did before a request arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Context {
    /// Any state that no other table is for.
    Any,
    /// No request of the same operation for at least this many ns. Of several, the longest
    /// that is reached counts, also after a flush.
    IdleFor(f64),
    /// The previous request was a flush.
    AfterFlush,
}

/// A quantile table of measured time over the line's time, and what it applies to.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// Read, write or flush; trims have none.
    pub op: Op,
    /// The pattern; both where `None`.
    pub pattern: Option<Pattern>,
    /// The request size that it was measured at; requests take the table of the nearest size on a
    /// logarithmic scale. `None`: all sizes. The size of a flush is what was written since the
    /// last one.
    pub size_bytes: Option<u32>,
    /// What came before.
    pub context: Context,
    /// The ratios.
    pub ratios: Quantiles,
}

/// How much longer requests take in a mixed load. 1 is no longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixed {
    /// Factor on reads in an even mix.
    pub read_factor: f64,
    /// Factor on writes in an even mix.
    pub write_factor: f64,
    /// Requests that the moving average of the mix remembers.
    pub window_requests: u32,
}

impl Default for Mixed {
    fn default() -> Self {
        Self { read_factor: 1.0, write_factor: 1.0, window_requests: 32 }
    }
}

/// Cost of making writes durable.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flush {
    /// Cost of a flush with nothing to make durable, ns.
    pub base_ns: f64,
    /// Additional cost per byte written since the last flush, ns.
    pub ns_per_dirty_byte: f64,
    /// Additional cost per write request since the last flush, ns.
    pub ns_per_dirty_request: f64,
}

/// Everything the linear model needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearParameters {
    /// Size of the device.
    pub capacity: Option<Bytes>,
    /// Lines of reads, by [`Pattern`].
    pub read: [Line; 2],
    /// Lines of writes, by [`Pattern`].
    pub write: [Line; 2],
    /// Requests that the device works on at once, at least 1.
    pub parallelism: u32,
    /// What counts as sequential.
    pub detection: Detection,
    /// Mixed-load penalty.
    pub mixed: Mixed,
    /// Flush cost.
    pub flush: Flush,
    /// Time of a trim, ns.
    pub trim_ns: f64,
    /// Distributions around the lines; where there is none for an operation, its requests take
    /// exactly their line.
    pub residuals: Vec<Residual>,
}
