//! From measurements of a device to a profile of it.
//!
//! [`fit`] works in stages, each of which keeps what it saw as evidence:
//!
//! 1. **Lines** (`lines`): mean service time against request size at depth 1, one weighted
//!    regression per operation and pattern: the linear model of Wang et al. 2010, section 3.1.
//! 2. **Distributions** (`distribution`): measured time over the line's time as quantile points
//!    per size, separately for writes that follow a flush and for requests after an idle gap.
//! 3. **Parallelism** (`parallelism`): how throughput grows with outstanding requests, and where it
//!    ends.
//! 4. **Mixed load and durability** (`mixed`, `durability`): reads among writes, flushes, O_DSYNC.
//! 5. **Limits** (`capped`): a rate that reads and writes share, and credits above it; before all
//!    else, since cells without credits say nothing of the device.
//! 6. **Write cache** (`cache`): where writes after a pause are fast at first and then slow.
//! 7. **Check** (`check`): every closed cell is run again in virtual time on the fitted profile,
//!    and the difference is reported per cell.
//! 8. **Commit load** (`context`): where it was measured, its distributions take the place of those
//!    of the cells for the requests that it has, scaled so that the load simulated on the profile
//!    has its measured means.
//!
//! What the measurements do not cover is filled from what they do, marked `assumed` in the profile
//! and named in the notes. [`measurement`] is what a probe run measured, [`commit_load`] the load
//! that commits, by which both the probe and the fit know it. Pure: no I/O, no clock. Tested by
//! fitting measurements that a known model made.

#![forbid(unsafe_code)]

mod cache;
mod capped;
mod check;
pub mod commit_load;
mod context;
mod distribution;
mod durability;
mod error;
mod lines;
pub mod measurement;
mod mixed;
mod parallelism;
mod select;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use events::Warning;
use profile::linear::{LinearSpec, MixedSpec, Pattern, PatternsSpec};
use profile::{About, DeviceSpec, Profile, StateOf};
use serde::{Deserialize, Serialize};
use trace::Op;
use units::Bytes;

pub use cache::wants_a_longer_pause;
pub use check::CellCheck;
pub use error::FitError;

use measurement::{CellResult, Distribution, Measurements, Target};
use select::Classes;

/// How to fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FitOptions {
    /// Decides the random draws of the check.
    pub seed: u64,
    /// Name of the profile.
    pub name: String,
}

/// A fitted profile and what led to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// The profile.
    pub profile: Profile,
    /// The lines with the points that they were fitted to, for the figure that shows both.
    pub lines: Vec<FittedLine>,
    /// Every closed cell measured and simulated.
    pub checks: Vec<CellCheck>,
    /// What was done without measurements, and outliers.
    pub warnings: Vec<Warning>,
}

/// One regression line and its points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FittedLine {
    /// Read or write.
    pub op: Op,
    /// Sequential or random.
    pub pattern: Pattern,
    /// What was measured at depth 1, ascending in size.
    pub points: Vec<FittedPoint>,
    /// Intercept in us at size zero.
    pub intercept_us: f64,
    /// Its standard error, us; 0 where two points or fewer leave none.
    pub intercept_error_us: f64,
    /// Slope, us per KiB.
    pub slope_us_per_kib: f64,
    /// Its standard error.
    pub slope_error_us_per_kib: f64,
    /// Share of the variance of the means that the line explains.
    pub r_squared: f64,
    /// Mean of |measured - line| / measured over the points.
    pub mean_relative_error: f64,
}

/// One point under a line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FittedPoint {
    /// Request size.
    pub size_bytes: u32,
    /// Measured mean service time, us.
    pub mean_us: f64,
    /// Its median, us.
    pub median_us: f64,
    /// Its 99th percentile, us.
    pub p99_us: f64,
    /// The line at this size, us.
    pub fitted_us: f64,
    /// Samples.
    pub samples: u64,
}

/// Fits a profile to what a probe measured.
///
/// # Errors
/// Where there is nothing to fit: no cell at depth 1 with a read or a write in it, or times of
/// zero throughout.
pub fn fit(measurements: &Measurements, options: &FitOptions) -> Result<Fit, FitError> {
    check_times(&measurements.cells)?;
    let mut notes = Notes::default();
    let cap = capped::find(&measurements.cells, measurements.target.range_bytes, &mut notes);
    let is_spent = |index: usize| cap.as_ref().is_some_and(|cap| cap.spent.contains(&index));
    let cells = measurements.cells.iter().enumerate();
    let classes = Classes::new(cells.filter(|(index, _)| !is_spent(*index)));
    // Without credits a burst is over, too.
    let cached = cache::find(&classes, measurements.burst.as_ref(), &mut notes)
        .filter(|found| cap.as_ref().is_none_or(|cap| !cap.explains(found.slow_per_s())));
    let found = lines::fit(&classes, cached.is_some(), &mut notes)?;
    let residual = distribution::fit(&classes, &found, &mut notes);
    let (flush, flush_residual) = durability::flush(&classes, &mut notes);
    let limits = parallelism::fit(&classes, &found, &mut notes);
    let capacity = measurements.target.range_bytes;
    let linear = LinearSpec {
        capacity: (capacity > 0).then_some(Bytes(capacity)),
        sequential_detection: profile::linear::DetectionSpec::PerStream,
        parallelism: limits.parallelism.clone(),
        trim_us: None,
        read: patterns(Op::Read, &found, &limits),
        write: patterns(Op::Write, &found, &limits),
        durable_write: durability::durable_write(&classes),
        flush,
        mixed: mixed::fit(&classes, &mut notes).map(|(read_factor, write_factor)| MixedSpec {
            read_factor,
            write_factor,
            window_requests: MIX_WINDOW_REQUESTS,
        }),
        residual: residual.into_iter().chain(flush_residual).collect(),
        jitter: Vec::new(),
    };
    let mut profile = Profile {
        profile: about(&measurements.target, options),
        state: state(measurements),
        device: DeviceSpec::Linear(Box::new(linear)),
        write_cache: None,
        limits: cap.as_ref().map(capped::Cap::spec),
        validation: None,
        cost: None,
        endurance: None,
        published: Vec::new(),
    };
    if let Some(found) = cached {
        cache::apply(&mut profile, &found);
    }
    profile.check().map_err(|source| FitError::Impossible { source })?;
    let checks = check::run(&profile, measurements, &is_spent, options.seed);
    check::warn(&checks, &mut notes);
    // After the probe's cells there are no credits left for the load.
    let load =
        measurements.commit_load.as_ref().filter(|_| !cap.is_some_and(|cap| cap.has_credits()));
    if let Some(load) = load {
        context::apply(&mut profile, load, options.seed);
        profile.check().map_err(|source| FitError::Impossible { source })?;
    }
    let lines = lines::for_figure(&classes, &found);
    Ok(Fit { profile, lines, checks, warnings: notes.warnings })
}

/// Refuses means that no device can have.
fn check_times(cells: &[CellResult]) -> Result<(), FitError> {
    for (index, cell) in cells.iter().enumerate() {
        for class in &cell.classes {
            let Distribution { count, mean_ns, ref buckets, .. } = class.service;
            let possible = mean_ns.is_finite()
                && mean_ns > 0.0
                && buckets.iter().map(|bucket| bucket.1).sum::<u64>() == count;
            if count > 0 && !possible {
                return Err(FitError::ImpossibleTime {
                    index,
                    cell: select::key_of(&cell.cell, class.op).to_string(),
                    mean_ns: mean_ns.to_string(),
                    samples: count,
                });
            }
        }
    }
    Ok(())
}

/// Requests that the fitted moving average of the mix remembers: short enough to follow the phases
/// of a checkpoint, long enough to see a mix at all.
const MIX_WINDOW_REQUESTS: u32 = 32;

fn patterns(op: Op, lines: &lines::Lines, limits: &parallelism::Limits) -> PatternsSpec {
    let of = |pattern| limits.applied_to(op, pattern, lines.spec(op, pattern));
    PatternsSpec { sequential: of(Pattern::Sequential), random: of(Pattern::Random) }
}

fn about(target: &Target, options: &FitOptions) -> About {
    let model = target.facts.get("model").map_or("", String::as_str);
    let device = [model, target.path.as_str()].into_iter().find(|text| !text.is_empty());
    About {
        name: options.name.clone(),
        description: format!("Fitted by wearmark to measurements of {}.", device.unwrap_or("?")),
        class: "fitted".to_owned(),
        sources: vec![format!(
            "wearmark probe of {} ({}, {})",
            target.path,
            target.kind,
            Bytes(target.range_bytes)
        )],
    }
}

fn state(measurements: &Measurements) -> StateOf {
    let judged: Vec<bool> = measurements.cells.iter().filter_map(|cell| cell.steady).collect();
    let condition = match (judged.is_empty(), judged.iter().all(|steady| *steady)) {
        (false, true) => "steady",
        _ => "unknown",
    };
    let facts: Vec<String> =
        measurements.target.facts.iter().map(|(key, value)| format!("{key} {value}")).collect();
    StateOf {
        condition: condition.to_owned(),
        fill: None,
        measured: String::new(),
        note: facts.join(", "),
    }
}

/// Notes of a fit as they come up.
#[derive(Debug, Default)]
struct Notes {
    warnings: Vec<Warning>,
    seen: BTreeMap<String, usize>,
}

impl Notes {
    /// Adds a note, once per code and message.
    fn add(&mut self, code: &str, message: String, hint: &str) {
        let times = self.seen.entry(format!("{code} {message}")).or_insert(0);
        *times += 1;
        if *times == 1 {
            self.warnings.push(Warning::new("fit", code, message).with_hint(hint));
        }
    }
}

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
