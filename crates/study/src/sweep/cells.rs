//! The commands of a sweep, in processes of their own.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use events::{Ending, Event, Sink, Step};
use serde_json::Value;

use super::file::{Figure, SweepFile};
use super::select::quantile;
use super::{Cell, Settings};
use crate::Error;
use crate::prove::{PARENT, Running, program};
use crate::run_dir::{RunDir, RunLog};

const STAGE: &str = "cells";
/// Says that what is done once is done.
const ONCE: &str = "once.json";
/// Where it is done.
const ONCE_PLACE: &str = "once";
/// Pace of looking whether a command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs the cells that are not done, and gives those that are, in their order: all of them unless
/// the user stopped it.
pub(super) fn run(
    file: &SweepFile,
    combinations: &[Settings],
    run: &RunDir,
    log: &RunLog<'_>,
) -> Result<Vec<Cell>, Error> {
    let step = Step { name: STAGE.to_owned(), expected_s: 0.0, writes_bytes: 0 };
    log.announce(Event::Plan { stage: "study".to_owned(), steps: vec![step] });
    let place = std::path::absolute(run.path()).map_err(Error::io(run.path(), "find"))?;
    let work = Work {
        file,
        combinations,
        run,
        log,
        program: program()?,
        place,
        next: AtomicUsize::new(0),
        over: AtomicUsize::new(0),
        failed: Mutex::new(None),
        began: Instant::now(),
    };
    let ended = work.all();
    let ending = match (&ended, log.cancelled()) {
        (Err(_), _) => Ending::Failed,
        (Ok(()), true) => Ending::Interrupted,
        (Ok(()), false) => Ending::Complete,
    };
    let elapsed_s = work.began.elapsed().as_secs_f64();
    log.announce(Event::Done { stage: STAGE.to_owned(), elapsed_s, ending });
    ended?;
    let done = (0..combinations.len()).filter(|at| run.has(&name(*at)));
    done.map(|at| run.read_json(&name(at))).collect()
}

/// The artifact of a cell.
fn name(at: usize) -> String {
    format!("cell-{at:03}.json")
}

struct Work<'a> {
    file: &'a SweepFile,
    combinations: &'a [Settings],
    run: &'a RunDir,
    log: &'a RunLog<'a>,
    program: PathBuf,
    /// The run directory, from the root.
    place: PathBuf,
    next: AtomicUsize,
    over: AtomicUsize,
    failed: Mutex<Option<Error>>,
    began: Instant,
}

impl Work<'_> {
    fn all(&self) -> Result<(), Error> {
        if !self.run.has(ONCE) {
            self.once()?;
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..threads.min(self.combinations.len()) {
                scope.spawn(|| {
                    if let Err(error) = self.thread() {
                        self.failed.lock().expect("no thread panicked").get_or_insert(error);
                    }
                });
            }
        });
        let failed = self.failed.lock().expect("no thread panicked").take();
        failed.map_or(Ok(()), Err)
    }

    fn once(&self) -> Result<(), Error> {
        let once = self.run.join(ONCE_PLACE);
        self.run.remove(ONCE_PLACE)?;
        fs::create_dir(&once).map_err(Error::io(&once, "create"))?;
        for command in &self.file.sweep.once {
            self.tell(command);
            if self.command(command, &Settings::new(), &once)?.is_none() {
                return Ok(());
            }
        }
        self.run.write(ONCE, b"{}")
    }

    fn thread(&self) -> Result<(), Error> {
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let has_failed = || self.failed.lock().expect("no thread panicked").is_some();
            let Some(settings) = self.combinations.get(at) else { return Ok(()) };
            if self.log.cancelled() || has_failed() || !self.run.has(ONCE) {
                return Ok(());
            }
            if !self.run.has(&name(at)) {
                let Some(figures) = self.cell(at, settings)? else { return Ok(()) };
                let cell = Cell { settings: settings.clone(), figures };
                self.run.write_json(&name(at), &cell)?;
            }
            self.over.fetch_add(1, Ordering::Relaxed);
            self.tell(&settings.values().cloned().collect::<Vec<_>>().join(", "));
        }
    }

    fn tell(&self, doing: &str) {
        let done = self.over.load(Ordering::Relaxed) as f64 / self.combinations.len() as f64;
        let elapsed_s = self.began.elapsed().as_secs_f64();
        let eta_s = (done > 0.0).then(|| elapsed_s * (1.0 - done) / done);
        let (stage, doing) = (STAGE.to_owned(), doing.to_owned());
        self.log.emit(Event::Progress { stage, done, doing, eta_s });
    }

    /// The figures of a cell; `None` where the user stopped it.
    fn cell(&self, at: usize, settings: &Settings) -> Result<Option<BTreeMap<String, f64>>, Error> {
        let folder = format!("cell-{at:03}");
        let place = self.place.join(&folder);
        self.run.remove(&folder)?;
        fs::create_dir(&place).map_err(Error::io(&place, "create"))?;
        for (name, text) in &self.file.sweep.files {
            let path = place.join(name);
            let text = self.filled(text, settings, &place);
            fs::write(&path, text).map_err(Error::io(&path, "write"))?;
        }
        for command in &self.file.sweep.before {
            if self.command(command, settings, &place)?.is_none() {
                return Ok(None);
            }
        }
        let command = &self.file.sweep.run;
        let Some(printed) = self.command(command, settings, &place)? else { return Ok(None) };
        self.run.remove(&folder)?;
        let bad = |cause: String| Error::Step { step: command.clone(), cause };
        let printed: Value = serde_json::from_str(&printed)
            .map_err(|error| bad(format!("it printed no JSON: {error}")))?;
        let missing = |figure: &Figure| {
            bad(format!("it printed no number at '{}' ({})", figure.at.text(), figure.name))
        };
        let mut figures = BTreeMap::new();
        for figure in &self.file.figure {
            let value = value_of(figure, &printed).ok_or_else(|| missing(figure))?;
            figures.insert(figure.name.clone(), value);
        }
        Ok(Some(figures))
    }

    /// A text with the values in their places.
    fn filled(&self, text: &str, settings: &Settings, place: &Path) -> String {
        let once = self.place.join(ONCE_PLACE);
        let mut text = text.replace("{once}", &once.display().to_string());
        text = text.replace("{dir}", &place.display().to_string());
        for (name, value) in settings {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    }

    /// What a command prints as JSON; `None` where the user stopped it.
    fn command(
        &self,
        command: &str,
        settings: &Settings,
        place: &Path,
    ) -> Result<Option<String>, Error> {
        let words = command.split_whitespace().map(|word| self.filled(word, settings, place));
        let said = place.join("said");
        let to = |name: &str| {
            let path = said.with_extension(name);
            File::create(&path).map_err(Error::io(path, "create"))
        };
        let mut started = Command::new(&self.program);
        started.args(words).args(["--json", "--quiet"]).current_dir(place).stdin(Stdio::null());
        started.env(PARENT, std::process::id().to_string());
        started.stdout(to("out")?).stderr(to("err")?);
        let mut step = Running(started.spawn().map_err(Error::io(self.program.clone(), "start"))?);
        let status = loop {
            match step.0.try_wait().map_err(Error::io(self.program.clone(), "wait for"))? {
                Some(status) => break status,
                None if self.log.cancelled() => return Ok(None),
                None => std::thread::sleep(LOOK_EVERY),
            }
        };
        let read = |name: &str| fs::read_to_string(said.with_extension(name)).unwrap_or_default();
        if !status.success() {
            let told = read("err");
            let error = told.lines().filter_map(|line| line.strip_prefix("error: ")).next_back();
            let cause = error.unwrap_or("it ended early").to_owned();
            return Err(Error::Step { step: command.to_owned(), cause });
        }
        Ok(Some(read("out")))
    }
}

/// A figure of what a command printed.
fn value_of(figure: &Figure, printed: &Value) -> Option<f64> {
    let found = figure.at.find(printed)?;
    let value = match figure.quantile {
        Some(share) => quantile(found, share)?,
        None => found.as_f64()?,
    };
    let per = match &figure.per {
        Some(per) => per.find(printed)?.as_f64()?,
        None => 1.0,
    };
    Some(value / per * figure.times).filter(|value| value.is_finite())
}
