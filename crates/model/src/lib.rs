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

mod device;
mod error;
pub mod flash;
pub mod hdd;
pub mod linear;
pub mod observe;
pub mod profile;
mod quantiles;
pub mod queued;
pub mod ram;
pub mod read_cache;
mod slots;
pub mod snapshot;
pub mod write_cache;

pub use device::{Counter, Device};
pub use error::Error;
pub use hdd::{Hdd, HddParameters};
pub use linear::{Linear, LinearParameters};
pub use profile::Profile;
pub use quantiles::Quantiles;
pub use queued::Queued;
pub use ram::{Ram, RamParameters};
pub use read_cache::{ReadCache, ReadCacheParameters, ReadPolicy};
pub use snapshot::SnapshotError;
pub use write_cache::{QueuedCache, WriteCache, WriteCacheParameters};
