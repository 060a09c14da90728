//! `wearmark compare`

use std::path::PathBuf;

use clap::Args;

/// `wearmark compare`
#[derive(Debug, Args)]
pub struct Compare {
    /// The state before: a file that a command kept, a run directory, or a directory of several
    ///
    /// Files are those of 'oltp run --save', 'probe', 'sim --json', 'predict --json' and
    /// result.json of a study. The .json files and run directories in a directory are runs of one
    /// kind: a baseline. From three runs a side on they are compared with each other; of fewer,
    /// the scatter within them is asked. Simulations have no scatter: one of each side is enough.
    pub old: PathBuf,
    /// The state after
    pub new: PathBuf,
    /// Share by which a figure may worsen
    #[arg(long, default_value_t = 0.05)]
    pub bound: f64,
    /// Write a page, one file that any browser opens
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the table as Markdown, for a comment on a pull request
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write a JUnit test report: what regressed failed, what is unproven was skipped
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the table as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}
