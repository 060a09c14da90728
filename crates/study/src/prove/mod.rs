//! The same load, really run on this disk and on emulated devices, beside what was predicted.
//!
//! The database is loaded once and copied back before every run, so that all runs start from the
//! same bytes. Rounds go through the places forwards and backwards in turns (A B B A), so that a
//! machine that gets slower or warmer spoils no comparison; how much the runs of one place differ
//! among themselves (A/A) stands beside every figure, since no error below it means anything.
//!
//! Load and emulator run in processes of their own: a program that maps files which its own process
//! serves would wait for itself. `step.rs` starts and ends them; `text.rs` and `page.rs` show what
//! came of it.

mod page;
mod predict;
mod step;
mod text;

use std::path::{Path, PathBuf};
use std::time::Instant;

use events::{Ending, Event, Sink, Step, Warning};
use oltp::OltpResult;
use serde::{Deserialize, Serialize};

use crate::Error;

pub use page::page;
pub use text::{remarks, text};

const STAGE: &str = "prove";
/// The place that is no emulated device.
pub const HERE: &str = "here";

/// What is to be proven.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// This program.
    pub program: PathBuf,
    /// Where the database is made; everything in it is removed afterwards.
    pub directory: PathBuf,
    /// Arguments of `wearmark oltp run` that say what runs, without times.
    pub load: Vec<String>,
    /// Excluded and measured time of a run, as arguments.
    pub times: [String; 2],
    /// Seconds that a run takes about, for the progress.
    pub run_s: f64,
    /// Devices, by profile.
    pub devices: Vec<String>,
    /// Runs at each place.
    pub rounds: u32,
}

/// Figures of one kind of transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindFigures {
    /// Its name.
    pub kind: String,
    /// Half of them took no longer, ms.
    pub p50_ms: f64,
    /// 99 % of them took no longer, ms.
    pub p99_ms: f64,
}

/// What a user sees of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Transactions of all kinds.
    pub transactions_per_min: f64,
    /// By kind.
    pub kinds: Vec<KindFigures>,
}

/// What a device was asked, per transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceIo {
    /// `read`, `write`, `trim`, `flush`.
    pub op: String,
    /// Requests per transaction, those of the warm-up and of the server's start and end included.
    pub requests: f64,
    /// Bytes per transaction.
    pub bytes: f64,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Which round, from 1.
    pub round: u32,
    /// What came of it.
    pub figures: Figures,
    /// I/O of the emulated device.
    pub io: Vec<DeviceIo>,
    /// How late 99 % of the emulator's answers were at most, us.
    pub lateness_us_p99: Option<f64>,
    /// What makes the run suspect.
    pub warnings: Vec<Warning>,
}

/// All runs at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// [`HERE`], or the device.
    pub name: String,
    /// The runs, in the order of their rounds.
    pub runs: Vec<Run>,
    /// What the predictor said, from the capture at [`HERE`].
    pub predicted: Option<Figures>,
    /// Why it said nothing.
    pub not_predicted: Option<String>,
}

/// Everything that was measured and predicted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Version of this shape.
    pub schema: u32,
    /// Arguments of the load.
    pub load: Vec<String>,
    /// The places: here first.
    pub places: Vec<Place>,
    /// The user stopped it; what was done is here.
    pub interrupted: bool,
}

/// One figure of a place: what was measured, what was predicted, and how far to trust either.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The figure, unit last.
    pub name: String,
    /// Median of the runs.
    pub measured: f64,
    /// The prediction.
    pub predicted: Option<f64>,
    /// Largest less smallest run over the median; none for a single run.
    pub spread: Option<f64>,
}

impl Compared {
    /// The prediction's error, as a share of what was measured.
    pub fn error(&self) -> Option<f64> {
        self.predicted
            .filter(|_| self.measured > 0.0)
            .map(|predicted| predicted / self.measured - 1.0)
    }
}

impl Place {
    /// Every figure of the place.
    pub fn compared(&self) -> Vec<Compared> {
        let mut found = Vec::new();
        let mut add = |name: String, of: &dyn Fn(&Figures) -> Option<f64>| {
            let mut values: Vec<f64> =
                self.runs.iter().filter_map(|run| of(&run.figures)).collect();
            values.sort_by(f64::total_cmp);
            let (Some(least), Some(most)) = (values.first(), values.last()) else { return };
            let middle = values.len() / 2;
            let measured = match values.len() % 2 {
                0 => f64::midpoint(values[middle - 1], values[middle]),
                _ => values[middle],
            };
            let spread = (values.len() > 1 && measured > 0.0).then(|| (most - least) / measured);
            let predicted = self.predicted.as_ref().and_then(of);
            found.push(Compared { name, measured, predicted, spread });
        };
        add("transactions/min".to_owned(), &|figures| Some(figures.transactions_per_min));
        let kinds: Vec<String> = self
            .runs
            .first()
            .map(|run| run.figures.kinds.iter().map(|kind| kind.kind.clone()).collect())
            .unwrap_or_default();
        for kind in kinds {
            let own =
                |figures: &Figures| figures.kinds.iter().find(|found| found.kind == kind).cloned();
            add(format!("{kind} p50 ms"), &|figures| own(figures).map(|found| found.p50_ms));
            add(format!("{kind} p99 ms"), &|figures| own(figures).map(|found| found.p99_ms));
        }
        found
    }
}

impl Figures {
    /// Of a measured run.
    pub fn of(result: &OltpResult) -> Self {
        let kinds = result.transactions.iter().filter(|kind| !kind.response_ns.is_empty());
        let ms = |ns: u64| ns as f64 / 1e6;
        Self {
            transactions_per_min: result.transactions_per_s * 60.0,
            kinds: kinds
                .map(|kind| KindFigures {
                    kind: kind.kind.name().to_owned(),
                    p50_ms: ms(kind.response_ns.quantile(0.5)),
                    p99_ms: ms(kind.response_ns.quantile(0.99)),
                })
                .collect(),
        }
    }
}

/// Runs the plan.
///
/// # Errors
/// A step failed: its message is passed on. What was made is removed.
pub fn prove(plan: &Plan, sink: &dyn Sink) -> Result<Proof, Error> {
    let started = Instant::now();
    let place = |name: &str| Place {
        name: name.to_owned(),
        runs: Vec::new(),
        predicted: None,
        not_predicted: None,
    };
    let mut proof = Proof {
        schema: 1,
        load: plan.load.clone(),
        places: std::iter::once(HERE)
            .chain(plan.devices.iter().map(String::as_str))
            .map(place)
            .collect(),
        interrupted: false,
    };
    let expected_s = plan.run_s + 10.0;
    let name = |name: &str| Step { name: name.to_owned(), expected_s, writes_bytes: 0 };
    let steps = proof.places.iter().map(|place| name(&place.name)).collect();
    sink.emit(Event::Plan { stage: STAGE.to_owned(), steps });
    let workshop = step::Workshop::new(plan)?;
    let walked = walk(plan, &workshop, &mut proof, sink);
    workshop.remove();
    let ending = match &walked {
        Ok(()) if proof.interrupted => Ending::Interrupted,
        Ok(()) => Ending::Complete,
        Err(_) => Ending::Failed,
    };
    let elapsed_s = started.elapsed().as_secs_f64();
    sink.emit(Event::Done { stage: STAGE.to_owned(), elapsed_s, ending });
    walked.map(|()| proof)
}

fn walk(
    plan: &Plan,
    workshop: &step::Workshop<'_>,
    proof: &mut Proof,
    sink: &dyn Sink,
) -> Result<(), Error> {
    let count = proof.places.len();
    let total = count * plan.rounds as usize + 2;
    let tell = |done: usize, doing: &str| {
        sink.emit(Event::Progress {
            stage: STAGE.to_owned(),
            done: done as f64 / total as f64,
            doing: doing.to_owned(),
            eta_s: Some((total - done) as f64 * (plan.run_s + 5.0)),
        });
    };
    let mut stopped = |found: bool| {
        proof.interrupted |= found;
        found
    };
    tell(0, "loading the database");
    if stopped(workshop.load(sink)?) {
        return Ok(());
    }
    tell(1, "capturing the load here");
    if stopped(workshop.capture(sink)?) {
        return Ok(());
    }
    for place in &mut proof.places[1..] {
        match workshop.predict(&place.name) {
            Ok(figures) => place.predicted = Some(figures),
            Err(why) => place.not_predicted = Some(why),
        }
    }
    let mut done = 2;
    for round in 1..=plan.rounds {
        let mut order: Vec<usize> = (0..count).collect();
        if round.is_multiple_of(2) {
            order.reverse();
        }
        for index in order {
            let place = &mut proof.places[index];
            tell(done, &format!("round {round} of {}: {}", plan.rounds, place.name));
            let device = (place.name != HERE).then_some(place.name.as_str());
            let Some((result, emulated)) = workshop.run(device, sink)? else {
                proof.interrupted = true;
                return Ok(());
            };
            place.runs.push(run_of(round, &result, emulated.as_ref()));
            done += 1;
        }
    }
    Ok(())
}

/// What is kept of a run.
fn run_of(round: u32, result: &OltpResult, emulated: Option<&step::Served>) -> Run {
    let transactions = (result.transactions_per_s * (result.measured_s + result.warmup_s)).max(1.0);
    let io = |op: &step::ServedOp| DeviceIo {
        op: op.op.clone(),
        requests: op.requests as f64 / transactions,
        bytes: op.bytes as f64 / transactions,
    };
    let mut warnings = result.warnings.clone();
    warnings.extend(emulated.iter().flat_map(|served| served.warnings.clone()));
    Run {
        round,
        figures: Figures::of(result),
        io: emulated.iter().flat_map(|served| served.ops.iter().map(io)).collect(),
        lateness_us_p99: emulated.map(step::Served::lateness_us_p99),
        warnings,
    }
}

/// Removes a directory of ours, whatever is in it.
fn remove(path: &Path) {
    _ = std::fs::remove_dir_all(path);
}
