//! The section that says how wrong the simulation is.

use report::{Axis, Column, Figure, Section, Series, Style, Table, format};
use stats::change::Change;
use stats::error_ratio::Comparison;

use crate::curves;
use crate::drift::Drift;
use crate::validation::{OperationError, Validation, with_interval};

/// The error ratio that the 2010 paper prints for its simulator, undefined there.
const PAPER_ERROR_RATIO: f64 = 0.08156;

/// Builds the section.
pub fn section(validation: &Validation) -> Section {
    let pooled = &validation.simulated.pooled;
    let floor = &validation.noise_floor.pooled;
    let kept = validation.certificates.iter().all(|certificate| certificate.valid);
    let rounds = validation.certificates.len() / 2;
    let text = format!(
        "{} requests of the captured trace, which the fit never saw, were replayed twice on the \
         real disk, in {rounds} rounds over slices of the trace, A B and B A in turns, every \
         connection waiting for its own previous request and its captured CPU time, and simulated \
         once on the fitted profile in the same way. E is the area between the simulated and the \
         real response-time distributions over the real mean. E of the simulation is {}; of the \
         disk against itself {}; the aim is at most {:.3}, which the whole interval must meet. \
         The 2010 paper prints {PAPER_ERROR_RATIO} for its simulator, without a definition.",
        format::count(validation.requests as f64),
        with_interval(pooled),
        with_interval(floor),
        validation.aim,
    );
    let mut verdict = format!("{}.", validation.verdict_words());
    let help = validation.help();
    if !help.is_empty() {
        verdict = format!("{verdict} What would help: {help}.");
    }
    let certified = if kept {
        "All replays kept their schedule (see the timing certificates)."
    } else {
        "A replay did NOT keep its schedule: its response times include the tool's own lateness, \
         and the figures here are not evidence."
    };
    let mut section =
        Section::new("validate", "How wrong it is").paragraph(text).paragraph(verdict);
    if validation.without_drift.is_some() {
        section = section.paragraph(validation.drift_words());
    }
    section = section.paragraph(certified);
    for operation in &validation.operations {
        section = section.figure(figure(operation));
    }
    section = section.table(error_table(validation)).table(class_table(validation));
    if !validation.drift.is_empty() {
        section = section.table(drift_table(&validation.drift));
    }
    section.table(timing(validation))
}

fn drift_table(drift: &[Drift]) -> Table {
    let columns = vec![
        Column::text("Requests"),
        Column::number("Load / probe", ""),
        Column::number("Replay / probe", ""),
    ];
    let caption = "Times of the same short measurement on the real disk, with 95 % intervals: \
                   around the load and before every replay, over those around and within the \
                   probe. A factor whose interval holds 1 is not shown to be a change.";
    let table =
        Table::new("drift-table", "Drift of the disk since the fit", columns).caption(caption);
    let shown = |change: Option<Change>| {
        change.map_or(format::NOTHING.into(), |change| {
            format::ratio_with_interval(change.factor, (change.low, change.high))
        })
    };
    drift.iter().fold(table, |table, drift| {
        table.row([drift.kind.name().to_owned(), shown(drift.load), shown(drift.replay)])
    })
}

fn figure(operation: &OperationError) -> Figure {
    let name = operation.op.name();
    let series = operation.curves.iter().map(|curve| {
        let points = curve.points.iter().map(|&(ns, share)| (ns as f64, share * 100.0)).collect();
        let points = curves::slower(points);
        let style = if curve.name.starts_with("real") { Style::Line } else { Style::Dashed };
        Series::new(curve.name.clone(), style, points)
    });
    Figure::lines(
        format!("validate-{name}"),
        format!("Response times of {name}s, simulated and real"),
        Axis::log10("Response time", "ns"),
        curves::slower_axis("Requests"),
        series.collect(),
    )
    .source("after Wang et al. 2010, figs. 4-5")
}

fn percent(value: Option<f64>) -> String {
    value.map_or(format::NOTHING.into(), |value| format!("{:+.1}", value * 100.0))
}

fn error_table(validation: &Validation) -> Table {
    let columns = vec![
        Column::text("Requests"),
        Column::number("E", ""),
        Column::number("E of the disk against itself", ""),
        Column::number("Mean", "%"),
        Column::number("p50", "%"),
        Column::number("p90", "%"),
        Column::number("p99", "%"),
        Column::number("p99.9", "%"),
    ];
    let caption = "Percentages: simulated against real. n/a: too few independent requests beyond \
                   the quantile to say.";
    let table = Table::new("error-table", "Errors by operation", columns).caption(caption);
    let row = |table: Table, name: &str, comparison: &Comparison, floor: &Comparison| {
        table.row([
            name.to_owned(),
            with_interval(comparison),
            with_interval(floor),
            percent(Some(comparison.signed_mean_error)),
            percent(comparison.relative_error_p50),
            percent(comparison.relative_error_p90),
            percent(comparison.relative_error_p99),
            percent(comparison.relative_error_p99_9),
        ])
    };
    let pooled = row(table, "all", &validation.simulated.pooled, &validation.noise_floor.pooled);
    validation.operations.iter().fold(pooled, |table, operation| {
        row(table, operation.op.name(), &operation.simulated, &operation.noise_floor)
    })
}

fn class_table(validation: &Validation) -> Table {
    let columns = vec![
        Column::text("Class"),
        Column::number("Requests", ""),
        Column::number("E", ""),
        Column::number("E of the disk against itself", ""),
        Column::number("Real mean", ""),
        Column::number("Simulated mean", ""),
    ];
    let caption = format!(
        "Sizes up to the given one and above half of it. The I/O-weighted sum of E is {:.3}; of \
         the disk against itself {:.3}.",
        validation.simulated.weighted_error_ratio, validation.noise_floor.weighted_error_ratio
    );
    let table = Table::new("class-table", "Errors by operation and size", columns).caption(caption);
    let classes = validation.simulated.classes.iter();
    classes.fold(table, |table, (key, comparison)| {
        let floor = validation.noise_floor.classes.iter().find(|(other, _)| other == key);
        let size = if key.size_bytes == 0 {
            String::new()
        } else {
            format!(" {}", format::bytes(f64::from(key.size_bytes)))
        };
        table.row([
            format!("{}{size}", key.op),
            format::count(comparison.count_real as f64),
            format!("{:.3}", comparison.error_ratio),
            floor.map_or(format::NOTHING.into(), |(_, floor)| format!("{:.3}", floor.error_ratio)),
            format::duration_ns(comparison.mean_real_ns),
            format::duration_ns(comparison.mean_simulated_ns),
        ])
    })
}

fn timing(validation: &Validation) -> Table {
    let columns = vec![
        Column::text("Run"),
        Column::number("Duration / captured", ""),
        Column::number("Lateness p50", ""),
        Column::number("Lateness p99", ""),
        Column::number("Lateness max", ""),
        Column::text("Valid"),
    ];
    let caption = match validation.late_rounds {
        0 => "Lateness is issue time minus due time of each request.".to_owned(),
        late => format!(
            "Lateness is issue time minus due time of each request. Further rounds in which a \
             replay did not keep its schedule, and which are left out of every figure: {late}."
        ),
    };
    let table =
        Table::new("timing-table", "Timing certificates of the replays", columns).caption(caption);
    validation.certificates.iter().enumerate().fold(table, |table, (index, certificate)| {
        let run = if index.is_multiple_of(2) { "A" } else { "B" };
        table.row([
            format!("{run} of round {}", index / 2 + 1),
            format!("{:.5}", certificate.duration_ratio),
            format::duration_ns(certificate.lateness_ns_p50 as f64),
            format::duration_ns(certificate.lateness_ns_p99 as f64),
            format::duration_ns(certificate.lateness_ns_max as f64),
            if certificate.valid { "yes" } else { "no" }.to_owned(),
        ])
    })
}
