//! What is expected of the figures of a sweep.

use serde::{Deserialize, Serialize};

use super::{Cell, Settings};

/// `[[expect]]`: of every pair of cells that differ in these settings alone, the ratio of a figure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The expectation in words.
    pub what: String,
    /// The figure.
    pub figure: String,
    /// Settings of the one.
    pub of: Settings,
    /// Settings of the other.
    pub than: Settings,
    /// The ratio is at least this.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// And at most this.
    #[serde(default)]
    pub at_most: Option<f64>,
}

/// An expectation, compared with the figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// The expectation in words.
    pub what: String,
    /// The least and the largest ratio of all pairs, where all are numbers.
    pub ratio: Option<(f64, f64)>,
    /// The bounds.
    pub at_least: Option<f64>,
    /// See `at_least`.
    pub at_most: Option<f64>,
    /// Whether all ratios are within them.
    pub holds: bool,
}

/// Whether an expectation holds.
pub(super) fn check(expect: &Expect, cells: &[Cell]) -> Expected {
    let has = |cell: &Cell, settings: &Settings| {
        settings.iter().all(|(name, value)| cell.settings.get(name) == Some(value))
    };
    let value = |cell: &Cell| cell.figures.get(&expect.figure).copied();
    let ratio_of = |one: &Cell| {
        let mut settings = one.settings.clone();
        settings.extend(expect.than.clone());
        let other = cells.iter().find(|cell| cell.settings == settings)?;
        Some(value(one)? / value(other)?).filter(|ratio| ratio.is_finite())
    };
    let of = cells.iter().filter(|cell| has(cell, &expect.of));
    let ratios: Option<Vec<f64>> = of.map(ratio_of).collect();
    let ratio = ratios.filter(|ratios| !ratios.is_empty()).map(|ratios| {
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        (least, ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    });
    let holds = ratio.is_some_and(|(least, most)| {
        expect.at_least.is_none_or(|bound| least >= bound)
            && expect.at_most.is_none_or(|bound| most <= bound)
    });
    let Expect { what, at_least, at_most, .. } = expect.clone();
    Expected { what, ratio, at_least, at_most, holds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_that_differ_in_nothing_else_are_compared() {
        let settings = |device: &str, seed: &str| {
            Settings::from([("device".into(), device.into()), ("seed".into(), seed.into())])
        };
        let cell = |device: &str, seed: &str, mean| Cell {
            settings: settings(device, seed),
            figures: [("mean".to_owned(), mean)].into(),
        };
        let cells = [
            cell("a", "1", 30.0),
            cell("a", "2", 40.0),
            cell("b", "1", 10.0),
            cell("b", "2", 20.0),
        ];
        let mut expect = Expect {
            what: "a takes longer".to_owned(),
            figure: "mean".to_owned(),
            of: Settings::from([("device".into(), "a".into())]),
            than: Settings::from([("device".into(), "b".into())]),
            at_least: Some(2.0),
            at_most: Some(3.0),
        };
        let found = check(&expect, &cells);
        assert_eq!((found.ratio, found.holds), (Some((2.0, 3.0)), true));
        expect.at_least = Some(2.1);
        assert!(!check(&expect, &cells).holds);
        (expect.at_least, expect.at_most) = (None, Some(2.9));
        assert!(!check(&expect, &cells).holds);
        expect.figure = "absent".to_owned();
        assert!(!check(&expect, &cells).holds);
    }
}
