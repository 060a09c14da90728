//! Flash: what an SSD does with a request, page by page, down to the cells.
//!
//! | room | decides |
//! |---|---|
//! | [`Geometry`] | channels, chips, dies, planes, blocks, pages |
//! | [`Timing`] | how long cells and bus take |
//! | [`Nand`] | when dies and channels are free: the timelines |
//! | [`mapping`] | where a logical page is: the translation layer |
//! | [`allocation`] | which plane takes a page that is written |
//! | [`gc`] | which block is cleaned, and when |
//! | [`StreamParameters`] | which data are kept in blocks of their own |
//! | [`wear`] | which block is opened next, when cold data move, how long it lives |
//! | [`ZoneParameters`], [`HostLog`] | the host interface of zones, and a host's log above it |
//! | [`SlcParameters`] | blocks that are written fast first and folded later |
//! | [`Flash`] | cuts requests into pages; the [`crate::Device`] |
//! | [`snapshot`] | the whole state as bytes |
//!
//! Each room is exchanged by a line of a profile (`kind = "flash"`) and by a type parameter in
//! code, so that nothing is dispatched inside the loop over the requests. Requests are served in
//! the order of their arrival: no later one changes when an earlier one completes.
//!
//! **Over-provisioning** is stated as the share of the raw capacity that is not addressable,
//! `1 - logical / raw`; the literature also uses `raw / logical - 1` ([`FlashParameters::spare_over_logical`]).
//!
//! Invariants: those of the crate and of the rooms; requests in = completions out; programs = host
//! pages + moved pages; no page is lost or read stale. Tested by properties against a slow oracle,
//! by closed forms of write amplification, and by golden latencies (`tests/it/flash`).

pub mod allocation;
mod blocks;
mod build;
mod channel;
mod counts;
mod device;
mod error;
pub mod event;
pub mod gc;
mod geometry;
mod host_log;
pub mod mapping;
mod nand;
mod parameters;
pub mod reference;
mod slc;
pub mod snapshot;
mod streams;
pub mod theory;
mod timing;
pub mod wear;
mod zones;

pub use allocation::{AllocationScheme, Order};
pub use blocks::{Block, BlockState, Blocks};
pub use build::build;
pub use counts::Counts;
pub use device::{Flash, FlashDevice};
pub use error::Error;
pub(crate) use error::Flaw;
pub use event::{EventFlash, EventParameters, Suspend};
pub use gc::{GcMode, GcParameters, GcPolicy};
pub use geometry::{Geometry, NONE};
pub use host_log::HostLog;
pub use mapping::{Mapping, PageMapped, PageRead, PageWrite, Translation};
pub use nand::{Nand, PageAt};
pub use parameters::FlashParameters;
pub use slc::{SlcParameters, WhenFull};
pub use streams::{Isolation, StreamCounts, StreamParameters};
pub use timing::{CellKind, Timing};
pub use wear::{Wear, WearParameters};
pub use zones::{ZoneCounts, ZoneParameters};
