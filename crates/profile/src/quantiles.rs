//! Empirical distributions as `[probability, value]` points, linear in between.

use serde::{Deserialize, Serialize};

/// Quantile points `(probability, value)`: probabilities from 0 to 1, values never falling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quantiles(pub Vec<(f64, f64)>);

impl Quantiles {
    /// Why the points are not a distribution of positive ratios, or `None` where they are.
    pub fn flaw(&self) -> Option<&'static str> {
        let points = &self.0;
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return Some("the table is empty");
        };
        if points.len() < 2 {
            return Some("a table needs at least two points");
        }
        if points.iter().any(|(p, value)| !p.is_finite() || !value.is_finite()) {
            return Some("a point is not a finite number");
        }
        if first.0 != 0.0 || last.0 != 1.0 {
            return Some("probabilities must run from 0 to 1");
        }
        if points.windows(2).any(|pair| pair[1].0 <= pair[0].0) {
            return Some("probabilities must rise from point to point");
        }
        if points.windows(2).any(|pair| pair[1].1 < pair[0].1) {
            return Some("values must not fall from point to point");
        }
        if first.1 < 0.0 || last.1 <= 0.0 {
            return Some("values must be positive");
        }
        None
    }

    /// The mean of the distribution.
    pub fn mean(&self) -> f64 {
        self.integral(0.0, 1.0)
    }

    /// The value at probability `p`, clamped to the ends.
    pub fn at(&self, p: f64) -> f64 {
        let points = &self.0;
        let above = points.partition_point(|point| point.0 < p);
        if above == 0 {
            return points[0].1;
        }
        if above == points.len() {
            return points[above - 1].1;
        }
        let ((p0, v0), (p1, v1)) = (points[above - 1], points[above]);
        v0 + (v1 - v0) * (p - p0) / (p1 - p0)
    }

    /// The same shape with every value multiplied by `factor`.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        Self(self.0.iter().map(|(p, value)| (*p, value * factor)).collect())
    }

    /// Integral of the quantile function over `from..to`.
    pub fn integral(&self, from: f64, to: f64) -> f64 {
        let mut sum = 0.0;
        for pair in self.0.windows(2) {
            let low = pair[0].0.max(from);
            let high = pair[1].0.min(to);
            if high > low {
                sum += (high - low) * 0.5 * (self.at_in(pair, low) + self.at_in(pair, high));
            }
        }
        sum
    }

    fn at_in(&self, pair: &[(f64, f64)], p: f64) -> f64 {
        debug_assert!(!self.0.is_empty());
        pair[0].1 + (pair[1].1 - pair[0].1) * (p - pair[0].0) / (pair[1].0 - pair[0].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flaws_are_named() {
        for (points, flaw) in [
            (vec![], "empty"),
            (vec![(0.0, 1.0)], "at least two"),
            (vec![(0.0, 1.0), (0.9, 2.0)], "from 0 to 1"),
            (vec![(0.0, 1.0), (0.5, 1.0), (0.5, 1.0), (1.0, 1.0)], "must rise"),
            (vec![(0.0, 2.0), (1.0, 1.0)], "must not fall"),
            (vec![(0.0, -1.0), (1.0, 1.0)], "positive"),
            (vec![(0.0, f64::NAN), (1.0, 1.0)], "finite"),
        ] {
            let quantiles = Quantiles(points);
            assert!(quantiles.flaw().is_some_and(|text| text.contains(flaw)), "{quantiles:?}");
        }
    }
}
