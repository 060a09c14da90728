//! Loading into a server (TPC-C 5.11 clause 4.3.3.1): table by table, two or more of them at a
//! time, each over a connection of its own.
//!
//! Indexes are built from all rows at once, then statistics. Procedures and the rows of
//! [`crate::meta`] come last; until then no stage takes the database for one. A load that fails or
//! is stopped takes away what it made, and the next load takes away what a killed one left. Tables
//! of our names that wearmark did not make are never touched.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use dbms::{Error as ServerError, Login};
use events::{Ending, Event, Sink, Step};

use crate::Error;
use crate::driver::LoadReport;
use crate::meta::Meta;
use crate::workload::own::rows::append_lines;
use crate::workload::rows::{Chunk, Rows};
use crate::workload::schema::Table;
use crate::workload::{Dataset, Workload};

const STAGE: &str = "load";

/// Tables that are loaded at a time, where the machine has the processors.
const STREAMS_MAX: usize = 4;

/// Pace of progress and of looking at the stop flag.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What a load needs of a server.
pub(crate) trait Loader: Sync {
    /// A connection, used by one thread.
    type Connection;
    /// Names a connection to [`Loader::cancel`].
    type Canceller: Send;

    /// Seconds and bytes of a row, for the plan.
    const ROW: (f64, u64);
    /// Share of the load that is rows rather than indexes and statistics, for progress.
    const ROWS_SHARE: f64;
    /// A database that is always there: for statements about databases.
    const ADMINISTRATION: &'static str;
    /// What follows the name of a database that is created.
    const DATABASE_OPTIONS: &'static str;
    /// Settings of a connection that loads.
    const SETTINGS: &'static str;

    /// Whose database it is.
    fn login(&self) -> &Login;
    /// The database, for messages.
    fn place(&self) -> &str;
    /// Wraps a server's answer.
    fn error(&self, doing: String, source: ServerError) -> Error;

    fn connect(login: &Login) -> Result<Self::Connection, ServerError>;
    fn execute(connection: &mut Self::Connection, sql: &str) -> Result<(), ServerError>;
    /// Whether connecting failed because there is no such database.
    fn is_no_database(error: &ServerError) -> bool;
    fn quoted(name: &str) -> String;

    /// A table of one of these names, quoted and between commas, that is not ours.
    fn foreign(
        connection: &mut Self::Connection,
        names: &str,
    ) -> Result<Option<String>, ServerError>;
    /// The statements that take away whatever an earlier load of ours left.
    fn drop_all(workload: Workload) -> String;
    /// The statements that make the table of [`crate::meta`], and what else must be there before
    /// the rows.
    fn create(workload: Workload) -> String;
    /// Fills and indexes a table.
    fn fill(connection: &mut Self::Connection, source: &mut Source<'_>) -> Result<(), ServerError>;
    /// The statements that create the procedures.
    fn procedures(workload: Workload) -> Vec<&'static str>;
    /// What ends a load; returns the size of the database in bytes.
    fn settle(connection: &mut Self::Connection) -> Result<u64, ServerError>;

    fn canceller(connection: &Self::Connection) -> Self::Canceller;
    /// Stops what a connection is doing. Best effort: it may have ended.
    fn cancel(&self, canceller: &Self::Canceller);

    /// A statement about databases.
    fn administrate(&self, sql: &str) -> Result<(), ServerError> {
        let login = Login { database: Self::ADMINISTRATION.to_owned(), ..self.login().clone() };
        Self::execute(&mut Self::connect(&login)?, sql)
    }
}

/// How far the load is, for all threads.
#[derive(Default)]
struct Progress {
    rows: AtomicU64,
    tables: AtomicUsize,
    cpu_ns: AtomicU64,
    stop: AtomicBool,
    /// A row that could not be made.
    failed: Mutex<Option<Error>>,
}

/// The rows of one table, chunk by chunk.
pub(crate) struct Source<'a> {
    pub table: Table,
    /// Rows so far.
    pub sent: u64,
    rows: &'a Rows,
    chunks: std::vec::IntoIter<Chunk>,
    progress: &'a Progress,
}

impl Source<'_> {
    /// Appends the next chunk; false where none is left, or the load is to stop.
    pub fn append(
        &mut self,
        out: &mut Vec<u8>,
        encode: impl Fn(&Rows, Chunk, &mut Vec<u8>) -> u64,
    ) -> bool {
        if self.is_stopped() {
            return false;
        }
        let Some(chunk) = self.chunks.next() else { return false };
        let count = encode(self.rows, chunk, out);
        self.sent += count;
        self.progress.rows.fetch_add(count, Ordering::Relaxed);
        true
    }

    /// Appends the next chunk as lines of text; false where none is left, or the load is to stop.
    pub fn append_lines(&mut self, out: &mut Vec<u8>) -> bool {
        if self.is_stopped() {
            return false;
        }
        let Some(chunk) = self.chunks.next() else { return false };
        match append_lines(self.rows, chunk, out) {
            Ok(count) => {
                self.sent += count;
                self.progress.rows.fetch_add(count, Ordering::Relaxed);
                true
            }
            Err(error) => {
                let mut failed =
                    self.progress.failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.get_or_insert(error);
                self.progress.stop.store(true, Ordering::Relaxed);
                false
            }
        }
    }

    /// Whether the rest is left out: the tables are taken away then.
    pub fn is_stopped(&self) -> bool {
        self.progress.stop.load(Ordering::Relaxed)
    }
}

/// A load at work.
struct Job<'a, S: Loader> {
    server: &'a S,
    dataset: Dataset,
    seed: u64,
    rows: Rows,
    /// The largest first: streams then end at about the same time.
    tables: Vec<Table>,
    next: AtomicUsize,
    progress: Progress,
    cancellers: Mutex<Vec<S::Canceller>>,
}

/// Loads a database, in place of an earlier one that wearmark made.
pub(crate) fn load<S: Loader>(
    server: &S,
    dataset: Dataset,
    seed: u64,
    sink: &dyn Sink,
) -> Result<LoadReport, Error> {
    dataset.validate()?;
    let start = Instant::now();
    let rows = Rows::new(dataset, seed);
    let mut tables = rows.tables().to_vec();
    let bytes = |table: Table| rows.expected(table) * table.definition().row_bytes;
    tables.sort_by_key(|&table| std::cmp::Reverse(bytes(table)));
    let job = Job {
        server,
        dataset,
        seed,
        rows,
        tables,
        next: AtomicUsize::new(0),
        progress: Progress::default(),
        cancellers: Mutex::default(),
    };
    let (row_s, row_bytes) = S::ROW;
    sink.emit(Event::Plan {
        stage: STAGE.to_owned(),
        steps: vec![Step {
            name: format!("load {dataset}"),
            expected_s: job.rows_expected() as f64 * row_s,
            writes_bytes: job.rows_expected() * row_bytes,
        }],
    });
    let loaded = job.prepare().and_then(|(mut connection, made)| {
        let filled = job.fill(sink).and_then(|()| job.finish(&mut connection));
        if filled.is_err() {
            job.clean(connection, made);
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

impl<S: Loader> Job<'_, S> {
    fn failed(&self, doing: impl Into<String>) -> impl FnOnce(ServerError) -> Error {
        let doing = doing.into();
        move |source| self.server.error(doing, source)
    }

    fn rows_expected(&self) -> u64 {
        self.tables.iter().map(|&table| self.rows.expected(table)).sum()
    }

    /// Connects, makes the database where there is none (and says so), takes away an earlier load.
    fn prepare(&self) -> Result<(S::Connection, bool), Error> {
        let (login, workload) = (self.server.login(), self.dataset.workload());
        let (mut connection, made) = match S::connect(login) {
            Err(error) if S::is_no_database(&error) => {
                let name = S::quoted(&login.database);
                let make = format!("CREATE DATABASE {name}{}", S::DATABASE_OPTIONS);
                self.server.administrate(&make).map_err(self.failed("creating the database"))?;
                (S::connect(login).map_err(self.failed("connecting"))?, true)
            }
            other => (other.map_err(self.failed("connecting"))?, false),
        };
        let names: Vec<String> =
            self.tables.iter().map(|table| format!("'{}'", table.name())).collect();
        let foreign = if names.is_empty() {
            None
        } else {
            S::foreign(&mut connection, &names.join(", "))
                .map_err(self.failed("looking at the database"))?
        };
        if let Some(what) = foreign {
            return Err(Error::Foreign { place: self.server.place().to_owned(), what });
        }
        S::execute(&mut connection, &S::drop_all(workload))
            .map_err(self.failed("removing an earlier load"))?;
        S::execute(&mut connection, &S::create(workload))
            .map_err(self.failed("creating the tables"))?;
        Ok((connection, made))
    }

    /// Takes away what a load that failed has made. Best effort: the server may be gone.
    fn clean(&self, mut connection: S::Connection, made: bool) {
        let _ = S::execute(&mut connection, &S::drop_all(self.dataset.workload()));
        drop(connection);
        if made {
            let name = S::quoted(&self.server.login().database);
            let _ = self.server.administrate(&format!("DROP DATABASE IF EXISTS {name}"));
        }
    }

    /// Fills all tables, on threads of their own; this one reports and looks at the stop flag.
    fn fill(&self, sink: &dyn Sink) -> Result<(), Error> {
        let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let streams = processors.clamp(2, STREAMS_MAX).min(self.tables.len().max(1));
        let rows_expected = self.rows_expected().max(1) as f64;
        let (sender, ends) = mpsc::channel();
        let mut result = Ok(());
        std::thread::scope(|scope| {
            for _ in 0..streams {
                let sender = sender.clone();
                scope.spawn(move || {
                    let _ = sender.send(self.stream());
                });
            }
            drop(sender);
            loop {
                match ends.recv_timeout(LOOK_EVERY) {
                    Ok(Err(error)) if result.is_ok() => {
                        result = Err(error);
                        self.stop();
                    }
                    Ok(_) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                    Err(mpsc::RecvTimeoutError::Timeout) if result.is_err() => self.stop(),
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        let rows = self.progress.rows.load(Ordering::Relaxed) as f64;
                        let tables = self.progress.tables.load(Ordering::Relaxed) as f64;
                        let done = S::ROWS_SHARE * (rows / rows_expected).min(1.0)
                            + (1.0 - S::ROWS_SHARE) * tables / self.tables.len().max(1) as f64;
                        progress(sink, done.min(0.999), "loading tables");
                    }
                }
                if result.is_ok() && sink.cancelled() {
                    let place = self.server.place().to_owned();
                    result = Err(Error::LoadCancelled { place });
                    self.stop();
                }
            }
        });
        match self.progress.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => result,
        }
    }

    /// Stops all streams, whatever they do.
    fn stop(&self) {
        self.progress.stop.store(true, Ordering::Relaxed);
        let cancellers = self.cancellers.lock().unwrap_or_else(PoisonError::into_inner);
        cancellers.iter().for_each(|canceller| self.server.cancel(canceller));
    }

    /// One thread and one connection: takes tables, the largest first.
    fn stream(&self) -> Result<(), Error> {
        let progress = &self.progress;
        let mut connection = S::connect(self.server.login()).map_err(self.failed("connecting"))?;
        let canceller = S::canceller(&connection);
        self.cancellers.lock().unwrap_or_else(PoisonError::into_inner).push(canceller);
        S::execute(&mut connection, S::SETTINGS).map_err(self.failed("setting up the load"))?;
        while !progress.stop.load(Ordering::Relaxed) {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(&table) = self.tables.get(next) else { break };
            let chunks = self.rows.chunks(table).into_iter();
            let mut source = Source { table, sent: 0, rows: &self.rows, chunks, progress };
            S::fill(&mut connection, &mut source)
                .map_err(self.failed(format!("loading {}", table.name())))?;
            progress.tables.fetch_add(1, Ordering::Relaxed);
        }
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let cpu_ns = cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64;
        progress.cpu_ns.fetch_add(cpu_ns, Ordering::Relaxed);
        Ok(())
    }

    /// Procedures, and the marks that the load is complete.
    fn finish(&self, connection: &mut S::Connection) -> Result<LoadReport, Error> {
        for sql in S::procedures(self.dataset.workload()) {
            S::execute(connection, sql).map_err(self.failed("creating the procedures"))?;
        }
        let meta = Meta::of_load(self.dataset, self.seed).rows();
        let meta: Vec<String> =
            meta.iter().map(|(key, value)| format!("('{key}', {value})")).collect();
        let insert = format!("INSERT INTO wearmark_meta VALUES {}", meta.join(", "));
        S::execute(connection, &insert).map_err(self.failed("marking the load complete"))?;
        Ok(LoadReport {
            place: self.server.place().to_owned(),
            dataset: self.dataset,
            rows: self.progress.rows.load(Ordering::Relaxed),
            database_bytes: S::settle(connection).map_err(self.failed("asking for the size"))?,
            elapsed_s: 0.0,
            cpu_s: self.progress.cpu_ns.load(Ordering::Relaxed) as f64 / 1e9,
        })
    }
}
