//! Pearson's chi-square test: do counts follow the distribution they should?
//!
//! The p-value is the regularised upper incomplete gamma function Q(degrees / 2, statistic / 2), by
//! its power series below the mean and Lentz's continued fraction above it (Abramowitz and Stegun
//! 6.5.29 and 6.5.31), with Lanczos' approximation of ln Gamma. Relative error below 1e-10 over the
//! table values that the tests compare.

use serde::{Deserialize, Serialize};

/// The outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChiSquare {
    /// Sum of (observed - expected)^2 / expected over the classes.
    pub statistic: f64,
    /// Classes of positive expectation less one.
    pub degrees: u64,
    /// Chance of a statistic at least this large if the distribution holds.
    pub p_value: f64,
}

/// Compares counts with what a distribution expects of them. `expected` may be counts or shares: it
/// is scaled to the sum of `observed`. A class that cannot occur (expected 0) but did makes the
/// p-value 0; one that did not is left out.
///
/// The approximation needs about 5 expected counts per class; merging rarer ones is the caller's
/// part, as only it knows which classes belong together.
///
/// # Panics
/// Where the two slices differ in length: that is a mistake in the calling code.
pub fn test(observed: &[u64], expected: &[f64]) -> ChiSquare {
    assert_eq!(observed.len(), expected.len(), "one expectation per class");
    let scale = observed.iter().sum::<u64>() as f64 / expected.iter().sum::<f64>();
    let mut statistic = 0.0;
    let mut classes = 0u64;
    let mut impossible = false;
    for (&count, &share) in observed.iter().zip(expected) {
        if share > 0.0 {
            let mean = share * scale;
            statistic += if mean > 0.0 { (count as f64 - mean).powi(2) / mean } else { 0.0 };
            classes += 1;
        } else if count > 0 {
            impossible = true;
        }
    }
    let degrees = classes.saturating_sub(1);
    let p_value = if impossible { 0.0 } else { p_value(statistic, degrees) };
    ChiSquare { statistic, degrees, p_value }
}

/// Chance that a chi-square variable of `degrees` degrees of freedom is at least `statistic`; 1
/// where there are no degrees of freedom.
pub fn p_value(statistic: f64, degrees: u64) -> f64 {
    if degrees == 0 || statistic <= 0.0 {
        return 1.0;
    }
    let (shape, x) = (degrees as f64 / 2.0, statistic / 2.0);
    let upper =
        if x < shape + 1.0 { 1.0 - lower_series(shape, x) } else { upper_fraction(shape, x) };
    upper.clamp(0.0, 1.0)
}

/// x^a e^-x / Gamma(a), through logarithms so that large arguments do not overflow.
fn scale(a: f64, x: f64) -> f64 {
    (a * x.ln() - x - ln_gamma(a)).exp()
}

/// The regularised lower incomplete gamma function by its power series; converges fast for x < a +
/// 1.
fn lower_series(a: f64, x: f64) -> f64 {
    let mut term = 1.0 / a;
    let mut sum = term;
    // Terms shrink by x / (a + n); a few times sqrt(a) of them reach the last bit.
    for n in 1..100_000 {
        term *= x / (a + f64::from(n));
        sum += term;
        if term < sum * f64::EPSILON {
            break;
        }
    }
    sum * scale(a, x)
}

/// The regularised upper incomplete gamma function by its continued fraction; for x >= a + 1.
fn upper_fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / b;
    let mut value = d;
    for n in 1..100_000 {
        let n = f64::from(n);
        let numerator = -n * (n - a);
        b += 2.0;
        d = 1.0 / away_from_zero(numerator * d + b, TINY);
        c = away_from_zero(b + numerator / c, TINY);
        value *= d * c;
        if (d * c - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    value * scale(a, x)
}

fn away_from_zero(value: f64, tiny: f64) -> f64 {
    if value.abs() < tiny { tiny } else { value }
}

/// ln Gamma(x) for x > 0: Lanczos' approximation (g = 7, nine coefficients).
fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        // Reflection: Gamma(x) Gamma(1 - x) = pi / sin(pi x).
        return (std::f64::consts::PI / (std::f64::consts::PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let sum = COEFFICIENTS[1..]
        .iter()
        .enumerate()
        .fold(COEFFICIENTS[0], |sum, (k, coefficient)| sum + coefficient / (x + k as f64 + 1.0));
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[track_caller]
    fn close(found: f64, expected: f64, relative: f64) {
        assert!((found / expected - 1.0).abs() <= relative, "{found} is not {expected}");
    }

    /// Critical values of the chi-square table in Abramowitz and Stegun (26.8).
    #[test]
    fn table_values() {
        let table = [
            (1, 3.841_46, 0.05),
            (1, 6.634_90, 0.01),
            (2, 5.991_46, 0.05),
            (5, 11.070_5, 0.05),
            (9, 27.877_2, 0.001),
            (10, 18.307_0, 0.05),
            (10, 3.940_30, 0.95),
            (30, 50.892_2, 0.01),
            (100, 124.342, 0.05),
        ];
        for (degrees, statistic, p) in table {
            close(p_value(statistic, degrees), p, 2e-5);
        }
    }

    /// Closed forms: exp(-x/2) for two degrees, exp(-x/2) (1 + x/2) for four.
    #[test]
    fn even_degrees_have_closed_forms() {
        for step in 1..400 {
            let x = f64::from(step) / 4.0;
            close(p_value(x, 2), (-x / 2.0).exp(), 1e-11);
            close(p_value(x, 4), (-x / 2.0).exp() * (1.0 + x / 2.0), 1e-11);
        }
    }

    /// For many degrees the cube root of statistic / degrees is normal (Wilson and Hilferty 1931).
    #[test]
    fn many_degrees_approach_the_normal_distribution() {
        close(p_value(100_000.0, 100_000), 0.499_4, 1e-3);
        close(p_value(100_736.74, 100_000), 0.05, 1e-4);
    }

    #[test]
    fn ln_gamma_of_known_arguments() {
        close(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln(), 1e-13);
        close(ln_gamma(11.0), 3_628_800f64.ln(), 1e-13);
        close(ln_gamma(0.25), 1.288_022_524_698_077, 1e-12);
    }

    #[test]
    fn statistic_by_hand() {
        // 60 throws of a die, 10 expected each: (25 + 4 + 4 + 9 + 0 + 0) / 10.
        let found = test(&[5, 8, 12, 13, 10, 12], &[1.0; 6]);
        close(found.statistic, 4.6, 1e-12);
        assert_eq!(found.degrees, 5);
        close(found.p_value, 0.466_61, 1e-4);
    }

    #[test]
    fn classes_that_cannot_occur() {
        assert_eq!(test(&[5, 5, 1], &[0.5, 0.5, 0.0]).p_value, 0.0);
        assert_eq!(test(&[5, 5, 0], &[0.5, 0.5, 0.0]).p_value, 1.0);
        let empty = test(&[], &[]);
        assert_eq!((empty.statistic, empty.degrees, empty.p_value), (0.0, 0, 1.0));
        assert_eq!(test(&[0, 0], &[1.0, 1.0]).p_value, 1.0);
    }

    /// Under the true distribution p-values are uniform: a tenth of the tests are below 0.1.
    #[test]
    fn p_values_of_true_hypotheses_are_uniform() {
        let mut rng = Rng::new(5);
        let tests = 2000;
        let mut below = 0;
        for _ in 0..tests {
            let mut counts = [0u64; 8];
            (0..400).for_each(|_| counts[rng.below(8) as usize] += 1);
            below += u32::from(test(&counts, &[1.0; 8]).p_value < 0.1);
        }
        // Binomial: 200 +- 3.3 standard deviations of 13.4.
        assert!((155..245).contains(&below), "{below} of {tests}");
    }
}
