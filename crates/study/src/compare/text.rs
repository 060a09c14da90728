//! A comparison as rows for the terminal: figures down, devices across.

use report::format;
use sim::{ClassOutcome, MeanPath};
use trace::Op;

use super::Simulated;

/// In the place of a number, and lined up like one.
const NOTHING: &str = "-";

/// Rows of cells, the first one the header.
pub fn text(devices: &[Simulated]) -> Vec<Vec<String>> {
    let mut header = vec!["REQUEST".to_owned(), "FIGURE".to_owned()];
    header.extend(devices.iter().map(|device| device.profile.clone()));
    let mut rows = vec![header];
    for (op, stream) in classes(devices) {
        let name = format!("{} {stream}", op.name());
        let row = |figure: &str, of: &dyn Fn(&ClassOutcome) -> String| {
            let mut row = vec![name.clone(), figure.to_owned()];
            row.extend(devices.iter().map(|device| {
                let class = device.classes().iter().find(|c| c.op == op && c.stream == stream);
                class.map_or(NOTHING.to_owned(), of)
            }));
            row
        };
        let quantile =
            |q| move |class: &ClassOutcome| format::duration_ns(class.response.quantile(q) as f64);
        rows.push(row("requests", &|class| class.response.count().to_string()));
        rows.push(row("mean", &|class| format::duration_ns(class.response.mean())));
        rows.push(row("p50", &quantile(0.5)));
        rows.push(row("p99", &quantile(0.99)));
        rows.push(row("p99.9", &quantile(0.999)));
        rows.push(row("max", &quantile(1.0)));
    }
    rows.extend(per_minute(devices));
    for (name, of) in
        [("all", path_of_all as fn(&Simulated) -> Option<&MeanPath>), ("slowest 1 %", of_slowest)]
    {
        rows.extend(paths(devices, name, of));
    }
    rows
}

/// Operations and streams that occur, in order.
pub(super) fn classes(devices: &[Simulated]) -> Vec<(Op, String)> {
    let mut all: Vec<(Op, String)> = Vec::new();
    for class in devices.iter().flat_map(Simulated::classes) {
        if !all.iter().any(|(op, stream)| *op == class.op && *stream == class.stream) {
            all.push((class.op, class.stream.clone()));
        }
    }
    all
}

pub(super) fn path_of_all(device: &Simulated) -> Option<&MeanPath> {
    device.open_loop.as_ref()?.breakdown.as_ref().map(|breakdown| &breakdown.all)
}

pub(super) fn of_slowest(device: &Simulated) -> Option<&MeanPath> {
    device.open_loop.as_ref()?.breakdown.as_ref().map(|breakdown| &breakdown.slowest)
}

/// The causes that take any time on one of the devices.
pub(super) fn causes(
    devices: &[Simulated],
    of: fn(&Simulated) -> Option<&MeanPath>,
) -> Vec<model::observe::Cause> {
    let takes = |cause: &model::observe::Cause| {
        devices.iter().filter_map(of).any(|path| path.of(*cause) > 0.0)
    };
    model::observe::Cause::ALL.into_iter().filter(takes).collect()
}

fn paths(
    devices: &[Simulated],
    name: &str,
    of: fn(&Simulated) -> Option<&MeanPath>,
) -> Vec<Vec<String>> {
    let row = |cause: model::observe::Cause| {
        let mut row = vec![name.to_owned(), format!("in {}", cause.name())];
        row.extend(devices.iter().map(|device| match of(device).map(|path| path.of(cause)) {
            Some(ns) if ns > 0.0 => format::duration_ns(ns),
            _ => NOTHING.to_owned(),
        }));
        row
    };
    causes(devices, of).into_iter().map(row).collect()
}

fn per_minute(devices: &[Simulated]) -> Option<Vec<String>> {
    devices.first()?.closed_loop.as_ref()?;
    let mut row = vec!["transactions".to_owned(), "per minute".to_owned()];
    row.extend(devices.iter().map(|device| match &device.closed_loop {
        Some(outcome) => format::count(outcome.transactions_per_min()),
        None => NOTHING.to_owned(),
    }));
    Some(row)
}
