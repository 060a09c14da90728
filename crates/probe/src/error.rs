//! Why a probe or replay run cannot go on.

use thiserror::Error;

/// What ends a run. What was measured before it was handed to the caller cell by cell.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The target may not be used, or did not do what it was asked to.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A cell that cannot be run.
    #[error("impossible cell: {why}")]
    BadCell {
        /// Why.
        why: String,
    },
    /// A trace that cannot be replayed.
    #[error("the trace cannot be replayed: {why}")]
    BadTrace {
        /// Why.
        why: String,
    },
}

impl events::Hint for Error {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Io(source) => source.hint(),
            Self::BadCell { .. } => Some("change the cell as the message says".to_owned()),
            Self::BadTrace { .. } => Some("check the trace with 'wearmark trace show'".to_owned()),
        }
    }
}
