//! The demerit figure: how far apart two distributions of service times are, as a root mean square.
//!
//! Ruemmler and Wilkes, "An introduction to disk drive modeling" (IEEE Computer, 1994): plot both
//! cumulative distributions and take the root mean square of their *horizontal* distance, that is
//! of the difference between the two quantile functions at the same probability. DiskSim's
//! validations of real drives are stated in it. It weighs a far tail more than the error ratio does
//! (that one is the mean of the same distance over the real mean).
//!
//! Exact: both quantile functions are steps, so the integral is a sum over the merged steps.
//! Tested by hand-computed cases, by a slow sum over a grid of probabilities, and by its properties
//! (symmetric, zero on itself, a shift gives the shift).

/// The root mean square over all probabilities of the distance between the quantiles of `a` and
/// `b`, in their unit. Samples come in any order; NaN where either side is empty.
pub fn demerit(a: &[u64], b: &[u64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return f64::NAN;
    }
    let (a, b) = (sorted(a), sorted(b));
    let (count_a, count_b) = (a.len() as u128, b.len() as u128);
    let (mut index_a, mut index_b) = (0, 0);
    // Probabilities in units of 1 / (count_a * count_b), where every step is a whole number.
    let (mut at, mut sum) = (0u128, 0.0);
    while index_a < a.len() {
        let step_a = (index_a as u128 + 1) * count_b;
        let step_b = (index_b as u128 + 1) * count_a;
        let next = step_a.min(step_b);
        let distance = a[index_a].abs_diff(b[index_b]) as f64;
        sum += distance * distance * (next - at) as f64;
        at = next;
        index_a += usize::from(next == step_a);
        index_b += usize::from(next == step_b);
    }
    assert_eq!(index_b, b.len(), "both distributions end at probability 1");
    (sum / (count_a * count_b) as f64).sqrt()
}

fn sorted(samples: &[u64]) -> Vec<u64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    sorted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::quantile_sorted;

    #[test]
    fn hand_computed() {
        let check = |a: &[u64], b: &[u64], expected: f64| {
            let found = demerit(a, b);
            assert!((found - expected).abs() < 1e-12, "{a:?} {b:?}: {found}, not {expected}");
        };
        check(&[5], &[5], 0.0);
        check(&[5], &[2], 3.0);
        // Sorted, the pairs are (1, 2) and (3, 7): the root of (1 + 16) / 2.
        check(&[3, 1], &[2, 7], 8.5f64.sqrt());
        // Half the probability at distance 1, half at 3.
        check(&[4], &[3, 7], 5f64.sqrt());
        // Thirds against halves: 1/3 at |0 - 1|, 1/6 at |6 - 1|, 1/6 at |6 - 4|, 1/3 at |9 - 4|.
        check(&[0, 6, 9], &[1, 4], (1.0 / 3.0 + 25.0 / 6.0 + 4.0 / 6.0 + 25.0 / 3.0f64).sqrt());
        assert!(demerit(&[], &[1]).is_nan() && demerit(&[1], &[]).is_nan());
    }

    proptest! {
        #[test]
        fn properties(
            a in prop::collection::vec(0u64..1_000, 1..40),
            b in prop::collection::vec(0u64..1_000, 1..40),
            shift in 0u64..500,
        ) {
            let found = demerit(&a, &b);
            prop_assert_eq!(demerit(&a, &a), 0.0);
            prop_assert!((found - demerit(&b, &a)).abs() < 1e-9);
            let moved: Vec<u64> = a.iter().map(|sample| sample + shift).collect();
            prop_assert!((demerit(&a, &moved) - shift as f64).abs() < 1e-9);
            // A grid with a whole number of points per step of either side sums exactly.
            let (mut ordered_a, mut ordered_b) = (a.clone(), b.clone());
            ordered_a.sort_unstable();
            ordered_b.sort_unstable();
            let points = a.len() * b.len();
            let square = |point: usize| {
                let q = (point as f64 + 0.5) / points as f64;
                let (x, y) = (quantile_sorted(&ordered_a, q), quantile_sorted(&ordered_b, q));
                (x.abs_diff(y) as f64).powi(2)
            };
            let slow = ((0..points).map(square).sum::<f64>() / points as f64).sqrt();
            prop_assert!((found - slow).abs() < 1e-6, "{} against {}", found, slow);
        }
    }
}
