//! MariaDB: loading, checking, and the transactions of every workload.
//!
//! A session is a connection of its own, on its worker's thread. All three kinds of access are
//! offered. *Statement*: one prepared statement per step and round trip; the rows of an order's
//! lines are written by bulk execution, as a portable batch would be. *Pipelined*: MariaDB's server
//! answers commands in the order in which they arrive, so a group of statements goes out in one
//! write. *Procedure*: one call per transaction.
//! All three do the same work in the same order of locks; a test compares them with SQLite.
//!
//! Rows of order entry hold DECIMAL and DATETIME; the workload's cents and milliseconds are
//! converted on the wire, exactly.

mod bank;
mod call;
mod conditions;
mod customer;
mod delivery;
mod link;
mod load;
mod new_order;
mod order_status;
mod own;
mod payment;
mod procedures;
mod rows;
mod schema;
mod session;
mod stock_level;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use dbms::mariadb::Connection;
use dbms::{Error as ServerError, Login};
use events::Sink;

use crate::Error;
use crate::consistency::ConditionResult;
use crate::driver::{Dbms, Driver, Lanes, LoadReport, Meter, StoredBytes, Work, Worker};
use crate::meta::{LAYOUT, Meta};
use crate::options::ServerSettings;
use crate::server_load;
use crate::workload::{Dataset, Workload};

/// The server's numbers for what is not there: a database, a table.
const NOT_THERE: [u32; 2] = [1049, 1146];

/// How old an answer about sizes may be.
const SIZES_KEPT: Duration = Duration::from_secs(1);

/// A database of one workload in a MariaDB server.
#[derive(Debug)]
pub struct Mariadb {
    login: Login,
    place: String,
    workload: Workload,
    settings: ServerSettings,
    watch: Mutex<Watch>,
}

/// Watches sizes over a connection of its own.
#[derive(Debug, Default)]
struct Watch {
    connection: Option<Connection>,
    last: Option<(Instant, StoredBytes)>,
}

impl Mariadb {
    /// The database of a workload, loaded or not.
    pub fn new(settings: &ServerSettings, workload: Workload) -> Self {
        let login = settings.login(workload);
        let place = format!("{} at {}", login.database, login.address);
        Self { login, place, workload, settings: settings.clone(), watch: Mutex::default() }
    }

    fn connect(&self) -> Result<Connection, Error> {
        Connection::connect(&self.login).map_err(|source| match source {
            ServerError::Server { code, .. } if NOT_THERE.contains(&code) => self.not_loaded(),
            source => server_error(&self.place, "connecting", source),
        })
    }

    fn not_loaded(&self) -> Error {
        Error::NotLoaded { place: self.place.clone(), what: "no database of ours".to_owned() }
    }

    fn half_loaded(&self) -> Error {
        let what = "a load that never finished, or was made by another version";
        Error::NotLoaded { place: self.place.clone(), what: what.to_owned() }
    }

    fn read_meta(&self, connection: &mut Connection) -> Result<Meta, Error> {
        let mut pairs: Vec<(String, i64)> = Vec::new();
        let read = connection.query("SELECT name, value FROM wearmark_meta", &mut |row| {
            pairs.push((row.string()?, row.integer()?));
            Ok(())
        });
        read.map_err(|source| match source {
            ServerError::Server { code, .. } if NOT_THERE.contains(&code) => self.not_loaded(),
            source => server_error(&self.place, "reading what was loaded", source),
        })?;
        let mut value = |name: &str| {
            let found = pairs.iter().find(|(found, _)| found == name);
            found.map(|(_, value)| *value).ok_or_else(|| self.half_loaded())
        };
        match value("layout")? {
            LAYOUT => Meta::read(&mut value, self.workload),
            _ => Err(self.half_loaded()),
        }
    }
}

/// Wraps a server's answer; a full disk becomes [`Error::DiskFull`].
fn server_error(place: &str, doing: impl Into<String>, source: ServerError) -> Error {
    // ER_DISK_FULL, ER_RECORD_FILE_FULL.
    let full = [1021, 1114];
    match source {
        ServerError::Server { code, .. } if full.contains(&code) => {
            Error::DiskFull { path: place.into(), doing: doing.into() }
        }
        source => Error::Server {
            doing: format!("{} on {place}", doing.into()),
            source: Box::new(source),
        },
    }
}

/// Size of the tables and indexes of a connection's database; 0 where we may not look.
fn data_bytes(connection: &mut Connection) -> u64 {
    let sql = "SELECT CAST(COALESCE(SUM(FILE_SIZE), 0) AS UNSIGNED) \
               FROM information_schema.INNODB_SYS_TABLESPACES \
               WHERE NAME LIKE CONCAT(REPLACE(DATABASE(), '_', '\\_'), '/%')";
    connection.get(sql).ok().flatten().map_or(0, |bytes| bytes as u64)
}

/// Log that a recovery would read, which is how far the log has grown; 0 where we may not look.
fn log_bytes(connection: &mut Connection) -> u64 {
    let mut age = 0;
    let sql = "SHOW GLOBAL STATUS LIKE 'Innodb_checkpoint_age'";
    let read = connection.query(sql, &mut |row| {
        row.skip()?;
        age = row.integer()?;
        Ok(())
    });
    read.map_or(0, |_| age as u64)
}

impl Dbms for Mariadb {
    fn version(&self) -> Result<String, Error> {
        Ok(format!("MariaDB {}", self.connect()?.version()))
    }

    fn place(&self) -> String {
        self.place.clone()
    }

    fn load(&self, dataset: Dataset, seed: u64, sink: &dyn Sink) -> Result<LoadReport, Error> {
        server_load::load(self, dataset, seed, sink)
    }

    fn meta(&self) -> Result<Meta, Error> {
        self.read_meta(&mut self.connect()?)
    }

    fn count_run(&self) -> Result<(), Error> {
        let count = "UPDATE wearmark_meta SET value = value + 1 WHERE name = 'runs'";
        let done = self.connect()?.execute(count);
        done.map(drop).map_err(|source| server_error(&self.place, "noting the run", source))
    }

    fn driver(&self, dataset: Dataset) -> Result<Box<dyn Driver + '_>, Error> {
        Ok(Box::new(Sessions { database: self, dataset }))
    }

    fn integer(&self, sql: &str) -> Result<Option<i64>, Error> {
        let mut found = None;
        let read = self.connect()?.query(sql, &mut |row| {
            found = row.integer_or_null()?;
            Ok(())
        });
        let doing = format!("asking ({sql})");
        read.map(|_| found).map_err(|source| server_error(&self.place, doing, source))
    }

    fn check(&self) -> Result<Vec<ConditionResult>, Error> {
        let mut connection = self.connect()?;
        let meta = self.read_meta(&mut connection)?;
        conditions::check(&mut connection, &self.place, &meta)
    }

    fn stored(&self) -> StoredBytes {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let Watch { connection, last } = &mut *watch;
        if let Some((at, sizes)) = last
            && at.elapsed() < SIZES_KEPT
        {
            return *sizes;
        }
        if connection.as_mut().is_none_or(|connection| connection.ping().is_err()) {
            *connection = Connection::connect(&self.login).ok();
        }
        let Some(connection) = connection else { return StoredBytes::default() };
        let sizes = StoredBytes { data: data_bytes(connection), log: log_bytes(connection) };
        *last = Some((Instant::now(), sizes));
        sizes
    }
}

/// The driver of a run.
struct Sessions<'a> {
    database: &'a Mariadb,
    dataset: Dataset,
}

impl Driver for Sessions<'_> {
    fn lanes(&self) -> Lanes {
        let writers = self.database.settings.connections as usize;
        Lanes { writers, readers: 0, overlap: true }
    }

    fn with_session(
        &self,
        _worker: Worker,
        meter: &Meter,
        work: &mut Work<'_>,
    ) -> Result<(), Error> {
        let Mariadb { login, place, settings, .. } = self.database;
        let what = (self.dataset, settings.access);
        let mut session = session::MariadbSession::open(login, place, what, meter)?;
        work(&mut session)
    }
}
