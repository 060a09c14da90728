//! `wearmark prove`

use std::path::PathBuf;

use clap::Args;
use units::Bytes;

use super::{DbmsName, WorkloadArguments};

/// `wearmark prove`
#[derive(Debug, Args)]
pub struct Prove {
    /// The devices, shipped profiles by name or TOML files; repeat for several
    #[arg(long, required = true, value_name = "PROFILE", num_args = 1..)]
    pub on: Vec<String>,
    /// The device of the log in all of them, where it has its own (servers)
    #[arg(long, value_name = "PROFILE")]
    pub log_on: Option<String>,
    /// Where the run directory is made; also the disk of the runs here
    #[arg(long, default_value = "runs")]
    pub runs: PathBuf,
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
}
