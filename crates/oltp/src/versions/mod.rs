//! Long readers with an old snapshot against updaters that rewrite the table.
//!
//! After the rollback-segment study of Lee et al. 2008, section 4.2: readers open a snapshot,
//! others update every row a number of times, and after each round the same scan is run in a fresh
//! transaction and in the old ones. Where the old versions are differs: InnoDB rebuilds rows from
//! undo records, PostgreSQL keeps them in the heap, which every reader then walks, and SQLite keeps
//! new pages in the WAL, which cannot be cut while the reader stands in it.
//!
//! Invariant, checked after each scan: an old snapshot sees no update, a fresh one sees them all; a
//! difference is a violation. Tested on real servers (`tests/it/versions.rs`).

mod kept;
mod scan;
mod table;

use std::time::{Duration, Instant};

use events::{Ending, Event, Sink};
use serde::{Deserialize, Serialize};

use crate::statements::{Ground, Session, Target};
use crate::{Error, JournalMode};
pub use kept::{Cleanup, Kept};
pub use scan::Scan;

/// Which way a scan takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// As the table lies.
    #[default]
    Table,
    /// Along an index whose order is not the table's: random access.
    Index,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VersionsOptions {
    /// On what.
    pub target: Target,
    /// Rows.
    pub rows: u64,
    /// Bytes of the text of a row.
    pub width: u32,
    /// Whether an update rewrites the text too, or a number of 4 bytes only.
    pub wide: bool,
    /// How often every row is updated.
    pub rounds: u32,
    /// Sessions that update, each its share of the rows.
    pub updaters: u32,
    /// Sessions that keep the old snapshot.
    pub readers: u32,
    /// Which way they scan.
    pub order: Order,
    /// Seed of the index's order.
    pub seed: u64,
    /// How SQLite commits; only its WAL keeps old versions.
    #[serde(default)]
    pub journal: JournalMode,
}

/// What was found after a round of updates; round 0 is before the first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Updates of each row so far.
    pub round: u32,
    /// Time that the round took, ms.
    pub update_ms: f64,
    /// The scan of a transaction that begins now.
    pub fresh: Scan,
    /// The same scan in each of the old transactions, one after another.
    pub old: Vec<Scan>,
    /// What is kept for them.
    pub kept: Kept,
}

/// Everything that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VersionsResult {
    /// What was run.
    pub options: VersionsOptions,
    /// The DBMS and its version.
    pub version: String,
    /// One per round, the one before the first included.
    pub steps: Vec<Step>,
    /// What happened to the old versions when the readers had ended.
    pub cleanup: Option<Cleanup>,
    /// Scans that saw what they must not; empty where snapshots hold.
    pub violations: Vec<String>,
    /// Why no update came through, where an old reader keeps them all out.
    pub blocked: Option<String>,
    /// Whether the user stopped it.
    pub interrupted: bool,
}

impl VersionsOptions {
    /// Refuses what makes no sense.
    ///
    /// # Errors
    /// [`Error::Option`].
    pub fn validate(&self) -> Result<(), Error> {
        let check = |option, value: u64, range: std::ops::RangeInclusive<u64>, why| {
            if range.contains(&value) {
                return Ok(());
            }
            Err(Error::Option { option, value: value.to_string(), why })
        };
        check("rows", self.rows, 1..=1_000_000_000, "1 to 1,000,000,000")?;
        check("width", self.width.into(), 1..=8000, "1 to 8000 bytes")?;
        check("rounds", self.rounds.into(), 0..=1000, "1000 at most")?;
        check("updaters", self.updaters.into(), 1..=256, "1 to 256")?;
        check("readers", self.readers.into(), 1..=64, "1 to 64")
    }
}

/// Makes the table, opens the snapshots, updates and scans.
///
/// # Errors
/// Options that make no sense, a place that cannot be made, what the DBMS refuses.
pub fn run(options: &VersionsOptions, sink: &dyn Sink) -> Result<VersionsResult, Error> {
    options.validate()?;
    let started = Instant::now();
    let ground = Ground::new(&options.target, sink)?;
    let mut session = ground.session()?;
    table::make(&mut session, options)?;
    let mut readers = Vec::new();
    for _ in 0..options.readers {
        let mut reader = ground.session()?;
        table::open_snapshot(&mut reader)?;
        readers.push(reader);
    }
    let mut result = VersionsResult {
        options: options.clone(),
        version: ground.version(),
        steps: Vec::new(),
        cleanup: None,
        violations: Vec::new(),
        blocked: None,
        interrupted: false,
    };
    for round in 0..=options.rounds {
        if sink.cancelled() {
            result.interrupted = true;
            break;
        }
        let updated = if round == 0 { Some(0.0) } else { update(&ground, options, round, sink)? };
        let Some(update_ms) = updated else {
            result.blocked = Some(format!(
                "in journal mode {} a reader keeps every update out: there are no old versions",
                options.journal.pragma()
            ));
            break;
        };
        let mut step = Step { round, update_ms, ..Step::default() };
        step.fresh = scan::fresh(&ground, &mut session, options.order)?;
        check(&mut result.violations, &step.fresh, options, round, "a fresh reader");
        for reader in &mut readers {
            let old = scan::run(&mut session, reader, options.order)?;
            check(&mut result.violations, &old, options, 0, "an old reader");
            step.old.push(old);
        }
        step.kept = kept::look(&ground, &mut session)?;
        result.steps.push(step);
        sink.emit(Event::Progress {
            stage: "versions".to_owned(),
            done: f64::from(round + 1) / f64::from(options.rounds + 1),
            doing: format!("round {round} of {}", options.rounds),
            eta_s: None,
        });
    }
    for reader in &mut readers {
        reader.run("COMMIT")?;
    }
    if !result.interrupted && result.blocked.is_none() {
        result.cleanup = Some(kept::clean(&ground, &mut session, sink)?);
    }
    let ending = if result.interrupted { Ending::Interrupted } else { Ending::Complete };
    let elapsed_s = started.elapsed().as_secs_f64();
    sink.emit(Event::Done { stage: "versions".to_owned(), elapsed_s, ending });
    Ok(result)
}

/// Notes a scan that did not see what its snapshot has: `updates` of every row.
fn check(
    violations: &mut Vec<String>,
    scan: &Scan,
    options: &VersionsOptions,
    updates: u32,
    who: &str,
) {
    let expected = (options.rows, options.rows * u64::from(updates));
    if (scan.rows, scan.sum) != expected {
        let (rows, sum) = expected;
        violations.push(format!(
            "{who} saw {} rows and {} updates where there are {rows} and {sum}",
            scan.rows, scan.sum
        ));
    }
}

/// Updates every row once, by all updaters at a time; ms, or nothing where readers keep them out.
fn update(
    ground: &Ground,
    options: &VersionsOptions,
    round: u32,
    sink: &dyn Sink,
) -> Result<Option<f64>, Error> {
    let count = u64::from(options.updaters).min(options.rows);
    let mut sessions = Vec::new();
    for _ in 0..count {
        sessions.push(ground.session()?);
    }
    let started = Instant::now();
    let ended: Vec<Result<bool, Error>> = std::thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .into_iter()
            .enumerate()
            .map(|(index, mut session)| {
                let index = index as u64;
                let share =
                    options.rows * index / count + 1..options.rows * (index + 1) / count + 1;
                scope.spawn(move || update_share(&mut session, options, (round, share), sink))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("an updater does not panic"))
            .collect()
    });
    let elapsed: Duration = started.elapsed();
    let through = ended.into_iter().collect::<Result<Vec<bool>, Error>>()?;
    Ok(through.iter().all(|through| *through).then_some(elapsed.as_secs_f64() * 1e3))
}

/// Updates a share of the rows; `false` where readers keep it out.
fn update_share(
    session: &mut Session,
    options: &VersionsOptions,
    (round, share): (u32, std::ops::Range<u64>),
    sink: &dyn Sink,
) -> Result<bool, Error> {
    /// Rows per transaction.
    const BATCH: u64 = 500;
    let rollback = options.journal != JournalMode::Wal;
    if let (Session::Sqlite(..), true) = (&session, rollback) {
        // The readers stay: waiting longer changes nothing.
        session.run("PRAGMA busy_timeout = 500")?;
    }
    let mut from = share.start;
    while from < share.end && !sink.cancelled() {
        let to = (from + BATCH).min(share.end);
        match session.run(&table::update(options, round, from, to - 1)) {
            Err(Error::Sqlite { source, .. }) if rollback && busy(&source) => return Ok(false),
            done => done?,
        }
        from = to;
    }
    if let Session::Postgresql(_) = session {
        // Hands in what the session counted; servers before 15 do so when it ends.
        let _ = session.rows("SELECT pg_stat_force_next_flush()");
    }
    Ok(true)
}

/// Whether SQLite gave up waiting for a lock.
fn busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}
