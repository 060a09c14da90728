//! When requests arrive.
//!
//! Fixed rate; Poisson; on-off, a Markov-modulated Poisson process of two states (Fischer and
//! Meier-Hellstern, "The Markov-modulated Poisson process cookbook", 1993); superposed sources with
//! Pareto on and off times, whose sum is self-similar with H = (3 - alpha) / 2 (Willinger, Taqqu,
//! Sherman and Wilson, "Self-similarity through high-variability", SIGCOMM 1995); the b-model, a
//! multiplicative cascade (Wang, Madhyastha, Chan, Papadimitriou and Faloutsos, "Data mining meets
//! performance evaluation: fast algorithms for modeling bursty traffic", ICDE 2002); and bursts
//! with pauses (the pause and bursts micro-benchmarks of uFLIP).
//!
//! Invariants: exactly as many times as asked for, never falling. Tested against the closed forms
//! of rate and dispersion.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};
use stats::rng::Rng;

use super::invalid::{Invalid, positive, share};

/// When requests arrive. Rates are requests per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrivals {
    /// Evenly spaced.
    Fixed {
        /// Rate.
        rate_per_s: f64,
    },
    /// Exponential gaps.
    Poisson {
        /// Mean rate.
        rate_per_s: f64,
    },
    /// Two states of exponential length, Poisson in each.
    OnOff {
        /// Rate in the on state.
        rate_on_per_s: f64,
        /// Rate in the off state; may be 0.
        rate_off_per_s: f64,
        /// Mean length of the on state, s.
        mean_on_s: f64,
        /// Mean length of the off state, s.
        mean_off_s: f64,
    },
    /// Superposed sources, each evenly spaced while on; on and off times are Pareto.
    ParetoOnOff {
        /// Sources, 1 to 4096.
        sources: u32,
        /// Rate of one source while on.
        rate_on_per_s: f64,
        /// Mean on time, s.
        mean_on_s: f64,
        /// Mean off time, s.
        mean_off_s: f64,
        /// Tail index of both, above 1; below 2 the sum is self-similar.
        alpha: f64,
    },
    /// Cascade: every interval gives the share `bias` of its requests to one of its halves.
    Cascade {
        /// Mean rate.
        rate_per_s: f64,
        /// 0.5 spreads evenly; near 1 everything is one burst.
        bias: f64,
    },
    /// Bursts of evenly spaced requests with a pause after each.
    Bursts {
        /// Rate within a burst.
        rate_per_s: f64,
        /// Requests per burst.
        burst: u32,
        /// Pause, ms, on top of the gap.
        pause_ms: f64,
    },
}

impl Arrivals {
    /// Refuses figures that make no process.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        match *self {
            Self::Fixed { rate_per_s } | Self::Poisson { rate_per_s } => {
                positive("rate_per_s", rate_per_s)
            }
            Self::OnOff { rate_on_per_s, rate_off_per_s, mean_on_s, mean_off_s } => {
                positive("rate_on_per_s", rate_on_per_s)?;
                positive("mean_on_s", mean_on_s)?;
                positive("mean_off_s", mean_off_s)?;
                positive("rate_off_per_s + 1", rate_off_per_s + 1.0)?;
                share("rate_off_per_s / rate_on_per_s", rate_off_per_s / rate_on_per_s)
            }
            Self::ParetoOnOff { sources, rate_on_per_s, mean_on_s, mean_off_s, alpha } => {
                positive("rate_on_per_s", rate_on_per_s)?;
                positive("mean_on_s", mean_on_s)?;
                positive("mean_off_s", mean_off_s)?;
                positive("alpha - 1", alpha - 1.0)?;
                if (1..=4096).contains(&sources) {
                    return Ok(());
                }
                Err(Invalid::new("sources", "must be 1 to 4096"))
            }
            Self::Cascade { rate_per_s, bias } => {
                positive("rate_per_s", rate_per_s)?;
                share("bias", bias)
            }
            Self::Bursts { rate_per_s, burst, pause_ms } => {
                positive("rate_per_s", rate_per_s)?;
                positive("burst", f64::from(burst))?;
                positive("pause_ms + 1", pause_ms + 1.0)
            }
        }
    }

    /// Appends `count` times from `start_ns` on and returns when the next phase may begin.
    pub(super) fn times(
        &self,
        rng: &mut Rng,
        start_ns: f64,
        count: u64,
        due: &mut Vec<u64>,
    ) -> f64 {
        match *self {
            Self::Fixed { rate_per_s } => {
                let gap = 1e9 / rate_per_s;
                due.extend((0..count).map(|index| (start_ns + index as f64 * gap) as u64));
                start_ns + count as f64 * gap
            }
            Self::Poisson { rate_per_s } => {
                let mean = 1e9 / rate_per_s;
                paced(start_ns, count, due, |_| rng.exponential(mean))
            }
            Self::OnOff { rate_on_per_s, rate_off_per_s, mean_on_s, mean_off_s } => {
                let rates = [rate_on_per_s / 1e9, rate_off_per_s / 1e9];
                let lengths = [mean_on_s * 1e9, mean_off_s * 1e9];
                let mut modulated = Modulated { rates, lengths, state: 0, left_ns: 0.0 };
                modulated.left_ns = rng.exponential(lengths[0]);
                paced(start_ns, count, due, |_| modulated.gap(rng))
            }
            Self::ParetoOnOff { sources, rate_on_per_s, mean_on_s, mean_off_s, alpha } => {
                let on_off = ParetoOnOff {
                    gap_ns: 1e9 / rate_on_per_s,
                    // The mean of a Pareto variable is alpha / (alpha - 1) times its least value.
                    least_on_ns: mean_on_s * 1e9 * (alpha - 1.0) / alpha,
                    least_off_ns: mean_off_s * 1e9 * (alpha - 1.0) / alpha,
                    on_share: mean_on_s / (mean_on_s + mean_off_s),
                    alpha,
                };
                on_off.times(rng, sources, start_ns, count, due)
            }
            Self::Cascade { rate_per_s, bias } => {
                let span = count as f64 * 1e9 / rate_per_s;
                cascade(rng, start_ns, span, count, bias, due);
                start_ns + span
            }
            Self::Bursts { rate_per_s, burst, pause_ms } => {
                let (gap, pause) = (1e9 / rate_per_s, pause_ms * 1e6);
                let burst = u64::from(burst.max(1));
                paced(start_ns, count, due, |index| {
                    if (index + 1) % burst == 0 { gap + pause } else { gap }
                })
            }
        }
    }
}

/// Times from the gaps that follow them.
fn paced(start_ns: f64, count: u64, due: &mut Vec<u64>, mut gap_ns: impl FnMut(u64) -> f64) -> f64 {
    let mut now = start_ns;
    due.extend((0..count).map(|index| {
        let at = now as u64;
        now += gap_ns(index);
        at
    }));
    now
}

/// A Markov-modulated Poisson process of two states.
struct Modulated {
    /// Arrivals per ns.
    rates: [f64; 2],
    /// Mean length, ns.
    lengths: [f64; 2],
    state: usize,
    left_ns: f64,
}

impl Modulated {
    fn gap(&mut self, rng: &mut Rng) -> f64 {
        let mut waited = 0.0;
        loop {
            // The exponential forgets: a new draw after a change of state is no other process.
            let gap = match self.rates[self.state] {
                0.0 => f64::INFINITY,
                rate => rng.exponential(1.0 / rate),
            };
            if gap <= self.left_ns {
                self.left_ns -= gap;
                return waited + gap;
            }
            waited += self.left_ns;
            self.state = 1 - self.state;
            self.left_ns = rng.exponential(self.lengths[self.state]);
        }
    }
}

struct ParetoOnOff {
    gap_ns: f64,
    least_on_ns: f64,
    least_off_ns: f64,
    on_share: f64,
    alpha: f64,
}

impl ParetoOnOff {
    fn pareto(&self, rng: &mut Rng, least: f64) -> f64 {
        // A ten-millionth of a tail beyond any trace is cut, so that one draw cannot end the world.
        least * (1.0 - rng.unit()).max(1e-12).powf(-1.0 / self.alpha)
    }

    fn times(
        &self,
        rng: &mut Rng,
        sources: u32,
        start_ns: f64,
        count: u64,
        due: &mut Vec<u64>,
    ) -> f64 {
        // Per source: its next request and how long it stays on after that.
        let mut left = Vec::with_capacity(sources as usize);
        let mut next = BinaryHeap::with_capacity(sources as usize);
        for source in 0..sources {
            let on = rng.unit() < self.on_share;
            // Somewhere in the middle of a period, so that the sources do not start in step.
            let wait = if on { 0.0 } else { self.pareto(rng, self.least_off_ns) * rng.unit() };
            left.push(self.pareto(rng, self.least_on_ns) * rng.unit());
            next.push(Reverse(((start_ns + wait + self.gap_ns * rng.unit()) as u64, source)));
        }
        let mut last = start_ns as u64;
        for _ in 0..count {
            let Some(mut top) = next.peek_mut() else { break };
            let Reverse((at, source)) = *top;
            let left = &mut left[source as usize];
            let mut wait = self.gap_ns;
            *left -= self.gap_ns;
            if *left < 0.0 {
                wait += self.pareto(rng, self.least_off_ns);
                *left = self.pareto(rng, self.least_on_ns);
            }
            *top = Reverse(((at as f64 + wait) as u64, source));
            due.push(at);
            last = at;
        }
        last as f64 + self.gap_ns
    }
}

/// Halvings at most: 2^40 intervals are finer than a nanosecond for spans below 18 minutes, and
/// finer than a microsecond for any that a disk is asked to bear.
const CASCADE_LEVELS: u32 = 40;

/// Splits the requests over the halves of the interval until one is left; depth first, so that the
/// times come out in order.
fn cascade(rng: &mut Rng, start: f64, span: f64, count: u64, bias: f64, due: &mut Vec<u64>) {
    let mut intervals = vec![(start, span, count, 0)];
    while let Some((start, span, count, level)) = intervals.pop() {
        if count <= 1 || level == CASCADE_LEVELS {
            due.extend((0..count).map(|_| (start + span / 2.0) as u64));
            continue;
        }
        let share = if rng.next_u64() >> 63 == 0 { bias } else { 1.0 - bias };
        // Rounded at random, so that small counts keep the shares in the mean.
        let first = ((count as f64 * share + rng.unit()) as u64).min(count);
        let half = span / 2.0;
        intervals.push((start + half, half, count - first, level + 1));
        intervals.push((start, half, first, level + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn times(arrivals: &Arrivals, count: u64) -> Vec<u64> {
        arrivals.check().expect("sound");
        let mut due = Vec::new();
        let end = arrivals.times(&mut Rng::new(5), 1e9, count, &mut due);
        assert_eq!(due.len() as u64, count);
        assert!(
            due.is_sorted() && due[0] >= 1_000_000_000 && end >= *due.last().expect("some") as f64
        );
        due
    }

    /// Mean rate, and the variance over the mean of the counts in windows of that length.
    fn rate_and_dispersion(due: &[u64], window_s: f64) -> (f64, f64) {
        let span = (due[due.len() - 1] - due[0]) as f64 / 1e9;
        let mut counts = vec![0.0; (span / window_s) as usize];
        for at in due {
            let window = ((at - due[0]) as f64 / 1e9 / window_s) as usize;
            if let Some(count) = counts.get_mut(window) {
                *count += 1.0;
            }
        }
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let variance = counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>()
            / counts.len() as f64;
        (due.len() as f64 / span, variance / mean)
    }

    #[test]
    fn fixed_and_bursts_are_exact() {
        let due = times(&Arrivals::Fixed { rate_per_s: 1000.0 }, 4);
        assert_eq!(due, [1_000_000_000, 1_001_000_000, 1_002_000_000, 1_003_000_000]);
        let bursts = Arrivals::Bursts { rate_per_s: 1000.0, burst: 2, pause_ms: 10.0 };
        assert_eq!(times(&bursts, 4), [1_000_000_000, 1_001_000_000, 1_012_000_000, 1_013_000_000]);
    }

    #[test]
    fn poisson_counts_have_dispersion_one() {
        let (rate, dispersion) =
            rate_and_dispersion(&times(&Arrivals::Poisson { rate_per_s: 2000.0 }, 400_000), 0.1);
        assert!(
            (rate / 2000.0 - 1.0).abs() < 0.01 && (dispersion - 1.0).abs() < 0.1,
            "{dispersion}"
        );
    }

    /// Windows much longer than the states: the index of dispersion of an MMPP-2 tends to
    /// 1 + 2 (r1 - r2)^2 s1 s2 / ((s1 + s2)^2 (r1 s2 + r2 s1)), s the rates of leaving a state.
    #[test]
    fn on_off_has_its_closed_form_dispersion() {
        let on_off = Arrivals::OnOff {
            rate_on_per_s: 5000.0,
            rate_off_per_s: 500.0,
            mean_on_s: 0.02,
            mean_off_s: 0.06,
        };
        let (rate, dispersion) = rate_and_dispersion(&times(&on_off, 3_000_000), 2.0);
        assert!((rate / 1625.0 - 1.0).abs() < 0.02, "rate {rate}");
        let (s1, s2) = (50.0, 1.0 / 0.06);
        let sum = s1 + s2;
        let expected =
            1.0 + 2.0 * 4500.0f64.powi(2) * s1 * s2 / (sum * sum * (5000.0 * s2 + 500.0 * s1));
        assert!((dispersion / expected - 1.0).abs() < 0.2, "{dispersion} against {expected}");
    }

    /// Self-similar counts: the variance of means over m windows falls as m^(2H - 2), much slower
    /// than 1 / m; for Poisson H is 0.5.
    fn hurst(due: &[u64]) -> f64 {
        let (_, short) = rate_and_dispersion(due, 0.1);
        let (_, long) = rate_and_dispersion(due, 10.0);
        // Dispersion of counts grows as m^(2H - 1).
        ((long / short).ln() / 100f64.ln()).mul_add(0.5, 0.5)
    }

    #[test]
    fn superposed_pareto_sources_are_self_similar() {
        let sources = Arrivals::ParetoOnOff {
            sources: 50,
            rate_on_per_s: 200.0,
            mean_on_s: 0.2,
            mean_off_s: 0.6,
            alpha: 1.4,
        };
        let due = times(&sources, 4_000_000);
        let (rate, _) = rate_and_dispersion(&due, 1.0);
        assert!((rate / 2500.0 - 1.0).abs() < 0.1, "rate {rate}");
        // H = (3 - 1.4) / 2 = 0.8 in the limit; the variance estimate is biased down.
        let found = hurst(&due);
        assert!((0.7..0.9).contains(&found), "H {found}");
        let poisson = hurst(&times(&Arrivals::Poisson { rate_per_s: 2500.0 }, 2_000_000));
        assert!((0.4..0.6).contains(&poisson), "H of Poisson {poisson}");
    }

    /// The energy of a b-model per halving is b^2 + (1 - b)^2, so its counts over 2^-k of the span
    /// have a second moment of (b^2 + (1 - b)^2)^k n^2.
    #[test]
    fn the_cascade_has_its_second_moment() {
        let cascade = Arrivals::Cascade { rate_per_s: 1000.0, bias: 0.7 };
        let due = times(&cascade, 1 << 20);
        let width = 1e9 * (1u64 << 20) as f64 / 1000.0 / 256.0;
        let mut counts = [0.0f64; 256];
        for at in &due {
            counts[((at - 1_000_000_000) as f64 / width) as usize] += 1.0;
        }
        let found = counts.iter().map(|c| c * c).sum::<f64>() / ((1u64 << 40) as f64);
        let expected = (0.7f64 * 0.7 + 0.3 * 0.3).powi(8);
        assert!((found / expected - 1.0).abs() < 0.01, "{found} against {expected}");
    }

    #[test]
    fn figures_that_make_no_process_are_refused() {
        let refused = |arrivals: Arrivals| arrivals.check().expect_err("refused").to_string();
        assert!(refused(Arrivals::Fixed { rate_per_s: 0.0 }).contains("rate_per_s"));
        assert!(refused(Arrivals::Poisson { rate_per_s: f64::NAN }).contains("rate_per_s"));
        assert!(refused(Arrivals::Cascade { rate_per_s: 1.0, bias: 1.5 }).contains("bias"));
        let pareto = |sources, alpha| Arrivals::ParetoOnOff {
            sources,
            rate_on_per_s: 1.0,
            mean_on_s: 1.0,
            mean_off_s: 1.0,
            alpha,
        };
        assert!(refused(pareto(0, 1.5)).contains("sources"));
        assert!(refused(pareto(1, 1.0)).contains("alpha"));
        let bursts = Arrivals::Bursts { rate_per_s: 1.0, burst: 0, pause_ms: 1.0 };
        assert!(refused(bursts).contains("burst"));
    }

    proptest! {
        #[test]
        fn always_the_asked_count_in_order(
            bias in 0.0f64..=1.0, count in 1u64..2000, seed in any::<u64>(),
        ) {
            for arrivals in [
                Arrivals::Cascade { rate_per_s: 1e4, bias },
                Arrivals::OnOff {
                    rate_on_per_s: 1e4,
                    rate_off_per_s: 0.0,
                    mean_on_s: 1e-3,
                    mean_off_s: bias + 1e-6,
                },
            ] {
                let mut due = Vec::new();
                arrivals.times(&mut Rng::new(seed), 0.0, count, &mut due);
                prop_assert_eq!(due.len() as u64, count);
                prop_assert!(due.is_sorted());
            }
        }
    }
}
