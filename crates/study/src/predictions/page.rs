//! The page of a prediction.

use report::{Axis, BarSeries, Column, Figure, Page, Section, Table, format};

use super::Predictions;
use super::text::{interval, limits, text};

/// The page of a prediction.
pub fn page(all: &Predictions) -> Page {
    let captured = &all.captured;
    let subtitle = format!(
        "captured on {} with {} terminals: {} transactions per minute",
        captured.dbms,
        captured.terminals,
        format::count(captured.per_min)
    );
    let mut page = Page::new("Transactions on other devices", subtitle);
    for device in &all.devices {
        let detail = format!("per minute, {}; limited by {}", interval(device), limits(device));
        page = page.fact(device.device.clone(), format::count(device.per_min), detail);
    }
    page.warnings.clone_from(&all.warnings);
    let mut section = Section::new("predict", "Throughput and response").paragraph(
        "Simulated from samples of the captured transactions: terminals wait for processors, \
         locks, the flush of the log and the devices anew.",
    );
    for line in all.devices.first().iter().flat_map(|device| &device.rests_on) {
        section = section.paragraph(format!("Rests on {line}."));
    }
    let section = section.figure(throughput(all)).figure(parts(all)).table(table(all));
    page.section(section).provenance("wearmark", env!("CARGO_PKG_VERSION"))
}

fn names(all: &Predictions) -> Vec<String> {
    all.devices.iter().map(|device| device.device.clone()).collect()
}

fn throughput(all: &Predictions) -> Figure {
    let values = all.devices.iter().map(|device| device.per_min).collect();
    let ends = all.devices.iter().map(|device| (device.per_min_low, device.per_min_high)).collect();
    let bars = BarSeries::new("transactions per minute", values).interval(ends);
    let y = Axis::linear("Transactions per minute", "");
    Figure::bars("predicted", "Transactions per minute", names(all), y, vec![bars])
        .caption("Whiskers: processor time and host path more and less.")
}

fn parts(all: &Predictions) -> Figure {
    let mut kinds: Vec<&str> = Vec::new();
    for limit in all.devices.iter().flat_map(|device| &device.limits) {
        if !kinds.contains(&limit.what.as_str()) {
            kinds.push(&limit.what);
        }
    }
    let share = |what: &str| {
        let of = |device: &predict::Prediction| {
            let limit = device.limits.iter().find(|limit| limit.what == what);
            limit.map_or(0.0, |limit| limit.share * 100.0)
        };
        all.devices.iter().map(of).collect()
    };
    let series = kinds.iter().map(|what| BarSeries::new(*what, share(what))).collect();
    let y = Axis::linear("Share of the response time", "%");
    Figure::stacked_bars("limits", "What limits the run", names(all), y, series)
}

fn table(all: &Predictions) -> Table {
    let rows = text(all);
    let columns = rows[0].iter().map(|name| Column::text(name.clone())).collect();
    let table = Table::new("devices", "All of it", columns);
    rows.into_iter().skip(1).fold(table, Table::row)
}
