//! `wearmark emulate`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use units::Nanos;

use super::live::Live;

/// `wearmark emulate`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Emulate {
    #[command(flatten)]
    pub live: Live,
    /// Orders to an emulation that runs.
    #[command(subcommand)]
    pub order: Option<EmulateOrder>,
    /// Shipped profiles by name, or TOML files: one for all directories, or one
    /// for each
    #[arg(required = true)]
    pub profile: Vec<String>,
    /// A directory whose files lie on the device; repeat for several
    #[arg(long, short, required_unless_present_any = ["nbd", "block"], value_name = "DIR")]
    pub dir: Vec<PathBuf>,
    /// Offer the device as a block device at this socket, to any client of the NBD protocol; repeat
    /// for several
    #[arg(long, value_name = "SOCKET")]
    pub nbd: Vec<PathBuf>,
    /// Make a loop device of the file DIR/disk, so that file systems stand above the device; its
    /// name is printed (root); repeat for several
    #[arg(long, value_name = "DIR")]
    pub block: Vec<PathBuf>,
    /// The file of a block device's bytes, made sparse if it is not there; memory where absent
    #[arg(long, value_name = "FILE", requires = "nbd")]
    pub file: Vec<PathBuf>,
    /// Size of block devices; the profile's capacity where absent, 1 GiB where it has none
    #[arg(long)]
    pub size: Option<units::Bytes>,
    /// What is above the devices, a TOML file: [scheduler], [volume], [cache_device]; one for
    /// all, or one for each profile, 'none' for none
    #[arg(long, value_name = "FILE")]
    pub host: Vec<PathBuf>,
    /// How long; until Ctrl-C, or until COMMAND ends, where absent
    #[arg(long = "for", value_name = "TIME")]
    pub time: Option<Nanos>,
    /// Without the profiles' write-back caches
    #[arg(long)]
    pub no_cache: bool,
    /// Seed of the modelled noise
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Cut the power after this time, or at a moment that the seed draws from FROM..TO: what was
    /// not synced is lost
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub power_cut: Option<std::ops::RangeInclusive<u64>>,
    /// At the power cut sectors of 4 KiB survive or not by this seed, so that writes are torn and
    /// reordered; without it everything that was not synced is lost
    #[arg(long, value_name = "SEED", requires = "power_cut")]
    pub torn: Option<u64>,
    /// From this time on every request fails with an I/O error
    #[arg(long, value_name = "TIME", help_heading = "Faults")]
    pub fail_after: Option<Nanos>,
    /// Requests that touch these bytes of the device fail with an I/O error, such as 1MiB..2MiB
    #[arg(long, value_name = "FROM..TO", value_parser = bytes_range, help_heading = "Faults")]
    pub fail_range: Option<std::ops::Range<u64>>,
    /// In this time nothing is answered, such as 10s..40s
    #[arg(long, value_name = "FROM..TO", value_parser = super::window, help_heading = "Faults")]
    pub stall: Option<std::ops::Range<u64>>,
    /// Watch the clock rather than sleep for at least the last part of a wait: exact, but it costs
    /// processor time. Where sleeps end later, the part grows up to 120 us
    #[arg(long, value_name = "TIME", default_value = "30us")]
    pub spin: Nanos,
    /// What the way between program and emulator takes, which the device's time is shortened by;
    /// measured where absent
    #[arg(long, value_name = "TIME")]
    pub path: Option<Nanos>,
    /// Let idle processors sleep: it spares energy, and answers are late by tens of microseconds
    #[arg(long)]
    pub sleep: bool,
    /// Run this on the device and end with it
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

/// Orders to an emulation that runs.
#[derive(Debug, Subcommand)]
pub enum EmulateOrder {
    /// Change the device or let it fail, while it is served
    Set(EmulateSet),
    /// Show what the device is doing
    Status(EmulateStatus),
}

/// `wearmark emulate set`
#[derive(Debug, Args)]
pub struct EmulateSet {
    /// A directory that is served; of several on one device, the first
    pub directory: PathBuf,
    /// profile=NAME, or a field of the profile such as device.flush.base_us=5000 (the device starts
    /// anew: caches empty, credits as at the start); stall=30s, fail=on, fail-range=1MiB..2MiB, and
    /// =off to end them
    #[arg(required = true, value_name = "NAME=VALUE")]
    pub change: Vec<String>,
}

/// `wearmark emulate status`
#[derive(Debug, Args)]
pub struct EmulateStatus {
    /// A directory that is served; of several on one device, the first
    pub directory: PathBuf,
}

/// `10s`, or `1s..10s`, in ns.
fn moment(text: &str) -> Result<std::ops::RangeInclusive<u64>, String> {
    if text.contains("..") {
        return super::window(text).map(|window| window.start..=window.end);
    }
    let time: Nanos = text.parse().map_err(|error: units::ParseError| error.to_string())?;
    Ok(time.0..=time.0)
}

/// `1MiB..2MiB` in bytes.
pub fn bytes_range(text: &str) -> Result<std::ops::Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("a range is FROM..TO, such as 1MiB..2MiB")?;
    let size = |part: &str| part.parse::<units::Bytes>().map_err(|error| error.to_string());
    let (from, to) = (size(from)?, size(to)?);
    if from >= to {
        return Err("a range ends after it starts".to_owned());
    }
    Ok(from.0..to.0)
}
