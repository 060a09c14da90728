//! Predictions as rows for the terminal: a block of rows per device, one per kind of transaction.

use predict::{KindAnswer, Prediction};
use report::format;

use super::Predictions;

/// Rows of cells, the first one the header; the captured run comes first, as it was
/// measured and as it is simulated.
pub fn text(all: &Predictions) -> Vec<Vec<String>> {
    let header = [
        "DEVICE",
        "PER MINUTE",
        "INTERVAL",
        "TRANSACTION",
        "P50",
        "P90",
        "P99",
        "P99.9",
        "LIMITED BY",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let captured = &all.captured;
    for (index, (kind, _, quantiles)) in captured.kinds.iter().enumerate() {
        let first = [
            "(captured, measured)".to_owned(),
            format::count(captured.per_min),
            format!("{} terminals", captured.terminals),
        ];
        rows.push(row(index, first, kind, quantiles, String::new()));
    }
    let source = std::iter::once(("(captured, simulated)", &all.source));
    let devices = all.devices.iter().map(|device| (device.device.as_str(), device));
    for (name, device) in source.chain(devices) {
        for (index, kind) in device.kinds.iter().enumerate() {
            let first = [name.to_owned(), format::count(device.per_min), interval(device)];
            let limits = limits(device);
            rows.push(row(index, first, &kind.kind, &quantiles(kind), limits));
        }
    }
    rows
}

fn quantiles(kind: &KindAnswer) -> [u64; 4] {
    [kind.response_ns_p50, kind.response_ns_p90, kind.response_ns_p99, kind.response_ns_p999]
}

fn row(
    index: usize,
    first: [String; 3],
    kind: &str,
    quantiles: &[u64; 4],
    limits: String,
) -> Vec<String> {
    let is_first = index == 0;
    let shown = |cell: String| if is_first { cell } else { String::new() };
    let mut row: Vec<String> = first.into_iter().map(shown).collect();
    row.push(kind.to_owned());
    row.extend(quantiles.iter().map(|ns| format::duration_ns(*ns as f64)));
    row.push(shown(limits));
    row
}

pub(super) fn interval(device: &Prediction) -> String {
    format!("{} to {}", format::count(device.per_min_low), format::count(device.per_min_high))
}

/// Up to three parts of the response time, largest first.
pub(super) fn limits(device: &Prediction) -> String {
    let parts = device.limits.iter().take(3).filter(|limit| limit.share >= 0.05);
    let parts: Vec<String> =
        parts.map(|limit| format!("{} {}", limit.what, format::percent(limit.share))).collect();
    parts.join(", ")
}
