//! Has a device reached its steady state, and where does the warm-up end?
//!
//! [`assess`] follows the SNIA Solid State Storage Performance Test Specification (PTS 2.0, section
//! on steady state): over the last five rounds, (1) the range of the measured values is at most 20
//! % of their average, and (2) the best straight line through them rises or falls by at most 10 %
//! of the average within the window. Both must hold. [`mser5`] cuts the warm-up of a short run
//! (White, "An effective truncation heuristic for bias reduction in simulation output", Simulation
//! 69(6), 1997). Both are tested on simulated drift and noise.

use serde::{Deserialize, Serialize};

/// Rounds that the PTS rules look at.
pub const WINDOW: usize = 5;
/// Largest range, as a share of the average.
pub const RANGE_LIMIT: f64 = 0.20;
/// Largest rise or fall of the fitted line within the window, as a share of the average.
pub const SLOPE_LIMIT: f64 = 0.10;

/// What the two rules say.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// Whether the last five rounds obey both rules.
    pub steady: bool,
    /// Index of the last round of the first window that obeyed both rules.
    pub first_steady_round: Option<usize>,
    /// Range over average in the last window (fewer rounds if there are fewer); at most 0.20 is
    /// steady. 1 where the average is not positive.
    pub range_share: f64,
    /// Rise of the fitted line over the last window divided by the average, without sign; at most
    /// 0.10 is steady. 1 where the average is not positive.
    pub slope_share: f64,
}

/// Applies both rules to the value of each round (mean IOPS, say), oldest first.
pub fn assess(rounds: &[f64]) -> Steady {
    let obeys = |window: &[f64]| {
        let (range_share, slope_share) = shares(window);
        range_share <= RANGE_LIMIT && slope_share <= SLOPE_LIMIT
    };
    let (range_share, slope_share) = shares(&rounds[rounds.len().saturating_sub(WINDOW)..]);
    Steady {
        steady: rounds.len() >= WINDOW && obeys(&rounds[rounds.len() - WINDOW..]),
        first_steady_round: rounds.windows(WINDOW).position(obeys).map(|start| start + WINDOW - 1),
        range_share,
        slope_share,
    }
}

/// (range, rise of the least-squares line) over the average.
fn shares(window: &[f64]) -> (f64, f64) {
    let mean = window.iter().sum::<f64>() / window.len() as f64;
    if !mean.is_finite() || mean <= 0.0 {
        return (1.0, 1.0);
    }
    let largest = window.iter().copied().fold(f64::MIN, f64::max);
    let smallest = window.iter().copied().fold(f64::MAX, f64::min);
    let positions: Vec<f64> = (0..window.len()).map(|i| i as f64).collect();
    let slope = crate::regression::line(&positions, window, None).map_or(0.0, |line| line.slope);
    let rise = (slope * (window.len() as f64 - 1.0)).abs();
    ((largest - smallest) / mean, rise / mean)
}

/// How many leading observations are warm-up: a multiple of 5, at most half of them. The cut is the
/// one that makes the standard error of what remains smallest, over averages of five. 0 where there
/// are fewer than 20 observations, too few to tell.
pub fn mser5(observations: &[f64]) -> usize {
    const BATCH: usize = 5;
    if observations.len() < 4 * BATCH {
        return 0;
    }
    let batches: Vec<f64> = observations
        .chunks_exact(BATCH)
        .map(|batch| batch.iter().sum::<f64>() / BATCH as f64)
        .collect();
    // Suffix sums about the overall mean, so that large values lose no digits.
    let centre = batches.iter().sum::<f64>() / batches.len() as f64;
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (cut, value) in batches.iter().enumerate().rev() {
        sum += value - centre;
        squares += (value - centre).powi(2);
        let kept = (batches.len() - cut) as f64;
        let score = (squares - sum * sum / kept).max(0.0) / (kept * kept);
        if cut <= batches.len() / 2 && score <= best.0 {
            best = (score, cut);
        }
    }
    best.1 * BATCH
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;

    #[track_caller]
    fn check(rounds: &[f64], steady: bool, first: Option<usize>, range: f64, slope: f64) {
        let found = assess(rounds);
        assert_eq!((found.steady, found.first_steady_round), (steady, first), "{rounds:?}");
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(found.range_share, range) && near(found.slope_share, slope), "{found:?}");
    }

    #[test]
    fn both_rules() {
        check(&[100.0; 5], true, Some(4), 0.0, 0.0);
        check(&[100.0; 4], false, None, 0.0, 0.0);
        check(&[], false, None, 1.0, 1.0);
        check(&[0.0; 5], false, None, 1.0, 1.0);
        // Range 24 % and no slope; slope 10.8 % within a range of 12 %; both just inside.
        check(&[88.0, 112.0, 100.0, 112.0, 88.0], false, None, 0.24, 0.0);
        check(&[94.0, 97.0, 100.0, 103.0, 106.0], false, None, 0.12, 0.12);
        check(&[95.0, 97.5, 100.0, 102.5, 105.0], true, Some(4), 0.10, 0.10);
        check(&[90.0, 110.0, 100.0, 110.0, 90.0], true, Some(4), 0.20, 0.0);
    }

    #[test]
    fn a_steady_past_does_not_make_a_steady_present() {
        let mut rounds = vec![100.0; 6];
        rounds.extend([50.0, 40.0]);
        let found = assess(&rounds);
        assert!(!found.steady && found.first_steady_round == Some(4));
    }

    fn noisy(value: f64, rng: &mut Rng) -> f64 {
        // Sum of three uniforms: standard deviation 0.5; scaled to 3 % of the value.
        let noise = rng.unit() + rng.unit() + rng.unit() - 1.5;
        value * (1.0 + 0.06 * noise)
    }

    /// A device that slows by 6 % of its first rate per round, seen through 3 % noise, must hardly
    /// ever pass for steady while it drifts; and must pass soon after the drift ended.
    #[test]
    fn drift_is_rarely_called_steady_and_its_end_is_seen() {
        let runs = 1000;
        let (mut false_steady, mut late) = (0, 0);
        for seed in 0..runs {
            let mut rng = Rng::new(seed);
            let drift_end = 12;
            let rounds: Vec<f64> = (0..30)
                .map(|round: u32| noisy(1.0 - 0.06 * f64::from(round.min(drift_end)), &mut rng))
                .collect();
            let drifting = assess(&rounds[..=drift_end as usize]);
            false_steady += u32::from(drifting.first_steady_round.is_some());
            let first = rounds[drift_end as usize..].windows(WINDOW).position(|w| assess(w).steady);
            late += u32::from(first.is_none_or(|first| first > 2 * WINDOW));
        }
        assert!(false_steady <= runs as u32 / 20, "false steady in {false_steady} of {runs}");
        assert!(late <= runs as u32 / 20, "late in {late} of {runs}");
    }

    #[test]
    fn mser5_cuts_the_warm_up_and_nothing_else() {
        let mut rng = Rng::new(1);
        let warm: Vec<f64> =
            (0..300).map(|i| noisy(if i < 40 { 300.0 } else { 100.0 }, &mut rng)).collect();
        assert_eq!(mser5(&warm[..300]), 40);
        let flat: Vec<f64> = (0..300).map(|_| noisy(100.0, &mut rng)).collect();
        assert!(mser5(&flat) <= 60, "cut {}", mser5(&flat));
        assert_eq!(mser5(&[5.0; 100]), 0);
        assert_eq!(mser5(&[9.0, 1.0, 1.0]), 0);
    }

    /// MSER as White wrote it: of the kept averages, the squared distances to their own mean over
    /// the square of their number.
    fn mser5_by_definition(observations: &[f64]) -> f64 {
        let batches: Vec<f64> =
            observations.chunks_exact(5).map(|batch| batch.iter().sum::<f64>() / 5.0).collect();
        let score = |cut: usize| {
            let kept = &batches[cut..];
            let mean = kept.iter().sum::<f64>() / kept.len() as f64;
            let squares: f64 = kept.iter().map(|value| (value - mean).powi(2)).sum();
            squares / (kept.len() as f64).powi(2)
        };
        let chosen = score(mser5(observations) / 5);
        let best = (0..=batches.len() / 2).map(score).fold(f64::INFINITY, f64::min);
        chosen - best
    }

    proptest! {
        #[test]
        fn mser5_is_the_best_cut(
            level in 0.0f64..1e6,
            decay in 1.0f64..100.0,
            noise in prop::collection::vec(-10.0f64..10.0, 20..200),
        ) {
            let observations: Vec<f64> = noise
                .iter()
                .enumerate()
                .map(|(index, noise)| level + noise + 100.0 * (-(index as f64) / decay).exp())
                .collect();
            let excess = mser5_by_definition(&observations);
            prop_assert!(excess.abs() < 1e-6, "{excess} above the smallest score");
        }
    }
}
