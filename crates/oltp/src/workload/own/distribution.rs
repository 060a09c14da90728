//! The distributions that parameters are drawn from, each with its exact probabilities.
//!
//! Gaussian and exponential are those of pgbench (PostgreSQL manual, page of pgbench: "random
//! functions"): a continuous variable, cut at `parameter`, whose range is divided into as many
//! equal parts as there are integers. Zipf gives the value of rank k, from 1, a chance proportional
//! to k^-exponent; scattered, ranks are spread over the range by a fixed permutation. NURand is
//! TPC-C's
//! (5.11 clause 2.1.6). Tests draw from each and compare by chi-square with the probabilities,
//! and with those of a neighbouring distribution, which must be told apart.

use stats::rng::Rng;
use stats::zipf::{Permutation, Zipf};

use crate::workload::nurand::NuRand;

/// The key of the permutation of scattered ranks: all runs agree on what is popular.
const SCATTER: u64 = 0x5343_4154_5445_5200;

/// A distribution of integers.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    low: i64,
    high: i64,
    shape: Shape,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Uniform,
    Gaussian(f64),
    Exponential(f64),
    Zipf(Zipf),
    ScatteredZipf(Zipf, Permutation),
    NuRand(NuRand),
}

type Made = Result<Distribution, String>;

impl Distribution {
    fn new(low: i64, high: i64, shape: impl FnOnce(u64) -> Shape) -> Made {
        match high.checked_sub(low) {
            Some(span) if (0..i64::MAX).contains(&span) => {
                Ok(Self { low, high, shape: shape(span as u64 + 1) })
            }
            _ => Err(format!("no integer lies from {low} to {high}")),
        }
    }

    /// Each integer of a range alike.
    ///
    /// # Errors
    /// An empty range; so for all of them, and for parameters without meaning.
    pub fn uniform(low: i64, high: i64) -> Made {
        Self::new(low, high, |_| Shape::Uniform)
    }

    /// A normal distribution around the middle, cut at `parameter` standard deviations.
    ///
    /// # Errors
    /// See [`Self::uniform`].
    pub fn gaussian(low: i64, high: i64, parameter: f64) -> Made {
        if !(2.0..=1e6).contains(&parameter) {
            return Err(format!("a gaussian parameter of {parameter}: it must be at least 2"));
        }
        Self::new(low, high, |_| Shape::Gaussian(parameter))
    }

    /// The low ones more often, cut at `parameter` means.
    ///
    /// # Errors
    /// See [`Self::uniform`].
    pub fn exponential(low: i64, high: i64, parameter: f64) -> Made {
        if !(parameter > 0.0 && parameter <= 1e6) {
            return Err(format!("an exponential parameter of {parameter}: it must be above 0"));
        }
        Self::new(low, high, |_| Shape::Exponential(parameter))
    }

    /// The low ones most often.
    ///
    /// # Errors
    /// See [`Self::uniform`].
    pub fn zipf(low: i64, high: i64, exponent: f64) -> Made {
        check_exponent(exponent)?;
        Self::new(low, high, |count| Shape::Zipf(Zipf::new(count, exponent)))
    }

    /// As [`Self::zipf`], the popular ones scattered over the range.
    ///
    /// # Errors
    /// See [`Self::uniform`].
    pub fn scattered_zipf(low: i64, high: i64, exponent: f64) -> Made {
        check_exponent(exponent)?;
        Self::new(low, high, |count| {
            Shape::ScatteredZipf(Zipf::new(count, exponent), Permutation::new(count, SCATTER))
        })
    }

    /// `NURand(a, low, high)` with the constant `c`.
    ///
    /// # Errors
    /// See [`Self::uniform`].
    pub fn nurand(a: i64, low: i64, high: i64, c: i64) -> Made {
        let room = 0..1i64 << 20;
        let known = room.contains(&low) && room.contains(&high) && room.contains(&c);
        let bits = (a + 1).max(0) as u64;
        if !(known && bits.is_power_of_two() && bits <= 1 << 19) {
            return Err(format!(
                "nurand({a}, {low}, {high}, {c}): a must be 2^n - 1 below 2^19, the others below \
                 2^20"
            ));
        }
        Self::new(low, high, |_| {
            Shape::NuRand(NuRand::new(bits.trailing_zeros(), low as u32, high as u32, c as u32))
        })
    }

    fn count(&self) -> u64 {
        (self.high - self.low) as u64 + 1
    }

    /// One number.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> i64 {
        let part = |unit: f64| ((unit * self.count() as f64) as u64).min(self.count() - 1);
        let offset = match &self.shape {
            Shape::Uniform => rng.below(self.count()),
            Shape::Gaussian(parameter) => {
                let deviation = loop {
                    let deviation = normal(rng);
                    if (-*parameter..*parameter).contains(&deviation) {
                        break deviation;
                    }
                };
                part((deviation + parameter) / (2.0 * parameter))
            }
            Shape::Exponential(parameter) => {
                // Inversion: 1 - (1 - e^-p) u lies in (e^-p, 1].
                let cut = (-parameter).exp_m1();
                part(-(cut * rng.unit()).ln_1p() / parameter)
            }
            Shape::Zipf(zipf) => zipf.sample(rng),
            Shape::ScatteredZipf(zipf, permutation) => permutation.at(zipf.sample(rng)),
            Shape::NuRand(nurand) => return i64::from(nurand.draw(rng)),
        };
        self.low + offset as i64
    }

    /// The exact probability of each integer of the range.
    pub fn probabilities(&self) -> Vec<f64> {
        let count = self.count();
        let edges = |below: &dyn Fn(f64) -> f64| -> Vec<f64> {
            let edge = |k: u64| below(k as f64 / count as f64);
            (0..count).map(|k| edge(k + 1) - edge(k)).collect()
        };
        match &self.shape {
            Shape::Uniform => vec![1.0 / count as f64; count as usize],
            Shape::Gaussian(parameter) => {
                let whole = error_function(parameter / std::f64::consts::SQRT_2);
                edges(&|share| {
                    let at = parameter * (2.0 * share - 1.0);
                    error_function(at / std::f64::consts::SQRT_2) / whole / 2.0
                })
            }
            Shape::Exponential(parameter) => {
                edges(&|share| (-parameter * share).exp_m1() / (-parameter).exp_m1())
            }
            Shape::Zipf(zipf) => zipf.probabilities(),
            Shape::ScatteredZipf(zipf, permutation) => {
                let mut spread = vec![0.0; count as usize];
                for (rank, probability) in (0..).zip(zipf.probabilities()) {
                    spread[permutation.at(rank) as usize] = probability;
                }
                spread
            }
            Shape::NuRand(nurand) => nurand.probabilities(),
        }
    }
}

fn check_exponent(exponent: f64) -> Result<(), String> {
    if (0.0..=1000.0).contains(&exponent) {
        return Ok(());
    }
    Err(format!("a Zipf exponent of {exponent}: it must be 0 to 1000"))
}

/// A normal variable (Box and Muller, "A note on the generation of random normal deviates", 1958).
fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.unit()).sin()
}

/// erf(x) by its series, which converges for every x; exact to 1e-12 where we need it (|x| < 5), 1
/// beyond.
fn error_function(x: f64) -> f64 {
    if x.abs() > 5.5 {
        return x.signum();
    }
    // erf x = 2/sqrt(pi) e^-x^2 sum 2^n x^(2n+1) / (2n+1)!! (Abramowitz and Stegun 7.1.6).
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while term.abs() > 1e-17 * sum.abs() && n < 500.0 {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    2.0 / std::f64::consts::PI.sqrt() * (-x * x).exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::chi_square_tail;

    #[test]
    fn the_error_function_has_the_values_of_the_tables() {
        // Abramowitz and Stegun table 7.1.
        for (x, expected) in [(0.5, 0.5204998778), (1.0, 0.8427007929), (2.0, 0.9953222650)] {
            assert!((error_function(x) - expected).abs() < 1e-10);
            assert!((error_function(-x) + expected).abs() < 1e-10);
        }
    }

    fn tail(drawn: &Distribution, against: &Distribution, draws: u32) -> f64 {
        let mut rng = Rng::new(17);
        let mut counts = vec![0u32; drawn.count() as usize];
        for _ in 0..draws {
            counts[(drawn.draw(&mut rng) - drawn.low) as usize] += 1;
        }
        chi_square_tail(&counts, &against.probabilities())
    }

    /// The exact tests of NURand, for each: its own probabilities hold, a neighbour's do not.
    #[test]
    fn draws_follow_the_exact_distributions() {
        let draws = if std::env::var_os("SLOW").is_some() { 10_000_000 } else { 1_000_000 };
        let pairs = [
            (Distribution::uniform(-3, 996), Distribution::zipf(-3, 996, 0.05)),
            (Distribution::gaussian(1, 1000, 2.5), Distribution::gaussian(1, 1000, 2.6)),
            (Distribution::gaussian(1, 7, 5.0), Distribution::gaussian(1, 7, 5.1)),
            (Distribution::exponential(1, 1000, 3.0), Distribution::exponential(1, 1000, 3.1)),
            (Distribution::zipf(1, 1000, 0.99), Distribution::zipf(1, 1000, 1.0)),
            (Distribution::zipf(1, 100_000, 1.2), Distribution::zipf(1, 100_000, 1.21)),
            (
                Distribution::scattered_zipf(0, 999, 0.99),
                Distribution::scattered_zipf(0, 999, 0.98),
            ),
            (Distribution::nurand(255, 0, 999, 91), Distribution::nurand(255, 0, 999, 92)),
        ];
        for (drawn, neighbour) in pairs {
            let (drawn, neighbour) = (drawn.unwrap(), neighbour.unwrap());
            let sum: f64 = drawn.probabilities().iter().sum();
            assert!((sum - 1.0).abs() < 1e-9, "{sum} {drawn:?}");
            let holds = tail(&drawn, &drawn, draws);
            assert!(holds > 1e-4, "{holds} {drawn:?}");
            let strays = tail(&drawn, &neighbour, draws);
            assert!(strays < 1e-9, "{strays} {drawn:?} passes for {neighbour:?}");
        }
    }

    #[test]
    fn ranges_and_parameters_without_meaning_are_refused() {
        let refused = |made: Made, why: &str| assert!(made.unwrap_err().contains(why), "{why}");
        refused(Distribution::uniform(2, 1), "no integer lies from 2 to 1");
        refused(Distribution::uniform(i64::MIN, i64::MAX), "no integer");
        refused(Distribution::gaussian(1, 2, 1.9), "at least 2");
        refused(Distribution::exponential(1, 2, 0.0), "above 0");
        refused(Distribution::zipf(1, 2, f64::NAN), "exponent");
        refused(Distribution::nurand(254, 1, 2, 0), "2^n - 1");
        assert_eq!(Distribution::uniform(5, 5).unwrap().draw(&mut Rng::new(1)), 5);
    }
}
