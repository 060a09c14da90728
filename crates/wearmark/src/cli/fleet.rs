//! `wearmark fleet`

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `wearmark fleet`
#[derive(Debug, Subcommand)]
pub enum Fleet {
    /// Write the job list of many traces on many devices, and say what it will take
    Plan(FleetPlan),
    /// Do the jobs that have no result yet; any number of machines may share the results
    Run(FleetRun),
    /// Gather the results: how the devices compare over the traces, and the worst jobs
    Collect(FleetCollect),
}

/// `wearmark fleet plan`
#[derive(Debug, Args)]
pub struct FleetPlan {
    /// Traces of any known format, or directories of them
    #[arg(required = true)]
    pub traces: Vec<PathBuf>,
    /// Shipped profiles by name, or TOML files; repeat for several
    #[arg(long, short, required = true)]
    pub profile: Vec<String>,
    /// Seeds of the models; repeat for several
    #[arg(long, default_values_t = [1])]
    pub seed: Vec<u64>,
    /// Every stream of a trace is a load of its own: the volumes of a cloud's trace
    #[arg(long)]
    pub by_stream: bool,
    /// Closed loop: each actor of a captured trace waits for the simulated device
    #[arg(long)]
    pub closed: bool,
    /// The job list
    #[arg(long, short, default_value = "fleet.jsonl")]
    pub output: PathBuf,
}

/// Who does the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Executor {
    /// Threads of this machine
    Local,
    /// Nobody: prints a command for each job, for job arrays, GNU parallel or ssh
    Exec,
    /// A Ray cluster, by the Python package
    Ray,
}

/// `wearmark fleet run`
#[derive(Debug, Args)]
pub struct FleetRun {
    /// The job list
    #[arg(default_value = "fleet.jsonl")]
    pub plan: PathBuf,
    /// Where the results go, a file per job
    #[arg(long, value_name = "DIR", default_value = "fleet-results")]
    pub results: PathBuf,
    /// Who does the jobs
    #[arg(long, value_enum, default_value_t = Executor::Local)]
    pub executor: Executor,
    /// Jobs at a time on this machine; all processors where absent. Changes no figure
    #[arg(long)]
    pub threads: Option<usize>,
    /// The Ray cluster; that of RAY_ADDRESS where absent, or one of this machine
    #[arg(long)]
    pub address: Option<String>,
    /// Only this job; repeat for several
    #[arg(long, value_name = "ID")]
    pub job: Vec<String>,
}

/// `wearmark fleet collect`
#[derive(Debug, Args)]
pub struct FleetCollect {
    /// The job list
    #[arg(default_value = "fleet.jsonl")]
    pub plan: PathBuf,
    /// Where the results are
    #[arg(long, value_name = "DIR", default_value = "fleet-results")]
    pub results: PathBuf,
    /// Write all rows into one file of JSON lines
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Jobs to show of those with the longest 99th percentiles
    #[arg(long, default_value_t = 10)]
    pub worst: usize,
}
