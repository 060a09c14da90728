//! Two sets of figures against each other: ratio, interval, verdict.
//!
//! A [`Side`] holds each figure with its values by run. A figure is compared as a ratio of medians,
//! new over old, with a bootstrap interval. It has *regressed* only where the whole interval lies
//! beyond the bound: one bad run among good ones is no verdict. Of fewer than [`RUNS_MIN`] runs a
//! side, the scatter *within* them is asked, where a figure knows it. That leaves out how runs
//! differ from each other, so it can show that something changed, never that nothing did. Figures
//! that the same input gives again to the last bit (a simulation) have no scatter and need no
//! second run.

use serde::{Deserialize, Serialize};
use stats::bootstrap::{CONFIDENCE, Ratio, ratio_of_medians_at};

/// Runs on each side from which on they are compared with each other.
pub const RUNS_MIN: usize = 3;

/// Resamples of the bootstrap.
pub(crate) const RESAMPLES: usize = 2000;

/// What is known of how a figure would differ in another run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scatter {
    /// Nothing, but for further runs.
    Unknown,
    /// So far, by what happened within the runs.
    Within(f64, f64),
    /// Not at all: the same input gives the same figure.
    None,
}

/// A figure on one side.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it is.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Whether more of it is better.
    pub more_is_better: bool,
    /// Whether there is a verdict only where this figure has one.
    pub decides: bool,
    /// Its value in each run that has it, in their order.
    pub values: Vec<f64>,
    /// How it scatters.
    pub scatter: Scatter,
}

impl Figure {
    /// A figure of which less is better and whose scatter is not known.
    pub fn new(name: impl Into<String>, unit: impl Into<String>, values: Vec<f64>) -> Self {
        Self {
            name: name.into(),
            unit: unit.into(),
            more_is_better: false,
            decides: false,
            values,
            scatter: Scatter::Unknown,
        }
    }

    /// The same, of which more is better.
    #[must_use]
    pub fn more_is_better(self) -> Self {
        Self { more_is_better: true, ..self }
    }

    /// The same, without which there is no verdict.
    #[must_use]
    pub fn decides(self) -> Self {
        Self { decides: true, ..self }
    }

    /// The same with its scatter.
    #[must_use]
    pub fn scatter(self, scatter: Scatter) -> Self {
        Self { scatter, ..self }
    }
}

/// What is compared with another: figures of one kind of result.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// What they are figures of; only sides of one kind are compared.
    pub kind: String,
    /// The figures.
    pub figures: Vec<Figure>,
}

impl Side {
    /// Takes in further runs of the same kind: their values join those that are there. Figures
    /// that are not there yet are added. Scatter within runs is that of the first ones.
    pub fn extend(&mut self, more: Self) {
        for figure in more.figures {
            match self.figures.iter_mut().find(|own| own.name == figure.name) {
                Some(own) => own.values.extend(figure.values),
                None => self.figures.push(figure),
            }
        }
    }
}

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
    /// Whether the interval is of the scatter within the runs, because there are too few runs.
    pub within: bool,
    /// What that says.
    pub verdict: Verdict,
    /// Whether there is a verdict on the whole only where there is one on this figure.
    pub decides: bool,
    /// Runs on each side that would tell, about, where these do not.
    pub runs_needed: Option<u32>,
}

impl Compared {
    /// The verdict as people read it.
    pub fn words(&self) -> String {
        let scatter = if self.within { ", by the scatter within the runs" } else { "" };
        let needed = self.runs_needed.map(|runs| format!("; about {runs} runs a side would tell"));
        format!("{}{scatter}{}", self.verdict.words(), needed.unwrap_or_default())
    }
}

/// What a comparison says as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whole {
    /// At least one figure has regressed.
    Regression,
    /// None has, as far as it is asked.
    NoRegression,
    /// A figure that decides is unproven, or there is none.
    NoVerdict,
}

/// The verdict on all figures: any regression is one; otherwise those that decide must be proven.
pub fn whole(compared: &[Compared]) -> Whole {
    if compared.iter().any(|figure| figure.verdict == Verdict::Regressed) {
        return Whole::Regression;
    }
    let unproven =
        |figure: &Compared| matches!(figure.verdict, Verdict::Unproven | Verdict::TooWide);
    let mut deciding = compared.iter().filter(|figure| figure.decides).peekable();
    if deciding.peek().is_none() || deciding.any(unproven) {
        return Whole::NoVerdict;
    }
    Whole::NoRegression
}

/// Compares every figure that both sides have; `bound` is the share by which a figure may worsen.
pub fn compare(old: &Side, new: &Side, bound: f64) -> Vec<Compared> {
    compare_at(CONFIDENCE, old, new, bound)
}

/// The same with intervals that hold the true value with this probability.
pub fn compare_at(confidence: f64, old: &Side, new: &Side, bound: f64) -> Vec<Compared> {
    let pairs = old.figures.iter().filter_map(|before| {
        let after = new.figures.iter().find(|figure| figure.name == before.name)?;
        (!before.values.is_empty() && !after.values.is_empty()).then_some((before, after))
    });
    pairs.map(|(before, after)| compare_figure(confidence, before, after, bound)).collect()
}

fn compare_figure(confidence: f64, before: &Figure, after: &Figure, bound: f64) -> Compared {
    let few = before.values.len().min(after.values.len()) < RUNS_MIN;
    let exact = before.scatter == Scatter::None && after.scatter == Scatter::None;
    let (old, new) = (median(&before.values), median(&after.values));
    let ratio = match (few, exact) {
        (false, _) => ratio_of_medians_at(confidence, &after.values, &before.values, RESAMPLES, 1),
        (true, true) => exact_ratio(old, new),
        (true, false) => ratio_within(before, after, (old, new)),
    };
    let within = few && !exact;
    let found = match verdict(ratio, before.more_is_better, bound) {
        Verdict::NoDifference | Verdict::TooWide if within => Verdict::Unproven,
        found => found,
    };
    let runs = before.values.len().min(after.values.len());
    Compared {
        figure: before.name.clone(),
        unit: before.unit.clone(),
        more_is_better: before.more_is_better,
        old,
        new,
        ratio,
        within: within && ratio.is_some(),
        verdict: found,
        decides: before.decides,
        runs_needed: ratio.filter(|_| !few && found == Verdict::TooWide).map(|ratio| {
            // The interval narrows with the root of the runs; half of it must fit into the bound.
            let half = (ratio.high - ratio.low) / 2.0;
            let times = (half / (bound / 2.0).max(1e-6)).powi(2);
            (runs as f64 * times).ceil().clamp(runs as f64 + 1.0, 1e6) as u32
        }),
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    stats::quantile::quantile_sorted_f64(&sorted, 0.5)
}

/// Of figures without scatter.
fn exact_ratio(before: f64, after: f64) -> Option<Ratio> {
    let ratio = if before == after { 1.0 } else { after / before };
    ratio.is_finite().then_some(Ratio { ratio, low: ratio, high: ratio, pairs: 1 })
}

/// New over old with the interval that the two sides' own intervals allow: conservative, since both
/// are taken at their ends.
fn ratio_within(before: &Figure, after: &Figure, (old, new): (f64, f64)) -> Option<Ratio> {
    let (Scatter::Within(old_low, old_high), Scatter::Within(new_low, new_high)) =
        (before.scatter, after.scatter)
    else {
        return None;
    };
    let (low, high) = (new_low / old_high, new_high / old_low);
    let sound = low.is_finite() && high.is_finite() && old_low > 0.0;
    sound.then(|| Ratio { ratio: new / old, low, high, pairs: 1 })
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
        verdict(ratio_of_medians_at(CONFIDENCE, b, a, RESAMPLES, 1), more_is_better, 0.05)
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

    fn side(values: &[f64], scatter: Scatter) -> Side {
        let figure = Figure::new("p99", "ms", values.to_vec()).decides().scatter(scatter);
        Side { kind: "test".to_owned(), figures: vec![figure] }
    }

    #[track_caller]
    fn check(old: &Side, new: &Side, expected: (Verdict, Whole)) {
        let compared = compare(old, new, 0.05);
        assert_eq!((compared[0].verdict, whole(&compared)), expected, "{compared:?}");
    }

    #[test]
    fn figures_without_scatter_need_one_run() {
        let of = |value| side(&[value], Scatter::None);
        check(&of(10.0), &of(10.0), (Verdict::NoDifference, Whole::NoRegression));
        check(&of(10.0), &of(10.6), (Verdict::Regressed, Whole::Regression));
        check(&of(10.0), &of(10.4), (Verdict::Worse, Whole::NoRegression));
        check(&of(0.0), &of(0.0), (Verdict::NoDifference, Whole::NoRegression));
        check(&of(0.0), &of(1.0), (Verdict::Unproven, Whole::NoVerdict));
    }

    #[test]
    fn one_run_shows_a_collapse_by_its_own_scatter_and_no_sameness() {
        let of = |value: f64| side(&[value], Scatter::Within(value * 0.9, value * 1.1));
        check(&of(10.0), &of(16.0), (Verdict::Regressed, Whole::Regression));
        check(&of(10.0), &of(10.0), (Verdict::Unproven, Whole::NoVerdict));
        let unknown = |value: f64| side(&[value], Scatter::Unknown);
        check(&unknown(10.0), &unknown(16.0), (Verdict::Unproven, Whole::NoVerdict));
    }

    #[test]
    fn runs_join_and_tell_how_many_more_it_takes() {
        let runs = |values: &[f64]| {
            let mut all = side(&values[..1], Scatter::Unknown);
            values[1..].iter().for_each(|value| all.extend(side(&[*value], Scatter::Unknown)));
            all
        };
        let old = runs(&[100.0, 108.0, 92.0, 104.0, 96.0]);
        assert_eq!(old.figures[0].values.len(), 5);
        let new = runs(&[109.0, 91.0, 103.0, 97.0, 101.0]);
        let found = &compare(&old, &new, 0.05)[0];
        assert_eq!(found.verdict, Verdict::TooWide);
        let needed = found.runs_needed.expect("more runs would tell");
        assert!((6..200).contains(&needed), "{needed}");
        assert!(found.words().ends_with(&format!("about {needed} runs a side would tell")));
        check(&old, &old, (Verdict::NoDifference, Whole::NoRegression));
    }

    #[test]
    fn nothing_in_common_is_no_verdict() {
        let mut other = side(&[1.0], Scatter::None);
        other.figures[0].name = "p50".to_owned();
        assert_eq!(whole(&compare(&side(&[1.0], Scatter::None), &other, 0.05)), Whole::NoVerdict);
    }
}
