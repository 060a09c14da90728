//! A trace of I/O requests: the columns, the streams they belong to, and where it came from.
//!
//! A [`Trace`] is what everything downstream takes: simulation, replay and characterisation. It is
//! held in columns (structure of arrays), because every consumer walks one or two of them over
//! millions of requests. `formats/` holds one file per on-disk format.
//!
//! Invariants, checked by [`Trace::validate`]: all columns have the same length, `due` never falls,
//! every `stream` names an entry of the stream table, `offset + len` fits in 64 bits.

#![deny(unsafe_code)]

mod columns;
mod error;
pub mod formats;
pub mod generate;
mod huge;
pub mod imitate;
pub mod info;
pub mod known;
mod request;
pub mod surgery;

pub use columns::{Chains, Malformed, Origin, Stream, Trace};
pub use error::{Error, Result};
pub use request::{Op, Request};
