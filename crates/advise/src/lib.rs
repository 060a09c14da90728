//! Advice: what to buy, how long it lasts, what if. Pure arithmetic over figures that somebody
//! measured, simulated or stated.
//!
//! Every answer is an [`Answer`]: the figure with its [`Interval`], the state that it holds for,
//! what would change it, or why it cannot be told. Nothing here knows a device model or a database;
//! callers bring the figures and say what they rest on.
//!
//! - [`doubt`]: the interval of a predicted figure, from what the prediction rests on.
//! - [`speed_up`]: Amdahl's law; relaxed durability and what it may lose.
//! - [`balance`]: devices per processor of a balanced system (Gray, Shenoy 2000).
//! - [`endurance`]: years until rated bytes or erases are used up, by file class.
//! - [`prices`], [`choice`]: cost per transaction at a response-time limit, who dominates whom.
//! - [`memory`]: break-even of memory against storage (Gray, Putzolu 1987).
//! - [`credits`], [`space`]: when the burst ends, when the disk is full.
//!
//! Invariants: an interval holds its value; no result is NaN or infinite (it is an error or it
//! cannot be told); the same figures give the same answer. Tested against closed forms and against
//! the printed tables of the papers that are cited.

#![forbid(unsafe_code)]

mod answer;
pub mod balance;
pub mod choice;
pub mod credits;
pub mod doubt;
pub mod endurance;
mod error;
mod interval;
pub mod memory;
pub mod prices;
pub mod space;
pub mod speed_up;

pub use answer::Answer;
pub use error::Error;
pub use interval::Interval;

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
