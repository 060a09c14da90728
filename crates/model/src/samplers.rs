//! Tables that sample empirical distributions in a few cycles.
//!
//! [`Samplers`] holds 256 values of equal probability, the last of which opens into 256 more, so
//! that the body costs one load from a 1 KiB table and the tail still resolves to 1 in 65,536. Each
//! value is the mean of its share of the distribution, so the mean is exact (property test) and any
//! quantile is off by at most one table step.

use profile::Quantiles;
use stats::rng;

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
}
