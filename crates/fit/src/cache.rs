//! A write-back cache, where the rate over time shows one.
//!
//! A cache that fills looks like two plateaus: a fast one while it absorbs, a slow one once every
//! write waits for a destage. The split that explains the logarithms of the window rates best is
//! taken; it counts as a cache where the first plateau is at least twice as fast, both last three
//! windows or more, and the split explains at least four fifths of the variance. Two speeds in
//! random order (a second mode in the distribution) are no cache: the residual tables have them.

use profile::linear::Pattern;
use profile::write_cache::WriteCacheSpec;
use profile::{DeviceSpec, Parameter, Profile};
use trace::Op;
use units::Bytes;

use crate::Notes;
use crate::lines::round;
use crate::measurement::Window;
use crate::select::{Class, Classes};

/// A burst that ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Burst {
    capacity_bytes: f64,
    fast_us: f64,
    slow_us: f64,
    size_bytes: u32,
    source: String,
}

const FEWEST_WINDOWS: usize = 3;

pub(super) fn find(classes: &Classes, notes: &mut Notes) -> Option<Burst> {
    let burst = classes.single(Op::Write, Pattern::Random).find_map(of_class)?;
    notes.add(
        "fit_write_cache",
        format!(
            "writes are fast for the first {} and slow afterwards: a write cache is part of the \
             profile",
            Bytes(burst.capacity_bytes as u64)
        ),
        "give the device time to settle before probing if you want its steady state alone",
    );
    Some(burst)
}

fn of_class(class: &Class) -> Option<Burst> {
    let (index, cell) = class.cells.first()?;
    let (split, fast, slow) = plateaus(&cell.windows)?;
    let window_s = cell.elapsed_s / cell.windows.len() as f64;
    // While the burst lasts the device destages at its slow rate, so the cache holds the rest.
    let absorbed = (fast - slow) * window_s * split as f64;
    Some(Burst {
        capacity_bytes: absorbed * f64::from(class.key.size_bytes),
        fast_us: 1e6 / fast,
        slow_us: 1e6 / slow,
        size_bytes: class.key.size_bytes,
        source: format!(
            "probe: cell {index} ({}), {fast:.0}/s for {:.2} s, then {slow:.0}/s",
            class.key,
            window_s * split as f64
        ),
    })
}

/// Windows of the fast plateau, its rate and that of the slow one.
fn plateaus(windows: &[Window]) -> Option<(usize, f64, f64)> {
    let logs: Vec<f64> = windows.iter().map(|window| window.iops.max(1e-3).ln()).collect();
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
    let (fast, slow) = (mean(&logs[..split]).exp(), mean(&logs[split..]).exp());
    (fast > 2.0 * slow && within(split) < 0.2 * total).then_some((split, fast, slow))
}

/// Puts the cache into `profile`: its random writes take the slow time behind it, and the
/// distributions of writes, which mixed both speeds, go.
pub(super) fn apply(profile: &mut Profile, burst: &Burst) {
    if let DeviceSpec::Linear(linear) = &mut profile.device {
        let slope = linear.write.random.us_per_kib.value;
        let transfer = slope * f64::from(burst.size_bytes) / 1024.0;
        linear.write.random.base_us =
            Parameter::new(round((burst.slow_us - transfer).max(0.0)), burst.source.clone());
        linear.residual.retain(|table| table.op != Op::Write);
    }
    let assumed = |value, why: &str| Parameter::assumed(value, why);
    profile.write_cache = Some(WriteCacheSpec {
        capacity_mb: Parameter::new(
            round((burst.capacity_bytes / 1e6).max(0.004096)),
            burst.source.clone(),
        ),
        line: Bytes(4096),
        hit_base_us: Parameter::new(round(burst.fast_us), burst.source.clone()),
        hit_us_per_kib: assumed(0.0, "one size was measured"),
        ports: assumed(1.0, "measured at depth 1"),
        high_watermark: assumed(0.0, "the device destages while it absorbs"),
        low_watermark: assumed(0.0, "the device destages while it absorbs"),
        coalesce_kib: assumed(4.0, "random writes have no neighbours to coalesce with"),
        idle_destage_after_ms: None,
        power_loss_protected: false,
        durable_streams: Vec::new(),
        destage_depth: None,
    });
}
