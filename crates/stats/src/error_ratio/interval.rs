//! The interval of E by resampling blocks of the request sequence.
//!
//! Response times of neighbouring requests are correlated (queues, flushes, garbage collection), so
//! whole blocks are drawn; and a block takes the simulated and the real side together, so what both
//! have in common does not count as uncertainty. The sequence is wrapped around its end (circular
//! block bootstrap), which makes every request equally likely.
//!
//! Resampled distances are on average too large, since noise moves two distributions apart and never
//! together. The interval is therefore moved so that the median of the resampled values lies on E
//! itself, and cut at 0.
//!
//! Cost: both sides are sorted once; a resample is one pass over them with weights. Sequences longer
//! than [`LONGEST`] are thinned to every k-th request first, with blocks k times shorter: the blocks
//! are what varies, and thinning leaves enough of each. Fewer than [`FEWEST_BLOCKS`] blocks give no
//! interval.

use crate::bootstrap::percentiles;
use crate::rng::Rng;

/// Requests that take part in resampling.
const LONGEST: usize = 1 << 20;
/// Below this many blocks an interval would be a guess.
const FEWEST_BLOCKS: usize = 8;

/// How to resample.
#[derive(Clone, Copy, Debug)]
pub struct Resampling<'a> {
    /// Resamples; 200 are enough for two digits.
    pub resamples: usize,
    /// Seed: the same one gives the same interval.
    pub seed: u64,
    /// What is drawn.
    pub block: Block<'a>,
}

/// A stretch of the sequence that stays together: at least 1 s or 10 autocorrelation times.
#[derive(Clone, Copy, Debug)]
pub enum Block<'a> {
    /// So many requests.
    Requests(usize),
    /// The requests due within so much time.
    Time {
        /// Due time of every real request, ns; never falls.
        due_ns: &'a [u64],
        /// Length of a block, ns.
        block_ns: u64,
    },
}

impl Resampling<'_> {
    /// The due times of some requests, empty where blocks are counted in requests.
    pub(super) fn due_of(&self, members: &[usize]) -> Vec<u64> {
        match self.block {
            Block::Requests(_) => Vec::new(),
            Block::Time { due_ns, .. } => members.iter().map(|index| due_ns[*index]).collect(),
        }
    }

    /// The same resampling for a class that has `count` of the `total` requests, due at `due_ns`.
    pub(super) fn of_class<'b>(
        &self,
        count: usize,
        total: usize,
        due_ns: &'b [u64],
    ) -> Resampling<'b> {
        let block = match self.block {
            Block::Requests(block) => Block::Requests((block * count).div_ceil(total).max(1)),
            Block::Time { block_ns, .. } => Block::Time { due_ns, block_ns },
        };
        Resampling { resamples: self.resamples, seed: self.seed, block }
    }
}

/// The interval around `error_ratio`, or `None` where the sequence has too few blocks for one.
pub(super) fn of_error_ratio(
    simulated: &[u64],
    real: &[u64],
    resampling: &Resampling<'_>,
    error_ratio: f64,
) -> Option<(f64, f64)> {
    if simulated.is_empty() || real.is_empty() || resampling.resamples == 0 {
        return None;
    }
    let step = simulated.len().max(real.len()).div_ceil(LONGEST);
    let thin = |side: &[u64]| -> Vec<u64> { side.iter().step_by(step).copied().collect() };
    let union = Union::new(&thin(simulated), &thin(real));
    let blocks = Blocks::new(resampling, real.len(), union.count_real, step)?;
    let mut rng = Rng::new(resampling.seed);
    let values: Vec<f64> = (0..resampling.resamples)
        .map(|_| union.error_ratio(&blocks.draw(&mut rng, union.count_real)))
        .collect();
    let mut sorted = values.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = crate::quantile::median(&sorted);
    let (low, high) = percentiles(values);
    Some(((error_ratio - (middle - low)).max(0.0), error_ratio + (high - middle)))
}

/// How blocks are drawn, in indices of the thinned real side.
enum Blocks {
    /// `count` blocks of `length` requests.
    Requests { length: usize, count: usize },
    /// `count` blocks of `length_ns`; `due_ns` of the thinned requests from the first.
    Time { due_ns: Vec<u64>, length_ns: u64, span_ns: u64, count: usize },
}

impl Blocks {
    fn new(resampling: &Resampling<'_>, full: usize, thinned: usize, step: usize) -> Option<Self> {
        let blocks = match resampling.block {
            Block::Requests(length) => {
                let length = (length / step).clamp(1, thinned);
                Self::Requests { length, count: thinned.div_ceil(length) }
            }
            Block::Time { due_ns, block_ns } => {
                if due_ns.len() != full || block_ns == 0 {
                    return None;
                }
                let first = due_ns[0];
                let due: Vec<u64> =
                    due_ns.iter().step_by(step).map(|t| t.saturating_sub(first)).collect();
                let span_ns = due[due.len() - 1] + 1;
                let count = usize::try_from(span_ns.div_ceil(block_ns)).ok()?.min(LONGEST);
                Self::Time { due_ns: due, length_ns: block_ns, span_ns, count }
            }
        };
        (blocks.count() >= FEWEST_BLOCKS).then_some(blocks)
    }

    fn count(&self) -> usize {
        match self {
            Self::Requests { count, .. } | Self::Time { count, .. } => *count,
        }
    }

    /// One resample, as index ranges (start, end) of the real side. A block is at most an eighth of
    /// the sequence, so one that runs over the end never meets itself.
    fn draw(&self, rng: &mut Rng, total: usize) -> Vec<(usize, usize)> {
        let mut ranges = Vec::with_capacity(2 * self.count());
        for _ in 0..self.count() {
            match self {
                Self::Requests { length, .. } => {
                    let start = rng.below(total as u64) as usize;
                    let end = start + length;
                    ranges.push((start, end.min(total)));
                    ranges.push((0, end.saturating_sub(total)));
                }
                Self::Time { due_ns, length_ns, span_ns, .. } => {
                    let start = rng.below(*span_ns);
                    let end = start + length_ns;
                    let index_at = |time: u64| due_ns.partition_point(|due| *due < time);
                    ranges.push((index_at(start), index_at(end.min(*span_ns))));
                    ranges.push((0, index_at(end.saturating_sub(*span_ns))));
                }
            }
        }
        ranges
    }
}

/// Both sides in one ascending order, each value with where it came from.
struct Union {
    values: Vec<u64>,
    /// Index in its own side, doubled, plus one for the real side.
    source: Vec<u32>,
    count_simulated: usize,
    count_real: usize,
}

impl Union {
    fn new(simulated: &[u64], real: &[u64]) -> Self {
        let tagged = |side: &[u64], tag: u32| -> Vec<(u64, u32)> {
            side.iter().enumerate().map(|(i, value)| (*value, i as u32 * 2 + tag)).collect()
        };
        let mut all = tagged(simulated, 0);
        all.extend(tagged(real, 1));
        all.sort_unstable();
        Self {
            values: all.iter().map(|entry| entry.0).collect(),
            source: all.iter().map(|entry| entry.1).collect(),
            count_simulated: simulated.len(),
            count_real: real.len(),
        }
    }

    /// E of the resample that takes every request as often as the ranges cover it.
    fn error_ratio(&self, ranges: &[(usize, usize)]) -> f64 {
        let scale = |index: usize| {
            (index as u128 * self.count_simulated as u128 / self.count_real as u128) as usize
        };
        let simulated =
            coverage(ranges.iter().map(|(a, b)| (scale(*a), scale(*b))), self.count_simulated);
        let real = coverage(ranges.iter().copied(), self.count_real);
        let weights = [&simulated, &real];
        let totals = weights.map(|side| side.iter().map(|w| u64::from(*w)).sum::<u64>().max(1));
        let inverse = totals.map(|total| 1.0 / total as f64);
        let mut seen = [0u64; 2];
        let (mut area, mut sum_real, mut last) = (0.0, 0.0, 0u64);
        for (value, source) in self.values.iter().zip(&self.source) {
            let side = (source & 1) as usize;
            let weight = u64::from(weights[side][(source >> 1) as usize]);
            let gap = (seen[0] as f64 * inverse[0] - seen[1] as f64 * inverse[1]).abs();
            area += gap * (value - last) as f64;
            last = *value;
            seen[side] += weight;
            sum_real += *value as f64 * (weight * side as u64) as f64;
        }
        area / (sum_real * inverse[1]).max(1.0)
    }
}

/// How often each index is covered by the ranges.
fn coverage(ranges: impl Iterator<Item = (usize, usize)>, count: usize) -> Vec<u32> {
    let mut change = vec![0i32; count + 1];
    for (start, end) in ranges {
        change[start] += 1;
        change[end] -= 1;
    }
    let mut level = 0;
    let mut level_after = |change: &i32| {
        level += change;
        level as u32
    };
    change[..count].iter().map(&mut level_after).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{compare, compare_with_interval};
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;

    fn resampling(seed: u64, block: Block<'_>) -> Resampling<'_> {
        Resampling { resamples: 100, seed, block }
    }

    /// Weights of one resample must reproduce E of the samples it stands for.
    #[test]
    fn a_resample_is_what_its_ranges_say() {
        let (simulated, real) = ([5u64, 9, 1, 30, 2, 8], [4u64, 4, 10, 11, 3, 9]);
        let union = Union::new(&simulated, &real);
        let ranges = [(1, 4), (2, 6), (0, 1)];
        let take = |side: &[u64]| -> Vec<u64> {
            ranges.iter().flat_map(|(a, b)| side[*a..*b].to_vec()).collect()
        };
        let expected = compare(&take(&simulated), &take(&real)).error_ratio;
        assert!((union.error_ratio(&ranges) - expected).abs() < 1e-12);
    }

    /// Two exponential sides of means 90 and 100 have E = 0.1; 95 % of the intervals should hold it.
    #[test]
    fn intervals_hold_the_true_e_as_often_as_they_say() {
        let runs = 200;
        let hits = (0..runs).filter(|seed| {
            let mut rng = Rng::new(*seed);
            let mut side = |mean: f64| -> Vec<u64> {
                (0..2000).map(|_| rng.exponential(mean).round() as u64).collect()
            };
            let (simulated, real) = (side(90_000.0), side(100_000.0));
            let found =
                compare_with_interval(&simulated, &real, &resampling(*seed, Block::Requests(20)));
            let (low, high) = found.error_ratio_interval.expect("an interval");
            low <= 0.1 && 0.1 <= high
        });
        let share = hits.count() as f64 / runs as f64;
        assert!((0.88..=1.0).contains(&share), "coverage {share}");
    }

    #[test]
    fn what_both_sides_have_in_common_is_no_uncertainty() {
        let mut rng = Rng::new(1);
        let real: Vec<u64> = (0..5000).map(|_| 1000 + rng.below(100_000)).collect();
        let simulated: Vec<u64> = real.iter().map(|value| value + value / 10).collect();
        let found = compare_with_interval(&simulated, &real, &resampling(1, Block::Requests(50)));
        let (low, high) = found.error_ratio_interval.expect("an interval");
        assert!(high - low < 1e-3 && low <= found.error_ratio && found.error_ratio <= high);
    }

    #[test]
    fn blocks_of_time_follow_the_due_times() {
        let mut rng = Rng::new(2);
        let mut due = Vec::new();
        let mut now = 7_000_000_000u64;
        let (mut simulated, mut real) = (Vec::new(), Vec::new());
        for index in 0..20_000u64 {
            // Bursts: the second half of every second is ten times as busy and twice as slow.
            let busy = now % 1_000_000_000 > 500_000_000;
            now += rng.exponential(if busy { 200_000.0 } else { 2_000_000.0 }) as u64;
            due.push(now);
            real.push(if busy { 200_000 } else { 100_000 } + rng.below(20_000));
            simulated.push(150_000 + index % 1000);
        }
        let block = Block::Time { due_ns: &due, block_ns: 1_000_000_000 };
        let (low, high) = compare_with_interval(&simulated, &real, &resampling(1, block))
            .error_ratio_interval
            .expect("an interval");
        assert!(low < high, "{low} {high}");
        let short = Block::Time { due_ns: &due, block_ns: 60_000_000_000 };
        let found = compare_with_interval(&simulated, &real, &resampling(1, short));
        assert_eq!(found.error_ratio_interval, None, "one block is no sample");
    }

    #[test]
    fn too_little_to_resample() {
        let tall: Vec<u64> = (0..100).collect();
        let ask = |simulated: &[u64], real: &[u64], block| {
            compare_with_interval(simulated, real, &resampling(1, block)).error_ratio_interval
        };
        assert_eq!(ask(&[], &tall, Block::Requests(1)), None);
        assert_eq!(ask(&tall, &[], Block::Requests(1)), None);
        assert_eq!(ask(&tall, &tall, Block::Requests(20)), None);
        assert_eq!(ask(&tall, &tall, Block::Time { due_ns: &[1], block_ns: 1 }), None);
        assert_eq!(ask(&tall, &tall, Block::Time { due_ns: &tall, block_ns: 0 }), None);
        assert!(ask(&tall, &tall, Block::Requests(0)).is_some());
    }

    proptest! {
        #[test]
        fn any_blocks_stay_inside_the_sequence(
            gaps in prop::collection::vec(0u64..50, 10..80),
            block_ns in 1u64..200,
            block in 1usize..12,
            seed: u64,
        ) {
            let due: Vec<u64> = gaps.iter().scan(0, |now, gap| { *now += gap; Some(*now) }).collect();
            let real: Vec<u64> = gaps.iter().map(|gap| gap * 3 + 1).collect();
            let simulated = &gaps[..gaps.len() / 2];
            for block in [Block::Requests(block), Block::Time { due_ns: &due, block_ns }] {
                let resampling = resampling(seed, block);
                let found = compare_with_interval(simulated, &real, &resampling);
                if let Some((low, high)) = found.error_ratio_interval {
                    prop_assert!(low <= found.error_ratio && found.error_ratio <= high);
                }
                let again = compare_with_interval(simulated, &real, &resampling);
                prop_assert_eq!(found, again);
            }
        }
    }
}
