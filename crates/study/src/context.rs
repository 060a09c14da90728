//! What every stage of a study works with: the run directory, the study, events, cancellation.

use events::{Event, Sink, Warning};
use serde::Serialize;

use crate::Error;
use crate::file::StudyFile;
use crate::run_dir::{Artifact, RunDir, RunLog};

/// What every stage is given.
pub(crate) struct Context<'a> {
    /// The run directory.
    pub run: &'a RunDir,
    /// Name of the stage.
    pub stage: &'static str,
    /// Seconds that it takes about.
    pub expected_s: f64,
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

    /// Ends the stage with its artifact. Its warnings are stored first: once the artifact is there
    /// the stage never runs again, and they would be lost.
    pub fn finish<T: Serialize>(&self, artifact: &Artifact<T>, value: &T) -> Result<(), Error> {
        self.run.write_json(&warnings_name(self.stage), &collapse(self.log.warnings()))?;
        self.run.save(artifact, value)
    }

    /// Reports a warning.
    pub fn warn(&self, warning: Warning) {
        self.log.emit(Event::Warning(warning));
    }

    /// Reports progress of a stage of one step by the time that it took so far.
    pub fn progress_of(&self, doing: &str, elapsed_s: f64, expected_s: f64) {
        let done = (elapsed_s / expected_s).min(0.95);
        self.progress(self.stage, done, doing, Some((expected_s - elapsed_s).max(0.0)));
    }

    /// Reports progress of a stage that has none of its own.
    pub fn progress(&self, stage: &str, done: f64, doing: &str, eta_s: Option<f64>) {
        let (stage, doing) = (stage.to_owned(), doing.to_owned());
        self.log.emit(Event::Progress { stage, done, doing, eta_s });
    }
}

/// Where the warnings of a stage are, which live as long as its artifact.
pub(crate) fn warnings_name(stage: &str) -> String {
    format!("warnings-{stage}.json")
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
