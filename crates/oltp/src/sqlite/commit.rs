//! The update of the commit workload in SQLite.

use rusqlite::Connection;

use super::session::{Prepared, Stop, bind};
use crate::driver::{Meter, Outcome};

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
