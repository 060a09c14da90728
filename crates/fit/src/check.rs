//! Every closed cell again, in virtual time, on the fitted profile.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use events::Warning;
use model::Device;
use profile::Profile;
use serde::{Deserialize, Serialize};
use stats::rng::Rng;
use trace::{Op, Request};
use units::{Bytes, Nanos};

use crate::Notes;
use crate::measurement::{
    Arrival, Cell, CellResult, Distribution, Durability, Measurements, Order,
};
use crate::select::quantile_ns;

/// A cell measured and simulated, for one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellCheck {
    /// Index of the cell in the measurements.
    pub cell_index: usize,
    /// The operation.
    pub op: Op,
    /// The cell.
    pub cell: Cell,
    /// Measured requests per second of the cell.
    pub measured_iops: f64,
    /// Simulated requests per second.
    pub simulated_iops: f64,
    /// Measured mean service time, us.
    pub measured_mean_us: f64,
    /// Simulated mean service time, us.
    pub simulated_mean_us: f64,
    /// Area between the two distributions over the measured mean: the error ratio E.
    pub error_ratio: f64,
}

/// Requests simulated per cell.
const REQUESTS: usize = 4000;

/// Checks all cells but those that are left out by their index.
pub(super) fn run(
    profile: &Profile,
    measurements: &Measurements,
    is_left_out: &dyn Fn(usize) -> bool,
    seed: u64,
) -> Vec<CellCheck> {
    let mut checks = Vec::new();
    for (cell_index, result) in measurements.cells.iter().enumerate() {
        let plain = result.cell.durability != Durability::Dsync;
        if result.cell.arrival != Arrival::Closed || !plain || is_left_out(cell_index) {
            continue;
        }
        let range_bytes = measurements.target.range_bytes;
        let mut device = model::device(profile, seed.wrapping_add(cell_index as u64));
        let (times, iops) = simulate(device.as_mut(), (&result.cell, range_bytes), REQUESTS, seed);
        checks.extend(compare(cell_index, result, &times, iops));
    }
    checks
}

fn compare(
    cell_index: usize,
    result: &CellResult,
    times: &[Vec<u64>; 4],
    simulated_iops: f64,
) -> Vec<CellCheck> {
    let mut checks = Vec::new();
    for class in result.classes.iter().filter(|class| class.service.count > 0) {
        let simulated = &times[class.op as usize];
        if simulated.is_empty() {
            continue;
        }
        checks.push(CellCheck {
            cell_index,
            op: class.op,
            cell: result.cell,
            measured_iops: result.requests as f64 / result.elapsed_s.max(1e-9),
            simulated_iops,
            measured_mean_us: class.service.mean_ns / 1e3,
            simulated_mean_us: simulated.iter().sum::<u64>() as f64 / simulated.len() as f64 / 1e3,
            error_ratio: error_ratio(simulated, &class.service),
        });
    }
    checks
}

/// Area between the distributions, taken over equal steps of probability, over the measured mean.
fn error_ratio(simulated: &[u64], measured: &Distribution) -> f64 {
    let mut sorted = simulated.to_vec();
    sorted.sort_unstable();
    let steps = sorted.len();
    let area: f64 = sorted
        .iter()
        .enumerate()
        .map(|(index, value)| {
            let p = (index as f64 + 0.5) / steps as f64;
            (*value as f64 - quantile_ns(measured, p)).abs()
        })
        .sum();
    area / steps as f64 / measured.mean_ns
}

/// Service times by operation, in order of issue, and requests per second of a cell over a range of
/// bytes on `device`.
pub(super) fn simulate(
    device: &mut dyn Device,
    (cell, range_bytes): (&Cell, u64),
    requests: usize,
    seed: u64,
) -> ([Vec<u64>; 4], f64) {
    let size = u64::from(cell.size_bytes.max(1));
    let blocks = (range_bytes / size).max(1);
    let mut rng = Rng::new(seed);
    let mut next_block = 0;
    let mut times: [Vec<u64>; 4] = Default::default();
    let mut ready: BinaryHeap<Reverse<(u64, u32, bool)>> =
        (0..cell.depth.max(1)).map(|user| Reverse((0, user, false))).collect();
    let (mut issued, mut last) = (0, 0);
    while let Some(Reverse((now, user, owes_flush))) = ready.pop() {
        if issued == requests && !owes_flush {
            continue;
        }
        let op = if owes_flush {
            Op::Flush
        } else if rng.unit() < cell.read_share {
            Op::Read
        } else {
            Op::Write
        };
        let block = match cell.order {
            Order::Random => rng.below(blocks),
            Order::Sequential => {
                next_block = (next_block + u64::from(!owes_flush)) % blocks;
                next_block
            }
        };
        let (offset, len) = if owes_flush { (0, 0) } else { (block * size, cell.size_bytes) };
        let request = Request { due: Nanos(now), offset: Bytes(offset), len, op, stream: 0 };
        let completion = device.submit(Nanos(now), &request).0;
        times[op as usize].push(completion - now);
        issued += usize::from(!owes_flush);
        last = last.max(completion);
        let flush_next = op == Op::Write && cell.durability == Durability::Flush;
        ready.push(Reverse((completion, user, flush_next)));
    }
    (times, requests as f64 * 1e9 / last.max(1) as f64)
}

/// Names the cells that the profile does not reproduce.
pub(super) fn warn(checks: &[CellCheck], notes: &mut Notes) {
    for check in checks.iter().filter(|check| check.error_ratio > 0.25) {
        let warning = Warning::new(
            "fit",
            "fit_cell_off",
            format!(
                "cell {} ({} {} depth {}): simulated mean {:.1} us against {:.1} us measured, \
                 E {:.2}",
                check.cell_index,
                check.op.name(),
                Bytes(u64::from(check.cell.size_bytes)),
                check.cell.depth,
                check.simulated_mean_us,
                check.measured_mean_us,
                check.error_ratio
            ),
        );
        notes.warnings.push(warning);
    }
}
