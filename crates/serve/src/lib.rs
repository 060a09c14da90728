//! What is offered over HTTP: the figures of a run while it goes on, for Prometheus and what else
//! reads the text format of OpenMetrics 1.0; and a directory of runs, for a browser.
//!
//! [`Metrics`] takes the events of a run and answers `GET /metrics`. Nothing is computed here that
//! `events.jsonl` does not hold. [`Runs`] serves a page that lists runs, compares them, shows what
//! is under way and starts and stops studies. HTTP is tiny_http's, the format prometheus-client's.
//!
//! Invariants: counters and histograms never fall while a run goes on; a server on a loopback
//! address answers only who names it by a loopback name, so that a page in a browser cannot read it
//! through a name of its own (DNS rebinding). Tested here over real sockets, and by the command's
//! own tests with real runs.

#![forbid(unsafe_code)]

mod figures;
mod http;
mod runs;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use events::{Event, Hint};
use prometheus_client::registry::Registry;

use figures::{Figures, Shared};
use http::{Asked, Listener, Reply};
pub use runs::Runs;

/// What OpenMetrics 1.0 says a reader must be told.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Why nothing can be offered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is taken, or not this machine's.
    #[error("cannot listen at {address}: {cause}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        cause: String,
    },
    /// Runs are not offered to other machines.
    #[error("{address} is not a loopback address")]
    NotLoopback {
        /// The address.
        address: SocketAddr,
    },
    /// The system has no random numbers for a key.
    #[error("no key can be made: {cause}")]
    NoKey {
        /// What the system said.
        cause: String,
    },
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Listen { .. } => Some("name another port, or port 0 for any free one".to_owned()),
            Self::NotLoopback { .. } => Some(
                "serve on 127.0.0.1 and reach it by 'ssh -L PORT:127.0.0.1:PORT' from elsewhere"
                    .to_owned(),
            ),
            Self::NoKey { .. } => None,
        }
    }
}

/// A server of a run's figures; ends with this value.
#[derive(Debug)]
pub struct Metrics {
    figures: Arc<Mutex<Figures>>,
    listener: Listener,
}

impl Metrics {
    /// Begins to answer at an address; port 0 takes a free one.
    ///
    /// # Errors
    /// Nothing can listen there.
    pub fn listen(address: SocketAddr) -> Result<Self, Error> {
        let figures = Arc::new(Mutex::new(Figures::default()));
        let mut registry = Registry::with_prefix("wearmark");
        registry.register_collector(Box::new(Shared(Arc::clone(&figures))));
        let listener =
            Listener::start(address, 1, |_| move |asked: &Asked| reply(asked, &registry))?;
        Ok(Self { figures, listener })
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Takes an event of the run.
    pub fn take(&self, event: &Event) {
        self.figures.lock().expect("no panic under the lock").take(event);
    }
}

fn reply(asked: &Asked, registry: &Registry) -> Reply {
    if asked.changes {
        return Reply::text(405, "this can only be read\n");
    }
    if asked.path != "/metrics" {
        return Reply::text(404, "the figures are at /metrics\n");
    }
    let mut text = String::new();
    match prometheus_client::encoding::text::encode(&mut text, registry) {
        Ok(()) => Reply::new(CONTENT_TYPE, text),
        Err(_) => Reply::text(500, "the figures cannot be written\n"),
    }
}

#[cfg(test)]
mod tests;
