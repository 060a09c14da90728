//! Why measurements do not make a profile.

use events::Hint;
use thiserror::Error;

/// Why measurements do not make a profile.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FitError {
    /// Nothing to fit a line to.
    #[error(
        "the measurements hold no read or write at depth 1 in a closed loop ({cells} cells in \
         all), so there is no line to fit"
    )]
    NothingAtDepthOne {
        /// Cells in the measurements.
        cells: usize,
    },
    /// A cell that cannot be true.
    #[error("cell {index} ({cell}) claims a mean of {mean_ns} ns over {samples} samples")]
    ImpossibleTime {
        /// Index of the cell.
        index: usize,
        /// The cell in words.
        cell: String,
        /// Its mean, as text since it may be no number.
        mean_ns: String,
        /// Its samples.
        samples: u64,
    },
    /// The fitted profile is not of a possible device.
    #[error("the fitted profile is impossible: {source}")]
    Impossible {
        /// What is wrong with it.
        source: profile::Error,
    },
}

impl Hint for FitError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NothingAtDepthOne { .. } => {
                "probe with a plan that has depth 1, such as `wearmark probe TARGET`".to_owned()
            }
            Self::ImpossibleTime { .. } | Self::Impossible { .. } => {
                "probe the device again; the measurements file may be damaged".to_owned()
            }
        })
    }
}
