//! Predictions from a captured run: its files read, devices asked, answers shown.
//!
//! The arithmetic is in the crate `predict`; here are the files that `wearmark oltp run --trace
//! PREFIX` or `wearmark capture --output PREFIX` leaves (`files.rs`), the loop over profiles, the
//! table and the page. Invariant: a device whose addresses end before the database does is not
//! refused; requests beyond its end are moved to within and the answer carries a warning.

mod files;
mod page;
mod text;

use std::path::Path;

use events::{Event, Sink, Step, Warning};
use model::Device;
use oltp::KindResult;
use predict::{Learned, Prediction, Question, calibrate, learn, predict};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::captures::{Capture, with};
use crate::host_stack::Devices;

pub(crate) use files::busy_ns;
pub use files::{learn_run, read_capture, read_run};
pub use page::page;
pub use text::text;

/// A source that is further off than this share makes all answers suspect.
const SOURCE_OFF: f64 = 0.1;
/// The stage that its events and warnings name.
const STAGE: &str = "predict";

/// What was predicted, beside what was captured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Predictions {
    /// Version of this shape: 1.
    pub schema: u32,
    /// The capture, as it was measured.
    pub captured: Measured,
    /// The captured run itself, simulated on its own device: how far the model is to be trusted.
    pub source: Prediction,
    /// Factor on host path and wake-up that makes the source itself come out right.
    pub calibration: Option<f64>,
    /// What the host adds to a sync of the log, ns.
    pub path_ns: Option<f64>,
    /// One per device.
    pub devices: Vec<Prediction>,
    /// What makes the figures suspect.
    pub warnings: Vec<Warning>,
}

/// The captured run, as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The server.
    pub dbms: String,
    /// Sessions.
    pub terminals: u32,
    /// Transactions per minute.
    pub per_min: f64,
    /// By kind, with counts: name, count, p50, p90, p99 and p99.9 of the response, ns.
    pub kinds: Vec<(String, u64, [u64; 4])>,
}

impl Measured {
    fn of_capture(capture: &Capture) -> Self {
        let all = capture.requests.clone().unwrap_or_default();
        Self {
            dbms: capture.captured.clone(),
            terminals: all.sessions_mean.round().max(1.0) as u32,
            per_min: all.per_s * 60.0,
            kinds: all
                .kinds
                .into_iter()
                .map(|kind| (kind.kind, kind.count, kind.response_ns))
                .collect(),
        }
    }

    fn of(result: &oltp::OltpResult) -> Self {
        let quantiles =
            |kind: &KindResult| [0.5, 0.9, 0.99, 0.999].map(|q| kind.response_quantile(q).0);
        let seen = result.transactions.iter().filter(|kind| kind.count > 0);
        Self {
            dbms: result.dbms.clone(),
            terminals: result.options.users,
            per_min: result.transactions_per_s * 60.0,
            kinds: seen
                .map(|kind| (kind.kind.name().to_owned(), kind.count, quantiles(kind)))
                .collect(),
        }
    }
}

/// Predicts a captured run on each target; `log_on` is the device of the log alone.
///
/// A stop by the user keeps the devices that were done.
///
/// # Errors
/// A capture that cannot be read or lacks something; a question that has no answer.
pub fn ask(
    prefix: &Path,
    question: &Question,
    targets: &[Devices],
    log_on: Option<&Devices>,
    sink: &dyn Sink,
) -> Result<(Predictions, bool), Error> {
    let steps =
        targets.iter().map(|target| Step { name: target.name(), expected_s: 2.0, writes_bytes: 0 });
    sink.emit(Event::Plan { stage: STAGE.to_owned(), steps: steps.collect() });
    let (mut learned, measured) = source(prefix)?;
    calibrate(&mut learned)?;
    let source = simulated(&learned, question.from_start)?;
    let mut all = Predictions {
        schema: 1,
        warnings: capture_warnings(&learned, &measured, &source),
        captured: measured,
        source,
        calibration: learned.calibration,
        path_ns: learned.path_ns,
        devices: Vec::new(),
    };
    let mut stopped = false;
    for target in targets {
        if sink.cancelled() {
            stopped = true;
            break;
        }
        let make = || -> Vec<Box<dyn Device>> {
            let own = target.device(question.seed);
            std::iter::once(own).chain(log_on.map(|log| log.device(question.seed + 1))).collect()
        };
        let name = match log_on {
            Some(log) => format!("{}, log on {}", target.name(), log.name()),
            None => target.name(),
        };
        let question = Question { log_apart: log_on.is_some(), ..question.clone() };
        let answer = predict(&learned, &question, &name, &make)?;
        all.warnings.extend(device_warnings(&answer));
        all.devices.push(answer);
    }
    all.warnings.iter().for_each(|warning| sink.emit(Event::Warning(warning.clone())));
    Ok((all, stopped))
}

/// What a captured run teaches, calibrated, and what makes it suspect.
///
/// # Errors
/// A capture that cannot be read or lacks something.
pub fn learned(prefix: &Path) -> Result<(Learned, Vec<Warning>), Error> {
    let (mut learned, measured) = source(prefix)?;
    calibrate(&mut learned)?;
    let source = simulated(&learned, false)?;
    let warnings = capture_warnings(&learned, &measured, &source);
    Ok((learned, warnings))
}

/// The captured run itself, simulated on the device of the capture as its own requests showed it.
///
/// # Errors
/// As [`ask`].
pub fn here(prefix: &Path) -> Result<Prediction, Error> {
    let run = read_run(prefix)?;
    let mut learned = learn_run(prefix, &run)?;
    calibrate(&mut learned)?;
    simulated(&learned, learned.start.is_some())
}

/// A question about the captured run on the device of the capture.
///
/// # Errors
/// As [`ask`].
pub(crate) fn asked_here(prefix: &Path, question: &Question) -> Result<Prediction, Error> {
    let mut learned = learn_run(prefix, &read_run(prefix)?)?;
    calibrate(&mut learned)?;
    Ok(predict(&learned, question, "here", &|| vec![learned.source_device()])?)
}

/// What was learned, simulated on the device of the capture.
fn simulated(learned: &Learned, from_start: bool) -> Result<Prediction, Error> {
    let question = Question { from_start, while_captured: true, ..Question::default() };
    Ok(predict(learned, &question, "here", &|| vec![learned.source_device()])?)
}

/// What a captured run teaches and how it was measured: of a load of our own, or of somebody
/// else's.
fn source(prefix: &Path) -> Result<(Learned, Measured), Error> {
    // The newer of the two where a prefix was used for both.
    let age =
        |suffix: &str| std::fs::metadata(with(prefix, suffix)).and_then(|file| file.modified());
    let own = age("-run.json").ok();
    if own.is_some() && own >= age("-accounts.json").ok() {
        let run = read_run(prefix)?;
        return Ok((learn_run(prefix, &run)?, Measured::of(&run.result)));
    }
    let capture = Capture::read(prefix)?;
    let captured = read_capture(prefix, &capture)?;
    let all = capture.requests.as_ref().expect("read_capture asks for it");
    let think = report::format::duration_ns(all.think_ns_mean);
    let clients = if all.scheduled {
        "requests that arrive on a schedule, however long the answers take".to_owned()
    } else {
        format!("{} sessions that think {think} between requests", captured.terminals)
    };
    let mut learned = learn(&captured)?;
    learned.rests_on.extend([
        "requests as system calls show them: a statement or a batch each, not a transaction"
            .to_owned(),
        clients,
    ]);
    Ok((learned, Measured::of_capture(&capture)))
}

fn capture_warnings(learned: &Learned, captured: &Measured, source: &Prediction) -> Vec<Warning> {
    let mut found = Vec::new();
    if learned.path_ns.is_none() {
        let message = "the disk's requests were not captured, so the host's part of a sync is \
                       taken as 0";
        let hint = "capture as root, on a local disk, without --no-physical";
        found.push(Warning::new(STAGE, "path_unknown", message.to_owned()).with_hint(hint));
    }
    if learned.calibration.is_none() {
        let message = "others used the processors during the capture; it was not calibrated";
        found.push(
            Warning::new(STAGE, "not_calibrated", message.to_owned())
                .with_hint("capture on an idle machine"),
        );
    }
    let off = source.per_min / captured.per_min.max(1e-9) - 1.0;
    if off.abs() > SOURCE_OFF {
        let message =
            format!("the captured run itself, simulated, is off by {:+.0} %", off * 100.0);
        let hint = "something limited it that the capture does not show, such as row locks or the \
                    load of others on its disk";
        found.push(Warning::new(STAGE, "source_off", message).with_hint(hint));
    }
    found
}

pub(crate) fn device_warnings(answer: &Prediction) -> Vec<Warning> {
    let mut found = Vec::new();
    if answer.wrapped > 0 {
        let message = format!(
            "{}: {} requests lay beyond its end and were moved to within",
            answer.device, answer.wrapped
        );
        let hint = "give the profile the capacity of the device, not that of the probed range";
        found.push(Warning::new(STAGE, "beyond_capacity", message).with_hint(hint));
    }
    if let Some(at) = answer.at_goal.as_ref().filter(|at| !at.holds) {
        let message =
            format!("{}: {} does not hold even with hardly any load", answer.device, at.goal);
        let hint = "the figures are those of transactions that do not wait for each other";
        found.push(Warning::new(STAGE, "goal_out_of_reach", message).with_hint(hint));
    }
    if answer.dropped > 0 {
        let message =
            format!("{}: {} arrivals found too many waiting", answer.device, answer.dropped);
        let hint = "lower the rate";
        found.push(Warning::new(STAGE, "arrivals_dropped", message).with_hint(hint));
    }
    found
}
