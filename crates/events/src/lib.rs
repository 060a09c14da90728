//! What a stage tells its user while it runs, and how the user tells it to stop.
//!
//! Every stage (probe, oltp, replay, ...) reports through one [`Sink`]: a [`Event::Plan`] first,
//! then progress, samples and warnings, then [`Event::Done`]. The terminal view, `events.jsonl` of
//! a run directory and the tests all consume this one stream, so a live view is the report of a run
//! so far. This crate holds the shapes only; writing and drawing them belongs to `study` and
//! `wearmark`.
//!
//! Invariants: `done` of a stage's progress never falls; a stage that was cancelled still sends
//! `Done` with [`Ending::Interrupted`], after it has saved what it has.

#![forbid(unsafe_code)]

mod live;

use serde::{Deserialize, Serialize};

pub use live::{Completed, LiveTimes};

/// A text from outside (a server's message, a key of a user's file) as part of a one-line error:
/// what would end the line or steer the terminal becomes a space.
pub fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// One line of the event stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// What a stage is going to do, before it does anything.
    Plan {
        /// Stage name, such as `probe`.
        stage: String,
        /// Its steps in order.
        steps: Vec<Step>,
    },
    /// How far a stage is.
    Progress {
        /// Stage name.
        stage: String,
        /// Share done, 0 to 1; never falls within a stage.
        done: f64,
        /// What it does now, a few words.
        doing: String,
        /// Expected seconds to the end of the stage, where known.
        eta_s: Option<f64>,
    },
    /// One point of a time series worth watching live.
    Sample {
        /// Stage name.
        stage: String,
        /// Series name, units last: `iops`, `latency_us_p99`, `new_orders_per_min`.
        series: String,
        /// Seconds since the stage started.
        at_s: f64,
        /// The value.
        value: f64,
    },
    /// Requests that completed in a short interval, mostly a second. An interval that was asked
    /// for early ends with the stage; none completes in two.
    Completions {
        /// Stage name.
        stage: String,
        /// The device, where a stage has several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<String>,
        /// End of the interval, seconds since the stage started.
        at_s: f64,
        /// Its length, seconds.
        span_s: f64,
        /// Requests that wait or are worked at, at its end.
        in_flight: u64,
        /// By class; those without a request are left out.
        classes: Vec<Completed>,
    },
    /// Something makes a result suspect. Kept with the result and shown beside its figures.
    Warning(Warning),
    /// The stage ended.
    Done {
        /// Stage name.
        stage: String,
        /// Seconds it took.
        elapsed_s: f64,
        /// How it ended.
        ending: Ending,
    },
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Name, unique within the plan.
    pub name: String,
    /// Expected seconds.
    pub expected_s: f64,
    /// Bytes that it will write to the target (wear).
    pub writes_bytes: u64,
}

/// How a stage ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Everything planned was done.
    Complete,
    /// The user stopped it; what was done is kept.
    Interrupted,
    /// An error ended it; the error is reported by its own path.
    Failed,
}

/// Why a result is suspect, for machines (`code`) and people (`message`, `hint`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable identifier in snake case; `docs/reference/warnings.md` lists them all.
    pub code: String,
    /// Stage that raised it.
    pub stage: String,
    /// What is suspect, one sentence.
    pub message: String,
    /// What the user can do about it, one sentence; may be empty.
    pub hint: String,
}

impl Warning {
    /// A warning without a hint.
    pub fn new(stage: &str, code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            stage: stage.to_owned(),
            message: message.into(),
            hint: String::new(),
        }
    }

    /// The same warning with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

/// Where a stage's events go, and where it asks whether to stop.
///
/// Stages call [`Sink::cancelled`] at least ten times a second of work, save what they have when it
/// turns true and return normally with what was done.
pub trait Sink: Sync {
    /// Takes one event.
    fn emit(&self, event: Event);

    /// Whether the user asked to stop.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Drops every event; never cancels. For library users who only want the result.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Sink for Quiet {
    fn emit(&self, _event: Event) {}
}

/// An error that can tell the user what to do next; printed as the `hint:` line.
pub trait Hint {
    /// The next step, one sentence, with the exact command or setting where there is one.
    fn hint(&self) -> Option<String>;
}

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
