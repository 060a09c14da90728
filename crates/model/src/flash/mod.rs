//! Flash: what an SSD does with a request, page by page, down to the cells.
//!
//! | room | decides |
//! |---|---|
//! | `Geometry` | channels, chips, dies, planes, blocks, pages |
//! | `Timing` | how long cells and bus take |
//! | [`Nand`] | when dies and channels are free: the timelines |
//! | [`mapping`] | where a logical page is: the translation layer |
//! | [`allocation`] | which plane takes a page that is written |
//! | [`gc`] | which block is cleaned, and when |
//! | `StreamParameters` | which data are kept in blocks of their own |
//! | [`wear`] | which block is opened next, when cold data move, how long it lives |
//! | `ZoneParameters`, [`HostLog`] | the host interface of zones, and a host's log above it |
//! | `SlcParameters` | blocks that are written fast first and folded later |
//! | [`Flash`] | cuts requests into pages; the [`crate::Device`] |
//! | [`snapshot`] | the whole state as bytes |
//!
//! Each room is exchanged by a line of a profile (`kind = "flash"`) and by a type parameter in
//! code, so that nothing is dispatched inside the loop over the requests. Requests are served in
//! the order of their arrival: no later one changes when an earlier one completes.
//!
//! **Over-provisioning** is stated as the share of the raw capacity that is not addressable,
//! `1 - logical / raw`; the literature also uses `raw / logical - 1`
//! (`FlashParameters::spare_over_logical`).
//!
//! Invariants: those of the crate and its components; requests in = completions out; programs =
//! host pages + moved pages; no page is lost or read stale. Tested by properties against a slow
//! oracle, by closed forms of write amplification, and by golden latencies (`tests/it/flash`).

pub mod allocation;
mod blocks;
mod build;
mod channel;
mod counts;
mod device;
pub mod event;
pub mod gc;
mod host_log;
pub mod mapping;
mod nand;
pub mod reference;
pub mod snapshot;
mod streams;
pub mod theory;
pub mod wear;

pub use blocks::{Block, BlockState, Blocks};
pub use build::{build, preconditioned};
pub use counts::{Counts, ZoneCounts};
pub use device::{Flash, FlashDevice};
pub use event::EventFlash;
pub use host_log::HostLog;
pub use mapping::{Mapping, PageMapped, PageRead, PageWrite};
pub use nand::{Nand, PageAt};
pub use streams::StreamCounts;
pub use wear::Wear;
