//! The virtual-time engine: a trace or a synthetic load against a device model.
//!
//! - [`replay`] and [`responses`], open loop: every request is submitted when it is due, whatever
//!   became of the ones before. This is what a replay on the real device does too, so the two
//!   response-time distributions compare (the error ratio of Wang et al. 2010).
//! - [`closed_loop`]: the actors of a captured run (connections, worker threads) wait for their
//!   I/O and then spend the CPU time that the capture shows between two requests. Faster I/O ends
//!   the run sooner: this answers "how many transactions per minute on another device" (Wang et
//!   al. 2011, figure 6).
//! - [`closed_loop_depth`]: a fixed number of outstanding synthetic requests, the papers' micro
//!   benchmark in virtual time.
//! - [`transactions`]: terminals, processors, locks, a log with group commit, background tasks and
//!   devices; transactions are drawn from captured samples, and everything that they wait for is
//!   simulated.
//! - [`replay_with`] also says where the time of the requests went, and [`timeline`] what the
//!   device did meanwhile.
//!
//! Nothing here reads a clock, starts a thread or draws unseeded randomness. Invariants, tested:
//! requests in = completions out; the same device, seed and trace give the same outcome, byte for
//! byte; virtual time never runs back.

#![forbid(unsafe_code)]

mod breakdown;
mod closed_loop;
mod counters;
mod error;
mod outcome;
mod replay;
mod synthetic;
pub mod timeline;
pub mod transactions;
mod users;
mod wear;

pub use breakdown::{Breakdown, MeanPath, Part};
pub use closed_loop::{ClosedOutcome, closed_loop, closed_loop_times};
pub use error::Error;
pub use outcome::{ClassOutcome, Interval, Outcome};
pub use replay::{
    Position, Watched, check, check_extent, replay, replay_parts, replay_with, responses,
    responses_watched,
};
pub use synthetic::{DepthOutcome, Synthetic, closed_loop_depth, closed_loop_span};
pub use wear::{FlashMark, WearMark};

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
