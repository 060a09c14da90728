//! What a reading reports beside the trace: bad lines, order, what was left out, warnings.

use events::Warning;
use serde::{Deserialize, Serialize};

use super::cause::Place;

/// Stage name of the warnings raised here.
pub const STAGE: &str = "trace";
/// Bad records of a lenient reading that are kept with their cause.
pub const SHOWN_BAD: usize = 10;

/// A record that a lenient reading left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadRecord {
    /// Where it is.
    pub place: Place,
    /// What is wrong with it.
    pub cause: String,
}

/// A count of something in the input that did not become a request of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// What, a few words, such as `merges` or `completions of requests issued before the trace`.
    pub what: String,
    /// How many.
    pub count: u64,
}

/// What there is to say about a reading.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Notes {
    /// Bad records left out; only a lenient reading goes past the first.
    pub bad: u64,
    /// The first [`SHOWN_BAD`] of them.
    pub bad_first: Vec<BadRecord>,
    /// Requests that stood behind a later one. The trace is sorted by time; equals keep their
    /// order.
    pub out_of_order: u64,
    /// What else the input held, in the order in which decoders counted it.
    pub counted: Vec<Counted>,
    /// How fields were understood where the format leaves a choice: `time: ns`, `op 1: read`.
    pub understood: Vec<String>,
    /// What is suspect.
    pub warnings: Vec<Warning>,
}

impl Notes {
    /// Adds to a count; counts of zero are not kept.
    pub fn count(&mut self, what: &str, count: u64) {
        if count == 0 {
            return;
        }
        match self.counted.iter_mut().find(|known| known.what == what) {
            Some(known) => known.count += count,
            None => self.counted.push(Counted { what: what.to_owned(), count }),
        }
    }

    /// Adds a warning.
    pub fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    /// Takes note of a bad record.
    pub(super) fn bad(&mut self, place: Place, cause: String) {
        self.bad += 1;
        if self.bad_first.len() < SHOWN_BAD {
            self.bad_first.push(BadRecord { place, cause });
        }
    }
}

/// What a writer's format could not hold, counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses(Vec<Counted>);

impl Losses {
    /// Counts one.
    pub(super) fn add(&mut self, what: &'static str) {
        match self.0.iter_mut().find(|known| known.what == what) {
            Some(known) => known.count += 1,
            None => self.0.push(Counted { what: what.to_owned(), count: 1 }),
        }
    }

    /// All of them.
    pub(super) fn into_counted(self) -> Vec<Counted> {
        self.0
    }
}
