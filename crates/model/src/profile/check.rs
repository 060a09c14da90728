//! What a profile must satisfy to be of a device that can exist.

use super::Profile;
use super::flash::check_flash;
use super::hdd::check_hdd;
use super::rules::{Flaw, check_capacity, count, flaw, optional, positive, share, time};
use super::spec::{
    DeviceSpec, FlushSpec, LineSpec, LinearSpec, PatternsSpec, RamSpec, ResidualSpec,
    WriteCacheSpec,
};
use crate::write_cache::MOST_CACHE_LINES;
use crate::{Device, Hdd};

pub(super) fn profile(profile: &Profile) -> Result<(), Flaw> {
    if profile.profile.name.trim().is_empty() {
        return flaw("profile.name", "a profile needs a name");
    }
    if let Some(fill) = profile.state.fill
        && !(0.0..=1.0).contains(&fill)
    {
        return flaw("state.fill", "a share lies between 0 and 1");
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
        DeviceSpec::Hdd(hdd) => Hdd::new(&hdd.parameters()).queued().is_some(),
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

fn check_linear(linear: &LinearSpec) -> Result<(), Flaw> {
    check_capacity(linear.capacity)?;
    count("device.parallelism", &linear.parallelism, 65_536.0)?;
    optional(time, "device.trim_us", linear.trim_us.as_ref())?;
    patterns("device.read", &linear.read)?;
    patterns("device.write", &linear.write)?;
    if let Some(durable) = &linear.durable_write {
        line("device.durable_write", durable)?;
    }
    flush(&linear.flush)?;
    if let Some(mixed) = &linear.mixed {
        positive("device.mixed.read_factor", &mixed.read_factor)?;
        positive("device.mixed.write_factor", &mixed.write_factor)?;
        if mixed.window_requests == 0 {
            return flaw("device.mixed.window_requests", "an average needs at least one request");
        }
    }
    for (index, residual) in linear.residual.iter().enumerate() {
        check_residual(index, residual)?;
    }
    Ok(())
}

fn check_ram(ram: &RamSpec) -> Result<(), Flaw> {
    check_capacity(ram.capacity)?;
    time("device.latency_us", &ram.latency_us)?;
    positive("device.interface_mb_per_s", &ram.interface_mb_per_s)?;
    count("device.ports", &ram.ports, 65_536.0)
}

fn check_cache(cache: &WriteCacheSpec) -> Result<(), Flaw> {
    positive("write_cache.capacity_mb", &cache.capacity_mb)?;
    if cache.destage_depth == Some(0) {
        return flaw("write_cache.destage_depth", "a cache that never destages is full for ever");
    }
    if !(512..=1 << 30).contains(&cache.line.0) || !cache.line.0.is_power_of_two() {
        return flaw("write_cache.line", "a line is a power of two from 512 bytes to 1 GiB");
    }
    let lines = cache.capacity_mb.value * 1e6 / cache.line.0 as f64;
    if lines < 1.0 {
        return flaw("write_cache.capacity_mb", "a cache holds at least one line");
    }
    if lines > MOST_CACHE_LINES as f64 {
        return flaw("write_cache.line", "more than 16 million lines; use longer ones");
    }
    time("write_cache.hit_base_us", &cache.hit_base_us)?;
    time("write_cache.hit_us_per_kib", &cache.hit_us_per_kib)?;
    count("write_cache.ports", &cache.ports, 65_536.0)?;
    share("write_cache.high_watermark", &cache.high_watermark)?;
    share("write_cache.low_watermark", &cache.low_watermark)?;
    if cache.low_watermark.value > cache.high_watermark.value {
        return flaw("write_cache.low_watermark", "it is above the high watermark");
    }
    time("write_cache.coalesce_kib", &cache.coalesce_kib)?;
    if cache.coalesce_kib.value > 1_048_576.0 {
        return flaw("write_cache.coalesce_kib", "a destage is at most 1 GiB");
    }
    optional(time, "write_cache.idle_destage_after_ms", cache.idle_destage_after_ms.as_ref())
}

fn patterns(field: &str, spec: &PatternsSpec) -> Result<(), Flaw> {
    line(&format!("{field}.sequential"), &spec.sequential)?;
    line(&format!("{field}.random"), &spec.random)
}

fn line(field: &str, spec: &LineSpec) -> Result<(), Flaw> {
    time(&format!("{field}.base_us"), &spec.base_us)?;
    time(&format!("{field}.us_per_kib"), &spec.us_per_kib)?;
    optional(positive, &format!("{field}.ceiling_iops"), spec.ceiling_iops.as_ref())?;
    optional(positive, &format!("{field}.ceiling_mb_per_s"), spec.ceiling_mb_per_s.as_ref())
}

fn flush(spec: &FlushSpec) -> Result<(), Flaw> {
    time("device.flush.base_us", &spec.base_us)?;
    optional(time, "device.flush.us_per_dirty_kib", spec.us_per_dirty_kib.as_ref())?;
    optional(time, "device.flush.us_per_dirty_request", spec.us_per_dirty_request.as_ref())
}

fn check_residual(index: usize, spec: &ResidualSpec) -> Result<(), Flaw> {
    let field = |key: &str| format!("device.residual[{index}].{key}");
    if spec.op == trace::Op::Trim {
        return flaw(&field("op"), "trims have no distribution");
    }
    if let Some(cause) = spec.quantiles.flaw() {
        return flaw(&field("quantiles"), cause);
    }
    if spec.quantiles.mean() <= 0.0 {
        return flaw(&field("quantiles"), "the mean is zero");
    }
    if spec.idle_us.is_some_and(|us| !us.is_finite() || us <= 0.0) {
        return flaw(&field("idle_us"), "an idle time is positive");
    }
    if spec.idle_us.is_some() && spec.after.is_some() {
        return flaw(&field("after"), "a table is for an idle time or for after a flush, not both");
    }
    Ok(())
}
