//! Two sets of runs against each other: ratio, interval, verdict.
//!
//! Each figure is compared as a ratio of medians, new over old, with a bootstrap interval. A figure
//! has *regressed* only where the whole interval lies beyond the bound: one bad run among good ones
//! is no verdict. Of fewer than [`RUNS_MIN`] runs a side, the scatter *within* them is asked: of
//! throughput from one interval of its series to the next, of a percentile from the counts of its
//! histogram. That leaves out how runs differ from each other, so it can show that something
//! changed, never that nothing did.

use oltp::Kind;
use serde::{Deserialize, Serialize};
use stats::bootstrap::{Ratio, block_interval, ratio_of_medians};

use super::{Run, RunSet};

/// Runs on each side from which on they are compared with each other.
pub const RUNS_MIN: usize = 3;

/// Resamples of the bootstrap.
const RESAMPLES: usize = 2000;

/// What a figure says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Worse, by more than the bound.
    Regressed,
    /// Worse, within the bound.
    Worse,
    /// The interval holds 1, and nothing beyond the bound.
    NoDifference,
    /// The interval holds 1 and a regression beyond the bound too.
    TooWide,
    /// Better.
    Better,
    /// Fewer than [`RUNS_MIN`] runs on a side, and their own scatter shows nothing.
    Unproven,
}

impl Verdict {
    /// As people read it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Regressed => "REGRESSED",
            Self::Worse => "worse, within the bound",
            Self::NoDifference => "no difference shown",
            Self::TooWide => "unproven: the interval is wider than the bound",
            Self::Better => "better",
            Self::Unproven => "unproven: too few runs",
        }
    }
}

/// One figure of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// What is compared.
    pub figure: String,
    /// Its unit.
    pub unit: String,
    /// Whether more of it is better.
    pub more_is_better: bool,
    /// Median of the old runs.
    pub old: f64,
    /// Median of the new runs.
    pub new: f64,
    /// New over old.
    pub ratio: Option<Ratio>,
    /// Whether the interval is of the scatter within the runs, for want of runs.
    pub within: bool,
    /// What that says.
    pub verdict: Verdict,
}

impl Compared {
    /// The verdict as people read it.
    pub fn words(&self) -> String {
        let scatter = if self.within { ", by the scatter within the runs" } else { "" };
        format!("{}{scatter}", self.verdict.words())
    }
}

/// Takes a figure from a run, where it has it.
type Take = Box<dyn Fn(&Run) -> Option<f64>>;

/// A figure of a run.
struct Figure {
    name: String,
    unit: &'static str,
    more_is_better: bool,
    of: Take,
    /// Its interval from the scatter within the runs of one side.
    within: Option<Within>,
}

/// An interval of a figure from the runs of one side.
type Within = Box<dyn Fn(&[Run]) -> Option<(f64, f64)>>;

impl Figure {
    fn within(mut self, of: impl Fn(&[Run]) -> Option<(f64, f64)> + 'static) -> Self {
        self.within = Some(Box::new(of));
        self
    }

    /// New over old with the interval that the two sides' own intervals allow: conservative, since
    /// both are taken at their ends.
    fn ratio_within(
        &self,
        old: &RunSet,
        new: &RunSet,
        (before, after): (f64, f64),
    ) -> Option<Ratio> {
        let of = self.within.as_ref()?;
        let ((old_low, old_high), (new_low, new_high)) = (of(&old.runs)?, of(&new.runs)?);
        let (low, high) = (new_low / old_high, new_high / old_low);
        (low.is_finite() && high.is_finite() && old_low > 0.0).then(|| Ratio {
            ratio: after / before,
            low,
            high,
            pairs: 1,
        })
    }
}

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
    runs.iter().filter_map(|run| run.result.of(kind)).for_each(|of| all.merge(&of.response_ns));
    let count = all.count() as f64;
    let off = 3.0 * (0.9 * 0.1 / count).sqrt();
    let at = |share: f64| all.quantile(share) as f64 / 1e6;
    (count >= 100.0 && 0.9 + off < 1.0).then(|| (at(0.9 - off), at(0.9 + off)))
}

fn figure(
    name: impl Into<String>,
    unit: &'static str,
    more_is_better: bool,
    of: impl Fn(&Run) -> Option<f64> + 'static,
) -> Figure {
    Figure { name: name.into(), unit, more_is_better, of: Box::new(of), within: None }
}

fn figures(sample: &Run) -> Vec<Figure> {
    let mut all = vec![
        figure("transactions", "/s", true, |run| Some(run.result.transactions_per_s))
            .within(|runs| rate_within(runs, |series| &series.transactions, 1.0)),
        figure("client CPU", "us/transaction", false, |run| Some(run.client_us())),
        figure("server CPU", "us/transaction", false, Run::server_us),
    ];
    if sample.result.of(Kind::NewOrder).is_some() {
        let new_orders = |run: &Run| Some(run.result.new_orders_per_min);
        let within = |runs: &[Run]| rate_within(runs, |series| &series.new_orders, 60.0);
        all.insert(1, figure("new orders", "/min", true, new_orders).within(within));
    }
    for kind in sample.result.kinds().iter().copied() {
        let of = move |run: &Run| {
            let found = run.result.of(kind).filter(|found| found.count > 0);
            found.map(|found| found.response_ms_p90)
        };
        let p90 = figure(format!("p90 of {}", kind.name()), "ms", false, of);
        all.push(p90.within(move |runs| p90_within(runs, kind)));
    }
    all
}

/// Compares every figure that both sets have; `bound` is the share by which a figure may worsen.
pub fn compare(old: &RunSet, new: &RunSet, bound: f64) -> Vec<Compared> {
    let Some(sample) = old.runs.first() else { return Vec::new() };
    let mut compared = Vec::new();
    for figure in figures(sample) {
        let values = |set: &RunSet| set.runs.iter().filter_map(&figure.of).collect::<Vec<f64>>();
        let (before, after) = (values(old), values(new));
        if before.is_empty() || after.is_empty() {
            continue;
        }
        let within = before.len().min(after.len()) < RUNS_MIN;
        let runs = ratio_of_medians(&after, &before, RESAMPLES, 1);
        let (before, after) = (median(before), median(after));
        let ratio = if within { figure.ratio_within(old, new, (before, after)) } else { runs };
        compared.push(Compared {
            old: before,
            new: after,
            verdict: match verdict(ratio, figure.more_is_better, bound) {
                Verdict::NoDifference | Verdict::TooWide if within => Verdict::Unproven,
                found => found,
            },
            within: within && ratio.is_some(),
            figure: figure.name,
            unit: figure.unit.to_owned(),
            more_is_better: figure.more_is_better,
            ratio,
        });
    }
    compared
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    stats::quantile::quantile_sorted_f64(&values, 0.5)
}

fn verdict(ratio: Option<Ratio>, more_is_better: bool, bound: f64) -> Verdict {
    let Some(ratio) = ratio else { return Verdict::Unproven };
    if !ratio.differs() {
        let excluded =
            if more_is_better { ratio.low >= 1.0 - bound } else { ratio.high <= 1.0 + bound };
        return if excluded { Verdict::NoDifference } else { Verdict::TooWide };
    }
    match more_is_better {
        true if ratio.high < 1.0 - bound => Verdict::Regressed,
        false if ratio.low > 1.0 + bound => Verdict::Regressed,
        true if ratio.high < 1.0 => Verdict::Worse,
        false if ratio.low > 1.0 => Verdict::Worse,
        _ => Verdict::Better,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(a: &[f64], b: &[f64], more_is_better: bool) -> Verdict {
        verdict(ratio_of_medians(b, a, RESAMPLES, 1), more_is_better, 0.05)
    }

    #[test]
    fn a_verdict_needs_the_whole_interval() {
        let old = [100.0, 101.0, 99.0, 100.5, 99.5];
        let scaled = |factor: f64| old.map(|value| value * factor);
        assert_eq!(of(&old, &scaled(0.80), true), Verdict::Regressed);
        assert_eq!(of(&old, &scaled(0.80), false), Verdict::Better);
        assert_eq!(of(&old, &scaled(1.20), false), Verdict::Regressed);
        assert_eq!(of(&old, &scaled(0.97), true), Verdict::Worse);
        assert_eq!(of(&old, &scaled(1.03), false), Verdict::Worse);
        // One run in five is far off: the interval holds 1.
        assert_eq!(of(&old, &[100.2, 60.0, 100.1, 99.8, 100.3], true), Verdict::TooWide);
        assert_eq!(of(&old, &old, true), Verdict::NoDifference);
        assert_eq!(verdict(None, true, 0.05), Verdict::Unproven);
    }
}
