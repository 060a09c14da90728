//! `wearmark emulate`

use std::path::PathBuf;

use clap::Args;
use units::Nanos;

/// `wearmark emulate`
#[derive(Debug, Args)]
pub struct Emulate {
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
    /// How long; until Ctrl-C, or until COMMAND ends, where absent
    #[arg(long = "for", value_name = "TIME")]
    pub time: Option<Nanos>,
    /// Without the profiles' write-back caches
    #[arg(long)]
    pub no_cache: bool,
    /// Seed of the modelled noise
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Cut the power after this time: what was not synced is lost
    #[arg(long, value_name = "TIME")]
    pub power_cut: Option<Nanos>,
    /// At the power cut sectors of 4 KiB survive or not by this seed, so that writes are torn and
    /// reordered; without it everything that was not synced is lost
    #[arg(long, value_name = "SEED", requires = "power_cut")]
    pub torn: Option<u64>,
    /// From this time on every request fails with an I/O error
    #[arg(long, value_name = "TIME", help_heading = "Faults")]
    pub fail_after: Option<Nanos>,
    /// Requests that touch these bytes of the device fail with an I/O error, such as 1MiB..2MiB
    #[arg(long, value_name = "FROM..TO", value_parser = bytes, help_heading = "Faults")]
    pub fail_range: Option<std::ops::Range<u64>>,
    /// In this time nothing is answered, such as 10s..40s
    #[arg(long, value_name = "FROM..TO", value_parser = super::window, help_heading = "Faults")]
    pub stall: Option<std::ops::Range<u64>>,
    /// Watch the clock rather than sleep for the last part of a wait: exact, but it costs processor
    /// time
    #[arg(long, value_name = "TIME", default_value = "30us")]
    pub spin: Nanos,
    /// What the way between program and emulator takes, which the device's time is shortened by;
    /// measured where absent
    #[arg(long, value_name = "TIME")]
    pub path: Option<Nanos>,
    /// Run this on the device and end with it
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

/// `1MiB..2MiB` in bytes.
fn bytes(text: &str) -> Result<std::ops::Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("a range is FROM..TO, such as 1MiB..2MiB")?;
    let size = |part: &str| part.parse::<units::Bytes>().map_err(|error| error.to_string());
    let (from, to) = (size(from)?, size(to)?);
    if from >= to {
        return Err("a range ends after it starts".to_owned());
    }
    Ok(from.0..to.0)
}
