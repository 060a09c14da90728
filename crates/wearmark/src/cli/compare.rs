//! `wearmark compare` and `wearmark trend`

use std::path::PathBuf;

use clap::Args;

/// `wearmark compare`
#[derive(Debug, Args)]
pub struct Compare {
    /// The state before: a file that a command kept, a run directory, or a directory of several
    ///
    /// Files are those of 'oltp run --save', 'probe', 'sim --json', 'predict --json', result.json
    /// of a study, and traces that hold response times. The .json files and run directories in a
    /// directory are runs of one kind: a baseline. From three runs a side on they are compared with
    /// each other; of fewer, the scatter within them is asked. Simulations have no scatter: one of
    /// each side is enough.
    pub old: PathBuf,
    /// The state after
    pub new: PathBuf,
    /// Run both states in turns until there is a verdict, so many pairs at most
    ///
    /// OLD and NEW are then directories, created where they are absent, that keep a file for each
    /// run. What is there is not run again: a repetition that was stopped goes on, and a new
    /// question takes new directories. Looks at the figures are few and their intervals wider than
    /// 95 %, so that stopping at the first verdict is no way to find one that is not true.
    #[arg(long, value_name = "PAIRS", requires = "run",
          value_parser = clap::value_parser!(u32).range(1..=999))]
    pub repeat_until: Option<u32>,
    /// The commands that make a run of the old and of the new state
    ///
    /// They run in a shell and write their result to the file that $WEARMARK_RESULT names, such as
    /// 'wearmark oltp run DIR --save "$WEARMARK_RESULT"'.
    #[arg(long, num_args = 2, value_names = ["OLD_COMMAND", "NEW_COMMAND"],
          requires = "repeat_until")]
    pub run: Vec<String>,
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

/// `wearmark trend`
#[derive(Debug, Args)]
pub struct Trend {
    /// A directory of results of one kind
    ///
    /// Its .json files and run directories, as 'wearmark compare' takes them, in the order of their
    /// names: numbers in a name count as numbers, so that a date or the number of a build orders
    /// them.
    pub directory: PathBuf,
    /// Write a page, one file that any browser opens
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
