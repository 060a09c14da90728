//! The host stack: what stands between a database and its device.
//!
//! A logical trace (reads, writes and syncs of files) goes through a page cache ([`page_cache`])
//! and a file system ([`file_system`]); [`Stack`], made of a `stack.toml` ([`Spec`]), says what the
//! device gets for it, with the bytes by layer and cause.
//!
//! Inner crate: no I/O, no clock, no threads, no random numbers; the same input gives the same
//! bytes. Conservation is asserted in release: bytes above = bytes below - what was added by cause
//! + what memory kept.

#![forbid(unsafe_code)]

mod devices;
mod error;
pub mod file_system;
pub mod page_cache;
pub mod scheduler;
mod spec;
mod stack;
pub mod volume;

pub use devices::Part;
pub use error::Error;
pub use scheduler::Scheduled;
pub use spec::{FileLayer, Files, Spec};
pub use stack::{Account, Asked, Kept, Region, Stack, Traffic, regions};

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
