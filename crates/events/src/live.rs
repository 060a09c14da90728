//! Counts of completed requests that many threads add to while one reads them now and then.
//!
//! A response time falls into one of eight buckets per octave, at most 12.5 % wide, so that a live
//! percentile is within a few per cent; results have finer histograms of their own. Buckets are
//! kept rather than percentiles because only they can be added up over seconds and classes.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// Bits of a value below its highest one that choose the bucket.
const SUB_BITS: u32 = 3;
/// Buckets of all values of 64 bits.
const BUCKETS: usize = ((64 - SUB_BITS + 1) << SUB_BITS) as usize;

/// Requests of one class that completed in an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Completed {
    /// Kind of transaction or operation, such as `new_order` or `read`.
    pub class: String,
    /// Requests.
    pub requests: u64,
    /// Sum of their response times, ns.
    pub sum_ns: u64,
    /// Lower bound of a bucket of response times, ns, and the requests in it, ascending; empty
    /// buckets are left out.
    pub buckets: Vec<(u64, u64)>,
}

/// Requests completed since somebody looked.
#[derive(Debug)]
pub struct LiveTimes {
    sum_ns: AtomicU64,
    buckets: Box<[AtomicU64]>,
}

impl Default for LiveTimes {
    fn default() -> Self {
        let buckets = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        Self { sum_ns: AtomicU64::new(0), buckets }
    }
}

impl LiveTimes {
    /// Counts a request that took this long.
    #[inline]
    pub fn record(&self, response_ns: u64) {
        self.sum_ns.fetch_add(response_ns, Ordering::Relaxed);
        self.buckets[bucket(response_ns)].fetch_add(1, Ordering::Relaxed);
    }

    /// Takes what was counted since the last call. A request that completes meanwhile is counted
    /// once, in this interval or the next; its time may be in the neighbouring one.
    pub fn take(&self, class: &str) -> Completed {
        let mut taken = Completed { class: class.to_owned(), ..Completed::default() };
        for (index, bucket) in self.buckets.iter().enumerate() {
            if bucket.load(Ordering::Relaxed) > 0 {
                let requests = bucket.swap(0, Ordering::Relaxed);
                taken.requests += requests;
                taken.buckets.push((lower_bound(index), requests));
            }
        }
        taken.sum_ns = self.sum_ns.swap(0, Ordering::Relaxed);
        taken
    }
}

/// The bucket of a value.
#[inline]
fn bucket(value: u64) -> usize {
    let shift = (value | 1).ilog2().saturating_sub(SUB_BITS);
    // Values below eight have a bucket each; beyond, the leading bits count up within an octave.
    ((u64::from(shift) << SUB_BITS) + (value >> shift)) as usize
}

/// The smallest value of a bucket.
fn lower_bound(index: usize) -> u64 {
    let sub = 1 << SUB_BITS;
    if index < 2 * sub {
        return index as u64;
    }
    let shift = index / sub - 1;
    ((index - shift * sub) as u64) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_the_bucket_whose_bounds_hold_it() {
        let edges = (0..63).flat_map(|bit| [1u64 << bit, (1 << bit) + 1, (3 << bit) / 2]);
        for value in edges.chain([0, 7, 15, 1_000_000, u64::MAX]) {
            let index = bucket(value);
            assert!(index < BUCKETS, "{value}");
            assert!(lower_bound(index) <= value, "{value} in {index}");
            if index + 1 < BUCKETS {
                let next = lower_bound(index + 1);
                assert!(next > value, "{value} in {index}, which ends at {next}");
                assert!(index < 8 || (next - lower_bound(index)) * 8 <= lower_bound(index));
            }
        }
    }

    #[test]
    fn what_was_taken_is_not_taken_again() {
        let times = LiveTimes::default();
        for ns in [900, 1000, 1000, 5_000_000] {
            times.record(ns);
        }
        let taken = times.take("read");
        assert_eq!((taken.requests, taken.sum_ns), (4, 5_002_900));
        assert_eq!(taken.buckets, [(896, 1), (960, 2), (4_718_592, 1)]);
        assert_eq!(times.take("read"), Completed { class: "read".into(), ..Completed::default() });
    }
}
