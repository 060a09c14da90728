//! One quantile rule for the whole of wearmark.
//!
//! Nearest rank: the `q` quantile of n samples is the `ceil(q n)`-th smallest, at least the first.
//! It is always one of the samples, it is the inverse of the empirical distribution function (type
//! 1 of Hyndman and Fan, "Sample quantiles in statistical packages", 1996), and histograms can
//! follow the same rule.

/// The `q` quantile of ascending samples: the `ceil(q n)`-th smallest, where a product within
/// rounding of a whole number counts as that number. `q` is held to 0..=1; 0 where there is no
/// sample.
pub fn quantile_sorted(sorted: &[u64], q: f64) -> u64 {
    match rank(sorted.len() as u64, q) {
        0 => 0,
        rank => sorted[rank as usize - 1],
    }
}

/// The same rule for real numbers; NaN where there is no sample.
pub fn quantile_sorted_f64(sorted: &[f64], q: f64) -> f64 {
    match rank(sorted.len() as u64, q) {
        0 => f64::NAN,
        rank => sorted[rank as usize - 1],
    }
}

/// The rank, 1 to `count`, that a quantile asks for; 0 where there is nothing to rank.
pub(crate) fn rank(count: u64, q: f64) -> u64 {
    if count == 0 {
        return 0;
    }
    // 0.07 * 100 is 7.000000000000001 in binary; it means the 7th, not the 8th.
    let position = q.clamp(0.0, 1.0) * count as f64 * (1.0 - 4.0 * f64::EPSILON);
    (position.ceil() as u64).clamp(1, count)
}

/// The median by linear interpolation between the two middle samples; NaN where there is none.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sorted: &[u64], q: f64, expected: u64) {
        assert_eq!(quantile_sorted(sorted, q), expected, "quantile {q} of {sorted:?}");
        let reals: Vec<f64> = sorted.iter().map(|v| *v as f64).collect();
        assert!(sorted.is_empty() || quantile_sorted_f64(&reals, q) == expected as f64);
    }

    #[test]
    fn nearest_rank() {
        check(&[], 0.5, 0);
        check(&[9], 0.0, 9);
        check(&[9], 1.0, 9);
        check(&[1, 2, 3, 4], 0.5, 2);
        check(&[1, 2, 3, 4], 0.51, 3);
        check(&[1, 2, 3, 4], 0.0, 1);
        check(&[1, 2, 3, 4], 1.0, 4);
        check(&[1, 2, 3, 4], 7.0, 4);
        check(&[1, 2, 3, 4], f64::NAN, 1);
    }

    #[test]
    fn a_product_that_only_rounding_lifts_keeps_its_rank() {
        let hundred: Vec<u64> = (1..=100).collect();
        for percent in 1..=100u64 {
            check(&hundred, percent as f64 / 100.0, percent);
        }
    }

    #[test]
    fn median_interpolates() {
        assert_eq!(median(&[1.0, 2.0, 10.0]), 2.0);
        assert_eq!(median(&[1.0, 2.0, 10.0, 11.0]), 6.0);
        assert!(median(&[]).is_nan());
    }
}
