//! The skewed random numbers of TPC-C 5.11 clause 2.1.6, and their exact distribution.
//!
//! `NURand(A, x, y) = (((random(0..A) | random(x..y)) + C) mod (y - x + 1)) + x`. A is 2^k - 1, so
//! the low k bits of the bitwise or are skewed towards ones and the high bits are those of the
//! second number: a number of popular values, spread by C. C for last names must differ between
//! load and run by 65 to 119, but not 96 or 112 (clause 2.1.6.1).
//!
//! [`NuRand::probabilities`] gives the distribution exactly, in integers, so that a chi-square test
//! can tell a wrong generator; tests compare it with plain enumeration and 10^6 (`SLOW=1`: 10^7)
//! draws with it.

use stats::rng::{Rng, at};

/// One skewed distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NuRand {
    bits: u32,
    low: u32,
    high: u32,
    c: u32,
}

impl NuRand {
    /// The distribution with A = 2^`bits` - 1 over `low..=high`, shifted by `c`.
    pub fn new(bits: u32, low: u32, high: u32, c: u32) -> Self {
        assert!(
            bits < 20 && low <= high && high < 1 << 20,
            "NURand out of the range it is made for"
        );
        Self { bits, low, high, c }
    }

    /// One number.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u32 {
        let word = rng.next_u64();
        // Two independent numbers from one word: the low bits and a 40-bit fraction. The bias of
        // the fraction is below range / 2^40, less than 1e-7.
        let a = (word & ((1 << self.bits) - 1)) as u32;
        let range = u64::from(self.high - self.low + 1);
        let b = self.low + (((word >> 24) * range) >> 40) as u32;
        self.fold(a | b)
    }

    #[inline]
    fn fold(&self, or: u32) -> u32 {
        (or + self.c) % (self.high - self.low + 1) + self.low
    }

    /// Smallest and largest value.
    pub fn range(&self) -> (u32, u32) {
        (self.low, self.high)
    }

    /// The probability of each value from `low` to `high`: exact counts over all pairs of the two
    /// random numbers, divided by the number of pairs.
    ///
    /// Of the pairs (a, b) with `a | b = v`, b must be a subset of v's bits in the low k bits, and
    /// then a must hold the missing bits and may hold any of b's: 2^popcount(b) choices. The sum
    /// over subsets is a zeta transform per block of 2^k values of b.
    pub fn probabilities(&self) -> Vec<f64> {
        let block = 1usize << self.bits;
        let range = (self.high - self.low + 1) as usize;
        let mut counts = vec![0u64; range];
        let (first, last) = (self.low as usize / block, self.high as usize / block);
        for high_bits in first..=last {
            let base = high_bits * block;
            let mut ways: Vec<u64> = (0..block)
                .map(|b| {
                    let inside = (self.low as usize..=self.high as usize).contains(&(base + b));
                    u64::from(inside) << b.count_ones()
                })
                .collect();
            for bit in 0..self.bits {
                for v in (0..block).filter(|v| v >> bit & 1 == 1) {
                    ways[v] += ways[v ^ (1 << bit)];
                }
            }
            for (v, ways) in ways.iter().enumerate() {
                counts[(self.fold((base + v) as u32) - self.low) as usize] += ways;
            }
        }
        let pairs = (block * range) as f64;
        counts.iter().map(|&count| count as f64 / pairs).collect()
    }
}

/// The C constants of one load or run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Constants {
    /// For last names, 0..=255.
    pub c_last: u32,
    /// For customer numbers, 0..=1023.
    pub c_id: u32,
    /// For item numbers, 0..=8191.
    pub ol_i_id: u32,
}

impl Constants {
    /// The constants of a load.
    pub fn for_load(seed: u64) -> Self {
        let word = |k: u64| at(seed ^ 0x004c_4f41_4443_0000, k);
        Self {
            c_last: (word(0) % 256) as u32,
            c_id: (word(1) % 1024) as u32,
            ol_i_id: (word(2) % 8192) as u32,
        }
    }

    /// The constants of a run on a database loaded with `c_last_load`: legal by clause 2.1.6.1.
    pub fn for_run(seed: u64, c_last_load: u32) -> Self {
        let legal: Vec<u32> = (0..256).filter(|&c| legal_delta(c, c_last_load)).collect();
        let word = |k: u64| at(seed ^ 0x0052_554e_4300_0000, k);
        Self {
            c_last: legal[(word(0) % legal.len() as u64) as usize],
            c_id: (word(1) % 1024) as u32,
            ol_i_id: (word(2) % 8192) as u32,
        }
    }
}

/// Whether two constants for last names may be those of a load and a run (clause 2.1.6.1).
pub fn legal_delta(run: u32, load: u32) -> bool {
    let delta = run.abs_diff(load);
    (65..=119).contains(&delta) && delta != 96 && delta != 112
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::chi_square_tail;

    /// Enumeration of all pairs: slow and obvious.
    fn enumerate(nurand: &NuRand) -> Vec<f64> {
        let range = (nurand.high - nurand.low + 1) as usize;
        let mut counts = vec![0u64; range];
        for a in 0..1u32 << nurand.bits {
            for b in nurand.low..=nurand.high {
                let value = ((a | b) + nurand.c) % range as u32 + nurand.low;
                counts[(value - nurand.low) as usize] += 1;
            }
        }
        counts.iter().map(|&c| c as f64 / (range << nurand.bits) as f64).collect()
    }

    #[test]
    fn the_exact_distribution_is_that_of_enumeration() {
        for (bits, low, high, c) in
            [(8, 0, 999, 173), (3, 1, 30, 5), (5, 0, 31, 0), (10, 1, 3000, 7), (4, 9, 9, 3)]
        {
            let nurand = NuRand::new(bits, low, high, c);
            assert_eq!(nurand.probabilities(), enumerate(&nurand), "{nurand:?}");
        }
    }

    #[test]
    fn draws_follow_the_exact_distribution() {
        let draws: u32 = if std::env::var_os("SLOW").is_some() { 10_000_000 } else { 1_000_000 };
        for (bits, low, high, c) in [(8, 0, 999, 91), (10, 1, 3000, 400), (13, 1, 100_000, 6000)] {
            let nurand = NuRand::new(bits, low, high, c);
            let mut rng = Rng::new(u64::from(bits));
            let mut counts = vec![0u32; (high - low + 1) as usize];
            for _ in 0..draws {
                counts[(nurand.draw(&mut rng) - low) as usize] += 1;
            }
            let tail = chi_square_tail(&counts, &nurand.probabilities());
            assert!(tail > 1e-4, "A of {bits} bits: tail probability {tail}");
            // The same draws against a neighbouring C must be told apart.
            let shifted = NuRand::new(bits, low, high, c + 1).probabilities();
            let tail = chi_square_tail(&counts, &shifted);
            assert!(tail < 1e-9, "A of {bits} bits: a shifted C passes with {tail}");
        }
    }

    proptest::proptest! {
        #[test]
        fn draws_stay_in_range_and_probabilities_sum_to_one(
            bits in 0u32..13, low in 0u32..5000, width in 0u32..5000, c in 0u32..9000, seed: u64,
        ) {
            let nurand = NuRand::new(bits, low, low + width, c);
            let mut rng = Rng::new(seed);
            for _ in 0..100 {
                let value = nurand.draw(&mut rng);
                assert!((low..=low + width).contains(&value));
            }
            let probabilities = nurand.probabilities();
            assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            let drawn = nurand.draw(&mut rng) - low;
            assert!(probabilities[drawn as usize] > 0.0);
        }
    }

    #[test]
    fn every_run_constant_is_legal_for_its_load() {
        for load in 0..256 {
            for seed in 0..20 {
                let run = Constants::for_run(seed, load).c_last;
                assert!(legal_delta(run, load), "{run} after {load}");
            }
        }
        assert!(!legal_delta(96, 0) && !legal_delta(0, 112) && !legal_delta(64, 0));
        assert!(legal_delta(119, 0) && legal_delta(0, 65) && !legal_delta(120, 0));
    }
}
