//! Rows bound to an INSERT of their table: money, rates and dates are integers.

use rusqlite::types::Null;
use rusqlite::{Connection, Statement, ToSql};

use super::load::Counter;
use crate::Error;
use crate::workload::own::rows::{column_names, no_value};
use crate::workload::population::LOAD_TIME_MS;
use crate::workload::rows::{Chunk, Encoder, Rows};

/// Inserts the rows of a chunk.
pub(super) fn insert(
    connection: &Connection,
    rows: &Rows,
    chunk: Chunk,
    counter: &mut Counter<'_>,
) -> Result<(), Error> {
    let table = chunk.table.name();
    let values = vec!["?"; chunk.table.definition().columns.len()].join(", ");
    let names = column_names(chunk.table);
    let sql = format!("INSERT INTO {table} ({names}) VALUES ({values})");
    let mut statement = counter.sqlite(table, connection.prepare_cached(&sql))?;
    let statement = &mut *statement;
    rows.append(chunk, &mut Insert { table, statement, counter, column: 0, bound: Ok(()) })?;
    Ok(())
}

struct Insert<'a, 'c, 's> {
    table: &'a str,
    statement: &'a mut Statement<'c>,
    counter: &'a mut Counter<'s>,
    /// The column before the next one; SQLite counts from 1.
    column: usize,
    /// What happened to the row's values.
    bound: rusqlite::Result<()>,
}

impl Insert<'_, '_, '_> {
    #[inline]
    fn bind(&mut self, value: impl ToSql) {
        self.column += 1;
        let bound = self.statement.raw_bind_parameter(self.column, value);
        if bound.is_err() {
            self.bound = bound;
        }
    }
}

impl Encoder for Insert<'_, '_, '_> {
    type Error = Error;

    #[inline]
    fn begin(&mut self) {
        self.column = 0;
    }

    #[inline]
    fn integer(&mut self, value: u32) {
        self.bind(value);
    }

    #[inline]
    fn long(&mut self, value: i64) {
        self.bind(value);
    }

    fn real(&mut self, value: f64) {
        self.bind(value);
    }

    fn refuse(&mut self, place: String, why: String) -> Error {
        no_value(place, why)
    }

    #[inline]
    fn money(&mut self, cents: i64) {
        self.bind(cents);
    }

    #[inline]
    fn rate(&mut self, ten_thousandths: u32) {
        self.bind(ten_thousandths);
    }

    #[inline]
    fn load_time(&mut self) {
        self.bind(LOAD_TIME_MS);
    }

    #[inline]
    fn text(&mut self, text: &str) {
        self.bind(text);
    }

    #[inline]
    fn null(&mut self) {
        self.bind(Null);
    }

    #[inline]
    fn end(&mut self) -> Result<(), Error> {
        let bound = std::mem::replace(&mut self.bound, Ok(()));
        let inserted = bound.and_then(|()| self.statement.raw_execute());
        self.counter.inserted(self.table, inserted)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_value_that_cannot_be_bound_is_an_error() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE one (a)").unwrap();
        let mut statement = connection.prepare("INSERT INTO one VALUES (?)").unwrap();
        let mut counter = Counter::new(Path::new("memory"), 2, &events::Quiet);
        let (statement, counter) = (&mut statement, &mut counter);
        let mut row = Insert { table: "one", statement, counter, column: 0, bound: Ok(()) };
        let mut with = |values: u32| {
            row.begin();
            (0..values).for_each(|value| row.integer(value));
            row.end()
        };
        with(1).unwrap();
        assert!(with(2).unwrap_err().to_string().contains("loading one"));
        with(1).unwrap();
        assert_eq!(counter.rows, 2);
    }
}
