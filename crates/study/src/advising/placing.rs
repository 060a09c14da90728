//! Where data and log go: every placement over the devices at hand, each simulated.
//!
//! With n devices there are n placements of both on one device and n x n of the log on a device of
//! its own (two of the same kind among them). All are asked of the same captured run, so what the
//! capture itself is off by is common to them.

use std::path::Path;

use advise::choice::{Choice, choose};
use events::{Event, Sink, Step, Warning};
use predict::{Learned, Prediction, Question, predict};
use profile::Profile;
use serde::Serialize;

use super::doubt::{UNVALIDATED, devices, doubted};
use super::offers::{Kind, of_prediction};
use super::prices::{Asked, PriceBook};
use crate::Error;
use crate::predictions::{device_warnings, learned};

const STAGE: &str = "predict";

/// All placements, the best first.
#[derive(Clone, Debug, Serialize)]
pub struct Placements {
    /// Ranked by cost of a million transactions at the limit; see [`Choice`].
    pub choice: Choice,
    /// Names by transactions per minute, the fastest first.
    pub fastest: Vec<String>,
    /// Placements whose interval overlaps with that of the fastest.
    pub may_be_as_fast: Vec<String>,
    /// What the answers rest on, a sentence each.
    pub rests_on: Vec<String>,
    /// What makes them suspect.
    pub warnings: Vec<Warning>,
}

/// What is asked beside the devices.
#[derive(Clone, Debug)]
pub struct Limits<'a> {
    /// 99 % of the transactions take no longer, ms.
    pub p99_ms: Option<f64>,
    /// Of which kind.
    pub kind: &'a Kind,
    /// What is paid for.
    pub asked: &'a Asked,
    /// Prices.
    pub book: &'a PriceBook,
    /// Whether the log may lie on a device of its own.
    pub apart: bool,
}

/// Asks a capture about every placement of data and log over `profiles`; the second says whether
/// the user stopped it.
///
/// # Errors
/// A capture that cannot be read or lacks something; a limit or a price that cannot be.
pub fn placements(
    prefix: &Path,
    question: &Question,
    profiles: &[Profile],
    limits: &Limits<'_>,
    sink: &dyn Sink,
) -> Result<(Placements, bool), Error> {
    let steps = logs(profiles.len(), limits.apart).map(|log| Step {
        name: log.map_or("no log apart".to_owned(), |k| format!("log on {}", profiles[k].name())),
        expected_s: 2.0 * profiles.len() as f64,
        writes_bytes: 0,
    });
    sink.emit(Event::Plan { stage: STAGE.to_owned(), steps: steps.collect() });
    let (learned, warnings) = learned(prefix)?;
    let (mut found, stopped) = placed(&learned, question, profiles, limits, sink)?;
    found.warnings.splice(..0, warnings);
    found.warnings.iter().for_each(|warning| sink.emit(Event::Warning(warning.clone())));
    Ok((found, stopped))
}

/// Both on one device, then the log on each.
fn logs(devices: usize, apart: bool) -> impl Iterator<Item = Option<usize>> {
    std::iter::once(None).chain((0..devices).filter(move |_| apart).map(Some))
}

/// Asks a learned system about every placement.
///
/// # Errors
/// Where it cannot be simulated; a limit or a price that cannot be.
pub fn placed(
    learned: &Learned,
    question: &Question,
    profiles: &[Profile],
    limits: &Limits<'_>,
    sink: &dyn Sink,
) -> Result<(Placements, bool), Error> {
    let (mut offers, mut answers, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    let mut stopped = false;
    let all = logs(profiles.len(), limits.apart);
    for (log, data) in all.flat_map(|log| profiles.iter().map(move |data| (log, data))) {
        if sink.cancelled() {
            stopped = true;
            break;
        }
        let both = (data, log.map(|k| &profiles[k]));
        let question = Question { log_apart: log.is_some(), ..question.clone() };
        let name = match both.1 {
            Some(log) => format!("{}, log on {}", data.name(), log.name()),
            None => data.name().to_owned(),
        };
        let mut answer = predict(learned, &question, &name, &|| devices(both, question.seed))?;
        let doubted = doubted(learned, &question, both, limits.kind, &answer)?;
        (answer.per_min_low, answer.per_min_high) = (doubted.per_min.low, doubted.per_min.high);
        offers.push(of_prediction(&answer, doubted, both, limits.asked, limits.book));
        warnings.extend(device_warnings(&answer));
        answers.push(answer);
    }
    let choice = choose(&offers, limits.p99_ms)?;
    Ok((ranked(choice, answers, warnings), stopped))
}

fn ranked(choice: Choice, mut answers: Vec<Prediction>, warnings: Vec<Warning>) -> Placements {
    answers.sort_by(|a, b| b.per_min.total_cmp(&a.per_min).then_with(|| a.device.cmp(&b.device)));
    let low = answers.first().map_or(0.0, |best| best.per_min_low);
    let others = answers.iter().skip(1).filter(|other| other.per_min_high >= low);
    Placements {
        may_be_as_fast: others.map(|other| other.device.clone()).collect(),
        fastest: answers.iter().map(|answer| answer.device.clone()).collect(),
        rests_on: answers.first().map_or_else(Vec::new, rests_on),
        choice,
        warnings,
    }
}

/// As the prediction says it, with what the interval allows for in the devices.
fn rests_on(answer: &Prediction) -> Vec<String> {
    let mut found = answer.rests_on.clone();
    found.push(format!(
        "the interval also: the length of the capture, measured values of the devices at both ends \
         of theirs, assumed ones halved and doubled, and {:.0} % of the devices' share where no \
         model of them was validated",
        UNVALIDATED * 100.0
    ));
    found
}
