//! `[limits]`: what a provider lets through to a volume, what it must satisfy, and the parameters
//! that it describes.

use serde::{Deserialize, Serialize};

use crate::Parameter;
use crate::rules::{Flaw, flaw, optional, positive, share};

/// A rate that may be exceeded while credits last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// Credits that come back per second; what passes once they are spent.
    pub per_s: f64,
    /// What passes per second while there are credits; at least `per_s`.
    pub burst_per_s: f64,
    /// Most credits that can be saved.
    pub credits: f64,
    /// Credits at the start, as a share of the most.
    pub start_share: f64,
}

impl Allowance {
    /// A rate without credits.
    pub fn steady(per_s: f64) -> Self {
        Self { per_s, burst_per_s: per_s, credits: 0.0, start_share: 1.0 }
    }
}

/// What the model of such limits needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitParameters {
    /// I/Os, by the rules of `io_bytes` and `merges`.
    pub ios: Option<Allowance>,
    /// Bytes.
    pub bytes: Option<Allowance>,
    /// Bytes of one I/O; a larger request counts as several. A request is one I/O without.
    pub io_bytes: Option<u32>,
    /// Contiguous requests count as one I/O up to `io_bytes`.
    pub merges: bool,
}

/// `[limits]`: rates over reads and writes together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsSpec {
    /// Size of one I/O, KiB: a larger request counts as several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_kib: Option<Parameter>,
    /// Contiguous requests count as one I/O up to that size.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merges_contiguous: bool,
    /// I/Os per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<AllowanceSpec>,
    /// Megabytes (10^6) per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mb_per_s: Option<AllowanceSpec>,
}

/// `[limits.iops]` and `[limits.mb_per_s]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowanceSpec {
    /// What passes for ever.
    pub rate: Parameter,
    /// What passes while there are credits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Parameter>,
    /// Credits that can be saved: I/Os, or megabytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credits: Option<Parameter>,
    /// Share of them that is there at the start; all of them where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credits_at_start: Option<Parameter>,
}

impl AllowanceSpec {
    /// In units of `scale`: 1 for I/Os, 10^6 for megabytes.
    fn allowance(&self, scale: f64) -> Allowance {
        let value = |parameter: &Option<Parameter>, default| {
            parameter.as_ref().map_or(default, |parameter| parameter.value)
        };
        Allowance {
            per_s: self.rate.value * scale,
            burst_per_s: value(&self.burst, self.rate.value) * scale,
            credits: value(&self.credits, 0.0) * scale,
            start_share: value(&self.credits_at_start, 1.0),
        }
    }
}

impl LimitsSpec {
    /// What the model needs.
    pub fn parameters(&self) -> LimitParameters {
        LimitParameters {
            ios: self.iops.as_ref().map(|spec| spec.allowance(1.0)),
            bytes: self.mb_per_s.as_ref().map(|spec| spec.allowance(1e6)),
            io_bytes: self.io_kib.as_ref().map(|kib| (kib.value * 1024.0) as u32),
            merges: self.merges_contiguous,
        }
    }
}

pub(crate) fn check_limits(limits: &LimitsSpec) -> Result<(), Flaw> {
    optional(positive, "limits.io_kib", limits.io_kib.as_ref())?;
    if limits.io_kib.as_ref().is_some_and(|kib| kib.value > 1_048_576.0) {
        return flaw("limits.io_kib", "an I/O is at most 1 GiB");
    }
    if limits.merges_contiguous && limits.io_kib.is_none() {
        return flaw("limits.merges_contiguous", "it needs io_kib: up to what size do they merge?");
    }
    if limits.iops.is_none() && limits.mb_per_s.is_none() {
        return flaw("limits.iops", "limits need [limits.iops] or [limits.mb_per_s]");
    }
    for (name, spec) in [("limits.iops", &limits.iops), ("limits.mb_per_s", &limits.mb_per_s)] {
        if let Some(spec) = spec {
            check_allowance(name, spec)?;
        }
    }
    Ok(())
}

fn check_allowance(name: &str, spec: &AllowanceSpec) -> Result<(), Flaw> {
    let field = |key: &str| format!("{name}.{key}");
    positive(&field("rate"), &spec.rate)?;
    optional(positive, &field("burst"), spec.burst.as_ref())?;
    optional(positive, &field("credits"), spec.credits.as_ref())?;
    optional(share, &field("credits_at_start"), spec.credits_at_start.as_ref())?;
    if spec.burst.as_ref().is_some_and(|burst| burst.value < spec.rate.value) {
        return flaw(&field("burst"), "it is below the rate");
    }
    if spec.burst.is_some() != spec.credits.is_some() {
        return flaw(&field("burst"), "burst and credits need each other");
    }
    if spec.credits.is_none() && spec.credits_at_start.is_some() {
        return flaw(&field("credits_at_start"), "there are no credits");
    }
    Ok(())
}
