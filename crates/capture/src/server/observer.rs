//! All observers around a server at once: start them where the measurement begins, end them where
//! it ends, and take the account. What cannot be observed here is said in the account; nothing
//! fails.
//!
//! Tested on a real server.

use crate::Unavailable;

use super::accounts::{ServerAccounts, Sources};
use super::class::Server;
use super::clock::ServerClock;
use super::logical::{Logical, Options, ServerCapture};
use super::physical::{PhysicalCapture, ServerPhysical};
use super::transactions::{Span, TransactionIo, attribute};

/// Running observers.
pub struct Observer {
    server: Server,
    clock: ServerClock,
    logical: Result<ServerCapture, Unavailable>,
    physical: Result<PhysicalCapture, Unavailable>,
}

/// What they saw.
#[derive(Debug)]
pub struct Observed {
    /// The account.
    pub accounts: ServerAccounts,
    /// The logical I/O with its trace, where it could be captured.
    pub logical: Option<Logical>,
    /// The disks' traces, where they could be captured.
    pub physical: Option<ServerPhysical>,
    /// One per transaction that the client told of, where the logical I/O could be captured.
    pub transactions: Vec<TransactionIo>,
}

impl Observer {
    /// Starts on a running server.
    pub fn start(server: &Server, options: Options) -> Self {
        let physical = PhysicalCapture::start(server);
        let logical = ServerCapture::start(server, options);
        let clock = ServerClock::start(&server.pids());
        Self { server: server.clone(), clock, logical, physical }
    }

    /// Ends while the server still runs. `transactions` were completed in the meantime; `spans` are
    /// those whose times and tasks the client knows, none where it does not.
    pub fn finish(self, transactions: u64, spans: &[Span]) -> Observed {
        // The clock first: the captures work on for a while, and not for the server.
        let cpu = self.clock.finish();
        let physical = self.physical.map(PhysicalCapture::finish);
        let mut logical = self.logical.map(ServerCapture::finish);
        let attributed = match &mut logical {
            Ok(logical) => attribute(logical, spans),
            Err(_) => Vec::new(),
        };
        let accounts = ServerAccounts::new(Sources {
            system: self.server.system,
            transactions,
            logical: logical.as_ref(),
            physical: physical.as_ref(),
            cpu,
        });
        let (logical, physical) = (logical.ok(), physical.ok());
        Observed { accounts, logical, physical, transactions: attributed }
    }
}
