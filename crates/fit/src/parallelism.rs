//! How throughput grows with outstanding requests.
//!
//! By Little's law the number of requests that a device works on at once is throughput times the
//! time of one alone. The largest such number over all cells becomes the parallelism; what each
//! operation and pattern reaches at its best depth becomes its ceiling, in requests per second at
//! small sizes and in bytes per second at large ones.

use std::collections::BTreeMap;

use profile::Parameter;
use profile::linear::{LineSpec, Pattern};
use trace::Op;

use crate::Notes;
use crate::lines::{Lines, name_of, round};
use crate::select::{Class, Classes};

/// Parallelism of the device and ceilings of each operation and pattern.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub(super) parallelism: Parameter,
    ceilings: BTreeMap<(Op, Pattern), (Option<Parameter>, Option<Parameter>)>,
}

impl Limits {
    /// `line` with the ceilings of its operation and pattern.
    pub(super) fn applied_to(&self, op: Op, pattern: Pattern, mut line: LineSpec) -> LineSpec {
        if let Some((iops, mb_per_s)) = self.ceilings.get(&(op, pattern)) {
            line.ceiling_iops.clone_from(iops);
            line.ceiling_mb_per_s.clone_from(mb_per_s);
        }
        line
    }
}

pub(super) fn fit(classes: &Classes, lines: &Lines, notes: &mut Notes) -> Limits {
    let mut ceilings = BTreeMap::new();
    let mut most = (1.0f64, String::new());
    let mut is_deep = false;
    for op in [Op::Read, Op::Write] {
        for pattern in [Pattern::Sequential, Pattern::Random] {
            let deep = Deep::of(classes, lines, op, pattern);
            if let Some(deep) = &deep {
                is_deep = true;
                if deep.at_once > most.0 {
                    most = (deep.at_once, deep.class.key.to_string());
                }
            }
            ceilings.insert((op, pattern), ceilings_of(classes, lines, (op, pattern), deep));
        }
    }
    let parallelism = if !is_deep {
        notes.add(
            "fit_no_depth",
            "no cell has more than one outstanding request; the device is taken to work on one \
             at a time"
                .to_owned(),
            "probe with more than one depth",
        );
        Parameter::assumed(1.0, "no cell has more than one outstanding request")
    } else if most.1.is_empty() {
        Parameter::new(1.0, "probe: no depth gives more throughput than depth 1")
    } else {
        let source = format!(
            "probe: throughput times the time of one request is {:.2} at {}",
            most.0, most.1
        );
        // A tenth of a request at once is noise, not another unit.
        Parameter::new((most.0 - 0.1).ceil().max(1.0), source)
    };
    Limits { parallelism, ceilings }
}

/// The cell at depth that keeps most requests of one operation and pattern going at once.
#[derive(Clone, Copy)]
struct Deep<'a> {
    class: &'a Class<'a>,
    at_once: f64,
}

impl<'a> Deep<'a> {
    fn of(classes: &'a Classes<'a>, lines: &Lines, op: Op, pattern: Pattern) -> Option<Self> {
        let at_once = |class: &Class| {
            let at_once = class.iops * lines.get(op, pattern).at(class.key.size_bytes) / 1e6;
            at_once.min(f64::from(class.key.depth))
        };
        classes
            .pure(op, pattern)
            .filter(|class| class.key.depth > 1)
            .map(|class| Self { class, at_once: at_once(class) })
            .max_by(|a, b| a.at_once.total_cmp(&b.at_once))
    }
}

/// The best rates over all depths and sizes of one operation and pattern. Where no cell at depth
/// has the pattern, what the other pattern of the operation keeps going at once stands in; where
/// none has large requests, the best bandwidth seen is assumed to be the ceiling.
fn ceilings_of(
    classes: &Classes,
    lines: &Lines,
    (op, pattern): (Op, Pattern),
    deep: Option<Deep>,
) -> (Option<Parameter>, Option<Parameter>) {
    let best = |rate: fn(&Class) -> f64| {
        classes.pure(op, pattern).max_by(|a, b| rate(a).total_cmp(&rate(b)))
    };
    let what = format!("{} {}", name_of(pattern), op.name());
    let measured = |class: &Class, value: f64| {
        Parameter::new(round(value), format!("probe: the best of {what}, at {}", class.key))
    };
    let iops = match (deep, best(rate)) {
        (Some(_), Some(class)) => Some(measured(class, rate(class))),
        (None, Some(class)) => Deep::of(classes, lines, op, other(pattern)).map(|stand_in| {
            let value = rate(class) * stand_in.at_once.max(1.0);
            let why = format!("{what} was not measured at depth; as {}", stand_in.class.key);
            Parameter::assumed(round(value), why)
        }),
        (_, None) => None,
    };
    let is_large = |class: &Class| class.key.depth > 1 && class.key.size_bytes >= LARGE_BYTES;
    let is_known = classes.pure(op, pattern).any(is_large);
    let mb_per_s = best(bandwidth).map(|class| {
        let parameter = measured(class, bandwidth(class));
        Parameter { assumed: !is_known, ..parameter }
    });
    let positive = |parameter: &Parameter| parameter.value > 0.0;
    (iops.filter(positive), mb_per_s.filter(positive))
}

/// Requests per second that the device takes. At depth 1 the client's own time between two requests
/// is no limit of the device.
fn rate(class: &Class) -> f64 {
    if class.key.depth == 1 { 1e9 / class.service.mean_ns } else { class.iops }
}

/// MB per second likewise.
fn bandwidth(class: &Class) -> f64 {
    rate(class) * f64::from(class.key.size_bytes) / 1e6
}

/// Requests from this size on show a bandwidth rather than a request rate.
const LARGE_BYTES: u32 = 64 << 10;

fn other(pattern: Pattern) -> Pattern {
    match pattern {
        Pattern::Sequential => Pattern::Random,
        Pattern::Random => Pattern::Sequential,
    }
}
