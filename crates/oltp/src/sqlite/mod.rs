//! Embedded SQLite: loading, opening, and the transactions of every workload.
//!
//! SQLite has one writer. One connection, on one worker thread, therefore runs all read-write
//! transactions (BEGIN IMMEDIATE), and further connections the read-only ones; which runs when is
//! decided by the queues of [`crate::engine::users`], so SQLite's own locks are not met busy. A
//! busy answer can still come from another process: after SQLite's own wait it counts as a failed
//! attempt and is retried.

mod bank;
mod commit;
mod conditions;
mod customer;
mod delivery;
mod insert;
mod load;
mod new_order;
mod open;
mod order_status;
mod own;
mod payment;
mod schema;
mod session;
mod stock_level;

use std::path::PathBuf;

use events::Sink;

use crate::Error;
use crate::consistency::ConditionResult;
use crate::driver::{Dbms, Driver, Lanes, LoadReport, Meter, StoredBytes, Work, Worker};
use crate::meta::Meta;
use crate::options::{JournalMode, SqliteSettings};
use crate::workload::{Dataset, Workload};

pub use conditions::{check, check_of};

/// SQLite with its settings, for the database of one workload.
#[derive(Clone, Debug)]
pub struct Sqlite {
    path: PathBuf,
    settings: SqliteSettings,
    workload: Workload,
}

impl Sqlite {
    /// The database of a workload, loaded or not.
    pub fn new(settings: &SqliteSettings, workload: Workload) -> Self {
        Self { path: settings.database_of(workload), settings: settings.clone(), workload }
    }

    fn log(&self) -> PathBuf {
        let wal = self.settings.journal_mode == JournalMode::Wal;
        let mut name = self.path.as_os_str().to_owned();
        name.push(if wal { "-wal" } else { "-journal" });
        PathBuf::from(name)
    }
}

impl Dbms for Sqlite {
    fn version(&self) -> Result<String, Error> {
        Ok(format!("SQLite {}", rusqlite::version()))
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn load(&self, dataset: Dataset, seed: u64, sink: &dyn Sink) -> Result<LoadReport, Error> {
        load::load(load::Job { settings: &self.settings, dataset, seed }, sink)
    }

    fn meta(&self) -> Result<Meta, Error> {
        open::read_meta(&self.path, self.settings.vfs.as_deref(), self.workload)
    }

    fn count_run(&self) -> Result<(), Error> {
        open::count_run(&self.path, &self.settings)
    }

    fn driver(&self, dataset: Dataset) -> Result<Box<dyn Driver + '_>, Error> {
        Ok(Box::new(Sessions { database: self, dataset }))
    }

    fn integer(&self, sql: &str) -> Result<Option<i64>, Error> {
        open::first_integer(&self.path, self.settings.vfs.as_deref(), sql)
    }

    fn check(&self) -> Result<Vec<ConditionResult>, Error> {
        check_of(&self.path, self.settings.vfs.as_deref(), self.workload)
    }

    fn stored(&self) -> StoredBytes {
        let size = |path: PathBuf| std::fs::metadata(path).map_or(0, |file| file.len());
        StoredBytes { data: size(self.path.clone()), log: size(self.log()) }
    }
}

/// The driver of a run.
struct Sessions<'a> {
    database: &'a Sqlite,
    dataset: Dataset,
}

impl Driver for Sessions<'_> {
    fn lanes(&self) -> Lanes {
        let settings = &self.database.settings;
        Lanes {
            writers: 1,
            readers: settings.readers as usize,
            overlap: settings.journal_mode == JournalMode::Wal,
        }
    }

    fn with_session(
        &self,
        worker: Worker,
        meter: &Meter,
        work: &mut Work<'_>,
    ) -> Result<(), Error> {
        let Sqlite { path, settings, .. } = self.database;
        let connection = open::open(path, settings, worker.writes)?;
        let mut session = session::SqliteSession::new(&connection, path, self.dataset, meter)?;
        work(&mut session)
    }
}
