//! `[device.read_cache]`: memory of a flash device that keeps what was read.

use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::parameter::Parameter;
use crate::rules::{Flaw, count, flaw, positive, time};

/// Which line makes room for another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadPolicy {
    /// The one that was read longest ago.
    #[default]
    Lru,
    /// The next one in turn that was not read since the hand came by.
    Clock,
}

/// What a read cache needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadCacheParameters {
    /// Bytes that it holds; at least one line.
    pub capacity: Bytes,
    /// Bytes of a line, a power of two.
    pub line_bytes: u32,
    /// Which line is replaced.
    pub policy: ReadPolicy,
    /// Time of a hit at size zero, ns.
    pub hit_base_ns: f64,
    /// And per byte, ns.
    pub hit_ns_per_byte: f64,
    /// Hits that it works on at once.
    pub ports: u32,
}

/// `[device.read_cache]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadCacheSpec {
    /// MB (1,000,000 bytes) that it holds.
    pub capacity_mb: Parameter,
    /// Bytes per line.
    pub line: Bytes,
    /// Which line is replaced: `lru` or `clock`.
    #[serde(default)]
    pub policy: ReadPolicy,
    /// Time of a hit at size zero, us.
    pub hit_base_us: Parameter,
    /// And per KiB, us.
    pub hit_us_per_kib: Parameter,
    /// Hits that it works on at once.
    pub ports: Parameter,
}

impl ReadCacheSpec {
    /// The model parameters that the section describes.
    pub fn parameters(&self) -> ReadCacheParameters {
        ReadCacheParameters {
            capacity: Bytes((self.capacity_mb.value * 1e6).round() as u64),
            line_bytes: self.line.0 as u32,
            policy: self.policy,
            hit_base_ns: self.hit_base_us.value * 1e3,
            hit_ns_per_byte: self.hit_us_per_kib.value * 1e3 / 1024.0,
            ports: self.ports.value as u32,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Flaw> {
        positive("device.read_cache.capacity_mb", &self.capacity_mb)?;
        if !(512..=1 << 30).contains(&self.line.0) || !self.line.0.is_power_of_two() {
            let cause = "a line is a power of two from 512 bytes to 1 GiB";
            return flaw("device.read_cache.line", cause);
        }
        let lines = self.capacity_mb.value * 1e6 / self.line.0 as f64;
        if !(1.0..=f64::from(1 << 26)).contains(&lines) {
            let cause = "a cache holds from 1 to 67 million lines";
            return flaw("device.read_cache.capacity_mb", cause);
        }
        time("device.read_cache.hit_base_us", &self.hit_base_us)?;
        time("device.read_cache.hit_us_per_kib", &self.hit_us_per_kib)?;
        count("device.read_cache.ports", &self.ports, 65_536.0)
    }
}
