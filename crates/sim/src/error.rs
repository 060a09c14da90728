//! Why a trace cannot be simulated.

use events::Hint;
use thiserror::Error;

/// Why a trace cannot be simulated as asked.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The closed loop needs to know who issued what and how long it took.
    #[error("the trace does not say which actor issued each request and how long it took")]
    NotObserved,
    /// The trace breaks its own invariants.
    #[error("the trace is malformed: {0}")]
    Malformed(#[from] trace::Malformed),
    /// A system of terminals, processors, locks, log and storage that cannot exist.
    #[error("the transactions cannot be simulated: {0}")]
    Setup(String),
    /// A request does not fit on the device.
    #[error(
        "request {index} ends at byte {end}, beyond the device's capacity of {capacity_bytes} bytes"
    )]
    BeyondCapacity {
        /// Index of the request.
        index: usize,
        /// One past its last byte.
        end: u64,
        /// Capacity of the device.
        capacity_bytes: u64,
    },
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotObserved => "use a trace captured by wearmark, or replay it open loop".into(),
            Self::Setup(_) => "change the option or the capture that it came from".into(),
            Self::Malformed(_) => "convert the trace again from its source".into(),
            Self::BeyondCapacity { .. } => {
                "choose a profile with a larger capacity, or scale the trace's addresses".into()
            }
        })
    }
}
