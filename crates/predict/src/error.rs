//! Why a run cannot be used for a prediction.

use events::Hint;
use thiserror::Error;

/// Why nothing can be predicted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The capture lacks what every prediction needs.
    #[error("the capture lacks {0}")]
    Lacks(&'static str),
    /// What was asked cannot be simulated.
    #[error(transparent)]
    Sim(#[from] sim::Error),
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Lacks(_) => Some(
                "capture a run on a private server as root: wearmark oltp run DIR --dbms \
                 postgresql --trace PREFIX"
                    .to_owned(),
            ),
            Self::Sim(error) => error.hint(),
        }
    }
}
