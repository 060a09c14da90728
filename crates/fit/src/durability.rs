//! What it costs to make writes durable.
//!
//! A cell of writes each followed by a flush gives the flush times at that many dirty bytes; over
//! several sizes a regression splits them into a base and a part per byte. All have one dirty
//! request, so its cost is in the base.

use profile::Parameter;
use profile::linear::{FlushSpec, LineSpec, ResidualSpec};
use trace::Op;
use units::Bytes;

use crate::Notes;
use crate::distribution::quantiles;
use crate::lines;
use crate::measurement::Durability;
use crate::select::{Class, Classes};

/// Assumed time of a flush where none was measured: a command without data, us.
const ASSUMED_FLUSH_US: f64 = 100.0;

/// The flush section and the distributions of flushes.
pub(super) fn flush(classes: &Classes, notes: &mut Notes) -> (FlushSpec, Vec<ResidualSpec>) {
    // Sequential and random cells of one size are two classes; the flush is the same.
    let flushes: Vec<&Class> = classes
        .iter()
        .filter(|class| class.key.op == Op::Flush && class.key.depth == 1)
        .filter(|class| class.key.durability == Durability::Flush && class.key.rate_per_s == 0)
        .collect();
    let Some(line) = lines::through(&flushes, notes) else {
        notes.add(
            "fit_no_flush",
            "no write was followed by a flush; the cost of a flush is assumed".to_owned(),
            "probe with a plan that has write+flush cells, such as `wearmark probe TARGET`",
        );
        let spec = FlushSpec {
            base_us: Parameter::assumed(ASSUMED_FLUSH_US, "no flush was measured"),
            us_per_dirty_kib: None,
            us_per_dirty_request: None,
        };
        return (spec, Vec::new());
    };
    let section = lines::spec(&line);
    let spec = FlushSpec {
        base_us: Parameter { assumed: false, ..section.base_us },
        us_per_dirty_kib: Some(section.us_per_kib),
        us_per_dirty_request: None,
    };
    let tables = flushes
        .iter()
        .filter_map(|class| {
            let size_bytes = class.key.size_bytes;
            Some(ResidualSpec {
                op: Op::Flush,
                pattern: None,
                size: Some(Bytes(u64::from(size_bytes))),
                after: None,
                idle_us: None,
                samples: Some(class.service.count),
                source: format!("probe: flush after {}", class.key),
                assumed: false,
                quantiles: quantiles(&class.service, line.at(size_bytes) * 1e3)?,
            })
        })
        .collect();
    (spec, tables)
}

/// The line of O_DSYNC writes, where they were measured: random ones if there are any.
pub(super) fn durable_write(classes: &Classes) -> Option<LineSpec> {
    let mut durable: Vec<&Class> = classes
        .iter()
        .filter(|class| {
            let key = &class.key;
            key.op == Op::Write
                && key.durability == Durability::Dsync
                && (key.depth, key.read_share, key.rate_per_s) == (1, 0, 0)
        })
        .collect();
    let last = durable.last()?.key.pattern;
    durable.retain(|class| class.key.pattern == last);
    let mut notes = Notes::default();
    let mut line = lines::spec(&lines::through(&durable, &mut notes)?);
    for parameter in [&mut line.base_us, &mut line.us_per_kib] {
        parameter.source = format!("{} O_DSYNC", parameter.source);
    }
    Some(line)
}
