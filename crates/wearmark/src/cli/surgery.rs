//! Arguments of the commands that cut, move and join traces.

use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use units::{Bytes, Nanos, Rate};

use super::{Reading, TraceInput};

/// `wearmark trace slice`
#[derive(Debug, Args)]
pub struct Slice {
    #[command(flatten)]
    pub input: TraceInput,
    /// Where the part goes
    #[arg(long, short)]
    pub output: PathBuf,
    /// Requests due in this span, such as 10s..1min; either end may be left out
    #[arg(long, value_name = "FROM..TO", value_parser = range::<Nanos>)]
    pub time: Option<Range<Nanos>>,
    /// Requests of this stream; repeat for several
    #[arg(long, value_name = "NAME")]
    pub stream: Vec<String>,
    /// Requests in this part of the address space, such as 1GiB..; cut off at its ends
    #[arg(long, value_name = "FROM..TO", value_parser = range::<Bytes>)]
    pub region: Option<Range<Bytes>>,
}

/// `wearmark trace remap`
#[derive(Debug, Args)]
pub struct Remap {
    #[command(flatten)]
    pub input: TraceInput,
    /// Where the result goes
    #[arg(long, short)]
    pub output: PathBuf,
    /// Size of the device
    #[arg(long, value_name = "SIZE")]
    pub onto: Bytes,
    /// How addresses change
    #[arg(long, value_enum, default_value_t = RemapRule::Compact)]
    pub rule: RemapRule,
}

/// Rules of a remapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RemapRule {
    /// Leave out what is never touched, in chunks of at most 1 MiB; keeps runs and reuse
    Compact,
    /// Move chunks of 1 MiB in proportion; keeps relative distances
    Scale,
    /// Take the rest of the division by the size; keeps distances within it
    Modulo,
}

/// `wearmark trace scale`
#[derive(Debug, Args)]
pub struct Scale {
    #[command(flatten)]
    pub input: TraceInput,
    /// Where the result goes
    #[arg(long, short)]
    pub output: PathBuf,
    /// Multiply all times by this: 0.5 is twice as fast
    #[arg(long, required_unless_present = "rate", conflicts_with = "rate")]
    pub factor: Option<f64>,
    /// Give the trace this mean rate
    #[arg(long)]
    pub rate: Option<Rate>,
}

/// `wearmark trace host`
#[derive(Debug, Args)]
pub struct Host {
    #[command(flatten)]
    pub input: TraceInput,
    /// The host: a TOML file with [page_cache] and [file_system]
    #[arg(long = "host", value_name = "FILE")]
    pub stack: PathBuf,
    /// Where the result goes
    #[arg(long, short)]
    pub output: PathBuf,
    /// Also make the calls for real: on such a file system of the kernel, on a loop device over a
    /// file in this directory that is gone afterwards; root only
    #[arg(long, value_name = "DIR")]
    pub run_in: Option<PathBuf>,
    /// Where the trace of what that device really got goes
    #[arg(long, value_name = "FILE", requires = "run_in")]
    pub real_output: Option<PathBuf>,
}

/// `wearmark trace merge`
#[derive(Debug, Args)]
pub struct Merge {
    /// The traces, in the order in which their address spaces are stacked
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: Reading,
    /// Where the result goes
    #[arg(long, short)]
    pub output: PathBuf,
    /// When each trace starts, in their order, such as 0s,10s; 0s where none is given
    #[arg(long, value_name = "TIME", value_delimiter = ',')]
    pub start: Vec<Nanos>,
    /// Added to the addresses of each trace, in their order; 0B where none is given
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    pub base: Vec<Bytes>,
    /// All traces on the same addresses, instead of one behind the other
    #[arg(long)]
    pub shared: bool,
}

/// `wearmark trace anonymise`
#[derive(Debug, Args)]
pub struct Anonymise {
    #[command(flatten)]
    pub input: TraceInput,
    /// Where the result goes
    #[arg(long, short)]
    pub output: PathBuf,
    /// Seed of the order of extents; who knows it can undo the order. Random and forgotten
    /// otherwise
    #[arg(long)]
    pub seed: Option<u64>,
}

/// A quantity that a range may be of.
pub trait Quantity: FromStr<Err: std::fmt::Display> {
    /// Where a range starts that does not say.
    const LEAST: Self;
    /// Where a range ends that does not say.
    const MOST: Self;
}

impl Quantity for Nanos {
    const LEAST: Self = Self(0);
    const MOST: Self = Self(u64::MAX);
}

impl Quantity for Bytes {
    const LEAST: Self = Self(0);
    const MOST: Self = Self(u64::MAX);
}

fn range<Q: Quantity>(text: &str) -> Result<Range<Q>, String> {
    let (from, to) = text.split_once("..").ok_or("two values with .. between them are expected")?;
    let end = |text: &str, otherwise: Q| {
        if text.is_empty() { Ok(otherwise) } else { text.parse::<Q>().map_err(|e| e.to_string()) }
    };
    Ok(end(from, Q::LEAST)?..end(to, Q::MOST)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_end_of_a_range_may_be_left_out() {
        assert_eq!(range::<Nanos>("1s..2s"), Ok(Nanos(1_000_000_000)..Nanos(2_000_000_000)));
        assert_eq!(range::<Bytes>("1KiB.."), Ok(Bytes(1024)..Bytes(u64::MAX)));
        assert_eq!(range::<Bytes>("..1KiB"), Ok(Bytes(0)..Bytes(1024)));
        assert!(range::<Bytes>("1KiB").is_err() && range::<Nanos>("1s..soon").is_err());
    }
}
