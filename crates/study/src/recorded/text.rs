//! The comparison as rows for the terminal.

use report::format;
use stats::error_ratio::Comparison;

use super::{Load, Recorded};
use crate::validation::with_interval;

/// How the load came to the model, in words.
pub(super) fn load_words(load: Load) -> &'static str {
    match load {
        Load::Open => "every request when it was recorded",
        Load::OneOutstanding => "each request its recorded gap after the one before completed",
        Load::Actors => "each actor waiting for its own requests",
    }
}

/// `read up to 4.00 KiB`.
pub(super) fn class_name(op: &str, size_bytes: u32) -> String {
    match size_bytes {
        0 => op.to_owned(),
        size => format!("{op} up to {}", format::bytes(f64::from(size))),
    }
}

/// The demerit as a time.
pub(super) fn demerit(comparison: &Comparison) -> String {
    format::duration_ns(comparison.demerit * comparison.mean_real_ns)
}

pub(super) fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:+.1}", value * 100.0))
}

/// Rows of cells, the first one the header, and what they are of.
pub fn text(found: &Recorded) -> (Vec<Vec<String>>, String) {
    let header =
        ["REQUESTS", "COUNT", "E", "DEMERIT", "RECORDED", "SIMULATED", "MEAN %", "P50 %", "P99 %"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let mut row = |name: String, of: &Comparison| {
        rows.push(vec![
            name,
            of.count_real.to_string(),
            with_interval(of),
            demerit(of),
            format::duration_ns(of.mean_real_ns),
            format::duration_ns(of.mean_simulated_ns),
            percent(Some(of.signed_mean_error)),
            percent(of.relative_error_p50),
            percent(of.relative_error_p99),
        ]);
    };
    row("all".to_owned(), &found.simulated.pooled);
    for operation in &found.operations {
        row(operation.op.name().to_owned(), &operation.simulated);
    }
    for (key, comparison) in &found.simulated.classes {
        row(class_name(&key.op, key.size_bytes), comparison);
    }
    let untimed = match found.untimed {
        0 => String::new(),
        count => format!("; {count} requests without a recorded time are not compared"),
    };
    let note = format!(
        "{}, {}; E weighted over the classes {:.3}{untimed}",
        found.profile,
        load_words(found.load),
        found.simulated.weighted_error_ratio,
    );
    (rows, note)
}
