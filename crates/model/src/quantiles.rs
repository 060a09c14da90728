//! Empirical distributions as quantile points, and a table that samples them in a few cycles.
//!
//! [`Quantiles`] is what a profile prints: `[probability, value]` points, linear in between.
//! [`Samplers`] is what a model draws from: 256 values of equal probability, the last of which opens
//! into 256 more, so that the body costs one load from a 1 KiB table and the tail still resolves to
//! 1 in 65,536. Each value is the mean of its share of the distribution, so the mean is exact
//! (property test) and any quantile is off by at most one table step.

use serde::{Deserialize, Serialize};
use stats::rng;

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
    fn integral(&self, from: f64, to: f64) -> f64 {
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

const BINS: usize = 256;

/// Sampling tables of ratios, one after another. Table 0 is always there and gives 1.
#[derive(Clone, Debug)]
pub(crate) struct Samplers {
    /// Per table the body and then the tail.
    values: Vec<f32>,
}

impl Samplers {
    pub(crate) fn new() -> Self {
        Self { values: vec![1.0; 2 * BINS] }
    }

    /// Appends the table of `quantiles`, whose `flaw` is none, and gives its number.
    pub(crate) fn push(&mut self, quantiles: &Quantiles) -> u16 {
        let number = self.values.len() / (2 * BINS);
        let bins = BINS as f64;
        for (start, width) in [(0.0, 1.0 / bins), (1.0 - 1.0 / bins, 1.0 / (bins * bins))] {
            self.values.extend((0..BINS).map(|bin| {
                let from = start + width * bin as f64;
                (quantiles.integral(from, from + width) / width) as f32
            }));
        }
        u16::try_from(number).expect("fewer than 65,536 tables")
    }

    /// The ratio that table `number` has for 64 random bits.
    #[inline]
    pub(crate) fn ratio(&self, number: u16, bits: u64) -> f64 {
        let table = usize::from(number) * (2 * BINS);
        let bin = (bits >> 56) as usize;
        if bin == BINS - 1 {
            return f64::from(self.values[table + BINS + (bits >> 48) as usize % BINS]);
        }
        f64::from(self.values[table + bin])
    }
}

/// The random bits of request `index` of the stream `seed`: `stats::rng::at`, with the part that
/// does not change mixed once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    /// `mix(seed) + index * golden`.
    state: u64,
}

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: rng::mix(seed) }
    }

    /// The bits of the next request.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        let bits = rng::mix(self.state);
        self.skip();
        bits
    }

    /// The next request needs none.
    #[inline]
    pub(crate) fn skip(&mut self) {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    }

    /// For a snapshot.
    pub(crate) fn state(self) -> u64 {
        self.state
    }

    /// From a snapshot.
    pub(crate) fn set_state(&mut self, state: u64) {
        self.state = state;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn points() -> impl Strategy<Value = Quantiles> {
        prop::collection::vec((1u32..1000, 0.0f64..3.0), 2..30).prop_map(|steps| {
            let total: u32 = steps.iter().skip(1).map(|step| step.0).sum();
            let (mut p, mut value) = (0u32, 0.1);
            let mut points = Vec::new();
            for (index, (weight, rise)) in steps.iter().enumerate() {
                if index > 0 {
                    p += weight;
                }
                value += rise;
                points.push((f64::from(p) / f64::from(total), value));
            }
            Quantiles(points)
        })
    }

    proptest! {
        #[test]
        fn a_table_keeps_mean_and_quantiles(quantiles in points()) {
            prop_assert_eq!(quantiles.flaw(), None);
            let mut samplers = Samplers::new();
            let number = samplers.push(&quantiles);
            let draws: Vec<f64> =
                (0..65_536u64).map(|bits| samplers.ratio(number, bits << 48)).collect();
            let mean = draws.iter().sum::<f64>() / 65_536.0;
            prop_assert!((mean / quantiles.mean() - 1.0).abs() < 1e-5);
            for p in [0.01f64, 0.5, 0.9, 0.99, 0.999] {
                let drawn = draws[(p * 65_536.0) as usize];
                prop_assert!(drawn >= quantiles.at(p - 1.0 / 256.0) - 1e-4);
                prop_assert!(drawn <= quantiles.at(p + 1.0 / 256.0) + 1e-4);
            }
        }
    }

    #[test]
    fn draws_are_those_of_the_counter_based_stream() {
        let mut draw = Draw::new(42);
        for index in 0..100 {
            assert_eq!(draw.bits(), rng::at(42, index));
        }
    }

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
