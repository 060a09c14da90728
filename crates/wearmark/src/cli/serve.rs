//! `wearmark serve`

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::live::address;

/// `wearmark serve`
#[derive(Debug, Args)]
pub struct Serve {
    /// The directory in which 'wearmark study run' makes its run directories
    #[arg(default_value = "runs")]
    pub runs: PathBuf,
    /// Where a browser finds it: a port of this machine, or a loopback address and a port; port 0
    /// takes a free one
    #[arg(long, value_name = "ADDRESS", value_parser = address, default_value = "8177")]
    pub at: SocketAddr,
}
