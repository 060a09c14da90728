//! How wrong a profile is: the simulated against the real response times of one request sequence,
//! beside the real device's own difference between two runs.
//!
//! The definition of E is the design's (`stats::error_ratio`). Run A is the reference; run B against
//! run A is the noise floor; the simulation is against run A. Classes are operation x size, sizes
//! grouped by power of two so that a log with commits of many lengths makes a handful of classes.

use profile::Profile;
use serde::{Deserialize, Serialize};
use stats::error_ratio::{
    Block, ClassKey, Classified, Comparison, Requests, Resampling, compare_requests,
    compare_with_interval,
};
use trace::{Op, Trace};

/// Times of one replay, in the order of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    /// completion - due of every request, ns.
    pub response_ns: Vec<u64>,
    /// completion - issue of every request, ns.
    pub service_ns: Vec<u64>,
    /// How exactly the schedule was kept.
    pub certificate: probe::replay::Certificate,
}

/// The outcome of a validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Requests compared.
    pub requests: u64,
    /// Simulation against run A.
    pub simulated: Classified,
    /// Run B against run A.
    pub noise_floor: Classified,
    /// The same split by operation only, with the curves for the figures.
    pub operations: Vec<OperationError>,
    /// E that the project aims at: max(0.05, 1.5 x noise floor).
    pub aim: f64,
    /// Timing certificates of runs A and B.
    pub certificates: Vec<probe::replay::Certificate>,
}

/// One operation of a validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationError {
    /// The operation.
    pub op: Op,
    /// Simulation against run A.
    pub simulated: Comparison,
    /// Run B against run A.
    pub noise_floor: Comparison,
    /// Response-time quantile curves for drawing.
    pub curves: Vec<Curve>,
}

/// A distribution as a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// `real, run A`, `real, run B`, `simulated`, `simulated without cache`.
    pub name: String,
    /// (response time ns, share of requests at or below it).
    pub points: Vec<(u64, f64)>,
}

/// What a validation compares.
#[derive(Clone, Copy, Debug)]
pub struct Sides<'a> {
    /// The requests.
    pub trace: &'a Trace,
    /// The real device, twice.
    pub real: [&'a Replayed; 2],
    /// Simulated response times, ns.
    pub simulated: &'a [u64],
    /// The same without the profile's cache, where it has one.
    pub without_cache: Option<&'a [u64]>,
}

/// Simulated response times of a trace, ns, under the same load as `stages::replay::mode` gives the
/// real device.
pub fn simulate(profile: &Profile, trace: &Trace, seed: u64) -> Result<Vec<u64>, sim::Error> {
    let mut device = model::device(profile, seed);
    if trace.captured().is_some() {
        return sim::closed_loop_times(device.as_mut(), trace);
    }
    Ok(sim::responses(device.as_mut(), trace))
}

/// Compares; all sides have one time per request of the trace.
pub fn compare(sides: &Sides<'_>, seed: u64) -> Validation {
    let trace = sides.trace;
    let (keys, class) = classes(trace);
    let block = Block::Time { due_ns: &trace.due, block_ns: 1_000_000_000 };
    let resampling = Resampling { resamples: 200, seed, block };
    let against_a = |times: &[u64]| {
        let real = &sides.real[0].response_ns;
        let requests = Requests { keys: &keys, class: &class, simulated: times, real };
        compare_requests(&requests, Some(&resampling))
    };
    let noise_floor = against_a(&sides.real[1].response_ns);
    Validation {
        requests: trace.count() as u64,
        simulated: against_a(sides.simulated),
        operations: Op::ALL.into_iter().filter_map(|op| operation(sides, op, seed)).collect(),
        aim: (1.5 * noise_floor.pooled.error_ratio).max(0.05),
        noise_floor,
        certificates: sides.real.iter().map(|run| run.certificate.clone()).collect(),
    }
}

/// Class of every request: its operation and its size rounded up to a power of two.
fn classes(trace: &Trace) -> (Vec<ClassKey>, Vec<u16>) {
    let mut keys: Vec<ClassKey> = Vec::new();
    let class = trace.op.iter().zip(&trace.len).map(|(op, len)| {
        let size_bytes = if *op == Op::Flush { 0 } else { len.next_power_of_two() };
        let known = keys.iter().position(|key| key.op == op.name() && key.size_bytes == size_bytes);
        known.unwrap_or_else(|| {
            keys.push(ClassKey { op: op.name().to_owned(), size_bytes });
            keys.len() - 1
        }) as u16
    });
    let class = class.collect();
    (keys, class)
}

fn operation(sides: &Sides<'_>, op: Op, seed: u64) -> Option<OperationError> {
    let members: Vec<usize> =
        (0..sides.trace.count()).filter(|index| sides.trace.op[*index] == op).collect();
    if members.is_empty() {
        return None;
    }
    let pick = |times: &[u64]| -> Vec<u64> { members.iter().map(|index| times[*index]).collect() };
    let due: Vec<u64> = pick(&sides.trace.due);
    let block = Block::Time { due_ns: &due, block_ns: 1_000_000_000 };
    let resampling = Resampling { resamples: 200, seed, block };
    let real = sides.real.map(|run| pick(&run.response_ns));
    let simulated = pick(sides.simulated);
    let mut curves = vec![
        curve("real, run A", &real[0]),
        curve("real, run B", &real[1]),
        curve("simulated", &simulated),
    ];
    if let Some(times) = sides.without_cache {
        curves.push(curve("simulated without cache", &pick(times)));
    }
    Some(OperationError {
        op,
        simulated: compare_with_interval(&simulated, &real[0], &resampling),
        noise_floor: compare_with_interval(&real[1], &real[0], &resampling),
        curves,
    })
}

/// Shares at which a curve is kept: dense in the middle, denser in the tail, where people look.
fn shares() -> impl Iterator<Item = f64> {
    let body = (0..=196).map(|k| f64::from(k) * 0.005);
    let tail = [0.985, 0.99, 0.9925, 0.995, 0.9975, 0.999, 0.9995, 0.9999, 1.0];
    body.chain(tail)
}

/// The distribution of `times` as a curve.
pub fn curve(name: &str, times: &[u64]) -> Curve {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let points = if sorted.is_empty() {
        Vec::new()
    } else {
        shares().map(|share| (stats::quantile_sorted(&sorted, share), share)).collect()
    };
    Curve { name: name.to_owned(), points }
}
