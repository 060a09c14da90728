//! Rows of a stated width and key distribution from a seed, and their checksum.
//!
//! A row is key (8 bytes), number (8 bytes), then filling that depends on both. The same seed and
//! number give the same row on any machine, in any order. Sums of [`digest`] over rows do not
//! depend on the order either, so a sort is checked by comparing two sums, and a join by the sum
//! over the pairs of the products, which an oracle knows without making the pairs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use stats::rng;

use crate::error::Error;

/// How keys are distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keys {
    /// Any 64-bit number, all alike.
    #[default]
    Random,
    /// 0 to this many less one, all alike.
    Uniform(u64),
    /// 0 to this many less one, key k with a probability about as 1 / (k + 1).
    Zipf(u64),
    /// The number of the row.
    Ascending,
    /// The number of the row from the end.
    Descending,
}

/// The rows of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// How many.
    pub count: u64,
    /// Bytes of each, 16 at least.
    pub width_bytes: u32,
    /// How their keys are distributed.
    pub keys: Keys,
    /// Seed of keys and filling.
    pub seed: u64,
}

impl Rows {
    /// Least bytes of a row: key and number.
    pub const LEAST_WIDTH: u32 = 16;

    /// Refuses rows that cannot be made.
    pub fn check(&self) -> Result<(), Error> {
        if self.width_bytes < Self::LEAST_WIDTH {
            let why = "key and number take 16".to_owned();
            return Err(Error::Width { width_bytes: self.width_bytes, why });
        }
        if let Keys::Uniform(0) | Keys::Zipf(0) = self.keys {
            return Err(Error::Setting {
                what: "keys need at least one distinct value".to_owned(),
            });
        }
        if self.count > 1 << 48 {
            return Err(Error::Setting { what: format!("{} rows are too many", self.count) });
        }
        Ok(())
    }

    /// Bytes of all rows.
    pub fn bytes(&self) -> u64 {
        self.count * u64::from(self.width_bytes)
    }

    /// The key of row `number`.
    #[inline]
    pub fn key(&self, number: u64) -> u64 {
        let draw = || rng::at(self.seed, number);
        match self.keys {
            Keys::Random => draw(),
            Keys::Uniform(distinct) => ((u128::from(draw()) * u128::from(distinct)) >> 64) as u64,
            Keys::Zipf(distinct) => {
                let unit = (draw() >> 11) as f64 / (1u64 << 53) as f64;
                let key = ((distinct as f64 + 1.0).ln() * unit).exp() - 1.0;
                (key as u64).min(distinct - 1)
            }
            Keys::Ascending => number,
            Keys::Descending => self.count - 1 - number,
        }
    }

    /// Writes row `number` into `row`, which is as wide as rows are.
    #[inline]
    pub fn make(&self, number: u64, row: &mut [u8]) {
        let key = self.key(number);
        row[..8].copy_from_slice(&key.to_le_bytes());
        row[8..16].copy_from_slice(&number.to_le_bytes());
        let mut filling = rng::mix(key ^ number.rotate_left(32) ^ self.seed);
        for chunk in row[16..].chunks_mut(8) {
            filling = filling.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
            chunk.copy_from_slice(&filling.to_le_bytes()[..chunk.len()]);
        }
    }
}

/// Key and number of a row: what it is sorted by.
#[inline]
pub(crate) fn rank(row: &[u8]) -> (u64, u64) {
    let word = |at: usize| u64::from_le_bytes(row[at..at + 8].try_into().expect("8 bytes"));
    (word(0), word(8))
}

/// A checksum of every byte of a row.
#[inline]
pub(crate) fn digest(row: &[u8]) -> u64 {
    let mut state = row.len() as u64;
    let mut chunks = row.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().expect("8 bytes"));
        state = (state ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    for byte in chunks.remainder() {
        state = (state ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    rng::mix(state)
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.write_str("random"),
            Self::Uniform(distinct) => write!(f, "uniform:{distinct}"),
            Self::Zipf(distinct) => write!(f, "zipf:{distinct}"),
            Self::Ascending => f.write_str("ascending"),
            Self::Descending => f.write_str("descending"),
        }
    }
}

impl FromStr for Keys {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{text}' is none of random, uniform:N, zipf:N, ascending, descending");
        let (name, distinct) = match text.split_once(':') {
            Some((name, number)) => (name, number.parse().ok().filter(|n| *n > 0)),
            None => (text, None),
        };
        match (name, distinct, text.contains(':')) {
            ("random", None, false) => Ok(Self::Random),
            ("ascending", None, false) => Ok(Self::Ascending),
            ("descending", None, false) => Ok(Self::Descending),
            ("uniform", Some(distinct), _) => Ok(Self::Uniform(distinct)),
            ("zipf", Some(distinct), _) => Ok(Self::Zipf(distinct)),
            _ => Err(wrong()),
        }
    }
}

impl Serialize for Keys {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(keys: Keys) -> Rows {
        Rows { count: 20_000, width_bytes: 27, keys, seed: 7 }
    }

    #[test]
    fn names_read_back() {
        let all =
            [Keys::Random, Keys::Uniform(9), Keys::Zipf(3), Keys::Ascending, Keys::Descending];
        for keys in all {
            assert_eq!(keys.to_string().parse(), Ok(keys));
        }
        for wrong in ["", "zipf", "uniform:0", "uniform:x", "random:3", "sorted"] {
            assert!(wrong.parse::<Keys>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn keys_follow_their_distribution() {
        let count = |keys: Keys, from: u64, to: u64| {
            let rows = rows(keys);
            (0..rows.count).filter(|n| (from..to).contains(&rows.key(*n))).count() as f64
        };
        // Expected 2000 of 20,000 with a standard deviation of 42.
        let tenth = count(Keys::Uniform(1000), 100, 200);
        assert!((tenth - 2000.0).abs() < 5.0 * 42.0, "{tenth}");
        // ln(2) / ln(1001) of them have key 0: 2007, with a standard deviation of 43.
        let first = count(Keys::Zipf(1000), 0, 1);
        assert!((first - 2007.0).abs() < 5.0 * 43.0, "{first}");
        assert_eq!(count(Keys::Zipf(1000), 0, 1000), 20_000.0);
        assert_eq!(rows(Keys::Descending).key(0), 19_999);
    }

    #[test]
    fn any_changed_byte_changes_the_digest() {
        let rows = rows(Keys::Random);
        let mut row = vec![0; 27];
        rows.make(5, &mut row);
        assert_eq!(rank(&row), (rows.key(5), 5));
        let before = digest(&row);
        for at in 0..27 {
            row[at] ^= 1;
            assert_ne!(digest(&row), before, "byte {at}");
            row[at] ^= 1;
        }
        assert_eq!(digest(&row), before);
    }

    #[test]
    fn impossible_rows_are_refused() {
        assert!(Rows { width_bytes: 15, ..rows(Keys::Random) }.check().is_err());
        assert!(rows(Keys::Zipf(0)).check().is_err());
        assert!(rows(Keys::Zipf(1)).check().is_ok());
    }
}
