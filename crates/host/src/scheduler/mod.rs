//! The block layer between a file system and its device: merging, plugging, a scheduler, tags.
//!
//! [`Scheduled`] is a [`model::Device`] over a device, in virtual time. A request that arrives is
//! merged with a neighbour that waits, or waits for one of `nr_requests` slots, then for the plug,
//! then for the scheduler, which chooses one whenever one of the `depth` tags of the device is
//! free. With write-back throttling buffered writes wait before all that. A stream of the trace is
//! a process. Reads are synchronous, and writes where the settings say so.
//!
//! A flush drains, as the barriers of kernels before 2.6.37 did and as a journal that waits for its
//! writes makes of a flush through blk-mq: it waits for what arrived before it, goes alone, and
//! holds what arrives behind it.
//!
//! What is due at the same moment is one batch, as a task with a plug submits it: it is merged
//! first and sorted then. At one moment completions come first, then timers, then arrivals.
//!
//! Times are ns where the kernels count ticks.
//!
//! Not modelled: merging two waiting entries once a third has closed the gap; priorities beside
//! `priorities`; control groups; the processor time of a scheduler.
//!
//! Invariants, asserted in release: requests in = completions out; the bytes of what was merged add
//! up to those of the request issued; clocks never run back.

pub mod anticipatory;
mod below;
pub mod bfq;
pub mod cfq;
pub mod deadline;
mod device;
mod elevator;
mod front;
mod habit;
pub mod kyber;
mod policy;
mod pool;
mod settings;
pub mod throttle;
mod time;

pub use device::Scheduled;
pub use settings::{Kind, Plugging, Settings};
