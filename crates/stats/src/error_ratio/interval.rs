//! The interval of E by resampling blocks of the request sequence.
//!
//! Response times of neighbouring requests are correlated (queues, flushes, garbage collection), so
//! whole blocks are drawn; and a block takes the simulated and the real side together, so what both
//! have in common does not count as uncertainty. The sequence is wrapped around its end (circular
//! block bootstrap), which makes every request equally likely.
//!
//! Resampled distances are on average too large, since noise moves two distributions apart and
//! never together. The interval is therefore moved so that the median of the resampled values lies
//! on E itself, and cut at 0.
//!
//! Cost: values are put into at most 31,000 bins once, each distinct value into its own where there
//! are no more than 16,384 requests on both sides; a resample then counts each drawn request in its
//! bin. A bin holds at most 1 in 16,384 of the requests and is at most 1/256 of its value wide, so
//! its middle stands for all of it. Sequences longer than [`LONGEST`] are thinned to every k-th
//! request first, with blocks k times shorter. 200 resamples of two sides of a million requests
//! take about a second (`benches/error_ratio.rs`). Fewer than [`FEWEST_BLOCKS`] blocks give no
//! interval.

use crate::bootstrap::{CONFIDENCE, percentiles};
use crate::histogram::index_of;
use crate::rng::Rng;

/// Requests that take part in resampling.
const LONGEST: usize = 1 << 20;
/// Bins if none were split by the width rule; with it they still fit 16 bits.
const BINS: usize = 1 << 14;
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
    /// This many requests.
    Requests(usize),
    /// The requests due within this much time.
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
    let binned = Binned::new(&thin(simulated), &thin(real));
    let count = binned.real.len();
    let blocks = Blocks::new(resampling, real.len(), count, step)?;
    let mut rng = Rng::new(resampling.seed);
    let values: Vec<f64> = (0..resampling.resamples)
        .map(|_| binned.error_ratio(&blocks.draw(&mut rng, count)))
        .collect();
    let mut sorted = values.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = crate::quantile::median(&sorted);
    let (low, high) = percentiles(values, CONFIDENCE);
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

/// Both sides in bins of one ascending scale.
struct Binned {
    /// Mean of the values in each bin; ascending.
    centres: Vec<f64>,
    /// Bin of each simulated request.
    simulated: Vec<u16>,
    /// Bin of each real request.
    real: Vec<u16>,
}

impl Binned {
    fn new(simulated: &[u64], real: &[u64]) -> Self {
        let mut sorted: Vec<u64> = simulated.iter().chain(real).copied().collect();
        sorted.sort_unstable();
        let fullest = sorted.len().div_ceil(BINS);
        let (mut starts, mut centres) = (Vec::new(), Vec::new());
        let (mut count, mut sum) = (0usize, 0u128);
        let mut last = None;
        for &value in &sorted {
            let is_new = last != Some(value);
            let crosses = last.is_none_or(|last| index_of(last) != index_of(value));
            if is_new && (crosses || count >= fullest) {
                if count > 0 {
                    centres.push(sum as f64 / count as f64);
                }
                starts.push(value);
                (count, sum) = (0, 0);
            }
            count += 1;
            sum += u128::from(value);
            last = Some(value);
        }
        centres.push(sum as f64 / count as f64);
        let bin_of = |value: &u64| (starts.partition_point(|start| start <= value) - 1) as u16;
        Self {
            simulated: simulated.iter().map(bin_of).collect(),
            real: real.iter().map(bin_of).collect(),
            centres,
        }
    }

    /// E of the resample that takes every request as often as the ranges cover it.
    fn error_ratio(&self, ranges: &[(usize, usize)]) -> f64 {
        let (count_simulated, count_real) = (self.simulated.len(), self.real.len());
        let scale =
            |index: usize| (index as u128 * count_simulated as u128 / count_real as u128) as usize;
        let mut simulated = vec![0u32; self.centres.len()];
        let mut real = vec![0u32; self.centres.len()];
        for &(start, end) in ranges {
            for bin in &self.simulated[scale(start)..scale(end)] {
                simulated[usize::from(*bin)] += 1;
            }
            for bin in &self.real[start..end] {
                real[usize::from(*bin)] += 1;
            }
        }
        let total = |counts: &[u32]| counts.iter().map(|count| u64::from(*count)).sum::<u64>();
        let inverse = [&simulated, &real].map(|counts| 1.0 / total(counts).max(1) as f64);
        let (mut seen_simulated, mut seen_real) = (0u64, 0u64);
        let (mut area, mut sum_real, mut last) = (0.0, 0.0, 0.0);
        for (index, centre) in self.centres.iter().enumerate() {
            let gap = seen_simulated as f64 * inverse[0] - seen_real as f64 * inverse[1];
            area += gap.abs() * (centre - last);
            last = *centre;
            seen_simulated += u64::from(simulated[index]);
            seen_real += u64::from(real[index]);
            sum_real += centre * f64::from(real[index]);
        }
        area / (sum_real * inverse[1]).max(1.0)
    }
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
        let binned = Binned::new(&simulated, &real);
        let ranges = [(1, 4), (2, 6), (0, 1)];
        let take = |side: &[u64]| -> Vec<u64> {
            ranges.iter().flat_map(|(a, b)| side[*a..*b].to_vec()).collect()
        };
        let expected = compare(&take(&simulated), &take(&real)).error_ratio;
        assert!((binned.error_ratio(&ranges) - expected).abs() < 1e-12);
    }

    /// With more requests than bins, bins stand for their values closely enough.
    #[test]
    fn bins_change_little() {
        let mut rng = Rng::new(8);
        let mut side =
            |mean: f64| -> Vec<u64> { (0..60_000).map(|_| rng.exponential(mean) as u64).collect() };
        let (simulated, real) = (side(9e4), side(1e5));
        let binned = Binned::new(&simulated, &real);
        assert!(binned.centres.is_sorted() && binned.centres.len() < 30_000);
        let exact = compare(&simulated, &real).error_ratio;
        let found = binned.error_ratio(&[(0, real.len())]);
        assert!((found - exact).abs() < 1e-5, "{found} {exact}");
        // A value at every power of two and at both ends of the range still has a bin of its own.
        let wide: Vec<u64> = (0..64).map(|bit| 1 << bit).chain([0, u64::MAX]).collect();
        assert_eq!(Binned::new(&wide, &wide).centres.len(), 66);
    }

    /// Two exponential sides of means 90 and 100 have E = 0.1; 95 % of the intervals should hold
    /// it.
    #[test]
    fn intervals_hold_the_true_e_as_often_as_they_say() {
        let runs = 100;
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

    /// Two runs of the same device: resampling adds as much noise as there is, so that all
    /// resampled values may exceed E. The interval must hold E all the same.
    #[test]
    fn noise_does_not_move_the_interval_away_from_e() {
        for seed in 0..30 {
            let mut rng = Rng::new(seed);
            let mut side =
                || -> Vec<u64> { (0..500).map(|_| rng.exponential(1e5).round() as u64).collect() };
            let (simulated, real) = (side(), side());
            let found =
                compare_with_interval(&simulated, &real, &resampling(seed, Block::Requests(5)));
            let (low, high) = found.error_ratio_interval.expect("an interval");
            assert!(low < found.error_ratio && found.error_ratio < high, "{low} {high} {found:?}");
        }
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

    /// Wrapping around the end makes the first and the last request as likely as any other.
    #[test]
    fn every_request_is_drawn_equally_often() {
        let due: Vec<u64> = (0..40).map(|index| 1_000 + index * 100).collect();
        for block in [Block::Requests(5), Block::Time { due_ns: &due, block_ns: 500 }] {
            let blocks = Blocks::new(&resampling(1, block), 40, 40, 1).expect("eight blocks");
            let mut rng = Rng::new(1);
            let mut drawn = [0u32; 40];
            for (start, end) in (0..2000).flat_map(|_| blocks.draw(&mut rng, 40)) {
                drawn[start..end].iter_mut().for_each(|count| *count += 1);
            }
            // About 2,000 each, with a standard deviation below 45.
            assert!(drawn.iter().all(|count| (1_750..2_250).contains(count)), "{drawn:?}");
        }
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
            let add = |now: &mut u64, gap: &u64| {
                *now += gap;
                Some(*now)
            };
            let due: Vec<u64> = gaps.iter().scan(0, add).collect();
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
