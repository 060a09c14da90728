//! The linear stage: mean service time against request size at depth 1.
//!
//! Points are weighted by the inverse square of their mean, so that the line is as right in
//! per cent at 4 KiB as at 1 MiB: a plain fit would follow the largest sizes, which an OLTP load
//! hardly has. What the line misses at a size is in that size's distribution.

use std::collections::BTreeMap;

use profile::Parameter;
use profile::linear::{LineSpec, Pattern};
use stats::regression;
use trace::Op;

use crate::select::{self, Class, Classes};
use crate::{FitError, FittedLine, FittedPoint, Notes};

/// One fitted line, us over KiB.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fitted {
    pub(super) intercept_us: f64,
    pub(super) intercept_error_us: f64,
    pub(super) slope: f64,
    pub(super) slope_error: f64,
    pub(super) r_squared: f64,
    pub(super) mean_relative_error: f64,
    pub(super) source: String,
    pub(super) assumed: bool,
}

impl Fitted {
    /// Service time of a request of `size_bytes`, us.
    pub(super) fn at(&self, size_bytes: u32) -> f64 {
        self.intercept_us + self.slope * f64::from(size_bytes) / 1024.0
    }
}

/// The lines of all four combinations.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    lines: BTreeMap<(Op, Pattern), Fitted>,
}

const COMBINATIONS: [(Op, Pattern); 4] = [
    (Op::Read, Pattern::Random),
    (Op::Read, Pattern::Sequential),
    (Op::Write, Pattern::Random),
    (Op::Write, Pattern::Sequential),
];

/// The lines; with a cache those of writes are of the device behind it.
pub(super) fn fit(
    classes: &Classes,
    behind_cache: bool,
    notes: &mut Notes,
) -> Result<Lines, FitError> {
    let mut lines = BTreeMap::new();
    for (op, pattern) in COMBINATIONS {
        let own: Vec<&Class> = classes.single(op, pattern).collect();
        let time = if behind_cache && op == Op::Write { behind_us } else { mean_us };
        if let Some(line) = fit_one(&own, time, notes) {
            lines.insert((op, pattern), line);
        }
    }
    if lines.is_empty() {
        return Err(FitError::NothingAtDepthOne { cells: classes.cells });
    }
    for (op, pattern) in COMBINATIONS {
        if !lines.contains_key(&(op, pattern)) {
            let borrowed = borrow(&lines, op, pattern, notes);
            lines.insert((op, pattern), borrowed);
        }
    }
    Ok(Lines { lines })
}

/// Mean time of a request, us.
fn mean_us(class: &Class) -> f64 {
    class.service.mean_ns / 1e3
}

/// Time of a request once a cache is full, us: at the end of the cell that ended slowest.
fn behind_us(class: &Class) -> f64 {
    let ends = class.cells.iter().map(|(_, cell)| select::last_rate(cell));
    ends.filter(|rate| *rate > 0.0).map(|rate| 1e6 / rate).fold(0.0, f64::max).max(mean_us(class))
}

/// The line through the classes of one operation and pattern; `None` where there are none.
fn fit_one(classes: &[&Class], time: fn(&Class) -> f64, notes: &mut Notes) -> Option<Fitted> {
    let first = classes.first()?;
    let kib: Vec<f64> = classes.iter().map(|c| f64::from(c.key.size_bytes) / 1024.0).collect();
    let us: Vec<f64> = classes.iter().map(|class| time(class)).collect();
    let weights: Vec<f64> = us.iter().map(|mean| 1.0 / (mean * mean)).collect();
    let sizes: Vec<u32> = classes.iter().map(|class| class.key.size_bytes).collect();
    let samples: u64 = classes.iter().map(|class| class.service.count).sum();
    let what = format!("{} {}", name_of(first.key.pattern), first.key.op.name());
    let source = format!(
        "probe: {what} {} depth 1, {} sizes, {samples} samples",
        select::sizes(&sizes),
        sizes.len()
    );
    let Some(line) = regression::line(&kib, &us, Some(&weights)) else {
        notes.add(
            "fit_one_size",
            format!("{what} was measured at one size only; its time is taken as constant"),
            "probe at two request sizes at least",
        );
        return Some(flat(us[0], source, true));
    };
    let mut fitted = Fitted {
        intercept_us: line.intercept,
        intercept_error_us: line.intercept_error,
        slope: line.slope,
        slope_error: line.slope_error,
        r_squared: line.r_squared,
        mean_relative_error: line.mean_relative_error,
        source,
        assumed: false,
    };
    constrain(&mut fitted, &kib, &us, &what, notes);
    Some(fitted)
}

/// A line with a negative part belongs to no device: the part is set to zero and the other fitted
/// again.
fn constrain(fitted: &mut Fitted, kib: &[f64], us: &[f64], what: &str, notes: &mut Notes) {
    // With weights 1/y^2 the best multiple of any shape s is sum(s/y) / sum((s/y)^2).
    let best = |shape: &[f64]| {
        let ratios: Vec<f64> = shape.iter().zip(us).map(|(s, y)| s / y).collect();
        ratios.iter().sum::<f64>() / ratios.iter().map(|r| r * r).sum::<f64>()
    };
    let part = if fitted.slope < 0.0 {
        fitted.slope = 0.0;
        fitted.intercept_us = best(&vec![1.0; us.len()]);
        "slope"
    } else if fitted.intercept_us < 0.0 {
        fitted.intercept_us = 0.0;
        fitted.slope = best(kib);
        "intercept"
    } else {
        return;
    };
    let errors =
        kib.iter().zip(us).map(|(x, y)| (fitted.intercept_us + fitted.slope * x - y).abs() / y);
    fitted.mean_relative_error = errors.sum::<f64>() / us.len() as f64;
    notes.add(
        "fit_negative_line",
        format!("the line of {what} had a negative {part}, which is set to zero"),
        "look at the figure of response time against size; a disturbed cell may be the cause",
    );
}

fn flat(us: f64, source: String, assumed: bool) -> Fitted {
    Fitted {
        intercept_us: us,
        intercept_error_us: 0.0,
        slope: 0.0,
        slope_error: 0.0,
        r_squared: 1.0,
        mean_relative_error: 0.0,
        source,
        assumed,
    }
}

/// Stands in for a combination that was not measured: the other pattern, else the other operation.
fn borrow(
    lines: &BTreeMap<(Op, Pattern), Fitted>,
    op: Op,
    pattern: Pattern,
    notes: &mut Notes,
) -> Fitted {
    let other_pattern = match pattern {
        Pattern::Sequential => Pattern::Random,
        Pattern::Random => Pattern::Sequential,
    };
    let other_op = if op == Op::Read { Op::Write } else { Op::Read };
    let order = [(op, other_pattern), (other_op, pattern), (other_op, other_pattern)];
    let (from, line) = order
        .iter()
        .find_map(|key| lines.get(key).map(|line| (key, line)))
        .expect("at least one combination was measured");
    let what = format!("{} {}", name_of(pattern), op.name());
    let stand_in = format!("{} {}", name_of(from.1), from.0.name());
    notes.add(
        "fit_not_measured",
        format!("{what} was not measured at depth 1; {stand_in} is used in its place"),
        "probe with the full plan",
    );
    Fitted {
        source: format!("not measured; taken from {stand_in} ({})", line.source),
        assumed: true,
        ..line.clone()
    }
}

pub(super) fn name_of(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Sequential => "sequential",
        Pattern::Random => "random",
    }
}

impl Lines {
    /// The line of `op` in `pattern`.
    pub(super) fn get(&self, op: Op, pattern: Pattern) -> &Fitted {
        &self.lines[&(op, pattern)]
    }

    /// Its section of the profile, without ceilings.
    pub(super) fn spec(&self, op: Op, pattern: Pattern) -> LineSpec {
        spec(self.get(op, pattern))
    }
}

/// A line as a section of a profile.
pub(super) fn spec(line: &Fitted) -> LineSpec {
    let parameter = |value: f64, error: f64| Parameter {
        value: round(value),
        error: (error > 0.0).then(|| round(error)),
        source: line.source.clone(),
        assumed: line.assumed,
    };
    LineSpec {
        base_us: parameter(line.intercept_us, line.intercept_error_us),
        us_per_kib: parameter(line.slope, line.slope_error),
        r_squared: Some(round(line.r_squared)),
        ceiling_iops: None,
        ceiling_mb_per_s: None,
    }
}

/// Fits a line through any classes, as `durability` needs it.
pub(super) fn through(classes: &[&Class], notes: &mut Notes) -> Option<Fitted> {
    fit_one(classes, mean_us, notes)
}

/// Six significant digits: more than any measurement has, few enough to read.
pub(super) fn round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 5 - value.abs().log10().floor() as i32;
    let factor = 10f64.powi(digits.clamp(-300, 300));
    (value * factor).round() / factor
}

/// The lines and their points, for the figure of response time against size.
pub(super) fn for_figure(classes: &Classes, lines: &Lines) -> Vec<FittedLine> {
    let mut figure = Vec::new();
    for (op, pattern) in COMBINATIONS {
        let line = lines.get(op, pattern);
        let points: Vec<FittedPoint> = classes
            .single(op, pattern)
            .map(|class| FittedPoint {
                size_bytes: class.key.size_bytes,
                mean_us: class.service.mean_ns / 1e3,
                median_us: select::quantile_ns(&class.service, 0.5) / 1e3,
                p99_us: select::quantile_ns(&class.service, 0.99) / 1e3,
                fitted_us: line.at(class.key.size_bytes),
                samples: class.service.count,
            })
            .collect();
        if points.is_empty() {
            continue;
        }
        figure.push(FittedLine {
            op,
            pattern,
            points,
            intercept_us: line.intercept_us,
            intercept_error_us: line.intercept_error_us,
            slope_us_per_kib: line.slope,
            slope_error_us_per_kib: line.slope_error,
            r_squared: line.r_squared,
            mean_relative_error: line.mean_relative_error,
        });
    }
    figure
}
