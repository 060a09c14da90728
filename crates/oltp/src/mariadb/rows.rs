//! Rows as LOAD DATA reads them: fields between tabs, a line each, `\N` for NULL.
//!
//! Every value is a number, a date of the load or letters and digits: nothing needs an escape.

use std::convert::Infallible;

use crate::workload::population::LOAD_TIME_MS;
use crate::workload::rows::{Chunk, Encoder, Rows};

/// The date of the load, `LOAD_TIME_MS`, in UTC.
const LOAD_TIME: &str = "2026-01-01 00:00:00";
const _: () = assert!(LOAD_TIME_MS == 1_767_225_600_000, "LOAD_TIME says the same");

/// Appends the rows of a chunk; returns their number.
pub(super) fn append(rows: &Rows, chunk: Chunk, out: &mut Vec<u8>) -> u64 {
    let Ok(count) = rows.append(chunk, &mut Lines(out));
    count
}

/// A tab follows every field; the end of the row makes the last one a line feed.
struct Lines<'a>(&'a mut Vec<u8>);

impl Lines<'_> {
    #[inline]
    fn number(&mut self, value: u64) {
        let mut digits = [0; 20];
        let (mut at, mut rest) = (digits.len(), value);
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.0.extend_from_slice(&digits[at..]);
    }

    #[inline]
    fn signed(&mut self, value: i64, unit: u64) {
        if value < 0 {
            self.0.push(b'-');
        }
        self.number(value.unsigned_abs() / unit);
    }
}

impl Encoder for Lines<'_> {
    type Error = Infallible;

    #[inline]
    fn begin(&mut self) {}

    #[inline]
    fn integer(&mut self, value: u32) {
        self.number(u64::from(value));
        self.0.push(b'\t');
    }

    #[inline]
    fn long(&mut self, value: i64) {
        self.signed(value, 1);
        self.0.push(b'\t');
    }

    #[inline]
    fn money(&mut self, cents: i64) {
        self.signed(cents, 100);
        let rest = (cents.unsigned_abs() % 100) as u8;
        self.0.extend_from_slice(&[b'.', b'0' + rest / 10, b'0' + rest % 10, b'\t']);
    }

    #[inline]
    fn rate(&mut self, ten_thousandths: u32) {
        assert!(ten_thousandths < 10_000, "a rate of 100 % or more");
        let digit = |divisor| b'0' + (ten_thousandths / divisor % 10) as u8;
        self.0.extend_from_slice(&[
            b'0',
            b'.',
            digit(1000),
            digit(100),
            digit(10),
            digit(1),
            b'\t',
        ]);
    }

    #[inline]
    fn load_time(&mut self) {
        self.text(LOAD_TIME);
    }

    #[inline]
    fn text(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(b'\t');
    }

    /// CHAR is padded with spaces by the server.
    #[inline]
    fn filler(&mut self) {
        self.0.push(b'\t');
    }

    #[inline]
    fn null(&mut self) {
        self.text("\\N");
    }

    #[inline]
    fn end(&mut self) -> Result<(), Infallible> {
        if let Some(last) = self.0.last_mut() {
            *last = b'\n';
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;
    use crate::workload::Dataset;
    use crate::workload::bank::BankScale;

    #[test]
    fn values_are_written_as_sql_reads_them() {
        let mut out = Vec::new();
        let mut row = Lines(&mut out);
        row.begin();
        for value in [0, u32::MAX] {
            row.integer(value);
        }
        for value in [0, -7, i64::MIN] {
            row.long(value);
        }
        for cents in [5, 999_999, -5, -1000] {
            row.money(cents);
        }
        for rate in [7, 5000] {
            row.rate(rate);
        }
        row.load_time();
        row.null();
        row.filler();
        row.text("a");
        let Ok(()) = row.end();
        let expected = "0\t4294967295\t0\t-7\t-9223372036854775808\t0.05\t9999.99\t-0.05\t-10.00\t\
                        0.0007\t0.5000\t2026-01-01 00:00:00\t\\N\t\ta\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    /// Every line has the columns of its table, every chunk the rows that it says.
    #[test]
    fn chunks_hold_whole_rows() {
        for dataset in [
            Dataset::OrderEntry(Scale::miniature(2)),
            Dataset::Bank(BankScale { branches: 3, accounts_per_branch: 1500 }),
        ] {
            let rows = Rows::new(dataset, 7);
            for chunk in rows.chunks_by_place() {
                let mut out = Vec::new();
                let count = append(&rows, chunk, &mut out);
                let out = String::from_utf8(out).unwrap();
                assert_eq!(out.lines().count() as u64, count, "{chunk:?}");
                let columns = chunk.table.definition().columns.len();
                let whole = |line: &str| line.split('\t').count() == columns;
                assert!(out.lines().all(whole), "{chunk:?}");
            }
        }
    }
}
