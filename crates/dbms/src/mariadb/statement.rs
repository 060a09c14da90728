//! Prepared statements and their parameters (`COM_STMT_EXECUTE`, `COM_STMT_BULK_EXECUTE`).
//!
//! A statement's parameter types are stated when it is prepared and sent with its first execution
//! only; the server keeps them. [`Parameters`] writes values straight into the output buffer.

use super::answer::Column;
use super::fields::push_string;
use super::frame;

/// How a parameter travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Type {
    /// One byte: -128 to 127.
    Tiny = 1,
    /// Four bytes.
    Int = 3,
    /// A number of 64 bits with places.
    Double = 5,
    /// Eight bytes.
    BigInt = 8,
    /// A point in time, milliseconds since 1970 in UTC.
    DateTime = 12,
    /// An exact decimal.
    Decimal = 246,
    /// Text or bytes.
    Text = 253,
}

/// A prepared statement of one connection.
#[derive(Debug)]
pub struct Statement {
    pub(super) id: u32,
    pub(super) types: Box<[Type]>,
    /// The columns of its last result set.
    pub(super) columns: Vec<Column>,
    /// Whether the server knows the parameters' types.
    pub(super) typed: bool,
}

const EXECUTE: u8 = 0x17;
const BULK_EXECUTE: u8 = 0xfa;
/// Flag of a bulk: the types follow.
const SEND_TYPES: u16 = 128;
/// Marks of a bulk's values.
const VALUE: u8 = 0;
const NULL: u8 = 1;

/// Writes the values of one execution, from the left; [`Parameters::finish`] ends it.
#[derive(Debug)]
#[must_use = "a command that is not finished is not sent whole"]
pub struct Parameters<'c> {
    output: &'c mut Vec<u8>,
    types: &'c [Type],
    start: usize,
    /// Where the bitmap of NULLs is; a bulk has marks instead.
    nulls: Option<usize>,
    next: usize,
}

impl<'c> Parameters<'c> {
    /// One execution.
    #[inline]
    pub(super) fn one(statement: &'c mut Statement, output: &'c mut Vec<u8>) -> Self {
        let start = frame::begin(output, 0);
        let types = &*statement.types;
        let [a, b, c, d] = statement.id.to_le_bytes();
        // No cursor; one iteration.
        output.extend_from_slice(&[EXECUTE, a, b, c, d, 0, 1, 0, 0, 0]);
        let nulls = output.len();
        if !types.is_empty() {
            output.resize(nulls + types.len().div_ceil(8), 0);
            output.push(u8::from(!statement.typed));
            if !statement.typed {
                push_types(types, output);
            }
        }
        statement.typed = true;
        Self { output, types, start, nulls: Some(nulls), next: 0 }
    }

    /// An execution for each of several rows.
    #[inline]
    pub(super) fn many(statement: &'c Statement, output: &'c mut Vec<u8>) -> Self {
        let types = &*statement.types;
        assert!(!types.is_empty(), "a bulk of a statement without parameters");
        let start = frame::begin(output, 0);
        output.push(BULK_EXECUTE);
        output.extend_from_slice(&statement.id.to_le_bytes());
        output.extend_from_slice(&SEND_TYPES.to_le_bytes());
        push_types(types, output);
        Self { output, types, start, nulls: None, next: 0 }
    }

    /// The type of the next value; in a bulk its mark is written.
    #[inline]
    fn next(&mut self) -> Type {
        if self.nulls.is_none() {
            self.output.push(VALUE);
            self.next %= self.types.len();
        }
        assert!(self.next < self.types.len(), "more values than parameters");
        self.next += 1;
        self.types[self.next - 1]
    }

    /// NULL.
    #[inline]
    pub fn null(mut self) -> Self {
        self.next();
        match self.nulls {
            Some(at) => self.output[at + (self.next - 1) / 8] |= 1 << ((self.next - 1) % 8),
            None => {
                if let Some(mark) = self.output.last_mut() {
                    *mark = NULL;
                }
            }
        }
        self
    }

    /// An integer, in the width of its parameter; it must fit.
    #[inline]
    pub fn integer(mut self, value: impl Into<i64>) -> Self {
        let value = value.into();
        match self.next() {
            Type::Tiny => {
                let value = i8::try_from(value).expect("an integer of one byte");
                self.output.push(value as u8);
            }
            Type::Int => {
                let value = i32::try_from(value).expect("an integer of four bytes");
                self.output.extend_from_slice(&value.to_le_bytes());
            }
            Type::BigInt => self.output.extend_from_slice(&value.to_le_bytes()),
            other => unreachable!("an integer for a parameter of type {other:?}"),
        }
        self
    }

    /// An integer or NULL.
    #[inline]
    pub fn integer_or_null(self, value: Option<impl Into<i64>>) -> Self {
        match value {
            Some(value) => self.integer(value),
            None => self.null(),
        }
    }

    /// A number with places.
    #[inline]
    pub fn real(mut self, value: f64) -> Self {
        assert_eq!(self.next(), Type::Double, "a real for a parameter of another type");
        self.output.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Text or bytes.
    #[inline]
    pub fn text(mut self, text: impl AsRef<[u8]>) -> Self {
        assert_eq!(self.next(), Type::Text, "text for a parameter of another type");
        push_string(self.output, text.as_ref());
        self
    }

    /// A decimal: `value` units of 10^-`digits`.
    #[inline]
    pub fn scaled(mut self, value: i64, digits: usize) -> Self {
        assert_eq!(self.next(), Type::Decimal, "a decimal for a parameter of another type");
        let mut text = [0; DECIMAL_MAX];
        let from = decimal(value, digits, &mut text);
        push_string(self.output, &text[from..]);
        self
    }

    /// A point in time, milliseconds since 1970; years 1 to 9999.
    #[inline]
    pub fn date_time(mut self, at_ms: i64) -> Self {
        assert_eq!(self.next(), Type::DateTime, "a date for a parameter of another type");
        let (days, ms) = (at_ms.div_euclid(86_400_000), at_ms.rem_euclid(86_400_000));
        let (year, month, day) = date(days);
        let second = ms / 1000;
        let [low, high] = (year as u16).to_le_bytes();
        let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
        self.output.extend_from_slice(&[11, low, high, month, day, h as u8, m as u8, s as u8]);
        self.output.extend_from_slice(&((ms % 1000 * 1000) as u32).to_le_bytes());
        self
    }

    /// Ends the execution; every parameter must have its value.
    #[inline]
    pub fn finish(self) {
        assert_eq!(self.next, self.types.len(), "a parameter without a value");
        frame::end(self.output, self.start);
    }
}

fn push_types(types: &[Type], output: &mut Vec<u8>) {
    for &kind in types {
        // Signed.
        output.extend_from_slice(&[kind as u8, 0]);
    }
}

/// Room for the longest decimal: sign, 19 digits, point, leading zero.
pub(super) const DECIMAL_MAX: usize = 24;

/// Writes a decimal to the end of the buffer; returns where it begins.
#[inline]
pub(super) fn decimal(value: i64, digits: usize, text: &mut [u8; DECIMAL_MAX]) -> usize {
    assert!(digits < 19, "more digits than a number of 64 bits has");
    let (mut rest, mut at, mut written) = (value.unsigned_abs(), DECIMAL_MAX, 0);
    // At least one digit in front of the point.
    while rest > 0 || written <= digits {
        if written == digits && digits > 0 {
            at -= 1;
            text[at] = b'.';
        }
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        written += 1;
    }
    if value < 0 {
        at -= 1;
        text[at] = b'-';
    }
    at
}

/// Year, month and day of a day since 1970, in the proleptic Gregorian calendar: the year is taken
/// to begin in March, so that the leap day ends it and months follow 153 days in five.
#[inline]
pub(super) fn date(days: i64) -> (i64, u8, u8) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    // From 0000-03-01.
    let days = days + 719_468;
    let era = days.div_euclid(DAYS_OF_400_YEARS);
    let day = days.rem_euclid(DAYS_OF_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / (DAYS_OF_400_YEARS - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next_year, month as u8, day_of_month as u8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(value: i64, digits: usize) -> String {
        let mut text = [0; DECIMAL_MAX];
        let from = decimal(value, digits, &mut text);
        String::from_utf8(text[from..].to_vec()).unwrap()
    }

    #[test]
    fn decimals_are_written_with_their_point() {
        assert_eq!(written(0, 2), "0.00");
        assert_eq!(written(-1000, 2), "-10.00");
        assert_eq!(written(7, 4), "0.0007");
        assert_eq!(written(-7, 0), "-7");
        assert_eq!(written(i64::MIN, 2), "-92233720368547758.08");
        assert_eq!(written(i64::MAX, 18), "9.223372036854775807");
    }

    /// Against the plain way: counting days year by year, month by month.
    #[test]
    fn dates_are_those_of_the_calendar() {
        let mut days = -719_162;
        for year in 1..=2400i64 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let lens = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            for (month, len) in (1..).zip(lens) {
                for day in 1..=len {
                    assert_eq!(date(days), (year, month, day));
                    days += 1;
                }
            }
        }
        assert_eq!(date(0), (1970, 1, 1));
    }

    proptest! {
        #[test]
        fn decimals_come_back(value in -999_999_999_999i64..=999_999_999_999, digits in 0usize..6) {
            let text = written(value, digits);
            let back: i64 = text.replace('.', "").parse().unwrap();
            prop_assert_eq!(back, value);
            let point = text.find('.').map_or(0, |at| text.len() - at - 1);
            prop_assert_eq!(point, digits);
        }
    }
}
