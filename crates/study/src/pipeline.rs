//! The pipeline: the stages of a study in order, each skipped where its artifact is already there.
//!
//! A stage ends with [`Context::finish`]: its warnings, then its artifact. A run that is killed
//! between any two system calls goes on and ends as one that was not; the tests kill it at each of
//! them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use events::{Ending, Event, Sink, Step, Warning};

use crate::artifacts::{self, MACHINE};
use crate::context::{Context, warnings_name};
use crate::file::{Plan, StudyFile};
use crate::result::StudyResult;
use crate::run_dir::{self, RunDir, RunLog};
use crate::{Error, doctor, machine, page, profiles, stages};

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
    /// Stages whose results the directory holds.
    pub kept: Vec<&'static str>,
    /// The stage that was stopped; it begins anew.
    pub stopped_in: Option<&'static str>,
}

/// A stage: its name, the artifact that says it is done, and what it does.
struct Stage {
    name: &'static str,
    artifact: &'static str,
    expected_s: fn(&StudyFile) -> f64,
    writes_bytes: fn(&StudyFile) -> u64,
    run: fn(&Context<'_>) -> Result<(), Error>,
}

/// A study that asks what the captured I/O of this disk would do on simulated devices.
const SIMULATED: &[Stage] = &[
    Stage {
        name: "oltp",
        artifact: artifacts::LOAD.name,
        expected_s: |study| stages::oltp::expected_s(study),
        writes_bytes: |study| stages::oltp::writes_bytes(study),
        run: stages::oltp::run,
    },
    Stage {
        name: "probe",
        artifact: artifacts::MEASUREMENTS.name,
        expected_s: |study| match study.probe.plan {
            Plan::Quick => study.probe.budget.as_secs_f64(),
            Plan::Full => 36_000.0,
        },
        writes_bytes: |study| 12 * study.probe.range.0,
        run: stages::probe::run,
    },
    Stage {
        name: "fit",
        artifact: artifacts::FIT.name,
        expected_s: |_| 1.0,
        writes_bytes: |_| 0,
        run: stages::fit::run,
    },
    Stage {
        name: "replay",
        artifact: artifacts::REPLAY.name,
        expected_s: stages::replay::expected_s,
        writes_bytes: stages::replay::writes_bytes,
        run: stages::replay::run,
    },
    Stage {
        name: "validate",
        artifact: artifacts::VALIDATION.name,
        expected_s: |_| 5.0,
        writes_bytes: |_| 0,
        run: stages::validate::run,
    },
    Stage {
        name: "scenarios",
        artifact: artifacts::SCENARIOS.name,
        expected_s: |_| 2.0,
        writes_bytes: |_| 0,
        run: stages::scenarios::run,
    },
    REPORT,
];

/// A study whose load really runs, here and on emulated devices.
const RUN_ON_DEVICES: &[Stage] = &[
    Stage {
        name: "load",
        artifact: artifacts::LOADED.name,
        expected_s: stages::places::load_s,
        writes_bytes: |study| study.oltp.bytes(),
        run: stages::places::load,
    },
    Stage {
        name: "capture",
        artifact: artifacts::LOAD.name,
        expected_s: stages::places::run_s,
        writes_bytes: stages::places::run_bytes,
        run: stages::places::capture,
    },
    Stage {
        name: "predict",
        artifact: artifacts::PREDICTED.name,
        expected_s: |study| 4.0 * (1.0 + study.scenario.len() as f64),
        writes_bytes: |_| 0,
        run: stages::places::predict,
    },
    Stage {
        name: "measure",
        artifact: artifacts::PLACES.name,
        expected_s: |study| stages::places::runs(study) as f64 * stages::places::run_s(study),
        writes_bytes: |study| stages::places::runs(study) * stages::places::run_bytes(study),
        run: stages::places::measure,
    },
    REPORT,
];

const REPORT: Stage = Stage {
    name: "report",
    artifact: run_dir::RESULT,
    expected_s: |_| 1.0,
    writes_bytes: |_| 0,
    run: report,
};

/// The stages of a study.
fn stages(study: &StudyFile) -> &'static [Stage] {
    if study.is_run_on_devices() { RUN_ON_DEVICES } else { SIMULATED }
}

/// The plan of a study: what `--dry-run` prints.
pub fn plan(study: &StudyFile) -> Vec<Step> {
    let step = |stage: &Stage| Step {
        name: stage.name.to_owned(),
        expected_s: (stage.expected_s)(study),
        writes_bytes: (stage.writes_bytes)(study),
    };
    stages(study).iter().map(step).collect()
}

/// Runs a study, or goes on with the one that was interrupted.
pub fn run(study: &StudyFile, options: &Options, live: &dyn Sink) -> Result<Ended, Error> {
    for scenario in &study.scenario {
        for name in std::iter::once(&scenario.profile).chain(&scenario.log) {
            profiles::read_device(name)?;
        }
    }
    let config = study.to_toml();
    let (run, resumed) = RunDir::open_or_create(&options.runs, &study.study.name, &config)?;
    let log = RunLog::open(&run, live)?;
    log.announce(Event::Plan { stage: "study".into(), steps: plan(study) });
    if !resumed {
        enough_space(study, run.path())?;
    }
    // Also where a run was killed before it came that far.
    if !run.has(MACHINE.name) {
        run.save(&MACHINE, &machine::fingerprint(run.path()))?;
    }
    let stages = stages(study);
    let stopped_in = walk(stages, &run, study, &log)?;
    let interrupted = !run.has(run_dir::RESULT);
    let kept = stages.iter().filter(|stage| run.has(stage.artifact)).map(|stage| stage.name);
    Ok(Ended { kept: kept.collect(), path: run.path().into(), interrupted, resumed, stopped_in })
}

/// Runs the stages that are not done; the one in which the user stopped it.
fn walk(
    stages: &[Stage],
    run: &RunDir,
    study: &StudyFile,
    log: &RunLog<'_>,
) -> Result<Option<&'static str>, Error> {
    for stage in stages {
        if run.has(stage.artifact) {
            continue;
        }
        if log.cancelled() {
            break;
        }
        let expected_s = (stage.expected_s)(study);
        run_stage(stage, &Context { run, stage: stage.name, expected_s, study, log })?;
        if !run.has(stage.artifact) {
            return Ok(Some(stage.name));
        }
    }
    Ok(None)
}

fn run_stage(stage: &Stage, context: &Context<'_>) -> Result<(), Error> {
    let started = Instant::now();
    context.progress(stage.name, 0.0, "starting", Some(context.expected_s));
    let done = (stage.run)(context);
    let ending = match &done {
        Err(_) => Ending::Failed,
        Ok(()) if context.run.has(stage.artifact) => Ending::Complete,
        Ok(()) => Ending::Interrupted,
    };
    let elapsed_s = started.elapsed().as_secs_f64();
    context.log.forget_warnings();
    context.log.announce(Event::Done { stage: stage.name.into(), elapsed_s, ending });
    done
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
fn warnings(run: &RunDir, study: &StudyFile) -> Vec<Warning> {
    // The last stage has none: its artifact holds those of all others.
    let read = |stage: &Stage| {
        run.read_json::<Vec<Warning>>(&warnings_name(stage.name)).unwrap_or_default()
    };
    stages(study).iter().flat_map(read).collect()
}

/// The last stage: the page, then the result, whose presence says that the run is complete.
fn report(context: &Context<'_>) -> Result<(), Error> {
    let warnings = warnings(context.run, context.study);
    let result = StudyResult::gather(context.run, context.study, warnings)?;
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

#[cfg(test)]
mod tests {
    use events::Quiet;

    use super::*;
    use crate::run_dir::Artifact;
    use crate::run_dir::fault;

    /// Stages that take no time: each warns twice and writes what a real one does, an intermediate
    /// file and its artifact.
    const QUICK: &[Stage] = &[quick("one", "one.json"), quick("two", "two.json")];

    const fn quick(name: &'static str, artifact: &'static str) -> Stage {
        let run = |context: &Context<'_>| {
            let stage = context.stage;
            context.warn(Warning::new(stage, "first", format!("{stage} warns")));
            context.warn(Warning::new(stage, "first", format!("{stage} warns again")));
            context.run.write_json(&format!("{stage}-part.json"), &stage)?;
            let name = if stage == "one" { "one.json" } else { "two.json" };
            context.finish(&Artifact::new(name), &format!("{stage} is done"))
        };
        Stage { name, artifact, expected_s: |_| 0.0, writes_bytes: |_| 0, run }
    }

    /// One life of a study's process: begins or goes on, to its end or to its death.
    fn live(runs: &Path) -> Result<PathBuf, Error> {
        let study = StudyFile::parse("[study]\nname = 's'\n", Path::new("s.toml"))?;
        let (run, _) = RunDir::open_or_create(runs, "s", "config")?;
        let log = RunLog::open(&run, &Quiet)?;
        if !run.has(MACHINE.name) {
            run.write_json(MACHINE.name, &"this one")?;
        }
        assert_eq!(walk(QUICK, &run, &study, &log)?, None);
        run.write(run_dir::RESULT, b"{}")?;
        Ok(run.path().to_owned())
    }

    /// What a run leaves, but for the stream of events, which tells of every life.
    fn left(path: &Path) -> Vec<(String, Vec<u8>)> {
        let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = entries
            .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path))
            .filter(|(name, _)| name != run_dir::EVENTS)
            .map(|(name, path)| (name, std::fs::read(path).unwrap()))
            .collect();
        files.sort();
        files
    }

    #[test]
    fn a_run_that_is_killed_anywhere_ends_as_one_that_was_not() {
        let whole = tempfile::tempdir().unwrap();
        let expected = left(&live(whole.path()).unwrap());
        assert!(expected.iter().any(|(name, text)| {
            name == "warnings-one.json" && String::from_utf8_lossy(text).contains("1 more like it")
        }));
        let mut deaths = 0;
        for point in 0.. {
            let runs = tempfile::tempdir().unwrap();
            fault::after(Some(point));
            let died = live(runs.path()).is_err();
            fault::after(None);
            if !died {
                break;
            }
            deaths += 1;
            // Killed between the last name and its sync it is complete already.
            let first = runs.path().join("s-001");
            let complete = first.join(run_dir::RESULT).exists();
            let path = if complete { first } else { live(runs.path()).unwrap() };
            assert!(path.ends_with("s-001"), "killed at {point}: {}", path.display());
            assert_eq!(left(&path), expected, "killed at {point}");
        }
        // Five points in each of nine writes: study, machine, two stages of three, result.
        assert_eq!(deaths, 45);
    }
}
