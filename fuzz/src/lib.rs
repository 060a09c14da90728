//! Fuzzing of the trace readers; see `docs/guide/fuzzing.md`.

#![forbid(unsafe_code)]

mod entry;

pub use entry::check;
