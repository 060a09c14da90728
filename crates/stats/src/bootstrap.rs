//! Confidence intervals by resampling.
//!
//! The percentile bootstrap (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, ch.
//! 13): draw as many samples as there are, with replacement, take the statistic, repeat, and read
//! the interval off the quantiles. Correlated sequences are drawn in blocks that keep neighbours
//! together, wrapped around the end so that every sample is equally likely (the circular block
//! bootstrap of Politis and Romano, 1992).
//!
//! Every interval is two-sided, at [`CONFIDENCE`] unless told otherwise. The same seed gives the
//! same interval. Tested for coverage on distributions whose true value is known.

use serde::{Deserialize, Serialize};

use crate::quantile::{median, quantile_sorted_f64};
use crate::rng::Rng;

/// Share of intervals that should hold the true value.
pub const CONFIDENCE: f64 = 0.95;

/// Interval of `statistic` over independent samples. NaN at both ends where there is no sample or
/// no resample.
pub fn interval(
    samples: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    resamples: usize,
    seed: u64,
) -> (f64, f64) {
    block_interval(samples, 1, statistic, resamples, seed)
}

/// Interval of `statistic` over a sequence whose neighbours are correlated: `block` samples stay
/// together, which should be 10 autocorrelation times or more.
pub fn block_interval(
    samples: &[f64],
    block: usize,
    statistic: impl Fn(&[f64]) -> f64,
    resamples: usize,
    seed: u64,
) -> (f64, f64) {
    if samples.is_empty() {
        return (f64::NAN, f64::NAN);
    }
    let count = samples.len();
    let block = block.clamp(1, count);
    let mut rng = Rng::new(seed);
    let mut drawn = Vec::with_capacity(count + block);
    let values = (0..resamples).map(|_| {
        drawn.clear();
        while drawn.len() < count {
            let start = rng.below(count as u64) as usize;
            let end = start + block;
            drawn.extend_from_slice(&samples[start..end.min(count)]);
            drawn.extend_from_slice(&samples[..end.saturating_sub(count)]);
        }
        drawn.truncate(count);
        statistic(&drawn)
    });
    percentiles(values.collect(), CONFIDENCE)
}

/// A ratio of medians and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Median of the first over median of the second.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Pairs.
    pub pairs: usize,
}

impl Ratio {
    /// Whether the interval leaves 1 out: the two differ.
    pub fn differs(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

/// Compares two systems measured in alternation: `a[i]` and `b[i]` ran next to each other, so pairs
/// are drawn together and what disturbed both cancels. Extra samples of the longer side are left
/// out; `None` where there is no pair or the median of `b` is 0.
pub fn ratio_of_medians(a: &[f64], b: &[f64], resamples: usize, seed: u64) -> Option<Ratio> {
    ratio_of_medians_at(CONFIDENCE, a, b, resamples, seed)
}

/// The same with an interval that holds the true value with this probability.
pub fn ratio_of_medians_at(
    confidence: f64,
    a: &[f64],
    b: &[f64],
    resamples: usize,
    seed: u64,
) -> Option<Ratio> {
    let pairs = a.len().min(b.len());
    let (a, b) = (&a[..pairs], &b[..pairs]);
    let ratio_of = |a: &mut [f64], b: &mut [f64]| {
        a.sort_unstable_by(f64::total_cmp);
        b.sort_unstable_by(f64::total_cmp);
        median(a) / median(b)
    };
    let ratio = ratio_of(&mut a.to_vec(), &mut b.to_vec());
    if !ratio.is_finite() {
        return None;
    }
    let mut rng = Rng::new(seed);
    let values = (0..resamples).map(|_| {
        let draw: Vec<usize> = (0..pairs).map(|_| rng.below(pairs as u64) as usize).collect();
        let mut from_a: Vec<f64> = draw.iter().map(|i| a[*i]).collect();
        let mut from_b: Vec<f64> = draw.iter().map(|i| b[*i]).collect();
        ratio_of(&mut from_a, &mut from_b)
    });
    let (low, high) = percentiles(values.collect(), confidence);
    Some(Ratio { ratio, low, high, pairs })
}

/// The two ends of the central share `confidence` of the resampled values.
pub(crate) fn percentiles(mut values: Vec<f64>, confidence: f64) -> (f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    (quantile_sorted_f64(&values, tail), quantile_sorted_f64(&values, 1.0 - tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(samples: &[f64]) -> f64 {
        samples.iter().sum::<f64>() / samples.len() as f64
    }

    /// Share of 400 repetitions whose interval holds the true mean, 0.
    fn coverage(phi: f64, block: usize) -> f64 {
        let hits = (0..400).filter(|seed| {
            let mut rng = Rng::new(*seed);
            let mut value = 0.0;
            let mut next = || {
                value = phi * value + rng.exponential(1.0) - 1.0;
                value
            };
            let samples: Vec<f64> = (0..400).map(|_| next()).collect();
            let (low, high) = block_interval(&samples, block, mean, 200, *seed);
            low <= 0.0 && 0.0 <= high
        });
        hits.count() as f64 / 400.0
    }

    #[test]
    fn intervals_hold_the_true_mean_as_often_as_they_say() {
        let found = coverage(0.0, 1);
        assert!((0.90..=0.98).contains(&found), "independent samples: {found}");
    }

    #[test]
    fn blocks_are_what_correlated_samples_need() {
        let (single, blocks) = (coverage(0.8, 1), coverage(0.8, 40));
        assert!(single < 0.65, "single samples: {single}");
        assert!(blocks > 0.82, "blocks: {blocks}");
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let samples: Vec<f64> = (0..50).map(f64::from).collect();
        assert_eq!(interval(&samples, mean, 100, 4), interval(&samples, mean, 100, 4));
        assert_ne!(interval(&samples, mean, 100, 4), interval(&samples, mean, 100, 5));
    }

    #[test]
    fn a_resample_is_as_long_as_the_samples() {
        let count = |samples: &[f64]| samples.len() as f64;
        assert_eq!(block_interval(&[1.0; 10], 4, count, 20, 1), (10.0, 10.0));
    }

    /// Blocks wrap around the end, so that the first sample is drawn as often as the last.
    #[test]
    fn every_sample_is_drawn_equally_often() {
        let samples: Vec<f64> = (0..10).map(f64::from).collect();
        let drawn = std::cell::RefCell::new([0u32; 10]);
        let count = |resample: &[f64]| {
            for value in resample {
                drawn.borrow_mut()[*value as usize] += 1;
            }
            0.0
        };
        block_interval(&samples, 5, count, 2000, 1);
        // About 2,000 each, with a standard deviation of 45.
        let drawn = drawn.into_inner();
        assert!(drawn.iter().all(|count| (1_750..2_250).contains(count)), "{drawn:?}");
    }

    #[test]
    fn nothing_to_draw_from() {
        assert!(interval(&[], mean, 100, 1).0.is_nan());
        assert!(interval(&[1.0], mean, 0, 1).0.is_nan());
        assert_eq!(interval(&[2.0], mean, 10, 1), (2.0, 2.0));
        assert_eq!(block_interval(&[2.0, 2.0], 99, mean, 10, 1), (2.0, 2.0));
        assert_eq!(ratio_of_medians(&[], &[1.0], 10, 1), None);
        assert_eq!(ratio_of_medians(&[1.0], &[0.0], 10, 1), None);
    }

    #[test]
    fn disturbance_common_to_a_pair_cancels() {
        let mut rng = Rng::new(1);
        let b: Vec<f64> = (0..15).map(|_| 100.0 + rng.exponential(100.0)).collect();
        let a: Vec<f64> = b.iter().map(|value| value * 0.9).collect();
        let found = ratio_of_medians(&a, &b, 500, 2).expect("a ratio");
        assert!((found.ratio - 0.9).abs() < 1e-12 && found.pairs == 15);
        assert!((found.low - 0.9).abs() < 1e-12 && (found.high - 0.9).abs() < 1e-12);
        assert!(found.differs());
    }
}
