//! From a profile to the device that it describes.

use profile::write_cache::{WriteCacheParameters, WriteCacheSpec};
use profile::{DeviceSpec, Profile};

use crate::hdd::Hdd;
use crate::limits::Limits;
use crate::linear::Linear;
use crate::ram::Ram;
use crate::read_cache::ReadCache;
use crate::write_cache::{QueuedCache, WriteCache};
use crate::{Device, flash};

/// The device of `profile` in its initial state. `seed` decides every random draw of the model.
///
/// # Panics
/// Where [`Profile::check`] fails: a profile changed by hand is checked first.
pub fn device(profile: &Profile, seed: u64) -> Box<dyn Device> {
    let device = behind_limits(profile, seed);
    match &profile.limits {
        Some(limits) => Box::new(Limits::new(device, &limits.parameters())),
        None => device,
    }
}

fn behind_limits(profile: &Profile, seed: u64) -> Box<dyn Device> {
    let cache = profile.write_cache.as_ref().map(WriteCacheSpec::parameters);
    match &profile.device {
        DeviceSpec::Linear(spec) => boxed(Linear::new(&spec.parameters(), seed), cache),
        DeviceSpec::Ram(spec) => boxed(Ram::new(&spec.parameters()), cache),
        DeviceSpec::Flash(spec) => {
            // The times of a cache contain the interface of what is behind it.
            let mut parameters = spec.parameters();
            parameters.behind_cache = cache.is_some();
            let flash = flash::preconditioned(&parameters, &spec.precondition, seed);
            match &spec.read_cache {
                Some(own) => boxed(ReadCache::new(flash, &own.parameters()), cache),
                None => boxed(flash, cache),
            }
        }
        DeviceSpec::Hdd(spec) => boxed(Hdd::new(&spec.parameters()), cache),
    }
}

fn boxed<D: Device + 'static>(
    mut device: D,
    cache: Option<WriteCacheParameters>,
) -> Box<dyn Device> {
    match cache {
        Some(parameters) if device.queued().is_some() => {
            Box::new(QueuedCache::new(device, &parameters))
        }
        Some(parameters) => Box::new(WriteCache::new(device, &parameters)),
        None => Box::new(device),
    }
}
