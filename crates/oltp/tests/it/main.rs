//! The crate from outside: databases are miniatures, so that each test takes milliseconds.

mod capture;
mod conditions;
mod errors;
mod load;
mod mariadb;
mod own;
mod postgresql;
mod power_cuts;
mod run;
mod server;
mod statements;
mod torture;
mod transactions;
mod virtual_time;

/// A process has one capture session at a time.
static SESSION: std::sync::Mutex<()> = std::sync::Mutex::new(());

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use events::{Event, Sink};
use oltp::{Dataset, LoadOptions, Scale, SqliteSettings};
use rusqlite::Connection;
use tempfile::TempDir;

/// A directory with a freshly loaded database.
pub(crate) struct Database {
    pub(crate) directory: TempDir,
    pub(crate) settings: SqliteSettings,
    pub(crate) scale: Scale,
}

impl Database {
    pub(crate) fn new(scale: Scale) -> Self {
        Self::with(scale, |_| {})
    }

    pub(crate) fn with(scale: Scale, change: impl FnOnce(&mut SqliteSettings)) -> Self {
        let directory = temporary_directory();
        let mut settings =
            SqliteSettings { directory: directory.path().to_owned(), ..SqliteSettings::default() };
        change(&mut settings);
        oltp::load(&load_options(&settings, scale), &events::Quiet).unwrap();
        Self { directory, settings, scale }
    }

    pub(crate) fn sql(&self) -> Connection {
        Connection::open(self.settings.database()).unwrap()
    }

    /// One integer.
    pub(crate) fn get(&self, sql: &str) -> i64 {
        self.sql().query_row(sql, [], |row| row.get(0)).unwrap()
    }
}

/// In memory where there is such a file system: these tests are about logic, not about a disk.
pub(crate) fn temporary_directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub(crate) fn load_options(settings: &SqliteSettings, scale: Scale) -> LoadOptions {
    LoadOptions {
        database: oltp::Database::Sqlite(settings.clone()),
        dataset: Dataset::OrderEntry(scale),
        seed: 42,
    }
}

/// Numbers of the conditions that do not hold.
pub(crate) fn violated(database: &Path) -> Vec<u32> {
    let results = oltp::sqlite::check(database, None).unwrap();
    assert_eq!(results.len(), 17);
    results.iter().filter(|result| !result.holds).map(|result| result.number).collect()
}

/// Cancels at the n-th look.
pub(crate) struct CancelAfter(pub(crate) AtomicU64);

impl Sink for CancelAfter {
    fn emit(&self, _event: Event) {}
    fn cancelled(&self) -> bool {
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(1)))
            .is_ok_and(|left| left == 0)
    }
}
