//! Loading: every table is made, filled, indexed and analysed in one transaction of its own.
//!
//! Rows go in by `COPY ... FREEZE` in binary, in the transaction that makes their table: they are
//! visible to all from the start, need no vacuum, and no log where the server's `wal_level` is
//! `minimal`.

use dbms::postgresql::{Canceller, Connection};
use dbms::{Error as ServerError, Login};

use super::rows::append;
use super::{Postgresql, procedures, schema, server_error};
use crate::Error;
use crate::server_load::{Loader, Source};
use crate::workload::Workload;
use crate::workload::own::Dialect;
use crate::workload::own::rows::copy_statement;
use crate::workload::schema::Table;

/// `SQLSTATE` of a database that does not exist.
pub(super) const NO_DATABASE: &str = "3D000";

impl Loader for Postgresql {
    type Connection = Connection;
    type Canceller = Canceller;

    // Server and client CPU, measured on two processors.
    const ROW: (f64, u64) = (1.6e-6, 150);
    const ROWS_SHARE: f64 = 0.7;
    const ADMINISTRATION: &'static str = "postgres";
    const DATABASE_OPTIONS: &'static str = " TEMPLATE template0";
    // Sorts of index builds stay in memory up to about 20 warehouses.
    const SETTINGS: &'static str = "SET maintenance_work_mem = '256MB'; \
        SET max_parallel_maintenance_workers = 0; SET client_min_messages = 'warning'";

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
        connection.execute(sql)
    }

    fn is_no_database(error: &ServerError) -> bool {
        error.sqlstate() == Some(NO_DATABASE)
    }

    fn quoted(name: &str) -> String {
        format!("\"{}\"", name.replace('"', "\"\""))
    }

    fn foreign(connection: &mut Connection, names: &str) -> Result<Option<String>, ServerError> {
        let found = connection.query(&format!(
            "SELECT relname FROM pg_class WHERE pg_table_is_visible(oid) \
             AND relkind IN ('r', 'v', 'p') AND relname IN ({names}) \
             AND to_regclass('wearmark_meta') IS NULL LIMIT 1"
        ))?;
        Ok(found.first().and_then(|row| row.first().cloned().flatten()))
    }

    fn drop_all(workload: Workload) -> String {
        let tables = Table::of(workload).iter().map(|table| table.name());
        let tables = ["wearmark_meta"].into_iter().chain(tables).collect::<Vec<_>>().join(", ");
        format!("DROP TABLE IF EXISTS {tables} CASCADE; {}", procedures::DROP)
    }

    /// Each table is made in the transaction that fills it; those of an own workload all at once.
    fn create(workload: Workload) -> String {
        match workload {
            Workload::Own(own) => {
                format!("{}; {}", schema::META, own.whole().schema[Dialect::Postgresql as usize])
            }
            _ => schema::META.to_owned(),
        }
    }

    fn fill(connection: &mut Connection, source: &mut Source<'_>) -> Result<(), ServerError> {
        if let Table::Own(_) = source.table {
            return fill_own(connection, source);
        }
        let name = source.table.name();
        connection.execute("BEGIN")?;
        connection.execute(&schema::create(source.table))?;
        let copy = format!("COPY {name} FROM STDIN WITH (FORMAT binary, FREEZE)");
        let mut copy = connection.copy_in(&copy)?;
        let mut rows = Vec::new();
        while source.append(&mut rows, append) {
            copy.send(&rows)?;
            rows.clear();
        }
        if source.is_stopped() {
            return copy.abort();
        }
        copy.finish()?;
        for sql in schema::after(source.table) {
            connection.execute(&sql)?;
        }
        connection.execute(&format!("ANALYZE {name}"))?;
        connection.execute("COMMIT")
    }

    fn procedures(workload: Workload) -> Vec<&'static str> {
        vec![procedures::of(workload)]
    }

    fn settle(connection: &mut Connection) -> Result<u64, ServerError> {
        // A run then starts from clean pages. Only a superuser may ask for it; nobody needs it.
        let _ = connection.execute("CHECKPOINT");
        let size = connection.query("SELECT pg_database_size(current_database())")?;
        let size = size.first().and_then(|row| row.first().cloned().flatten());
        Ok(size.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    fn canceller(connection: &Connection) -> Canceller {
        connection.canceller()
    }

    fn cancel(&self, canceller: &Canceller) {
        let _ = canceller.cancel();
    }
}

/// Fills a table of an own workload, which is there.
fn fill_own(connection: &mut Connection, source: &mut Source<'_>) -> Result<(), ServerError> {
    let table = source.table;
    if !table.definition().columns.is_empty() {
        let mut copy = connection.copy_lines_in(&copy_statement(table))?;
        let mut rows = Vec::new();
        while source.append_lines(&mut rows) {
            copy.send(&rows)?;
            rows.clear();
        }
        if source.is_stopped() {
            return copy.abort();
        }
        copy.finish()?;
    }
    connection.execute(&format!("ANALYZE {}", table.name()))
}
