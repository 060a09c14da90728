//! Why a host stack cannot be used.

use events::Hint;
use thiserror::Error;
use units::Nanos;

use crate::volume::Unfit;

/// A stack that cannot be used, with the place to look at.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a stack: not TOML, an unknown key, a missing one, a value of another kind.
    #[error("{path}:{line}: {cause}")]
    Syntax {
        /// The file, as the caller names it.
        path: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong there.
        cause: String,
    },
    /// The text is a stack, but one that cannot exist.
    #[error("{path}:{line}: {field}: {cause}")]
    Impossible {
        /// The file, as the caller names it.
        path: String,
        /// Line, from 1.
        line: usize,
        /// The field, as a TOML path: `page_cache.memory`.
        field: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The devices make no such volume.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// The file system has no space left for what the trace writes.
    #[error("at {at} of the trace: {cause}")]
    Full {
        /// When.
        at: Nanos,
        /// What is in the way.
        cause: String,
    },
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Syntax { .. } => {
                "a stack has [file_system] with a kind, and [page_cache] unless \
                                    all I/O is direct; docs/guide/host-stack.md shows every key"
                    .to_owned()
            }
            Self::Impossible { field, .. } => format!("correct {field}"),
            Self::Unfit(Unfit { field, .. }) => format!("correct {field}, or take other devices"),
            Self::Full { .. } => "give file_system.capacity more, let [file_system.cleaner] keep \
                                  up, or take a shorter part of the trace"
                .to_owned(),
        })
    }
}
