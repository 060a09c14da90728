//! Differences, directions, and what is not compared.

use serde::Serialize;

use crate::data::{Bound, Role};
use crate::{Entry, Experiment, Found, Ours, Paper};

/// A difference above this needs the name of what is missing.
pub const LARGE: f64 = 0.3;

/// How an entry came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A figure beside a figure.
    Compared,
    /// A statement, a bound or a range that holds.
    Holds,
    /// One that does not.
    Fails,
    /// Made from this figure: given back, not predicted.
    GivenBack,
    /// Not compared, with the reason.
    NotCompared,
    /// Its experiment was not run.
    NotRun,
}

/// An entry beside ours.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The entry.
    pub entry: Entry,
    /// What wearmark gives.
    pub ours: Option<Ours>,
    /// Ours over printed, less 1, of two figures.
    pub difference: Option<f64>,
    /// How it came out.
    pub verdict: Verdict,
    /// What was simulated.
    pub how: String,
    /// Why it differs, or is not compared.
    pub why: String,
}

/// A paper's outcomes.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The paper, without its entries.
    pub paper: String,
    /// Its authors and year in short.
    pub title: String,
    /// How it is cited.
    pub cite: String,
    /// Inputs and context, which are not compared.
    pub inputs: usize,
    /// The outcomes, in the order of the paper.
    pub rows: Vec<Row>,
    /// In short.
    pub summary: Summary,
}

/// A comparison in short.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Outcomes.
    pub outcomes: usize,
    /// Figures compared.
    pub compared: usize,
    /// Median of their differences, without sign.
    pub median_difference: Option<f64>,
    /// Differences above [`LARGE`], each with its reason.
    pub large: usize,
    /// Statements, bounds and ranges.
    pub statements: usize,
    /// Those that hold.
    pub hold: usize,
    /// Made from, and given back.
    pub given_back: usize,
    /// Not compared, each with its reason.
    pub not_compared: usize,
    /// Of experiments that were not run.
    pub not_run: usize,
}

/// A paper beside what its experiments found.
pub fn compare(paper: &Paper, results: &[(Experiment, Vec<Found>)]) -> Comparison {
    let own = results.iter().filter(|(experiment, _)| experiment.paper == paper.name);
    let found: Vec<&Found> = own.flat_map(|(_, found)| found).collect();
    let outcomes = paper.entry.iter().filter(|entry| entry.role == Role::Outcome);
    let rows: Vec<Row> = outcomes
        .map(|entry| row(entry, found.iter().find(|found| found.id == entry.id).copied()))
        .collect();
    Comparison {
        paper: paper.name.clone(),
        title: paper.short(),
        cite: paper.cite(),
        inputs: paper.entry.len() - rows.len(),
        summary: summary(&rows),
        rows,
    }
}

fn row(entry: &Entry, found: Option<&Found>) -> Row {
    let made = |verdict, difference, why: &str| Row {
        entry: entry.clone(),
        ours: found.map(|found| found.ours),
        difference,
        verdict,
        how: found.map_or_else(String::new, |found| found.how.clone()),
        why: why.to_owned(),
    };
    let Some(found) = found else {
        if entry.not_compared.is_empty() {
            return made(Verdict::NotRun, None, "its experiment was not run");
        }
        return made(Verdict::NotCompared, None, &entry.not_compared);
    };
    let held = |holds: bool| if holds { Verdict::Holds } else { Verdict::Fails };
    let (verdict, difference) = match (found.ours, entry.number(), entry.range()) {
        (Ours::Holds(holds), ..) => (held(holds), None),
        (Ours::Value(ours), Some(printed), _) => match entry.bound {
            Some(Bound::AtLeast) => (held(ours >= printed), None),
            Some(Bound::AtMost) => (held(ours <= printed), None),
            None if printed == 0.0 => (held(ours.abs() < 0.5), None),
            None => (Verdict::Compared, Some(ours / printed - 1.0)),
        },
        (Ours::Value(ours), None, Some((low, high))) => (held((low..=high).contains(&ours)), None),
        (Ours::Value(_), None, None) => (Verdict::Fails, None),
    };
    let verdict = if entry.calibrates.is_empty() { verdict } else { Verdict::GivenBack };
    let is_far = difference.is_some_and(|difference: f64| difference.abs() > LARGE);
    let needs_reason = is_far || verdict == Verdict::Fails || found.ours == Ours::Holds(false);
    made(verdict, difference, if needs_reason { &entry.because } else { "" })
}

fn summary(rows: &[Row]) -> Summary {
    let count = |verdict: Verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let compared = rows.iter().filter(|row| row.verdict == Verdict::Compared);
    let mut differences: Vec<f64> =
        compared.filter_map(|row| row.difference).map(f64::abs).collect();
    differences.sort_by(f64::total_cmp);
    let median = |sorted: &[f64]| {
        let (low, high) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
        Some(f64::midpoint(sorted[low], sorted[high]))
    };
    Summary {
        outcomes: rows.len(),
        compared: differences.len(),
        median_difference: median(&differences),
        large: differences.iter().filter(|difference| **difference > LARGE).count(),
        statements: count(Verdict::Holds) + count(Verdict::Fails),
        hold: count(Verdict::Holds),
        given_back: count(Verdict::GivenBack),
        not_compared: count(Verdict::NotCompared),
        not_run: count(Verdict::NotRun),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(value: &str, more: &str) -> Entry {
        let text = format!(
            "id = \"x\"\nrole = \"outcome\"\nvalue = {value}\nplace = \"Table 1\"\n\
             provenance = \"printed\"\nbecause = \"the reason\"\n{more}"
        );
        toml::from_str(&text).expect("an entry")
    }

    #[test]
    fn figures_bounds_ranges_and_statements_are_judged() {
        let value = |ours| Some(Found::value("x", ours, "how"));
        let holds = |holds| Some(Found::holds("x", holds, "how"));
        let least = "bound = \"at_least\"";
        let most = "bound = \"at_most\"";
        let made = "calibrates = [\"a\"]";
        let none = "not_compared = \"the reason\"";
        for (printed, more, found, verdict, difference, why) in [
            ("100", "", value(120.0), Verdict::Compared, Some(0.2), ""),
            ("100", "", value(60.0), Verdict::Compared, Some(-0.4), "the reason"),
            ("100", least, value(101.0), Verdict::Holds, None, ""),
            ("100", least, value(99.0), Verdict::Fails, None, "the reason"),
            ("100", most, value(99.0), Verdict::Holds, None, ""),
            ("[1, 2]", "", value(1.5), Verdict::Holds, None, ""),
            ("[1, 2]", "", value(2.5), Verdict::Fails, None, "the reason"),
            ("\"faster\"", "", holds(true), Verdict::Holds, None, ""),
            ("\"faster\"", "", holds(false), Verdict::Fails, None, "the reason"),
            ("100", made, value(100.0), Verdict::GivenBack, Some(0.0), ""),
            ("\"faster\"", made, holds(false), Verdict::GivenBack, None, "the reason"),
            ("100", none, None, Verdict::NotCompared, None, "the reason"),
            ("100", "", None, Verdict::NotRun, None, "its experiment was not run"),
        ] {
            let row = row(&entry(printed, more), found.as_ref());
            assert_eq!((row.verdict, row.why.as_str()), (verdict, why), "{printed} {more}");
            let same = match (row.difference, difference) {
                (Some(own), Some(other)) => (own - other).abs() < 1e-12,
                (own, other) => own == other,
            };
            assert!(same, "{printed} {more}: {:?}", row.difference);
        }
    }
}
