//! What happens to single blocks: reuse, working set, hot and cold, overwrites. One walk for all.
//!
//! Blocks are 4 KiB; reads and writes touch every block they cover, even in part. Where a trace is
//! too large to follow every block, only those of a SHARDS sample are followed (see
//! [`super::miss_ratio`]): shares are then those of the sample, numbers of blocks are divided by
//! its rate. Memory is bounded by the blocks followed, about 70 bytes each.

use serde::{Deserialize, Serialize};
use stats::Histogram;

use super::hot::{HotCold, hot_cold};
use super::lru::LruStack;
use super::miss_ratio::{Distances, MissRatioCurve, Sampling, mean_absolute_error};
use super::touches::{self, BATCH};
use super::{Windows, ratio};
use crate::{Op, Trace};

/// Blocks in a sample above which its curve is worth showing beside the exact one.
const SAMPLE_BLOCKS: f64 = 2048.0;

/// Reuse, working set, hot and cold, overwrites of one stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Blocks {
    /// Share of the blocks that was followed: 1 is all.
    pub followed_share: f64,
    /// Touches of blocks by reads and writes.
    pub touches: u64,
    /// Distinct blocks that reads and writes touch.
    pub working_set_blocks: u64,
    /// The working set in windows of time, those of [`super::Info::rates`].
    pub working_set: Vec<WorkingSet>,
    /// Touches by reuse distance: how many other blocks were touched since the block was.
    pub reuse: Vec<ReuseClass>,
    /// Miss ratio of an LRU cache by size, at eight sizes per doubling.
    pub miss_ratio: MissRatioCurve,
    /// Mean absolute error of that curve: 0 where every block was followed, else half the
    /// difference between the curves of two halves of the sample.
    pub miss_ratio_error: f64,
    /// What a sample says beside it, where there are enough blocks and every one was followed.
    pub sampled: Option<SampledCurve>,
    /// How unevenly the touches fall.
    pub hot: HotCold,
    /// What happens to written blocks.
    pub overwrites: Overwrites,
}

/// A sampled curve beside the exact one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledCurve {
    /// The curve.
    pub curve: MissRatioCurve,
    /// Its mean absolute error against the exact one, over 100 sizes up to the working set.
    pub mean_absolute_error: f64,
}

/// Blocks in one window of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkingSet {
    /// Start of the window, s.
    pub at_s: f64,
    /// Distinct blocks touched in it.
    pub window_blocks: u64,
    /// Distinct blocks touched from the start of the trace to its end.
    pub total_blocks: u64,
}

/// Touches in one class of reuse distances.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReuseClass {
    /// Distances below this many blocks, and not below half of it (the first: from 0).
    pub below_blocks: u64,
    /// Touches, over all touches that have a predecessor or not.
    pub share: f64,
}

/// What happens to written blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overwrites {
    /// Distinct blocks written.
    pub written_blocks: u64,
    /// Share of those that are written once in the whole trace.
    pub once_share: f64,
    /// Share of those that are written again.
    pub again_share: f64,
    /// Share of block writes that hit a block written before.
    pub overwrite_share: f64,
    /// Share of touched blocks that are only read.
    pub read_only_share: f64,
    /// Share of touched blocks that are only written.
    pub write_only_share: f64,
    /// Time between two writes of a block: mean, ns.
    pub interval_ns_mean: f64,
    /// Its quantiles, ns: 10, 50, 90 and 99 %.
    pub interval_ns_p10: u64,
    /// See above.
    pub interval_ns_p50: u64,
    /// See above.
    pub interval_ns_p90: u64,
    /// See above.
    pub interval_ns_p99: u64,
}

/// What is kept of a block.
#[derive(Clone, Copy)]
struct Kept {
    touches: u32,
    writes: u32,
    written_ns: u64,
    window: u32,
}

const UNTOUCHED: u32 = u32::MAX;

/// Follows blocks while the requests go by.
pub(super) struct Gather {
    sampling: Sampling,
    windows: Windows,
    stack: LruStack,
    distances: Distances,
    touches: u64,
    kept: Vec<Kept>,
    /// Distinct blocks in each window, and known at its end.
    seen: Vec<(u64, u64)>,
    writes: u64,
    intervals: Histogram,
    sample: Option<Sample>,
}

/// Two halves of a sample, or one sample beside the exact curve in the first.
struct Sample {
    sampling: Sampling,
    stacks: [LruStack; 2],
    distances: [Distances; 2],
    halves: bool,
}

impl Sample {
    fn new(sampling: Sampling, halves: bool) -> Self {
        let stacks = [LruStack::new(), LruStack::new()];
        Self { sampling, stacks, distances: Default::default(), halves }
    }
}

impl Gather {
    /// Follows the blocks of the sample; `beside` is a second sample whose error is asked for.
    pub(super) fn new(sampling: Sampling, beside: Option<Sampling>, windows: Windows) -> Self {
        let sample = match beside {
            Some(beside) => Some(Sample::new(beside, false)),
            // Another seed: a half must not be the other's blocks below a lower threshold.
            None if sampling.rate < 1.0 => {
                let halving = Sampling { rate: 0.5, seed: sampling.seed.wrapping_add(1) };
                Some(Sample::new(halving, true))
            }
            None => None,
        };
        Self {
            sampling,
            windows,
            stack: LruStack::new(),
            distances: Distances::default(),
            touches: 0,
            kept: Vec::new(),
            seen: vec![(0, 0); windows.count],
            writes: 0,
            intervals: Histogram::new(),
            sample,
        }
    }

    /// Distinct blocks followed so far.
    pub(super) fn followed(&self) -> u64 {
        self.stack.blocks()
    }

    pub(super) fn add(&mut self, trace: &Trace, requests: impl Iterator<Item = usize>) {
        let keep = self.sampling.filter();
        let all = self.sampling.rate >= 1.0;
        self.touches += touches::for_batches(
            trace,
            requests,
            |block| all || keep(block),
            |blocks, requests| self.batch(trace, blocks, requests),
        );
    }

    fn batch(&mut self, trace: &Trace, blocks: &[u64], requests: &[usize]) {
        if let Some(sample) = &mut self.sample {
            let keep = sample.sampling.filter();
            for &block in blocks {
                let kept = keep(block);
                if kept || sample.halves {
                    let side = usize::from(!kept);
                    let touched = sample.stacks[side].touch(block);
                    sample.distances[side].record(touched.distance);
                }
            }
        }
        self.stack.warm(blocks);
        let mut ids = [0u32; BATCH];
        for (id, &block) in ids.iter_mut().zip(blocks) {
            let touched = self.stack.touch(block);
            self.distances.record(touched.distance);
            *id = touched.id;
        }
        let fresh = Kept { touches: 0, writes: 0, written_ns: 0, window: UNTOUCHED };
        self.kept.resize(self.stack.blocks() as usize, fresh);
        for (&id, &request) in ids.iter().zip(requests) {
            let due = trace.due[request];
            let kept = &mut self.kept[id as usize];
            let window = self.windows.of(due);
            let first = kept.touches == 0;
            if kept.window != window as u32 {
                kept.window = window as u32;
                self.seen[window].0 += 1;
            }
            self.seen[window].1 += u64::from(first);
            kept.touches = kept.touches.saturating_add(1);
            if trace.op[request] == Op::Write {
                self.writes += 1;
                if kept.writes > 0 {
                    self.intervals.record(due - kept.written_ns);
                }
                kept.writes = kept.writes.saturating_add(1);
                kept.written_ns = due;
            }
        }
    }

    pub(super) fn finish(self) -> Blocks {
        let rate = self.sampling.rate.min(1.0);
        let scaled = |count: u64| (count as f64 / rate).round() as u64;
        let curve = self.distances.curve(rate, self.touches);
        let mut total = 0;
        let window = |(index, &(window, new)): (usize, &(u64, u64))| {
            total += new;
            WorkingSet {
                at_s: self.windows.start_s(index),
                window_blocks: scaled(window),
                total_blocks: scaled(total),
            }
        };
        let working_set = self.seen.iter().enumerate().map(window).collect();
        let touches = self.touches as f64;
        let class = |(below_blocks, count): (u64, f64)| {
            let share = ratio(count, touches).min(1.0);
            ReuseClass { below_blocks, share }
        };
        let (miss_ratio_error, sampled) = self.sample_errors(&curve);
        Blocks {
            followed_share: rate,
            touches: self.touches,
            working_set_blocks: curve.working_set_blocks,
            working_set,
            reuse: self.distances.octaves(rate).into_iter().map(class).collect(),
            miss_ratio_error,
            sampled,
            miss_ratio: curve.thinned(),
            hot: hot_cold(self.kept.iter().map(|kept| kept.touches)),
            overwrites: self.overwrites(rate),
        }
    }

    fn sample_errors(&self, curve: &MissRatioCurve) -> (f64, Option<SampledCurve>) {
        let Some(sample) = &self.sample else { return (0.0, None) };
        if sample.halves {
            let rate = self.sampling.rate / 2.0;
            let [a, b] = [0, 1].map(|side| sample.distances[side].curve(rate, self.touches));
            return (mean_absolute_error(&a, &b) / 2.0, None);
        }
        let sampled = sample.distances[0].curve(sample.sampling.rate, self.touches);
        if (curve.working_set_blocks as f64 * sample.sampling.rate) < SAMPLE_BLOCKS / 4.0 {
            return (0.0, None);
        }
        let mean_absolute_error = mean_absolute_error(curve, &sampled);
        (0.0, Some(SampledCurve { curve: sampled.thinned(), mean_absolute_error }))
    }

    fn overwrites(&self, rate: f64) -> Overwrites {
        let count = |keep: fn(&Kept) -> bool| self.kept.iter().filter(|kept| keep(kept)).count();
        let blocks = self.kept.len() as f64;
        let written = count(|kept| kept.writes > 0) as f64;
        let once = count(|kept| kept.writes == 1) as f64;
        let write_only = count(|kept| kept.writes == kept.touches) as f64;
        Overwrites {
            written_blocks: (written / rate).round() as u64,
            once_share: ratio(once, written),
            again_share: ratio(written - once, written),
            overwrite_share: ratio(self.intervals.count() as f64, self.writes as f64),
            read_only_share: ratio(blocks - written, blocks),
            write_only_share: ratio(write_only, blocks),
            interval_ns_mean: self.intervals.mean(),
            interval_ns_p10: self.intervals.quantile(0.10),
            interval_ns_p50: self.intervals.quantile(0.50),
            interval_ns_p90: self.intervals.quantile(0.90),
            interval_ns_p99: self.intervals.quantile(0.99),
        }
    }
}

/// The sample to take beside an exact curve of at most this many blocks: 1 %, or more of few.
pub(super) fn sample_beside(touches: u64) -> Option<Sampling> {
    let rate = (SAMPLE_BLOCKS / touches as f64).max(Sampling::default().rate);
    (rate < 0.5).then_some(Sampling { rate, ..Sampling::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{OltpLike, oltp_like};
    use crate::info::miss_ratio;
    use crate::info::tests::trace;
    use std::collections::{BTreeMap, BTreeSet};

    fn follow(trace: &Trace, sampling: Sampling) -> Blocks {
        let mut gather = Gather::new(sampling, None, Windows::new(trace.span().0));
        let half = trace.count() / 2;
        gather.add(trace, 0..half);
        gather.add(trace, half..trace.count());
        gather.finish()
    }

    const ALL: Sampling = Sampling { rate: 1.0, seed: 1 };

    #[test]
    fn blocks_by_hand() {
        let ms = 1_000_000;
        let found = follow(
            &trace(&[
                (0, 0, 8192, Op::Write, 0),
                (ms, 0, 4096, Op::Write, 0),
                // Touches the blocks 1 and 2.
                (3 * ms, 6000, 4096, Op::Read, 0),
                (7 * ms, 0, 4096, Op::Write, 0),
                (7 * ms, 0, 1 << 20, Op::Trim, 0),
            ]),
            ALL,
        );
        assert_eq!((found.touches, found.working_set_blocks), (6, 3));
        let written = &found.overwrites;
        assert_eq!(
            (written.written_blocks, written.once_share, written.again_share),
            (2, 0.5, 0.5)
        );
        assert_eq!(written.overwrite_share, 0.5, "two of four block writes");
        assert_eq!((written.read_only_share, written.write_only_share), (1.0 / 3.0, 1.0 / 3.0));
        assert_eq!(written.interval_ns_mean, 3.5e6, "1 ms and 6 ms");
        // Block 0 again after block 1, block 1 after block 0, block 0 after 1 and 2.
        let reuse: Vec<_> = found.reuse.iter().map(|c| (c.below_blocks, c.share)).collect();
        assert_eq!(reuse, [(2, 2.0 / 6.0), (4, 1.0 / 6.0)]);
        let totals: Vec<_> =
            found.working_set.iter().map(|w| (w.window_blocks, w.total_blocks)).collect();
        assert_eq!(totals, [(2, 2), (1, 2), (0, 2), (2, 3), (0, 3), (0, 3), (0, 3), (1, 3)]);
    }

    #[test]
    fn the_walk_agrees_with_sets_and_maps() {
        let trace = oltp_like(&OltpLike { transactions: 2_000, ..OltpLike::default() });
        let found = follow(&trace, ALL);
        let windows = Windows::new(trace.span().0);
        let mut writes: BTreeMap<u64, u64> = BTreeMap::new();
        let mut seen: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); windows.count];
        for request in trace.requests().filter(|r| matches!(r.op, Op::Read | Op::Write)) {
            let first = request.offset.0 / 4096;
            for block in first..first + u64::from(request.len) / 4096 {
                *writes.entry(block).or_default() += u64::from(request.op == Op::Write);
                seen[windows.of(request.due.0)].insert(block);
            }
        }
        assert_eq!(found.working_set_blocks, writes.len() as u64);
        let once = writes.values().filter(|count| **count == 1).count() as f64;
        let written = writes.values().filter(|count| **count > 0).count() as f64;
        assert_eq!(found.overwrites.once_share, once / written);
        let windows: Vec<u64> = found.working_set.iter().map(|w| w.window_blocks).collect();
        assert_eq!(windows, seen.iter().map(|set| set.len() as u64).collect::<Vec<_>>());
        assert_eq!(found.miss_ratio, miss_ratio::exact(&trace).thinned());
    }

    #[test]
    fn a_sample_is_scaled_and_knows_its_error() {
        let settings = OltpLike { transactions: 40_000, ..OltpLike::default() };
        let trace = oltp_like(&settings);
        let whole = follow(&trace, ALL);
        let part = follow(&trace, Sampling { rate: 0.05, seed: 3 });
        assert_eq!((part.followed_share, part.touches), (0.05, whole.touches));
        let near = |a: f64, b: f64, bound: f64| assert!((a / b - 1.0).abs() < bound, "{a} {b}");
        // About 10,000 of 200,000 blocks: four standard deviations are 4 %.
        near(part.working_set_blocks as f64, whole.working_set_blocks as f64, 0.04);
        near(part.overwrites.once_share, whole.overwrites.once_share, 0.04);
        near(part.hot.shares[2].touch_share, whole.hot.shares[2].touch_share, 0.04);
        let error = mean_absolute_error(&whole.miss_ratio, &part.miss_ratio);
        assert!(part.miss_ratio_error > 0.0 && error < 4.0 * part.miss_ratio_error, "{error}");
        assert_eq!(whole.miss_ratio_error, 0.0);
    }

    #[test]
    fn nothing_touched_is_described_too() {
        let found = follow(&Trace::default(), ALL);
        assert_eq!((found.touches, found.working_set_blocks, found.reuse.len()), (0, 0, 0));
        assert!(sample_beside(0).is_none() && sample_beside(1000).is_none());
        assert_eq!(sample_beside(10_000_000), Some(Sampling::default()));
    }
}
