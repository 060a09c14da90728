//! The quantities every other crate speaks in, and the one parser for how people write them.
//!
//! [`Nanos`], [`Bytes`], [`Lba`] and [`Rate`] are newtypes so that a time never meets a size by
//! accident. Text forms are those of storage people: `4KiB`, `1MiB`, `16MB`, `250us`, `10s`,
//! `25k/s`. Binary suffixes (`KiB`) are powers of 1024, decimal ones (`kB`, `MB`) powers of 1000;
//! a bare number is bytes or nanoseconds.
//!
//! Invariants: parsing never panics, and every value prints as text that parses back to itself
//! (property test below).

#![forbid(unsafe_code)]

mod parse;
mod quantity;

pub use parse::ParseError;
pub use quantity::{Bytes, Lba, Nanos, Rate};

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
