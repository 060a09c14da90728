//! Where data and log go: every placement over the devices at hand, each simulated.
//!
//! With n devices there are n placements of both on one device and n x n of the log on a device of
//! its own (two of the same kind among them). All are asked of the same captured run, so what the
//! capture itself is off by is common to them.

use std::path::Path;

use advise::choice::{Choice, choose};
use events::{Sink, Warning};
use predict::{Prediction, Question};
use profile::Profile;
use serde::Serialize;

use super::offers::{Kind, of_prediction};
use super::prices::{Asked, PriceBook};
use crate::Error;
use crate::host_stack::Devices;
use crate::predictions::ask;

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

/// Asks a capture about every placement of data and log over `profiles`.
///
/// # Errors
/// As [`ask`].
pub fn placements(
    prefix: &Path,
    question: &Question,
    profiles: &[Profile],
    limits: &Limits<'_>,
    sink: &dyn Sink,
) -> Result<(Placements, bool), Error> {
    let targets: Vec<Devices> = profiles.iter().cloned().map(Devices::alone).collect();
    let (mut offers, mut answers, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    let mut stopped = false;
    let logs = std::iter::once(None).chain((0..profiles.len()).filter(|_| limits.apart).map(Some));
    for log in logs {
        let (found, was_stopped) = ask(prefix, question, &targets, log.map(|k| &targets[k]), sink)?;
        for (answer, data) in found.devices.iter().zip(profiles) {
            let both = (data, log.map(|k| &profiles[k]));
            offers.push(of_prediction(answer, both, limits.kind, limits.asked, limits.book));
        }
        answers.extend(found.devices);
        for warning in found.warnings {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        stopped |= was_stopped;
        if stopped {
            break;
        }
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
        rests_on: answers.first().map_or_else(Vec::new, |answer| answer.rests_on.clone()),
        choice,
        warnings,
    }
}
