//! Which kind a terminal asks for, and with which numbers.
//!
//! Kinds are drawn independently with the weights of the phase that the run is in; phases follow
//! each other from the start of the measurement and begin anew after the last. The rate of an open
//! loop is scaled by the phase: arrivals are a Poisson process whose rate changes, made by
//! inverting its integral.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use stats::rng::{Rng, at};

use super::program::NUMBERS_MAX;
use super::{Body, Own, OwnRequest, Phase};
use crate::Error;
use crate::workload::Kind;
use crate::workload::input::{Input, Request};

/// What a run of an own workload draws from.
#[derive(Clone, Debug)]
pub struct OwnInputs {
    own: Own,
    seed: u64,
    /// The next number of each sequence.
    next: Arc<Vec<AtomicI64>>,
    /// When the first phase begins, ns since the start of the run.
    phases_from_ns: u64,
}

impl OwnInputs {
    /// The inputs of a run with this seed.
    pub fn new(own: Own, seed: u64) -> Self {
        let sequences = own.body().map_or(&[][..], |body| &body.sequences[..]);
        let next = sequences.iter().map(|sequence| AtomicI64::new(sequence.start)).collect();
        Self { own, seed, next: Arc::new(next), phases_from_ns: 0 }
    }

    /// The workload.
    pub fn own(&self) -> Own {
        self.own
    }

    /// Lets the phases begin at a time, ns since the start of the run.
    pub fn begin_phases(&mut self, from_ns: u64) {
        self.phases_from_ns = from_ns;
    }

    /// Lets sequences go on behind what the data hold; `ask` answers a query.
    ///
    /// # Errors
    /// Those of `ask`.
    pub fn go_on(
        &self,
        ask: &mut dyn FnMut(&str) -> Result<Option<i64>, Error>,
    ) -> Result<(), Error> {
        for (sequence, next) in self.own.body()?.sequences.iter().zip(&*self.next) {
            if let Some(sql) = &sequence.from {
                let found = ask(sql)?.unwrap_or(sequence.start);
                next.store(found.max(sequence.start), Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn body(&self) -> &'static Body {
        self.own.whole()
    }

    /// The phase of a time, and how far into it that is, ns.
    fn phase(&self, now_ns: u64) -> Option<(&'static Phase, u64)> {
        let phases = &self.body().phases;
        let all: u64 = phases.iter().map(|phase| phase.length_ns).sum();
        if all == 0 {
            return None;
        }
        let mut left = now_ns.saturating_sub(self.phases_from_ns) % all;
        let found = phases.iter().find(|phase| {
            let inside = left < phase.length_ns;
            if !inside {
                left -= phase.length_ns;
            }
            inside
        });
        found.map(|phase| (phase, left))
    }

    /// Which transaction a terminal asks for at a time, and random numbers for its waits.
    pub(in crate::workload) fn kind(
        &self,
        terminal: u32,
        sequence: u64,
        now_ns: u64,
    ) -> (Kind, Rng) {
        let mut rng = Rng::new(at(at(self.seed, u64::from(terminal)), sequence * 2));
        let weights = self.phase(now_ns).map_or(&self.body().weights, |(phase, _)| &phase.weights);
        (self.own.kinds()[pick(weights, rng.unit())], rng)
    }

    /// The request of that transaction.
    pub(in crate::workload) fn draw(&self, terminal: u32, sequence: u64, kind: Kind) -> Input {
        let code = kind.code();
        let mut numbers = [0; NUMBERS_MAX];
        for (number, wanted) in numbers.iter_mut().zip(&self.body().programs[code].numbers) {
            let next = &self.next[wanted.sequence];
            *number = if wanted.takes {
                next.fetch_add(1, Ordering::Relaxed)
            } else {
                next.load(Ordering::Relaxed) - 1
            };
        }
        let seed = at(at(self.seed, u64::from(terminal)), sequence * 2 + 1);
        let (own, kind) = (self.own, code as u8);
        Input {
            warehouse: 0,
            request: Request::Own(OwnRequest { own, kind, terminal, seed, numbers }),
        }
    }

    /// The share of a kind, where it does not change over time.
    pub fn share(&self, kind: Kind) -> Option<f64> {
        let body = self.body();
        let weights = &body.weights;
        let steady = body.phases.iter().all(|phase| phase.weights == *weights);
        steady.then(|| weights[kind.code()] / weights.iter().sum::<f64>())
    }

    /// When the arrival after one at `due_ns` is due, which is `gap` mean gaps of the base rate
    /// (per second) away where the rate is the base rate.
    pub(in crate::workload) fn next_arrival(&self, due_ns: u64, gap: f64, per_s: f64) -> u64 {
        let mean_ns = 1e9 / per_s;
        let mut at_ns = due_ns;
        // The integral of the factor that is left, ns.
        let mut left = gap * mean_ns;
        let mut idle = 0;
        loop {
            let Some((phase, into)) = self.phase(at_ns) else { return at_ns + left as u64 };
            let warming = at_ns < self.phases_from_ns;
            let length = phase.length_ns as f64;
            let slope = (phase.rate.1 - phase.rate.0) / length;
            let (now, rest, slope) = if warming {
                (phase.rate.0, (self.phases_from_ns - at_ns) as f64, 0.0)
            } else {
                (phase.rate.0 + slope * into as f64, (phase.length_ns - into) as f64, slope)
            };
            let whole = now * rest + slope * rest * rest / 2.0;
            if whole > left {
                return at_ns + solve(now, slope, left).clamp(0.0, rest) as u64;
            }
            left -= whole;
            at_ns += rest as u64;
            idle = if whole > 0.0 { 0 } else { idle + 1 };
            assert!(idle <= self.body().phases.len() + 1, "phases in which nothing arrives");
        }
    }
}

/// Where `now x + slope x^2 / 2` is `area`.
fn solve(now: f64, slope: f64, area: f64) -> f64 {
    if slope.abs() < 1e-18 {
        return area / now;
    }
    let root = (now * now + 2.0 * slope * area).max(0.0).sqrt();
    // The form without cancellation.
    2.0 * area / (now + root)
}

/// The index that a number uniform in `[0, 1)` stands for.
fn pick(weights: &[f64], unit: f64) -> usize {
    let mut left = unit * weights.iter().sum::<f64>();
    let mut picked = 0;
    for (at, weight) in weights.iter().enumerate() {
        if *weight > 0.0 {
            picked = at;
            if left < *weight {
                break;
            }
            left -= weight;
        }
    }
    picked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_follow_the_weights() {
        assert_eq!(pick(&[0.0, 1.0, 3.0], 0.0), 1);
        assert_eq!(pick(&[0.0, 1.0, 3.0], 0.2499), 1);
        assert_eq!(pick(&[0.0, 1.0, 3.0], 0.25), 2);
        assert_eq!(pick(&[1.0, 0.0], 0.999_999_999_999), 0);
    }

    #[test]
    fn areas_are_inverted() {
        for (now, slope, x) in [(2.0, 0.0, 3.0), (0.0, 0.5, 4.0), (3.0, -0.5, 2.0)] {
            let area = now * x + slope * x * x / 2.0;
            assert!((solve(now, slope, area) - x).abs() < 1e-9, "{now} {slope}");
        }
    }
}
