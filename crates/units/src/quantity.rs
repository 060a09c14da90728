//! The newtypes and their arithmetic.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::parse::{self, ParseError};

/// A duration or a point in time, in nanoseconds. Points count from the start of a trace or run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// A size or an offset, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A logical block address: an index of blocks whose size the context states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(pub u64);

/// Events per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Rate(pub f64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// From microseconds, rounded to the nearest nanosecond; negative and NaN become zero.
    pub fn from_micros_f64(micros: f64) -> Self {
        Self((micros * 1e3).round().max(0.0) as u64)
    }

    /// From seconds, rounded to the nearest nanosecond; negative and NaN become zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * 1e9).round().max(0.0) as u64)
    }

    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// In microseconds.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// The difference, or zero where `earlier` is later.
    #[must_use]
    pub fn saturating_sub(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl Bytes {
    /// 1024 bytes.
    pub const KIB: Self = Self(1 << 10);
    /// 1024 KiB.
    pub const MIB: Self = Self(1 << 20);
    /// 1024 MiB.
    pub const GIB: Self = Self(1 << 30);
}

macro_rules! additive {
    ($($name:ident),*) => {$(
        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }
        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }
        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
    )*};
}
additive!(Nanos, Bytes);

impl fmt::Display for Nanos {
    /// The largest unit that shows the value exactly: `1500000` ns is `1500us`, not `1.5ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = parse::largest_exact(self.0, parse::TIME_UNITS);
        f.pad(&format!("{value}{unit}"))
    }
}

impl fmt::Display for Bytes {
    /// The unit that shows the value exactly and in the fewest: `4KiB`, `1MiB`, `2TB`, `513B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = parse::largest_exact(self.0, parse::SIZE_UNITS);
        f.pad(&format!("{value}{unit}"))
    }
}

impl fmt::Display for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/s", self.0))
    }
}

impl FromStr for Nanos {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse::whole(text, parse::TIME_UNITS, "time", "250us, 1.5ms, 10s, 2min").map(Self)
    }
}

impl FromStr for Bytes {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse::whole(text, parse::SIZE_UNITS, "size", "4096, 4KiB, 16MB, 1GiB").map(Self)
    }
}

impl FromStr for Rate {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse::rate(text).map(Self)
    }
}

macro_rules! serde_as_text {
    ($($name:ident),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = from.deserialize_any(TextOrNumber)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    )*};
}
serde_as_text!(Nanos, Bytes, Rate);

/// Accepts `"4KiB"` as well as `4096`: both are what people write in a TOML file.
struct TextOrNumber;

impl de::Visitor<'_> for TextOrNumber {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a text such as \"4KiB\", \"10s\", \"25k/s\"")
    }
    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
    fn visit_u64<E>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }
    fn visit_i64<E>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }
    fn visit_f64<E>(self, number: f64) -> Result<String, E> {
        Ok(number.to_string())
    }
}
