//! What happened in the cache so far.

use crate::Counter;

/// Counts of lines and requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) read_hits: u64,
    pub(super) read_misses: u64,
    pub(super) written_lines: u64,
    pub(super) overwritten_lines: u64,
    pub(super) trimmed_dirty_lines: u64,
    pub(super) destaged_lines: u64,
    pub(super) destages: u64,
    pub(super) stalls: u64,
    pub(super) stalled_ns: u64,
    pub(super) bypassed_writes: u64,
    pub(super) durable_writes: u64,
}

impl Counts {
    pub(super) fn numbers(&self) -> [u64; 11] {
        [
            self.read_hits,
            self.read_misses,
            self.written_lines,
            self.overwritten_lines,
            self.trimmed_dirty_lines,
            self.destaged_lines,
            self.destages,
            self.stalls,
            self.stalled_ns,
            self.bypassed_writes,
            self.durable_writes,
        ]
    }

    /// With the lines that are dirty now.
    pub(super) fn counters(&self, dirty: usize) -> Vec<Counter> {
        let own = [
            ("cache_read_hits", self.read_hits),
            ("cache_read_misses", self.read_misses),
            ("cache_written_lines", self.written_lines),
            ("cache_overwritten_lines", self.overwritten_lines),
            ("cache_trimmed_dirty_lines", self.trimmed_dirty_lines),
            ("cache_destaged_lines", self.destaged_lines),
            ("cache_dirty_lines", dirty as u64),
            ("cache_destages", self.destages),
            ("cache_stalls", self.stalls),
            ("cache_stalled_ns", self.stalled_ns),
            ("cache_bypassed_writes", self.bypassed_writes),
        ];
        let durable =
            (self.durable_writes > 0).then_some(("cache_durable_writes", self.durable_writes));
        own.into_iter().chain(durable).map(|(name, value)| Counter { name, value }).collect()
    }

    pub(super) fn from_numbers(numbers: [u64; 11]) -> Self {
        let [read_hits, read_misses, written_lines, overwritten_lines, rest @ ..] = numbers;
        let [trimmed_dirty_lines, destaged_lines, destages, rest @ ..] = rest;
        let [stalls, stalled_ns, bypassed_writes, durable_writes] = rest;
        Self {
            read_hits,
            read_misses,
            written_lines,
            overwritten_lines,
            trimmed_dirty_lines,
            destaged_lines,
            destages,
            stalls,
            stalled_ns,
            bypassed_writes,
            durable_writes,
        }
    }
}
