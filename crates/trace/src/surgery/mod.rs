//! Cutting, moving and joining traces.
//!
//! Each operation is a pure function from traces to a trace and appends how it was made to
//! `origin.facts`, as `step.01`, `step.02` and so on. All of them keep the order of the requests
//! and, but for what a slice leaves out, their number and bytes.
//!
//! | operation | changes | rule |
//! |---|---|---|
//! | [`fn@slice`] | which requests | by time, stream, region; requests are clipped at its borders |
//! | [`remap`] | addresses | compact, scale or modulo, onto a device of a given size |
//! | [`scale_time`] | times | all by one factor; measured service times stay |
//! | [`merge`] | joins | by time; addresses stacked, shifted or shared |
//! | [`anonymise`] | names, addresses | extents in a random order; reuse and sequential runs stay |
//!
//! Tests: tables, and properties over arbitrary traces beside each operation.

mod anonymise;
mod chunks;
mod merge;
mod remap;
mod scale;
mod slice;
#[cfg(test)]
mod testing;

use thiserror::Error;

pub use anonymise::anonymise;
pub use merge::{Part, Placement, merge};
pub use remap::{Rule, remap};
pub use scale::{factor_for_rate, scale_time};
pub use slice::{Slice, slice};

use crate::{Malformed, Origin};

/// Why an operation cannot be done.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A trace that breaks its invariants.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A slice names a stream that the trace does not have.
    #[error("no stream is called '{name}'; the trace has {known}")]
    UnknownStream {
        /// The name.
        name: String,
        /// The names of its streams.
        known: String,
    },
    /// A time span or a region that ends before it begins.
    #[error("the {what} ends where it begins, or before")]
    EmptyRange {
        /// Which.
        what: &'static str,
    },
    /// The requests do not fit on a device of this size.
    #[error("{needed} bytes do not fit on a device of {capacity} bytes")]
    TooSmall {
        /// Bytes that the requests need under the rule.
        needed: u64,
        /// Size of the device, bytes.
        capacity: u64,
    },
    /// A factor that is not a positive number.
    #[error("times cannot be multiplied by {factor}")]
    BadFactor {
        /// The factor.
        factor: f64,
    },
    /// A rate cannot be reached by scaling.
    #[error("a trace whose requests are all due at once has no rate to scale")]
    NoRate,
    /// A time or an address beyond 64 bits.
    #[error("the {what} of request {index} would exceed 64 bits")]
    Overflow {
        /// Which.
        what: &'static str,
        /// The request, counted from 0.
        index: usize,
    },
    /// More streams, actors or transactions than can be numbered.
    #[error("together the traces have more {what} than can be numbered")]
    TooMany {
        /// What.
        what: &'static str,
    },
    /// Nothing to merge.
    #[error("there is no trace to merge")]
    NoTraces,
}

impl events::Hint for Error {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::UnknownStream { .. } => "see `wearmark trace info` for the names",
            Self::EmptyRange { .. } => "give the end behind the start, as in 10s..20s",
            Self::TooSmall { .. } => "take a larger device, or the rule modulo",
            Self::BadFactor { .. } => "give a positive number: 0.5 plays a trace twice as fast",
            Self::NoRate => "give a factor or another trace",
            Self::Overflow { .. } => "give smaller offsets or a smaller factor",
            Self::TooMany { .. } => "merge fewer traces at a time",
            Self::NoTraces => "name at least one trace",
            Self::Malformed(_) => "sort the requests by due time and name every stream",
        };
        Some(hint.to_owned())
    }
}

/// The result of an operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Appends how a trace was made, numbered behind the steps before.
pub fn note_step(origin: &mut Origin, step: String) {
    let number = origin.facts.keys().filter_map(|key| key.strip_prefix("step.")?.parse().ok());
    let number = number.max().unwrap_or(0u32) + 1;
    origin.facts.insert(format!("step.{number:02}"), step);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_in_their_order() {
        let mut origin = Origin::default();
        origin.facts.insert("step.x".to_owned(), "not a step".to_owned());
        for index in 1..=11 {
            note_step(&mut origin, format!("the step {index}"));
        }
        let steps: Vec<_> = origin.facts.values().map(String::as_str).take(11).collect();
        assert_eq!((steps[0], steps[10]), ("the step 1", "the step 11"));
        assert!(origin.facts.contains_key("step.09") && origin.facts.contains_key("step.11"));
    }
}
