//! `wearmark oltp temp` and `wearmark oltp versions`

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use units::Bytes;

use super::oltp::DbmsName;

/// Where it runs
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Database")]
pub struct StatementPlace {
    /// Existing directory on the disk to measure; what is made in it is removed at the end
    #[arg(default_value = ".")]
    pub directory: PathBuf,
    /// The system; servers are private ones
    #[arg(long, value_enum, default_value_t = DbmsName::Sqlite)]
    pub dbms: DbmsName,
    /// Directory of temporary files (servers)
    #[arg(long, value_name = "DIR")]
    pub temp_dir: Option<PathBuf>,
    /// Directory of the log (servers)
    #[arg(long, value_name = "DIR")]
    pub log_dir: Option<PathBuf>,
    /// Directory of undo (MariaDB)
    #[arg(long, value_name = "DIR")]
    pub undo_dir: Option<PathBuf>,
    /// Database buffer
    #[arg(long, default_value = "32MiB")]
    pub buffer: Bytes,
    /// Database page size: 4 KiB for SQLite, 16 KiB for MariaDB; PostgreSQL has no choice
    #[arg(long)]
    pub page: Option<Bytes>,
    /// Write a page with charts
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// `wearmark oltp temp`
#[derive(Debug, Args)]
pub struct OltpTemp {
    #[command(flatten)]
    pub place: StatementPlace,
    /// What outgrows memory
    #[arg(long, value_enum, default_value_t = TempOperation::Sort)]
    pub operation: TempOperation,
    /// Rows of each table
    #[arg(long, short = 'n', default_value_t = 1_000_000)]
    pub rows: u64,
    /// Bytes of the columns of a row
    #[arg(long, default_value_t = 93)]
    pub width: u32,
    /// Memory of the sort or join; several, separated by commas, are compared
    #[arg(long, short, value_delimiter = ',', default_value = "1MiB,4MiB,16MiB,64MiB")]
    pub memory: Vec<Bytes>,
    /// How often each; the median counts
    #[arg(long, default_value_t = 1)]
    pub repeats: u32,
    /// Seed of the keys
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Operations that spill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TempOperation {
    /// Sort one table
    Sort,
    /// Join two tables by hashing (PostgreSQL)
    HashJoin,
    /// Join two tables by sorting both (PostgreSQL; SQLite sorts one)
    MergeJoin,
}

/// `wearmark oltp versions`
#[derive(Debug, Args)]
pub struct OltpVersions {
    #[command(flatten)]
    pub place: StatementPlace,
    /// Rows
    #[arg(long, short = 'n', default_value_t = 200_000)]
    pub rows: u64,
    /// Bytes of the text of a row
    #[arg(long, default_value_t = 200)]
    pub width: u32,
    /// Update a number of 4 bytes only, not the text too
    #[arg(long)]
    pub narrow: bool,
    /// How often every row is updated
    #[arg(long, short = 'k', default_value_t = 5)]
    pub rounds: u32,
    /// Sessions that update
    #[arg(long, default_value_t = 4)]
    pub updaters: u32,
    /// Sessions that keep the old snapshot
    #[arg(long, default_value_t = 1)]
    pub readers: u32,
    /// How SQLite commits: wal, delete, truncate or persist
    #[arg(long, default_value = "wal")]
    pub journal: String,
    /// Scan along an index in no order of the table, instead of along the table
    #[arg(long)]
    pub by_index: bool,
    /// Seed of the order of the index
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}
