//! What a profile must satisfy to be of a device that can exist.

use crate::cost::check_cost;
use crate::endurance::check_endurance;
use crate::flash::check_flash;
use crate::hdd::check_hdd;
use crate::limits::check_limits;
use crate::linear::check_linear;
use crate::published::check_published;
use crate::ram::check_ram;
use crate::rules::{Flaw, flaw};
use crate::write_cache::{WriteCacheSpec, check_cache};
use crate::{DeviceSpec, Profile};

pub(crate) fn profile(profile: &Profile) -> Result<(), Flaw> {
    if profile.profile.name.trim().is_empty() {
        return flaw("profile.name", "a profile needs a name");
    }
    let about = &profile.profile;
    let texts =
        [("name", &about.name), ("description", &about.description), ("class", &about.class)]
            .into_iter()
            .chain(about.sources.iter().map(|source| ("sources", source)));
    for (key, text) in texts {
        // A name is quoted in messages of one line; a description may have several.
        if text.chars().any(|c| c.is_control() && (c != '\n' || key == "name")) {
            return flaw(&format!("profile.{key}"), "it holds a control character");
        }
    }
    if let Some(fill) = profile.state.fill
        && !(0.0..=1.0).contains(&fill)
    {
        return flaw("state.fill", "a share lies between 0 and 1");
    }
    if let Some(cost) = &profile.cost {
        check_cost(cost)?;
    }
    if let Some(endurance) = &profile.endurance {
        check_endurance(endurance)?;
    }
    match &profile.device {
        DeviceSpec::Linear(linear) => check_linear(linear)?,
        DeviceSpec::Ram(ram) => check_ram(ram)?,
        DeviceSpec::Flash(flash) => check_flash(flash)?,
        DeviceSpec::Hdd(hdd) => check_hdd(hdd)?,
    }
    if let Some(cache) = &profile.write_cache {
        check_cache(cache)?;
        check_durable(cache, &profile.device)?;
    }
    match &profile.limits {
        Some(_) if has_queue(&profile.device) => {
            return flaw("limits.iops", "not in front of a device that looks at its queue");
        }
        Some(limits) => check_limits(limits)?,
        None => {}
    }
    check_published(profile)
}

fn has_queue(device: &DeviceSpec) -> bool {
    match device {
        DeviceSpec::Flash(flash) => flash.queue.is_some(),
        DeviceSpec::Hdd(hdd) => hdd.parameters().queue.depth > 1,
        DeviceSpec::Linear(_) | DeviceSpec::Ram(_) => false,
    }
}

/// A cache over a device that looks at its queue has no durable streams.
fn check_durable(cache: &WriteCacheSpec, device: &DeviceSpec) -> Result<(), Flaw> {
    let field = "write_cache.durable_streams";
    if cache.durable_streams.iter().any(|stream| *stream > 63) {
        return flaw(field, "a stream has a number from 0 to 63");
    }
    if !cache.durable_streams.is_empty() && has_queue(device) {
        return flaw(field, "not in front of a device that looks at its queue");
    }
    Ok(())
}
