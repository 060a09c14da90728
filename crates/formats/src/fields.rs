//! Fields of a line the plain way: one after the other, every mistake named.
//!
//! This is what the formats mean; [`super::scan`] must agree with it and is only faster.

use super::cause::Cause;

/// Fields of a line from left to right.
pub(super) struct Line<'a> {
    rest: Option<&'a [u8]>,
    /// A comma, or a space for any white space.
    separator: u8,
    /// What the format has, for lines with fewer.
    expected: &'static str,
}

impl<'a> Line<'a> {
    /// Fields separated by commas.
    pub fn commas(line: &'a [u8], expected: &'static str) -> Self {
        Self { rest: Some(line), separator: b',', expected }
    }

    /// Fields separated by white space.
    pub fn blanks(line: &'a [u8], expected: &'static str) -> Self {
        let line = line.trim_ascii();
        Self { rest: (!line.is_empty()).then_some(line), separator: b' ', expected }
    }

    /// The next field as it is.
    pub fn text(&mut self) -> Result<&'a [u8], Cause> {
        let rest = self.rest.ok_or(Cause::MissingField(self.expected))?;
        let end = if self.separator == b',' {
            rest.iter().position(|byte| *byte == b',')
        } else {
            rest.iter().position(u8::is_ascii_whitespace)
        };
        let Some(end) = end else {
            self.rest = None;
            return Ok(rest);
        };
        let behind = &rest[end + 1..];
        self.rest = Some(if self.separator == b',' { behind } else { behind.trim_ascii_start() });
        Ok(&rest[..end])
    }

    /// The next two fields with the separator between them.
    pub fn two(&mut self) -> Result<&'a [u8], Cause> {
        let both = self.rest.ok_or(Cause::MissingField(self.expected))?;
        let length = self.text()?.len() + 1 + self.text()?.len();
        Ok(&both[..length])
    }

    /// The next field, a whole number of at most 19 digits.
    pub fn number(&mut self, field: &'static str) -> Result<u64, Cause> {
        number(self.text()?, field)
    }

    /// The next field, a whole number that fits 32 bits.
    pub fn number32(&mut self, field: &'static str) -> Result<u32, Cause> {
        u32::try_from(self.number(field)?).map_err(|_| Cause::TooLarge(field))
    }

    /// The next field, a decimal number of a unit of this many ns, in ns.
    pub fn decimal(&mut self, field: &'static str, unit_ns: u64) -> Result<u64, Cause> {
        decimal(self.text()?, field, unit_ns)
    }

    /// The next field, a hexadecimal number with or without `0x`.
    pub fn hexadecimal(&mut self, field: &'static str) -> Result<u64, Cause> {
        let text = self.text()?;
        let digits = text.strip_prefix(b"0x").unwrap_or(text);
        let value = digits.iter().try_fold(0u64, |value, digit| {
            Some(value << 4 | u64::from((*digit as char).to_digit(16)?))
        });
        match value {
            Some(_) if digits.len() > 16 => Err(Cause::TooLarge(field)),
            Some(value) if !digits.is_empty() => Ok(value),
            _ => Err(Cause::Told(format!("{field} is not a hexadecimal number"))),
        }
    }

    /// Makes sure that nothing follows.
    pub fn end(self) -> Result<(), Cause> {
        match self.rest {
            None => Ok(()),
            Some(rest) if rest.is_empty() && self.separator == b' ' => Ok(()),
            Some(_) => Err(Cause::Told(format!("more than {}", self.expected))),
        }
    }
}

/// A whole number of at most 19 digits, which always fits.
pub(super) fn number(text: &[u8], field: &'static str) -> Result<u64, Cause> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(Cause::NotANumber(field));
    }
    if text.len() > 19 {
        return Err(Cause::TooLarge(field));
    }
    Ok(text.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
}

/// A decimal number of a unit of this many ns, in ns; what is below one is dropped.
pub(super) fn decimal(text: &[u8], field: &'static str, unit_ns: u64) -> Result<u64, Cause> {
    let point = text.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = text.split_at(point.unwrap_or(text.len()));
    let fraction = fraction.get(1..).unwrap_or_default();
    let whole = number(whole, field).map_err(|cause| match cause {
        Cause::NotANumber(field) => Cause::Told(format!("{field} is not a decimal number")),
        other => other,
    })?;
    if !fraction.iter().all(u8::is_ascii_digit) {
        return Err(Cause::Told(format!("{field} is not a decimal number")));
    }
    let nine = fraction.iter().chain(std::iter::repeat(&b'0')).take(9);
    let billionths = nine.fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
    let below = (u128::from(billionths) * u128::from(unit_ns) / 1_000_000_000) as u64;
    let nanos = whole.checked_mul(unit_ns).and_then(|nanos| nanos.checked_add(below));
    nanos.ok_or(Cause::TooLarge(field))
}

/// `count` units of `unit`.
pub(super) fn scaled(count: u64, unit: u64, field: &'static str) -> Result<u64, Cause> {
    count.checked_mul(unit).ok_or(Cause::TooLarge(field))
}

/// The range of a request: offset and length in bytes from counts of a unit.
pub(super) fn range(
    offset: u64,
    len: u64,
    unit_bytes: u32,
    [offset_field, len_field]: [&'static str; 2],
) -> Result<(u64, u32), Cause> {
    let unit = u64::from(unit_bytes);
    let len = scaled(len, unit, len_field)?;
    let len = u32::try_from(len).map_err(|_| Cause::TooLarge(len_field))?;
    let offset = scaled(offset, unit, offset_field)?;
    match offset.checked_add(u64::from(len)) {
        Some(_) => Ok((offset, len)),
        None => Err(Cause::TooLarge(offset_field)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said<T>(result: Result<T, Cause>) -> Result<T, String> {
        result.map_err(|cause| cause.to_string())
    }

    #[test]
    fn decimals_are_exact_to_the_nanosecond() {
        for (text, unit, expected) in [
            ("0", 1_000_000_000, Ok(0)),
            ("1.5", 1_000_000_000, Ok(1_500_000_000)),
            ("3.", 1_000_000, Ok(3_000_000)),
            ("13.191135", 1_000_000, Ok(13_191_135)),
            ("0.1234567891", 1_000_000_000, Ok(123_456_789)),
            ("0.999999999", 1_000_000, Ok(999_999)),
            ("18446744073.709551615", 1_000_000_000, Ok(u64::MAX)),
            ("18446744073.709551616", 1_000_000_000, Err("t is too large")),
            (".5", 1, Err("t is not a decimal number")),
            ("1.x", 1, Err("t is not a decimal number")),
            ("1.5.5", 1, Err("t is not a decimal number")),
            ("-1", 1, Err("t is not a decimal number")),
            ("1e3", 1, Err("t is not a decimal number")),
        ] {
            let found = said(decimal(text.as_bytes(), "t", unit));
            assert_eq!(found, expected.map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn blanks_of_any_kind_separate() {
        let mut line = Line::blanks(b" \t1  22\t3 ", "three");
        assert_eq!(said(line.number("a")), Ok(1));
        assert_eq!(said(line.number("b")), Ok(22));
        assert_eq!(said(line.number("c")), Ok(3));
        assert_eq!(said(line.number("d")), Err("fewer than three".to_owned()));
    }

    #[test]
    fn commas_keep_empty_fields() {
        let mut line = Line::commas(b"1,,x,ff", "four");
        assert_eq!(said(line.number("a")), Ok(1));
        assert_eq!(said(line.text()), Ok(&b""[..]));
        assert_eq!(said(line.number("c")), Err("c is not a whole number".to_owned()));
        assert_eq!(said(line.hexadecimal("d")), Ok(255));
        assert_eq!(said(line.end()), Ok(()));
        let mut line = Line::commas(b"1,2", "one");
        assert_eq!(said(line.number("a")), Ok(1));
        assert_eq!(said(line.end()), Err("more than one".to_owned()));
    }

    #[test]
    fn ranges_must_fit() {
        let fields = ["offset", "size"];
        assert_eq!(said(range(3, 2, 512, fields)), Ok((1536, 1024)));
        assert_eq!(said(range(1, 1 << 23, 512, fields)), Err("size is too large".to_owned()));
        let far = u64::MAX / 512;
        assert_eq!(said(range(far, 1, 512, fields)), Err("offset is too large".to_owned()));
    }
}
