//! Why a capture could not start or end.

use std::path::PathBuf;

use events::Hint;
use thiserror::Error;

/// What went wrong.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// SQLite did not take our VFS.
    #[error("SQLite refused the VFS '{vfs}' (result code {code})")]
    Register {
        /// Its name.
        vfs: &'static str,
        /// SQLite's result code.
        code: i32,
    },
    /// A session is running already: there is one VFS per process.
    #[error("a capture session is already active in this process")]
    SessionActive,
    /// A path could not be used.
    #[error("{path}: {what}: {source}")]
    Path {
        /// The path.
        path: PathBuf,
        /// What was being done with it, a few words.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// What was to be captured cannot be found.
    #[error("{what}: {cause}")]
    Target {
        /// What was looked for.
        what: String,
        /// What is in the way.
        cause: String,
        /// What to do about it.
        hint: String,
    },
    /// A kernel file does not look as documented.
    #[error("{path}: {cause}")]
    Kernel {
        /// The file.
        path: PathBuf,
        /// What is unexpected about it.
        cause: String,
    },
}

impl Error {
    /// A failed action on a path.
    pub(crate) fn path(
        path: impl Into<PathBuf>,
        what: &'static str,
        source: impl Into<std::io::Error>,
    ) -> Self {
        Self::Path { path: path.into(), what, source: source.into() }
    }
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Register { .. } => "Check that the linked SQLite has its 'unix' VFS.".to_owned(),
            Self::SessionActive => "Finish the running session before starting another.".to_owned(),
            Self::Path { path, .. } => {
                format!("Check that {} exists and is writable.", path.display())
            }
            Self::Target { hint, .. } => hint.clone(),
            Self::Kernel { .. } => {
                "Run 'wearmark doctor' to see what this kernel offers.".to_owned()
            }
        })
    }
}
