//! By which factor a quantity changed between two times at each of which it was measured
//! repeatedly.
//!
//! Welch's interval of a difference of means (Welch, "The generalization of Student's problem",
//! Biometrika 34, 1947), taken of the logarithms, so that the factor is one of geometric means and
//! a doubling and a halving count alike. Whole measurements are the samples: what scatters from one
//! measurement to the next widens the interval, however many requests each holds. Tested for
//! coverage.

use serde::{Deserialize, Serialize};

/// Two-sided 95 % points of Student's distribution for 1 to 30 degrees of freedom.
const STUDENT_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// A factor with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Geometric mean after over geometric mean before.
    pub factor: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Change {
    /// Whether the interval leaves 1 out.
    pub fn is_shown(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

/// The factor by which `after` differs from `before`; `None` with fewer than two samples on a side
/// or where one is not positive.
pub fn change(before: &[f64], after: &[f64]) -> Option<Change> {
    let [before, after] = [before, after].map(log_mean_and_variance);
    let (before, after) = (before?, after?);
    let variance = before.1 + after.1;
    // Welch-Satterthwaite; rounded down, which widens the interval.
    let freedom = variance * variance
        / (before.1 * before.1 / (before.2 - 1.0) + after.1 * after.1 / (after.2 - 1.0));
    let freedom = if freedom.is_finite() { freedom as usize } else { usize::MAX };
    let point = STUDENT_95.get(freedom.max(1) - 1).copied();
    // Beyond the table: the normal's point with the first term of its expansion.
    let point = point.unwrap_or_else(|| 1.96 + 2.4 / freedom as f64);
    let (difference, half) = (after.0 - before.0, point * variance.sqrt());
    Some(Change {
        factor: difference.exp(),
        low: (difference - half).exp(),
        high: (difference + half).exp(),
    })
}

/// Mean of the logarithms, variance of that mean, count.
fn log_mean_and_variance(samples: &[f64]) -> Option<(f64, f64, f64)> {
    if samples.len() < 2 || samples.iter().any(|sample| *sample <= 0.0 || !sample.is_finite()) {
        return None;
    }
    let count = samples.len() as f64;
    let mean = samples.iter().map(|sample| sample.ln()).sum::<f64>() / count;
    let squares = samples.iter().map(|sample| (sample.ln() - mean).powi(2)).sum::<f64>();
    Some((mean, squares / (count - 1.0) / count, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_interval_holds_the_true_factor_as_often_as_it_says() {
        // Nearly normal logarithms, with unequal spread and counts, true factor 1.3.
        let normal = |rng: &mut Rng| (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
        let held = (0..2000).filter(|seed| {
            let mut rng = Rng::new(*seed);
            let mut draw = |count: usize, spread: f64, centre: f64| -> Vec<f64> {
                (0..count).map(|_| centre * (spread * normal(&mut rng)).exp()).collect()
            };
            let found = change(&draw(6, 0.05, 100.0), &draw(9, 0.2, 130.0)).unwrap();
            found.low <= 1.3 && 1.3 <= found.high
        });
        let share = held.count() as f64 / 2000.0;
        assert!((0.935..0.975).contains(&share), "{share}");
    }

    #[test]
    fn a_change_is_shown_only_beyond_the_scatter() {
        let before = [100.0, 104.0, 97.0, 101.0];
        let same = change(&before, &[99.0, 103.0, 100.0, 98.0]).unwrap();
        assert!(!same.is_shown() && (same.factor - 1.0).abs() < 0.02, "{same:?}");
        let slower = change(&before, &[121.0, 118.0, 124.0, 119.0]).unwrap();
        assert!(slower.is_shown() && (slower.factor - 1.2).abs() < 0.02, "{slower:?}");
        let back = change(&[121.0, 118.0, 124.0, 119.0], &before).unwrap();
        assert!((back.factor * slower.factor - 1.0).abs() < 1e-9);
        assert!((back.low * slower.high - 1.0).abs() < 1e-9);
    }

    #[test]
    fn too_little_says_nothing() {
        assert_eq!(change(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(change(&[1.0, 0.0], &[1.0, 2.0]), None);
        let constant = change(&[2.0, 2.0], &[3.0, 3.0]).unwrap();
        let near = |end: f64| (end / 1.5 - 1.0).abs() < 1e-12;
        assert!(near(constant.low) && near(constant.high), "{constant:?}");
    }
}
