//! Rows of a result set: views of the read buffer, read column by column from the left.
//!
//! A row of a prepared statement is binary, one of a text query is text; both are read by the same
//! methods. Reading another type than the column has, or beyond the last column, is an error.

use std::borrow::Cow;

use super::answer::Column;
use super::fields::{Fields, malformed};
use crate::Error;

/// Type codes of the protocol that are read as something other than bytes.
mod code {
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
}

/// A value of any type.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// NULL.
    Null,
    /// An integer.
    Int(i64),
    /// A number with places that travels in binary.
    Real(f64),
    /// Everything else, as text.
    Bytes(Cow<'a, [u8]>),
}

/// One row. It remembers how far it was read: each method reads the next column.
#[derive(Debug)]
pub struct Row<'a> {
    fields: Fields<'a>,
    columns: &'a [Column],
    /// The bitmap of NULLs of a binary row, from bit 2; none for a text row.
    nulls: Option<&'a [u8]>,
    next: usize,
    result: u32,
}

impl<'a> Row<'a> {
    pub(super) fn text(packet: &'a [u8], columns: &'a [Column], result: u32) -> Self {
        Self { fields: Fields::new(packet), columns, nulls: None, next: 0, result }
    }

    #[inline]
    pub(super) fn binary(
        packet: &'a [u8],
        columns: &'a [Column],
        result: u32,
    ) -> Result<Self, Error> {
        let mut fields = Fields::new(packet);
        if fields.u8()? != 0 {
            return Err(malformed("a binary row that is none"));
        }
        let nulls = Some(fields.bytes((columns.len() + 9) / 8)?);
        Ok(Self { fields, columns, nulls, next: 0, result })
    }

    /// Which result set of its command the row belongs to, from 0.
    pub fn result(&self) -> u32 {
        self.result
    }

    /// How many columns the row has.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// The next column's type; nothing where it is NULL in a binary row.
    #[inline]
    fn column(&mut self) -> Result<Option<Column>, Error> {
        let column =
            *self.columns.get(self.next).ok_or_else(|| malformed("fewer columns than expected"))?;
        let bit = self.next + 2;
        self.next += 1;
        let null = self.nulls.is_some_and(|nulls| nulls[bit / 8] >> (bit % 8) & 1 == 1);
        Ok((!null).then_some(column))
    }

    /// The bytes of a column as the protocol has them, NULL as none.
    #[inline]
    fn raw(&mut self) -> Result<Option<(Column, &'a [u8])>, Error> {
        let Some(column) = self.column()? else { return Ok(None) };
        if self.nulls.is_none() {
            return Ok(self.fields.string()?.map(|bytes| (column, bytes)));
        }
        let len = match column.code {
            code::TINY => 1,
            code::SHORT | code::YEAR => 2,
            code::LONG | code::INT24 | code::FLOAT => 4,
            code::LONGLONG | code::DOUBLE => 8,
            code::DATE | code::TIME | code::DATETIME | code::TIMESTAMP => {
                usize::from(self.fields.u8()?)
            }
            _ => {
                let bytes = self.fields.string()?;
                let bytes = bytes.ok_or_else(|| malformed("NULL inside a binary row"))?;
                return Ok(Some((column, bytes)));
            }
        };
        Ok(Some((column, self.fields.bytes(len)?)))
    }

    /// An integer, or NULL.
    #[inline]
    pub fn integer_or_null(&mut self) -> Result<Option<i64>, Error> {
        let binary = self.nulls.is_some();
        let Some((column, bytes)) = self.raw()? else { return Ok(None) };
        if !binary {
            return scaled(bytes, 0).map(Some);
        }
        let value = match (column.code, bytes) {
            (code::TINY, &[a]) if column.unsigned => i64::from(a),
            (code::TINY, &[a]) => i64::from(a as i8),
            (code::SHORT | code::YEAR, &[a, b]) if column.unsigned => {
                i64::from(u16::from_le_bytes([a, b]))
            }
            (code::SHORT | code::YEAR, &[a, b]) => i64::from(i16::from_le_bytes([a, b])),
            (code::LONG | code::INT24, &[a, b, c, d]) if column.unsigned => {
                i64::from(u32::from_le_bytes([a, b, c, d]))
            }
            (code::LONG | code::INT24, &[a, b, c, d]) => {
                i64::from(i32::from_le_bytes([a, b, c, d]))
            }
            (code::LONGLONG, bytes) => {
                let word: [u8; 8] = bytes.try_into().map_err(|_| malformed("a short BIGINT"))?;
                let value = i64::from_le_bytes(word);
                if column.unsigned && value < 0 {
                    return Err(malformed("a number over 2^63"));
                }
                value
            }
            // Sums of integers are decimals.
            (0 | 246, text) => scaled(text, 0)?,
            _ => return Err(malformed("a column that is not an integer")),
        };
        Ok(Some(value))
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self) -> Result<i64, Error> {
        self.integer_or_null()?.ok_or_else(|| malformed("NULL where a number was expected"))
    }

    /// A count or a key: an integer of 32 bits without sign.
    #[inline]
    pub fn number(&mut self) -> Result<u32, Error> {
        u32::try_from(self.integer()?).map_err(|_| malformed("a number below 0 or over 2^32"))
    }

    /// A decimal number as an integer of its units of 10^-`digits`, or NULL: 12.3 with two digits
    /// is 1230. More digits than that must be zeros.
    #[inline]
    pub fn scaled_or_null(&mut self, digits: u32) -> Result<Option<i64>, Error> {
        self.raw()?.map(|(_, text)| scaled(text, digits)).transpose()
    }

    /// As [`Row::scaled_or_null`], never NULL.
    #[inline]
    pub fn scaled(&mut self, digits: u32) -> Result<i64, Error> {
        self.scaled_or_null(digits)?.ok_or_else(|| malformed("NULL where a number was expected"))
    }

    /// Text or bytes, or NULL.
    #[inline]
    pub fn bytes_or_null(&mut self) -> Result<Option<&'a [u8]>, Error> {
        Ok(self.raw()?.map(|(_, bytes)| bytes))
    }

    /// Text or bytes.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], Error> {
        self.bytes_or_null()?.ok_or_else(|| malformed("NULL where text was expected"))
    }

    /// Text as a string of its own, `NULL` for NULL; for administration.
    pub fn string(&mut self) -> Result<String, Error> {
        let text = self.bytes_or_null()?.unwrap_or(b"NULL");
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// The next column, whatever its type.
    pub fn cell(&mut self) -> Result<Cell<'a>, Error> {
        let Some((column, bytes)) = self.raw()? else { return Ok(Cell::Null) };
        if self.nulls.is_none() {
            return Ok(Cell::Bytes(bytes.into()));
        }
        Ok(match (column.code, bytes) {
            (code::TINY, &[a]) if column.unsigned => Cell::Int(i64::from(a)),
            (code::TINY, &[a]) => Cell::Int(i64::from(a as i8)),
            (code::SHORT | code::YEAR, &[a, b]) if column.unsigned => {
                Cell::Int(i64::from(u16::from_le_bytes([a, b])))
            }
            (code::SHORT | code::YEAR, &[a, b]) => Cell::Int(i64::from(i16::from_le_bytes([a, b]))),
            (code::LONG | code::INT24, &[a, b, c, d]) if column.unsigned => {
                Cell::Int(i64::from(u32::from_le_bytes([a, b, c, d])))
            }
            (code::LONG | code::INT24, &[a, b, c, d]) => {
                Cell::Int(i64::from(i32::from_le_bytes([a, b, c, d])))
            }
            (code::FLOAT, &[a, b, c, d]) => Cell::Real(f64::from(f32::from_le_bytes([a, b, c, d]))),
            (code::LONGLONG | code::DOUBLE, bytes) => {
                let word: [u8; 8] = bytes.try_into().map_err(|_| malformed("a short number"))?;
                match i64::from_le_bytes(word) {
                    _ if column.code == code::DOUBLE => Cell::Real(f64::from_le_bytes(word)),
                    value if column.unsigned && value < 0 => Cell::Real(value as u64 as f64),
                    value => Cell::Int(value),
                }
            }
            (code::DATE | code::DATETIME | code::TIMESTAMP, bytes) => {
                Cell::Bytes(date_text(bytes).into_bytes().into())
            }
            (_, bytes) => Cell::Bytes(bytes.into()),
        })
    }

    /// Reads over the next column.
    #[inline]
    pub fn skip(&mut self) -> Result<(), Error> {
        self.raw().map(drop)
    }
}

/// A date of the binary protocol as SQL reads it: 0, 4, 7 or 11 bytes.
fn date_text(bytes: &[u8]) -> String {
    let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
    let year = u16::from_le_bytes([at(0), at(1)]);
    let mut text = format!("{year:04}-{:02}-{:02}", at(2), at(3));
    if bytes.len() > 4 {
        text.push_str(&format!(" {:02}:{:02}:{:02}", at(4), at(5), at(6)));
    }
    if bytes.len() > 7 {
        let micros = u32::from_le_bytes([at(7), at(8), at(9), at(10)]);
        text.push_str(&format!(".{micros:06}"));
    }
    text
}

/// The number that a decimal text says, in units of 10^-`digits`.
#[inline]
fn scaled(text: &[u8], digits: u32) -> Result<i64, Error> {
    let wrong = || malformed("a decimal that is none, or out of range");
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        text => (false, text),
    };
    let (mut value, mut after, mut point) = (0i64, 0, false);
    if text.is_empty() {
        return Err(wrong());
    }
    for &byte in text {
        match byte {
            b'.' if !point => point = true,
            b'0' if point && after == digits => {}
            b'0'..=b'9' if !point || after < digits => {
                value = value
                    .checked_mul(10)
                    .and_then(|value| value.checked_add(i64::from(byte - b'0')))
                    .ok_or_else(wrong)?;
                after += u32::from(point);
            }
            _ => return Err(wrong()),
        }
    }
    let value = 10i64.checked_pow(digits - after).and_then(|unit| value.checked_mul(unit));
    value.map(|value| if negative { -value } else { value }).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimals_are_read_exactly_or_refused() {
        let check = |text: &str, digits, expected| {
            assert_eq!(scaled(text.as_bytes(), digits).ok(), expected, "{text}");
        };
        check("12.34", 2, Some(1234));
        check("-10.00", 2, Some(-1000));
        check("7", 2, Some(700));
        check("0.1500", 4, Some(1500));
        check("1.2300", 2, Some(123));
        check("1.2345", 2, None);
        check("-0.01", 2, Some(-1));
        check("", 2, None);
        check("1.2.3", 2, None);
        check("12e3", 2, None);
        check("99999999999999999999", 0, None);
        check("9223372036854775807", 2, None);
        check("9223372036854775807", 0, Some(i64::MAX));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_row_or_refused(
            packet in prop::collection::vec(any::<u8>(), 0..60),
            codes in prop::collection::vec((any::<u8>(), any::<bool>()), 0..12),
            how in prop::collection::vec(0u8..6, 0..14),
        ) {
            let columns: Vec<Column> =
                codes.iter().map(|&(code, unsigned)| Column { code, unsigned }).collect();
            for binary in [false, true] {
                let row = if binary {
                    Row::binary(&packet, &columns, 0)
                } else {
                    Ok(Row::text(&packet, &columns, 0))
                };
                let Ok(mut row) = row else { continue };
                for &how in &how {
                    let _ = match how {
                        0 => row.integer_or_null().map(drop),
                        1 => row.number().map(drop),
                        2 => row.scaled_or_null(2).map(drop),
                        3 => row.bytes_or_null().map(drop),
                        4 => row.string().map(drop),
                        _ => row.skip(),
                    };
                }
            }
        }
    }
}
