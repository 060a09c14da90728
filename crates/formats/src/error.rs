//! What can go wrong with a trace file, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use trace::Malformed;

/// The result of reading or writing a trace.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a trace could not be read or written. Every variant names the file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Its answer.
        source: io::Error,
    },
    /// A line of a text format is not what it should be.
    #[error("{}:{line}: {cause}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        cause: String,
        /// What a line of the format looks like.
        grammar: &'static str,
    },
    /// A record of a binary format is not what it should be.
    #[error("{}: byte {offset}: {cause}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Where the record starts, in the decompressed bytes.
        offset: u64,
        /// What is wrong with it.
        cause: String,
        /// What a record of the format looks like.
        grammar: &'static str,
    },
    /// The file could be of several formats, or is not of the one that was named.
    #[error("{}: {cause}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Why it was not read.
        cause: String,
        /// What to do.
        hint: String,
    },
    /// A file of our own format is cut off or changed.
    #[error("{}: damaged at byte {offset}: {cause}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where it was noticed.
        offset: u64,
        /// What is wrong there.
        cause: String,
    },
    /// A file of our own format ends early: its writer was killed, or it was copied in part.
    #[error(
        "{}: cut off at byte {offset}; its first {requests} requests are whole",
        path.display()
    )]
    CutOff {
        /// The file.
        path: PathBuf,
        /// Where the first part that is not whole begins.
        offset: u64,
        /// Requests in front of that.
        requests: u64,
    },
    /// The file is something else.
    #[error("{}: not a trace that wearmark can read: {cause}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it looks like instead.
        cause: String,
        /// What to do.
        hint: String,
    },
    /// The user stopped the reading.
    #[error("{}: stopped while it was read", path.display())]
    Interrupted {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a later version.
    #[error("{}: trace format {found}, but this build reads {known}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version it has.
        found: u32,
        /// The version that this build reads.
        known: u32,
    },
    /// The requests in the file, or those to be written, break the invariants of a trace.
    #[error("{}: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The broken invariant.
        source: Malformed,
    },
}

impl Error {
    /// Attaches a path to what the operating system said; for `map_err`.
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    pub(crate) fn damaged(path: &Path, offset: u64, cause: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), offset, cause: cause.into() }
    }
}

impl events::Hint for Error {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "check the path",
                io::ErrorKind::PermissionDenied => "check the permissions of the file",
                io::ErrorKind::StorageFull => "free some space or write to another file system",
                io::ErrorKind::WouldBlock => "wait until the other process has written it",
                _ => return None,
            },
            Self::Line { grammar, .. } | Self::Record { grammar, .. } => {
                return Some(format!("{grammar}; correct it, or read leniently to leave it out"));
            }
            Self::Format { hint, .. } | Self::Foreign { hint, .. } => return Some(hint.clone()),
            Self::Damaged { .. } => "copy the file again from where it was whole, or capture again",
            Self::CutOff { requests: 0, .. } => "copy the file again from where it was whole",
            Self::CutOff { .. } => {
                "add --lenient to take the requests that are whole, or copy the file again"
            }
            Self::Version { .. } => "read it with the version of wearmark that wrote it, or newer",
            Self::Interrupted { .. } => "run the same command again",
            Self::Malformed { .. } => {
                "sort the requests by due time and name every stream, then write it again"
            }
        };
        Some(hint.to_owned())
    }
}
