//! Straight lines through measurements: `y = intercept + slope x`.
//!
//! Weighted least squares with the textbook standard errors (Draper and Smith, "Applied Regression
//! Analysis", ch. 1 and 9). Weights are relative: only their proportions matter, and a weight says
//! how many observations a point stands for or the inverse of its variance up to a factor. Sums are
//! taken about the mean, so large offsets lose no digits. Tested against closed forms and published
//! figures (Anscombe's first set).

use serde::{Deserialize, Serialize};

/// A fitted line and how well it fits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Rise of y per unit of x.
    pub slope: f64,
    /// y at x = 0.
    pub intercept: f64,
    /// Standard error of the slope; 0 where only two points were given.
    pub slope_error: f64,
    /// Standard error of the intercept; 0 where only two points were given.
    pub intercept_error: f64,
    /// Share of the variance of y that the line explains; 1 where y does not vary at all.
    pub r_squared: f64,
    /// Root of the (weighted) mean square distance between the points and the line, in units of y.
    pub rms_error: f64,
    /// (Weighted) mean of `|distance| / |y|` over the points where y is not 0.
    pub mean_relative_error: f64,
    /// Points.
    pub count: usize,
}

impl Line {
    /// The line at `x`.
    pub fn at(&self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }
}

/// Fits a line. `None` where there is none: lengths differ, fewer than two points of positive
/// weight, all x equal, or a value that is not finite.
pub fn line(x: &[f64], y: &[f64], weights: Option<&[f64]>) -> Option<Line> {
    let lengths_agree = x.len() == y.len() && weights.is_none_or(|w| w.len() == x.len());
    if !lengths_agree || x.iter().chain(y).any(|value| !value.is_finite()) {
        return None;
    }
    if weights.is_some_and(|w| w.iter().any(|weight| !weight.is_finite() || *weight < 0.0)) {
        return None;
    }
    let weight_of = |index: usize| weights.map_or(1.0, |w| w[index]);
    let points = || (0..x.len()).map(|i| (x[i], y[i], weight_of(i))).filter(|point| point.2 > 0.0);
    let count = points().count();
    if count < 2 {
        return None;
    }
    let total: f64 = points().map(|(_, _, w)| w).sum();
    let mean_x = points().map(|(x, _, w)| w * x).sum::<f64>() / total;
    let mean_y = points().map(|(_, y, w)| w * y).sum::<f64>() / total;
    let spread_x: f64 = points().map(|(x, _, w)| w * (x - mean_x).powi(2)).sum();
    let spread_y: f64 = points().map(|(_, y, w)| w * (y - mean_y).powi(2)).sum();
    let product: f64 = points().map(|(x, y, w)| w * (x - mean_x) * (y - mean_y)).sum();
    // Equal x leave a spread of rounding only: n times the square of one rounding error.
    if spread_x <= total * (mean_x * 4.0 * f64::EPSILON).powi(2) {
        return None;
    }
    let slope = product / spread_x;
    let intercept = mean_y - slope * mean_x;
    let residual = |x: f64, y: f64| y - intercept - slope * x;
    let squares: f64 = points().map(|(x, y, w)| w * residual(x, y).powi(2)).sum();
    let variance = if count > 2 { squares / (count as f64 - 2.0) } else { 0.0 };
    let relative = || points().filter(|point| point.1 != 0.0);
    let relative_weight: f64 = relative().map(|(_, _, w)| w).sum();
    let relative_sum: f64 = relative().map(|(x, y, w)| w * (residual(x, y) / y).abs()).sum();
    Some(Line {
        slope,
        intercept,
        slope_error: (variance / spread_x).sqrt(),
        intercept_error: (variance * (1.0 / total + mean_x.powi(2) / spread_x)).sqrt(),
        r_squared: if spread_y > 0.0 { (1.0 - squares / spread_y).max(0.0) } else { 1.0 },
        rms_error: (squares / total).sqrt(),
        mean_relative_error: if relative_weight > 0.0 {
            relative_sum / relative_weight
        } else {
            0.0
        },
        count,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;

    #[track_caller]
    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "{found} is not {expected} +- {tolerance}");
    }

    /// Anscombe, "Graphs in statistical analysis" (1973), first set: every figure is printed there.
    #[test]
    fn anscombe_first_set() {
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let line = line(&x, &y, None).expect("a line");
        close(line.slope, 0.5001, 5e-5);
        close(line.intercept, 3.0001, 5e-5);
        close(line.slope_error, 0.1179, 5e-5);
        close(line.intercept_error, 1.1247, 5e-5);
        close(line.r_squared, 0.6665, 5e-5);
        assert_eq!(line.count, 11);
    }

    #[test]
    fn two_points_are_joined_exactly() {
        let line = line(&[1.0, 3.0], &[10.0, 20.0], None).expect("a line");
        assert_eq!((line.slope, line.intercept, line.at(5.0)), (5.0, 5.0, 30.0));
        assert_eq!((line.slope_error, line.rms_error, line.r_squared), (0.0, 0.0, 1.0));
    }

    #[test]
    fn relative_error_is_the_mean_of_the_distances_over_y() {
        // The best line through these is y = 2; distances are 1 / 1, 1 / 3, 1 / 3, 1 / 1.
        let line = line(&[1.0, 2.0, 3.0, 4.0], &[1.0, 3.0, 3.0, 1.0], None).expect("a line");
        close(line.slope, 0.0, 1e-12);
        close(line.rms_error, 1.0, 1e-12);
        close(line.mean_relative_error, f64::midpoint(1.0, 1.0 / 3.0), 1e-12);
    }

    #[test]
    fn there_is_no_line_where_there_is_none() {
        assert_eq!(line(&[], &[], None), None);
        assert_eq!(line(&[1.0], &[1.0], None), None);
        assert_eq!(line(&[0.1, 0.1, 0.1], &[1.0, 2.0, 3.0], None), None);
        assert_eq!(line(&[1.0, 2.0], &[1.0], None), None);
        assert_eq!(line(&[1.0, 2.0], &[1.0, f64::NAN], None), None);
        assert_eq!(line(&[1.0, 2.0], &[1.0, 2.0], Some(&[1.0, 0.0])), None);
        assert_eq!(line(&[1.0, 2.0], &[1.0, 2.0], Some(&[1.0, -1.0])), None);
    }

    /// The stated standard error must be the spread that repeating the experiment shows.
    #[test]
    fn standard_errors_are_the_spread_over_repetitions() {
        let x: Vec<f64> = (0..20).map(f64::from).collect();
        let mut rng = Rng::new(3);
        let (mut slopes, mut errors) = (Vec::new(), Vec::new());
        for _ in 0..2000 {
            let y: Vec<f64> = x.iter().map(|x| 5.0 + 2.0 * x + rng.exponential(3.0)).collect();
            let line = line(&x, &y, None).expect("a line");
            slopes.push(line.slope);
            errors.push(line.slope_error.powi(2));
        }
        let mean = slopes.iter().sum::<f64>() / 2000.0;
        let variance = slopes.iter().map(|slope| (slope - mean).powi(2)).sum::<f64>() / 1999.0;
        close(mean, 2.0, 0.01);
        close(errors.iter().sum::<f64>() / 2000.0 / variance, 1.0, 0.1);
    }

    proptest! {
        #[test]
        fn whole_weights_are_repetitions(
            points in prop::collection::vec((-1e3f64..1e3, -1e3f64..1e3, 1u8..5), 3..20),
        ) {
            let x: Vec<f64> = points.iter().map(|point| point.0).collect();
            let y: Vec<f64> = points.iter().map(|point| point.1).collect();
            let weights: Vec<f64> = points.iter().map(|point| f64::from(point.2)).collect();
            let repeat = |values: &[f64]| -> Vec<f64> {
                let times = |i: usize| usize::from(points[i].2);
                (0..values.len()).flat_map(|i| std::iter::repeat_n(values[i], times(i))).collect()
            };
            let weighted = line(&x, &y, Some(&weights)).expect("a line");
            let repeated = line(&repeat(&x), &repeat(&y), None).expect("a line");
            let off = (weighted.slope - repeated.slope).abs();
            prop_assert!(off < 1e-6 * (1.0 + repeated.slope.abs()));
            prop_assert!((weighted.rms_error - repeated.rms_error).abs() < 1e-6);
            prop_assert!((weighted.mean_relative_error - repeated.mean_relative_error).abs()
                < 1e-6 * (1.0 + repeated.mean_relative_error));
        }
    }
}
