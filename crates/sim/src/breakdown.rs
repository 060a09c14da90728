//! Where the time of the requests of a run went, of all and of the slowest.
//!
//! A mean says little about the slow ones, and which are slow is known only at the end. So paths
//! are summed by response time, in buckets of 1 part in 64, and the slowest percent is read from
//! the top: whole buckets, and of the last one a share. Memory does not grow with the run.
//!
//! Invariants: the parts of every path sum to the response time of its request (asserted), so the
//! parts of the means sum to the mean response time.

use model::observe::{Cause, Path};
use serde::{Deserialize, Serialize};

/// The time of the requests by cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Breakdown {
    /// Of all requests.
    pub all: MeanPath,
    /// Of the slowest [`Breakdown::SLOWEST_SHARE`] of them.
    pub slowest: MeanPath,
}

/// The mean path of some requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeanPath {
    /// How many.
    pub requests: u64,
    /// Their mean response time, ns.
    pub mean_ns: f64,
    /// What of it went where, the causes that took any time.
    pub parts: Vec<Part>,
}

/// What one cause takes of a mean response time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The cause.
    pub cause: Cause,
    /// Its part of the mean, ns.
    pub mean_ns: f64,
}

impl Breakdown {
    /// Which share of the requests counts as the slowest.
    pub const SLOWEST_SHARE: f64 = 0.01;
}

impl MeanPath {
    /// What `cause` takes, ns.
    pub fn of(&self, cause: Cause) -> f64 {
        self.parts.iter().find(|part| part.cause == cause).map_or(0.0, |part| part.mean_ns)
    }

    fn new(requests: u64, sums_ns: &[f64; Cause::COUNT]) -> Self {
        let count = requests.max(1) as f64;
        let parts = Cause::ALL.into_iter().zip(sums_ns).filter(|(_, sum)| **sum > 0.0);
        Self {
            requests,
            mean_ns: sums_ns.iter().sum::<f64>() / count,
            parts: parts.map(|(cause, sum)| Part { cause, mean_ns: sum / count }).collect(),
        }
    }
}

/// Collects paths while a simulation runs.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    buckets: Vec<Bucket>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    requests: u64,
    parts_ns: [u64; Cause::COUNT],
}

/// Buckets per power of two, as a power of two.
const SUB_BITS: u32 = 6;

impl Paths {
    /// Counts the path of a request that took `response_ns`.
    pub(crate) fn record(&mut self, path: &Path, response_ns: u64) {
        assert_eq!(path.total(), response_ns, "a path accounts for the time: {path:?}");
        let shift = (response_ns | 1 << SUB_BITS).ilog2() - SUB_BITS;
        let index = ((shift as usize) << SUB_BITS) + (response_ns >> shift) as usize;
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, Bucket::default());
        }
        let bucket = &mut self.buckets[index];
        bucket.requests += 1;
        for (sum, part) in bucket.parts_ns.iter_mut().zip(path.parts()) {
            *sum += part;
        }
    }

    pub(crate) fn finish(&self) -> Breakdown {
        let requests = self.buckets.iter().map(|bucket| bucket.requests).sum::<u64>();
        let slowest = (requests as f64 * Breakdown::SLOWEST_SHARE).ceil() as u64;
        Breakdown { all: self.slowest(requests), slowest: self.slowest(slowest) }
    }

    /// The mean path of the slowest `count` requests.
    fn slowest(&self, count: u64) -> MeanPath {
        let mut sums = [0.0; Cause::COUNT];
        let mut left = count;
        for bucket in self.buckets.iter().rev().filter(|bucket| bucket.requests > 0) {
            let taken = left.min(bucket.requests);
            let share = taken as f64 / bucket.requests as f64;
            for (sum, part) in sums.iter_mut().zip(bucket.parts_ns) {
                *sum += part as f64 * share;
            }
            left -= taken;
            if left == 0 {
                break;
            }
        }
        MeanPath::new(count, &sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_percent_is_told_apart() {
        let mut paths = Paths::default();
        for _ in 0..990 {
            paths.record(&Path::of(Cause::Medium, 1_000), 1_000);
        }
        let mut slow = Path::of(Cause::Medium, 1_000);
        slow.spend(Cause::Gc, 99_000);
        for _ in 0..10 {
            paths.record(&slow, 100_000);
        }
        let found = paths.finish();
        assert_eq!((found.all.requests, found.slowest.requests), (1_000, 10));
        assert_eq!((found.all.mean_ns, found.all.of(Cause::Gc)), (1_990.0, 990.0));
        assert_eq!((found.slowest.mean_ns, found.slowest.of(Cause::Gc)), (100_000.0, 99_000.0));
        assert_eq!(found.slowest.parts.len(), 2);
        assert_eq!(Paths::default().finish(), Breakdown::default());
    }

    /// Of a bucket that is cut, the mean of its requests.
    #[test]
    fn a_part_of_a_bucket_is_its_mean() {
        let mut paths = Paths::default();
        for _ in 0..1_000 {
            paths.record(&Path::of(Cause::Queue, 5_000), 5_000);
        }
        let found = paths.finish();
        assert_eq!((found.slowest.requests, found.slowest.of(Cause::Queue)), (10, 5_000.0));
    }

    #[test]
    #[should_panic(expected = "accounts for the time")]
    fn a_path_that_does_not_add_up_is_a_broken_model() {
        Paths::default().record(&Path::of(Cause::Queue, 5), 6);
    }
}
