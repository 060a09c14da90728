//! The pipeline: the stages of a study in order, each skipped where its artifact is already there.

use std::path::{Path, PathBuf};
use std::time::Instant;

use events::{Ending, Event, Sink, Step, Warning};

use crate::file::{Plan, StudyFile};
use crate::result::StudyResult;
use crate::run_dir::{self, RunDir, RunLog};
use crate::{Error, doctor, machine, page, scenarios, stages};

/// How a study is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where run directories are made; the disk below it is the one under test.
    pub runs: PathBuf,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The run directory.
    pub path: PathBuf,
    /// Whether the user stopped it; the same command goes on from there.
    pub interrupted: bool,
    /// Whether it went on with an earlier, interrupted run.
    pub resumed: bool,
}

/// A stage: its name, the artifact that says it is done, and what it does.
struct Stage {
    name: &'static str,
    artifact: &'static str,
    expected_s: fn(&StudyFile) -> f64,
    writes_bytes: fn(&StudyFile) -> u64,
    run: fn(&Context<'_>) -> Result<(), Error>,
}

/// What every stage is given.
pub(crate) struct Context<'a> {
    /// The run directory.
    pub run: &'a RunDir,
    /// The study.
    pub study: &'a StudyFile,
    /// Events and cancellation.
    pub log: &'a RunLog<'a>,
}

impl Context<'_> {
    /// Whether the user asked to stop. A stage that sees this returns without its artifact.
    pub fn cancelled(&self) -> bool {
        self.log.cancelled()
    }

    /// Reports a warning.
    pub fn warn(&self, warning: Warning) {
        self.log.emit(Event::Warning(warning));
    }

    /// Reports progress of a stage that has none of its own.
    pub fn progress(&self, stage: &str, done: f64, doing: &str, eta_s: Option<f64>) {
        let (stage, doing) = (stage.to_owned(), doing.to_owned());
        self.log.emit(Event::Progress { stage, done, doing, eta_s });
    }
}

const STAGES: &[Stage] = &[
    Stage {
        name: "oltp",
        artifact: stages::oltp::RESULT,
        expected_s: |study| stages::oltp::expected_s(study),
        writes_bytes: |study| stages::oltp::writes_bytes(study),
        run: stages::oltp::run,
    },
    Stage {
        name: "probe",
        artifact: stages::probe::MEASUREMENTS,
        expected_s: |study| match study.probe.plan {
            Plan::Quick => study.probe.budget.as_secs_f64(),
            Plan::Full => 36_000.0,
        },
        writes_bytes: |study| 12 * study.probe.range.0,
        run: stages::probe::run,
    },
    Stage {
        name: "fit",
        artifact: stages::fit::FIT,
        expected_s: |_| 1.0,
        writes_bytes: |_| 0,
        run: stages::fit::run,
    },
    Stage {
        name: "replay",
        artifact: stages::replay::RUNS[1],
        expected_s: |study| 2.0 * study.validate.duration.as_secs_f64() + 5.0,
        writes_bytes: |study| 2 * stages::oltp::writes_bytes(study),
        run: stages::replay::run,
    },
    Stage {
        name: "validate",
        artifact: stages::validate::VALIDATION,
        expected_s: |_| 5.0,
        writes_bytes: |_| 0,
        run: stages::validate::run,
    },
    Stage {
        name: "scenarios",
        artifact: stages::scenarios::SCENARIOS,
        expected_s: |_| 2.0,
        writes_bytes: |_| 0,
        run: stages::scenarios::run,
    },
    Stage {
        name: "report",
        artifact: run_dir::RESULT,
        expected_s: |_| 1.0,
        writes_bytes: |_| 0,
        run: report,
    },
];

/// The plan of a study: what `--dry-run` prints.
pub fn plan(study: &StudyFile) -> Vec<Step> {
    let step = |stage: &Stage| Step {
        name: stage.name.to_owned(),
        expected_s: (stage.expected_s)(study),
        writes_bytes: (stage.writes_bytes)(study),
    };
    STAGES.iter().map(step).collect()
}

/// Runs a study, or goes on with the one that was interrupted.
pub fn run(study: &StudyFile, options: &Options, live: &dyn Sink) -> Result<Ended, Error> {
    for scenario in &study.scenario {
        scenarios::read_profile(&scenario.profile)?;
    }
    let config = study.to_toml();
    let (run, resumed) = RunDir::open_or_create(&options.runs, &study.study.name, &config)?;
    let log = RunLog::open(&run, live)?;
    log.announce(Event::Plan { stage: "study".into(), steps: plan(study) });
    if !resumed {
        enough_space(study, run.path())?;
        run.write_json("machine.json", &machine::fingerprint(run.path()))?;
    }
    let context = Context { run: &run, study, log: &log };
    for stage in STAGES {
        if run.has(stage.artifact) {
            continue;
        }
        if log.cancelled() {
            break;
        }
        run_stage(stage, &context)?;
    }
    let interrupted = !run.has(run_dir::RESULT);
    Ok(Ended { path: run.path().into(), interrupted, resumed })
}

fn run_stage(stage: &Stage, context: &Context<'_>) -> Result<(), Error> {
    let started = Instant::now();
    context.progress(stage.name, 0.0, "starting", Some((stage.expected_s)(context.study)));
    let done = (stage.run)(context);
    let ending = match &done {
        Err(_) => Ending::Failed,
        Ok(()) if context.run.has(stage.artifact) => Ending::Complete,
        Ok(()) => Ending::Interrupted,
    };
    let elapsed_s = started.elapsed().as_secs_f64();
    // The stage's warnings live as long as its artifact, so that a resumed run shows them too.
    let warnings = collapse(context.log.take_warnings());
    context.log.announce(Event::Done { stage: stage.name.into(), elapsed_s, ending });
    if done.is_ok() && ending == Ending::Complete {
        context.run.write_json(&format!("warnings-{}.json", stage.name), &warnings)?;
    }
    done
}

/// One warning per code: the first, with the number of those like it. Forty cells that were all
/// disturbed by the same load are one thing to know, and `events.jsonl` has every one.
fn collapse(warnings: Vec<Warning>) -> Vec<Warning> {
    let mut kept: Vec<(Warning, usize)> = Vec::new();
    for warning in warnings {
        match kept.iter_mut().find(|(first, _)| first.code == warning.code) {
            Some((_, more)) => *more += 1,
            None => kept.push((warning, 0)),
        }
    }
    let counted = kept.into_iter().map(|(mut warning, more)| {
        if more > 0 {
            warning.message = format!("{} (and {more} more like it)", warning.message);
        }
        warning
    });
    counted.collect()
}

fn enough_space(study: &StudyFile, place: &Path) -> Result<(), Error> {
    let needed = study.space_needed();
    match doctor::free_bytes(place) {
        Some(free) if free < needed => {
            // Nothing was done yet: leave no run behind that could never go on.
            let _ = std::fs::remove_dir_all(place);
            Err(Error::NoSpace { path: place.into(), free, needed })
        }
        _ => Ok(()),
    }
}

/// Warnings of all stages that ended.
pub(crate) fn warnings(run: &RunDir) -> Vec<Warning> {
    let names = STAGES.iter().map(|stage| format!("warnings-{}.json", stage.name));
    let read = |name: String| run.read_json::<Vec<Warning>>(&name).unwrap_or_default();
    names.flat_map(read).collect()
}

/// The last stage: the page, then the result, whose presence says that the run is complete.
fn report(context: &Context<'_>) -> Result<(), Error> {
    let result = StudyResult::gather(context.run, context.study)?;
    context
        .run
        .write("report.html", report::html(&page::page(context.run, &result)?).as_bytes())?;
    context.run.write(run_dir::RESULT, &result.to_json())
}

/// Writes the report of a complete run anew and returns its page.
pub fn rewrite_report(path: &Path) -> Result<report::Page, Error> {
    let run = RunDir::lock(path.into())?;
    let result = StudyResult::read(&run)?;
    let page = page::page(&run, &result)?;
    run.write("report.html", report::html(&page).as_bytes())?;
    Ok(page)
}
