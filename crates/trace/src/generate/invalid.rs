//! Figures of which no trace can be made.

use thiserror::Error;

/// A figure of a recipe that makes no trace.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{place}{key} {cause}")]
pub struct Invalid {
    place: String,
    key: String,
    cause: String,
}

impl Invalid {
    pub(crate) fn new(key: &str, cause: &str) -> Self {
        Self { place: String::new(), key: key.to_owned(), cause: cause.to_owned() }
    }

    /// Names the part of the recipe that the figure stands in.
    #[must_use]
    pub(super) fn within(self, place: &str) -> Self {
        let inner = self.place.trim_end_matches(": ").to_owned();
        let place =
            if inner.is_empty() { format!("{place}: ") } else { format!("{place}, {inner}: ") };
        Self { place, ..self }
    }
}

impl events::Hint for Invalid {
    fn hint(&self) -> Option<String> {
        Some(
            "'wearmark trace generate --list' names the patterns, their options and recipes"
                .to_owned(),
        )
    }
}

/// Above zero and finite.
pub(super) fn positive(key: &str, value: f64) -> Result<(), Invalid> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(Invalid::new(key, "must be above 0"))
}

/// 0 to 1, with a little room for sums of decimal fractions.
pub(super) fn share(key: &str, value: f64) -> Result<(), Invalid> {
    if (0.0..=1.0 + 1e-9).contains(&value) {
        return Ok(());
    }
    Err(Invalid::new(key, "must be 0 to 1"))
}
