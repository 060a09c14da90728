//! How far a predicted throughput and response time may be off.
//!
//! What is in doubt is moved to the ends of its 90 % interval, one after the other, and the same
//! draws are simulated anew: processor time and host path ([`HostFactors::ENDS`]), every value of
//! the devices that states a standard error, every one that is assumed. Each moves the logarithm of
//! the figure; they are independent, so what they move it by, up and down apart, adds up as
//! squares.
//!
//! How long the capture was and the draws themselves leave a part open, too: parts of the captured
//! transactions are simulated apart, and the standard error of their mean counts. So does what the
//! captured run itself comes out off by.
//!
//! The model itself is as far off as its validation says (E of the profile, for the share of a
//! response that its device takes). Where nobody validated it, [`UNVALIDATED`] stands in its place,
//! unless its values were fitted and state their errors.
//!
//! Tested on devices of hidden numbers, in `tests/it/advice`.

use advise::Interval;
use model::Device;
use predict::{HostFactors, Learned, Prediction, Question, Sketch, sketch, sketch_parts};
use profile::Profile;

use super::offers::Kind;
use crate::Error;
use crate::assumed;

/// Drives that were checked against published figures that they were not made from were off by 10
/// to 19 % in the median.
pub const UNVALIDATED: f64 = 0.15;

/// Parts of the captured transactions, and how far the mean of this many lies from the truth in
/// 90 % of all cases, in its standard errors (Student's t of five degrees of freedom).
const PARTS: usize = 6;
const OF_PARTS: f64 = 2.015;

/// Data and, where it lies apart, log.
pub type Placed<'a> = (&'a Profile, Option<&'a Profile>);

/// A prediction's figures between their ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Doubted {
    /// Transactions per minute.
    pub per_min: Interval,
    /// Of the kind asked for, ms; none where it was not seen.
    pub p99_ms: Option<Interval>,
}

/// Sums of squares of what moves a logarithm down and up.
#[derive(Clone, Copy, Debug, Default)]
struct Moves {
    down: f64,
    up: f64,
}

impl Moves {
    /// One doubt, as the figure at both of its ends.
    fn add(&mut self, base: f64, ends: [Option<f64>; 2]) {
        let logs =
            ends.map(|end| end.filter(|end| *end > 0.0).map_or(0.0, |end| (end / base).ln()));
        self.down += logs[0].min(logs[1]).min(0.0).powi(2);
        self.up += logs[0].max(logs[1]).max(0.0).powi(2);
    }

    fn add_both(&mut self, logarithm: f64) {
        self.down += logarithm.powi(2);
        self.up += logarithm.powi(2);
    }

    /// Of the same figure in each part of a capture.
    fn add_parts(&mut self, parts: &[f64]) {
        let logs: Vec<f64> = parts.iter().filter(|own| **own > 0.0).map(|own| own.ln()).collect();
        let count = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|own| (own - mean).powi(2)).sum();
        if logs.len() > 1 {
            self.add_both(OF_PARTS * (squares / (count - 1.0) / count).sqrt());
        }
    }

    fn around(self, value: f64) -> Interval {
        Interval::new(value, value * (-self.down.sqrt()).exp(), value * self.up.sqrt().exp())
    }
}

/// The response time of a kind, the first where none is named.
fn p99_of(sketch: &Sketch, kind: &Kind) -> Option<f64> {
    let mut all = sketch.response_ns_p99.iter();
    let own = match kind {
        None => all.next(),
        Some(kind) => all.find(|(name, _)| name == kind),
    };
    own.map(|(_, ns)| *ns as f64)
}

/// The devices of a placement.
pub fn devices((data, log): Placed<'_>, seed: u64) -> Vec<Box<dyn Device>> {
    let apart = log.map(|log| model::device(log, seed.wrapping_add(1)));
    std::iter::once(model::device(data, seed)).chain(apart).collect()
}

/// The interval of a prediction for a placement.
///
/// # Errors
/// Where the learned system cannot be simulated.
pub fn doubted(
    learned: &Learned,
    question: &Question,
    placed: Placed<'_>,
    kind: &Kind,
    answer: &Prediction,
) -> Result<Doubted, Error> {
    let at = |host: HostFactors, placed: Placed<'_>| -> Result<Sketch, Error> {
        Ok(sketch(learned, question, host, &|| devices(placed, question.seed))?)
    };
    let base = at(HostFactors::LEARNED, placed)?;
    let (mut rate, mut p99) = (Moves::default(), Moves::default());
    let mut add = |ends: [Option<Sketch>; 2]| {
        rate.add(base.per_s, ends.each_ref().map(|end| end.as_ref().map(|end| end.per_s)));
        if let Some(own) = p99_of(&base, kind) {
            p99.add(own, ends.each_ref().map(|end| p99_of(end.as_ref()?, kind)));
        }
    };
    let [slow, fast] = HostFactors::ENDS;
    add([Some(at(slow, placed)?), Some(at(fast, placed)?)]);
    let (data, log) = placed;
    for (profile, is_log) in [(Some(data), false), (log, true)] {
        let Some(profile) = profile else { continue };
        for texts in assumed::doubtful(&profile.to_toml()) {
            let [low, high] = texts.map(|text| {
                // A variant that is no profile tells nothing.
                let moved = Profile::from_toml(&text, profile.name()).ok()?;
                let placed = if is_log { (data, Some(&moved)) } else { (&moved, log) };
                Some(at(HostFactors::LEARNED, placed))
            });
            add([low.transpose()?, high.transpose()?]);
        }
    }
    let parts = sketch_parts(learned, question, PARTS, &|| devices(placed, question.seed))?;
    rate.add_parts(&parts.iter().map(|part| part.per_s).collect::<Vec<f64>>());
    p99.add_parts(&parts.iter().filter_map(|part| p99_of(part, kind)).collect::<Vec<f64>>());
    let of_source = learned.calibrated_to.filter(|ratio| *ratio > 0.0).map_or(0.0, f64::ln);
    let of_model = model_doubt(placed, answer).hypot(of_source);
    rate.add_both(of_model);
    p99.add_both(of_model);
    let response = answer.kinds.iter().find(|own| kind.as_ref().is_none_or(|k| *k == own.kind));
    Ok(Doubted {
        per_min: rate.around(answer.per_min),
        p99_ms: response.map(|own| p99.around(own.response_ns_p99 as f64 / 1e6)),
    })
}

/// What the models of the devices may be off by beyond their values, as a logarithm.
fn model_doubt((data, log): Placed<'_>, answer: &Prediction) -> f64 {
    let share = |of: &[&str]| -> f64 {
        let own = answer.limits.iter().filter(|limit| of.contains(&limit.what.as_str()));
        own.map(|limit| limit.share).sum()
    };
    let of = |profile: &Profile, share: f64| share * error_of(profile).ln_1p();
    match log {
        None => of(data, share(&["data reads", "writes", "log flush"])),
        Some(log) => {
            of(data, share(&["data reads", "writes"])).hypot(of(log, share(&["log flush"])))
        }
    }
}

/// E of the profile where it was validated; what stands in its place where it was not.
fn error_of(profile: &Profile) -> f64 {
    match &profile.validation {
        Some(validation) => validation.error_ratio,
        None if states_errors(profile) => 0.0,
        None => UNVALIDATED,
    }
}

fn states_errors(profile: &Profile) -> bool {
    profile.to_toml().lines().any(|line| line.contains("error = "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn independent_doubts_add_up_as_squares_and_by_their_side() {
        let mut moves = Moves::default();
        // One that moves by 3 down and 4 up, one by 4 down and nothing up, in hundredths.
        moves.add(1.0, [Some((-0.03f64).exp()), Some(0.04f64.exp())]);
        moves.add(1.0, [Some((-0.04f64).exp()), None]);
        let interval = moves.around(100.0);
        assert!((interval.low - 100.0 * (-0.05f64).exp()).abs() < 1e-9, "{interval:?}");
        assert!((interval.high - 100.0 * 0.04f64.exp()).abs() < 1e-9, "{interval:?}");
        // Both ends on one side: the farther one counts, once.
        let mut moves = Moves::default();
        moves.add(1.0, [Some(0.02f64.exp()), Some(0.05f64.exp())]);
        let interval = moves.around(100.0);
        assert!((interval.low, interval.high) == (100.0, 100.0 * 0.05f64.exp()), "{interval:?}");
    }

    #[test]
    fn parts_that_differ_leave_a_standard_error_open() {
        let mut moves = Moves::default();
        moves.add_parts(&[100.0; 6]);
        assert!(moves.around(1.0).high - 1.0 < 1e-9);
        // A spread of 0.1: 0.1 / sqrt(2) of two.
        moves.add_parts(&[1.0, (0.1 * 2f64.sqrt()).exp()]);
        let expected = (OF_PARTS * 0.1 / 2f64.sqrt()).exp();
        assert!((moves.around(1.0).high - expected).abs() < 1e-9);
    }
}
