//! `wearmark oltp`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use predict::Goal;
use units::{Bytes, Nanos, Rate};

use super::live::Live;
use super::statements::{OltpTemp, OltpVersions};

/// `wearmark oltp`
#[derive(Debug, Subcommand)]
pub enum Oltp {
    /// Load a database and run a workload on it
    Run(Box<OltpRun>),
    /// Run a workload at several values of one setting; goes on where it was stopped
    Sweep(Box<OltpSweep>),
    /// Compare two files of runs; exit code 1 on a regression beyond the bound, 3 where what was
    /// measured allows no verdict
    Compare(OltpCompare),
    /// Check a database's consistency conditions; exit code 1 on a violation
    Check(OltpCheck),
    /// Sort or join tables that outgrow the memory of a DBMS, by that memory
    Temp(OltpTemp),
    /// Scan under an old snapshot while others rewrite the table; exit code 1 where snapshots fail
    Versions(OltpVersions),
    /// Start, look at, stop or remove a private database server
    #[command(subcommand)]
    Server(OltpServer),
    /// Kill a server under load and compare what it kept with what it had acknowledged; exit code 1
    /// on a loss
    Torture(Box<OltpTorture>),
}

/// Systems that a workload runs on
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DbmsName {
    /// SQLite, embedded
    Sqlite,
    /// PostgreSQL: a private server, or one given by --url
    Postgresql,
    /// MariaDB: a private server, or one given by --url
    Mariadb,
}

/// A server that runs already
#[derive(Clone, Debug, Args)]
pub struct ServerPlace {
    /// A server that runs already: postgresql://user@host:port/database or mysql://...; its
    /// password comes from PGPASSWORD, ~/.pgpass, MYSQL_PWD or ~/.my.cnf
    #[arg(long)]
    pub url: Option<String>,
    /// Encryption of a TCP connection: disable, prefer, require, verify-ca or verify-full;
    /// overrides the URL's
    #[arg(long, requires = "url", value_name = "MODE")]
    pub sslmode: Option<String>,
    /// PEM file of the roots that the server's certificate is checked with, or 'system'
    #[arg(long, requires = "url", value_name = "FILE")]
    pub sslrootcert: Option<PathBuf>,
    /// Ask for the password on the terminal
    #[arg(long, requires = "url")]
    pub ask_password: bool,
}

/// Where the database is
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Database")]
pub struct Place {
    /// Directory of the database: its data, and everything that has no place of its own; created
    /// and loaded if it holds none
    #[arg(required_unless_present_any = ["url", "data_dir"], conflicts_with = "url")]
    pub directory: Option<PathBuf>,
    /// The same as DIRECTORY
    #[arg(long, value_name = "DIR", conflicts_with_all = ["directory", "url"])]
    pub data_dir: Option<PathBuf>,
    /// The system
    #[arg(long, value_enum, default_value_t = DbmsName::Sqlite)]
    pub dbms: DbmsName,
    #[command(flatten)]
    pub server: ServerPlace,
    /// Directory of the log (servers)
    #[arg(long, value_name = "DIR")]
    pub log_dir: Option<PathBuf>,
    /// Directory of temporary space (servers)
    #[arg(long, value_name = "DIR")]
    pub temp_dir: Option<PathBuf>,
    /// Directory of undo (MariaDB)
    #[arg(long, value_name = "DIR")]
    pub undo_dir: Option<PathBuf>,
}

impl Place {
    /// The data directory.
    pub fn data(&self) -> Option<&PathBuf> {
        self.directory.as_ref().or(self.data_dir.as_ref())
    }
}

/// How the database is set
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Settings")]
pub struct DatabaseSettings {
    /// Total database buffer; 64 MiB for SQLite, 128 MiB for servers unless given
    #[arg(long)]
    pub buffer: Option<Bytes>,
    /// Database page size (when loading): 4 KiB for SQLite; 16 KiB for MariaDB, which has a choice;
    /// PostgreSQL has not
    #[arg(long)]
    pub page: Option<Bytes>,
    /// How SQLite commits: wal, delete, truncate or persist
    #[arg(long, default_value = "wal")]
    pub journal: String,
    /// When SQLite syncs: off, normal, full or extra
    #[arg(long, default_value = "full")]
    pub synchronous: String,
    /// How SQLite's files are opened: direct (past the page cache) or buffered
    #[arg(long, default_value = "direct")]
    pub io: String,
    /// What a server's commit promises: full, relaxed (the log is synced later) or off
    #[arg(long, default_value = "full")]
    pub durability: String,
    /// How far a server's log grows before a checkpoint
    #[arg(long, default_value = "1GiB")]
    pub log_size: Bytes,
    /// Longest time between a server's checkpoints (PostgreSQL)
    #[arg(long, default_value = "5min")]
    pub checkpoint: Nanos,
    /// A further setting in the server's own words; repeat for several
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
}

/// What is told to a workload of the user
#[derive(Clone, Debug, Default, Args)]
pub struct OwnArguments {
    /// A setting of an own workload, such as records=1000; repeat for several
    #[arg(long, value_name = "NAME=NUMBER")]
    pub size: Vec<String>,
    /// A script of pgbench and how often it runs, in place of the workload's kinds, on the tables
    /// of pgbench unless --workload names others; repeat for several
    #[arg(long, value_name = "FILE[@WEIGHT]")]
    pub script: Vec<String>,
}

/// What runs
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Workload")]
pub struct WorkloadArguments {
    /// order-entry, bank, commit; ycsb, web-shop or pgbench; or a directory with workload.toml
    #[arg(long, default_value = "order-entry")]
    pub workload: String,
    #[command(flatten)]
    pub own: OwnArguments,
    /// Warehouses of order-entry, about 100 MB each
    #[arg(long, short, default_value_t = 1)]
    pub warehouses: u32,
    /// Branches of bank, about 15 MB each
    #[arg(long, default_value_t = 20)]
    pub branches: u32,
    /// Rows of commit, about 120 bytes each
    #[arg(long, default_value_t = 100_000)]
    pub rows: u32,
    /// Terminals
    #[arg(long, short, default_value_t = 20)]
    pub users: u32,
    /// How statements reach a server: statement, statement-pipelined (the same, together),
    /// pipelined (sets of rows, together) or procedure; runs that differ in it do not compare
    #[arg(long, default_value = "statement")]
    pub access: String,
    /// Connections to a server at most; more terminals share them
    #[arg(long, default_value_t = 64)]
    pub connections: u32,
    /// normal, read-intensive, write-intensive, or five weights such as 45,43,4,4,4; of an own
    /// workload one of its mixes
    #[arg(long, default_value = "normal")]
    pub mix: String,
    /// Scale of keying and think times: 0 none, 1 those of the specification or of workload.toml
    #[arg(long, default_value_t = 0.0)]
    pub think_scale: f64,
    /// Open loop: requests arrive at this rate as a Poisson process, whatever is answered
    #[arg(long, conflicts_with = "think_scale")]
    pub rate: Option<Rate>,
    /// Excluded from the result
    #[arg(long, default_value = "5s")]
    pub warmup: Nanos,
    /// Measured
    #[arg(long, default_value = "30s")]
    pub duration: Nanos,
    /// Seed of the data and of the first run's inputs; each repetition takes the next. Without it
    /// each run on a database goes on where the last one ended, so none repeats the transactions of
    /// another
    #[arg(long)]
    pub seed: Option<u64>,
}

/// What is watched and kept
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Result")]
pub struct Watching {
    /// Do not capture at all (to measure what capture costs)
    #[arg(long)]
    pub no_capture: bool,
    /// Do not capture the block layer (needs root anyway)
    #[arg(long)]
    pub no_physical: bool,
    /// Keep the runs in this file, for 'wearmark oltp compare'
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Write a page with charts, one file that any browser opens
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Remove the database and the server afterwards
    #[arg(long)]
    pub remove: bool,
}

/// `wearmark oltp run`
#[derive(Debug, Args)]
pub struct OltpRun {
    #[command(flatten)]
    pub live: Live,
    #[command(flatten)]
    pub place: Place,
    #[command(flatten)]
    pub workload: WorkloadArguments,
    #[command(flatten)]
    pub settings: DatabaseSettings,
    #[command(flatten)]
    pub watching: Watching,
    #[command(flatten)]
    pub simulated: Simulated,
    /// Runs, one after the other on the same database
    #[arg(long, default_value_t = 1)]
    pub repeat: u32,
    /// Find the highest rate of arrivals at which this holds, 'p99<10ms' or 'new_order p95<50ms',
    /// by runs of --warmup and --duration at one rate after the other
    #[arg(long, value_name = "LIMIT",
        conflicts_with_all = ["rate", "think_scale", "repeat", "trace"])]
    pub find_rate: Option<Goal>,
    /// Write the captured traces as PREFIX-device.parquet and PREFIX-logical.parquet; of a server,
    /// PREFIX-device-DISK.parquet for each disk, PREFIX-transactions.csv and PREFIX-run.json: what
    /// 'wearmark predict' needs
    #[arg(long, value_name = "PREFIX", conflicts_with = "no_capture")]
    pub trace: Option<PathBuf>,
}

/// A device in virtual time.
#[derive(Debug, Args)]
#[command(next_help_heading = "Virtual time")]
pub struct Simulated {
    /// Run SQLite in virtual time on a modelled device, a profile by name or file: the real
    /// engine, at the speed of its own computing, however slow the device is. The database is
    /// left as it is
    #[arg(long, value_name = "PROFILE", conflicts_with_all = ["trace", "no_physical"])]
    pub on: Option<String>,
    /// What stands between the database and the devices: a scheduler, a volume, a cache device
    #[arg(long, value_name = "FILE", requires = "on")]
    pub host: Option<PathBuf>,
    /// Processors of the simulated machine [default: this one's]
    #[arg(long, requires = "on")]
    pub processors: Option<u32>,
    /// How many times faster they are than this machine's
    #[arg(long, requires = "on", default_value_t = 1.0)]
    pub speed: f64,
}

/// `wearmark oltp sweep`
#[derive(Debug, Args)]
pub struct OltpSweep {
    /// The setting and its values: users, connections, warehouses, branches, rows, buffer, rate,
    /// mix, access or a setting of an own workload, such as users=4,8,16,32,64
    #[arg(long, value_name = "SETTING=VALUE,...")]
    pub over: String,
    #[command(flatten)]
    pub place: Place,
    #[command(flatten)]
    pub workload: WorkloadArguments,
    #[command(flatten)]
    pub settings: DatabaseSettings,
    #[command(flatten)]
    pub watching: Watching,
}

/// `wearmark oltp compare`
#[derive(Debug, Args)]
pub struct OltpCompare {
    /// The runs before, as 'oltp run --save' keeps them
    pub old: PathBuf,
    /// The runs after
    pub new: PathBuf,
    /// Share by which a figure may worsen
    #[arg(long, default_value_t = 0.05)]
    pub bound: f64,
    /// Write a page, one file that any browser opens
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// `wearmark oltp check`
#[derive(Debug, Args)]
pub struct OltpCheck {
    /// An SQLite database file, or the directory of a database or private server
    #[arg(required_unless_present = "url", conflicts_with = "url")]
    pub database: Option<PathBuf>,
    #[command(flatten)]
    pub server: ServerPlace,
    /// Whose conditions: order-entry, bank, commit, or a workload as 'oltp run' takes it
    #[arg(long, default_value = "order-entry")]
    pub workload: String,
    #[command(flatten)]
    pub own: OwnArguments,
}

/// `wearmark oltp server`
#[derive(Debug, Subcommand)]
pub enum OltpServer {
    /// Create one if there is none, start it, and keep it running until interrupted
    Run {
        #[command(flatten)]
        place: Box<Place>,
        #[command(flatten)]
        settings: Box<DatabaseSettings>,
    },
    /// Say what is there: version, places, settings
    Show {
        /// The data directory
        directory: PathBuf,
    },
    /// Remove a server that wearmark created, with its data
    Remove {
        /// The data directory
        directory: PathBuf,
    },
}

/// `wearmark oltp torture`
#[derive(Debug, Args)]
pub struct OltpTorture {
    /// Directory for the private server; made or empty, and empty again afterwards
    pub directory: PathBuf,
    /// The system: postgresql or mariadb
    #[arg(long, value_enum)]
    pub dbms: DbmsName,
    /// Kills
    #[arg(long, short = 'n', default_value_t = 10)]
    pub cycles: u32,
    /// What is lost beside the server's memory: process (nothing: kill -9), unsynced (everything
    /// that was not synced), torn (each 4 KiB of that by chance)
    #[arg(long, default_value = "unsynced")]
    pub loss: String,
    /// Let the disk lie: it acknowledges syncs and forgets them
    #[arg(long)]
    pub lying_disk: bool,
    /// Longest time under load before a kill
    #[arg(long, default_value = "1s")]
    pub longest: Nanos,
    /// order-entry, bank, commit, or another as 'oltp run' takes it, whose invariants are checked
    #[arg(long, default_value = "order-entry", help_heading = "Workload")]
    pub workload: String,
    #[command(flatten)]
    pub own: OwnArguments,
    /// Warehouses of order-entry, about 100 MB each
    #[arg(long, short, default_value_t = 1, help_heading = "Workload")]
    pub warehouses: u32,
    /// Branches of bank, about 15 MB each
    #[arg(long, default_value_t = 1, help_heading = "Workload")]
    pub branches: u32,
    /// Rows of commit, about 120 bytes each
    #[arg(long, default_value_t = 1000, help_heading = "Workload")]
    pub rows: u32,
    /// Terminals, a connection each
    #[arg(long, short, default_value_t = 10, help_heading = "Workload")]
    pub users: u32,
    /// How statements reach the server: statement, statement-pipelined, pipelined or procedure
    #[arg(long, default_value = "statement", help_heading = "Workload")]
    pub access: String,
    /// Seed of inputs, moments and losses
    #[arg(long, default_value_t = 1, help_heading = "Workload")]
    pub seed: u64,
    #[command(flatten)]
    pub settings: DatabaseSettings,
}
