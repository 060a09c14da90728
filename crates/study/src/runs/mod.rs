//! Runs of a workload outside of a study: made, kept, compared and drawn.
//!
//! A [`RunSet`] is what `wearmark oltp run` and `sweep` keep in a file: the runs of one
//! configuration, or of several that differ in one setting. [`compare`] sets two of them against
//! each other, [`page`] draws one.
//!
//! Invariants: a set that is written again after each run never loses an earlier one; every run
//! says by itself with which options, on which server and how disturbed it was measured.

mod capture_cost;
pub mod compare;
mod make;
pub mod page;
pub mod search;
mod server;
mod start;
pub(crate) mod transactions;

use std::collections::BTreeMap;
use std::path::Path;

use capture::server::ServerAccounts;
use dbms::statistics::Activity;
use dbms::{Places, ServerCpu, Settings};
use oltp::OltpResult;
use predict::Limit;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::observe::Accounts;

pub use capture_cost::CaptureCost;
pub use make::{FROM_START, Made, Target, make};
pub use start::StartReads;

/// Version of the shape of a [`RunSet`].
pub const SCHEMA: u32 = 1;

/// What such a file is called where it cannot be read.
const WHAT: &str = "file of OLTP runs";

/// The runs of one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSet {
    /// Version of this shape.
    pub schema: u32,
    /// The program's version.
    pub wearmark: String,
    /// The setting that differs between runs, such as `users`; none where they repeat one.
    pub over: Option<String>,
    /// The machine.
    pub machine: BTreeMap<String, String>,
    /// In the order in which they were made.
    pub runs: Vec<Run>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The value of the setting that differs; empty where none does.
    pub at: String,
    /// What the terminals saw.
    pub result: OltpResult,
    /// Where the bytes and the processor time went, as far as it was captured.
    pub accounts: Option<Accounts>,
    /// The server, where the DBMS is one.
    pub server: Option<ServerRun>,
}

/// What is known of the server of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerRun {
    /// How it was set; none for a server that wearmark did not start.
    pub settings: Option<Settings>,
    /// Where its files are.
    pub places: Option<Places>,
    /// What it was asked for and does not do, or what cannot be controlled on it.
    pub notes: Vec<String>,
    /// Processor time of its processes within the measurement; none where they cannot be seen.
    pub cpu: Option<ServerCpu>,
    /// What it counted itself within the measurement.
    pub activity: Option<Activity>,
    /// What was seen from outside: I/O by layer and file class, processor time by whom.
    pub accounts: Option<ServerAccounts>,
    /// What the time of its transactions went to, as measured, largest first; empty where their
    /// system calls were not captured.
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// What the capture took itself, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture_cost: Option<CaptureCost>,
    /// What the disk read since the load began, its warm-up included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<StartReads>,
}

impl ServerRun {
    /// Commits that shared a sync of the log, on average.
    pub fn commits_per_log_sync(&self) -> Option<f64> {
        let activity = self.activity.as_ref()?;
        let syncs = activity.log_syncs.filter(|syncs| *syncs > 0)?;
        Some(activity.commits? as f64 / syncs as f64)
    }
}

impl Run {
    /// The accounts of I/O in one shape for all systems, as far as it was captured.
    pub(crate) fn accounts_of_io(&self) -> Option<Accounts> {
        if let Some(own) = &self.accounts {
            return Some(own.clone());
        }
        let seen = self.server.as_ref()?.accounts.as_ref()?;
        let physical = seen.layers.iter().any(|layer| layer.layer.starts_with("physical"));
        Some(Accounts {
            layers: seen.layers.clone(),
            physical_unavailable: (!physical).then(|| seen.unavailable.join("; ")),
            cpu: seen.cpu.series.clone(),
            device_share: 0.0,
        })
    }

    /// Processor time of the client per transaction, microseconds.
    pub fn client_us(&self) -> f64 {
        let cpu = &self.result.cpu;
        (cpu.user_ns_per_transaction + cpu.system_ns_per_transaction) / 1e3
    }

    /// Processor time of the server per transaction, microseconds; `None` for SQLite, which is part
    /// of the client, and for a server out of sight.
    pub fn server_us(&self) -> Option<f64> {
        let cpu = self.server.as_ref()?.cpu?;
        Some(cpu.total_s() * 1e6 / self.result.cpu.transactions.max(1) as f64)
    }
}

impl RunSet {
    /// A set without runs, on this machine.
    pub fn new(over: Option<String>, directory: &Path) -> Self {
        Self {
            schema: SCHEMA,
            wearmark: env!("CARGO_PKG_VERSION").to_owned(),
            over,
            machine: crate::machine::fingerprint(directory),
            runs: Vec::new(),
        }
    }

    /// Reads a set.
    ///
    /// # Errors
    /// A file that cannot be read or is not a set of this version.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::parse(&std::fs::read(path).map_err(Error::io(path, "read"))?, path)
    }

    /// Parses the text of a set; `path` is for messages.
    ///
    /// # Errors
    /// A text that is not a set of this version.
    pub fn parse(text: &[u8], path: &Path) -> Result<Self, Error> {
        let bad = |cause: String| Error::Artifact { path: path.to_owned(), what: WHAT, cause };
        let set: Self = crate::run_dir::parse_json(text, path, WHAT)?;
        if set.schema != SCHEMA {
            return Err(bad(format!("it has schema {}, this version reads {SCHEMA}", set.schema)));
        }
        if set.runs.is_empty() {
            return Err(bad("it holds no run".to_owned()));
        }
        Ok(set)
    }

    /// Writes the set in place of an earlier one: whole, or not at all.
    ///
    /// # Errors
    /// A place that cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let mut text = serde_json::to_string_pretty(self).map_err(|error| Error::Artifact {
            path: path.to_owned(),
            what: WHAT,
            cause: error.to_string(),
        })?;
        text.push('\n');
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        let beside = Path::new(&beside);
        std::fs::write(beside, text).map_err(Error::io(beside, "write"))?;
        std::fs::rename(beside, path).map_err(Error::io(path, "replace"))
    }
}
