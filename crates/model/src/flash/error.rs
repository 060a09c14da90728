//! Why a flash device cannot be made or restored.

use events::Hint;
use thiserror::Error;

/// What is wrong with a field: the path below `[device]` of a profile, and the cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) field: &'static str,
    pub(crate) cause: String,
}

impl Flaw {
    pub(crate) fn new(field: &'static str, cause: impl Into<String>) -> Self {
        Self { field, cause: cause.into() }
    }
}

/// Why a flash device cannot be made or restored.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// No such device can exist.
    #[error("{field}: {cause}")]
    Impossible {
        /// The parameter, as a profile calls it.
        field: &'static str,
        /// What is wrong with it.
        cause: String,
    },
    /// The snapshot is cut short or its bytes changed.
    #[error("the snapshot is damaged at byte {offset_bytes}")]
    SnapshotCorrupt {
        /// Where, from its start.
        offset_bytes: usize,
    },
    /// It was made by another version of this format, or is none.
    #[error("this is no snapshot of a flash device, or one of another version")]
    SnapshotVersion,
    /// It was made of a device with other parameters.
    #[error("the snapshot is of a device with other parameters")]
    SnapshotOfAnother,
}

impl From<Flaw> for Error {
    fn from(flaw: Flaw) -> Self {
        Self::Impossible { field: flaw.field, cause: flaw.cause }
    }
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Impossible { field, .. } => format!("correct {field} of the device"),
            Self::SnapshotCorrupt { .. } | Self::SnapshotVersion => {
                "make the snapshot again from the same profile and precondition".to_owned()
            }
            Self::SnapshotOfAnother => {
                "restore it with the profile and seed that it was made with".to_owned()
            }
        })
    }
}
