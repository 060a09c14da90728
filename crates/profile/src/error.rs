//! Why a profile cannot be used.

use events::Hint;
use thiserror::Error;

/// A profile that cannot be used, with the place to look at.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a profile: not TOML, an unknown key, a missing one, a value of another kind.
    #[error("{path}:{line}: {cause}")]
    Syntax {
        /// The file, as the caller names it.
        path: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong there.
        cause: String,
    },
    /// The text is a profile, but of a device that cannot exist.
    #[error("{path}:{line}: {field}: {cause}")]
    Impossible {
        /// The file, as the caller names it.
        path: String,
        /// Line, from 1; 0 where the profile did not come from a text.
        line: usize,
        /// The field, as a TOML path: `device.read.random.base_us`.
        field: String,
        /// What is wrong with it.
        cause: String,
    },
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Syntax { .. } => "compare it with a shipped profile: the files in profiles/ \
                                    show every section and key"
                .to_owned(),
            Self::Impossible { field, .. } => {
                format!("correct {field}, or fit the profile again from a probe run")
            }
        })
    }
}
