//! Figures that no advice follows from.

use events::Hint;
use thiserror::Error;

/// Why figures are refused.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A figure that cannot be.
    #[error("{name} is {value}, and must be {must}")]
    Figure {
        /// Which one, as the user calls it.
        name: String,
        /// What was given.
        value: f64,
        /// What it must be: `above 0`, `from 0 to 1`.
        must: &'static str,
    },
    /// A price file that cannot be read.
    #[error("{place}: {cause}")]
    Prices {
        /// File and entry.
        place: String,
        /// What is wrong, one line.
        cause: String,
    },
    /// A price that is given twice.
    #[error("{place}: {name} has two prices")]
    Twice {
        /// The file.
        place: String,
        /// Profile.
        name: String,
    },
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Figure { .. } => "give the figure in the unit that the help names".to_owned(),
            Self::Prices { .. } => {
                "a price is a [[price]] with profiles, date, source and what is paid; 'wearmark \
                 advise prices' prints those that are shipped"
                    .to_owned()
            }
            Self::Twice { .. } => "keep one of them; another file may override it".to_owned(),
        })
    }
}

/// `value` where it is finite and above 0.
pub(crate) fn positive(name: &str, value: f64) -> Result<f64, Error> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(Error::Figure { name: name.to_owned(), value, must: "above 0" })
}

/// `value` where it is finite and not below 0.
pub(crate) fn not_negative(name: &str, value: f64) -> Result<f64, Error> {
    if value.is_finite() && value >= 0.0 {
        return Ok(value);
    }
    Err(Error::Figure { name: name.to_owned(), value, must: "0 or more" })
}

/// `value` where it lies between 0 and 1.
pub(crate) fn share(name: &str, value: f64) -> Result<f64, Error> {
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err(Error::Figure { name: name.to_owned(), value, must: "from 0 to 1" })
}
