//! The rows that tables of an own workload start with: generated column by column, or read.
//!
//! A column is an expression; its random numbers are a function of the load's seed, the table, the
//! column and the row. Servers read rows as text, in the one format that `COPY` and `LOAD DATA`
//! share: tabs between values, `\N` for NULL, backslashes before what would be misread.

use std::sync::Arc;

use stats::rng::{Rng, at};

use super::expression::{Expression, Given, Trouble};
use super::value::Value;
use crate::Error;
use crate::workload::rows::{BLOCK_ROWS, Chunk, Encoder, Rows};
use crate::workload::schema::{Definition, Table};

/// A table and its rows.
#[derive(Debug)]
pub struct TableSpec {
    /// Name and columns.
    pub definition: Definition,
    /// How many rows.
    pub rows: u32,
    /// What they hold.
    pub content: Content,
    /// Names the table among seeds.
    pub key: u64,
}

/// Where rows come from.
#[derive(Debug)]
pub enum Content {
    /// Expressions of the columns; and in which order they are made.
    Made(Vec<Expression>, Vec<usize>),
    /// Rows of a file.
    Read(Arc<Vec<Vec<Value>>>),
}

/// A table of an own workload.
#[derive(Clone, Copy, Debug)]
pub struct OwnTable(pub &'static TableSpec);

impl PartialEq for OwnTable {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for OwnTable {}

impl OwnTable {
    /// Makes a row, from 1.
    ///
    /// # Errors
    /// In words, what has no value.
    pub fn row(self, seed: u64, row: u32, out: &mut Vec<Value>) -> Result<(), Trouble> {
        out.clear();
        match &self.0.content {
            Content::Read(rows) => out.extend_from_slice(&rows[row as usize - 1]),
            Content::Made(columns, order) => {
                out.resize(columns.len(), Value::Null);
                let seed = at(seed ^ self.0.key, u64::from(row));
                for &column in order {
                    out[column] = columns[column].value(&mut Given {
                        rng: &mut Rng::new(at(seed, column as u64)),
                        slots: out,
                        numbers: &[],
                        row: i64::from(row),
                        terminal: 0,
                        now_ms: 0,
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Gives the rows of a block to an encoder; returns their number.
    pub(in crate::workload) fn append<E: Encoder>(
        self,
        seed: u64,
        first: u32,
        out: &mut E,
    ) -> Result<u64, E::Error> {
        let last = (first + BLOCK_ROWS - 1).min(self.0.rows);
        let mut values = Vec::new();
        for row in first..=last {
            if let Err(why) = self.row(seed, row, &mut values) {
                let place = format!("row {row} of {}", self.0.definition.name);
                return Err(out.refuse(place, why));
            }
            out.begin();
            for value in &values {
                match value {
                    Value::Null => out.null(),
                    Value::Int(value) => out.long(*value),
                    Value::Real(value) => out.real(*value),
                    Value::Text(text) => out.text(text),
                }
            }
            out.end()?;
        }
        Ok(u64::from(last + 1 - first))
    }
}

/// Appends the rows of a chunk as text; returns their number.
///
/// # Errors
/// A column that has no value.
pub(crate) fn append_lines(rows: &Rows, chunk: Chunk, out: &mut Vec<u8>) -> Result<u64, Error> {
    rows.append(chunk, &mut Lines(out))
}

/// A row that cannot be made.
pub(crate) fn no_value(place: String, what: String) -> Error {
    let hint = "change the column's expression so that every row has a value".to_owned();
    Error::Workload { place, what, hint }
}

/// The statement that copies lines into a table of PostgreSQL.
pub(crate) fn copy_statement(table: Table) -> String {
    format!("COPY {} ({}) FROM STDIN", table.name(), column_names(table))
}

/// The columns that rows have values for, between commas.
pub(crate) fn column_names(table: Table) -> String {
    let names: Vec<&str> = table.definition().columns.iter().map(|column| column.name).collect();
    names.join(", ")
}

struct Lines<'a>(&'a mut Vec<u8>);

impl Lines<'_> {
    fn plain(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(b'\t');
    }
}

impl Encoder for Lines<'_> {
    type Error = Error;

    fn begin(&mut self) {}

    fn integer(&mut self, value: u32) {
        self.plain(&value.to_string());
    }

    fn long(&mut self, value: i64) {
        self.plain(&value.to_string());
    }

    fn real(&mut self, value: f64) {
        self.plain(&value.to_string());
    }

    fn money(&mut self, cents: i64) {
        self.real(cents as f64 / 100.0);
    }

    fn rate(&mut self, ten_thousandths: u32) {
        self.real(f64::from(ten_thousandths) / 1e4);
    }

    fn load_time(&mut self) {
        self.long(crate::workload::population::LOAD_TIME_MS);
    }

    fn text(&mut self, text: &str) {
        for &byte in text.as_bytes() {
            match byte {
                b'\\' => self.0.extend_from_slice(b"\\\\"),
                b'\t' => self.0.extend_from_slice(b"\\t"),
                b'\n' => self.0.extend_from_slice(b"\\n"),
                b'\r' => self.0.extend_from_slice(b"\\r"),
                other => self.0.push(other),
            }
        }
        self.0.push(b'\t');
    }

    fn null(&mut self) {
        self.plain("\\N");
    }

    fn refuse(&mut self, place: String, why: String) -> Error {
        no_value(place, why)
    }

    fn end(&mut self) -> Result<(), Error> {
        if let Some(last) = self.0.last_mut() {
            *last = b'\n';
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_misread_is_marked() {
        let mut out = Vec::new();
        let mut row = Lines(&mut out);
        row.begin();
        row.long(-4);
        row.real(1.25);
        row.null();
        row.text("a\tb\\N\nc");
        row.end().unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "-4\t1.25\t\\N\ta\\tb\\\\N\\nc\n");
    }
}
