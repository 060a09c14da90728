//! What parameters and columns hold.

use std::fmt;

/// A value on its way to a DBMS, or back from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// NULL.
    #[default]
    Null,
    /// An integer.
    Int(i64),
    /// A number with places.
    Real(f64),
    /// Text.
    Text(String),
}

/// What a value will be, known before it is made: what a statement's parameter is declared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// [`Value::Int`].
    Int,
    /// [`Value::Real`].
    Real,
    /// [`Value::Text`], or what a statement of the transaction returns.
    Text,
}

impl Value {
    /// A value that a DBMS returned as text.
    pub fn of_text(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Text(text.to_owned()), Self::Int)
    }

    /// As an integer; numbers with places are cut, as pgbench's `int` does.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Null => None,
            Self::Int(value) => Some(*value),
            Self::Real(value) => Some(*value as i64),
            Self::Text(text) => text.trim().parse().ok(),
        }
    }

    /// As a number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Null => None,
            Self::Int(value) => Some(*value as f64),
            Self::Real(value) => Some(*value),
            Self::Text(text) => text.trim().parse().ok(),
        }
    }

    /// Its text, written over `out`; nothing for NULL.
    pub fn text<'a>(&'a self, out: &'a mut String) -> Option<&'a str> {
        use fmt::Write as _;
        match self {
            Self::Null => None,
            Self::Text(text) => Some(text),
            Self::Int(value) => {
                out.clear();
                let _ = write!(out, "{value}");
                Some(out)
            }
            Self::Real(value) => {
                out.clear();
                let _ = write!(out, "{value}");
                Some(out)
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Real(value) => write!(f, "{value}"),
            Self::Text(text) => write!(f, "'{text}'"),
        }
    }
}
