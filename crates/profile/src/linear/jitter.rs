//! `[[device.jitter]]`: a distribution around the lines by its parameters, where no table of
//! quantiles was measured.
//!
//! The body is lognormal with the line as its mean; apart from it stands a small share of stalls,
//! lognormal too. Two parts, because networked volumes have two: of 367,535 commits on a gp2 volume
//! 0.06 % took 8 to 128 ms and more, 0.10 %, took 128 ms to 1 s (etcd issue 9544), a second hump
//! that no single lognormal has.
//!
//! The model draws from it as from a measured table ([`Residual`]): ratios of the time of the line.
//! Tested against the closed forms of the mixture.

use serde::{Deserialize, Serialize};
use trace::Op;

use super::{Context, Residual};
use crate::parameter::Parameter;
use crate::quantiles::Quantiles;
use crate::rules::{Flaw, flaw, optional, positive, time};

/// `[[device.jitter]]`: how the times of an operation scatter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JitterSpec {
    /// `read`, `write` or `flush`.
    pub op: Op,
    /// Standard deviation of the logarithm of the times of the body; p99 over p50 is
    /// `exp(2.326 spread)`.
    pub spread: Parameter,
    /// Requests that stall; none where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls_per_million: Option<Parameter>,
    /// Median time of one that stalls, of 4 KiB, ms. Larger requests stall longer, as their lines
    /// are longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_ms: Option<Parameter>,
    /// Standard deviation of the logarithm of those times; 0.5 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_spread: Option<Parameter>,
}

/// A lognormal distribution by the mean and standard deviation of its logarithm.
#[derive(Clone, Copy)]
struct Lognormal {
    mean_ln: f64,
    spread: f64,
}

/// The spread of stalls that a profile does not state: p99 is 3.2 times the median.
const STALL_SPREAD: f64 = 0.5;

/// Points of the table, evenly spread over the logarithm of the ratio.
const POINTS: u32 = 600;

/// Standard deviations that the table covers: 1 in 10^9 lies outside.
const COVERED: f64 = 6.0;

impl JitterSpec {
    /// Ratios of the time of a line that takes `line_ns` at 4 KiB.
    pub(super) fn residual(&self, line_ns: f64) -> Residual {
        let spread = self.spread.value;
        // The mean of a lognormal is exp(mean_ln + spread^2 / 2).
        let body = Lognormal { mean_ln: -spread * spread / 2.0, spread };
        let value = |parameter: &Option<Parameter>, default: f64| {
            parameter.as_ref().map_or(default, |parameter| parameter.value)
        };
        let share = value(&self.stalls_per_million, 0.0) / 1e6;
        let stall = Lognormal {
            mean_ln: (value(&self.stall_ms, 0.0) * 1e6 / line_ns).max(f64::MIN_POSITIVE).ln(),
            spread: value(&self.stall_spread, STALL_SPREAD),
        };
        let ratios = table(body, (share > 0.0).then_some((share, stall)));
        Residual { op: self.op, pattern: None, size_bytes: None, context: Context::Any, ratios }
    }
}

/// The quantiles of `body` and, by a share, of stalls.
fn table(body: Lognormal, stalls: Option<(f64, Lognormal)>) -> Quantiles {
    let parts = || std::iter::once(body).chain(stalls.map(|(_, stall)| stall));
    let end = |sign: f64| parts().map(move |part| part.mean_ln + sign * COVERED * part.spread);
    let low = end(-1.0).fold(f64::INFINITY, f64::min);
    let high = end(1.0).fold(f64::NEG_INFINITY, f64::max);
    let step = (high - low) / f64::from(POINTS);
    let below = |ln: f64| {
        let share = stalls.map_or(0.0, |(share, _)| share);
        let stalled = stalls.map_or(0.0, |(share, stall)| share * stall.below(ln));
        (1.0 - share) * body.below(ln) + stalled
    };
    let mut points: Vec<(f64, f64)> = vec![(0.0, low.exp())];
    for index in 1..POINTS {
        let ln = low + step * f64::from(index);
        let p = below(ln);
        if p > points[points.len() - 1].0 && p < 1.0 {
            points.push((p, ln.exp()));
        }
    }
    points.push((1.0, high.exp()));
    Quantiles(points)
}

impl Lognormal {
    /// Share of values whose logarithm is below `ln`.
    fn below(self, ln: f64) -> f64 {
        normal_below((ln - self.mean_ln) / self.spread)
    }
}

/// The normal distribution function by its series about zero (Abramowitz and Stegun, 26.2.11).
fn normal_below(z: f64) -> f64 {
    // Beyond, it rounds to 0 and 1.
    if z.abs() > 8.5 {
        return if z > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut term, mut sum, mut odd) = (z, z, 1.0);
    while term.abs() > f64::EPSILON * 1e-3 {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    (0.5 + sum * density).clamp(0.0, 1.0)
}

/// What the jitter of operation number `index` of the file must satisfy.
pub(super) fn check_jitter(index: usize, all: &[JitterSpec]) -> Result<(), Flaw> {
    let field = |key: &str| format!("device.jitter[{index}].{key}");
    let spec = &all[index];
    if spec.op == Op::Trim {
        return flaw(&field("op"), "trims have no distribution");
    }
    if all[..index].iter().any(|before| before.op == spec.op) {
        return flaw(&field("op"), "an operation has one distribution of this kind");
    }
    positive(&field("spread"), &spec.spread)?;
    optional(positive, &field("stalls_per_million"), spec.stalls_per_million.as_ref())?;
    optional(positive, &field("stall_spread"), spec.stall_spread.as_ref())?;
    if let Some(ms) = &spec.stall_ms {
        time(&field("stall_ms"), ms)?;
        positive(&field("stall_ms"), ms)?;
    }
    for (key, spread) in
        [("spread", Some(&spec.spread)), ("stall_spread", spec.stall_spread.as_ref())]
    {
        if spread.is_some_and(|spread| spread.value > 3.0) {
            return flaw(
                &field(key),
                "beyond 3 it is no scatter about a line: p99 is 1000 times p50",
            );
        }
    }
    if spec.stalls_per_million.as_ref().is_some_and(|stalls| stalls.value > 500_000.0) {
        return flaw(&field("stalls_per_million"), "what most requests do is no stall");
    }
    if spec.stalls_per_million.is_some() != spec.stall_ms.is_some() {
        return flaw(&field("stall_ms"), "stalls_per_million and stall_ms need each other");
    }
    if spec.stall_spread.is_some() && spec.stall_ms.is_none() {
        return flaw(&field("stall_spread"), "there are no stalls");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64, tolerance: f64) {
        assert!((found / expected - 1.0).abs() < tolerance, "{found} for {expected}");
    }

    /// Abramowitz and Stegun, table 26.1 and its quantiles.
    #[test]
    fn the_normal_distribution_is_that_of_the_tables() {
        for (z, p) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_543),
            (1.281_551_565_544_6, 0.9),
            (2.326_347_874_040_841, 0.99),
            (4.264_890_793_922_825, 0.999_99),
            (-3.090_232_306_167_813, 0.001),
            (9.0, 1.0),
        ] {
            assert!((normal_below(z) - p).abs() < 1e-13, "{z}: {}", normal_below(z));
        }
    }

    /// Mean and quantiles of a lognormal of mean 1.
    #[test]
    fn the_body_is_lognormal_about_the_line() {
        for spread in [0.05, 0.3, 1.0] {
            let spec = JitterSpec {
                op: Op::Write,
                spread: Parameter::new(spread, "by hand"),
                stalls_per_million: None,
                stall_ms: None,
                stall_spread: None,
            };
            let table = spec.residual(1e6).ratios;
            assert_eq!(table.flaw(), None);
            near(table.mean(), 1.0, 1e-3);
            for (p, z) in [(0.5, 0.0), (0.99, 2.326_348), (0.999, 3.090_232), (0.01, -2.326_348)] {
                near(table.at(p), (z * spread - spread * spread / 2.0_f64).exp(), 1e-3);
            }
        }
    }

    #[test]
    fn stalls_are_their_share_and_add_to_the_mean() {
        let spec = JitterSpec {
            op: Op::Write,
            spread: Parameter::new(0.2, "by hand"),
            stalls_per_million: Some(Parameter::new(2000.0, "by hand")),
            stall_ms: Some(Parameter::new(100.0, "by hand")),
            stall_spread: Some(Parameter::new(0.4, "by hand")),
        };
        // Of a line of 0.5 ms, so that the median stall is 200 times it.
        let table = spec.residual(500_000.0).ratios;
        assert_eq!(table.flaw(), None);
        near(table.mean(), 0.998 + 0.002 * 200.0 * (0.08_f64).exp(), 1e-3);
        near(table.at(0.999), 200.0, 2e-3);
        near(table.at(0.5), (-0.02_f64 + 0.2 * 0.002_509).exp(), 1e-3);
    }
}
