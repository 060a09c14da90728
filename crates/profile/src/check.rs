//! What a profile must satisfy to be of a device that can exist.

use crate::cost::check_cost;
use crate::flash::check_flash;
use crate::hdd::check_hdd;
use crate::linear::check_linear;
use crate::ram::check_ram;
use crate::rules::{Flaw, flaw};
use crate::write_cache::{WriteCacheSpec, check_cache};
use crate::{DeviceSpec, Profile};

pub(crate) fn profile(profile: &Profile) -> Result<(), Flaw> {
    if profile.profile.name.trim().is_empty() {
        return flaw("profile.name", "a profile needs a name");
    }
    if let Some(fill) = profile.state.fill
        && !(0.0..=1.0).contains(&fill)
    {
        return flaw("state.fill", "a share lies between 0 and 1");
    }
    if let Some(cost) = &profile.cost {
        check_cost(cost)?;
    }
    match &profile.device {
        DeviceSpec::Linear(linear) => check_linear(linear)?,
        DeviceSpec::Ram(ram) => check_ram(ram)?,
        DeviceSpec::Flash(flash) => check_flash(flash)?,
        DeviceSpec::Hdd(hdd) => check_hdd(hdd)?,
    }
    match &profile.write_cache {
        Some(cache) => {
            check_cache(cache)?;
            check_durable(cache, &profile.device)
        }
        None => Ok(()),
    }
}

/// A cache over a device that looks at its queue has no durable streams.
fn check_durable(cache: &WriteCacheSpec, device: &DeviceSpec) -> Result<(), Flaw> {
    let has_queue = || match device {
        DeviceSpec::Flash(flash) => flash.queue.is_some(),
        DeviceSpec::Hdd(hdd) => hdd.parameters().queue.depth > 1,
        DeviceSpec::Linear(_) | DeviceSpec::Ram(_) => false,
    };
    let field = "write_cache.durable_streams";
    if cache.durable_streams.iter().any(|stream| *stream > 63) {
        return flaw(field, "a stream has a number from 0 to 63");
    }
    if !cache.durable_streams.is_empty() && has_queue() {
        return flaw(field, "not in front of a device that looks at its queue");
    }
    Ok(())
}
