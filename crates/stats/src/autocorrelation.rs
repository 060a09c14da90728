//! How many independent samples a correlated sequence is worth.
//!
//! The integrated autocorrelation time is tau = 1 + 2 (rho_1 + rho_2 + ...); n correlated samples
//! tell as much about their mean as n / tau independent ones. The sum is cut by Sokal's automatic
//! window (the smallest M with M >= 5 tau(M); "Monte Carlo methods in statistical mechanics",
//! 1996). Where tau is too long for the lags that are looked at, the sequence is averaged in pairs
//! and the question asked again (the blocking of Flyvbjerg and Petersen, J. Chem. Phys. 91, 1989),
//! which keeps the cost linear. Tested against first-order autoregressive sequences, whose tau is
//! (1 + phi) / (1 - phi).

/// Sokal's factor between the window and tau.
const WINDOW_PER_TAU: f64 = 5.0;
/// Lags looked at before the sequence is averaged in pairs: enough for tau up to 12.
const LAGS: usize = 64;

/// The integrated autocorrelation time of a sequence, in samples: 1 for independent ones, at least
/// 1 always, at most the number of samples. A constant sequence counts as independent.
pub fn autocorrelation_time(samples: &[f64]) -> f64 {
    let count = samples.len() as f64;
    let Some(first_variance) = variance(samples).filter(|variance| *variance > 0.0) else {
        return 1.0;
    };
    let mut blocked = samples.to_vec();
    let mut block = 1.0;
    loop {
        let Some(variance) = variance(&blocked).filter(|variance| *variance > 0.0) else {
            return 1.0;
        };
        // Averaging independent samples in blocks divides the variance by the block; what is left
        // over that is correlation inside the blocks.
        let inside = block * variance / first_variance;
        let (tau, complete) = windowed(&blocked, variance);
        if complete || blocked.len() < 4 * LAGS {
            return (inside * tau).clamp(1.0, count.max(1.0));
        }
        blocked = blocked.chunks_exact(2).map(|pair| f64::midpoint(pair[0], pair[1])).collect();
        block *= 2.0;
    }
}

/// Independent samples that `samples` are worth: their number over the autocorrelation time.
pub fn effective_count(samples: &[f64]) -> f64 {
    samples.len() as f64 / autocorrelation_time(samples)
}

/// Sokal's windowed sum, and whether its window closed within [`LAGS`].
fn windowed(samples: &[f64], variance: f64) -> (f64, bool) {
    let count = samples.len();
    let mean = mean(samples);
    let mut tau = 1.0;
    for lag in 1..=LAGS.min(count - 1) {
        let pairs = samples[..count - lag].iter().zip(&samples[lag..]);
        let covariance: f64 =
            pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / count as f64;
        tau += 2.0 * covariance / variance;
        if lag as f64 >= WINDOW_PER_TAU * tau {
            return (tau, true);
        }
    }
    (tau, false)
}

fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

/// Population variance; `None` below two samples.
fn variance(samples: &[f64]) -> Option<f64> {
    let mean = mean(samples);
    let squares = || samples.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (samples.len() >= 2).then(|| squares() / samples.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// x_t = phi x_{t-1} + noise.
    fn autoregressive(phi: f64, count: usize, seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        let mut value = 0.0;
        let mut next = || {
            value = phi * value + rng.exponential(1.0) - 1.0;
            value
        };
        (0..1000).for_each(|_| _ = next());
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn autoregressive_sequences_have_their_closed_form() {
        for phi in [0.0, 0.3, 0.5, 0.9, 0.99] {
            let expected = (1.0 + phi) / (1.0 - phi);
            let found = autocorrelation_time(&autoregressive(phi, 200_000, 11));
            let error = (found / expected - 1.0).abs();
            assert!(error < 0.15, "phi {phi}: {found} is not {expected}");
        }
    }

    #[test]
    fn degenerate_sequences_count_as_independent() {
        assert_eq!(autocorrelation_time(&[]), 1.0);
        assert_eq!(autocorrelation_time(&[3.0]), 1.0);
        assert_eq!(autocorrelation_time(&[3.0; 500]), 1.0);
        assert_eq!(effective_count(&[3.0; 500]), 500.0);
    }

    #[test]
    fn alternating_samples_are_worth_no_more_than_their_number() {
        let alternating: Vec<f64> = (0..1000).map(|i| f64::from(i % 2)).collect();
        assert_eq!(autocorrelation_time(&alternating), 1.0);
    }

    #[test]
    fn a_trend_is_worth_almost_nothing() {
        let trend: Vec<f64> = (0..10_000).map(f64::from).collect();
        assert!(effective_count(&trend) < 40.0, "{}", effective_count(&trend));
    }
}
