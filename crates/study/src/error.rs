//! What can go wrong around a study, and what to do about it.

use std::path::{Path, PathBuf};

use events::Hint;
use thiserror::Error;

/// An error of a study or of one of its stages.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried: `read`, `create`, `rename`.
        action: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A study file is not what it should be.
    #[error(
        "{}{}: {cause}",
        path.display(),
        line.map(|line| format!(":{line}")).unwrap_or_default()
    )]
    StudyFile {
        /// The file.
        path: PathBuf,
        /// Its line, where known.
        line: Option<usize>,
        /// What is wrong.
        cause: String,
    },
    /// A saved artifact cannot be understood.
    #[error("{}: not a valid {what}: {cause}", path.display())]
    Artifact {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What is wrong.
        cause: String,
    },
    /// Another process works in the run directory.
    #[error("{}: another wearmark process is working in this run directory", path.display())]
    Busy {
        /// The run directory.
        path: PathBuf,
    },
    /// No shipped profile and no file of that name.
    #[error("no profile '{name}': neither a shipped one nor a file")]
    NoProfile {
        /// What was asked for.
        name: String,
    },
    /// A profile is not valid.
    #[error(transparent)]
    Model(#[from] profile::Error),
    /// A trace cannot be simulated on a device.
    #[error("on {profile}: {source}")]
    OnDevice {
        /// The profile's name.
        profile: String,
        /// Why.
        source: sim::Error,
    },
    /// A warm-up that leaves nothing to count.
    #[error(
        "a warm-up of {} leaves nothing of a trace of {}",
        report::format::duration_ns(*warm_up_ns as f64),
        report::format::duration_ns(*span_ns as f64)
    )]
    WarmUpTooLong {
        /// What was asked, ns.
        warm_up_ns: u64,
        /// From the start of the trace to its last request, ns.
        span_ns: u64,
    },
    /// A model that this machine has no memory for.
    #[error(
        "{profile}: its model takes about {} of memory, and {} are free",
        report::format::bytes(needed.0 as f64),
        report::format::bytes(free.0 as f64)
    )]
    NoMemory {
        /// The profile's name.
        profile: String,
        /// What it takes.
        needed: units::Bytes,
        /// What there is.
        free: units::Bytes,
    },
    /// A modelled device that is smaller than what is to be probed of it.
    #[error(
        "{profile} holds {}, less than the {} to be measured",
        report::format::bytes(capacity.0 as f64),
        report::format::bytes(range.0 as f64)
    )]
    RangeBeyondDevice {
        /// The profile's name.
        profile: String,
        /// What was asked.
        range: units::Bytes,
        /// What it holds.
        capacity: units::Bytes,
    },
    /// A trace without times, where those that were recorded are asked for.
    #[error("the trace holds no response times to compare with")]
    NothingRecorded,
    /// A host stack cannot be used.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// A simulation could not run.
    #[error(transparent)]
    Sim(#[from] sim::Error),
    /// Nothing can be predicted from a capture.
    #[error(transparent)]
    Predict(#[from] predict::Error),
    /// No advice follows from the figures.
    #[error(transparent)]
    Advise(#[from] advise::Error),
    /// A trace could not be read or written.
    #[error(transparent)]
    Trace(#[from] formats::Error),
    /// The disk could not be measured, or a replay failed.
    #[error(transparent)]
    Probe(#[from] probe::Error),
    /// Nothing could be fitted to the measurements.
    #[error(transparent)]
    Fit(#[from] fit::FitError),
    /// The database load failed.
    #[error(transparent)]
    Oltp(#[from] oltp::Error),
    /// A server could not be created, run or asked.
    #[error(transparent)]
    Dbms(#[from] dbms::Error),
    /// A device or a file system could not be put under a directory.
    #[error(transparent)]
    Emulate(#[from] emulate::Error),
    /// A server's I/O is not seen through SQLite's VFS.
    #[error("the I/O of a database server cannot be captured through SQLite's file system layer")]
    NotEmbedded,
    /// A database whose log holds transactions that it lacks itself.
    #[error("{}: is not empty: the database was not closed, or is open now", path.display())]
    UnfinishedLog {
        /// The log or journal.
        path: PathBuf,
    },
    /// A database that a modelled device has no room for.
    #[error("{}: has {needed}, more than the device's {capacity}", path.display())]
    LargerThanDevice {
        /// The database.
        path: PathBuf,
        /// Its size.
        needed: units::Bytes,
        /// The device's.
        capacity: units::Bytes,
    },
    /// The capture failed.
    #[error(transparent)]
    Capture(#[from] capture::Error),
    /// A directory that is to be ours holds something.
    #[error("{}: is not empty", path.display())]
    NotEmpty {
        /// Which.
        path: PathBuf,
    },
    /// A step that runs in a process of its own failed.
    #[error("{step}: {cause}")]
    Step {
        /// What was being done.
        step: String,
        /// What it said.
        cause: String,
    },
    /// Runs of two states that would be kept in one place.
    #[error("{}: it cannot keep the runs of both states", path.display())]
    OneDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// A command of a repeated comparison gave no result.
    #[error("{command}: {cause}")]
    Repeated {
        /// The command.
        command: String,
        /// How it ended.
        cause: String,
    },
    /// Not enough room.
    #[error(
        "{}: {free} free, but the study needs about {needed}",
        path.display()
    )]
    NoSpace {
        /// Where.
        path: PathBuf,
        /// Free bytes.
        free: units::Bytes,
        /// Needed bytes.
        needed: units::Bytes,
    },
    /// Results that do not compare.
    #[error("the files hold different things: {old} and {new}")]
    Unlike {
        /// What the first ones are of.
        old: String,
        /// What the others are of.
        new: String,
    },
    /// A fleet's plan or what it names is not as it must be.
    #[error("{}: {cause}", path.display())]
    Fleet {
        /// The plan, or the trace that it names.
        path: PathBuf,
        /// What is wrong.
        cause: String,
        /// What to do.
        hint: String,
    },
}

impl Error {
    /// For `map_err` on file operations.
    pub fn io(
        path: impl Into<PathBuf>,
        action: &'static str,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, action, source }
    }
}

const NO_MEMORY_HINT: &str = "a slice of the device with all of its dies answers alike: set a \
                              smaller device.geometry.blocks_per_plane, and scale what the trace \
                              touches";
const REPEATED_HINT: &str = "run the command by itself; it must end with 0 and write a result to \
                             the file that $WEARMARK_RESULT names, as 'wearmark oltp run DIR \
                             --save \"$WEARMARK_RESULT\"' does";

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                "free some space or name another place with --runs DIR; what was done is kept and \
                 the same command goes on from there"
            }
            Self::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                "choose a directory that you may write to, with --runs DIR"
            }
            Self::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                "check the path; 'wearmark study run quickstart' uses the study that comes with it"
            }
            Self::Io { .. } => return None,
            Self::NoProfile { name } => return Some(other_profiles(name)),
            Self::Model(error) => return error.hint(),
            Self::Host(error) => return error.hint(),
            Self::Sim(error) | Self::OnDevice { source: error, .. } => return error.hint(),
            Self::Predict(error) => return error.hint(),
            Self::Advise(error) => return error.hint(),
            Self::Trace(error) => return error.hint(),
            Self::Probe(error) => return error.hint(),
            Self::Fit(error) => return error.hint(),
            Self::Oltp(error) => return error.hint(),
            Self::Dbms(error) => return error.hint(),
            Self::Emulate(error) => return error.hint(),
            Self::Capture(error) => return error.hint(),
            Self::Unlike { .. } => {
                "compare results of one kind; of OLTP runs also of one workload and one access: \
                 'oltp run --repeat 5 --save FILE' makes them"
            }
            Self::Fleet { hint, .. } => return Some(hint.clone()),
            Self::StudyFile { .. } => {
                "compare with 'wearmark study show quickstart', which prints a complete study file"
            }
            // Only a run directory is ours: elsewhere the file may be anything, and is not to go.
            Self::Artifact { path, .. } if is_in_a_run(path) => {
                "remove that file and run the same command again: the stage that writes it is \
                 redone"
            }
            Self::Artifact { .. } => {
                "name a file that wearmark wrote, such as the measurements.json of 'wearmark \
                 probe' or what 'wearmark oltp run --save FILE' keeps"
            }
            Self::RangeBeyondDevice { .. } => "choose a smaller --range",
            Self::NoMemory { .. } => NO_MEMORY_HINT,
            Self::NothingRecorded => {
                "blktrace, MSR, SYSTOR'17, vscsi v2, DiskSim's drives and captures of wearmark do"
            }
            Self::WarmUpTooLong { .. } => "choose a shorter --warm-up, or a longer trace",
            Self::NotEmbedded => "use 'wearmark oltp run --dbms', which watches the server itself",
            Self::UnfinishedLog { .. } => {
                "close what has the database open; 'wearmark oltp run' on it once, without --on, \
                 takes the log over"
            }
            Self::LargerThanDevice { .. } => {
                "name a larger device: 'wearmark profile list' shows the capacities"
            }
            Self::Busy { .. } => "wait for it, or name another place with --runs DIR",
            Self::NotEmpty { .. } => "name a directory that is empty or absent",
            Self::Step { .. } => {
                "run that step by itself, 'wearmark oltp run' or 'wearmark emulate', to see all of \
                 it"
            }
            Self::Repeated { .. } => REPEATED_HINT,
            Self::OneDirectory { .. } => "name two directories, one for each state",
            Self::NoSpace { .. } => {
                "free some space, name another disk with --runs DIR, or lower warehouses and range \
                 in the study file"
            }
        };
        Some(text.to_owned())
    }
}

/// Whether a file lies in a run directory.
fn is_in_a_run(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.join(crate::run_dir::CONFIG).is_file())
}

/// What to write instead of a profile that does not exist.
fn other_profiles(name: &str) -> String {
    let list = "'wearmark profile list' shows the shipped ones; a file needs its path";
    let near = profile::shipped()
        .iter()
        .map(|(shipped, _)| (strsim::normalized_damerau_levenshtein(name, shipped), *shipped))
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .filter(|(similarity, _)| *similarity > 0.6);
    near.map_or_else(|| list.to_owned(), |(_, near)| format!("did you mean '{near}'? {list}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_that_is_nearly_named_is_offered() {
        let hint = |name: &str| Error::NoProfile { name: name.to_owned() }.hint().unwrap();
        assert!(hint("intl-p3700").starts_with("did you mean 'intel-p3700'?"));
        assert!(hint("/dev/sda").starts_with("'wearmark profile list'"));
    }

    #[test]
    fn only_files_of_a_run_are_advised_to_be_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fit.json");
        let hint = || {
            let cause = String::new();
            Error::Artifact { path: path.clone(), what: "", cause }.hint().unwrap()
        };
        assert!(!hint().contains("remove"), "{}", hint());
        std::fs::write(dir.path().join("study.toml"), "").unwrap();
        assert!(hint().starts_with("remove that file"), "{}", hint());
    }
}
