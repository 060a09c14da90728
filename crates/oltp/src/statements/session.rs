//! One connection.

use std::path::{Path, PathBuf};

use dbms::{Login, System};
use rusqlite::types::ValueRef;
use units::Bytes;

use crate::Error;

/// Cells of rows as text; NULL as none.
pub type Rows = Vec<Vec<Option<String>>>;

/// A connection to any of the DBMSs.
pub enum Session {
    /// In this process.
    Sqlite(rusqlite::Connection, PathBuf),
    /// By its own protocol.
    Postgresql(dbms::postgresql::Connection),
    /// By its own protocol.
    Mariadb(dbms::mariadb::Connection),
}

/// The database file in a folder of ours.
pub(super) fn database(folder: &Path) -> PathBuf {
    folder.join("statements.db")
}

/// The statement, short enough for a message.
fn shortened(sql: &str) -> String {
    let mut text: String = sql.chars().take(60).collect();
    if text.len() < sql.len() {
        text.push_str("...");
    }
    text
}

impl Session {
    pub(super) fn sqlite(folder: &Path, cache: Bytes, page: Bytes) -> Result<Self, Error> {
        let path = database(folder);
        let fail = |source| Error::sqlite(&path, "opening", source);
        let connection = rusqlite::Connection::open(&path).map_err(fail)?;
        let pragmas = format!(
            "PRAGMA page_size = {}; PRAGMA cache_size = -{}; PRAGMA busy_timeout = 60000; \
             PRAGMA temp_store = FILE;",
            page.0,
            (cache.0 >> 10).max(1),
        );
        connection.execute_batch(&pragmas).map_err(fail)?;
        Ok(Self::Sqlite(connection, path))
    }

    pub(super) fn server(system: System, login: &Login) -> Result<Self, Error> {
        let fail = |source| Error::server(format!("connecting to {system}"), source);
        Ok(match system {
            System::Postgresql => {
                Self::Postgresql(dbms::postgresql::Connection::connect(login).map_err(fail)?)
            }
            System::Mariadb => {
                Self::Mariadb(dbms::mariadb::Connection::connect(login).map_err(fail)?)
            }
        })
    }

    /// Executes statements for their effect.
    ///
    /// # Errors
    /// The DBMS's own.
    pub fn run(&mut self, sql: &str) -> Result<(), Error> {
        let server = |source| Error::server(shortened(sql), source);
        match self {
            Self::Sqlite(connection, path) => {
                // A pragma may answer with a row, which execute_batch reads over.
                connection
                    .execute_batch(sql)
                    .map_err(|source| Error::sqlite(path, shortened(sql), source))
            }
            Self::Postgresql(connection) => connection.execute(sql).map_err(server),
            Self::Mariadb(connection) => connection.execute(sql).map(|_| ()).map_err(server),
        }
    }

    /// The rows of a statement.
    ///
    /// # Errors
    /// The DBMS's own.
    pub fn rows(&mut self, sql: &str) -> Result<Rows, Error> {
        let mut rows = Rows::new();
        let server = |source| Error::server(shortened(sql), source);
        match self {
            Self::Sqlite(connection, path) => {
                let fail = |source| Error::sqlite(path, shortened(sql), source);
                let mut statement = connection.prepare(sql).map_err(fail)?;
                let columns = statement.column_count();
                let mut found = statement.query([]).map_err(fail)?;
                while let Some(row) = found.next().map_err(fail)? {
                    let cell = |index| row.get_ref(index).map(text_of);
                    let cells: Result<_, _> = (0..columns).map(cell).collect();
                    rows.push(cells.map_err(fail)?);
                }
            }
            Self::Postgresql(connection) => rows = connection.query(sql).map_err(server)?,
            Self::Mariadb(connection) => {
                let mut take = |row: &mut dbms::mariadb::Row<'_>| {
                    let cells = (0..row.columns()).map(|_| {
                        let bytes = row.bytes_or_null()?;
                        Ok(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
                    });
                    rows.push(cells.collect::<Result<_, dbms::Error>>()?);
                    Ok(())
                };
                connection.query(sql, &mut take).map_err(server)?;
            }
        }
        Ok(rows)
    }

    /// The first cell of the first row as a number; zero where there is none.
    ///
    /// # Errors
    /// The DBMS's own.
    pub fn number(&mut self, sql: &str) -> Result<f64, Error> {
        let rows = self.rows(sql)?;
        let cell = rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
        Ok(cell.and_then(|text| text.parse().ok()).unwrap_or(0.0))
    }

    /// Reads all rows of a statement and drops them; returns how many.
    ///
    /// # Errors
    /// The DBMS's own.
    pub fn drain(&mut self, sql: &str) -> Result<u64, Error> {
        let mut count = 0;
        match self {
            Self::Sqlite(connection, path) => {
                let fail = |source| Error::sqlite(path, shortened(sql), source);
                let mut statement = connection.prepare(sql).map_err(fail)?;
                let mut found = statement.query([]).map_err(fail)?;
                while found.next().map_err(fail)?.is_some() {
                    count += 1;
                }
            }
            Self::Mariadb(connection) => {
                let mut take = |_: &mut dbms::mariadb::Row<'_>| {
                    count += 1;
                    Ok(())
                };
                let done = connection.query(sql, &mut take);
                done.map_err(|source| Error::server(shortened(sql), source))?;
            }
            Self::Postgresql(_) => count = self.rows(sql)?.len() as u64,
        }
        Ok(count)
    }
}

fn text_of(value: ValueRef<'_>) -> Option<String> {
    Some(match value {
        ValueRef::Null => return None,
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
    })
}
