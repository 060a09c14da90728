//! What every fuzz target does with its bytes; see `docs/guide/fuzzing.md`. The ordinary tests
//! include these files and run them on the seeds.

#![forbid(unsafe_code)]

pub mod dbms;
pub mod emulate;
mod formats;
pub mod profile;
pub mod study;

pub use self::formats::check;
