//! The words of a line: numbers, decimals and names between separators, for the formats whose lines
//! are not worth a parser of their own.
//!
//! Nothing here allocates or panics; a number that does not fit is an error, never wrapped.

use super::cause::Cause;

/// Powers of ten, as many as a decimal can have digits behind its point.
const POWERS: [u64; 10] =
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// Where the first newline is.
///
/// Eight bytes at a time: of `word`, with its newlines turned to zero, the lowest zero byte is the
/// lowest whose top bit is set in `(word - 0x01..) & !word` (Mycroft, 1987).
#[inline]
pub(super) fn newline(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const TOPS: u64 = u64::from_le_bytes([0x80; 8]);
    let (words, tail) = text.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word) ^ (ONES * b'\n' as u64);
        let found = word.wrapping_sub(ONES) & !word & TOPS;
        if found != 0 {
            return Some(index * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let at = tail.iter().position(|byte| *byte == b'\n')?;
    Some(words.len() * 8 + at)
}

/// What is left of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    pub(super) fn new(line: &'a [u8]) -> Self {
        Self { rest: line }
    }

    /// What is left, with the white space in front of it.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Skips spaces and tabs.
    #[inline]
    pub(super) fn skip_space(&mut self) {
        while let [b' ' | b'\t', tail @ ..] = self.rest {
            self.rest = tail;
        }
    }

    /// The byte that comes next, behind white space.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.rest.first().copied()
    }

    /// Whether this byte comes next, behind white space; takes it if so.
    #[inline]
    pub(super) fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        match self.rest {
            [first, tail @ ..] if *first == byte => {
                self.rest = tail;
                true
            }
            _ => false,
        }
    }

    /// The next word up to white space; empty at the end.
    #[inline]
    pub(super) fn word(&mut self) -> &'a [u8] {
        self.skip_space();
        let mut length = 0;
        while self.rest.get(length).is_some_and(|byte| !matches!(byte, b' ' | b'\t')) {
            length += 1;
        }
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        word
    }

    /// The next field up to a comma, without the white space around it; `None` behind the last.
    pub(super) fn field(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.iter().position(|byte| *byte == b',').unwrap_or(self.rest.len());
        let (field, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        Some(field.trim_ascii())
    }

    /// The next whole number.
    #[inline]
    pub(super) fn number(&mut self, field: &'static str) -> Result<u64, Cause> {
        self.skip_space();
        let mut value = 0u64;
        let mut length = 0;
        while let Some(digit) = self.rest.get(length).map(|byte| byte.wrapping_sub(b'0')) {
            if digit > 9 {
                break;
            }
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            length += 1;
        }
        match length {
            0 => Err(Cause::NotANumber(field)),
            1..=19 => {
                self.rest = &self.rest[length..];
                Ok(value)
            }
            _ => Err(Cause::TooLarge(field)),
        }
    }

    /// The next decimal number as `10^decimals` of its unit: `seconds` with 9 gives nanoseconds.
    /// Further digits are dropped. Exponents are read too, at the precision of `f64`.
    #[inline]
    pub(super) fn decimal(&mut self, field: &'static str, decimals: u32) -> Result<u64, Cause> {
        let start = *self;
        let whole = self.number(field)?;
        let (mut fraction, mut missing) = (0, decimals);
        if let [b'.', tail @ ..] = self.rest {
            self.rest = tail;
            while let [digit @ b'0'..=b'9', tail @ ..] = self.rest {
                if missing > 0 {
                    fraction = fraction * 10 + u64::from(digit - b'0');
                    missing -= 1;
                }
                self.rest = tail;
            }
        }
        let unit = POWERS[decimals as usize];
        let value = whole
            .checked_mul(unit)
            .and_then(|value| value.checked_add(fraction * POWERS[missing as usize]))
            .ok_or(Cause::TooLarge(field))?;
        if let [b'e' | b'E', ..] = self.rest {
            *self = start;
            return self.float(field, unit);
        }
        Ok(value)
    }

    #[cold]
    fn float(&mut self, field: &'static str, unit: u64) -> Result<u64, Cause> {
        self.skip_space();
        let end = self.rest.iter().position(|byte| matches!(byte, b' ' | b'\t' | b','));
        let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let text = std::str::from_utf8(text).map_err(|_| Cause::NotANumber(field))?;
        let value: f64 = text.parse().map_err(|_| Cause::NotANumber(field))?;
        self.rest = rest;
        let value = (value * unit as f64).round();
        // 2^63 is the first that cannot be a count of nanoseconds here.
        if (0.0..9.2e18).contains(&value) { Ok(value as u64) } else { Err(Cause::TooLarge(field)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_numbers_and_fields_come_one_after_another() {
        let mut words = Words::new(b"  8,16 7\t x+  9");
        assert_eq!(words.number("major"), Ok(8));
        assert!(words.take(b',') && !words.take(b','));
        assert_eq!((words.number("minor"), words.number("cpu")), (Ok(16), Ok(7)));
        assert_eq!(words.number("x"), Err(Cause::NotANumber("x")));
        assert_eq!((words.word(), words.word(), words.word()), (&b"x+"[..], &b"9"[..], &b""[..]));
        let mut fields = Words::new(b"a, b ,,c");
        let all: Vec<_> = std::iter::from_fn(|| fields.field()).collect();
        assert_eq!(all, [&b"a"[..], b"b", b"", b"c"]);
    }

    #[test]
    fn the_first_newline_is_found_wherever_it_is() {
        for length in 0..40 {
            for byte in [0, 9, 11, 0x80, 0x8a, 0xff] {
                let mut text = vec![byte; length];
                assert_eq!(newline(&text), None);
                for at in (0..length).rev() {
                    text[at] = b'\n';
                    assert_eq!(newline(&text), Some(at), "{length} {byte}");
                }
            }
        }
    }

    #[test]
    fn decimals_are_exact_and_bounded() {
        for (text, expected) in [
            ("0.000122793", Ok(122_793)),
            ("12", Ok(12_000_000_000)),
            ("0.12345678999999999999999999", Ok(123_456_789)),
            ("1.", Ok(1_000_000_000)),
            ("1.23456789019", Ok(1_234_567_890)),
            ("18446744073.709551615", Ok(u64::MAX)),
            ("18446744073.709551616", Err(Cause::TooLarge("t"))),
            ("18446744074", Err(Cause::TooLarge("t"))),
            ("99999999999999999999", Err(Cause::TooLarge("t"))),
            ("7.3902e-05", Ok(73_902)),
            ("1e300", Err(Cause::TooLarge("t"))),
            ("1e", Err(Cause::NotANumber("t"))),
            ("-1", Err(Cause::NotANumber("t"))),
            ("", Err(Cause::NotANumber("t"))),
        ] {
            assert_eq!(Words::new(text.as_bytes()).decimal("t", 9), expected, "{text}");
        }
    }
}
