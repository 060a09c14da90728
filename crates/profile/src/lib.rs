//! Profiles: what a device is, in a TOML file that a person can read, check and correct.
//!
//! A profile names a model, gives its parameters with the evidence for each, says for which state
//! of the device they hold and how well they were validated. The files in `profiles/` ship with the
//! binary ([`shipped`]); `fit` writes the same form for the user's own device.
//!
//! Each kind of device is a module ([`linear`], [`ram`], [`hdd`], [`flash`], and the caches in
//! front of them): the sections of the file (`...Spec`), the parameters of the model that they
//! describe, and what both must satisfy. The crate `model` makes a device of them.
//!
//! Pure: the caller reads and writes files. Invariants: what is read was checked; what is written
//! reads back equal (round-trip test); a profile that names an impossible device (no parallelism, a
//! negative time, an empty table) is refused with the field and its line.

#![forbid(unsafe_code)]

mod check;
mod cost;
mod diff;
pub mod disksim;
mod endurance;
mod error;
pub mod flash;
pub mod hdd;
mod imported;
pub mod limits;
pub mod linear;
pub mod mqsim;
mod parameter;
mod published;
mod quantiles;
pub mod ram;
pub mod read_cache;
mod rules;
mod shipped;
mod spec;
#[cfg(test)]
mod tests;
mod text;
pub mod write_cache;

pub use cost::CostSpec;
pub use diff::{Difference, Side, diff};
pub use endurance::EnduranceSpec;
pub use error::Error;
pub use imported::Imported;
pub use parameter::Parameter;
pub use published::{Figure, FigureUnit, LoadOp, Published};
pub use quantiles::Quantiles;
pub use shipped::{find_shipped, shipped};
pub use spec::{About, DeviceSpec, StateOf, Validation};

use serde::Serialize;
use units::Bytes;

use hdd::SECTOR_BYTES;
use limits::LimitsSpec;
use write_cache::WriteCacheSpec;

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
    /// What a provider lets through to it, if it is a volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitsSpec>,
    /// How well it predicts the device, where that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
    /// What it costs, where somebody published it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostSpec>,
    /// How much its maker lets somebody write to it, where that was published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endurance: Option<EnduranceSpec>,
    /// Figures that others state for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
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

    /// The same profile with the field at a TOML path (`device.flush.base_us`) set to `value`.
    ///
    /// # Errors
    /// There is no such field, or the device cannot exist with it.
    pub fn with_field(&self, field: &str, value: &str) -> Result<Self, Error> {
        text::with_field(self, field, value)
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

    /// Bytes that the device holds, where the profile says or implies it.
    ///
    /// # Panics
    /// Where [`Profile::check`] fails: a profile changed by hand is checked first.
    pub fn capacity(&self) -> Option<Bytes> {
        match &self.device {
            DeviceSpec::Linear(spec) => spec.capacity,
            DeviceSpec::Ram(spec) => spec.capacity,
            DeviceSpec::Flash(spec) => Some(spec.parameters().capacity()),
            DeviceSpec::Hdd(spec) => Some(Bytes(spec.parameters().sector_count() * SECTOR_BYTES)),
        }
    }

    /// Bytes of memory that a model of the device takes, about: where each page of its flash is and
    /// what each holds. Of the other kinds next to nothing.
    ///
    /// # Panics
    /// As [`Profile::capacity`].
    pub fn memory(&self) -> Bytes {
        let DeviceSpec::Flash(spec) = &self.device else { return Bytes(0) };
        let geometry = spec.parameters().geometry;
        Bytes(8 * geometry.page_count() + 20 * u64::from(geometry.block_count()))
    }

    /// The same device with its write cache taken away, as the papers compare.
    #[must_use]
    pub fn without_cache(&self) -> Self {
        Self { write_cache: None, ..self.clone() }
    }
}

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
