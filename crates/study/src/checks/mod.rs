//! Checks in CI: any two results of one kind against each other, for people and for machines.
//!
//! [`read`] takes a file that a command kept (OLTP runs, measurements of a probe, `sim --json`,
//! `predict --json`, `result.json`), a trace with response times, a run directory, or a directory
//! of several of them: a baseline, whose files are runs of one kind. [`text`] has the forms in
//! which the verdicts leave: rows, Markdown, JUnit, CSV. [`repeat`](repeat()) makes runs until
//! there is a verdict. [`trend`](trend()) tells where the figures of many runs changed. The
//! arithmetic is in [`crate::verdict`].

mod figures;
#[cfg(test)]
mod fixtures;
mod read;
mod repeat;
mod text;
mod trend;

pub use read::{read, same_kind};
pub use repeat::{Repeat, Repeated, repeat};
pub use text::{CSV_HEADER, JUNIT_NAME, MARKDOWN_MARK, csv, headline, junit, markdown, rows};
pub use trend::{Level, Line, Trend, trend};
