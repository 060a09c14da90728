//! The sections of a profile, as they stand in its file.

use serde::{Deserialize, Serialize, Serializer};
use trace::Op;
use units::Bytes;

use super::Parameter;
use super::flash::FlashSpec;
use super::hdd::HddSpec;
use crate::linear::Pattern;
use crate::quantiles::Quantiles;

/// `[profile]`: what the device is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Short name, as on the command line: `intel-x25-e`.
    pub name: String,
    /// One or two sentences for a person choosing a device.
    #[serde(default)]
    pub description: String,
    /// Kind of device: `sata-slc`, `nvme-tlc`, `hdd`, `dram-ssd`, `cloud-volume`, ...
    #[serde(default)]
    pub class: String,
    /// Papers, data sheets and runs that the parameters come from.
    #[serde(default)]
    pub sources: Vec<String>,
}

/// `[state]`: what the device was like when the parameters held.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateOf {
    /// `fresh`, `steady` or `unknown`.
    pub condition: String,
    /// Share of the capacity that holds data, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<f64>,
    /// When it was measured or published, as a date or year.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub measured: String,
    /// Anything else that the figures depend on: machine, file system, firmware.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// `[validation]`: how well the profile was found to predict the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validation {
    /// Error ratio E of simulated against measured response times.
    pub error_ratio: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
    /// E of the device against itself in a second run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_against_itself: Option<f64>,
    /// The trace, which the fit had not seen.
    pub trace: String,
    /// When.
    pub date: String,
}

/// `[device]`: the model and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeviceSpec {
    /// `kind = "linear"`: [`crate::Linear`].
    Linear(Box<LinearSpec>),
    /// `kind = "ram"`: [`crate::Ram`].
    Ram(RamSpec),
    /// `kind = "flash"`: [`crate::flash::Flash`].
    Flash(Box<FlashSpec>),
    /// `kind = "hdd"`: [`crate::Hdd`].
    Hdd(Box<HddSpec>),
}

/// `[device]` of `kind = "linear"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearSpec {
    /// Size of the device.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "capacity_text")]
    pub capacity: Option<Bytes>,
    /// `per_stream` or `global`: whose previous request decides what is sequential.
    #[serde(default)]
    pub sequential_detection: DetectionSpec,
    /// Requests that the device works on at once.
    pub parallelism: Parameter,
    /// Time of a trim, us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim_us: Option<Parameter>,
    /// Reads.
    pub read: PatternsSpec,
    /// Writes.
    pub write: PatternsSpec,
    /// Writes that are durable when they complete (O_DSYNC): informative, since a trace shows
    /// them as a write and a flush.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable_write: Option<LineSpec>,
    /// Making writes durable.
    pub flush: FlushSpec,
    /// Mixed-load penalty; none where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixed: Option<MixedSpec>,
    /// Distributions around the lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub residual: Vec<ResidualSpec>,
}

/// `sequential_detection`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DetectionSpec {
    /// The previous request of the same operation and stream.
    #[default]
    PerStream,
    /// The previous request of the same operation.
    Global,
}

/// `[device.read]` and `[device.write]`: one line per pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatternsSpec {
    /// Requests that start where the one before ended.
    pub sequential: LineSpec,
    /// All others.
    pub random: LineSpec,
}

/// One line `y = a x + b` and its ceilings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineSpec {
    /// Time at size zero (`b`), us.
    pub base_us: Parameter,
    /// Time per KiB (`a`), us.
    pub us_per_kib: Parameter,
    /// Share of the variance of the means that the line explains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r_squared: Option<f64>,
    /// Requests per second reached at any depth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_iops: Option<Parameter>,
    /// MB (1,000,000 bytes) per second reached at any depth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_mb_per_s: Option<Parameter>,
}

/// `[device.flush]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlushSpec {
    /// Cost with nothing to make durable, us.
    pub base_us: Parameter,
    /// Additional cost per KiB written since the last flush, us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub us_per_dirty_kib: Option<Parameter>,
    /// Additional cost per write request since the last flush, us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub us_per_dirty_request: Option<Parameter>,
}

/// `[device.mixed]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixedSpec {
    /// Reads in an even mix take so many times longer.
    pub read_factor: Parameter,
    /// Writes in an even mix take so many times longer.
    pub write_factor: Parameter,
    /// Requests that the moving average of the mix remembers.
    pub window_requests: u32,
}

/// `[[device.residual]]`: a distribution of measured time over the line's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResidualSpec {
    /// `read`, `write` or `flush`.
    pub op: Op,
    /// `sequential` or `random`; both where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// The request size that it was measured at; requests take the nearest. All where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// `flush`: only right after a flush.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<After>,
    /// Only after no request of the same operation for so long, us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_us: Option<f64>,
    /// Samples behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// The cells of a probe run that it comes from, or the grounds for an assumption.
    pub source: String,
    /// Whether nobody measured it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
    /// `[probability, ratio]` points.
    pub quantiles: Quantiles,
}

/// `after` of a residual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum After {
    /// The previous request was a flush.
    Flush,
}

/// `[device]` of `kind = "ram"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RamSpec {
    /// Size of the device.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "capacity_text")]
    pub capacity: Option<Bytes>,
    /// Fixed time per request, us.
    pub latency_us: Parameter,
    /// MB (1,000,000 bytes) per second across the interface.
    pub interface_mb_per_s: Parameter,
    /// Requests that the controller works on at once.
    pub ports: Parameter,
}

/// `[write_cache]`: a write-back cache in front of the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteCacheSpec {
    /// MB (1,000,000 bytes) that it holds.
    pub capacity_mb: Parameter,
    /// Bytes per line.
    pub line: Bytes,
    /// Time of a request that only touches the cache, at size zero, us.
    pub hit_base_us: Parameter,
    /// And per KiB, us.
    pub hit_us_per_kib: Parameter,
    /// Requests that it works on at once.
    pub ports: Parameter,
    /// Dirty share above which destaging starts, 0 to 1.
    pub high_watermark: Parameter,
    /// Dirty share at which it stops.
    pub low_watermark: Parameter,
    /// Longest write of a destage, KiB.
    pub coalesce_kib: Parameter,
    /// Destage everything after so long without a request, ms; never where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_destage_after_ms: Option<Parameter>,
    /// Whether a flush is acknowledged from the cache.
    #[serde(default)]
    pub power_loss_protected: bool,
    /// Streams whose writes are durable when they complete (forced unit access), from 0 to 63; none
    /// where absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub durable_streams: Vec<u16>,
    /// Destages that a device with an event queue (`[device.queue]`) has at a time; 32 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destage_depth: Option<u32>,
}

/// Makers count capacities in powers of ten: `32GB` where that is exact.
#[allow(clippy::ref_option)] // The signature is serde's.
pub(super) fn capacity_text<S: Serializer>(
    capacity: &Option<Bytes>,
    to: S,
) -> Result<S::Ok, S::Error> {
    const GB: u64 = 1_000_000_000;
    match capacity {
        Some(Bytes(bytes)) if bytes % GB == 0 && *bytes > 0 => {
            to.collect_str(&format_args!("{}GB", bytes / GB))
        }
        Some(bytes) => bytes.serialize(to),
        None => to.serialize_none(),
    }
}
