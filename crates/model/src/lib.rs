//! Device models: given a request and the time it arrives, when does it complete?
//!
//! Every model answers through [`Device`]. A model keeps *resource timelines* (when is each
//! parallel unit, bus or cache slot free next) instead of an event queue wherever no later arrival
//! can change the completion of an earlier one; that is what makes tens of millions of requests per
//! second possible. Where one can, a model is [`Queued`] and runs an event queue of its own. Models
//! compose: a write-back cache is a `Device` over a `Device`.
//!
//! Invariants, property-tested for every model: a completion is never before its submission; the
//! same seed and requests give the same completions; submissions come in non-decreasing time.

#![forbid(unsafe_code)]

mod build;
mod device;
pub mod flash;
pub mod hdd;
pub mod limits;
pub mod linear;
pub mod observe;
pub mod queued;
pub mod ram;
pub mod read_cache;
mod samplers;
mod slots;
pub mod snapshot;
pub mod write_cache;

pub use build::device;
pub use device::{Counter, Device};
pub use hdd::Hdd;
pub use limits::Limits;
pub use linear::Linear;
pub use queued::Queued;
pub use ram::Ram;
pub use read_cache::ReadCache;
pub use snapshot::SnapshotError;
pub use write_cache::{QueuedCache, WriteCache};

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
