//! Zipf-distributed ranks and what spreads them.
//!
//! Ranks are drawn by rejection-inversion (Hoermann and Derflinger, "Rejection-inversion to
//! generate variates from monotone discrete distributions", ACM TOMACS 6(3), 1996), in constant
//! time for any number of them. Tested against the exact probabilities; the permutation is checked
//! to be one.

use crate::rng::{Rng, mix};

/// Ranks from 0 with probabilities proportional to (rank + 1)^-exponent.
#[derive(Clone, Debug, PartialEq)]
pub struct Zipf {
    exponent: f64,
    count: f64,
    h_first: f64,
    h_span: f64,
    threshold: f64,
}

impl Zipf {
    /// Of ranks `0..count`; the exponent is not negative.
    pub fn new(count: u64, exponent: f64) -> Self {
        let mut zipf =
            Self { exponent, count: count as f64, h_first: 0.0, h_span: 0.0, threshold: 0.0 };
        zipf.h_first = zipf.h(1.5) - 1.0;
        zipf.h_span = zipf.h(zipf.count + 0.5) - zipf.h_first;
        zipf.threshold = 2.0 - zipf.h_inverse(zipf.h(2.5) - 2f64.powf(-exponent));
        zipf
    }

    /// Integral of x^-exponent, up to a constant.
    fn h(&self, x: f64) -> f64 {
        let log = x.ln();
        let power = (1.0 - self.exponent) * log;
        if power.abs() < 1e-8 { log } else { power.exp_m1() / power * log }
    }

    fn h_inverse(&self, y: f64) -> f64 {
        let one_minus = 1.0 - self.exponent;
        let scaled = (y * one_minus).max(-1.0);
        if scaled.abs() < 1e-8 { y.exp() } else { (scaled.ln_1p() / one_minus).exp() }
    }

    /// A rank.
    #[inline]
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.h_first + rng.unit() * self.h_span;
            let x = self.h_inverse(u);
            let k = x.round().clamp(1.0, self.count);
            if k - x <= self.threshold || u >= self.h(k + 0.5) - k.powf(-self.exponent) {
                return k as u64 - 1;
            }
        }
    }
}

impl Zipf {
    /// The exact probability of each rank.
    pub fn probabilities(&self) -> Vec<f64> {
        let weight = |rank: u64| ((rank + 1) as f64).powf(-self.exponent);
        let weights: Vec<f64> = (0..self.count as u64).map(weight).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / sum).collect()
    }
}

/// A keyed bijection of `0..count`: a Feistel network of four rounds on the next even power of two,
/// walked until it lands inside (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).
#[derive(Clone, Debug, PartialEq)]
pub struct Permutation {
    count: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    /// Of `0..count`, by the key `seed`.
    pub fn new(count: u64, seed: u64) -> Self {
        let bits = 64 - count.saturating_sub(1).leading_zeros();
        let key = |round: u64| mix(seed ^ mix(round + 1));
        Self { count, half_bits: bits.div_ceil(2).max(1), keys: [key(0), key(1), key(2), key(3)] }
    }

    /// Where `index`, below the count, goes.
    pub fn at(&self, index: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let mut value = index;
        loop {
            let (mut left, mut right) = (value >> self.half_bits, value & mask);
            for key in self.keys {
                (left, right) = (right, left ^ (mix(right ^ key) & mask));
            }
            value = (left << self.half_bits) | right;
            if value < self.count {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::*;

    #[test]
    fn a_single_rank_and_a_flat_distribution_are_drawn() {
        let mut rng = Rng::new(3);
        assert!((0..100).all(|_| Zipf::new(1, 0.99).sample(&mut rng) == 0));
        assert_eq!(Zipf::new(4, 0.0).probabilities(), [0.25; 4]);
    }

    proptest! {
        #[test]
        fn the_permutation_is_one(count in 1u64..3000, seed in any::<u64>()) {
            let permutation = Permutation::new(count, seed);
            let mut seen = vec![false; count as usize];
            for index in 0..count {
                let at = permutation.at(index) as usize;
                prop_assert!(!std::mem::replace(&mut seen[at], true));
            }
        }
    }
}
