//! The commit workload in SQLite: one table of rows of about 100 bytes.

use rusqlite::{Connection, params};

use super::load::Counter;
use super::session::{Prepared, Stop, bind};
use crate::Error;
use crate::driver::{Meter, Outcome};
use crate::workload::commit::CommitScale;

/// The table.
pub(super) const TABLES: &str = "
CREATE TABLE commit_row (
    id INTEGER PRIMARY KEY, value INTEGER NOT NULL, filler TEXT NOT NULL);
";

/// Loads all values with 0.
pub(super) fn load(
    connection: &Connection,
    scale: CommitScale,
    counter: &mut Counter<'_>,
) -> Result<(), Error> {
    let filler = super::bank::filler();
    let sql = "INSERT INTO commit_row VALUES (?1, 0, ?2)";
    let mut insert = counter.sqlite("rows", connection.prepare(sql))?;
    for key in 1..=scale.rows {
        let row = insert.execute(params![key, filler]);
        counter.inserted("rows", row)?;
    }
    Ok(())
}

/// The one statement.
pub(super) struct Update<'c>(Prepared<'c>);

impl<'c> Update<'c> {
    pub fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        let sql = "UPDATE commit_row SET value = value + 1 WHERE id = ?";
        Prepared::new(connection, sql).map(Self)
    }

    pub fn execute(&mut self, meter: &Meter, row: u32) -> Result<Outcome, Stop> {
        bind!(self.0, row);
        if self.0.run(meter)? != 1 {
            return Err(Stop::Missing("a row"));
        }
        Ok(Outcome::Committed)
    }
}
