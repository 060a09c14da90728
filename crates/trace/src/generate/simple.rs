//! One access pattern, paced by a clock or by a Poisson process: what tests and benches ask for
//! most.

use stats::rng::Rng;
use units::{Bytes, Nanos, Rate};

use super::{DATA, empty};
use crate::{Op, Request, Trace};

/// One access pattern.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pattern {
    /// Whether offsets follow one another (wrapping at the end of the range) or are uniform over
    /// it, aligned to the request size.
    pub sequential: bool,
    /// Share of reads; the rest are writes.
    pub read_share: f64,
    /// Bytes per request.
    pub size_bytes: u32,
    /// Bytes that the offsets cover; at least one request fits.
    pub range_bytes: u64,
}

impl Default for Pattern {
    /// Random 4 KiB reads over 1 GiB.
    fn default() -> Self {
        Self { sequential: false, read_share: 1.0, size_bytes: 4096, range_bytes: 1 << 30 }
    }
}

/// `count` requests of one pattern with exponential gaps: a Poisson process of the given rate.
pub fn poisson(seed: u64, count: usize, rate: Rate, pattern: &Pattern) -> Trace {
    let mean = 1e9 / rate.0;
    paced("poisson", seed, count, pattern, |rng| rng.exponential(mean))
}

/// `count` requests of one pattern, evenly spaced.
pub fn uniform(seed: u64, count: usize, rate: Rate, pattern: &Pattern) -> Trace {
    let gap = 1e9 / rate.0;
    paced("uniform", seed, count, pattern, |_| gap)
}

fn paced(
    name: &str,
    seed: u64,
    count: usize,
    pattern: &Pattern,
    mut gap_ns: impl FnMut(&mut Rng) -> f64,
) -> Trace {
    let mut rng = Rng::new(seed);
    let mut trace = empty(name, seed, &["data"]);
    let size = u64::from(pattern.size_bytes);
    let slots = pattern.range_bytes.checked_div(size).unwrap_or(0).max(1);
    let mut now = 0.0;
    for index in 0..count as u64 {
        let slot = if pattern.sequential { index % slots } else { rng.below(slots) };
        let op = if rng.unit() < pattern.read_share { Op::Read } else { Op::Write };
        let (due, offset) = (Nanos(now as u64), Bytes(slot * size));
        trace.push(Request { due, offset, len: pattern.size_bytes, op, stream: DATA });
        now += gap_ns(&mut rng);
    }
    trace
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_nothing_do_not_break_it() {
        let pattern = Pattern { size_bytes: 0, range_bytes: 0, ..Pattern::default() };
        assert_eq!(uniform(1, 10, Rate(10.0), &pattern).validate(), Ok(()));
        assert_eq!(poisson(1, 10, Rate(0.0), &Pattern::default()).validate(), Ok(()));
    }

    #[test]
    fn sequential_patterns_wrap_at_the_end_of_the_range() {
        let pattern = Pattern { sequential: true, range_bytes: 3 * 4096, ..Pattern::default() };
        let trace = uniform(1, 5, Rate(1000.0), &pattern);
        assert_eq!(trace.offset, [0, 4096, 8192, 0, 4096]);
        assert_eq!(trace.due, [0, 1_000_000, 2_000_000, 3_000_000, 4_000_000]);
    }
}
