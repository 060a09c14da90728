//! Sweeps: one command over all combinations of some settings, as a study.
//!
//! A file ([`SweepFile`]) names a `wearmark` command with places for settings, the values of each,
//! which figures of its JSON to keep, a picture, and what is expected of the figures. Every
//! combination is a *cell* of its own: a process in a directory of its own, whose figures are an
//! artifact of the run directory, so that a sweep goes on where it was stopped. Cells run side by
//! side, one to a processor.
//!
//! Invariant: what a cell says depends on its settings alone, not on its neighbours. Tested on
//! small sweeps of the program itself (`crates/wearmark/tests`).

mod cells;
mod expect;
mod file;
mod page;
mod select;
mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use events::Sink;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::run_dir::{CONFIG, RESULT, RunDir, RunLog, read_json};

pub use expect::Expected;
use file::{Axis, Figure};
pub use file::{Better, MODERN, SweepFile};
pub use page::page;
pub use text::{expectations, table};

/// Version of the shape of a result.
const SCHEMA: u32 = 1;

/// The settings of a cell, by axis.
pub type Settings = BTreeMap<String, String>;

/// One cell: its settings and figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Value of each axis.
    pub settings: Settings,
    /// Value of each figure, in its unit.
    pub figures: BTreeMap<String, f64>,
}

/// An axis or a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Its name in the cells.
    pub name: String,
    /// What it is called.
    pub title: String,
    /// Its unit; empty for none.
    pub unit: String,
    /// Whether more of it is better, or less.
    pub better: Option<Better>,
}

impl Named {
    fn axis(axis: &Axis) -> Self {
        let (name, title) = (axis.name.clone(), axis.title().to_owned());
        Self { name, title, unit: String::new(), better: None }
    }

    fn figure(figure: &Figure) -> Self {
        let Figure { name, unit, better, .. } = figure.clone();
        Self { title: name.clone(), name, unit, better }
    }
}

/// What a sweep found: `result.json` of its run directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepResult {
    /// Version of this shape.
    pub schema: u32,
    /// Name of the study.
    pub sweep: String,
    /// The question in a line.
    pub title: String,
    /// What is asked, and of what.
    pub question: String,
    /// What one learns of it.
    pub learned: String,
    /// The program's version.
    pub wearmark: String,
    /// The axes.
    pub axes: Vec<Named>,
    /// The figures.
    pub figures: Vec<Named>,
    /// All cells, the last axis changing first.
    pub cells: Vec<Cell>,
    /// What was expected of them.
    pub expected: Vec<Expected>,
}

impl SweepResult {
    /// Whether everything is as expected.
    pub fn holds(&self) -> bool {
        self.expected.iter().all(|one| one.holds)
    }
}

/// How a sweep ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The run directory.
    pub path: PathBuf,
    /// Cells whose figures it holds, and all of them.
    pub done: (usize, usize),
    /// What was found, if all cells are done.
    pub result: Option<SweepResult>,
}

/// Runs a sweep, or goes on with the one that was interrupted.
///
/// # Errors
/// Where a command fails, or does not print a figure that is to be kept.
pub fn run(file: &SweepFile, text: &str, runs: &Path, live: &dyn Sink) -> Result<Ended, Error> {
    let (run, _) = RunDir::open_or_create(runs, &file.study.name, text)?;
    let log = RunLog::open(&run, live)?;
    let combinations = file.combinations();
    let cells = cells::run(file, &combinations, &run, &log)?;
    let done = (cells.len(), combinations.len());
    let path = run.path().to_owned();
    if cells.len() < combinations.len() {
        return Ok(Ended { path, done, result: None });
    }
    let expected = file.expect.iter().map(|one| expect::check(one, &cells)).collect();
    let result = SweepResult {
        schema: SCHEMA,
        sweep: file.study.name.clone(),
        title: file.study.title.clone(),
        question: file.sweep.question.trim().to_owned(),
        learned: file.sweep.learned.trim().to_owned(),
        axes: file.axis.iter().map(Named::axis).collect(),
        figures: file.figure.iter().map(Named::figure).collect(),
        wearmark: env!("CARGO_PKG_VERSION").to_owned(),
        cells,
        expected,
    };
    run.write("report.html", report::html(&page(file, &result)).as_bytes())?;
    run.write_json(RESULT, &result)?;
    Ok(Ended { path, done, result: Some(result) })
}

/// The sweep and its result in a run directory; `None` where it is one of something else.
///
/// # Errors
/// A file that cannot be read, or a run that is not complete.
pub fn read(run: &Path) -> Result<Option<(SweepFile, SweepResult)>, Error> {
    let Some((file, _)) = SweepFile::read(&run.join(CONFIG))? else { return Ok(None) };
    Ok(Some((file, read_json(&run.join(RESULT))?)))
}
