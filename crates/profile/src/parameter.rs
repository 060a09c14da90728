//! One number of a profile and where it comes from.

use serde::{Deserialize, Serialize, Serializer};
use units::Bytes;

/// A number with its evidence, written `{ value = 57.1, error = 0.4, source = "..." }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// The value, in the unit that the key ends with.
    pub value: f64,
    /// Standard error, same unit, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// Where the value comes from: the cells of a probe run, a paper and its table, or the
    /// reasoning behind an assumption.
    pub source: String,
    /// Whether nobody measured or published it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
}

impl Parameter {
    /// A value that `source` states or measured.
    pub fn new(value: f64, source: impl Into<String>) -> Self {
        Self { value, error: None, source: source.into(), assumed: false }
    }

    /// A value that somebody had to make up; `why` says on what grounds.
    pub fn assumed(value: f64, why: impl Into<String>) -> Self {
        Self { value, error: None, source: why.into(), assumed: true }
    }

    /// The same with its standard error.
    #[must_use]
    pub fn with_error(mut self, error: f64) -> Self {
        self.error = error.is_finite().then_some(error);
        self
    }
}

/// Makers count capacities in powers of ten: `32GB` where that is exact.
#[allow(clippy::ref_option)] // The signature is serde's.
pub(crate) fn capacity_text<S: Serializer>(
    capacity: &Option<Bytes>,
    to: S,
) -> Result<S::Ok, S::Error> {
    const GB: u64 = 1_000_000_000;
    match capacity {
        Some(Bytes(bytes)) if bytes % GB == 0 && *bytes > 0 => {
            to.collect_str(&format_args!("{}GB", bytes / GB))
        }
        Some(bytes) => bytes.serialize(to),
        None => to.serialize_none(),
    }
}
