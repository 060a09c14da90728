//! A write-back cache, where the rate over time shows one.
//!
//! Between the cells of a probe a cache has no time to empty, so that they show the device behind
//! it; the writes after a pause show the cache. One that fills looks like two plateaus: a fast one
//! while it absorbs, a slow one once every write waits for a destage. The split that explains the
//! logarithms of the window rates best is taken; it counts as a cache where the first plateau is at
//! least twice as fast, both last three windows or more, and the split explains at least four
//! fifths of the variance. Two speeds in random order (a second mode in the distribution) are no
//! cache: the residual tables have them.

use profile::linear::Pattern;
use profile::write_cache::WriteCacheSpec;
use profile::{DeviceSpec, Parameter, Profile};
use trace::Op;
use units::Bytes;

use crate::Notes;
use crate::lines::round;
use crate::measurement::{Burst, CellResult, Window};
use crate::select::Classes;

/// A burst that ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    capacity_bytes: f64,
    fast_us: f64,
    slow_us: f64,
    size_bytes: u32,
    source: String,
}

impl Found {
    /// Writes per second once it was over.
    pub(super) fn slow_per_s(&self) -> f64 {
        1e6 / self.slow_us
    }
}

const FEWEST_WINDOWS: usize = 3;
/// What a cache took over what it wrote back in the pause, up to which it may not have been empty:
/// cells that read left it time before that.
const NOT_EMPTY: f64 = 2.0;

/// Whether a burst ended where the cache had hardly more room than the pause before had made: after
/// a longer one it may take more.
pub fn wants_a_longer_pause(burst: &Burst) -> bool {
    of_cell(&burst.result, "").is_some_and(|found| {
        let written_back = found.slow_per_s() * burst.pause_s * f64::from(found.size_bytes);
        found.capacity_bytes < NOT_EMPTY * written_back
    })
}

pub(super) fn find(
    classes: &Classes,
    after_pause: Option<&Burst>,
    notes: &mut Notes,
) -> Option<Found> {
    let after_pause = after_pause.and_then(|burst| {
        let what = format!("writes after a pause of {:.1} s", burst.pause_s);
        of_cell(&burst.result, &what)
    });
    let found = after_pause.or_else(|| {
        classes.single(Op::Write, Pattern::Random).find_map(|class| {
            let (index, cell) = class.cells.first()?;
            of_cell(cell, &format!("cell {index} ({})", class.key))
        })
    })?;
    notes.add(
        "fit_write_cache",
        format!(
            "writes are fast for the first {} and slow afterwards: a write cache is part of the \
             profile",
            Bytes(found.capacity_bytes as u64)
        ),
        "give the device time to settle before probing if you want its steady state alone",
    );
    Some(found)
}

/// A cell of writes, one outstanding.
fn of_cell(cell: &CellResult, what: &str) -> Option<Found> {
    let (split, fast, slow) = plateaus(&cell.windows)?;
    let window_s = cell.elapsed_s / cell.windows.len() as f64;
    // While the burst lasts the device destages at its slow rate, so the cache holds the rest. In
    // the window in which it ends part of it is left.
    let end = (split + 1).min(cell.windows.len());
    let absorbed = cell.windows[..end].iter().map(|window| (window.iops - slow) * window_s);
    let size_bytes = cell.cell.size_bytes;
    Some(Found {
        capacity_bytes: absorbed.sum::<f64>() * f64::from(size_bytes),
        fast_us: 1e6 / fast,
        slow_us: 1e6 / slow,
        size_bytes,
        source: format!(
            "probe: {what}, {fast:.0}/s for {:.2} s, then {slow:.0}/s",
            window_s * split as f64
        ),
    })
}

/// Windows of the fast plateau, its rate and that of the slow one.
fn plateaus(windows: &[Window]) -> Option<(usize, f64, f64)> {
    let logs = logs(windows);
    let count = logs.len();
    if count < 2 * FEWEST_WINDOWS {
        return None;
    }
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let scatter = |part: &[f64]| {
        let middle = mean(part);
        part.iter().map(|log| (log - middle).powi(2)).sum::<f64>()
    };
    let total = scatter(&logs);
    let within = |split: usize| scatter(&logs[..split]) + scatter(&logs[split..]);
    let split = (FEWEST_WINDOWS..=count - FEWEST_WINDOWS)
        .min_by(|&a, &b| within(a).total_cmp(&within(b)))?;
    // The window in which it ends is between the two: no part of a median.
    let mut first = logs[..split].to_vec();
    first.sort_by(f64::total_cmp);
    let fast = stats::quantile::quantile_sorted_f64(&first, 0.5).exp();
    let slow = mean(&logs[split..]).exp();
    (fast > 2.0 * slow && within(split) < 0.2 * total).then_some((split, fast, slow))
}

/// Logarithms of the rates. A window in which nothing ended tells only that less was done than in
/// any other: it counts as half the least of these, since one stall is no third speed.
fn logs(windows: &[Window]) -> Vec<f64> {
    let rates = windows.iter().map(|window| window.iops);
    let least = rates.clone().filter(|rate| *rate > 0.0).fold(f64::INFINITY, f64::min);
    rates.map(|rate| if rate > 0.0 { rate.ln() } else { (least / 2.0).ln() }).collect()
}

/// Puts the cache into `profile`: its writes take the slow time behind it, and the distributions of
/// writes, which mixed both speeds, go.
pub(super) fn apply(profile: &mut Profile, found: &Found) {
    let source = || found.source.clone();
    let mut is_protected = false;
    if let DeviceSpec::Linear(linear) = &mut profile.device {
        let size_kib = f64::from(found.size_bytes) / 1024.0;
        let transfer_us = linear.write.random.us_per_kib.value * size_kib;
        let behind_us = round((found.slow_us - transfer_us).max(0.0));
        linear.write.random.base_us = Parameter::new(behind_us, source());
        // However many are outstanding, no more leaves the cache.
        let ceiling = Parameter::new(round(1e6 / found.slow_us), source());
        linear.write.random.ceiling_iops = Some(ceiling);
        linear.residual.retain(|table| table.op != Op::Write);
        // In a mix the cache took the writes, and reads waited for destages: both are simulated.
        linear.mixed = None;
        let destage_us_per_kib = found.slow_us / size_kib;
        if let Some(slope) = &mut linear.flush.us_per_dirty_kib {
            // Units may destage side by side; 64 KiB more take one destage longer at least.
            is_protected = !slope.assumed && slope.value * 64.0 < 0.5 * found.slow_us;
            if !is_protected {
                // The model waits for the destages by itself.
                slope.value = round((slope.value - destage_us_per_kib).max(0.0));
            }
        }
        if !is_protected {
            linear.residual.retain(|table| table.op != Op::Flush);
        }
    }
    let assumed = |value, why: &str| Parameter::assumed(value, why);
    profile.write_cache = Some(WriteCacheSpec {
        capacity_mb: Parameter::new(round((found.capacity_bytes / 1e6).max(0.004096)), source()),
        line: Bytes(4096),
        hit_base_us: Parameter::new(round(found.fast_us), source()),
        hit_us_per_kib: assumed(0.0, "one size was measured"),
        ports: assumed(1.0, "measured at depth 1"),
        high_watermark: assumed(0.0, "the device destages while it absorbs"),
        low_watermark: assumed(0.0, "the device destages while it absorbs"),
        coalesce_kib: assumed(4.0, "random writes have no neighbours to coalesce with"),
        idle_destage_after_ms: None,
        power_loss_protected: is_protected,
        durable_streams: Vec::new(),
        destage_depth: None,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(rates: &[(usize, f64)]) -> Vec<Window> {
        let rates = rates.iter().flat_map(|(count, iops)| std::iter::repeat_n(*iops, *count));
        let window = |(at, iops)| Window { at_s: at as f64 / 100.0, iops, p99_ns: 0 };
        rates.enumerate().map(window).collect()
    }

    #[test]
    fn a_window_in_which_nothing_ended_hides_no_cache() {
        let (split, fast, slow) =
            plateaus(&windows(&[(1, 0.0), (14, 33_800.0), (250, 2_500.0)])).unwrap();
        assert_eq!(split, 15);
        assert!((fast - 33_800.0).abs() < 1.0 && (slow - 2_500.0).abs() < 1.0, "{fast} {slow}");
        assert_eq!(plateaus(&windows(&[(10, 0.0)])), None);
        assert_eq!(plateaus(&windows(&[(1, 0.0), (200, 2_500.0)])), None);
    }
}
