//! One parser for sizes, times and rates.

use thiserror::Error;

/// Unit suffixes with their factor; of equal ones the first is printed.
pub(crate) type Units = &'static [(&'static str, u64)];

pub(crate) const TIME_UNITS: Units = &[
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

pub(crate) const SIZE_UNITS: Units = &[
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("KB", 1_000),
];

const RATE_UNITS: &[(&str, f64)] = &[("", 1.0), ("k", 1e3), ("M", 1e6)];

/// Why a text is not the quantity it should be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("'{text}' is not a {kind}: {cause} (write for example {examples})")]
pub struct ParseError {
    text: String,
    kind: &'static str,
    cause: &'static str,
    examples: &'static str,
}

/// Parses a non-negative quantity that ends up a whole number of base units.
pub(crate) fn whole(
    text: &str,
    units: Units,
    kind: &'static str,
    examples: &'static str,
) -> Result<u64, ParseError> {
    let fail = |cause| ParseError { text: text.to_owned(), kind, cause, examples };
    let (number, unit) = split(text);
    if number.is_empty() {
        return Err(fail("it does not start with a number"));
    }
    let factor = match unit {
        "" => 1,
        _ => units.iter().find(|(name, _)| *name == unit).ok_or(fail("unknown unit"))?.1,
    };
    if let Ok(count) = number.parse::<u64>() {
        return count.checked_mul(factor).ok_or(fail("it is too large"));
    }
    let value = number.parse::<f64>().map_err(|_| fail("malformed number"))? * factor as f64;
    if !value.is_finite() || value < 0.0 || value >= u64::MAX as f64 {
        return Err(fail("it is out of range"));
    }
    if (value - value.round()).abs() > 1e-6 * value.max(1.0) {
        return Err(fail("it is not a whole number of the smallest unit"));
    }
    Ok(value.round() as u64)
}

/// Parses `25k/s`, `1000/s`, `1.5M/s` or a bare number of events per second.
pub(crate) fn rate(text: &str) -> Result<f64, ParseError> {
    let examples = "1000/s, 25k/s, 1.5M/s";
    let fail = |cause| ParseError { text: text.to_owned(), kind: "rate", cause, examples };
    let trimmed = text.trim();
    let (number, unit) = split(trimmed.strip_suffix("/s").unwrap_or(trimmed));
    let factor = RATE_UNITS.iter().find(|(name, _)| *name == unit).ok_or(fail("unknown unit"))?.1;
    let value = number.parse::<f64>().map_err(|_| fail("malformed number"))? * factor;
    if !value.is_finite() || value < 0.0 {
        return Err(fail("it is out of range"));
    }
    Ok(value)
}

/// The number and the unit behind it, both trimmed. An exponent belongs to the number.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let bytes = text.as_bytes();
    let mut end = 0;
    while end < bytes.len() {
        let exponent = matches!(bytes[end], b'e' | b'E')
            && bytes.get(end + 1).is_some_and(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+'));
        match bytes[end] {
            b'0'..=b'9' | b'.' => end += 1,
            _ if exponent => end += 2,
            _ => break,
        }
    }
    (&text[..end], text[end..].trim_start())
}

/// The largest unit that divides `value`, of units of one size the first; the smallest for zero.
pub(crate) fn largest_exact(value: u64, units: Units) -> (u64, &'static str) {
    let smallest = units.iter().min_by_key(|(_, factor)| *factor).expect("units are not empty");
    let (name, factor) = units
        .iter()
        .filter(|(_, factor)| value != 0 && value.is_multiple_of(*factor))
        .reduce(|best, one| if one.1 > best.1 { one } else { best })
        .unwrap_or(smallest);
    (value / factor, name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{Bytes, Nanos, Rate};

    fn check_bytes(text: &str, expected: u64) {
        assert_eq!(text.parse::<Bytes>().map(|b| b.0), Ok(expected), "{text}");
    }

    #[test]
    fn sizes_are_printed_in_the_fewest_units() {
        let all = [0, 513, 4096, 1 << 20, 2_000_000_000_000, 15_000_000_000, 4_096_000, 5_000];
        let printed = all.map(|bytes| Bytes(bytes).to_string());
        assert_eq!(
            printed,
            ["0B", "513B", "4KiB", "1MiB", "2TB", "15GB", "4000KiB", "5kB"].map(str::to_owned)
        );
    }

    #[test]
    fn sizes_people_write() {
        check_bytes("0", 0);
        check_bytes("4096", 4096);
        check_bytes("4KiB", 4096);
        check_bytes("4 KiB", 4096);
        check_bytes("0.5KiB", 512);
        check_bytes("16MB", 16_000_000);
        check_bytes("1e3", 1000);
        check_bytes("1TiB", 1 << 40);
    }

    #[test]
    fn times_and_rates_people_write() {
        assert_eq!("250us".parse(), Ok(Nanos(250_000)));
        assert_eq!("1.5ms".parse(), Ok(Nanos(1_500_000)));
        assert_eq!("2min".parse(), Ok(Nanos(120_000_000_000)));
        assert_eq!("25k/s".parse(), Ok(Rate(25_000.0)));
        assert_eq!("1000".parse(), Ok(Rate(1000.0)));
    }

    #[test]
    fn what_is_refused_says_why() {
        for (text, cause) in [
            ("4 kib", "unknown unit"),
            ("KiB", "does not start with a number"),
            ("-4KiB", "does not start with a number"),
            ("1.2.3", "malformed number"),
            ("0.3B", "whole number"),
            ("99999999999TiB", "too large"),
            ("", "does not start with a number"),
            ("µ", "does not start with a number"),
        ] {
            let message = text.parse::<Bytes>().expect_err(text).to_string();
            assert!(message.contains(cause), "{text}: {message}");
        }
    }

    #[test]
    fn toml_numbers_and_texts_are_both_sizes() {
        assert_eq!(serde_json::from_str::<Bytes>("4096").unwrap(), Bytes(4096));
        assert_eq!(serde_json::from_str::<Bytes>("\"4KiB\"").unwrap(), Bytes(4096));
        assert!(serde_json::from_str::<Bytes>("-1").is_err());
        assert_eq!(serde_json::to_string(&Bytes(4096)).unwrap(), "\"4KiB\"");
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_back(value: u64) {
            prop_assert_eq!(Nanos(value).to_string().parse(), Ok(Nanos(value)));
            prop_assert_eq!(Bytes(value).to_string().parse(), Ok(Bytes(value)));
        }

        #[test]
        fn no_text_panics(text in ".{0,24}") {
            let _ = (text.parse::<Bytes>(), text.parse::<Nanos>(), text.parse::<Rate>());
        }
    }
}
