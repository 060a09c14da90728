//! Two sets of runs against each other: ratio, interval, verdict.
//!
//! Each figure is compared as a ratio of medians, new over old, with a bootstrap interval. A figure
//! has *regressed* only where the whole interval lies beyond the bound: one bad run among good ones
//! is no verdict, and neither is a single pair.

use oltp::Kind;
use serde::{Deserialize, Serialize};
use stats::bootstrap::{Ratio, ratio_of_medians};

use super::{Run, RunSet};

/// Runs on each side below which nothing is concluded.
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
    /// The interval holds 1.
    NoDifference,
    /// Better.
    Better,
    /// Fewer than [`RUNS_MIN`] runs on a side, or nothing to compare.
    Unproven,
}

impl Verdict {
    /// As people read it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Regressed => "REGRESSED",
            Self::Worse => "worse, within the bound",
            Self::NoDifference => "no difference shown",
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
    /// What that says.
    pub verdict: Verdict,
}

/// Takes a figure from a run, where it has it.
type Take = Box<dyn Fn(&Run) -> Option<f64>>;

/// A figure of a run.
struct Figure {
    name: String,
    unit: &'static str,
    more_is_better: bool,
    of: Take,
}

fn figure(
    name: impl Into<String>,
    unit: &'static str,
    more_is_better: bool,
    of: impl Fn(&Run) -> Option<f64> + 'static,
) -> Figure {
    Figure { name: name.into(), unit, more_is_better, of: Box::new(of) }
}

fn figures(sample: &Run) -> Vec<Figure> {
    let mut all = vec![
        figure("transactions", "/s", true, |run| Some(run.result.transactions_per_s)),
        figure("client CPU", "us/transaction", false, |run| Some(run.client_us())),
        figure("server CPU", "us/transaction", false, Run::server_us),
    ];
    if sample.result.of(Kind::NewOrder).is_some() {
        let new_orders = |run: &Run| Some(run.result.new_orders_per_min);
        all.insert(1, figure("new orders", "/min", true, new_orders));
    }
    for kind in sample.result.workload.kinds() {
        let of = |run: &Run| {
            let found = run.result.of(*kind).filter(|found| found.count > 0);
            found.map(|found| found.response_ms_p90)
        };
        all.push(figure(format!("p90 of {}", kind.name()), "ms", false, of));
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
        let ratio = ratio_of_medians(&after, &before, RESAMPLES, 1);
        let enough = before.len().min(after.len()) >= RUNS_MIN;
        compared.push(Compared {
            old: median(before),
            new: median(after),
            verdict: verdict(ratio.filter(|_| enough), figure.more_is_better, bound),
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
        return Verdict::NoDifference;
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
        assert_eq!(of(&old, &[100.2, 60.0, 100.1, 99.8, 100.3], true), Verdict::NoDifference);
        assert_eq!(verdict(None, true, 0.05), Verdict::Unproven);
    }
}
