//! The figures of OLTP runs, to be set against those of others.
//!
//! Of few runs the scatter *within* them is known: of throughput from one interval of its series to
//! the next, of a percentile from the counts of its histogram.

use oltp::Kind;
use stats::bootstrap::block_interval;

use super::{Run, RunSet};
use crate::verdict::{self, Compared, Figure, RESAMPLES, Scatter, Side};

/// Intervals of a series below which its scatter says nothing.
const INTERVALS_MIN: usize = 10;

/// The mean rate of these runs, from one interval of their series to the next. Neighbours stay
/// together in blocks of a tenth of a run: a checkpoint is longer than an interval.
fn rate_within(runs: &[Run], counts: fn(&oltp::Series) -> &[u32], unit: f64) -> Option<(f64, f64)> {
    let mut rates = Vec::new();
    for run in runs {
        let series = &run.result.series;
        let first = (series.measure_from_s / series.interval_s).ceil() as usize;
        let last = first.saturating_add((run.result.measured_s / series.interval_s) as usize);
        let measured = counts(series).get(first..last.min(counts(series).len()))?;
        rates.extend(measured.iter().map(|count| f64::from(*count) * unit / series.interval_s));
    }
    let block = (rates.len() / 10).max(1);
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    (rates.len() >= INTERVALS_MIN).then(|| block_interval(&rates, block, mean, RESAMPLES, 1))
}

/// A 90th percentile in milliseconds, from the counts of the histogram: the ranks two standard
/// deviations of a binomial below and above (transactions of a run are not independent, so three).
fn p90_within(runs: &[Run], kind: Kind) -> Option<(f64, f64)> {
    let mut all = stats::Histogram::default();
    runs.iter().filter_map(|run| run.result.of(kind)).for_each(|of| all.merge(&of.at_least_ns()));
    let count = all.count() as f64;
    let off = 3.0 * (0.9 * 0.1 / count).sqrt();
    let at = |share: f64| all.quantile(share) as f64 / 1e6;
    (count >= 100.0 && 0.9 + off < 1.0).then(|| (at(0.9 - off), at(0.9 + off)))
}

/// Of the values that runs have, and what is known of their scatter.
fn figure(
    runs: &[Run],
    (name, unit): (String, &str),
    of: impl Fn(&Run) -> Option<f64>,
    within: Option<(f64, f64)>,
) -> Figure {
    let scatter = within.map_or(Scatter::Unknown, |(low, high)| Scatter::Within(low, high));
    Figure::new(name, unit, runs.iter().filter_map(of).collect()).scatter(scatter)
}

/// The figures of a set of runs; its throughput decides.
pub fn side(set: &RunSet) -> Side {
    let runs = &set.runs;
    let named = |name: &str, unit| (name.to_owned(), unit);
    let rate = rate_within(runs, |series| &series.transactions, 1.0);
    let per_s = |run: &Run| Some(run.result.transactions_per_s);
    let mut figures =
        vec![figure(runs, named("transactions", "/s"), per_s, rate).more_is_better().decides()];
    let kinds = runs.first().map_or(&[][..], |run| run.result.kinds());
    if runs.first().is_some_and(|run| run.result.of(Kind::NewOrder).is_some()) {
        let new_orders = |run: &Run| Some(run.result.new_orders_per_min);
        let within = rate_within(runs, |series| &series.new_orders, 60.0);
        figures
            .push(figure(runs, named("new orders", "/min"), new_orders, within).more_is_better());
    }
    let unit = "us/transaction";
    figures.push(figure(runs, named("client CPU", unit), |run| Some(run.client_us()), None));
    figures.push(figure(runs, named("server CPU", unit), Run::server_us, None));
    for kind in kinds.iter().copied() {
        let of = move |run: &Run| {
            let found = run.result.of(kind).filter(|found| found.count > 0);
            found.map(|found| found.response_ms_p90)
        };
        let name = (format!("p90 of {}", kind.name()), "ms");
        figures.push(figure(runs, name, of, p90_within(runs, kind)));
    }
    Side { kind: kind_of(set), figures }
}

/// Compares every figure that both sets have; `bound` is the share by which a figure may worsen.
pub fn compare(old: &RunSet, new: &RunSet, bound: f64) -> Vec<Compared> {
    verdict::compare(&side(old), &side(new), bound)
}

/// What the runs are of: workload and access. Runs of different ones are told by their list.
fn kind_of(set: &RunSet) -> String {
    let mut kinds: Vec<String> = set
        .runs
        .iter()
        .map(|run| {
            let options = &run.result.options;
            let access = options.database.server().map(|server| server.access.name());
            format!("{} by {}", options.workload, access.unwrap_or("embedded statements"))
        })
        .collect();
    kinds.dedup();
    kinds.join(", ")
}
