//! Rows in the format of `COPY ... WITH (FORMAT binary)`: money and rates are NUMERIC, dates
//! TIMESTAMP.

use std::convert::Infallible;

use dbms::postgresql::binary::{
    push_bytes, push_decimal, push_i32, push_i64, push_null, push_timestamp_ms,
};

use crate::workload::population::LOAD_TIME_MS;
use crate::workload::rows::{Chunk, Encoder, Rows};

/// Appends the rows of a chunk; returns their number.
pub fn append(rows: &Rows, chunk: Chunk, out: &mut Vec<u8>) -> u64 {
    let columns = chunk.table.definition().columns.len() as u16;
    let Ok(count) = rows.append(chunk, &mut Binary { out, columns });
    count
}

struct Binary<'a> {
    out: &'a mut Vec<u8>,
    columns: u16,
}

impl Encoder for Binary<'_> {
    type Error = Infallible;

    #[inline]
    fn begin(&mut self) {
        self.out.extend_from_slice(&self.columns.to_be_bytes());
    }

    #[inline]
    fn integer(&mut self, value: u32) {
        push_i32(self.out, value as i32);
    }

    #[inline]
    fn long(&mut self, value: i64) {
        push_i64(self.out, value);
    }

    #[inline]
    fn money(&mut self, cents: i64) {
        push_decimal(self.out, cents, 2);
    }

    #[inline]
    fn rate(&mut self, ten_thousandths: u32) {
        push_decimal(self.out, i64::from(ten_thousandths), 4);
    }

    #[inline]
    fn load_time(&mut self) {
        push_timestamp_ms(self.out, LOAD_TIME_MS);
    }

    #[inline]
    fn text(&mut self, text: &str) {
        push_bytes(self.out, text.as_bytes());
    }

    #[inline]
    fn null(&mut self) {
        push_null(self.out);
    }

    #[inline]
    fn end(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;
    use crate::workload::{Dataset, bank::BankScale};

    /// Every row has the fields that it says, each as long as it says.
    #[test]
    fn rows_are_well_formed() {
        for dataset in [
            Dataset::OrderEntry(Scale::miniature(2)),
            Dataset::Bank(BankScale { branches: 3, accounts_per_branch: 1500 }),
        ] {
            let rows = Rows::new(dataset, 5);
            for &table in rows.tables() {
                let (mut out, mut count) = (Vec::new(), 0);
                for chunk in rows.chunks(table) {
                    count += append(&rows, chunk, &mut out);
                }
                let (mut rest, mut seen) = (&out[..], 0);
                while let Some((fields, after)) = rest.split_first_chunk::<2>() {
                    rest = after;
                    for _ in 0..u16::from_be_bytes(*fields) {
                        let (len, after) = rest.split_first_chunk::<4>().unwrap();
                        let len = i32::from_be_bytes(*len).max(0) as usize;
                        rest = &after[len..];
                    }
                    seen += 1;
                }
                assert_eq!(seen, count, "{table:?}");
            }
        }
    }
}
