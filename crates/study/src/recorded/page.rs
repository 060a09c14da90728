//! The comparison as a page.

use report::{Axis, Column, Figure, Page, Section, Series, Style, Table, format};
use stats::error_ratio::Comparison;

use super::text::{class_name, demerit, load_words, percent};
use super::{OperationError, Recorded};
use crate::curves::{slower, slower_axis};
use crate::validation::with_interval;

/// Builds the page. `trace` is what the trace is called.
pub fn page(found: &Recorded, trace: &str) -> Page {
    let pooled = &found.simulated.pooled;
    let mean = format!(
        "{} simulated, {} recorded",
        format::duration_ns(pooled.mean_simulated_ns),
        format::duration_ns(pooled.mean_real_ns)
    );
    let title = format!("{} against a recording", found.profile);
    Page::new(title, trace)
        .fact("Error ratio E", with_interval(pooled), mean)
        .fact("Demerit", demerit(pooled), format!("{:.1} % of the mean", pooled.demerit * 100.0))
        .section(section(found))
}

fn section(found: &Recorded) -> Section {
    let untimed = match found.untimed {
        0 => String::new(),
        count => format!(
            " {} requests have no recorded time; they were simulated and are not compared.",
            format::count(count as f64)
        ),
    };
    let text = format!(
        "{} requests were simulated on {}, {}, and their times compared with the recorded ones. E \
         is the area between the two distributions over the recorded mean; the demerit (Ruemmler \
         and Wilkes 1994) is their root mean square distance. The recording is one run: by how \
         much the device differs from itself is not known, and there is no verdict.{untimed}",
        format::count(found.requests as f64),
        found.profile,
        load_words(found.load),
    );
    let section = Section::new("recorded", "How wrong it is").paragraph(text);
    let section = found.operations.iter().fold(section, |section, one| section.figure(figure(one)));
    section.table(table(found))
}

fn figure(operation: &OperationError) -> Figure {
    let name = operation.op.name();
    let series = operation.curves.iter().map(|curve| {
        let points = curve.points.iter().map(|&(ns, share)| (ns as f64, share * 100.0)).collect();
        let style = if curve.name == "recorded" { Style::Line } else { Style::Dashed };
        Series::new(curve.name.clone(), style, slower(points))
    });
    Figure::lines(
        format!("recorded-{name}"),
        format!("Response times of {name}s, simulated and recorded"),
        Axis::log10("Response time", "ns"),
        slower_axis("Requests"),
        series.collect(),
    )
}

fn table(found: &Recorded) -> Table {
    let columns = vec![
        Column::text("Requests"),
        Column::number("Count", ""),
        Column::number("E", ""),
        Column::number("Demerit", ""),
        Column::number("Recorded mean", ""),
        Column::number("Simulated mean", ""),
        Column::number("Mean", "%"),
        Column::number("p50", "%"),
        Column::number("p90", "%"),
        Column::number("p99", "%"),
        Column::number("p99.9", "%"),
    ];
    let caption = format!(
        "Sizes up to the given one and above half of it. E of the classes, weighted by their \
         requests, is {:.3}. Percentages: simulated against recorded; -: too few independent \
         requests beyond the quantile to say.",
        found.simulated.weighted_error_ratio
    );
    let table = Table::new("recorded-table", "Errors in all, by operation, by size", columns)
        .caption(caption);
    let row = |table: Table, name: String, of: &Comparison| {
        table.row([
            name,
            format::count(of.count_real as f64),
            with_interval(of),
            demerit(of),
            format::duration_ns(of.mean_real_ns),
            format::duration_ns(of.mean_simulated_ns),
            percent(Some(of.signed_mean_error)),
            percent(of.relative_error_p50),
            percent(of.relative_error_p90),
            percent(of.relative_error_p99),
            percent(of.relative_error_p99_9),
        ])
    };
    let table = row(table, "all".to_owned(), &found.simulated.pooled);
    let table = found.operations.iter().fold(table, |table, operation| {
        row(table, operation.op.name().to_owned(), &operation.simulated)
    });
    found.simulated.classes.iter().fold(table, |table, (key, comparison)| {
        row(table, class_name(&key.op, key.size_bytes), comparison)
    })
}
