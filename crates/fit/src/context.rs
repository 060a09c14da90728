//! Distributions from a load that commits, in place of those from one pattern at a time.
//!
//! The lines stay those of the cells. A table of the commit load replaces the cells' tables of its
//! operation and pattern at its size, and all of them that depend on what came before (a flush, an
//! idle gap): the load has both in the proportion in which a database has them. The mixed-load
//! penalty and waiting for the other actor are in the measured times *and* in the model, so the
//! load is then simulated on the profile and every table is scaled until the means agree.

use profile::linear::{LinearSpec, Pattern, ResidualSpec};
use profile::{DeviceSpec, Profile};
use trace::Op;
use units::Bytes;

use crate::commit_load;
use crate::distribution::quantiles;
use crate::measurement::{CommitClass, CommitLoad};
use crate::select::pattern_of;

/// Passes of simulate-and-scale; each removes most of what is left.
const PASSES: u32 = 3;
/// Transactions simulated per pass.
const TRANSACTIONS: u32 = 2_000;
/// A scale beyond this says that the load and the profile disagree about more than a penalty.
const LARGEST_SCALE: f64 = 4.0;

/// Puts the load's distributions into a fitted linear profile.
pub(super) fn apply(profile: &mut Profile, load: &CommitLoad, seed: u64) {
    // What a cache answers tells nothing of the writes behind it, nor do its flushes.
    let is_cached = profile.write_cache.is_some();
    let DeviceSpec::Linear(linear) = &mut profile.device else { return };
    let classes = load.classes.iter().filter(|class| class.op == Op::Read || !is_cached);
    let tables: Vec<ResidualSpec> = classes.filter_map(|class| table(linear, class)).collect();
    if tables.is_empty() {
        return;
    }
    linear.residual.retain(|old| !tables.iter().any(|new| replaces(new, old)));
    linear.residual.extend(tables.iter().cloned());
    for _ in 0..PASSES {
        scale(profile, load, seed);
    }
}

fn is_load(table: &ResidualSpec) -> bool {
    table.source.starts_with(SOURCE)
}

const SOURCE: &str = "probe: commit load";

/// Whether a cell's table makes way. Flushes have no pattern, and few sizes: all of theirs do.
fn replaces(new: &ResidualSpec, old: &ResidualSpec) -> bool {
    let same = new.op == old.op && (new.op == Op::Flush || new.pattern == old.pattern);
    let conditional = old.after.is_some() || old.idle_us.is_some();
    same && (conditional || new.op == Op::Flush || new.size == old.size)
}

/// The line's time at a size, ns.
fn line_ns(linear: &LinearSpec, op: Op, pattern: Pattern, size_bytes: u32) -> f64 {
    let kib = f64::from(size_bytes) / 1024.0;
    let line = match (op, pattern) {
        (Op::Flush, _) => {
            let slope = linear.flush.us_per_dirty_kib.as_ref().map_or(0.0, |slope| slope.value);
            return (linear.flush.base_us.value + slope * kib) * 1e3;
        }
        (Op::Read, Pattern::Sequential) => &linear.read.sequential,
        (Op::Read, Pattern::Random) => &linear.read.random,
        (_, Pattern::Sequential) => &linear.write.sequential,
        (_, Pattern::Random) => &linear.write.random,
    };
    (line.base_us.value + line.us_per_kib.value * kib) * 1e3
}

fn table(linear: &LinearSpec, class: &CommitClass) -> Option<ResidualSpec> {
    let CommitClass { op, order, size_bytes, .. } = *class;
    let pattern = pattern_of(order);
    Some(ResidualSpec {
        op,
        pattern: (op != Op::Flush).then_some(pattern),
        size: Some(Bytes(u64::from(size_bytes))),
        after: None,
        idle_us: None,
        samples: Some(class.response.count),
        source: format!("{SOURCE}, {} {}", op.name(), Bytes(u64::from(size_bytes))),
        assumed: false,
        quantiles: quantiles(&class.response, line_ns(linear, op, pattern, size_bytes))?,
    })
}

/// Simulates the load on the profile and scales each of its tables by measured over simulated mean.
fn scale(profile: &mut Profile, load: &CommitLoad, seed: u64) {
    let trace = commit_load::trace(load.range_bytes, TRANSACTIONS, load.seed);
    let mut device = model::device(profile, seed);
    let Ok(times) = sim::closed_loop_times(device.as_mut(), &trace) else { return };
    let classes = commit_load::classes(&trace);
    let DeviceSpec::Linear(linear) = &mut profile.device else { return };
    for class in &load.classes {
        let key = (class.op, class.order, class.size_bytes);
        let members = classes.iter().zip(&times).filter(|(found, _)| **found == key);
        let (count, sum) = members.fold((0u64, 0u64), |(n, s), (_, time)| (n + 1, s + time));
        if count == 0 || sum == 0 {
            continue;
        }
        let factor = class.response.mean_ns / (sum as f64 / count as f64);
        let factor = factor.clamp(1.0 / LARGEST_SCALE, LARGEST_SCALE);
        let pattern = (class.op != Op::Flush).then_some(pattern_of(class.order));
        let size = Some(Bytes(u64::from(class.size_bytes)));
        for table in linear.residual.iter_mut().filter(|table| is_load(table)) {
            if table.op == class.op && table.pattern == pattern && table.size == size {
                table.quantiles = table.quantiles.scaled(factor);
            }
        }
    }
}
