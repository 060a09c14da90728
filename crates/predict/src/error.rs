//! Why a run cannot be used for a prediction.

use events::Hint;
use thiserror::Error;
use units::Bytes;

/// Why nothing can be predicted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The capture lacks what every prediction needs.
    #[error("the capture lacks {0}")]
    Lacks(&'static str),
    /// A buffer that is smaller than the captured one.
    #[error("a buffer of {asked} is smaller than that of the capture, {captured}")]
    SmallerBuffer {
        /// What was asked.
        asked: Bytes,
        /// What the capture had.
        captured: Bytes,
    },
    /// No kind of transaction has that name.
    #[error("the capture has no transactions of the kind '{kind}'")]
    Kind {
        /// What was asked.
        kind: String,
        /// What there is.
        kinds: String,
    },
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
            Self::SmallerBuffer { .. } => Some(
                "what a smaller one would miss is not in the capture: capture with the smallest \
                 buffer that you want to ask about"
                    .to_owned(),
            ),
            Self::Kind { kinds, .. } => Some(format!("its kinds are {kinds}")),
            Self::Sim(error) => error.hint(),
        }
    }
}
