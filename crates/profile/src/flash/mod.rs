//! `kind = "flash"`: what makes a flash device, which of it cannot be, and the sections of a
//! profile that state it.
//!
//! The names are those of the parts of the model, one file each: [`Geometry`], [`Timing`],
//! [`Translation`], [`AllocationScheme`], [`GcParameters`], [`StreamParameters`],
//! [`WearParameters`], [`ZoneParameters`], [`SlcParameters`], [`EventParameters`].

mod allocation;
mod error;
mod events;
mod gc;
mod geometry;
mod parameters;
mod section;
mod slc;
mod streams;
mod timing;
mod translation;
mod wear;
mod zones;

pub use allocation::{AllocationScheme, Order};
pub use error::{Error, Flaw};
pub use events::{EventParameters, Suspend};
pub use gc::{GcMode, GcParameters, GcPolicy};
pub use geometry::{Geometry, NONE};
pub use parameters::FlashParameters;
pub(crate) use section::check_flash;
pub use section::{
    FlashSpec, GcSpec, GeometrySpec, LayerSpec, MappingSpec, ModeSpec, PolicySpec,
    PreconditionSpec, QueueSpec, SlcCacheSpec, TimingSpec, WearSpec, ZonesSpec,
};
pub use slc::{SlcParameters, WhenFull};
pub use streams::{Isolation, StreamParameters};
pub use timing::{CellKind, Timing};
pub use translation::Translation;
pub use wear::WearParameters;
pub use zones::{ZoneLayout, ZoneParameters};
