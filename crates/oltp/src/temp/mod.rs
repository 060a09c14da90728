//! Sorts and joins that outgrow a DBMS's memory, by the size of that memory.
//!
//! After Lee et al. 2008, section 5, as far as a DBMS lets it be varied: the memory and the device
//! of the temporary files, not the size of their requests (`wearmark temp` varies that). One table,
//! or two, of rows with a random key; one statement per memory size, a few times each.
//!
//! | DBMS | memory | figures from |
//! |---|---|---|
//! | PostgreSQL | `work_mem`, `hash_mem_multiplier = 1` | `EXPLAIN (ANALYZE, BUFFERS)` |
//! | MariaDB | `sort_buffer_size` | `ANALYZE FORMAT=JSON`, `Sort_merge_passes` |
//! | SQLite | `cache_size`, `temp_store = FILE` | bytes of its system calls |
//!
//! PostgreSQL has no parallel workers here. MariaDB has no hash join that spills, SQLite no hash
//! join at all: its join sorts one side into a temporary index.
//!
//! What PostgreSQL writes is predicted beside ([`predict`]). Tested on real servers
//! (`tests/it/temp.rs`).

mod explain;
pub mod predict;
mod tables;

use std::time::Instant;

use events::{Ending, Event, Sink};
use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::Error;
use crate::statements::{Ground, Session, Target};
use explain::Found;
use predict::Prediction;

/// What the statements do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Sort one table by its key.
    #[default]
    Sort,
    /// Join two tables by hashing their keys.
    HashJoin,
    /// Join two tables by sorting both.
    MergeJoin,
}

/// What is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TempOptions {
    /// On what.
    pub target: Target,
    /// The statement.
    pub operation: Operation,
    /// Rows of each table.
    pub rows: u64,
    /// Bytes of the columns of a row, 20 at least.
    pub width: u32,
    /// Memory sizes, in this order.
    pub memories: Vec<Bytes>,
    /// How often each; the median counts.
    pub repeats: u32,
    /// Seed of the keys.
    pub seed: u64,
}

/// What one memory size gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TempRow {
    /// The memory.
    pub memory: Bytes,
    /// Median elapsed time, ms.
    pub elapsed_ms: f64,
    /// Shortest and longest.
    pub elapsed_ms_range: (f64, f64),
    /// Rows that came out.
    pub rows: u64,
    /// Blocks that the DBMS says it read from temporary files.
    pub temp_read_blocks: Option<u64>,
    /// Blocks that the DBMS says it wrote to them.
    pub temp_written_blocks: Option<u64>,
    /// Bytes written by system calls meanwhile, which is temporary files where nothing else is
    /// written.
    pub call_written_bytes: Option<u64>,
    /// Bytes read by system calls, tables and temporary files together.
    pub call_read_bytes: Option<u64>,
    /// How often a row is written to temporary files, on average.
    pub passes: Option<f64>,
    /// Merge passes (MariaDB: merges) or batches, as the DBMS counts them.
    pub merges: Option<u64>,
    /// Batches of a hash join.
    pub batches: Option<u64>,
    /// What the DBMS calls what it did.
    pub method: String,
    /// What was predicted, where there is a rule.
    pub predicted: Option<Prediction>,
}

/// A sweep of memory sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TempResult {
    /// What was run.
    pub options: TempOptions,
    /// The DBMS and its version.
    pub version: String,
    /// One per memory size.
    pub rows: Vec<TempRow>,
    /// Whether the user stopped it.
    pub interrupted: bool,
    /// What the figures do not say.
    pub notes: Vec<String>,
}

impl TempOptions {
    /// Refuses what makes no sense.
    ///
    /// # Errors
    /// [`Error::Option`].
    pub fn validate(&self) -> Result<(), Error> {
        let wrong = |option, value: String, why| Err(Error::Option { option, value, why });
        let dbms = self.target.name();
        if self.rows == 0 || self.rows > 1_000_000_000 {
            return wrong("rows", self.rows.to_string(), "1 to 1,000,000,000");
        }
        if !(20..=139).contains(&self.width) {
            return wrong("width", self.width.to_string(), "20 to 139 bytes of columns");
        }
        if self.memories.is_empty() || self.memories.iter().any(|m| m.0 < 64 << 10) {
            return wrong("memory", format!("{:?}", self.memories), "64 KiB at least");
        }
        if self.repeats == 0 {
            return wrong("repeats", "0".to_owned(), "once at least");
        }
        match self.operation {
            Operation::HashJoin if dbms == "mariadb" => wrong(
                "operation",
                "hash-join".to_owned(),
                "MariaDB's hash join never spills: it reads the other side again",
            ),
            Operation::HashJoin if dbms == "sqlite" => {
                wrong("operation", "hash-join".to_owned(), "SQLite has none; try merge-join")
            }
            Operation::MergeJoin if dbms == "mariadb" => {
                wrong("operation", "merge-join".to_owned(), "MariaDB has none")
            }
            _ => Ok(()),
        }
    }
}

/// Makes the tables and runs the sweep.
///
/// # Errors
/// Options that make no sense, a place that cannot be made, what the DBMS refuses.
pub fn run(options: &TempOptions, sink: &dyn Sink) -> Result<TempResult, Error> {
    options.validate()?;
    let started = Instant::now();
    let ground = Ground::new(&options.target, sink)?;
    let mut session = ground.session()?;
    tables::make(&mut session, options)?;
    let mut result = TempResult {
        options: options.clone(),
        version: ground.version(),
        rows: Vec::new(),
        interrupted: false,
        notes: tables::notes(options),
    };
    for (index, memory) in options.memories.iter().enumerate() {
        if sink.cancelled() {
            result.interrupted = true;
            break;
        }
        sink.emit(Event::Progress {
            stage: "temp".to_owned(),
            done: index as f64 / options.memories.len() as f64,
            doing: format!("{memory} of memory"),
            eta_s: None,
        });
        result.rows.push(measure(&ground, &mut session, options, *memory)?);
    }
    let ending = if result.interrupted { Ending::Interrupted } else { Ending::Complete };
    let elapsed_s = started.elapsed().as_secs_f64();
    sink.emit(Event::Done { stage: "temp".to_owned(), elapsed_s, ending });
    Ok(result)
}

fn measure(
    ground: &Ground,
    session: &mut Session,
    options: &TempOptions,
    memory: Bytes,
) -> Result<TempRow, Error> {
    tables::set_memory(session, memory)?;
    let mut times = Vec::new();
    let mut row = TempRow { memory, ..TempRow::default() };
    for _ in 0..options.repeats {
        let before = ground.call_bytes();
        let started = Instant::now();
        let found = explain::execute(session, options.operation)?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
        let after = ground.call_bytes();
        if let (Some(before), Some(after)) = (before, after) {
            row.call_written_bytes = Some(after.written.saturating_sub(before.written));
            row.call_read_bytes = Some(after.read.saturating_sub(before.read));
        }
        take(&mut row, found);
    }
    times.sort_by(f64::total_cmp);
    row.elapsed_ms = times[times.len() / 2];
    row.elapsed_ms_range = (times[0], times[times.len() - 1]);
    let (rows, data) = (options.rows, u64::from(options.width));
    if matches!(session, Session::Postgresql(_)) {
        row.predicted = match options.operation {
            Operation::Sort => Some(predict::sort(rows, data, memory.0)),
            Operation::HashJoin => Some(predict::hash_join(rows, rows, data, memory.0)),
            Operation::MergeJoin => Some(predict::merge_join(rows, data, memory.0)),
        };
        if options.operation == Operation::Sort {
            let once = (rows * (data + 10)) as f64 / 8176.0;
            row.passes = row.temp_written_blocks.map(|blocks| blocks as f64 / once);
        }
    }
    Ok(row)
}

fn take(row: &mut TempRow, found: Found) {
    row.rows = found.rows;
    row.temp_read_blocks = found.read_blocks;
    row.temp_written_blocks = found.written_blocks;
    row.merges = found.merges;
    row.batches = found.batches;
    row.method = found.method;
}
