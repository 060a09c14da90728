//! `wearmark prove`

use std::path::PathBuf;

use clap::Args;
use units::Bytes;

use super::{DbmsName, WorkloadArguments};

/// `wearmark prove`
#[derive(Debug, Args)]
pub struct Prove {
    /// Where the database is made: a directory that is absent or empty; everything in it is removed
    /// afterwards
    #[arg(default_value = "prove")]
    pub directory: PathBuf,
    /// The devices, shipped profiles by name or TOML files; repeat for several
    #[arg(long, required = true, value_name = "PROFILE", num_args = 1..)]
    pub on: Vec<String>,
    /// The system
    #[arg(long, value_enum, default_value_t = DbmsName::Sqlite)]
    pub dbms: DbmsName,
    /// Runs at each place; with one there is no A/A
    #[arg(long, default_value_t = 2)]
    pub rounds: u32,
    /// Total database buffer; 64 MiB for SQLite, 128 MiB for servers unless given
    #[arg(long)]
    pub buffer: Option<Bytes>,
    /// A further setting of a server in its own words; repeat for several
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    #[command(flatten)]
    pub workload: WorkloadArguments,
    /// Write a page, one file that any browser opens
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
