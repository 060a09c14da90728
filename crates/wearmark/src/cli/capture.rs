//! `wearmark capture`

use std::path::PathBuf;

use clap::Args;
use units::Nanos;

use super::ServerPlace;

/// `wearmark capture`
#[derive(Debug, Args)]
pub struct Capture {
    /// A process: the server that it belongs to, or the program with everything that it started
    #[arg(long, value_name = "PID", group = "target")]
    pub pid: Option<u32>,
    /// The data directory of a server that runs: PostgreSQL, MariaDB or MySQL
    #[arg(long, value_name = "DIR", group = "target")]
    pub data_dir: Option<PathBuf>,
    /// A control group, such as system.slice/postgresql.service
    #[arg(long, value_name = "PATH", group = "target")]
    pub cgroup: Option<PathBuf>,
    /// A block device, whoever uses it: its requests only
    #[arg(long, value_name = "DEV", group = "target")]
    pub device: Option<PathBuf>,
    /// For how long; Ctrl-C ends it earlier and keeps what was captured
    #[arg(long = "for", value_name = "TIME", default_value = "60s")]
    pub duration: Nanos,
    /// What the names of the files begin with: PREFIX-accounts.json, PREFIX-logical.parquet, ...
    #[arg(long, short, value_name = "PREFIX", default_value = "capture")]
    pub output: PathBuf,
    /// Without the requests of the disks
    #[arg(long)]
    pub no_physical: bool,
    /// Write a page, one file that any browser opens
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub server: ServerPlace,
    /// Print commands of other tools whose output 'wearmark trace' reads, for machines where
    /// wearmark may not run; capture nothing
    #[arg(long)]
    pub print_commands: bool,
}
