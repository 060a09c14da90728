//! Why a flash device cannot be made.

use events::Hint;
use thiserror::Error;

/// What is wrong with a field: the path below `[device]` of a profile, and the cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The path of the field.
    pub field: &'static str,
    /// What is wrong with it.
    pub cause: String,
}

impl Flaw {
    /// `cause` makes `field` impossible.
    pub fn new(field: &'static str, cause: impl Into<String>) -> Self {
        Self { field, cause: cause.into() }
    }
}

/// Why a flash device cannot be made.
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
}

impl From<Flaw> for Error {
    fn from(flaw: Flaw) -> Self {
        Self::Impossible { field: flaw.field, cause: flaw.cause }
    }
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        let Self::Impossible { field, .. } = self;
        Some(format!("correct {field} of the device"))
    }
}
