//! Values in PostgreSQL's binary format, as its `*_send` and `*_recv` functions have them.
//!
//! Money and rates are exact: a NUMERIC of few digits is an integer of its last decimal place
//! ([`push_decimal`], [`decimal`]). Every value is preceded by its length, as in Bind, DataRow and
//! COPY BINARY, so the functions that append write both. Reading bad bytes is an error, never a
//! panic; property tests feed it everything.

/// Milliseconds from 1970 to PostgreSQL's epoch, 2000-01-01.
const EPOCH_MS: i64 = 946_684_800_000;

/// Object identifiers of the types that parameters are declared with.
pub mod oid {
    /// `smallint`.
    pub const INT2: u32 = 21;
    /// `integer`.
    pub const INT4: u32 = 23;
    /// `bigint`.
    pub const INT8: u32 = 20;
    /// `text`.
    pub const TEXT: u32 = 25;
    /// `character(n)`.
    pub const BPCHAR: u32 = 1042;
    /// `numeric`.
    pub const NUMERIC: u32 = 1700;
    /// `timestamp without time zone`.
    pub const TIMESTAMP: u32 = 1114;
    /// `integer[]`.
    pub const INT4_ARRAY: u32 = 1007;
    /// `text[]`.
    pub const TEXT_ARRAY: u32 = 1009;
    /// `numeric[]`.
    pub const NUMERIC_ARRAY: u32 = 1231;
}

/// Appends a NULL.
#[inline]
pub fn push_null(out: &mut Vec<u8>) {
    out.extend_from_slice(&(-1i32).to_be_bytes());
}

/// Appends a `smallint`.
#[inline]
pub fn push_i16(out: &mut Vec<u8>, value: i16) {
    out.extend_from_slice(&2i32.to_be_bytes());
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends an `integer`.
#[inline]
pub fn push_i32(out: &mut Vec<u8>, value: i32) {
    let both = (4u64 << 32) | u64::from(value as u32);
    out.extend_from_slice(&both.to_be_bytes());
}

/// Appends a `bigint`.
#[inline]
pub fn push_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&8i32.to_be_bytes());
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends bytes: a text, or a value that is encoded already.
#[inline]
pub fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Appends a `timestamp`, of milliseconds since 1970.
#[inline]
pub fn push_timestamp_ms(out: &mut Vec<u8>, ms: i64) {
    push_i64(out, (ms - EPOCH_MS) * 1000);
}

/// Appends a NUMERIC of `value` units of the last of `scale` decimal places; cents have scale 2.
///
/// The format: count of digits, weight of the first, sign, scale, then digits of base 10,000; zeros
/// at either end are left out.
#[inline]
pub fn push_decimal(out: &mut Vec<u8>, value: i64, scale: u16) {
    assert!(scale <= 4, "a scale beyond one base-10000 digit");
    let places = 10i64.pow(u32::from(scale));
    let magnitude = value.unsigned_abs();
    let (mut whole, part) = (magnitude / places as u64, magnitude % places as u64);
    // Backwards from the end: i64 has at most five digits of base 10,000 before the point.
    let mut digits = [0u16; 6];
    let mut first = 5;
    digits[5] = (part * 10_000 / places as u64) as u16;
    while whole > 0 {
        first -= 1;
        digits[first] = (whole % 10_000) as u16;
        whole /= 10_000;
    }
    // The digit at index 4 has weight 0.
    let last = (first..6).rev().find(|&k| digits[k] != 0);
    let first = (first..6).find(|&k| digits[k] != 0);
    let (used, weight) = match (first, last) {
        (Some(first), Some(last)) => (&digits[first..=last], 4 - first as i16),
        _ => (&[][..], 0),
    };
    let sign: u16 = if value < 0 { 0x4000 } else { 0 };
    let header = [used.len() as u16, weight as u16, sign, scale];
    out.extend_from_slice(&(8 + 2 * used.len() as i32).to_be_bytes());
    for word in header.iter().chain(used) {
        out.extend_from_slice(&word.to_be_bytes());
    }
}

/// A NUMERIC (without its length) in units of the last of `scale` decimal places; nothing where it
/// is not exact in them, not a number, or not a NUMERIC at all.
pub fn decimal(bytes: &[u8], scale: u16) -> Option<i64> {
    let word = |k: usize| bytes.get(2 * k..2 * k + 2).map(|b| u16::from_be_bytes([b[0], b[1]]));
    let (count, weight, sign) = (usize::from(word(0)?), word(1)? as i16, word(2)?);
    word(3)?;
    if bytes.len() != 8 + 2 * count || scale > 4 {
        return None;
    }
    let mut sum = 0i128;
    for k in 0..count {
        let digit = word(4 + k).filter(|&digit| digit < 10_000)?;
        // The digit stands for digit x 10,000^power; anything beyond 10^24 overflows below.
        let power = i32::from(weight) - k as i32;
        let value = i128::from(digit) * 10i128.pow(u32::from(scale));
        let value = match power {
            _ if digit == 0 => 0,
            0..=6 => value * 10_000i128.pow(power as u32),
            -1 if value % 10_000 == 0 => value / 10_000,
            _ => return None,
        };
        sum += value;
    }
    let signed = match sign {
        0 => sum,
        0x4000 => -sum,
        _ => return None,
    };
    i64::try_from(signed).ok()
}

/// A `timestamp` (without its length) in milliseconds since 1970, rounded down.
pub fn timestamp_ms(bytes: &[u8]) -> Option<i64> {
    let micros = i64::from_be_bytes(bytes.try_into().ok()?);
    micros.div_euclid(1000).checked_add(EPOCH_MS)
}

/// Appends the length and the head of a one-dimensional array; the elements follow, each with its
/// length, then [`end_array`] with what this returned.
#[inline]
pub fn begin_array(out: &mut Vec<u8>, element: u32, count: usize) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    // One dimension, no NULLs, type, length, lower bound; an empty array has no dimension.
    let head = [u32::from(count > 0), 0, element, count as u32, 1];
    let used = if count > 0 { 5 } else { 3 };
    for word in &head[..used] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    start
}

/// Writes the length of an array that began at `start`.
#[inline]
pub fn end_array(out: &mut [u8], start: usize) {
    let len = (out.len() - start - 4) as i32;
    out[start..start + 4].copy_from_slice(&len.to_be_bytes());
}

/// The elements of an array of at most one dimension, each with the bytes of its value, or none
/// for NULL.
pub fn elements(bytes: &[u8]) -> Option<Elements<'_>> {
    let word = |k: usize| {
        bytes.get(4 * k..4 * k + 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    };
    match word(0)? {
        0 => Some(Elements { rest: &[], left: 0 }),
        1 => {
            let left = word(3)?;
            word(4)?;
            Some(Elements { rest: &bytes[20..], left })
        }
        _ => None,
    }
}

/// See [`elements`]. A value that is cut short ends the sequence with [`Cut`].
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
    left: u32,
}

/// A value is shorter than its length says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut;

impl Elements<'_> {
    /// Elements that are left.
    pub fn len(&self) -> usize {
        self.left as usize
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Option<&'a [u8]>, Cut>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        Some(value(&mut self.rest).inspect_err(|_| self.left = 0))
    }
}

/// Takes one value with its length from the front.
#[inline]
pub(super) fn value<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Cut> {
    let (len, after) = rest.split_first_chunk::<4>().ok_or(Cut)?;
    let len = i32::from_be_bytes(*len);
    if len < 0 {
        *rest = after;
        return Ok(None);
    }
    let (value, after) = after.split_at_checked(len as usize).ok_or(Cut)?;
    *rest = after;
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(value: i64, scale: u16) -> Vec<u8> {
        let mut out = Vec::new();
        push_decimal(&mut out, value, scale);
        assert_eq!(out[..4], (out.len() as i32 - 4).to_be_bytes());
        out.split_off(4)
    }

    /// By hand from the format: 12345.67 is the digits 1, 2345, 6700 with weight 1.
    #[test]
    fn decimals_have_the_servers_bytes() {
        let words = |words: &[u16]| words.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<_>>();
        assert_eq!(encoded(1_234_567, 2), words(&[3, 1, 0, 2, 1, 2345, 6700]));
        assert_eq!(encoded(-1000, 2), words(&[1, 0, 0x4000, 2, 10]));
        assert_eq!(encoded(0, 2), words(&[0, 0, 0, 2]));
        assert_eq!(encoded(5, 2), words(&[1, 0xffff, 0, 2, 500]));
        assert_eq!(encoded(1999, 4), words(&[1, 0xffff, 0, 4, 1999]));
        assert_eq!(encoded(5_000_000, 2), words(&[1, 1, 0, 2, 5]));
        assert_eq!(encoded(7, 0), words(&[1, 0, 0, 0, 7]));
    }

    #[test]
    fn decimals_that_are_not_exact_are_none() {
        let words = |words: &[u16]| words.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<_>>();
        // 0.005, NaN, 10^32, a digit out of range, a length that does not fit.
        assert_eq!(decimal(&words(&[1, 0xffff, 0, 3, 50]), 2), None);
        assert_eq!(decimal(&words(&[0, 0, 0xc000, 0]), 2), None);
        assert_eq!(decimal(&words(&[1, 8, 0, 0, 1]), 2), None);
        assert_eq!(decimal(&words(&[1, 6, 0, 0, 9999]), 2), None);
        assert_eq!(decimal(&words(&[1, 0, 0, 0, 10_000]), 2), None);
        assert_eq!(decimal(&words(&[2, 0, 0, 0, 1]), 2), None);
        assert_eq!(decimal(&[], 2), None);
    }

    #[test]
    fn dates_count_from_2000() {
        let mut out = Vec::new();
        push_timestamp_ms(&mut out, EPOCH_MS + 1);
        assert_eq!(out, [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 3, 232]);
        assert_eq!(timestamp_ms(&out[4..]), Some(EPOCH_MS + 1));
        assert_eq!(timestamp_ms(&[0; 7]), None);
    }

    proptest! {
        #[test]
        fn decimals_go_both_ways(value in any::<i64>(), scale in 0u16..=4) {
            prop_assert_eq!(decimal(&encoded(value, scale), scale), Some(value));
        }

        #[test]
        fn small_decimals_go_both_ways(value in -2_000_000i64..2_000_000, scale in 0u16..=4) {
            prop_assert_eq!(decimal(&encoded(value, scale), scale), Some(value));
        }

        #[test]
        fn arrays_go_both_ways(values in proptest::collection::vec(any::<i32>(), 0..20)) {
            let mut out = Vec::new();
            let start = begin_array(&mut out, oid::INT4, values.len());
            for &value in &values {
                push_i32(&mut out, value);
            }
            end_array(&mut out, start);
            let read: Vec<i32> = elements(&out[4..])
                .unwrap()
                .map(|value| i32::from_be_bytes(value.unwrap().unwrap().try_into().unwrap()))
                .collect();
            prop_assert_eq!(read, values);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..64), scale in 0u16..=4,
        ) {
            let _ = decimal(&bytes, scale);
            let _ = timestamp_ms(&bytes);
            if let Some(elements) = elements(&bytes) {
                prop_assert!(elements.take(100).count() <= 100);
            }
        }
    }
}
