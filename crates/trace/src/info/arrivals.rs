//! When requests arrive: gaps against the exponential distribution, counts per window, burstiness.
//!
//! - *Gap*: time between two requests of the selection. A Poisson process has exponential gaps;
//!   [`Arrivals::exponential_distance`] is the largest difference of the two distribution functions
//!   (Kolmogorov-Smirnov), taken between the buckets of a histogram (1 part in 512).
//! - *Index of dispersion*: variance over mean of the requests per window; 1 for a Poisson process
//!   at every window, growing with the window where bursts come in bursts.
//! - *Hurst exponent* by aggregated variance (Leland, Taqqu, Willinger, Wilson, "On the
//!   self-similar nature of Ethernet traffic", IEEE/ACM Trans. Networking 2(1), 1994): the variance
//!   of the mean rate falls with the window's length to the power 2H - 2. H is 0.5 without memory,
//!   towards 1 for long bursts. Limits: only windows with at least one request on average and at
//!   least 30 of them count, four windows at least; a trend or a change of level looks like long
//!   memory; below some thousand requests the figure says little. Its error is that of the straight
//!   line alone.
//!
//! Windows are whole ones from the start of the trace; what lies behind the last whole window of a
//! length is left out at that length.

use serde::{Deserialize, Serialize};
use stats::Histogram;

use super::ratio;
use crate::Trace;

/// Shares at which gaps are given.
const QUANTILES: [f64; 28] = [
    0.001, 0.003, 0.01, 0.03, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6,
    0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.97, 0.99, 0.997, 0.999, 1.0,
];
/// The shortest window, unless the trace is shorter than 64 of them.
const BASE_NS: u64 = 100_000;
/// Windows of a length below which nothing is said about it.
const WINDOWS_MIN: u64 = 16;
const HURST_WINDOWS_MIN: u64 = 30;
const HURST_LEVELS_MIN: usize = 4;

/// When the requests of one stream arrive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Arrivals {
    /// Mean time between two requests, ns.
    pub gap_mean_ns: f64,
    /// Standard deviation of that time over its mean: 1 for a Poisson process, more for bursts.
    pub gap_variation: f64,
    /// Share of gaps of length 0.
    pub gap_zero_share: f64,
    /// Largest difference between the distribution of gaps and the exponential one, 0 to 1.
    pub exponential_distance: f64,
    /// Quantiles of the gaps, beside those of the exponential distribution.
    pub gaps: Vec<GapQuantile>,
    /// Index of dispersion of the counts, by window length.
    pub dispersion: Vec<Dispersion>,
    /// Hurst exponent, where the trace is long enough.
    pub hurst: Option<Hurst>,
}

/// One quantile of the gaps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GapQuantile {
    /// Share of the gaps that are not longer.
    pub share: f64,
    /// The gap, ns.
    pub gap_ns: u64,
    /// What it would be in a Poisson process of the same mean, ns; 0 for the longest.
    pub exponential_ns: f64,
}

/// Counts of one window length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dispersion {
    /// Length of a window, ns.
    pub window_ns: u64,
    /// Whole windows in the trace.
    pub windows: u64,
    /// Mean requests per window.
    pub mean: f64,
    /// Variance of the requests per window over their mean.
    pub index: f64,
}

/// The Hurst exponent; see the module's header for its limits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hurst {
    /// The exponent.
    pub exponent: f64,
    /// Standard error of the fitted line, which knows nothing of trends.
    pub error: f64,
    /// Shortest window that counted, ns.
    pub window_min_ns: u64,
    /// Longest one, ns.
    pub window_max_ns: u64,
}

/// Gathers while the requests go by.
pub(super) struct Gather {
    last_due: Option<u64>,
    gaps: Histogram,
    mean: f64,
    squares: f64,
    zeros: u64,
    levels: Vec<Level>,
}

/// Counts at one window length.
struct Level {
    window_ns: u64,
    windows: u64,
    /// Windows of the level in front of this one that make one of this.
    factor: u64,
    current: u64,
    count: u64,
    sum: u64,
    squares: f64,
}

impl Level {
    /// Ends the current window and goes to another; what it held is for the next level.
    #[inline]
    fn turn(&mut self, to: u64) -> (u64, u64) {
        let (window, count) = (self.current, self.count);
        if window < self.windows {
            self.sum += count;
            self.squares += count as f64 * count as f64;
        }
        self.current = to;
        self.count = 0;
        (window, count)
    }
}

impl Gather {
    pub(super) fn new(span_ns: u64) -> Self {
        let mut base = BASE_NS;
        while base > 1 && span_ns / base < 64 {
            base /= 10;
        }
        let mut levels = Vec::new();
        let mut window_ns = base;
        let mut factor = 1;
        while span_ns / window_ns >= WINDOWS_MIN {
            let windows = span_ns / window_ns;
            levels.push(Level {
                window_ns,
                windows,
                factor,
                current: 0,
                count: 0,
                sum: 0,
                squares: 0.0,
            });
            // 1, 5, 10, 50, 100: lengths that people say.
            factor = if levels.len() % 2 == 1 { 5 } else { 2 };
            let Some(next) = window_ns.checked_mul(factor) else { break };
            window_ns = next;
        }
        let (gaps, mean, squares) = (Histogram::new(), 0.0, 0.0);
        Self { last_due: None, gaps, mean, squares, zeros: 0, levels }
    }

    pub(super) fn add(&mut self, trace: &Trace, requests: impl Iterator<Item = usize>) {
        let Some(base) = self.levels.first().map(|level| level.window_ns) else {
            return requests.for_each(|index| self.gap(trace.due[index]));
        };
        let mut window_end = (self.levels[0].current + 1) * base;
        for index in requests {
            let due = trace.due[index];
            self.gap(due);
            if due >= window_end {
                let window = due / base;
                self.turn(window);
                window_end = (window + 1).saturating_mul(base);
            }
            self.levels[0].count += 1;
        }
    }

    #[inline]
    fn gap(&mut self, due: u64) {
        let Some(last) = self.last_due.replace(due) else { return };
        let gap = due - last;
        self.gaps.record(gap);
        self.zeros += u64::from(gap == 0);
        // Welford's update, which does not cancel.
        let from_old = gap as f64 - self.mean;
        self.mean += from_old / self.gaps.count() as f64;
        self.squares += from_old * (gap as f64 - self.mean);
    }

    /// Goes to another window of the shortest length.
    fn turn(&mut self, window: u64) {
        let (window, count) = self.levels[0].turn(window);
        self.carry(1, window, count);
    }

    /// Hands what a window of the level in front held to this level, and on as far as windows end.
    fn carry(&mut self, level: usize, mut window: u64, mut count: u64) {
        for level in &mut self.levels[level..] {
            let to = window / level.factor;
            if to == level.current {
                level.count += count;
                return;
            }
            let ended = level.turn(to);
            level.count = count;
            (window, count) = ended;
        }
    }

    pub(super) fn finish(mut self) -> Arrivals {
        for level in 0..self.levels.len() {
            let (window, count) = self.levels[level].turn(u64::MAX);
            self.carry(level + 1, window, count);
        }
        let count = self.gaps.count();
        let deviation = (self.squares / count.max(1) as f64).sqrt();
        let dispersion: Vec<Dispersion> = self.levels.iter().map(dispersion).collect();
        Arrivals {
            gap_mean_ns: self.mean,
            gap_variation: ratio(deviation, self.mean),
            gap_zero_share: ratio(self.zeros as f64, count as f64),
            exponential_distance: exponential_distance(&self.gaps, self.mean),
            gaps: quantiles(&self.gaps, self.mean),
            hurst: hurst(&dispersion),
            dispersion,
        }
    }
}

fn dispersion(level: &Level) -> Dispersion {
    let windows = level.windows as f64;
    let mean = level.sum as f64 / windows;
    let variance = (level.squares / windows - mean * mean).max(0.0);
    let index = ratio(variance, mean);
    Dispersion { window_ns: level.window_ns, windows: level.windows, mean, index }
}

fn quantiles(gaps: &Histogram, mean: f64) -> Vec<GapQuantile> {
    if gaps.is_empty() {
        return Vec::new();
    }
    let quantile = |share: f64| {
        let exponential_ns = if share < 1.0 { -mean * (-share).ln_1p() } else { 0.0 };
        GapQuantile { share, gap_ns: gaps.quantile(share), exponential_ns }
    };
    QUANTILES.map(quantile).to_vec()
}

/// Largest difference of the distribution functions, at every bucket from both sides.
fn exponential_distance(gaps: &Histogram, mean: f64) -> f64 {
    if gaps.is_empty() {
        return 0.0;
    }
    let total = gaps.count() as f64;
    let mut below = 0u64;
    let mut largest = 0.0f64;
    for (value, count) in gaps.buckets() {
        let expected = if mean > 0.0 { -(-(value as f64) / mean).exp_m1() } else { 0.0 };
        let before = below as f64 / total;
        below += count;
        let behind = below as f64 / total;
        largest = largest.max((behind - expected).abs());
        // In front of a bucket that is wider than its values the function has already risen.
        let width = 1u64 << value.max(1).ilog2().saturating_sub(8);
        let edge = value.saturating_sub(width / 2) as f64;
        let expected = if mean > 0.0 { -(-edge / mean).exp_m1() } else { 0.0 };
        largest = largest.max((before - expected).abs());
    }
    largest
}

fn hurst(dispersion: &[Dispersion]) -> Option<Hurst> {
    let counted: Vec<&Dispersion> = dispersion
        .iter()
        .filter(|d| d.windows >= HURST_WINDOWS_MIN && d.mean >= 1.0 && d.index > 0.0)
        .collect();
    if counted.len() < HURST_LEVELS_MIN {
        return None;
    }
    let x: Vec<f64> = counted.iter().map(|d| (d.window_ns as f64).ln()).collect();
    // Variance of the mean rate over the square of the rate: index / mean.
    let y: Vec<f64> = counted.iter().map(|d| (d.index / d.mean).ln()).collect();
    let line = stats::regression::line(&x, &y, None)?;
    Some(Hurst {
        exponent: 1.0 + line.slope / 2.0,
        error: line.slope_error / 2.0,
        window_min_ns: counted.first()?.window_ns,
        window_max_ns: counted.last()?.window_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Pattern, poisson, uniform};
    use crate::info::tests::at;
    use stats::rng::Rng;
    use units::Rate;

    fn arrivals(trace: &Trace) -> Arrivals {
        let mut gather = Gather::new(trace.span().0);
        // In two parts: nothing may depend on how the requests are handed over.
        gather.add(trace, 0..trace.count() / 3);
        gather.add(trace, trace.count() / 3..trace.count());
        gather.finish()
    }

    #[test]
    fn a_poisson_process_is_one_in_every_figure() {
        let trace = poisson(1, 400_000, Rate(5000.0), &Pattern::default());
        let found = arrivals(&trace);
        assert!((found.gap_variation - 1.0).abs() < 0.01, "{}", found.gap_variation);
        // The test's own 1 % bound: 1.63 / sqrt(n), and half a bucket.
        assert!(found.exponential_distance < 0.0036, "{}", found.exponential_distance);
        for quantile in found.gaps.iter().filter(|q| (0.1..0.99).contains(&q.share)) {
            let off = quantile.gap_ns as f64 / quantile.exponential_ns - 1.0;
            assert!(off.abs() < 0.02, "{quantile:?}");
        }
        assert!(found.dispersion.len() >= 6);
        for d in &found.dispersion {
            // The variance of n windows has a relative standard deviation of sqrt(2 / n).
            let bound = 4.0 * (2.0 / d.windows as f64).sqrt() + 0.01;
            assert!((d.index - 1.0).abs() < bound, "{d:?}");
        }
        let hurst = found.hurst.expect("long enough");
        assert!((hurst.exponent - 0.5).abs() < 0.05, "{hurst:?}");
    }

    #[test]
    fn a_clock_has_no_dispersion() {
        let found = arrivals(&uniform(1, 10_000, Rate(1000.0), &Pattern::default()));
        assert_eq!((found.gap_mean_ns, found.gap_variation), (1e6, 0.0));
        // All gaps equal to the mean: the exponential function is at 1 - 1/e there.
        assert!((found.exponential_distance - (1.0 - (-1.0f64).exp())).abs() < 0.002);
        // One window at the start may be empty.
        let whole: Vec<_> = found.dispersion.iter().filter(|d| d.window_ns >= 1_000_000).collect();
        assert!(
            whole.len() >= 4 && whole.iter().all(|d| d.index < 2.0 / d.windows as f64),
            "{whole:?}"
        );
    }

    #[test]
    fn counts_per_window_agree_with_counting() {
        let mut rng = Rng::new(2);
        let mut due = 0;
        let dues: Vec<u64> = (0..20_000)
            .map(|_| {
                due += if rng.unit() < 0.05 { rng.below(4_000_000) } else { rng.below(30_000) };
                due
            })
            .collect();
        let found = arrivals(&at(&dues));
        assert!(found.dispersion.len() > 5);
        for d in &found.dispersion {
            let mut counts = vec![0u64; d.windows as usize];
            for due in &dues {
                if let Some(count) = counts.get_mut((due / d.window_ns) as usize) {
                    *count += 1;
                }
            }
            let mean = counts.iter().sum::<u64>() as f64 / d.windows as f64;
            let variance = counts.iter().map(|c| (*c as f64 - mean).powi(2)).sum::<f64>();
            let index = variance / d.windows as f64 / mean;
            assert!((d.mean - mean).abs() < 1e-9 && (d.index / index - 1.0).abs() < 1e-6, "{d:?}");
        }
    }

    #[test]
    fn long_bursts_have_long_memory() {
        // Sources that are on and off for Pareto times with shape 1.4: H = (3 - 1.4) / 2 = 0.8
        // (Willinger, Taqqu, Sherman, Wilson, "Self-similarity through high-variability",
        // IEEE/ACM Trans. Networking 5(1), 1997).
        let mut rng = Rng::new(11);
        let mut dues = Vec::new();
        for _ in 0..64 {
            let mut now = 0.0;
            let mut on = rng.unit() < 0.5;
            while now < 400e9 {
                let length = 20e6 * (1.0 - rng.unit()).powf(-1.0 / 1.4);
                if on {
                    let requests = (length / 20e6) as u64;
                    dues.extend((0..requests).map(|i| (now + i as f64 * 20e6) as u64));
                }
                now += length;
                on = !on;
            }
        }
        dues.retain(|due| *due < 400_000_000_000);
        dues.sort_unstable();
        let hurst = arrivals(&at(&dues)).hurst.expect("long enough");
        // The estimator is biased low for finite traces (Taqqu, Teverovsky, Willinger, 1995).
        assert!((0.68..0.88).contains(&hurst.exponent), "{hurst:?}");
    }

    #[test]
    fn short_traces_have_no_long_memory() {
        assert_eq!(arrivals(&at(&[])), Arrivals::default());
        let three = arrivals(&at(&[0, 5, 5]));
        assert_eq!((three.gap_mean_ns, three.gap_zero_share, three.hurst), (2.5, 0.5, None));
        let one_stamp = arrivals(&at(&[0; 100]));
        assert_eq!((one_stamp.gap_zero_share, one_stamp.exponential_distance), (1.0, 1.0));
    }
}
