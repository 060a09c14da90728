//! `wearmark advise`

use std::path::PathBuf;

use advise::Interval;
use clap::{Args, Subcommand, ValueEnum};
use units::{Bytes, Nanos};

/// `wearmark advise`
#[derive(Debug, Subcommand)]
pub enum Advise {
    /// Rank devices by the cost of a transaction at a response-time limit; who dominates whom
    Buy(AdviseBuy),
    /// Simulate every placement of data and log over devices, and rank them
    Place(AdvisePlace),
    /// Say how long a device lasts at a load, when its credits run out, when it is full
    Life(AdviseLife),
    /// Say what a faster part, more devices, relaxed durability or more memory would do
    #[command(subcommand)]
    WhatIf(WhatIf),
    /// Print the price list that is shipped, as the file that --prices reads
    Prices,
}

/// What is paid for
#[derive(Debug, Args)]
#[command(next_help_heading = "Prices")]
pub struct Pricing {
    /// Your own prices, a TOML file as 'wearmark advise prices' prints it; they go before the
    /// shipped ones
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// Size of the volume or drive
    #[arg(long, default_value = "500GiB")]
    pub size: Bytes,
    /// Size of the log's, where it lies apart
    #[arg(long, default_value = "50GiB")]
    pub log_size: Bytes,
    /// How many years a drive that is bought is used
    #[arg(long, default_value_t = 5.0)]
    pub years: f64,
    /// Prices in another currency are left out
    #[arg(long, default_value = "USD")]
    pub currency: String,
    /// 99 % of the transactions take no longer
    #[arg(long, value_name = "TIME")]
    pub p99: Option<Nanos>,
    /// The kind of transaction that this limit is of; the first one where absent
    #[arg(long)]
    pub kind: Option<String>,
}

/// `wearmark advise buy`
#[derive(Debug, Args)]
pub struct AdviseBuy {
    /// A run directory of a study, its result.json, a TOML file of [[offer]], or, with --on, what
    /// 'wearmark capture --output PREFIX' or 'wearmark oltp run --trace PREFIX' left
    pub source: PathBuf,
    /// Predict the capture on these: shipped profiles or TOML files
    #[arg(long, value_name = "PROFILE")]
    pub on: Vec<String>,
    #[command(flatten)]
    pub pricing: Pricing,
    /// Decides which samples are drawn
    #[arg(long, default_value_t = 1, requires = "on")]
    pub seed: u64,
}

/// `wearmark advise place`
#[derive(Debug, Args)]
pub struct AdvisePlace {
    /// What 'wearmark capture --output PREFIX' or 'wearmark oltp run --trace PREFIX' left
    pub prefix: PathBuf,
    /// A device at hand: a shipped profile or a TOML file; repeat for several
    #[arg(long, required = true, value_name = "PROFILE")]
    pub on: Vec<String>,
    #[command(flatten)]
    pub pricing: Pricing,
    /// Decides which samples are drawn
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// `wearmark advise life`
#[derive(Debug, Args)]
pub struct AdviseLife {
    /// A shipped profile's name or a TOML file; may be repeated
    #[arg(long, short, required = true)]
    pub profile: Vec<String>,
    /// Bytes written per second, as 11.6MB, log=3MB or data=2MB..4MB; repeat for several classes
    #[arg(long, value_name = "[CLASS=]BYTES", value_parser = class_rate)]
    pub write: Vec<(String, Interval)>,
    /// Take what is written from the result of a study: a run directory or its result.json
    #[arg(long, value_name = "RUN", conflicts_with = "write")]
    pub result: Option<PathBuf>,
    /// Bytes programmed per byte written (write amplification), as 2.5 or 2..4
    #[arg(long, value_name = "FACTOR", value_parser = interval)]
    pub amplification: Option<Interval>,
    /// I/Os per second, as 2500 or 2000..3000, for the credits of a volume
    #[arg(long, value_name = "RATE", value_parser = interval)]
    pub iops: Option<Interval>,
    /// Bytes per second, for the credits of a volume
    #[arg(long, value_name = "BYTES", value_parser = byte_interval)]
    pub throughput: Option<Interval>,
    /// Space that is free
    #[arg(long, value_name = "SIZE", requires = "grows")]
    pub free: Option<Bytes>,
    /// Space more every day, as 2GB or 1GB..4GB
    #[arg(long, value_name = "SIZE", value_parser = byte_interval, requires = "free")]
    pub grows: Option<Interval>,
    /// The day that the free space is of, for the date when it is full
    #[arg(long, value_name = "YYYY-MM-DD", requires = "free")]
    pub from: Option<String>,
}

/// `wearmark advise what-if`
#[derive(Debug, Subcommand)]
pub enum WhatIf {
    /// A part of the time becomes faster (Amdahl's law)
    Faster(Faster),
    /// Devices per processor of a balanced system
    Balance(Balance),
    /// Commits are answered before they are durable: how much faster, what may be lost
    Relaxed(Relaxed),
    /// More memory or faster storage: the break-even of a page (five-minute rule)
    Memory(Memory),
}

/// `wearmark advise what-if faster`
#[derive(Debug, Args)]
pub struct Faster {
    /// Share of the time that the part takes, as 0.6 or 0.5..0.7
    #[arg(long, value_parser = interval, required_unless_present = "result")]
    pub share: Option<Interval>,
    /// Take the share of storage from the result of a study instead
    #[arg(long, value_name = "RUN", conflicts_with = "share")]
    pub result: Option<PathBuf>,
    /// How many times as fast it becomes
    #[arg(long, default_value_t = 10.0)]
    pub times: f64,
    /// What the part is called
    #[arg(long, default_value = "storage")]
    pub part: String,
}

/// `wearmark advise what-if balance`
#[derive(Debug, Args)]
pub struct Balance {
    /// Clock of the processor, GHz
    #[arg(long, value_name = "GHZ")]
    pub clock: f64,
    /// Cycles per instruction
    #[arg(long, value_name = "CYCLES")]
    pub cpi: f64,
    /// Instructions per byte of I/O
    #[arg(long, default_value_t = advise::balance::INSTRUCTIONS_PER_BYTE)]
    pub instructions_per_byte: f64,
    /// Bytes per request
    #[arg(long, default_value = "8KiB")]
    pub page: Bytes,
    /// Share of reads among the requests
    #[arg(long)]
    pub read_share: f64,
    /// Reads of a page that a device serves per second
    #[arg(long, value_name = "RATE")]
    pub reads: f64,
    /// Writes of a page that a device serves per second
    #[arg(long, value_name = "RATE")]
    pub writes: f64,
    /// How both rates are averaged
    #[arg(long, value_enum, default_value_t = MeanName::Harmonic)]
    pub mean: MeanName,
}

/// Means of two rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MeanName {
    /// What a device does that serves one request after another
    Harmonic,
    /// Mean of the rates
    Arithmetic,
}

/// `wearmark advise what-if relaxed`
#[derive(Debug, Args)]
pub struct Relaxed {
    /// Commits per second as it is
    #[arg(long, value_name = "RATE")]
    pub commits: f64,
    /// Share of a transaction's time that it waits for the log, as 0.6 or 0.5..0.7
    #[arg(long, value_parser = interval)]
    pub log_share: Interval,
    /// Longest time until what was committed is durable: three times wal_writer_delay, 1s of InnoDB
    #[arg(long, default_value = "600ms")]
    pub window: Nanos,
}

/// `wearmark advise what-if memory`
#[derive(Debug, Args)]
pub struct Memory {
    /// Bytes of a page
    #[arg(long, default_value = "8KiB")]
    pub page: Bytes,
    /// Random reads of a page per second of the device
    #[arg(long, value_name = "RATE")]
    pub reads: f64,
    /// Price of the device
    #[arg(long, value_name = "PRICE")]
    pub device_price: f64,
    /// Price of 10^9 bytes of memory, in the same currency and for as long
    #[arg(long = "memory-price", value_name = "PRICE")]
    pub price_per_gb: f64,
    /// Size of the database
    #[arg(long, requires = "misses", requires = "buffer")]
    pub data: Option<Bytes>,
    /// Memory that holds pages of it
    #[arg(long, requires = "data")]
    pub buffer: Option<Bytes>,
    /// Pages read from storage per second, as 800 or 700..900
    #[arg(long, value_name = "RATE", value_parser = interval, requires = "data")]
    pub misses: Option<Interval>,
}

/// `2.5`, `2..4` (the middle is the value) or `2..2.5..4`.
fn interval(text: &str) -> Result<Interval, String> {
    parts(text, &|part| part.parse::<f64>().map_err(|error| format!("'{part}': {error}")))
}

/// The same of sizes.
fn byte_interval(text: &str) -> Result<Interval, String> {
    let size = |part: &str| part.parse::<Bytes>().map(|bytes| bytes.0 as f64);
    parts(text, &|part| size(part).map_err(|error| error.to_string()))
}

fn parts(text: &str, of: &dyn Fn(&str) -> Result<f64, String>) -> Result<Interval, String> {
    let values: Vec<f64> = text.split("..").map(of).collect::<Result<_, _>>()?;
    if values.iter().any(|value| !value.is_finite()) {
        return Err("it is no number".to_owned());
    }
    match values[..] {
        [value] => Ok(Interval::exact(value)),
        [low, high] if low <= high => Ok(Interval::new(f64::midpoint(low, high), low, high)),
        [low, value, high] if low <= value && value <= high => Ok(Interval::new(value, low, high)),
        _ => Err("give VALUE, LOW..HIGH or LOW..VALUE..HIGH, the lower one first".to_owned()),
    }
}

/// `[CLASS=]BYTES`
fn class_rate(text: &str) -> Result<(String, Interval), String> {
    let (class, rate) = text.split_once('=').unwrap_or(("", text));
    Ok((class.to_owned(), byte_interval(rate.trim_end_matches("/s"))?))
}
