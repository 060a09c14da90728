//! What commands take that run for a while.

use std::net::{Ipv4Addr, SocketAddr};

use clap::Args;

use super::{Command, Oltp, Study};

/// How a run is watched
#[derive(Debug, Args)]
pub struct Live {
    /// Offer the figures of the run at http://ADDRESS/metrics while it goes on, as OpenMetrics: a
    /// port of this machine, or an address and a port; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub metrics: Option<SocketAddr>,
}

/// An address and a port; a port alone is one that only this machine reaches.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse() {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    text.parse().map_err(|_| "write a port, or an address and a port: 127.0.0.1:9464".to_owned())
}

impl Command {
    /// Where its figures are offered while it runs.
    pub fn metrics(&self) -> Option<SocketAddr> {
        match self {
            Self::Study(Study::Run { live, dry_run: false, .. }) => live.metrics,
            Self::Probe(arguments) if !arguments.dry_run => arguments.live.metrics,
            Self::Oltp(Oltp::Run(arguments)) => arguments.live.metrics,
            Self::Emulate(arguments) => arguments.live.metrics,
            Self::Replay(arguments) => arguments.live.metrics,
            _ => None,
        }
    }
}
