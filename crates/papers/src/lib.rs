//! Five papers, figure by figure: what they print beside what wearmark gives for the same setup.
//!
//! - [`data`]: the printed figures, one file per paper in `papers/`: numbers and where they stand.
//! - [`Experiment`]: a simulation or an arithmetic that gives some of them; a module per paper.
//! - [`run`]: all experiments, on all processors, in one order.
//! - [`judge`]: differences, directions, and the sentence where there is no comparison.
//! - [`page`]: a section per paper.
//!
//! The split: an entry with `calibrates` was used to make a profile, one with the role `input` to
//! set an experiment up; neither is counted as a prediction. Invariants, tested: every outcome is
//! compared or excluded with a sentence, and none twice; profiles cite no figure of a paper that is
//! then counted as predicted; the same seed gives the same rows for any number of threads.

#![forbid(unsafe_code)]

mod arrays;
pub mod data;
mod drive;
pub mod judge;
mod lee2008;
mod load;
mod oi2007;
pub mod page;
mod petrov2010;
pub mod run;
mod wang2010;
mod wang2011;

#[cfg(test)]
mod tests;

use serde::Serialize;

pub use data::{Entry, Error, Paper};

/// How long experiments are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// A few requests on a device that costs nothing to make: which entries are given, and no
    /// figure that means anything.
    Names,
    /// A twentieth of the requests: shapes of the results, not their figures.
    Quick,
    /// What the page shows.
    Full,
}

impl Effort {
    /// `full` requests, or as many as a quick run has of them.
    pub fn count(self, full: u64) -> u64 {
        match self {
            Self::Names => 60,
            Self::Quick => (full / 20).max(200),
            Self::Full => full,
        }
    }
}

/// What wearmark gives for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ours {
    /// A figure in the unit of the entry.
    Value(f64),
    /// Whether the statement of the entry holds.
    Holds(bool),
}

/// What an experiment found for one entry.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// The entry.
    pub id: String,
    /// What came of it.
    pub ours: Ours,
    /// What was simulated or computed, with the figures of a statement.
    pub how: String,
}

impl Found {
    pub(crate) fn value(id: impl Into<String>, value: f64, how: impl Into<String>) -> Self {
        Self { id: id.into(), ours: Ours::Value(value), how: how.into() }
    }

    pub(crate) fn holds(id: impl Into<String>, holds: bool, how: impl Into<String>) -> Self {
        Self { id: id.into(), ours: Ours::Holds(holds), how: how.into() }
    }
}

/// Gives some of the figures of a paper.
#[derive(Clone, Copy)]
pub struct Experiment {
    /// Name of the paper.
    pub paper: &'static str,
    /// Its own.
    pub name: &'static str,
    /// Runs it. Deterministic.
    pub run: fn(&Paper, Effort) -> Vec<Found>,
}

/// All of them, those that take longest first within a paper.
pub fn experiments() -> Vec<Experiment> {
    [
        wang2011::EXPERIMENTS,
        wang2010::EXPERIMENTS,
        petrov2010::EXPERIMENTS,
        lee2008::EXPERIMENTS,
        oi2007::EXPERIMENTS,
    ]
    .concat()
}
