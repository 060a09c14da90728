//! Profiles: what a device is, in a TOML file that a person can read, check and correct.
//!
//! A profile names a model, gives its parameters with the evidence for each, says for which state
//! of the device they hold and how well they were validated. The files in `profiles/` ship with the
//! binary ([`shipped`]); `fit` writes the same form for the user's own device.
//!
//! Pure: the caller reads and writes files. Invariants: what is read was checked; what is written
//! reads back equal (round-trip test); a profile that names an impossible device (no parallelism, a
//! negative time, an empty table) is refused with the field and its line.

mod build;
mod check;
mod diff;
pub mod disksim;
mod flash;
mod hdd;
mod parameter;
mod rules;
mod shipped;
mod spec;
#[cfg(test)]
mod tests;
mod text;

pub use diff::{Difference, Side, diff};
pub use flash::{
    FlashSpec, GcSpec, GeometrySpec, LayerSpec, MappingSpec, ModeSpec, PolicySpec,
    PreconditionSpec, ReadCacheSpec, SlcCacheSpec, TimingSpec, WearSpec, ZonesSpec,
};
pub use hdd::{
    BufferSpec, BusSpec, HddSpec, OverheadSpec, ProtocolSpec, QueueSpec, SeekSpec, ZoneSpec,
};
pub use parameter::Parameter;
pub use shipped::{find_shipped, shipped};
pub use spec::{
    About, After, DetectionSpec, DeviceSpec, FlushSpec, LineSpec, LinearSpec, MixedSpec,
    PatternsSpec, RamSpec, ResidualSpec, StateOf, Validation, WriteCacheSpec,
};

use serde::Serialize;
use units::Bytes;

use crate::{Device, Error};

/// A device model with its parameters, their evidence and their validation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// What the device is.
    pub profile: About,
    /// What state the parameters hold for.
    pub state: StateOf,
    /// The model.
    pub device: DeviceSpec,
    /// The write-back cache in front of it, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<WriteCacheSpec>,
    /// How well it predicts the device, where that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
}

impl Profile {
    /// Reads and checks a profile; `path_for_errors` is what error messages call it.
    pub fn from_toml(text: &str, path_for_errors: &str) -> Result<Self, Error> {
        text::read(text, path_for_errors)
    }

    /// The profile as a TOML file.
    pub fn to_toml(&self) -> String {
        text::write(self)
    }

    /// Refuses impossible devices; [`Profile::from_toml`] has done it already.
    pub fn check(&self) -> Result<(), Error> {
        check::profile(self).map_err(|(field, cause)| Error::Impossible {
            path: self.profile.name.clone(),
            line: 0,
            field,
            cause,
        })
    }

    /// The short name.
    pub fn name(&self) -> &str {
        &self.profile.name
    }

    /// The device in its initial state. `seed` decides every random draw of the model.
    ///
    /// # Panics
    /// Where [`Profile::check`] fails: a profile changed by hand is checked first.
    pub fn device(&self, seed: u64) -> Box<dyn Device> {
        build::device(self, seed)
    }

    /// What [`Device::capacity`] says of the device, without building it: a flash device may take
    /// seconds to be filled.
    ///
    /// # Panics
    /// As [`Profile::device`].
    pub fn capacity(&self) -> Option<Bytes> {
        build::capacity(self)
    }

    /// The same device with its write cache taken away, as the papers compare.
    #[must_use]
    pub fn without_cache(&self) -> Self {
        Self { write_cache: None, ..self.clone() }
    }
}
