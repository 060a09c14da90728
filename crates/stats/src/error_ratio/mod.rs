//! How wrong a simulation is: the error ratio E and what must stand beside it.
//!
//! With F_s and F_r the empirical distribution functions of the response times of one request
//! sequence, simulated and real,
//!
//! `E = Int |F_s(t) - F_r(t)| dt / Int (1 - F_r(t)) dt = Int |Q_s(q) - Q_r(q)| dq / mean_r`:
//!
//! the area between the two curves over the area above the real one, which is the Wasserstein-1
//! distance over the real mean. It has no unit, no bins and no cut-off, and is at least the error
//! of the mean. It is exact here, from sorted samples in integers. A pooled distribution lets
//! errors of reads and writes cancel, so [`compare_requests`] also gives E per class and its
//! I/O-weighted sum. DiskSim's demerit figure (Ruemmler and Wilkes, "An introduction to disk drive
//! modeling", 1994) and the Kolmogorov-Smirnov distance are printed for those who compare with
//! older work.
//!
//! Conventions: samples are in the order of the request sequence (correlation is read from it);
//! differences are simulated minus real; a real mean below 1 ns counts as 1 ns and an absent side
//! as all zeros, so that every figure is finite. Tested against closed forms and a slow integration
//! of the definition.

mod classes;
mod interval;

use serde::{Deserialize, Serialize};

use crate::autocorrelation::effective_count;
use crate::quantile_sorted;

pub use classes::{
    ClassKey, ClassSamples, Classified, Requests, compare_classes, compare_requests,
};
pub use interval::{Block, Resampling};

/// Independent samples beyond a quantile that it takes to print an error for it.
const SAMPLES_BEYOND_QUANTILE: f64 = 100.0;

/// Two distributions of response times, compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Simulated samples.
    pub count_simulated: u64,
    /// Real samples.
    pub count_real: u64,
    /// E: area between the distribution functions over the real mean.
    pub error_ratio: f64,
    /// 95 % interval of E where a resampling was asked for and the sequence is long enough.
    pub error_ratio_interval: Option<(f64, f64)>,
    /// (simulated mean - real mean) / real mean.
    pub signed_mean_error: f64,
    /// (simulated - real) / real at the median; `None` where the samples do not support it: fewer
    /// than 100 independent ones beyond it.
    pub relative_error_p50: Option<f64>,
    /// The same at the 90th percentile.
    pub relative_error_p90: Option<f64>,
    /// The same at the 99th percentile.
    pub relative_error_p99: Option<f64>,
    /// The same at the 99.9th percentile.
    pub relative_error_p99_9: Option<f64>,
    /// Kolmogorov-Smirnov distance: the largest vertical gap between the distribution functions.
    /// Its p-value would call a device different from itself; do not use one.
    pub ks_distance: f64,
    /// Mean simulated response time, ns.
    pub mean_simulated_ns: f64,
    /// Mean real response time, ns.
    pub mean_real_ns: f64,
    /// Root mean square horizontal distance between the distribution functions over the real mean.
    pub demerit: f64,
}

/// Compares simulated with real response times, ns. No interval: see [`compare_with_interval`].
pub fn compare(simulated: &[u64], real: &[u64]) -> Comparison {
    let sorted_simulated = sorted_or_zero(simulated);
    let sorted_real = sorted_or_zero(real);
    let distances = Distances::between(&sorted_simulated, &sorted_real);
    let mean_real_ns = mean(&sorted_real);
    let mean_simulated_ns = mean(&sorted_simulated);
    let unit = mean_real_ns.max(1.0);
    let at = |q| {
        let (a, b) = (quantile_sorted(&sorted_simulated, q), quantile_sorted(&sorted_real, q));
        (supports(simulated, a, q) && supports(real, b, q))
            .then(|| (a as f64 - b as f64) / (b as f64).max(1.0))
    };
    Comparison {
        count_simulated: simulated.len() as u64,
        count_real: real.len() as u64,
        error_ratio: distances.area / unit,
        error_ratio_interval: None,
        signed_mean_error: (mean_simulated_ns - mean_real_ns) / unit,
        relative_error_p50: at(0.5),
        relative_error_p90: at(0.9),
        relative_error_p99: at(0.99),
        relative_error_p99_9: at(0.999),
        ks_distance: ks_distance(&sorted_simulated, &sorted_real),
        mean_simulated_ns,
        mean_real_ns,
        demerit: distances.mean_square.sqrt() / unit,
    }
}

/// [`compare`], with the interval of E. Both sides must be in the order of the request sequence;
/// where their lengths differ, a block of one is paired with the same share of the other.
pub fn compare_with_interval(
    simulated: &[u64],
    real: &[u64],
    resampling: &Resampling<'_>,
) -> Comparison {
    let comparison = compare(simulated, real);
    let error_ratio_interval =
        interval::of_error_ratio(simulated, real, resampling, comparison.error_ratio);
    Comparison { error_ratio_interval, ..comparison }
}

/// Where simulated and real requests pair up: mean of |simulated - real| over the real mean. At
/// least E; `None` where the lengths differ or there is no request.
pub fn paired_error(simulated: &[u64], real: &[u64]) -> Option<f64> {
    if simulated.len() != real.len() || real.is_empty() {
        return None;
    }
    let sum: u128 = simulated.iter().zip(real).map(|(a, b)| u128::from(a.abs_diff(*b))).sum();
    Some(sum as f64 / real.len() as f64 / mean(real).max(1.0))
}

fn sorted_or_zero(samples: &[u64]) -> Vec<u64> {
    let mut sorted = if samples.is_empty() { vec![0] } else { samples.to_vec() };
    sorted.sort_unstable();
    sorted
}

fn mean(samples: &[u64]) -> f64 {
    samples.iter().map(|value| u128::from(*value)).sum::<u128>() as f64 / samples.len() as f64
}

/// Whether enough independent samples lie beyond the quantile. Independence is judged on the very
/// question that the quantile asks, "is this one above it?", because the correlation of the values
/// themselves is ruled by a few outliers.
fn supports(samples: &[u64], quantile: u64, q: f64) -> bool {
    if (samples.len() as f64) * (1.0 - q) < SAMPLES_BEYOND_QUANTILE * (1.0 - 1e-9) {
        return false;
    }
    let beyond: Vec<f64> = samples.iter().map(|s| f64::from(u8::from(*s > quantile))).collect();
    // The estimate of n_eff itself is good to some 10 %; a sequence is not refused within that.
    effective_count(&beyond) * (1.0 - q) >= 0.9 * SAMPLES_BEYOND_QUANTILE
}

/// Distances between two quantile functions.
struct Distances {
    /// Int |Q_s - Q_r| dq.
    area: f64,
    /// Int (Q_s - Q_r)^2 dq.
    mean_square: f64,
}

impl Distances {
    /// Walks both step functions together. Positions are counted in steps of 1 / (n m), in which
    /// both sides' steps are whole numbers, so that the area is exact.
    fn between(a: &[u64], b: &[u64]) -> Self {
        let (count_a, count_b) = (a.len() as u128, b.len() as u128);
        let (mut i, mut j, mut position) = (0, 0, 0u128);
        let (mut area, mut squares) = (0u128, 0.0);
        while i < a.len() && j < b.len() {
            let (end_a, end_b) = ((i as u128 + 1) * count_b, (j as u128 + 1) * count_a);
            let next = end_a.min(end_b);
            let gap = a[i].abs_diff(b[j]);
            area += u128::from(gap) * (next - position);
            squares += (gap as f64).powi(2) * (next - position) as f64;
            position = next;
            i += usize::from(end_a == next);
            j += usize::from(end_b == next);
        }
        let total = (count_a * count_b) as f64;
        Self { area: area as f64 / total, mean_square: squares / total }
    }
}

/// Largest |F_a - F_b|.
fn ks_distance(a: &[u64], b: &[u64]) -> f64 {
    let (mut i, mut j) = (0, 0);
    let mut largest = 0u128;
    while i < a.len() && j < b.len() {
        let value = a[i].min(b[j]);
        while i < a.len() && a[i] == value {
            i += 1;
        }
        while j < b.len() && b[j] == value {
            j += 1;
        }
        largest = largest.max((i as u128 * b.len() as u128).abs_diff(j as u128 * a.len() as u128));
    }
    largest as f64 / (a.len() as f64 * b.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;

    fn exponential(mean: f64, count: usize, seed: u64) -> Vec<u64> {
        let mut rng = Rng::new(seed);
        (0..count).map(|_| rng.exponential(mean).round() as u64).collect()
    }

    fn close(found: f64, expected: f64, tolerance: f64) -> bool {
        (found - expected).abs() <= tolerance
    }

    #[test]
    fn a_shift_by_c_has_the_error_c_over_the_mean() {
        let real = exponential(50_000.0, 20_000, 1);
        let simulated: Vec<u64> = real.iter().map(|value| value + 10_000).collect();
        let found = compare(&simulated, &real);
        let expected = 10_000.0 / found.mean_real_ns;
        assert!(close(found.error_ratio, expected, 1e-12), "{found:?}");
        assert!(close(found.signed_mean_error, expected, 1e-12));
        assert!(close(found.demerit, expected, 1e-12));
        let p50 = quantile_sorted(&sorted_or_zero(&real), 0.5) as f64;
        assert!(close(found.relative_error_p50.expect("supported"), 10_000.0 / p50, 1e-12));
        assert!(found.relative_error_p99.is_some() && found.relative_error_p99_9.is_none());
    }

    /// Two exponential distributions never cross, so E is the error of the mean, and the largest
    /// gap between them is at t = ln(m2 / m1) / (1 / m1 - 1 / m2).
    #[test]
    fn exponential_against_exponential() {
        let (simulated, real) =
            (exponential(80_000.0, 200_000, 2), exponential(100_000.0, 200_000, 3));
        let found = compare(&simulated, &real);
        assert!(close(found.error_ratio, 0.2, 0.01), "{found:?}");
        assert!(close(found.signed_mean_error, -0.2, 0.01));
        let t: f64 = 1.25f64.ln() / (1.0 / 0.8 - 1.0);
        assert!(close(found.ks_distance, (-t).exp() - (-t / 0.8).exp(), 0.01));
        // rms of (m1 - m2) X, X exponential of mean 1, is sqrt(2) |m1 - m2|.
        assert!(close(found.demerit, 0.2 * 2f64.sqrt(), 0.01));
        for at in [found.relative_error_p50, found.relative_error_p90, found.relative_error_p99] {
            assert!(close(at.expect("supported"), -0.2, 0.03), "{found:?}");
        }
        assert!(found.relative_error_p99_9.is_some());
    }

    /// Equal means hide everything from the mean error and nothing from E: 0 or 2 against 1.
    #[test]
    fn errors_that_cancel_in_the_mean_show_in_e() {
        let found = compare(&[0, 200, 0, 200], &[100, 100, 100, 100]);
        assert_eq!((found.signed_mean_error, found.error_ratio, found.demerit), (0.0, 1.0, 1.0));
        assert_eq!(found.ks_distance, 0.5);
    }

    #[test]
    fn every_figure_is_finite() {
        let sides: [&[u64]; 4] = [&[], &[0, 0], &[7], &[u64::MAX, u64::MAX]];
        for simulated in sides {
            for real in sides {
                let found = compare(simulated, real);
                let figures = [found.error_ratio, found.signed_mean_error, found.demerit];
                assert!(figures.iter().all(|figure| figure.is_finite()), "{found:?}");
                let text = serde_json::to_string(&found).expect("serialises");
                assert_eq!(serde_json::from_str::<Comparison>(&text).expect("reads"), found);
            }
        }
        assert_eq!(compare(&[], &[]).error_ratio, 0.0);
        assert_eq!(compare(&[], &[10]).error_ratio, 1.0);
    }

    #[test]
    fn quantiles_need_independent_samples() {
        let independent = exponential(1000.0, 15_000, 4);
        assert!(compare(&independent, &independent).relative_error_p99.is_some());
        assert!(compare(&independent[..9_000], &independent).relative_error_p99.is_none());
        // The same values, each repeated a hundred times in a row, are 150 samples only.
        let repeated: Vec<u64> =
            independent[..150].iter().flat_map(|value| std::iter::repeat_n(*value, 100)).collect();
        assert!(compare(&repeated, &repeated).relative_error_p50.is_none());
    }

    #[test]
    fn paired_error_is_at_least_e() {
        assert_eq!(paired_error(&[3, 1], &[1, 3]), Some(1.0));
        assert_eq!(compare(&[3, 1], &[1, 3]).error_ratio, 0.0);
        assert_eq!((paired_error(&[1], &[1, 2]), paired_error(&[], &[])), (None, None));
    }

    /// The definition, integrated step by step over the value axis with counts taken afresh at
    /// every step: O((n + m)^2), nothing shared with the code under test.
    fn oracle(a: &[u64], b: &[u64]) -> (f64, f64) {
        let mut points: Vec<u64> = a.iter().chain(b).copied().collect();
        points.sort_unstable();
        let share = |samples: &[u64], t: u64| {
            samples.iter().filter(|value| **value <= t).count() as f64 / samples.len() as f64
        };
        let (mut area, mut largest) = (0.0, 0.0f64);
        for pair in points.windows(2) {
            let gap = (share(a, pair[0]) - share(b, pair[0])).abs();
            area += gap * (pair[1] - pair[0]) as f64;
            largest = largest.max(gap);
        }
        let above: f64 = b.iter().map(|value| *value as f64).sum::<f64>() / b.len() as f64;
        (area / above.max(1.0), largest)
    }

    fn samples() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(0u64..50, 1..40)
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(a in samples(), b in samples()) {
            let found = compare(&a, &b);
            let (error_ratio, ks) = oracle(&a, &b);
            prop_assert!(close(found.error_ratio, error_ratio, 1e-9), "{found:?} {error_ratio}");
            prop_assert!(close(found.ks_distance, ks, 1e-9));
        }

        #[test]
        fn identities(a in samples(), b in samples(), factor in 1u64..1000) {
            let (forth, back) = (compare(&a, &b), compare(&b, &a));
            let area = |c: &Comparison| c.error_ratio * c.mean_real_ns.max(1.0);
            prop_assert!(close(area(&forth), area(&back), 1e-9), "the distance is symmetric");
            prop_assert_eq!(forth.ks_distance, back.ks_distance);
            prop_assert!(forth.error_ratio >= forth.signed_mean_error.abs() - 1e-9);
            prop_assert!(forth.demerit >= forth.error_ratio - 1e-9);
            prop_assert_eq!(compare(&a, &a).error_ratio, 0.0);
            let mut shuffled = a.clone();
            shuffled.reverse();
            prop_assert_eq!(compare(&shuffled, &b).error_ratio, forth.error_ratio);
            let scale = |side: &[u64]| side.iter().map(|v| v * factor).collect::<Vec<_>>();
            let doubled = compare(&[b.clone(), b.clone()].concat(), &b).error_ratio;
            prop_assert!(close(doubled, 0.0, 1e-12), "repetition changes no distribution");
            if forth.mean_real_ns >= 1.0 {
                let scaled = compare(&scale(&a), &scale(&b)).error_ratio;
                prop_assert!(close(scaled, forth.error_ratio, 1e-9 * (1.0 + scaled)), "no unit");
            }
        }
    }
}
