//! `[write_cache]`: a write-back cache in front of a device, what the section must satisfy, and the
//! parameters that it describes.

use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::parameter::Parameter;
use crate::rules::{Flaw, count, flaw, optional, positive, share, time};

/// Most lines that a cache can have: the model numbers them in 24 bits.
pub const MOST_CACHE_LINES: usize = (1 << 24) - 8;

/// What the cache needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WriteCacheParameters {
    /// Bytes that the cache holds; at least one line.
    pub capacity: Bytes,
    /// Bytes of one line, a power of two.
    pub line_bytes: u32,
    /// Time that a request which only touches the cache takes at size zero, ns.
    pub hit_base_ns: f64,
    /// And per byte, ns.
    pub hit_ns_per_byte: f64,
    /// Requests that the cache works on at once.
    pub ports: u32,
    /// Dirty share of the lines above which destaging starts, 0 to 1.
    pub high_watermark: f64,
    /// Dirty share at which it stops, at most `high_watermark`.
    pub low_watermark: f64,
    /// Longest write of a destage; one line switches coalescing off.
    pub coalesce_bytes: u32,
    /// Destage everything after this many ns without a request; `None` never does.
    pub idle_destage_after_ns: Option<f64>,
    /// Whether a flush may be acknowledged from the cache.
    pub power_loss_protected: bool,
    /// Streams whose writes are durable when they complete, stream `k` as bit `k`; those from 64 on
    /// are not. Not over a device that looks at its queue.
    pub durable_streams: u64,
    /// Destages that a device which looks at its queue has at a time, at least one.
    pub destage_depth: u32,
}

impl Default for WriteCacheParameters {
    /// The paper's 16 MB in lines of 4 KiB, absorbing in 50 us.
    fn default() -> Self {
        Self {
            capacity: Bytes(16_000_000),
            line_bytes: 4096,
            hit_base_ns: 50_000.0,
            hit_ns_per_byte: 0.0,
            ports: 1,
            high_watermark: 1.0,
            low_watermark: 1.0,
            coalesce_bytes: 128 << 10,
            idle_destage_after_ns: None,
            power_loss_protected: false,
            durable_streams: 0,
            destage_depth: 32,
        }
    }
}

impl WriteCacheParameters {
    /// Lines that the cache has.
    ///
    /// # Panics
    /// Where `line_bytes` is not a power of two.
    pub fn line_count(&self) -> usize {
        assert!(self.line_bytes.is_power_of_two(), "lines of a power of two");
        (self.capacity.0 / u64::from(self.line_bytes)).max(1) as usize
    }
}

/// `[write_cache]`: a write-back cache in front of the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteCacheSpec {
    /// MB (1,000,000 bytes) that it holds.
    pub capacity_mb: Parameter,
    /// Bytes per line.
    pub line: Bytes,
    /// Time of a request that only touches the cache, at size zero, us.
    pub hit_base_us: Parameter,
    /// And per KiB, us.
    pub hit_us_per_kib: Parameter,
    /// Requests that it works on at once.
    pub ports: Parameter,
    /// Dirty share above which destaging starts, 0 to 1.
    pub high_watermark: Parameter,
    /// Dirty share at which it stops.
    pub low_watermark: Parameter,
    /// Longest write of a destage, KiB.
    pub coalesce_kib: Parameter,
    /// Destage everything after so long without a request, ms; never where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_destage_after_ms: Option<Parameter>,
    /// Whether a flush is acknowledged from the cache.
    #[serde(default)]
    pub power_loss_protected: bool,
    /// Streams whose writes are durable when they complete (forced unit access), from 0 to 63; none
    /// where absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub durable_streams: Vec<u16>,
    /// Destages that a device with an event queue (`[device.queue]`) has at a time; 32 where
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destage_depth: Option<u32>,
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
/// What a cache must satisfy to exist.
pub(crate) fn check_cache(cache: &WriteCacheSpec) -> Result<(), Flaw> {
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
