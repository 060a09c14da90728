//! From simulations to advice: what another device would make of the load, between which bounds,
//! and whether the run allows to say so.
//!
//! A prediction is `measured here x simulated there / simulated here`: what the simulation gets
//! wrong on this disk in the same way as on the other one cancels. Its interval is that of
//! [`advise::doubt`]: the bias here, E weighted by the time waited (how far the simulated times of
//! the requests that the load waits for are from the real ones), and the sweep of the assumed
//! values of the other device ([`crate::assumed`]).

use advise::doubt::Doubt;
use serde::{Deserialize, Serialize};
use stats::error_ratio::Classified;

use crate::scenarios::{Prediction, ScenarioResult};
use crate::validation::{NOISE_MAX, Validation, Verdict, aim};

/// A class that carries less of the waiting is not named as the worst.
const SHARE_MIN: f64 = 0.1;

/// Where the simulation errs, by the time that the load waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitingError {
    /// E of the classes, each weighted by its share of the time waited.
    pub error_ratio: f64,
    /// The same of the disk against itself.
    pub noise_floor: f64,
    /// max(0.05, 1.5 x noise floor).
    pub aim: f64,
    /// The class with the largest E among those that carry a tenth of the waiting or more.
    pub worst: Option<WorstClass>,
}

/// The class of requests that is simulated worst.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorstClass {
    /// `read`, `write`, `flush`.
    pub op: String,
    /// Requests up to this size, bytes; 0 for flushes.
    pub size_bytes: u32,
    /// Its share of the time waited.
    pub share: f64,
    /// Its E.
    pub error_ratio: f64,
    /// The same of the disk against itself.
    pub noise_floor: f64,
}

/// Sum of E over the classes, weighted by the real time waited for each.
fn by_time(classified: &Classified, share: &dyn Fn(usize) -> f64) -> f64 {
    let classes = classified.classes.iter().enumerate();
    classes.map(|(index, (_, class))| class.error_ratio * share(index)).sum()
}

impl LimitingError {
    /// Of a validation.
    pub fn of(validation: &Validation) -> Self {
        let (simulated, floor) = (&validation.simulated, &validation.noise_floor);
        let time = |index: usize| {
            let class = &simulated.classes[index].1;
            class.count_real as f64 * class.mean_real_ns
        };
        let all: f64 = (0..simulated.classes.len()).map(time).sum();
        let share = |index: usize| time(index) / all.max(f64::MIN_POSITIVE);
        let floor_of = |index: usize| {
            let key = &simulated.classes[index].0;
            let same = floor.classes.iter().find(|(other, _)| other == key);
            same.map_or(0.0, |(_, class)| class.error_ratio)
        };
        let noise_floor = (0..simulated.classes.len()).map(|k| floor_of(k) * share(k)).sum();
        let worst = (0..simulated.classes.len())
            .filter(|index| share(*index) >= SHARE_MIN)
            .max_by(|a, b| {
                let of = |index: usize| simulated.classes[index].1.error_ratio;
                of(*a).total_cmp(&of(*b))
            })
            .map(|index| {
                let (key, class) = &simulated.classes[index];
                WorstClass {
                    op: key.op.clone(),
                    size_bytes: key.size_bytes,
                    share: share(index),
                    error_ratio: class.error_ratio,
                    noise_floor: floor_of(index),
                }
            });
        Self { error_ratio: by_time(simulated, &share), noise_floor, aim: aim(noise_floor), worst }
    }
}

/// Predicts for each device; the fitted one is this disk and stays as it was measured.
pub fn predict(scenarios: &mut [ScenarioResult], measured: f64, error: &LimitingError) {
    let here = scenarios.iter().find(|scenario| scenario.fitted);
    let Some(here) = here.map(|scenario| scenario.transactions_per_min) else { return };
    if !(measured > 0.0 && here > 0.0) {
        return;
    }
    let bias = (here / measured).ln();
    for scenario in scenarios.iter_mut().filter(|scenario| !scenario.fitted) {
        let there = scenario.transactions_per_min;
        if there.is_nan() || there <= 0.0 {
            continue;
        }
        let per_min = measured * there / here;
        let swept = scenario.swept_transactions_per_min;
        let sweep = swept.map(|(low, high)| (low / there, high / there));
        let doubt = Doubt { bias, error_ratio: error.error_ratio, noise: 0.0, sweep };
        let interval = doubt.around(per_min);
        scenario.prediction = Some(Prediction {
            transactions_per_min: per_min,
            new_orders_per_min: per_min * scenario.new_orders_per_min / there,
            transactions_per_min_low: interval.low,
            transactions_per_min_high: interval.high,
        });
    }
}

/// What the first screen may say of the other devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// The device with the best prediction among those that are not mostly assumed.
    pub best: Option<String>,
    /// Whether the whole interval of the best lies above what was measured here.
    pub proven_faster: bool,
    /// Why no advice is given; empty where it is.
    pub withheld: Vec<String>,
}

/// What a validation says of E.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// Whether E meets its aim.
    pub verdict: Verdict,
    /// The verdict in words.
    pub words: &'a str,
    /// E where the load waits.
    pub limiting: &'a LimitingError,
    /// Whether the replays kept their schedule.
    pub timing_valid: bool,
}

impl Advice {
    /// Of a run.
    pub fn of(scenarios: &[ScenarioResult], measured: f64, judged: &Judged<'_>) -> Self {
        let mut withheld = Vec::new();
        if judged.verdict != Verdict::Met {
            withheld.push(judged.words.to_owned());
        }
        let LimitingError { error_ratio, noise_floor, aim, .. } = judged.limiting;
        if error_ratio > aim {
            withheld.push(format!(
                "weighted by the time waited, E = {error_ratio:.3} misses its aim of {aim:.3}"
            ));
        }
        if *noise_floor > NOISE_MAX {
            withheld.push(format!(
                "weighted by the time waited, the disk differs from itself by E = \
                 {noise_floor:.3} between two replays: too noisy to tell"
            ));
        }
        if !judged.timing_valid {
            withheld.push("a replay did not keep its schedule".to_owned());
        }
        let others = || scenarios.iter().filter(|scenario| !scenario.fitted);
        let known = others().filter(|scenario| !scenario.mostly_assumed());
        let of = |scenario: &&ScenarioResult| {
            scenario.prediction.map(|prediction| (scenario.profile.clone(), prediction))
        };
        let best = known
            .filter_map(|scenario| of(&scenario))
            .max_by(|a, b| a.1.transactions_per_min.total_cmp(&b.1.transactions_per_min));
        if best.is_none() && others().next().is_some() {
            withheld.push("most values of every other device are assumed".to_owned());
        }
        Self {
            proven_faster: withheld.is_empty()
                && best.as_ref().is_some_and(|best| best.1.transactions_per_min_low > measured),
            best: best.map(|best| best.0),
            withheld,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(name: &str, per_min: f64, assumed: (u32, u32)) -> ScenarioResult {
        ScenarioResult {
            profile: name.to_owned(),
            description: String::new(),
            fitted: name == "here",
            transactions_per_min: per_min,
            new_orders_per_min: per_min * 0.45,
            transaction_ns_p50: 0,
            transaction_ns_p90: 0,
            transaction_ns_p99: 0,
            waiting_share: 0.5,
            classes: Vec::new(),
            assumed_values: assumed.0,
            values: assumed.1,
            swept_transactions_per_min: None,
            prediction: None,
        }
    }

    fn error(error_ratio: f64) -> LimitingError {
        LimitingError { error_ratio, noise_floor: 0.02, aim: 0.05, worst: None }
    }

    fn judged(verdict: Verdict, limiting: &LimitingError) -> Judged<'_> {
        Judged { verdict, words: "the verdict in words", limiting, timing_valid: true }
    }

    /// The study of a busy machine: measured 9,140, this disk simulated 18,540, another 15,893. The
    /// other is slower, whatever the first two differ by.
    #[test]
    fn what_the_model_gets_wrong_here_too_cancels() {
        let mut scenarios = [scenario("here", 18_540.0, (0, 9)), scenario("x", 15_893.0, (1, 9))];
        predict(&mut scenarios, 9140.0, &error(0.04));
        assert_eq!(scenarios[0].prediction, None);
        let predicted = scenarios[1].prediction.unwrap();
        assert!((predicted.transactions_per_min - 7835.0).abs() < 1.0, "{predicted:?}");
        assert!((predicted.new_orders_per_min - 7835.0 * 0.45).abs() < 1.0);
        // A bias of a factor of two is as much doubt.
        assert!(predicted.transactions_per_min_high > 15_000.0, "{predicted:?}");
        let advice = Advice::of(&scenarios, 9140.0, &judged(Verdict::Met, &error(0.04)));
        assert_eq!((advice.best.as_deref(), advice.proven_faster), (Some("x"), false));
    }

    #[test]
    fn intervals_grow_with_error_and_with_assumptions() {
        let predicted = |e: f64, swept: Option<(f64, f64)>| {
            let mut scenarios = [scenario("here", 1000.0, (0, 9)), scenario("x", 2000.0, (1, 9))];
            scenarios[1].swept_transactions_per_min = swept;
            predict(&mut scenarios, 1000.0, &error(e));
            let predicted = scenarios[1].prediction.unwrap();
            (predicted.transactions_per_min_low, predicted.transactions_per_min_high)
        };
        let exact = predicted(0.0, None);
        assert!((exact.0 - 2000.0).abs() < 1e-6 && (exact.1 - 2000.0).abs() < 1e-6, "{exact:?}");
        let wrong = predicted(0.1, None);
        assert!(wrong.0 < 1820.0 && wrong.1 > 2200.0, "{wrong:?}");
        let swept = predicted(0.1, Some((1000.0, 2100.0)));
        assert!(swept.0 < 910.0 && swept.1 > 2300.0, "{swept:?}");
    }

    #[test]
    fn advice_is_withheld_where_the_run_does_not_bear_it() {
        let mut scenarios = [
            scenario("here", 1000.0, (0, 9)),
            scenario("dream", 9000.0, (3, 3)),
            scenario("known", 2000.0, (2, 9)),
        ];
        predict(&mut scenarios, 1000.0, &error(0.04));
        let fine = Advice::of(&scenarios, 1000.0, &judged(Verdict::Met, &error(0.04)));
        assert_eq!(fine.withheld, [""; 0]);
        assert!(fine.proven_faster && fine.best.as_deref() == Some("known"), "{fine:?}");
        let (good, bad) = (error(0.04), error(0.40));
        let noisy = LimitingError { noise_floor: 0.4, aim: 0.6, ..error(0.3) };
        let late = Judged { timing_valid: false, ..judged(Verdict::Met, &good) };
        for (judged, why) in [
            (judged(Verdict::Missed, &good), "the verdict in words"),
            (judged(Verdict::Undecided, &good), "the verdict in words"),
            (judged(Verdict::Met, &bad), "weighted by the time waited, E = 0.400"),
            (judged(Verdict::Met, &noisy), "too noisy"),
            (late, "schedule"),
        ] {
            let advice = Advice::of(&scenarios, 1000.0, &judged);
            assert!(!advice.proven_faster && advice.withheld.len() == 1, "{advice:?}");
            assert!(advice.withheld[0].contains(why), "{advice:?}");
        }
        let dreams = Advice::of(&scenarios[..2], 1000.0, &judged(Verdict::Met, &good));
        assert!(dreams.best.is_none() && dreams.withheld[0].contains("assumed"), "{dreams:?}");
    }
}
