//! What a field says: numbers in any of the forms that scripts print, and words for an op.

use trace::Op;

use crate::cause::Cause;
use crate::fields::decimal;

/// A number of a unit, in ns or bytes: whole, decimal, hexadecimal behind `0x`, or with an exponent
/// as spreadsheets and data frames print it, then at the precision of `f64`.
#[inline]
pub(super) fn number(text: &[u8], field: &'static str, unit: u64) -> Result<u64, Cause> {
    // Nineteen digits fit any number; most fields are shorter and plain.
    if text.len() <= 19 && !text.is_empty() {
        let mut value = 0u64;
        let mut plain = true;
        for byte in text {
            let digit = byte.wrapping_sub(b'0');
            plain &= digit < 10;
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        }
        if plain {
            return value.checked_mul(unit).ok_or(Cause::TooLarge(field));
        }
    }
    unusual(text, field, unit)
}

#[inline(never)]
fn unusual(text: &[u8], field: &'static str, unit: u64) -> Result<u64, Cause> {
    if let [b'0', b'x' | b'X', digits @ ..] = text {
        return hexadecimal(digits, field, unit);
    }
    if text.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        return exponent(text, field, unit);
    }
    let with_zero;
    let text = match text {
        [b'.', ..] => {
            with_zero = [b"0", text].concat();
            &with_zero[..]
        }
        _ => text,
    };
    decimal(text, field, unit)
}

fn hexadecimal(digits: &[u8], field: &'static str, unit: u64) -> Result<u64, Cause> {
    let value = digits.iter().try_fold(0u64, |value, digit| {
        Some(value << 4 | u64::from((*digit as char).to_digit(16)?))
    });
    match value {
        Some(_) if digits.len() > 16 => Err(Cause::TooLarge(field)),
        Some(value) if !digits.is_empty() => value.checked_mul(unit).ok_or(Cause::TooLarge(field)),
        _ => Err(Cause::Told(format!("{field} is not a hexadecimal number"))),
    }
}

fn exponent(text: &[u8], field: &'static str, unit: u64) -> Result<u64, Cause> {
    let not = || Cause::Told(format!("{field} is not a number"));
    let value: f64 = std::str::from_utf8(text).map_err(|_| not())?.parse().map_err(|_| not())?;
    let value = (value * unit as f64).round();
    // 2^63 is more than any time in ns or any byte of a device.
    match value {
        _ if !value.is_finite() || value < 0.0 => Err(not()),
        _ if value < 9.2e18 => Ok(value as u64),
        _ => Err(Cause::TooLarge(field)),
    }
}

/// What a word says about an op: `R`, `read`, `DiskRead`, `WS` and other RWBS letters of
/// `blkparse(1)`, `TRIM`, and the opcodes of SCSI block commands in hexadecimal.
#[inline]
pub(super) fn op(word: &[u8]) -> Option<Op> {
    match word {
        b"R" | b"r" | b"RS" | b"RA" | b"Read" | b"read" => Some(Op::Read),
        b"W" | b"w" | b"WS" | b"Write" | b"write" => Some(Op::Write),
        _ => op_word(word),
    }
}

fn op_word(word: &[u8]) -> Option<Op> {
    const WORDS: [(&str, Op); 26] = [
        ("read", Op::Read),
        ("rd", Op::Read),
        ("get", Op::Read),
        ("diskread", Op::Read),
        ("readfile", Op::Read),
        ("pread", Op::Read),
        ("pread64", Op::Read),
        ("0x28", Op::Read),
        ("0x88", Op::Read),
        ("write", Op::Write),
        ("wr", Op::Write),
        ("put", Op::Write),
        ("diskwrite", Op::Write),
        ("writefile", Op::Write),
        ("pwrite", Op::Write),
        ("pwrite64", Op::Write),
        ("0x2a", Op::Write),
        ("0x8a", Op::Write),
        ("trim", Op::Trim),
        ("t", Op::Trim),
        ("discard", Op::Trim),
        ("unmap", Op::Trim),
        ("flush", Op::Flush),
        ("diskflush", Op::Flush),
        ("fsync", Op::Flush),
        ("sync", Op::Flush),
    ];
    let known = WORDS.iter().find(|(known, _)| word.eq_ignore_ascii_case(known.as_bytes()));
    known.map(|(_, op)| *op).or_else(|| rwbs(word))
}

/// Letters as the block layer prints them: a leading F is a flush in front of the command; D, W or
/// R follows; S, A, M, B and a second F say nothing here.
fn rwbs(word: &[u8]) -> Option<Op> {
    let letters = word.iter().all(|byte| b"RWDFSAMBE".contains(byte));
    if word.is_empty() || word.len() > 8 || !letters {
        return None;
    }
    let (command, flush) = match word {
        [b'F', rest @ ..] => (rest, true),
        _ => (word, false),
    };
    match command.first() {
        Some(b'D') => Some(Op::Trim),
        Some(b'W') => Some(Op::Write),
        Some(b'R') => Some(Op::Read),
        _ => flush.then_some(Op::Flush),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, unit: u64) -> Result<u64, String> {
        number(text.as_bytes(), "n", unit).map_err(|cause| cause.to_string())
    }

    #[test]
    fn numbers_of_every_form_are_read_and_bounded() {
        for (text, unit, expected) in [
            ("0", 512, Ok(0)),
            ("7", 512, Ok(3584)),
            ("1.5", 1_000_000_000, Ok(1_500_000_000)),
            (".25", 1000, Ok(250)),
            ("4096.0", 1, Ok(4096)),
            ("0x10000", 1, Ok(65_536)),
            ("0X1f", 512, Ok(31 * 512)),
            ("1.5e-05", 1_000_000_000, Ok(15_000)),
            ("1e300", 1, Err("n is too large")),
            ("1e", 1, Err("n is not a number")),
            ("-1", 1, Err("n is not a decimal number")),
            ("", 1, Err("n is not a decimal number")),
            ("0x", 1, Err("n is not a hexadecimal number")),
            ("0x12345678123456789", 1, Err("n is too large")),
            ("9999999999999999999", 512, Err("n is too large")),
            ("18446744073709551616", 1, Err("n is too large")),
        ] {
            assert_eq!(told(text, unit), expected.map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn words_of_an_op_are_those_that_tools_print() {
        for (words, expected) in [
            ("R r RS RA RM RSM read Read READ DiskRead 0x28 FR", Some(Op::Read)),
            ("W w WS WFS FWFS WM WSM write WRITE DiskWrite 0x8a FW", Some(Op::Write)),
            ("D DS trim DISCARD unmap", Some(Op::Trim)),
            ("F FF FS flush DiskFlush", Some(Op::Flush)),
            ("N DiskReadInit readwrite 0 1 x rw S WRONG", None),
        ] {
            for word in words.split(' ') {
                assert_eq!(op(word.as_bytes()), expected, "{word}");
            }
        }
        assert_eq!(op(b""), None);
    }
}
