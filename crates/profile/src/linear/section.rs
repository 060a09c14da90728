//! `kind = "linear"`: the sections of a device of lines, what they must satisfy, and the parameters
//! that they describe.

use serde::{Deserialize, Serialize};
use trace::Op;
use units::Bytes;

use super::jitter::{JitterSpec, check_jitter};
use super::{Context, Detection, Flush, Line, LinearParameters, Mixed, Pattern, Residual};
use crate::parameter::{Parameter, capacity_text};
use crate::quantiles::Quantiles;
use crate::rules::{Flaw, check_capacity, count, flaw, optional, positive, time};

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
    /// Distributions of the operations for which no table was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jitter: Vec<JitterSpec>,
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
    /// Reads in an even mix take this many times longer.
    pub read_factor: Parameter,
    /// Writes in an even mix take this many times longer.
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

fn value_or(parameter: Option<&Parameter>, default: f64) -> f64 {
    parameter.map_or(default, |parameter| parameter.value)
}

impl LineSpec {
    /// The line that the section describes.
    pub fn line(&self) -> Line {
        Line {
            base_ns: self.base_us.value * 1e3,
            ns_per_byte: self.us_per_kib.value * 1e3 / 1024.0,
            ceiling_iops: self.ceiling_iops.as_ref().map(|iops| iops.value),
            ceiling_bytes_per_s: self.ceiling_mb_per_s.as_ref().map(|rate| rate.value * 1e6),
        }
    }
}

impl PatternsSpec {
    fn lines(&self) -> [Line; 2] {
        [self.sequential.line(), self.random.line()]
    }
}

impl LinearSpec {
    /// The model parameters that the section describes.
    pub fn parameters(&self) -> LinearParameters {
        let mixed = self.mixed.as_ref().map_or_else(Mixed::default, |mixed| Mixed {
            read_factor: mixed.read_factor.value,
            write_factor: mixed.write_factor.value,
            window_requests: mixed.window_requests,
        });
        LinearParameters {
            capacity: self.capacity,
            read: self.read.lines(),
            write: self.write.lines(),
            parallelism: self.parallelism.value as u32,
            detection: match self.sequential_detection {
                DetectionSpec::PerStream => Detection::PerStream,
                DetectionSpec::Global => Detection::Global,
            },
            mixed,
            flush: Flush {
                base_ns: self.flush.base_us.value * 1e3,
                ns_per_dirty_byte: value_or(self.flush.us_per_dirty_kib.as_ref(), 0.0) * 1e3
                    / 1024.0,
                ns_per_dirty_request: value_or(self.flush.us_per_dirty_request.as_ref(), 0.0) * 1e3,
            },
            trim_ns: value_or(self.trim_us.as_ref(), 0.0) * 1e3,
            residuals: self
                .residual
                .iter()
                .map(ResidualSpec::residual)
                .chain(self.jitter.iter().map(|jitter| jitter.residual(self.line_ns(jitter.op))))
                .collect(),
        }
    }

    /// What an operation takes, of 4 KiB, ns.
    fn line_ns(&self, op: Op) -> f64 {
        match op {
            Op::Read => self.read.random.line().at(4096),
            Op::Write => self.write.random.line().at(4096),
            Op::Flush | Op::Trim => self.flush.base_us.value * 1e3,
        }
        .max(1.0)
    }
}

impl ResidualSpec {
    fn residual(&self) -> Residual {
        let context = match (self.after, self.idle_us) {
            (Some(After::Flush), _) => Context::AfterFlush,
            (None, Some(us)) => Context::IdleFor(us * 1e3),
            (None, None) => Context::Any,
        };
        Residual {
            op: self.op,
            pattern: self.pattern,
            size_bytes: self.size.map(|size| size.0.min(u64::from(u32::MAX)) as u32),
            context,
            ratios: self.quantiles.clone(),
        }
    }
}

/// What a device of lines must satisfy to exist.
pub(crate) fn check_linear(linear: &LinearSpec) -> Result<(), Flaw> {
    check_capacity(linear.capacity)?;
    count("device.parallelism", &linear.parallelism, 65_536.0)?;
    optional(time, "device.trim_us", linear.trim_us.as_ref())?;
    patterns("device.read", &linear.read)?;
    patterns("device.write", &linear.write)?;
    if let Some(durable) = &linear.durable_write {
        line("device.durable_write", durable)?;
    }
    flush(&linear.flush)?;
    if let Some(mixed) = &linear.mixed {
        positive("device.mixed.read_factor", &mixed.read_factor)?;
        positive("device.mixed.write_factor", &mixed.write_factor)?;
        if mixed.window_requests == 0 {
            return flaw("device.mixed.window_requests", "an average needs at least one request");
        }
    }
    for (index, residual) in linear.residual.iter().enumerate() {
        check_residual(index, residual)?;
    }
    for (index, jitter) in linear.jitter.iter().enumerate() {
        check_jitter(index, &linear.jitter)?;
        let general = |table: &ResidualSpec| table.after.is_none() && table.idle_us.is_none();
        if linear.residual.iter().any(|table| table.op == jitter.op && general(table)) {
            let cause = "the operation has a table of quantiles already";
            return flaw(&format!("device.jitter[{index}].op"), cause);
        }
    }
    Ok(())
}

fn patterns(field: &str, spec: &PatternsSpec) -> Result<(), Flaw> {
    line(&format!("{field}.sequential"), &spec.sequential)?;
    line(&format!("{field}.random"), &spec.random)
}

fn line(field: &str, spec: &LineSpec) -> Result<(), Flaw> {
    time(&format!("{field}.base_us"), &spec.base_us)?;
    time(&format!("{field}.us_per_kib"), &spec.us_per_kib)?;
    optional(positive, &format!("{field}.ceiling_iops"), spec.ceiling_iops.as_ref())?;
    optional(positive, &format!("{field}.ceiling_mb_per_s"), spec.ceiling_mb_per_s.as_ref())
}

fn flush(spec: &FlushSpec) -> Result<(), Flaw> {
    time("device.flush.base_us", &spec.base_us)?;
    optional(time, "device.flush.us_per_dirty_kib", spec.us_per_dirty_kib.as_ref())?;
    optional(time, "device.flush.us_per_dirty_request", spec.us_per_dirty_request.as_ref())
}

fn check_residual(index: usize, spec: &ResidualSpec) -> Result<(), Flaw> {
    let field = |key: &str| format!("device.residual[{index}].{key}");
    if spec.op == Op::Trim {
        return flaw(&field("op"), "trims have no distribution");
    }
    if let Some(cause) = spec.quantiles.flaw() {
        return flaw(&field("quantiles"), cause);
    }
    if spec.quantiles.mean() <= 0.0 {
        return flaw(&field("quantiles"), "the mean is zero");
    }
    if spec.idle_us.is_some_and(|us| !us.is_finite() || us <= 0.0) {
        return flaw(&field("idle_us"), "an idle time is positive");
    }
    if spec.idle_us.is_some() && spec.after.is_some() {
        return flaw(&field("after"), "a table is for an idle time or for after a flush, not both");
    }
    Ok(())
}
