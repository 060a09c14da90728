//! Loading (TPC-C 5.11 clause 4.3.3.1): every table by one LOAD DATA LOCAL of its own, two or more
//! of them at a time.
//!
//! Rows go into empty tables in the order of their primary keys with unique_checks and
//! foreign_key_checks off: InnoDB then builds the tree page by page and logs no undo for rows (bulk
//! insert). Secondary indexes are built from all rows at once, then statistics. Procedures and the
//! rows of [`crate::meta`] come last; until then no stage takes the database for one. A load that
//! fails or is stopped takes away what it made, and the next load takes away what a killed one left.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, mpsc};
use std::time::{Duration, Instant};

use dbms::mariadb::Connection;
use dbms::{Error as ServerError, Login};
use events::{Ending, Event, Sink, Step};

use super::rows::{Source, source};
use super::schema::{self, Table};
use super::{procedures, server_error};
use crate::Error;
use crate::driver::LoadReport;
use crate::meta::Meta;
use crate::workload::Dataset;

const STAGE: &str = "load";

/// Tables that are loaded at a time, where the machine has the processors.
const STREAMS_MAX: usize = 4;

/// Pace of progress and of looking at the stop flag.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Share of the load that is rows rather than indexes and statistics, for progress.
const ROWS_SHARE: f64 = 0.85;

/// The server's number for a database that does not exist.
const NO_DATABASE: u32 = 1049;

/// What to load, and where.
pub(super) struct Job<'a> {
    pub login: &'a Login,
    pub place: &'a str,
    pub dataset: Dataset,
    pub seed: u64,
}

impl Job<'_> {
    fn failed(&self, doing: impl Into<String>) -> impl FnOnce(ServerError) -> Error {
        let (doing, place) = (doing.into(), self.place.to_owned());
        move |source| server_error(&place, doing, source)
    }
}

/// A table and its rows.
struct Task {
    table: &'static Table,
    source: Source,
}

/// How far the load is, for all threads.
#[derive(Default)]
struct Shared {
    next: AtomicUsize,
    rows: AtomicU64,
    tables: AtomicUsize,
    stop: AtomicBool,
    cpu_ns: AtomicU64,
    /// The server's numbers of the connections that load.
    connections: Mutex<Vec<u32>>,
}

/// Loads a database, in place of an earlier one that wearmark made.
pub(super) fn load(job: &Job<'_>, sink: &dyn Sink) -> Result<LoadReport, Error> {
    let start = Instant::now();
    let tasks = tasks(&job.dataset, job.seed);
    let rows: u64 = tasks.iter().map(|task| task.source.rows_expected).sum();
    sink.emit(Event::Plan {
        stage: STAGE.to_owned(),
        steps: vec![Step {
            name: format!("load {}", job.dataset),
            // Measured on two busy processors.
            expected_s: rows as f64 * 4e-6,
            writes_bytes: rows * 200,
        }],
    });
    let loaded = prepare(job).and_then(|(mut connection, made)| {
        let shared = Shared::default();
        let filled =
            fill(job, &tasks, &shared, sink).and_then(|()| finish(job, &mut connection, &shared));
        if filled.is_err() {
            clean(job, connection, made);
        }
        filled
    });
    let ending = match &loaded {
        Ok(_) => Ending::Complete,
        Err(Error::LoadCancelled { .. }) => Ending::Interrupted,
        Err(_) => Ending::Failed,
    };
    if loaded.is_ok() {
        progress(sink, 1.0, "loaded");
    }
    let elapsed_s = start.elapsed().as_secs_f64();
    sink.emit(Event::Done { stage: STAGE.to_owned(), elapsed_s, ending });
    loaded.map(|report| LoadReport { elapsed_s, ..report })
}

fn progress(sink: &dyn Sink, done: f64, doing: &str) {
    let (stage, doing) = (STAGE.to_owned(), doing.to_owned());
    sink.emit(Event::Progress { stage, done, doing, eta_s: None });
}

fn tasks(dataset: &Dataset, seed: u64) -> Vec<Task> {
    let task = |table| Task { table, source: source(dataset, seed, table.name) };
    let mut tasks: Vec<Task> = schema::tables(dataset.workload()).iter().map(task).collect();
    // The largest first: streams end at about the same time.
    tasks.sort_by_key(|task| std::cmp::Reverse(task.source.bytes_expected));
    tasks
}

/// Connects, makes the database where there is none (and says so), takes away an earlier load.
fn prepare(job: &Job<'_>) -> Result<(Connection, bool), Error> {
    let (mut connection, made) = match Connection::connect(job.login) {
        Err(ServerError::Server { code: NO_DATABASE, .. }) => {
            let make = format!("CREATE DATABASE {}", quoted(&job.login.database));
            administrate(job, &make).map_err(job.failed("creating the database"))?;
            (Connection::connect(job.login).map_err(job.failed("connecting"))?, true)
        }
        other => (other.map_err(job.failed("connecting"))?, false),
    };
    refuse_foreign(job, &mut connection)?;
    let create = create_all(&job.dataset);
    let mut all = || {
        connection.execute(&schema::drop_all(&job.dataset))?;
        connection.execute(&create)
    };
    all().map_err(job.failed("creating the tables"))?;
    Ok((connection, made))
}

fn create_all(dataset: &Dataset) -> String {
    let create = |table: &Table| {
        format!("; CREATE TABLE {} ({}) {}", table.name, table.columns, schema::OPTIONS)
    };
    let tables: String = schema::tables(dataset.workload()).iter().map(create).collect();
    schema::META.to_owned() + &tables
}

/// A statement about databases, outside of any.
fn administrate(job: &Job<'_>, sql: &str) -> Result<(), ServerError> {
    let login = Login { database: String::new(), ..job.login.clone() };
    Connection::connect(&login)?.execute(sql).map(drop)
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Tables of these names that we did not make are never touched.
fn refuse_foreign(job: &Job<'_>, connection: &mut Connection) -> Result<(), Error> {
    let names = schema::tables(job.dataset.workload()).iter();
    let names: Vec<String> = names.map(|table| format!("'{}'", table.name)).collect();
    let sql = format!(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() \
         AND table_name IN ({}) AND NOT EXISTS (SELECT 1 FROM information_schema.tables \
         WHERE table_schema = DATABASE() AND table_name = 'wearmark_meta') LIMIT 1",
        names.join(", ")
    );
    let mut found = None;
    connection
        .query(&sql, &mut |row| {
            found = Some(row.string()?);
            Ok(())
        })
        .map_err(job.failed("looking at the database"))?;
    found.map_or(Ok(()), |what| Err(Error::Foreign { place: job.place.to_owned(), what }))
}

/// Takes away what a load that failed has made. Best effort: the server may be gone.
fn clean(job: &Job<'_>, mut connection: Connection, made: bool) {
    let _ = connection.execute(&schema::drop_all(&job.dataset));
    drop(connection);
    if made {
        let _ = administrate(job, &format!("DROP DATABASE {}", quoted(&job.login.database)));
    }
}

/// Fills all tables, on threads of their own; this one reports and looks at the stop flag.
fn fill(job: &Job<'_>, tasks: &[Task], shared: &Shared, sink: &dyn Sink) -> Result<(), Error> {
    let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let streams = processors.clamp(2, STREAMS_MAX).min(tasks.len());
    let rows_expected: u64 = tasks.iter().map(|task| task.source.rows_expected).sum();
    let (sender, ends) = mpsc::channel();
    let mut result = Ok(());
    std::thread::scope(|scope| {
        for _ in 0..streams {
            let sender = sender.clone();
            scope.spawn(move || {
                let _ = sender.send(stream(job, tasks, shared));
            });
        }
        drop(sender);
        loop {
            match ends.recv_timeout(LOOK_EVERY) {
                Ok(Err(error)) if result.is_ok() => {
                    result = Err(error);
                    stop(job, shared);
                }
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) if result.is_err() => stop(job, shared),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let rows = shared.rows.load(Ordering::Relaxed) as f64;
                    let tables = shared.tables.load(Ordering::Relaxed) as f64;
                    let done = ROWS_SHARE * (rows / rows_expected.max(1) as f64).min(1.0)
                        + (1.0 - ROWS_SHARE) * tables / tasks.len() as f64;
                    progress(sink, done.min(0.999), "loading tables");
                }
            }
            if result.is_ok() && sink.cancelled() {
                result = Err(Error::LoadCancelled { place: job.place.to_owned() });
                stop(job, shared);
            }
        }
    });
    result
}

/// Stops all streams, whatever they do.
fn stop(job: &Job<'_>, shared: &Shared) {
    shared.stop.store(true, Ordering::Relaxed);
    let connections = shared.connections.lock().unwrap_or_else(PoisonError::into_inner);
    for connection in connections.iter() {
        // One that has ended cannot be killed.
        let _ = administrate(job, &format!("KILL {connection}"));
    }
}

/// One thread and one connection: takes tables, the largest first.
fn stream(job: &Job<'_>, tasks: &[Task], shared: &Shared) -> Result<(), Error> {
    let mut connection = Connection::connect(job.login).map_err(job.failed("connecting"))?;
    let mut connections = shared.connections.lock().unwrap_or_else(PoisonError::into_inner);
    connections.push(connection.id());
    drop(connections);
    connection
        .execute("SET SESSION unique_checks = 0, foreign_key_checks = 0, time_zone = '+00:00'")
        .map_err(job.failed("setting up the load"))?;
    while !shared.stop.load(Ordering::Relaxed) {
        let Some(task) = tasks.get(shared.next.fetch_add(1, Ordering::Relaxed)) else { break };
        let loaded = table(&mut connection, task, shared);
        loaded.map_err(job.failed(format!("loading {}", task.table.name)))?;
        shared.tables.fetch_add(1, Ordering::Relaxed);
    }
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let cpu_ns = cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64;
    shared.cpu_ns.fetch_add(cpu_ns, Ordering::Relaxed);
    Ok(())
}

/// Bytes that are sent at once.
const SEND_BYTES: usize = 256 << 10;

/// One table: rows, secondary indexes, statistics.
fn table(connection: &mut Connection, task: &Task, shared: &Shared) -> Result<(), ServerError> {
    let Task { table, source } = task;
    let (mut next, mut sent) = (0, 0);
    let sql = format!("LOAD DATA LOCAL INFILE '' INTO TABLE {} CHARACTER SET latin1", table.name);
    let done = connection.load_data(&sql, &mut |piece| {
        let before = sent;
        while next < source.pieces && piece.len() < SEND_BYTES {
            sent += (source.append)(next, piece);
            next += 1;
        }
        shared.rows.fetch_add(sent - before, Ordering::Relaxed);
        // A stop leaves the rest out; the tables are taken away then.
        Ok(next < source.pieces && !shared.stop.load(Ordering::Relaxed))
    })?;
    if shared.stop.load(Ordering::Relaxed) {
        return Ok(());
    }
    if (done.affected, done.warnings) != (sent, 0) {
        // LOCAL turns errors into warnings.
        let what = format!(
            "{} of {sent} rows of {} were taken, with {} warnings",
            done.affected, table.name, done.warnings
        );
        return Err(ServerError::Protocol { what });
    }
    if !table.indexes.is_empty() {
        connection.execute(&format!("ALTER TABLE {} {}", table.name, table.indexes))?;
    }
    connection.execute(&format!("ANALYZE TABLE {}", table.name)).map(drop)
}

/// Procedures, and the marks that the load is complete.
fn finish(
    job: &Job<'_>,
    connection: &mut Connection,
    shared: &Shared,
) -> Result<LoadReport, Error> {
    for sql in procedures::create(job.dataset.workload()) {
        connection.execute(sql).map_err(job.failed("creating the procedures"))?;
    }
    let rows = Meta::of_load(job.dataset, job.seed).rows(job.seed);
    let rows: Vec<String> =
        rows.iter().map(|(name, value)| format!("('{name}', {value})")).collect();
    connection
        .execute(&format!("INSERT INTO wearmark_meta VALUES {}", rows.join(", ")))
        .map_err(job.failed("marking the load complete"))?;
    Ok(LoadReport {
        place: job.place.to_owned(),
        dataset: job.dataset,
        rows: shared.rows.load(Ordering::Relaxed),
        database_bytes: super::data_bytes(connection),
        elapsed_s: 0.0,
        cpu_s: shared.cpu_ns.load(Ordering::Relaxed) as f64 / 1e9,
    })
}
