//! Loading a database (TPC-C 5.11 clause 4.3.3.1).
//!
//! Rows go in through prepared statements, district by district and within it in the order of the
//! clustered keys, without a journal and without syncs; indexes follow; then the file is marked
//! complete, made durable, and given the journal mode of the run. Until that mark (`user_version`)
//! no stage takes the file for a database, and a load that fails or is stopped removes it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use events::{Ending, Event, Sink, Step};
use rusqlite::{Connection, OpenFlags, params};

use super::insert::insert;
use super::open::{integer, open_file, pragma, set_cache, set_journal_mode};
use super::schema::{self, APPLICATION_ID, LAYOUT, META_TABLE};
use crate::Error;
use crate::driver::LoadReport;
use crate::meta::Meta;
use crate::options::SqliteSettings;
use crate::workload::Dataset;
use crate::workload::rows::Rows;

/// Page cache while loading: the indexes of tens of warehouses sort within it.
const LOAD_CACHE: units::Bytes = units::Bytes(256 << 20);

/// Rows between two looks at the stop flag.
const ROWS_BETWEEN_CHECKS: u32 = 5000;

/// Share of the load that the indexes and the final sync take, for progress.
const INDEX_SHARE: f64 = 0.15;

const STAGE: &str = "load";

/// What to load, and where.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub settings: &'a SqliteSettings,
    pub dataset: Dataset,
    pub seed: u64,
}

/// Loads a database, in place of an earlier one that wearmark made.
///
/// # Errors
/// A missing directory, a file that is not ours, a full disk, a stop by the user; nothing is left
/// behind then.
pub(super) fn load(job: Job<'_>, sink: &dyn Sink) -> Result<LoadReport, Error> {
    let Job { settings, dataset, seed } = job;
    let path = settings.database_of(dataset.workload());
    if !settings.directory.is_dir() {
        return Err(Error::NoDirectory { path: settings.directory.clone() });
    }
    refuse_foreign(&path, settings)?;
    let rows = Rows::new(dataset, seed);
    let expected = rows.tables().iter().map(|&table| rows.expected(table)).sum();
    emit_plan(&dataset, expected, sink);
    let start = Instant::now();
    let cpu_start = thread_cpu_s();
    let counter = Counter::new(&path, expected, sink);
    let done = fill(job, &rows, counter);
    let ending = match &done {
        Ok(_) => Ending::Complete,
        Err(Error::LoadCancelled { .. }) => Ending::Interrupted,
        Err(_) => Ending::Failed,
    };
    if done.is_err() {
        remove(&path)?;
    }
    let elapsed_s = start.elapsed().as_secs_f64();
    sink.emit(Event::Done { stage: STAGE.to_owned(), elapsed_s, ending });
    let rows = done?;
    let database_bytes = std::fs::metadata(&path).map_or(0, |file| file.len());
    let cpu_s = thread_cpu_s() - cpu_start;
    let place = path.display().to_string();
    Ok(LoadReport { place, dataset, rows, database_bytes, elapsed_s, cpu_s })
}

fn thread_cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn emit_plan(dataset: &Dataset, rows: u64, sink: &dyn Sink) {
    let rows = rows as f64;
    sink.emit(Event::Plan {
        stage: STAGE.to_owned(),
        steps: vec![Step {
            name: format!("load {dataset}"),
            // 2.2 us of CPU and 145 bytes per row of the specification's mixture, measured.
            expected_s: rows * 3e-6,
            writes_bytes: (rows * 145.0) as u64,
        }],
    });
}

/// A file that we did not make is never touched.
fn refuse_foreign(path: &Path, settings: &SqliteSettings) -> Result<(), Error> {
    let not_ours = || Error::NotOurs { path: path.to_owned() };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => {
            return Err(Error::Io { path: path.to_owned(), doing: "looking at", source });
        }
        Ok(file) if !file.is_file() => return Err(not_ours()),
        Ok(file) if file.len() == 0 => return Err(not_ours()),
        Ok(_) => {}
    }
    let connection = open_file(path, settings.vfs.as_deref(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    match integer(&connection, path, "PRAGMA application_id") {
        Ok(APPLICATION_ID) => {
            drop(connection);
            remove(path)
        }
        _ => Err(not_ours()),
    }
}

/// Removes the database and everything that SQLite keeps beside it.
fn remove(path: &Path) -> Result<(), Error> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let file = PathBuf::from(name);
        match std::fs::remove_file(&file) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::Io { path: file, doing: "removing", source });
            }
            _ => {}
        }
    }
    Ok(())
}

fn fill(job: Job<'_>, rows: &Rows, mut counter: Counter<'_>) -> Result<u64, Error> {
    let Job { settings, dataset, seed } = job;
    let (path, sink) = (counter.path, counter.sink);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = open_file(path, settings.vfs.as_deref(), flags)?;
    pragma(&connection, path, "page_size", &settings.page_size.0.to_string())?;
    pragma(&connection, path, "application_id", &APPLICATION_ID.to_string())?;
    pragma(&connection, path, "journal_mode", "off")?;
    pragma(&connection, path, "synchronous", "off")?;
    pragma(&connection, path, "locking_mode", "exclusive")?;
    pragma(&connection, path, "temp_store", "memory")?;
    if let Some(limit) = settings.size_limit {
        let pages = limit.0 / settings.page_size.0;
        pragma(&connection, path, "max_page_count", &pages.to_string())?;
    }
    set_cache(&connection, path, LOAD_CACHE)?;
    let sql = |doing: &str, sql: &str| {
        connection.execute_batch(sql).map_err(|source| Error::sqlite(path, doing, source))
    };
    sql("creating the tables", META_TABLE)?;
    for table in schema::create_all(&dataset, rows.tables()) {
        sql("creating the tables", &table)?;
    }
    sql("beginning the load", "BEGIN")?;
    for chunk in rows.chunks_by_place() {
        insert(&connection, rows, chunk, &mut counter)?;
    }
    sql("ending the load", "COMMIT")?;
    let indexes = schema::indexes(&dataset, rows.tables());
    for (k, (name, index)) in (0..).zip(&indexes) {
        let doing = format!("indexing {name}");
        let done = 1.0 - INDEX_SHARE + INDEX_SHARE * f64::from(k) / indexes.len() as f64;
        progress(sink, path, done, &doing)?;
        sql(&doing, index)?;
    }
    sql("gathering statistics", "PRAGMA analysis_limit = 1000; ANALYZE")?;
    write_meta(&connection, dataset, seed)
        .map_err(|source| Error::sqlite(path, "marking the load complete", source))?;
    drop(connection);
    finish(path, settings)?;
    progress(sink, path, 1.0, "loaded")?;
    Ok(counter.rows)
}

/// The rows are on the device before the mark that says so is.
fn finish(path: &Path, settings: &SqliteSettings) -> Result<(), Error> {
    let sync = |file: &Path| {
        File::open(file).and_then(|file| file.sync_all()).map_err(|source| Error::Io {
            path: file.to_owned(),
            doing: "making durable",
            source,
        })
    };
    sync(path)?;
    let connection = open_file(path, settings.vfs.as_deref(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    pragma(&connection, path, "synchronous", "full")?;
    pragma(&connection, path, "user_version", &LAYOUT.to_string())?;
    set_journal_mode(&connection, path, settings.journal_mode)?;
    drop(connection);
    sync(path)?;
    sync(&settings.directory)
}

fn write_meta(connection: &Connection, dataset: Dataset, seed: u64) -> rusqlite::Result<()> {
    for (key, value) in Meta::of_load(dataset, seed).rows() {
        connection.execute("INSERT INTO wearmark_meta VALUES (?1, ?2)", params![key, value])?;
    }
    Ok(())
}

fn progress(sink: &dyn Sink, path: &Path, done: f64, doing: &str) -> Result<(), Error> {
    sink.emit(Event::Progress {
        stage: STAGE.to_owned(),
        done,
        doing: doing.to_owned(),
        eta_s: None,
    });
    if sink.cancelled() {
        return Err(Error::LoadCancelled { place: path.display().to_string() });
    }
    Ok(())
}

/// Counts inserted rows; reports and looks at the stop flag now and then.
pub(super) struct Counter<'a> {
    path: &'a Path,
    sink: &'a dyn Sink,
    /// Rows so far.
    pub rows: u64,
    expected: f64,
    start: Instant,
    until_check: u32,
}

impl<'a> Counter<'a> {
    pub fn new(path: &'a Path, expected: u64, sink: &'a dyn Sink) -> Self {
        let expected = expected as f64;
        let (start, until_check) = (Instant::now(), ROWS_BETWEEN_CHECKS);
        Self { path, sink, rows: 0, expected, start, until_check }
    }

    /// Wraps SQLite's answer.
    pub fn sqlite<T>(&self, table: &str, result: rusqlite::Result<T>) -> Result<T, Error> {
        result.map_err(|source| Error::sqlite(self.path, format!("loading {table}"), source))
    }

    /// Counts one row.
    pub fn inserted(&mut self, table: &str, result: rusqlite::Result<usize>) -> Result<(), Error> {
        self.sqlite(table, result)?;
        self.rows += 1;
        self.until_check -= 1;
        if self.until_check > 0 {
            return Ok(());
        }
        self.until_check = ROWS_BETWEEN_CHECKS;
        let share = (self.rows as f64 / self.expected).min(1.0) * (1.0 - INDEX_SHARE);
        let elapsed = self.start.elapsed().as_secs_f64();
        self.sink.emit(Event::Progress {
            stage: STAGE.to_owned(),
            done: share,
            doing: format!("loading {table}"),
            eta_s: Some(elapsed * (1.0 - share) / share.max(1e-9)),
        });
        if self.sink.cancelled() {
            return Err(Error::LoadCancelled { place: self.path.display().to_string() });
        }
        Ok(())
    }
}
