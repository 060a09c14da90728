//! Loading: every table by one LOAD DATA LOCAL of its own.
//!
//! Rows go into empty tables in the order of their primary keys with unique_checks and
//! foreign_key_checks off: InnoDB then builds the tree page by page and logs no undo for rows (bulk
//! insert).

use dbms::mariadb::Connection;
use dbms::{Error as ServerError, Login};

use super::rows::append;
use super::{Mariadb, procedures, schema, server_error};
use crate::Error;
use crate::server_load::{Loader, Source};
use crate::workload::Workload;
use crate::workload::own::Dialect;
use crate::workload::own::rows::column_names;
use crate::workload::schema::Table;

/// The server's number for a database that does not exist.
const NO_DATABASE: u32 = 1049;

/// Bytes that are sent at once.
const SEND_BYTES: usize = 256 << 10;

impl Loader for Mariadb {
    type Connection = Connection;
    /// The server's number of the connection.
    type Canceller = u32;

    // Measured on two busy processors.
    const ROW: (f64, u64) = (4e-6, 200);
    const ROWS_SHARE: f64 = 0.85;
    const ADMINISTRATION: &'static str = "";
    const DATABASE_OPTIONS: &'static str = "";
    const SETTINGS: &'static str =
        "SET SESSION unique_checks = 0, foreign_key_checks = 0, time_zone = '+00:00'";

    fn login(&self) -> &Login {
        &self.login
    }

    fn place(&self) -> &str {
        &self.place
    }

    fn error(&self, doing: String, source: ServerError) -> Error {
        server_error(&self.place, doing, source)
    }

    fn connect(login: &Login) -> Result<Connection, ServerError> {
        Connection::connect(login)
    }

    fn execute(connection: &mut Connection, sql: &str) -> Result<(), ServerError> {
        connection.execute(sql).map(drop)
    }

    fn is_no_database(error: &ServerError) -> bool {
        matches!(error, ServerError::Server { code: NO_DATABASE, .. })
    }

    fn quoted(name: &str) -> String {
        format!("`{}`", name.replace('`', "``"))
    }

    fn foreign(connection: &mut Connection, names: &str) -> Result<Option<String>, ServerError> {
        let sql = format!(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() \
             AND table_name IN ({names}) AND NOT EXISTS (SELECT 1 FROM information_schema.tables \
             WHERE table_schema = DATABASE() AND table_name = 'wearmark_meta') LIMIT 1"
        );
        let mut found = None;
        connection.query(&sql, &mut |row| {
            found = Some(row.string()?);
            Ok(())
        })?;
        Ok(found)
    }

    fn drop_all(workload: Workload) -> String {
        schema::drop_all(workload)
    }

    fn create(workload: Workload) -> String {
        if let Workload::Own(own) = workload {
            return format!("{}; {}", schema::META, own.whole().schema[Dialect::Mariadb as usize]);
        }
        let tables = Table::of(workload).iter().map(|&table| schema::create(table));
        let all: Vec<String> = std::iter::once(schema::META.to_owned()).chain(tables).collect();
        all.join("; ")
    }

    /// Rows, secondary indexes, statistics.
    fn fill(connection: &mut Connection, source: &mut Source<'_>) -> Result<(), ServerError> {
        let (table, name) = (source.table.definition(), source.table.name());
        let own = matches!(source.table, Table::Own(_));
        if own && table.columns.is_empty() {
            return Ok(());
        }
        let (set, columns) = if own {
            ("utf8mb4", format!(" ({})", column_names(source.table)))
        } else {
            ("latin1", String::new())
        };
        let sql =
            format!("LOAD DATA LOCAL INFILE '' INTO TABLE {name} CHARACTER SET {set}{columns}");
        let done = connection.load_data(&sql, &mut |piece| {
            let mut more = true;
            while more && piece.len() < SEND_BYTES {
                more = if own { source.append_lines(piece) } else { source.append(piece, append) };
            }
            Ok(more)
        })?;
        if source.is_stopped() {
            return Ok(());
        }
        let sent = source.sent;
        if (done.affected, done.warnings) != (sent, 0) {
            // LOCAL turns errors into warnings.
            let what = format!(
                "{} of {sent} rows of {name} were taken, with {} warnings",
                done.affected, done.warnings
            );
            return Err(ServerError::Protocol { what });
        }
        if let Some((index, columns)) = table.index {
            connection.execute(&format!("ALTER TABLE {name} ADD INDEX {index} ({columns})"))?;
        }
        connection.execute(&format!("ANALYZE TABLE {name}")).map(drop)
    }

    fn procedures(workload: Workload) -> Vec<&'static str> {
        procedures::create(workload).to_vec()
    }

    fn settle(connection: &mut Connection) -> Result<u64, ServerError> {
        Ok(super::data_bytes(connection))
    }

    fn canceller(connection: &Connection) -> u32 {
        connection.id()
    }

    fn cancel(&self, canceller: &u32) {
        let _ = self.administrate(&format!("KILL {canceller}"));
    }
}
