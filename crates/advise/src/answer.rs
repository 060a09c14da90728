//! The form of every answer.

use serde::{Deserialize, Serialize};

use crate::Interval;

/// A figure with what it rests on, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// What was asked, as a noun: `years until the rated bytes are written`.
    pub question: String,
    /// The figure; none where it cannot be told.
    pub figure: Option<Interval>,
    /// Its unit.
    pub unit: String,
    /// Why it cannot be told from what was given; empty where it can.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cannot_be_told: String,
    /// The state that the figure holds for, a clause each.
    pub holds_for: Vec<String>,
    /// What would change it, a sentence each.
    pub changed_by: Vec<String>,
}

impl Answer {
    /// A figure that is told. One that is no number is not: it becomes an answer that cannot be.
    pub fn told(question: impl Into<String>, figure: Interval, unit: impl Into<String>) -> Self {
        let (question, unit) = (question.into(), unit.into());
        if !figure.is_finite() {
            return Self::untold(question, unit, "the figures given lead to no number");
        }
        Self {
            question,
            figure: Some(figure),
            unit,
            cannot_be_told: String::new(),
            holds_for: Vec::new(),
            changed_by: Vec::new(),
        }
    }

    /// What cannot be told, and why.
    pub fn untold(
        question: impl Into<String>,
        unit: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self {
            question: question.into(),
            figure: None,
            unit: unit.into(),
            cannot_be_told: why.into(),
            holds_for: Vec::new(),
            changed_by: Vec::new(),
        }
    }

    /// Adds a state that it holds for.
    #[must_use]
    pub fn holding(mut self, state: impl Into<String>) -> Self {
        self.holds_for.push(state.into());
        self
    }

    /// Adds what would change it.
    #[must_use]
    pub fn changed(mut self, by: impl Into<String>) -> Self {
        self.changed_by.push(by.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_not_told() {
        for value in [f64::NAN, f64::INFINITY] {
            let answer = Answer::told("years", Interval::exact(value), "years");
            assert!(answer.figure.is_none() && !answer.cannot_be_told.is_empty(), "{answer:?}");
        }
    }
}
