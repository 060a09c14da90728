//! What a cache device is made of, and the section `[cache_device]`.

use serde::Deserialize;
use units::Bytes;

use super::super::settings::Unfit;

/// What becomes of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheMode {
    /// To both devices: done when both are.
    #[default]
    WriteThrough,
    /// To the fast one, and home later.
    WriteBack,
    /// To the slow one only; what the fast one has of it is forgotten.
    WriteAround,
}

/// A fast device in front of a slow one. Sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheSettings {
    /// What becomes of writes.
    pub mode: CacheMode,
    /// What is used of the fast device.
    pub size_bytes: u64,
    /// What is taken again at a time: the erase block of the fast device.
    pub bucket_bytes: u64,
    /// Streams of that length pass by; 0: none does.
    pub sequential_cutoff_bytes: u64,
    /// Share of dirty pages that writing home aims at (`writeback_percent`).
    pub dirty_target: f64,
    /// Share of dirty pages from which writes go through (`CUTOFF_WRITEBACK_SYNC`).
    pub dirty_through: f64,
    /// Requests that each of the devices holds at a time; the others wait in order. `None`: 32
    /// where it looks at its queue, all where it answers at once.
    pub depth: Option<usize>,
}

impl CacheSettings {
    /// As bcache has it: write-through, buckets of 512 KiB, cutoff 4 MiB, 10 % dirty.
    pub fn new(size_bytes: u64) -> Self {
        Self {
            mode: CacheMode::default(),
            size_bytes,
            bucket_bytes: 512 << 10,
            sequential_cutoff_bytes: 4 << 20,
            dirty_target: 0.1,
            dirty_through: 0.7,
            depth: None,
        }
    }

    /// Whether a fast device of this many bytes is large enough.
    ///
    /// # Errors
    /// Where it is not.
    pub fn fits(&self, fast: Option<Bytes>) -> Result<(), Unfit> {
        if fast.is_some_and(|capacity| capacity.0 < self.size_bytes) {
            let cause = "the fast device is smaller";
            return Err(Unfit { field: "cache_device.size", cause });
        }
        Ok(())
    }

    /// What cannot be.
    pub(super) fn check(&self) -> Result<(), Unfit> {
        let unfit = |field, cause| Err(Unfit { field, cause });
        let bucket = self.bucket_bytes;
        if !bucket.is_multiple_of(4096) || !(4096..=1 << 30).contains(&bucket) {
            let cause = "a bucket is whole pages of 4 KiB, at most 1 GiB";
            return unfit("cache_device.bucket", cause);
        }
        if !(4..1 << 31).contains(&(self.size_bytes / bucket)) {
            return unfit("cache_device.size", "a cache is at least 4 buckets");
        }
        if self.depth == Some(0) {
            return unfit("cache_device.depth", "a device holds at least one request");
        }
        if !(0.0..=1.0).contains(&self.dirty_through) {
            return unfit("cache_device.dirty_through", "a share is from 0 to 1");
        }
        if !(0.0..=self.dirty_through).contains(&self.dirty_target) {
            return unfit("cache_device.dirty_target", "it is from 0 to dirty_through");
        }
        Ok(())
    }
}

/// A cache device as text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CacheSpec {
    /// The fast device, by a name that is known to whoever makes devices.
    pub(crate) device: String,
    size: Bytes,
    #[serde(default)]
    mode: CacheMode,
    bucket: Option<Bytes>,
    sequential_cutoff: Option<Bytes>,
    dirty_target: Option<f64>,
    dirty_through: Option<f64>,
    depth: Option<usize>,
}

impl CacheSpec {
    /// The settings, checked.
    pub(crate) fn settings(self) -> Result<CacheSettings, Unfit> {
        let usual = CacheSettings::new(self.size.0);
        let or = |own: Option<Bytes>, usual: u64| own.map_or(usual, |size| size.0);
        let settings = CacheSettings {
            mode: self.mode,
            bucket_bytes: or(self.bucket, usual.bucket_bytes),
            sequential_cutoff_bytes: or(self.sequential_cutoff, usual.sequential_cutoff_bytes),
            dirty_target: self.dirty_target.unwrap_or(usual.dirty_target),
            dirty_through: self.dirty_through.unwrap_or(usual.dirty_through),
            depth: self.depth,
            ..usual
        };
        settings.check()?;
        Ok(settings)
    }
}
