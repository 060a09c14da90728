//! The figures of each kind of result.

use std::collections::BTreeMap;

use fit::measurement::{Arrival, Cell, CellResult, Durability, Measurements};
use predict::Prediction;
use serde::Deserialize;
use sim::{ClosedOutcome, Outcome};
use stats::Histogram;
use stats::bootstrap::block_interval;
use trace::{Op, Trace};
use units::Bytes;

use crate::predictions::Predictions;
use crate::result::StudyResult;
use crate::sweep::{Better, SweepResult};
use crate::verdict::{Figure, RESAMPLES, Scatter, Side};

/// Stretches of a trace whose means are compared with each other.
const STRETCHES: usize = 100;
/// Intervals of a series below which its scatter says nothing.
const WINDOWS_MIN: usize = 10;

/// The part of `sim --json` that has figures.
#[derive(Deserialize)]
pub struct Simulations {
    /// One per device.
    pub devices: Vec<Simulation>,
}

/// One device of `sim --json`.
#[derive(Deserialize)]
pub struct Simulation {
    profile: String,
    open_loop: Option<Outcome>,
    closed_loop: Option<ClosedOutcome>,
}

/// Of simulations: the same trace and seed give the same figures again, so they have no scatter.
pub fn of_simulations(found: &Simulations) -> Side {
    let mut figures = Vec::new();
    for device in &found.devices {
        let classes = match (&device.open_loop, &device.closed_loop) {
            (Some(outcome), _) => &outcome.classes,
            (None, Some(outcome)) => &outcome.classes,
            (None, None) => continue,
        };
        let mut by_op: BTreeMap<&str, Histogram> = BTreeMap::new();
        for class in classes {
            by_op.entry(class.op.name()).or_default().merge(&class.response);
        }
        if let Some(outcome) = &device.closed_loop {
            let per_s = outcome.requests as f64 / (outcome.span_ns.max(1) as f64 / 1e9);
            let name = format!("{}: requests", device.profile);
            figures.push(Figure::new(name, "/s", vec![per_s]).more_is_better().decides());
        }
        for (op, response) in by_op {
            let name = |what: &str| format!("{}: {what} of {op}", device.profile);
            let us = |ns: f64| vec![ns / 1e3];
            figures.push(Figure::new(name("mean"), "us", us(response.mean())).decides());
            let at = |q| us(response.quantile(q) as f64);
            figures.push(Figure::new(name("p50"), "us", at(0.5)));
            figures.push(Figure::new(name("p99"), "us", at(0.99)).decides());
        }
    }
    let exact = figures.into_iter().map(|figure| figure.scatter(Scatter::None));
    Side { kind: "simulations".to_owned(), figures: exact.collect() }
}

/// Of a sweep: of every cell the figures of which it is known what is better.
pub fn of_sweep(found: &SweepResult) -> Side {
    let mut figures = Vec::new();
    for cell in &found.cells {
        let settings: Vec<&str> = cell.settings.values().map(String::as_str).collect();
        let known = found.figures.iter().filter_map(|one| Some((one, one.better?)));
        for (one, better) in known {
            let Some(value) = cell.figures.get(&one.name) else { continue };
            let name = format!("{}: {}", settings.join(", "), one.name);
            let figure = Figure::new(name, &one.unit, vec![*value]).decides();
            figures.push(match better {
                Better::More => figure.more_is_better(),
                Better::Less => figure,
            });
        }
    }
    Side { kind: format!("sweeps of {}", found.sweep), figures }
}

/// Of a probe: rate and 99th percentile of every cell. Repeats of a cell are runs of it.
pub fn of_probe(measured: &Measurements) -> Side {
    let mut side = Side { kind: "probes".to_owned(), figures: Vec::new() };
    for result in measured.cells.iter().filter(|result| result.elapsed_s > 0.0) {
        let name = cell_name(&result.cell);
        let rate = Figure::new(&name, "/s", vec![result.requests as f64 / result.elapsed_s])
            .more_is_better()
            .decides()
            .scatter(rate_scatter(result));
        let tails = result.classes.iter().filter(|class| class.service.count > 0).map(|class| {
            let service = Histogram::from_buckets(&class.service.buckets);
            let (p99, scatter) = p99_of(&service, class.service.count);
            let name = format!("{name}: p99 of {}", class.op.name());
            Figure::new(name, "us", vec![p99]).scatter(scatter)
        });
        let figures = std::iter::once(rate).chain(tails).collect();
        side.extend(Side { kind: String::new(), figures });
    }
    side
}

/// A cell in words: `random write 4KiB, depth 8, flushed`.
fn cell_name(cell: &Cell) -> String {
    let order = format!("{:?}", cell.order).to_lowercase();
    let what = match cell.read_share {
        1.0 => "read".to_owned(),
        0.0 => "write".to_owned(),
        share => format!("{:.0} % read", share * 100.0),
    };
    let durable = match cell.durability {
        Durability::None => "",
        Durability::Flush => ", flushed",
        Durability::Dsync => ", O_DSYNC",
    };
    let arrival = match cell.arrival {
        Arrival::Closed => String::new(),
        Arrival::Poisson { rate_per_s } => format!(", {rate_per_s:.0}/s offered"),
    };
    let size = Bytes(u64::from(cell.size_bytes));
    format!("{order} {what} {size}, depth {}{durable}{arrival}", cell.depth)
}

/// Of the rate of a cell, from one window to the next.
fn rate_scatter(result: &CellResult) -> Scatter {
    let rates: Vec<f64> = result.windows.iter().map(|window| window.iops).collect();
    mean_scatter(&rates)
}

/// Of the mean of a series; neighbours stay together.
fn mean_scatter(series: &[f64]) -> Scatter {
    if series.len() < WINDOWS_MIN {
        return Scatter::Unknown;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (low, high) = block_interval(series, (series.len() / 10).max(1), mean, RESAMPLES, 1);
    Scatter::Within(low, high)
}

/// The 99th percentile in us, and the ranks three standard deviations of a binomial below and
/// above (requests are not independent, so not two).
fn p99_of(times: &Histogram, count: u64) -> (f64, Scatter) {
    let at = |share: f64| times.quantile(share) as f64 / 1e3;
    let off = 3.0 * (0.99f64 * 0.01 / count as f64).sqrt();
    let scatter = if 0.99 + off < 1.0 {
        Scatter::Within(at(0.99 - off), at(0.99 + off))
    } else {
        Scatter::Unknown
    };
    (at(0.99), scatter)
}

/// Of a trace: the times that it holds, by operation; `None` where it holds none.
pub fn of_trace(trace: &Trace) -> Option<Side> {
    let service = trace.service.as_deref()?;
    let mut figures = Vec::new();
    for op in Op::ALL {
        // Zero is what formats give where a recording does not say.
        let own = (0..trace.count()).filter(|&at| trace.op[at] == op && service[at] > 0);
        let times: Vec<u64> = own.map(|at| service[at]).collect();
        if times.is_empty() {
            continue;
        }
        let mut all = Histogram::default();
        for time in &times {
            all.record(*time);
        }
        let mean = |times: &[u64]| {
            times.iter().map(|time| *time as f64 / 1e3).sum::<f64>() / times.len() as f64
        };
        // Requests that follow each other share a queue: their means scatter, they do not.
        let stretches = times.chunks(times.len().div_ceil(STRETCHES));
        let means: Vec<f64> = stretches.map(mean).collect();
        let (p99, scatter) = p99_of(&all, times.len() as u64);
        let name = |what: &str| format!("{what} of {}", op.name());
        let figure = |what, value| Figure::new(name(what), "us", vec![value]);
        figures.push(figure("mean", mean(&times)).decides().scatter(mean_scatter(&means)));
        figures.push(figure("p50", all.quantile(0.5) as f64 / 1e3));
        figures.push(figure("p99", p99).scatter(scatter));
    }
    (!figures.is_empty()).then(|| Side { kind: "traces".to_owned(), figures })
}

/// Of predictions. Those from one capture differ by device and question alone; those from two by
/// the captures too, so each then stands with its interval.
pub fn of_predictions(all: &Predictions) -> Side {
    let mut figures = Vec::new();
    for device in &all.devices {
        let name = |what: &str| format!("{}: {what}", device.device);
        let within = Scatter::Within(device.per_min_low, device.per_min_high);
        figures.push(
            Figure::new(name("transactions"), "/min", vec![device.per_min])
                .more_is_better()
                .decides()
                .scatter(within),
        );
        figures.extend(kinds_of(device));
    }
    Side { kind: "predictions".to_owned(), figures }
}

fn kinds_of(device: &Prediction) -> impl Iterator<Item = Figure> {
    device.kinds.iter().map(|kind| {
        let name = format!("{}: p90 of {}", device.device, kind.kind);
        Figure::new(name, "ms", vec![kind.response_ns_p90 as f64 / 1e6])
    })
}

/// Whether both are predictions from one capture.
pub fn share_capture(one: &Predictions, other: &Predictions) -> bool {
    one.captured == other.captured
}

/// Figures without scatter: of predictions that share their capture.
#[must_use]
pub fn exact(side: Side) -> Side {
    let figures = side.figures.into_iter().map(|figure| figure.scatter(Scatter::None));
    Side { kind: side.kind, figures: figures.collect() }
}

/// Of a study's result in short.
pub fn of_result(result: &StudyResult) -> Side {
    let oltp = &result.oltp;
    let mut figures = vec![
        Figure::new("transactions", "/min", vec![oltp.transactions_per_min])
            .more_is_better()
            .decides(),
    ];
    for kind in &oltp.transactions {
        let name = format!("p90 of {}", kind.kind);
        figures.push(Figure::new(name, "ms", vec![kind.response_ms_p90]));
    }
    Side { kind: "results of studies".to_owned(), figures }
}
