//! A proof for the terminal.

use super::{HERE, Proof};

/// Rows of a table: a head, then every figure of every place.
pub fn text(proof: &Proof) -> Vec<Vec<String>> {
    let head = ["DEVICE", "FIGURE", "MEASURED", "PREDICTED", "ERROR", "A/A"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for place in &proof.places {
        for figure in place.compared() {
            rows.push(vec![
                place.name.clone(),
                figure.name.clone(),
                number(figure.measured),
                figure.predicted.map_or_else(|| "-".to_owned(), number),
                figure.error().map_or_else(|| "-".to_owned(), share),
                figure
                    .spread
                    .map_or_else(|| "-".to_owned(), |spread| format!("{:.0} %", spread * 100.0)),
            ]);
        }
    }
    rows
}

/// What is to be said below the table.
pub fn remarks(proof: &Proof) -> Vec<String> {
    let mut remarks = Vec::new();
    for place in proof.places.iter().filter(|place| place.name != HERE) {
        if let Some(why) = &place.not_predicted {
            remarks.push(format!("{}: not predicted: {why}", place.name));
        }
        if let Some(run) = place.runs.last() {
            let io: Vec<String> =
                run.io.iter().map(|io| format!("{:.2} {}", io.requests, io.op)).collect();
            let late = run.lateness_us_p99.unwrap_or(0.0);
            remarks.push(format!(
                "{}: {} requests per transaction; answers at most {late:.0} us late (p99)",
                place.name,
                io.join(", ")
            ));
        }
    }
    remarks
}

/// Three figures.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

pub(super) fn share(value: f64) -> String {
    format!("{:+.0} %", value * 100.0)
}
