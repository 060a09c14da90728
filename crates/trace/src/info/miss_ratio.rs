//! Which share of block touches an LRU cache of each size would miss.
//!
//! Every read and write touches the 4 KiB blocks it covers, in ascending order; flushes and trims
//! touch none. A cache starts empty, so the first touch of a block always misses. [`exact`] looks
//! at every touch; [`sampled`] follows SHARDS (Waldspurger, Park, Garthwaite, Ahmad, "Efficient MRC
//! construction with SHARDS", FAST 2015) at a fixed rate: only blocks whose hash falls below a
//! threshold, with distances divided by the rate. Its correction (SHARDS-adj: what the sample has
//! too many or too few touches counts as hits of the smallest cache) comes to counting sampled
//! *misses* against the touches expected in the sample.
//!
//! Distances are counted in buckets, 128 to a power of two; a curve has its points at the edges of
//! buckets, where the counts are exact, and is linear between them.
//!
//! Invariants: miss ratios lie in 0..=1 and never rise with the size; the last point is the share
//! of first touches. Tested against a simulated cache of each size, and against the closed form of
//! Che, Tung, Wang ("Hierarchical Web caching systems", IEEE JSAC 20(7), 2002) for independent
//! requests.

use serde::{Deserialize, Serialize};
use stats::rng;

use super::BLOCK_BYTES;
use super::lru::LruStack;
use super::touches;
use crate::Trace;

/// Buckets per power of two of distance, as a power of two.
const SUB_BITS: u32 = 7;
/// Cache sizes at which two curves are compared.
const COMPARED_SIZES: u32 = 100;

/// A miss-ratio curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MissRatioCurve {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Share of the blocks that were looked at; 1 where the curve is exact.
    pub rate: f64,
    /// Touches of blocks by reads and writes.
    pub touches: u64,
    /// Distinct blocks touched; an estimate where the curve is sampled.
    pub working_set_blocks: u64,
    /// Points by ascending size; the first is a cache of nothing, which misses all.
    pub points: Vec<CurvePoint>,
}

/// One point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Blocks that the cache holds.
    pub cache_blocks: u64,
    /// Misses over touches.
    pub miss_ratio: f64,
}

/// Which blocks a sampled curve looks at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Share of the blocks, above 0 and at most 1.
    pub rate: f64,
    /// Which blocks: another seed, another sample.
    pub seed: u64,
}

impl Default for Sampling {
    /// One block in a hundred.
    fn default() -> Self {
        Self { rate: 0.01, seed: 1 }
    }
}

impl Sampling {
    /// Whether a block is in the sample.
    #[inline]
    pub(crate) fn filter(self) -> impl Fn(u64) -> bool + Copy {
        let threshold = (self.rate.clamp(0.0, 1.0) * 2f64.powi(64)) as u64;
        let salt = rng::mix(self.seed);
        move |block| rng::mix(block ^ salt) <= threshold
    }
}

/// Every touch counted. Needs about 40 bytes of memory per distinct block.
pub fn exact(trace: &Trace) -> MissRatioCurve {
    let mut stack = LruStack::new();
    let mut distances = Distances::default();
    let touches = touches::for_batches(
        trace,
        0..trace.count(),
        |_| true,
        |blocks, _| {
            stack.warm(blocks);
            for &block in blocks {
                distances.record(stack.touch(block).distance);
            }
        },
    );
    distances.curve(1.0, touches)
}

/// A sample of the blocks, see the module's header.
pub fn sampled(trace: &Trace, sampling: Sampling) -> MissRatioCurve {
    let mut stack = LruStack::new();
    let mut distances = Distances::default();
    let touches = touches::for_batches(trace, 0..trace.count(), sampling.filter(), |blocks, _| {
        for &block in blocks {
            distances.record(stack.touch(block).distance);
        }
    });
    distances.curve(sampling.rate, touches)
}

/// Mean absolute difference of two curves over 100 cache sizes, equally spaced up to the larger
/// working set.
pub fn mean_absolute_error(a: &MissRatioCurve, b: &MissRatioCurve) -> f64 {
    let largest = a.working_set_blocks.max(b.working_set_blocks) as f64;
    let at = |step: u32| largest * f64::from(step) / f64::from(COMPARED_SIZES);
    let difference = |step| (a.miss_ratio_at(at(step)) - b.miss_ratio_at(at(step))).abs();
    (1..=COMPARED_SIZES).map(difference).sum::<f64>() / f64::from(COMPARED_SIZES)
}

impl MissRatioCurve {
    /// Misses over touches of a cache of this many blocks.
    pub fn miss_ratio_at(&self, cache_blocks: f64) -> f64 {
        let behind = self.points.partition_point(|point| point.cache_blocks as f64 <= cache_blocks);
        let Some(low) = behind.checked_sub(1).map(|index| self.points[index]) else { return 1.0 };
        let Some(high) = self.points.get(behind) else { return low.miss_ratio };
        let span = (high.cache_blocks - low.cache_blocks) as f64;
        let share = (cache_blocks - low.cache_blocks as f64) / span;
        low.miss_ratio + (high.miss_ratio - low.miss_ratio) * share
    }

    /// The smallest cache whose miss ratio is at most that, blocks; `None` where none is.
    pub fn blocks_for(&self, miss_ratio: f64) -> Option<u64> {
        let reached = self.points.iter().find(|point| point.miss_ratio <= miss_ratio);
        reached.map(|point| point.cache_blocks)
    }

    /// The curve at fewer points: at most eight per doubling of the size, and its ends.
    #[must_use]
    pub fn thinned(&self) -> Self {
        let class = |blocks: u64| ((blocks.max(1) as f64).log2() * 8.0).round() as i64;
        let mut points: Vec<CurvePoint> = Vec::new();
        for &point in &self.points {
            match points.last_mut() {
                // The last of a class stands for it, so that the end of the curve stays.
                Some(last)
                    if last.cache_blocks > 0
                        && class(last.cache_blocks) == class(point.cache_blocks) =>
                {
                    *last = point;
                }
                _ => points.push(point),
            }
        }
        Self { points, ..self.clone() }
    }
}

/// Stack distances, counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Distances {
    counts: Vec<u64>,
    /// Touches that have none.
    firsts: u64,
}

impl Distances {
    #[inline]
    pub(crate) fn record(&mut self, distance: Option<u32>) {
        let Some(distance) = distance else {
            self.firsts += 1;
            return;
        };
        let index = index_of(distance);
        match self.counts.get_mut(index) {
            Some(count) => *count += 1,
            None => self.grow_and_add(index),
        }
    }

    #[cold]
    fn grow_and_add(&mut self, index: usize) {
        let octave = 1usize << SUB_BITS;
        self.counts.resize((index / octave + 1) * octave, 0);
        self.counts[index] += 1;
    }

    /// Touches counted.
    pub(crate) fn count(&self) -> u64 {
        self.firsts + self.counts.iter().sum::<u64>()
    }

    /// Counts by power of two of the distance in blocks, distance 0 with 1: (first distance behind
    /// the class, count), scaled to the whole where a share of the blocks was looked at.
    pub(crate) fn octaves(&self, rate: f64) -> Vec<(u64, f64)> {
        let mut classes = std::collections::BTreeMap::new();
        for (index, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let distance = (edge_of(index) as f64 / rate) as u64;
            *classes.entry(distance.max(1).ilog2()).or_insert(0.0) += count as f64 / rate;
        }
        classes.into_iter().map(|(octave, count)| (2 << octave, count)).collect()
    }

    /// The curve of what was counted at `rate` out of `touches` in all.
    pub(crate) fn curve(&self, rate: f64, touches: u64) -> MissRatioCurve {
        let mut points = vec![CurvePoint { cache_blocks: 0, miss_ratio: 1.0 }];
        let expected = touches as f64 * rate;
        let mut misses = self.count();
        for (index, &count) in self.counts.iter().enumerate() {
            misses -= count;
            let cache_blocks = (edge_of(index + 1) as f64 / rate).round() as u64;
            let miss_ratio = (misses as f64 / expected).min(1.0);
            points.push(CurvePoint { cache_blocks, miss_ratio });
            if misses == self.firsts {
                break;
            }
        }
        MissRatioCurve {
            block_bytes: BLOCK_BYTES,
            rate,
            touches,
            working_set_blocks: (self.firsts as f64 / rate).round() as u64,
            points,
        }
    }
}

/// The bucket of a distance: itself below 256, then 128 to a power of two.
#[inline]
fn index_of(distance: u32) -> usize {
    let shift = (distance | 1).ilog2().saturating_sub(SUB_BITS);
    (distance >> shift) as usize + ((shift as usize) << SUB_BITS)
}

/// The smallest distance in a bucket.
fn edge_of(index: usize) -> u64 {
    let shift = (index >> SUB_BITS).saturating_sub(1);
    ((index - (shift << SUB_BITS)) as u64) << shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{OltpLike, oltp_like};
    use crate::info::lru::tests::ListStack;
    use crate::{Request, Stream};
    use proptest::prelude::*;
    use units::{Bytes, Nanos};

    /// One request per range of blocks, writes and reads in turn.
    fn trace(ranges: impl IntoIterator<Item = (u64, u64)>) -> Trace {
        let mut trace = Trace { streams: vec![Stream::default()], ..Trace::default() };
        for (at, (first, blocks)) in ranges.into_iter().enumerate() {
            let op = [crate::Op::Read, crate::Op::Write][at % 2];
            let (due, offset) = (Nanos(at as u64), Bytes(first * BLOCK_BYTES));
            trace.push(Request { due, offset, len: (blocks * BLOCK_BYTES) as u32, op, stream: 0 });
        }
        trace
    }

    /// Misses of one LRU cache that starts empty.
    fn simulated_misses(trace: &Trace, cache_blocks: u64) -> u64 {
        let mut stack = ListStack::default();
        let mut misses = 0;
        for_each(trace, |block| {
            let hit = stack.touch(block).is_some_and(|depth| u64::from(depth) < cache_blocks);
            misses += u64::from(!hit);
        });
        misses
    }

    fn for_each(trace: &Trace, mut visit: impl FnMut(u64)) {
        for request in trace.requests() {
            let first = request.offset.0 / BLOCK_BYTES;
            (first..first + u64::from(request.len) / BLOCK_BYTES).for_each(&mut visit);
        }
    }

    /// Independent requests, block `i` with probability proportional to `(i + 1)^-exponent`.
    pub(crate) fn zipf(blocks: u64, exponent: f64, requests: u64) -> (Trace, Vec<f64>) {
        let weights: Vec<f64> = (1..=blocks).map(|rank| (rank as f64).powf(-exponent)).collect();
        let total: f64 = weights.iter().sum();
        let below: Vec<f64> = weights
            .iter()
            .scan(0.0, |sum, weight| {
                *sum += weight / total;
                Some(*sum)
            })
            .collect();
        let mut rng = rng::Rng::new(9);
        let draw = |_| {
            let unit = rng.unit();
            (below.partition_point(|sum| *sum < unit).min(blocks as usize - 1) as u64, 1)
        };
        (trace((0..requests).map(draw)), weights.iter().map(|weight| weight / total).collect())
    }

    proptest! {
        #[test]
        fn every_point_is_what_a_cache_of_that_size_misses(
            ranges in prop::collection::vec((0u64..300, 1u64..6), 1..150)
        ) {
            let trace = trace(ranges);
            let curve = exact(&trace);
            for point in &curve.points {
                let misses = simulated_misses(&trace, point.cache_blocks);
                prop_assert_eq!(point.miss_ratio, misses as f64 / curve.touches as f64);
            }
            let firsts = curve.working_set_blocks as f64 / curve.touches as f64;
            prop_assert_eq!(curve.points.last().map(|point| point.miss_ratio), Some(firsts));
            // A sample of everything is the exact curve.
            prop_assert_eq!(sampled(&trace, Sampling { rate: 1.0, seed: 7 }), curve);
        }

        #[test]
        fn buckets_join_without_gap_or_overlap(distance in 0u32..) {
            let index = index_of(distance);
            let distance = u64::from(distance);
            prop_assert!(edge_of(index) <= distance && distance < edge_of(index + 1));
        }
    }

    #[test]
    fn large_distances_are_exact_at_the_edges() {
        // Three rounds over 5,000 blocks: nothing below 5,000 blocks hits, everything at it.
        let curve = exact(&trace((0..15_000).map(|at| (at % 5_000, 1))));
        assert_eq!((curve.touches, curve.working_set_blocks), (15_000, 5_000));
        // 4,999 falls in the bucket from 4,992 to 5,024.
        assert_eq!(curve.miss_ratio_at(4_992.0), 1.0);
        assert_eq!(curve.miss_ratio_at(5_024.0), 1.0 / 3.0);
        assert_eq!(curve.blocks_for(0.5), Some(5_024));
        assert_eq!(curve.blocks_for(0.1), None);
    }

    #[test]
    fn independent_zipf_requests_follow_che() {
        let requests = 400_000;
        let (trace, chance) = zipf(10_000, 0.9, requests);
        let curve = exact(&trace);
        for cache_blocks in [100.0, 500.0, 2_000.0] {
            let (mut low, mut high) = (0.0, 1e9);
            for _ in 0..100 {
                let time = f64::midpoint(low, high);
                let held: f64 = chance.iter().map(|p| 1.0 - (-p * time).exp()).sum();
                if held < cache_blocks { low = time } else { high = time }
            }
            let steady: f64 = chance.iter().map(|p| p * (-p * low).exp()).sum();
            // Until the cache is full, at time T, exactly its blocks are missed.
            let n = requests as f64;
            let expected = (cache_blocks + (n - low) * steady) / n;
            let found = curve.miss_ratio_at(cache_blocks);
            // The approximation is within 0.002 of simulations with 0.69 and 0.70 (see the header).
            assert!((found - expected).abs() < 0.002, "{cache_blocks}: {found} for {expected}");
        }
    }

    #[test]
    fn a_sample_errs_as_its_size_says() {
        let (trace, _) = zipf(100_000, 0.8, 1_000_000);
        let whole = exact(&trace);
        let blocks = whole.working_set_blocks as f64;
        let mean_error = |rate: f64| {
            let error = |seed| {
                let curve = sampled(&trace, Sampling { rate, seed });
                // Each block is in the sample or not: binomial, four standard deviations.
                let deviation = ((1.0 - rate) / rate * blocks).sqrt();
                let found = curve.working_set_blocks as f64;
                assert!((found - blocks).abs() < 4.0 * deviation, "{found} of {blocks}");
                mean_absolute_error(&whole, &curve)
            };
            (1..=8).map(error).sum::<f64>() / 8.0
        };
        // About 700 and 7,000 blocks are in the samples. Their numbers vary by 3.8 % and 1.1 %, and
        // with them the misses, which are half of the touches on average: 0.019 and 0.006 at most.
        let [coarse, fine] = [0.01, 0.1].map(mean_error);
        assert!(coarse < 0.019 && fine < 0.006, "{coarse} {fine}");
        assert_eq!(mean_absolute_error(&whole, &whole), 0.0);
    }

    #[test]
    fn thinning_keeps_the_ends_and_points_of_the_curve() {
        let curve = exact(&oltp_like(&OltpLike { transactions: 2_000, ..OltpLike::default() }));
        let thin = curve.thinned();
        assert!(thin.points.len() < 130, "{}", thin.points.len());
        assert_eq!(thin.points.first(), curve.points.first());
        assert_eq!(thin.points.last(), curve.points.last());
        assert!(thin.points.iter().all(|point| curve.points.contains(point)));
        assert!(mean_absolute_error(&thin, &curve) < 0.002);
        assert!(thin.points.is_sorted_by(|a, b| a.cache_blocks < b.cache_blocks));
    }

    #[test]
    fn nothing_touched_misses_everything() {
        let empty = exact(&Trace::default());
        assert_eq!((empty.touches, empty.points.len()), (0, 1));
        assert_eq!(empty.miss_ratio_at(1e6), 1.0);
        assert_eq!(sampled(&Trace::default(), Sampling::default()).points.len(), 1);
    }
}
