//! Why a capture by the kernel is not available here.

use events::Hint;
use thiserror::Error;

/// Why the kernel does not let us watch here; a normal result on most machines.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct Unavailable {
    /// What is in the way, one sentence.
    pub reason: String,
    /// What would make it available, one sentence.
    pub remedy: String,
}

impl Hint for Unavailable {
    fn hint(&self) -> Option<String> {
        Some(self.remedy.clone())
    }
}

impl Unavailable {
    pub(crate) fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: remedy.into() }
    }
}
