//! Transactions on another device, with other terminals or processors, from one captured run.
//!
//! [`Captured`] is what a run on a server left: its transactions, its system calls by task, the
//! requests of its disk, and the accounts of processor time. [`learn`] makes of it a system that
//! can be simulated ([`sim::transactions`]): samples of transactions, the log and its group commit,
//! background writes, and what the host adds to each I/O. [`predict`] asks that system a
//! [`Question`] on devices of any model: about a system whose caches are full, or about a run from
//! empty ones ([`Start`]). A database inside its program is learned by [`learn_embedded`]: it has
//! lanes instead of a log that sessions share.
//!
//! Two rules keep the old machine's waits out of the prediction. Processor time is that of the
//! accounts, never the wall time between two calls: waiting for a processor, a lock or a flush is
//! simulated anew. And what the host adds to a flush of the log (system call, file system,
//! interrupt, wake-up) is the captured time of the call less the time of the device, so that it is
//! neither lost nor counted twice.
//!
//! Pure: no files, no clock. Invariants: the mean processor time of the samples is that of the
//! accounts; the same capture, question and devices give the same bytes.

#![forbid(unsafe_code)]

mod answer;
mod background;
mod buffer;
mod captured;
mod embedded;
mod error;
mod goal;
mod learn;
mod log;
#[cfg(test)]
mod tests;
mod warming;

pub use answer::{
    AtGoal, HostFactors, KindAnswer, Limit, Prediction, Question, Sketch, predict, sketch,
    sketch_parts,
};
pub use captured::{
    Captured, Contended, Cpu, KindOf, KindReads, Start, System, Transaction, switching,
};
pub use embedded::{Embedded, learn_embedded};
pub use error::Error;
pub use goal::Goal;
pub use learn::{Learned, calibrate, learn, waits_from_ns};

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
