//! PostgreSQL as a server of its own: loading, the transactions in three accesses, the conditions.
//!
//! - `schema`, `rows`, `load`: the tables and how they are filled.
//! - `session`: a connection of a worker; `statement`, `pipelined`, `procedure`: order entry in the
//!   three accesses; `bank`: the other two workloads.
//! - `conditions`: what must hold (TPC-C 5.11 clause 3.3.2).
//!
//! The accesses answer alike and leave the same rows behind: tests run one list of inputs through
//! SQLite and all three of them, and compare answers and tables.

mod bank;
mod conditions;
mod load;
mod own;
mod pipelined;
mod procedure;
mod procedures;
pub mod rows;
mod schema;
mod session;
mod statement;

use std::sync::{Mutex, PoisonError};

use dbms::postgresql::Connection;
use dbms::{Error as ServerError, Login};
use events::Sink;

use crate::Error;
use crate::consistency::ConditionResult;
use crate::driver::{Dbms, Driver, Lanes, LoadReport, Meter, StoredBytes, Work, Worker};
use crate::meta::{LAYOUT, Meta};
use crate::options::{Access, ServerSettings};
use crate::server_load;
use crate::workload::{Dataset, Workload};

/// `SQLSTATE` of a table that does not exist.
const NO_TABLE: &str = "42P01";

/// A PostgreSQL server with the database of one workload.
#[derive(Debug)]
pub struct Postgresql {
    login: Login,
    access: Access,
    connections: u32,
    workload: Workload,
    place: String,
    /// For questions in between, kept open.
    administration: Mutex<Option<Connection>>,
}

impl Postgresql {
    /// The database of a workload, loaded or not.
    pub fn new(settings: &ServerSettings, workload: Workload) -> Self {
        let login = settings.login(workload);
        let place = format!("{}/{}", login.address, login.database);
        let ServerSettings { access, connections, .. } = *settings;
        let administration = Mutex::new(None);
        Self { login, access, connections, workload, place, administration }
    }

    /// Asks on the connection that is kept for that.
    fn ask<T>(
        &self,
        doing: &str,
        question: impl FnOnce(&mut Connection) -> Result<T, ServerError>,
    ) -> Result<T, Error> {
        let mut kept = self.administration.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |source| server_error(&self.place, doing, source);
        let mut connection = match kept.take() {
            Some(connection) => connection,
            None => Connection::connect(&self.login).map_err(failed)?,
        };
        let answer = question(&mut connection);
        if !matches!(answer, Err(ServerError::Broken { .. } | ServerError::Protocol { .. })) {
            *kept = Some(connection);
        }
        answer.map_err(failed)
    }

    /// One integer, where there is one.
    fn number(&self, doing: &str, sql: &str) -> Result<Option<i64>, Error> {
        let rows = self.ask(doing, |connection| connection.query(sql))?;
        let value = rows.first().and_then(|row| row.first().cloned().flatten());
        Ok(value.and_then(|text| text.parse().ok()))
    }

    fn not_loaded(&self, what: impl Into<String>) -> Error {
        Error::NotLoaded { place: self.place.clone(), what: what.into() }
    }
}

/// Wraps a server's answer; a full disk and a missing database get their own errors.
fn server_error(place: &str, doing: impl Into<String>, source: ServerError) -> Error {
    let doing = doing.into();
    match source.sqlstate() {
        Some("53100") => Error::DiskFull { path: place.into(), doing },
        _ => Error::Server { doing: format!("{doing} on {place}"), source: Box::new(source) },
    }
}

impl Dbms for Postgresql {
    fn version(&self) -> Result<String, Error> {
        self.ask("asking for the version", |connection| {
            Ok(format!("PostgreSQL {}", connection.server_version()))
        })
    }

    fn place(&self) -> String {
        self.place.clone()
    }

    fn load(&self, dataset: Dataset, seed: u64, sink: &dyn Sink) -> Result<LoadReport, Error> {
        // A database that is dropped must not be held.
        *self.administration.lock().unwrap_or_else(PoisonError::into_inner) = None;
        server_load::load(self, dataset, seed, sink)
    }

    fn meta(&self) -> Result<Meta, Error> {
        let rows = self.ask("reading what is loaded", |connection| {
            match connection.query("SELECT key, value FROM wearmark_meta") {
                Err(error) if error.sqlstate() == Some(NO_TABLE) => Ok(None),
                other => other.map(Some),
            }
        });
        let rows = match rows {
            Err(Error::Server { source, .. }) if source.sqlstate() == Some(load::NO_DATABASE) => {
                return Err(self.not_loaded("there is no database"));
            }
            other => other?.ok_or_else(|| self.not_loaded("there is nothing of ours"))?,
        };
        if rows.is_empty() {
            return Err(self.not_loaded("there is a load that never finished"));
        }
        let mut value = |key: &str| {
            let found = rows.iter().find(|row| row[0].as_deref() == Some(key));
            let value = found.and_then(|row| row[1].as_ref()?.parse().ok());
            value.ok_or_else(|| self.not_loaded(format!("'{key}' is missing")))
        };
        let layout = value("layout")?;
        if layout != LAYOUT {
            let what = format!("there is layout {layout}, this version reads {LAYOUT}");
            return Err(self.not_loaded(what));
        }
        Meta::read(&mut value, self.workload)
    }

    fn count_run(&self) -> Result<(), Error> {
        self.ask("counting the run", |connection| {
            connection.execute("UPDATE wearmark_meta SET value = value + 1 WHERE key = 'runs'")?;
            // Runs begin alike: with nothing dirty that an earlier one or the load left. Who may
            // not do this goes without.
            match connection.execute("CHECKPOINT") {
                Err(ServerError::Server { .. }) | Ok(()) => Ok(()),
                Err(error) => Err(error),
            }
        })
    }

    fn driver(&self, dataset: Dataset) -> Result<Box<dyn Driver + '_>, Error> {
        Ok(Box::new(Sessions { database: self, dataset }))
    }

    fn integer(&self, sql: &str) -> Result<Option<i64>, Error> {
        self.number(&format!("asking ({sql})"), sql)
    }

    fn check(&self) -> Result<Vec<ConditionResult>, Error> {
        let meta = self.meta()?;
        // On a connection of its own: the settings of a check are not those of anything else.
        let mut connection = Connection::connect(&self.login)
            .map_err(|source| server_error(&self.place, "connecting", source))?;
        conditions::check(&mut connection, &self.place, &meta)
    }

    fn stored(&self) -> StoredBytes {
        let ask = |sql: &str| self.number("asking for sizes", sql).ok().flatten();
        let bytes = |value: Option<i64>| value.map_or(0, |bytes| bytes.max(0) as u64);
        StoredBytes {
            // Pages of all tables and indexes as of the last statistics would be stale.
            data: bytes(ask("SELECT pg_database_size(current_database())")),
            // Only a superuser may look at the log's files.
            log: bytes(ask("SELECT sum(size)::bigint FROM pg_ls_waldir()")),
        }
    }
}

/// The driver of a run.
struct Sessions<'a> {
    database: &'a Postgresql,
    dataset: Dataset,
}

impl Driver for Sessions<'_> {
    fn lanes(&self) -> Lanes {
        Lanes { writers: self.database.connections as usize, readers: 0, overlap: true }
    }

    fn with_session(
        &self,
        _worker: Worker,
        meter: &Meter,
        work: &mut Work<'_>,
    ) -> Result<(), Error> {
        let Postgresql { login, access, place, .. } = self.database;
        let connection = Connection::connect(login)
            .map_err(|source| server_error(place, "connecting", source))?;
        let with = (self.dataset, *access);
        let mut session = session::PostgresqlSession::new(connection, place, with, meter)?;
        work(&mut session)
    }
}
