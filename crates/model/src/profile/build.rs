//! From the sections of a profile to the parameters of a model.

use units::Bytes;

use super::spec::{
    After, DetectionSpec, DeviceSpec, LineSpec, LinearSpec, PatternsSpec, RamSpec, ResidualSpec,
    WriteCacheSpec,
};
use super::{Parameter, Profile};
use crate::Device;
use crate::hdd::{Hdd, SECTOR_BYTES};
use crate::linear::{Context, Detection, Flush, Line, Linear, LinearParameters, Mixed, Residual};
use crate::ram::{Ram, RamParameters};
use crate::read_cache::ReadCache;
use crate::write_cache::{QueuedCache, WriteCache, WriteCacheParameters};

pub(super) fn device(profile: &Profile, seed: u64) -> Box<dyn Device> {
    let cache = profile.write_cache.as_ref().map(WriteCacheSpec::parameters);
    match &profile.device {
        DeviceSpec::Linear(spec) => boxed(Linear::new(&spec.parameters(), seed), cache),
        DeviceSpec::Ram(spec) => boxed(Ram::new(&spec.parameters()), cache),
        DeviceSpec::Flash(spec) => {
            let flash =
                if cache.is_some() { spec.device_behind_cache(seed) } else { spec.device(seed) };
            match &spec.read_cache {
                Some(own) => boxed(ReadCache::new(flash, &own.parameters()), cache),
                None => boxed(flash, cache),
            }
        }
        DeviceSpec::Hdd(spec) => boxed(Hdd::new(&spec.parameters()), cache),
    }
}

/// The capacity of the device, which is not built for it.
pub(super) fn capacity(profile: &Profile) -> Option<Bytes> {
    match &profile.device {
        DeviceSpec::Linear(spec) => spec.capacity,
        DeviceSpec::Ram(spec) => spec.capacity,
        DeviceSpec::Flash(spec) => Some(spec.parameters().capacity()),
        DeviceSpec::Hdd(spec) => Some(Bytes(spec.parameters().sector_count() * SECTOR_BYTES)),
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

fn value_or(parameter: Option<&Parameter>, default: f64) -> f64 {
    parameter.map_or(default, |parameter| parameter.value)
}

impl LineSpec {
    /// The line that the section describes.
    pub fn line(&self) -> Line {
        Line {
            base_ns: self.base_us.value * 1e3,
            ns_per_byte: self.us_per_kib.value * 1e3 / 1024.0,
            ceiling_iops: self.ceiling_iops.as_ref().map(|iops| iops.value),
            ceiling_bytes_per_s: self.ceiling_mb_per_s.as_ref().map(|rate| rate.value * 1e6),
        }
    }
}

impl PatternsSpec {
    fn lines(&self) -> [Line; 2] {
        [self.sequential.line(), self.random.line()]
    }
}

impl LinearSpec {
    /// The model parameters that the section describes.
    pub fn parameters(&self) -> LinearParameters {
        let mixed = self.mixed.as_ref().map_or_else(Mixed::default, |mixed| Mixed {
            read_factor: mixed.read_factor.value,
            write_factor: mixed.write_factor.value,
            window_requests: mixed.window_requests,
        });
        LinearParameters {
            capacity: self.capacity,
            read: self.read.lines(),
            write: self.write.lines(),
            parallelism: self.parallelism.value as u32,
            detection: match self.sequential_detection {
                DetectionSpec::PerStream => Detection::PerStream,
                DetectionSpec::Global => Detection::Global,
            },
            mixed,
            flush: Flush {
                base_ns: self.flush.base_us.value * 1e3,
                ns_per_dirty_byte: value_or(self.flush.us_per_dirty_kib.as_ref(), 0.0) * 1e3
                    / 1024.0,
                ns_per_dirty_request: value_or(self.flush.us_per_dirty_request.as_ref(), 0.0) * 1e3,
            },
            trim_ns: value_or(self.trim_us.as_ref(), 0.0) * 1e3,
            residuals: self.residual.iter().map(ResidualSpec::residual).collect(),
        }
    }
}

impl ResidualSpec {
    fn residual(&self) -> Residual {
        let context = match (self.after, self.idle_us) {
            (Some(After::Flush), _) => Context::AfterFlush,
            (None, Some(us)) => Context::IdleFor(us * 1e3),
            (None, None) => Context::Any,
        };
        Residual {
            op: self.op,
            pattern: self.pattern,
            size_bytes: self.size.map(|size| size.0.min(u64::from(u32::MAX)) as u32),
            context,
            ratios: self.quantiles.clone(),
        }
    }
}

impl RamSpec {
    /// The model parameters that the section describes.
    pub fn parameters(&self) -> RamParameters {
        RamParameters {
            capacity: self.capacity,
            latency_ns: self.latency_us.value * 1e3,
            bytes_per_s: self.interface_mb_per_s.value * 1e6,
            ports: self.ports.value as u32,
        }
    }
}

impl WriteCacheSpec {
    /// The model parameters that the section describes.
    pub fn parameters(&self) -> WriteCacheParameters {
        WriteCacheParameters {
            capacity: Bytes((self.capacity_mb.value * 1e6).round() as u64),
            line_bytes: self.line.0 as u32,
            hit_base_ns: self.hit_base_us.value * 1e3,
            hit_ns_per_byte: self.hit_us_per_kib.value * 1e3 / 1024.0,
            ports: self.ports.value as u32,
            high_watermark: self.high_watermark.value,
            low_watermark: self.low_watermark.value,
            coalesce_bytes: (self.coalesce_kib.value * 1024.0) as u32,
            idle_destage_after_ns: self.idle_destage_after_ms.as_ref().map(|ms| ms.value * 1e6),
            power_loss_protected: self.power_loss_protected,
            durable_streams: self
                .durable_streams
                .iter()
                .fold(0, |all, stream| all | 1u64.checked_shl(u32::from(*stream)).unwrap_or(0)),
            destage_depth: self
                .destage_depth
                .unwrap_or(WriteCacheParameters::default().destage_depth),
        }
    }
}
