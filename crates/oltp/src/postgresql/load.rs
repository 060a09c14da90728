//! Loading (TPC-C 5.11 clause 4.3.3.1): every table is made, filled, indexed and analysed in one
//! transaction of its own, two or more of them at a time.
//!
//! Rows go in by `COPY ... FREEZE` in binary, in the transaction that makes their table: they are
//! visible to all from the start, need no vacuum, and no log where the server's `wal_level` is
//! `minimal`. Indexes are built from all rows at once. The rows of [`crate::meta`] come last; until
//! then no stage takes the database for one. A load that fails or is stopped takes away what it
//! made, and the next load takes away what a killed one left.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use dbms::postgresql::binary::{push_bytes, push_i32, push_i64};
use dbms::postgresql::{Canceller, Connection};
use dbms::{Error as ServerError, Login};
use events::{Ending, Event, Sink, Step};

use super::procedures;
use super::rows::{Rows, Table};
use super::schema::{self, META, TableSql};
use crate::Error;
use crate::driver::LoadReport;
use crate::meta::Meta;
use crate::workload::Dataset;
use crate::workload::bank::BankScale;
use crate::workload::commit::CommitScale;

const STAGE: &str = "load";

/// Tables that are loaded at a time, where the machine has the processors.
const STREAMS_MAX: usize = 4;

/// Sorts of index builds stay in memory up to about 20 warehouses.
const SORT_MEMORY: &str = "256MB";

/// Pace of progress and of looking at the stop flag.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Share of the load that is rows rather than indexes and statistics, for progress.
const ROWS_SHARE: f64 = 0.7;

/// Rows of the simple tables in one chunk.
const CHUNK_ROWS: u32 = 20_000;

/// `SQLSTATE` of a database that does not exist.
const NO_DATABASE: &str = "3D000";

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
        move |source| super::server_error(&place, doing, source)
    }
}

/// Appends the rows of a chunk; returns their number.
type Fill<'a> = dyn Fn(usize, &mut Vec<u8>) -> u64 + Sync + 'a;

/// A table and its rows.
struct Task<'a> {
    sql: TableSql,
    rows_expected: u64,
    /// Weight in bytes, to begin with the largest.
    bytes_expected: u64,
    chunks: usize,
    fill: Box<Fill<'a>>,
}

/// How far the load is, for all threads.
#[derive(Default)]
struct Shared {
    next: AtomicUsize,
    rows: AtomicU64,
    tables: AtomicUsize,
    stop: AtomicBool,
    cpu_ns: AtomicU64,
    cancellers: Mutex<Vec<Canceller>>,
}

/// Loads a database, in place of an earlier one that wearmark made.
pub(super) fn load(job: &Job<'_>, sink: &dyn Sink) -> Result<LoadReport, Error> {
    let start = Instant::now();
    let tasks = tasks(&job.dataset, job.seed);
    let rows: u64 = tasks.iter().map(|task| task.rows_expected).sum();
    sink.emit(Event::Plan {
        stage: STAGE.to_owned(),
        steps: vec![Step {
            name: format!("load {}", job.dataset),
            // 1.6 us of server and client CPU and 150 bytes per row, measured on two processors.
            expected_s: rows as f64 * 1.6e-6,
            writes_bytes: rows * 150,
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
    let elapsed_s = start.elapsed().as_secs_f64();
    if loaded.is_ok() {
        progress(sink, 1.0, "loaded");
    }
    sink.emit(Event::Done { stage: STAGE.to_owned(), elapsed_s, ending });
    loaded.map(|report| LoadReport { elapsed_s, ..report })
}

fn progress(sink: &dyn Sink, done: f64, doing: &str) {
    let (stage, doing) = (STAGE.to_owned(), doing.to_owned());
    sink.emit(Event::Progress { stage, done, doing, eta_s: None });
}

/// Connects, makes the database where there is none (and says so), takes away an earlier load.
fn prepare(job: &Job<'_>) -> Result<(Connection, bool), Error> {
    let (mut connection, made) = match Connection::connect(job.login) {
        Err(error) if error.sqlstate() == Some(NO_DATABASE) => {
            let make =
                format!("CREATE DATABASE {} TEMPLATE template0", quoted(&job.login.database));
            administrate(job, &make).map_err(job.failed("creating the database"))?;
            (Connection::connect(job.login).map_err(job.failed("connecting"))?, true)
        }
        other => (other.map_err(job.failed("connecting"))?, false),
    };
    refuse_foreign(job, &mut connection)?;
    let drop = drop_all(&job.dataset);
    connection.execute(&drop).map_err(job.failed("removing an earlier load"))?;
    connection.execute(META).map_err(job.failed("creating the tables"))?;
    Ok((connection, made))
}

/// A statement about databases, in one that always exists.
fn administrate(job: &Job<'_>, sql: &str) -> Result<(), ServerError> {
    let login = Login { database: "postgres".to_owned(), ..job.login.clone() };
    Connection::connect(&login)?.execute(sql)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Tables of these names that we did not make are never touched.
fn refuse_foreign(job: &Job<'_>, connection: &mut Connection) -> Result<(), Error> {
    let names: Vec<String> =
        schema::tables(&job.dataset).iter().map(|name| format!("'{name}'")).collect();
    let sql = format!(
        "SELECT relname FROM pg_class WHERE pg_table_is_visible(oid) AND relkind IN ('r', 'v', 'p') \
         AND relname IN ({}) AND to_regclass('wearmark_meta') IS NULL LIMIT 1",
        names.join(", ")
    );
    let found = connection.query(&sql).map_err(job.failed("looking at the database"))?;
    match found.first().and_then(|row| row.first().cloned().flatten()) {
        None => Ok(()),
        Some(table) => Err(Error::Foreign { place: job.place.to_owned(), what: table }),
    }
}

fn drop_all(dataset: &Dataset) -> String {
    let tables = schema::tables(dataset).join(", ");
    format!("DROP TABLE IF EXISTS wearmark_meta, {tables}; {}", procedures::DROP)
}

/// Takes away what a load that failed has made. Best effort: the server may be gone.
fn clean(job: &Job<'_>, mut connection: Connection, made: bool) {
    let _ = connection.execute(&drop_all(&job.dataset));
    drop(connection);
    if made {
        let drop = format!("DROP DATABASE IF EXISTS {}", quoted(&job.login.database));
        let _ = administrate(job, &drop);
    }
}

/// Fills all tables, on threads of their own; this one reports and looks at the stop flag.
fn fill(job: &Job<'_>, tasks: &[Task<'_>], shared: &Shared, sink: &dyn Sink) -> Result<(), Error> {
    let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let streams = processors.clamp(2, STREAMS_MAX).min(tasks.len());
    let rows_expected: u64 = tasks.iter().map(|task| task.rows_expected).sum();
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
        let mut cancelled = false;
        loop {
            match ends.recv_timeout(LOOK_EVERY) {
                Ok(Err(error)) if result.is_ok() => {
                    result = Err(error);
                    stop(shared);
                }
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) if cancelled => stop(shared),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let rows = shared.rows.load(Ordering::Relaxed) as f64;
                    let tables = shared.tables.load(Ordering::Relaxed) as f64;
                    let done = ROWS_SHARE * (rows / rows_expected as f64).min(1.0)
                        + (1.0 - ROWS_SHARE) * tables / tasks.len() as f64;
                    progress(sink, done.min(0.999), "loading tables");
                }
            }
            if !cancelled && sink.cancelled() {
                cancelled = true;
                result = Err(Error::LoadCancelled { place: job.place.to_owned() });
                stop(shared);
            }
        }
    });
    result
}

/// Stops the other streams, whatever they do.
fn stop(shared: &Shared) {
    shared.stop.store(true, Ordering::Relaxed);
    for canceller in shared.cancellers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let _ = canceller.cancel();
    }
}

/// One thread and one connection: takes tables, the largest first.
fn stream(job: &Job<'_>, tasks: &[Task<'_>], shared: &Shared) -> Result<(), Error> {
    let mut connection = Connection::connect(job.login).map_err(job.failed("connecting"))?;
    let canceller = connection.canceller();
    shared.cancellers.lock().unwrap_or_else(PoisonError::into_inner).push(canceller);
    let settings = format!(
        "SET maintenance_work_mem = '{SORT_MEMORY}'; SET max_parallel_maintenance_workers = 0; \
         SET client_min_messages = 'warning'"
    );
    connection.execute(&settings).map_err(job.failed("setting up the load"))?;
    while !shared.stop.load(Ordering::Relaxed) {
        let Some(task) = tasks.get(shared.next.fetch_add(1, Ordering::Relaxed)) else { break };
        let loaded = table(&mut connection, task, shared);
        loaded.map_err(job.failed(format!("loading {}", task.sql.name)))?;
        shared.tables.fetch_add(1, Ordering::Relaxed);
    }
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let cpu_ns = cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64;
    shared.cpu_ns.fetch_add(cpu_ns, Ordering::Relaxed);
    Ok(())
}

/// One table in one transaction.
fn table(connection: &mut Connection, task: &Task<'_>, shared: &Shared) -> Result<(), ServerError> {
    let name = task.sql.name;
    connection.execute("BEGIN")?;
    connection.execute(task.sql.create)?;
    let copy = format!("COPY {name} FROM STDIN WITH (FORMAT binary, FREEZE)");
    let mut copy = connection.copy_in(&copy)?;
    let mut rows = Vec::new();
    for chunk in 0..task.chunks {
        if shared.stop.load(Ordering::Relaxed) {
            return copy.abort();
        }
        rows.clear();
        let count = (task.fill)(chunk, &mut rows);
        copy.send(&rows)?;
        shared.rows.fetch_add(count, Ordering::Relaxed);
    }
    copy.finish()?;
    for sql in task.sql.after {
        connection.execute(sql)?;
    }
    connection.execute(&format!("ANALYZE {name}"))?;
    connection.execute("COMMIT")
}

/// Procedures, statistics of the run's start, and the marks that the load is complete.
fn finish(
    job: &Job<'_>,
    connection: &mut Connection,
    shared: &Shared,
) -> Result<LoadReport, Error> {
    connection
        .execute(procedures::of(&job.dataset))
        .map_err(job.failed("creating the procedures"))?;
    let meta: Vec<String> = Meta::of_load(job.dataset, job.seed)
        .rows(job.seed)
        .iter()
        .map(|(key, value)| format!("('{key}', {value})"))
        .collect();
    let insert = format!("INSERT INTO wearmark_meta VALUES {}", meta.join(", "));
    connection.execute(&insert).map_err(job.failed("marking the load complete"))?;
    // A run then starts from clean pages. Only a superuser may ask for it; nobody needs it.
    let _ = connection.execute("CHECKPOINT");
    let size = connection
        .query("SELECT pg_database_size(current_database())")
        .map_err(job.failed("asking for the size"))?;
    let size = size.first().and_then(|row| row.first().cloned().flatten());
    Ok(LoadReport {
        place: job.place.to_owned(),
        dataset: job.dataset,
        rows: shared.rows.load(Ordering::Relaxed),
        database_bytes: size.and_then(|text| text.parse().ok()).unwrap_or(0),
        elapsed_s: 0.0,
        cpu_s: shared.cpu_ns.load(Ordering::Relaxed) as f64 / 1e9,
    })
}

/// The tables of a dataset, the largest first: the streams then end at about the same time.
fn tasks(dataset: &Dataset, seed: u64) -> Vec<Task<'static>> {
    let mut tasks = match *dataset {
        Dataset::OrderEntry(scale) => {
            let rows = Rows::new(scale, seed);
            let task = |table: Table| {
                let chunks = rows.chunks(table);
                Task {
                    sql: schema::order_entry(table),
                    rows_expected: table.rows_expected(&scale),
                    bytes_expected: table.rows_expected(&scale) * table.row_bytes(),
                    chunks: chunks.len(),
                    fill: Box::new(move |chunk, out| rows.append(chunks[chunk], out)),
                }
            };
            Table::ALL.into_iter().map(task).collect()
        }
        Dataset::Bank(scale) => bank(scale),
        Dataset::Commit(scale) => commit(scale),
    };
    tasks.sort_by_key(|task: &Task<'_>| std::cmp::Reverse(task.bytes_expected));
    tasks
}

/// Rows with a key, perhaps a branch, and a balance of 0.
fn simple(
    sql: TableSql,
    rows: u32,
    branch: impl Fn(u32) -> Option<u32> + Sync + 'static,
) -> Task<'static> {
    let filler = [b' '; 84];
    Task {
        sql,
        rows_expected: u64::from(rows),
        bytes_expected: u64::from(rows) * 100,
        chunks: rows.div_ceil(CHUNK_ROWS) as usize,
        fill: Box::new(move |chunk, out| {
            let first = chunk as u32 * CHUNK_ROWS + 1;
            let last = (first + CHUNK_ROWS - 1).min(rows);
            for key in first..=last {
                let branch = branch(key);
                let fields = 3 + u16::from(branch.is_some());
                out.extend_from_slice(&fields.to_be_bytes());
                push_i32(out, key as i32);
                if let Some(branch) = branch {
                    push_i32(out, branch as i32);
                }
                push_i64(out, 0);
                push_bytes(out, &filler);
            }
            u64::from(last + 1 - first)
        }),
    }
}

fn bank(scale: BankScale) -> Vec<Task<'static>> {
    let [branches, tellers, accounts, history] = schema::BANK;
    vec![
        simple(branches, scale.branches, |_| None),
        simple(tellers, scale.tellers(), move |key| Some(scale.branch_of_teller(key))),
        simple(accounts, scale.accounts(), move |key| Some(scale.branch_of_account(key))),
        simple(history, 0, |_| None),
    ]
}

fn commit(scale: CommitScale) -> Vec<Task<'static>> {
    let [table] = schema::COMMIT;
    vec![simple(table, scale.rows, |_| None)]
}
