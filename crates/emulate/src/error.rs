//! What can go wrong with an emulated device, and what the user can do about it.

use std::path::{Path, PathBuf};

use events::Hint;
use thiserror::Error;
use units::Bytes;

/// Why a device could not be served.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused something.
    #[error("{path}: {doing}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// Its answer.
        source: std::io::Error,
    },
    /// This machine lacks something.
    #[error("{cause}")]
    Unavailable {
        /// What.
        cause: String,
        /// How to get it.
        hint: String,
    },
    /// A running emulation does not do what it was told.
    #[error("{cause}")]
    Refused {
        /// Why.
        cause: String,
    },
    /// The files are larger than the device.
    #[error("{path}: its files take {needed}, the device '{device}' holds {capacity}")]
    DoesNotFit {
        /// The directory.
        path: PathBuf,
        /// The device.
        device: String,
        /// Size of the files.
        needed: Bytes,
        /// Capacity of the device.
        capacity: Bytes,
    },
}

impl Error {
    pub(crate) fn io(path: &Path, doing: &'static str, source: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), doing, source }
    }
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Io { source, .. } => match source.kind() {
                std::io::ErrorKind::NotFound => Some("create the directory first".to_owned()),
                std::io::ErrorKind::PermissionDenied => {
                    Some("'wearmark doctor' shows what this user may do here".to_owned())
                }
                _ => None,
            },
            Self::Unavailable { hint, .. } => Some(hint.clone()),
            Self::Refused { .. } => {
                Some("'wearmark emulate set --help' shows what can be set".to_owned())
            }
            Self::DoesNotFit { .. } => {
                Some("choose a profile of a larger device, or a smaller database".to_owned())
            }
        }
    }
}
