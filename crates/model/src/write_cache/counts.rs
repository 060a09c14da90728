//! What happened in the cache so far.

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
}

impl Counts {
    pub(super) fn numbers(&self) -> [u64; 10] {
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
        ]
    }

    pub(super) fn from_numbers(numbers: [u64; 10]) -> Self {
        let [read_hits, read_misses, written_lines, overwritten_lines, rest @ ..] = numbers;
        let [trimmed_dirty_lines, destaged_lines, destages, rest @ ..] = rest;
        let [stalls, stalled_ns, bypassed_writes] = rest;
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
        }
    }
}
