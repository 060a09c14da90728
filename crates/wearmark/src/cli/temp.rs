//! `wearmark temp`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use spill::Keys;
use units::{Bytes, Nanos};

/// `wearmark temp`
#[derive(Debug, Subcommand)]
pub enum Temp {
    /// External merge sort
    Sort(TempSort),
    /// Grace hash join
    Join(TempJoin),
}

/// `wearmark temp sort`
#[derive(Debug, Args)]
pub struct TempSort {
    #[command(flatten)]
    pub sweep: TempSweep,
    /// Distribution of the keys: random, uniform:N, zipf:N, ascending or descending
    #[arg(long, default_value_t = Keys::Random)]
    pub keys: Keys,
}

/// `wearmark temp join`
#[derive(Debug, Args)]
pub struct TempJoin {
    #[command(flatten)]
    pub sweep: TempSweep,
    /// Rows of the probe side; as many as the build side otherwise
    #[arg(long)]
    pub probe_rows: Option<u64>,
    /// Distribution of the build side's keys; by default each key once
    #[arg(long, default_value_t = Keys::Ascending)]
    pub build_keys: Keys,
    /// Distribution of the probe side's keys; by default each matches one build row
    #[arg(long)]
    pub probe_keys: Option<Keys>,
}

/// Rows, memory, clusters and places
#[derive(Debug, Args)]
pub struct TempSweep {
    /// Rows (of the build side of a join)
    #[arg(long, short = 'n', default_value_t = 1_000_000)]
    pub rows: u64,
    /// Bytes of a row
    #[arg(long, default_value_t = 100)]
    pub width: u32,
    /// Memory for rows and clusters
    #[arg(long, short, default_value = "2MiB")]
    pub memory: Bytes,
    /// Bytes per request; several, separated by commas, are compared
    #[arg(long, short, value_delimiter = ',', default_value = "8KiB")]
    pub cluster: Vec<Bytes>,
    /// Requests in flight at most; 1 waits for each
    #[arg(long, default_value_t = 32)]
    pub depth: u32,
    /// Where the temporary file is made; it has no name and leaves nothing
    #[arg(long, short, value_name = "DIR")]
    pub directory: Vec<PathBuf>,
    /// Through the page cache, which measures memory where that is large enough
    #[arg(long)]
    pub buffered: bool,
    /// On a device model in virtual time: a shipped profile's name or a TOML file; repeat for
    /// several. Without --directory, nothing is written
    #[arg(long, short)]
    pub profile: Vec<String>,
    /// What is above these devices, a TOML file: [scheduler], [volume], [cache_device]
    #[arg(long, value_name = "FILE", requires = "profile")]
    pub host: Option<PathBuf>,
    /// What a row costs a simulated processor in each phase
    #[arg(long, value_name = "TIME", default_value = "0ns")]
    pub cpu_per_row: Nanos,
    /// Seed of rows and models
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write the requests as PREFIX-CLUSTER.parquet
    #[arg(long, value_name = "PREFIX")]
    pub trace: Option<PathBuf>,
    /// Write a page with a chart
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
