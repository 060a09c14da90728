//! A trace of I/O requests: the columns, the streams they belong to, and where it came from.
//!
//! A [`Trace`] is what everything downstream takes: simulation, replay and characterisation. It is
//! held in columns (structure of arrays), because every consumer walks one or two of them over
//! millions of requests. Files of traces are read and written by the crate `formats`.
//!
//! Invariants, checked by [`Trace::validate`]: all columns have the same length, `due` never falls,
//! every `stream` names an entry of the stream table, `offset + len` fits in 64 bits.

#![forbid(unsafe_code)]

mod columns;
pub mod generate;
pub mod imitate;
pub mod info;
pub mod known;
mod parts;
pub mod recipe;
mod request;
pub mod surgery;

pub use columns::{Chains, Malformed, Origin, Stream, Trace};
pub use parts::{Outline, Parts};
pub use request::{Op, Request};

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
