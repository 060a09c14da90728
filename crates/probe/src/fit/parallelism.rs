//! How throughput grows with outstanding requests.
//!
//! By Little's law the number of requests that a device works on at once is throughput times the
//! time of one alone. The largest such number over all cells becomes the parallelism; what each
//! operation and pattern reaches at its best depth becomes its ceiling, in requests per second at
//! small sizes and in bytes per second at large ones.

use std::collections::BTreeMap;

use model::linear::Pattern;
use model::profile::{LineSpec, Parameter};
use trace::Op;

use super::Notes;
use super::lines::{Lines, name_of, round};
use super::select::{Class, Classes};

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
    for op in [Op::Read, Op::Write] {
        for pattern in [Pattern::Sequential, Pattern::Random] {
            let deep: Vec<&Class> =
                classes.pure(op, pattern).filter(|class| class.key.depth > 1).collect();
            if deep.is_empty() {
                continue;
            }
            for class in &deep {
                let at_once = class.iops * lines.get(op, pattern).at(class.key.size_bytes) / 1e6;
                let at_once = at_once.min(f64::from(class.key.depth));
                if at_once > most.0 {
                    most = (at_once, class.key.to_string());
                }
            }
            ceilings.insert((op, pattern), ceilings_of(classes, op, pattern));
        }
    }
    let parallelism = if ceilings.is_empty() {
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

/// The best rates over all depths and sizes of one operation and pattern.
fn ceilings_of(
    classes: &Classes,
    op: Op,
    pattern: Pattern,
) -> (Option<Parameter>, Option<Parameter>) {
    let best = |rate: fn(&Class) -> f64| {
        classes.pure(op, pattern).max_by(|a, b| rate(a).total_cmp(&rate(b)))
    };
    let iops = best(|class| class.iops);
    let bytes_per_s = best(|class| class.iops * f64::from(class.key.size_bytes));
    let what = format!("{} {}", name_of(pattern), op.name());
    let parameter = |class: &Class, value: f64| {
        (value > 0.0).then(|| {
            Parameter::new(round(value), format!("probe: the best of {what}, at {}", class.key))
        })
    };
    (
        iops.and_then(|class| parameter(class, class.iops)),
        bytes_per_s
            .and_then(|class| parameter(class, class.iops * f64::from(class.key.size_bytes) / 1e6)),
    )
}
