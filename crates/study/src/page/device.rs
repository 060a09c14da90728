//! The section about the disk itself: throughput and response times by pattern, size and depth.

use fit::FittedLine;
use fit::measurement::{Arrival, Cell, CellResult, Distribution, Durability, Measurements, Order};
use profile::linear::Pattern;
use report::{Axis, Column, Figure, Section, Series, Style, Table, format};
use trace::Op;

use crate::curves::{slower, slower_axis, thinned};

/// Names and read shares of the papers' three loads.
const LOADS: [(&str, f64); 3] = [("read", 1.0), ("mixed 50/50", 0.5), ("write", 0.0)];

/// Builds the section.
pub fn section(title: &str, measured: &Measurements, lines: &[FittedLine]) -> Section {
    let cells = Cells(&measured.cells);
    let target = &measured.target;
    let how = match target.kind.as_str() {
        "model" => "Measured in virtual time",
        _ => "Measured past the page cache",
    };
    Section::new("probe", title)
        .paragraph(format!(
            "{how} on {} of {}; every cell is a workload held for a while, and cells measured \
             more than once are merged.",
            format::bytes(target.range_bytes as f64),
            target.path
        ))
        .figure(throughput(&cells, Order::Sequential, "1"))
        .figure(throughput(&cells, Order::Random, "2"))
        .figure(depth(&cells))
        .figure(distributions(&cells))
        .figure(fitted(&cells, lines))
        .table(line_table(lines))
        .table(commit_table(&cells))
}

/// The measured cells, with the questions that figures ask of them.
struct Cells<'a>(&'a [CellResult]);

impl Cells<'_> {
    /// Closed-loop cells without durability, merged over repeats: (cell, results).
    fn plain(&self, keep: impl Fn(&Cell) -> bool) -> Vec<(Cell, Vec<&CellResult>)> {
        let mut merged: Vec<(Cell, Vec<&CellResult>)> = Vec::new();
        for result in self.0 {
            let cell = result.cell;
            let plain = cell.durability == Durability::None && cell.arrival == Arrival::Closed;
            if !plain || !keep(&cell) {
                continue;
            }
            match merged.iter_mut().find(|(other, _)| *other == cell) {
                Some((_, results)) => results.push(result),
                None => merged.push((cell, vec![result])),
            }
        }
        merged
    }
}

fn bytes_per_s(results: &[&CellResult]) -> f64 {
    let bytes: u64 = results.iter().map(|result| result.bytes).sum();
    let elapsed: f64 = results.iter().map(|result| result.elapsed_s).sum();
    bytes as f64 / elapsed.max(f64::MIN_POSITIVE)
}

fn throughput(cells: &Cells<'_>, order: Order, number: &str) -> Figure {
    let mut series = Vec::new();
    for (name, share) in LOADS {
        let at = |cell: &Cell| cell.order == order && cell.read_share == share;
        let mut depths: Vec<u32> = cells.plain(at).iter().map(|(cell, _)| cell.depth).collect();
        depths.sort_unstable();
        depths.dedup();
        for depth in depths {
            let results = cells.plain(|cell| at(cell) && cell.depth == depth);
            let mut points: Vec<(f64, f64)> = results
                .iter()
                .map(|(cell, results)| (f64::from(cell.size_bytes), bytes_per_s(results)))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            // One size is a point of the depth figure, not a curve of this one.
            if points.len() > 1 {
                let name = format!("{name}, {depth} outstanding");
                series.push(Series::new(name, Style::LinePoints, points));
            }
        }
    }
    let order = order_name(order);
    Figure::lines(
        format!("throughput-{order}"),
        format!("Throughput against request size, {order}"),
        Axis::log2("Request size", "bytes"),
        Axis::linear("Throughput", "bytes/s"),
        series,
    )
    .source(format!("after Wang et al. 2011, fig. {number}"))
}

fn depth(cells: &Cells<'_>) -> Figure {
    let mut series = Vec::new();
    for (name, share) in LOADS {
        let results = cells.plain(|cell| {
            cell.order == Order::Random && cell.size_bytes == 4096 && cell.read_share == share
        });
        let mut points: Vec<(f64, f64)> = results
            .iter()
            .map(|(cell, results)| (f64::from(cell.depth), bytes_per_s(results) / 4096.0))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if !points.is_empty() {
            series.push(Series::new(format!("random {name}"), Style::LinePoints, points));
        }
    }
    Figure::lines(
        "depth",
        "Random 4 KiB requests per second against outstanding I/Os",
        Axis::log2("Outstanding I/Os", ""),
        Axis::linear("Requests per second", ""),
        series,
    )
    .source("after Wang et al. 2011, fig. 3")
}

fn distributions(cells: &Cells<'_>) -> Figure {
    let mut series = Vec::new();
    for (name, op, share) in [("read", Op::Read, 1.0), ("write", Op::Write, 0.0)] {
        let results = cells.plain(|cell| {
            cell.order == Order::Random && cell.size_bytes == 4096 && cell.read_share == share
        });
        for (cell, results) in results {
            if cell.depth != 1 && !(30..=32).contains(&cell.depth) {
                continue;
            }
            let name = format!("random {name}, {} outstanding", cell.depth);
            series.push(Series::new(name, Style::Line, slower(cumulative(&results, op))));
        }
    }
    Figure::lines(
        "response-distribution",
        "Response times of random 4 KiB requests",
        Axis::log10("Response time", "ns"),
        slower_axis("Requests"),
        series,
    )
    .source("after Wang et al. 2011, fig. 4")
}

/// The distribution of one operation over several cells, as (ns, percent).
fn cumulative(results: &[&CellResult], op: Op) -> Vec<(f64, f64)> {
    let mut histogram = stats::Histogram::new();
    for class in results.iter().flat_map(|result| &result.classes).filter(|class| class.op == op) {
        for &(value, count) in &class.response.buckets {
            histogram.record_n(value, count);
        }
    }
    thinned(&histogram)
}

fn fitted(cells: &Cells<'_>, lines: &[FittedLine]) -> Figure {
    let mut series = Vec::new();
    for line in lines {
        let name = line_name(line);
        let points: Vec<(f64, f64)> = line
            .points
            .iter()
            .map(|point| (f64::from(point.size_bytes), point.mean_us * 1e3))
            .collect();
        let drawn = line.points.iter().map(|p| (f64::from(p.size_bytes), p.fitted_us * 1e3));
        let drawn = drawn.collect();
        series.push(Series::new(name.clone(), Style::Points, points));
        series.push(Series::new(format!("{name}, fitted"), Style::Dashed, drawn));
    }
    let caption = if cells.0.is_empty() { "" } else { "Mean service time, one outstanding I/O." };
    Figure::lines(
        "fitted-lines",
        "Response time against request size, with the fitted lines",
        Axis::log2("Request size", "bytes"),
        Axis::log10("Response time", "ns"),
        series,
    )
    .caption(caption)
    .source("after Wang et al. 2010, figs. 2-3")
}

fn line_name(line: &FittedLine) -> String {
    let pattern = match line.pattern {
        Pattern::Sequential => "sequential",
        Pattern::Random => "random",
    };
    format!("{pattern} {}", line.op.name())
}

fn line_table(lines: &[FittedLine]) -> Table {
    let columns = vec![
        Column::text("Pattern"),
        Column::number("Base b", "us"),
        Column::number("Slope a", "us/KiB"),
        Column::number("R2", ""),
        Column::number("Mean error of the line", "%"),
        Column::number("Sizes", ""),
    ];
    let table = Table::new("line-table", "The linear model y = a x + b", columns);
    lines.iter().fold(table, |table, fitted| {
        table.row([
            line_name(fitted),
            format!("{:.1} ± {:.1}", fitted.intercept_us, fitted.intercept_error_us),
            format!("{:.3} ± {:.3}", fitted.slope_us_per_kib, fitted.slope_error_us_per_kib),
            format!("{:.3}", fitted.r_squared),
            format!("{:.1}", fitted.mean_relative_error * 100.0),
            fitted.points.len().to_string(),
        ])
    })
}

fn commit_table(cells: &Cells<'_>) -> Table {
    let columns = vec![
        Column::text("Load"),
        Column::number("Commits", "/s"),
        Column::number("Write p50", ""),
        Column::number("Flush p50", ""),
        Column::number("Flush p99", ""),
    ];
    let table = Table::new("commit-table", "The commit path: a write made durable", columns)
        .caption("Each write is followed by fdatasync, or goes through O_DSYNC.");
    let durable = cells.0.iter().filter(|result| result.cell.durability != Durability::None);
    durable.fold(table, |table, result| {
        let cell = result.cell;
        let at = |op: Op, q: f64| {
            let class = result.classes.iter().find(|class| class.op == op);
            class.map_or(format::NOTHING.into(), |class| {
                format::duration_ns(quantile(&class.service, q) as f64)
            })
        };
        let how = if cell.durability == Durability::Flush { "flush" } else { "O_DSYNC" };
        table.row([
            format!(
                "{} {} + {how}",
                order_name(cell.order),
                format::bytes(f64::from(cell.size_bytes))
            ),
            format::count(result.requests as f64 / result.elapsed_s),
            at(Op::Write, 0.5),
            at(Op::Flush, 0.5),
            at(Op::Flush, 0.99),
        ])
    })
}

fn quantile(distribution: &Distribution, q: f64) -> u64 {
    stats::Histogram::from_buckets(&distribution.buckets).quantile(q)
}

fn order_name(order: Order) -> &'static str {
    match order {
        Order::Sequential => "sequential",
        Order::Random => "random",
    }
}
