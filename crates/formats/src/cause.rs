//! What is wrong with a part of an input, and where.

use std::fmt;

/// What is wrong with a record; turned into words only when it is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// This field is not a whole number.
    NotANumber(&'static str),
    /// This field is too large.
    TooLarge(&'static str),
    /// Fewer fields than the format has; holds what it has.
    MissingField(&'static str),
    /// A cause in words.
    Said(&'static str),
    /// A cause in words made for it.
    Told(String),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber(field) => write!(f, "{field} is not a whole number"),
            Self::TooLarge(field) => write!(f, "{field} is too large"),
            Self::MissingField(expected) => write!(f, "fewer than {expected}"),
            Self::Said(cause) => f.write_str(cause),
            Self::Told(cause) => f.write_str(cause),
        }
    }
}

/// Where in the input something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A line, counted from 1.
    Line(u64),
    /// A byte, counted from 0, of the decompressed input.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// The cause with the line that it is about.
#[cold]
pub(super) fn describe(cause: &Cause, line: &[u8]) -> String {
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let shown = String::from_utf8_lossy(&line[..line.len().min(80)]);
    format!("{cause}: '{}'", shown.trim_end().escape_debug())
}
