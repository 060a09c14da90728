//! Captures of servers that somebody else started and loads: taken, written, told in words.
//!
//! [`take`] attaches to a server for a time and leaves files that begin with a prefix: traces
//! (`-logical.parquet`, `-device-DISK.parquet`), the requests of its clients (`-requests.csv`), and
//! the account of it all (`-accounts.json`, a [`Capture`]), which is what `wearmark predict` reads.
//! The kernel side is the crate `capture`; here are the loop, the files and the words.
//!
//! Invariants: the account is written first, as unfinished, and last, whole; it lists each file
//! with what it holds or why it is missing. Bytes of its rows add up to those of the traces.
//! Nothing of a capture outlives the program but these files. Tested on real servers in
//! `wearmark`'s tests.

mod commands;
mod page;
mod requests;
mod take;
mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use capture::server::{RequestSummary, RoleCpu, Row, Server, ServerAccounts};
use dbms::statistics::Activity;
use events::Warning;
use serde::{Deserialize, Serialize};

use crate::Error;

pub use commands::commands;
pub use page::page;
pub use requests::{read_table, table};
pub use take::{Plan, Target, take};
pub use text::{Piece, text};

/// The stage that its events and warnings name.
const STAGE: &str = "capture";
/// Version of the shape of a [`Capture`].
const SCHEMA: u32 = 1;

/// The account of a capture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// Version of this shape.
    pub schema: u32,
    /// The program's version.
    pub wearmark: String,
    /// What was captured, in words.
    pub captured: String,
    /// How it ended.
    pub ending: Ending,
    /// How long it was to take, seconds.
    pub asked_s: f64,
    /// How long it took, seconds.
    pub seconds: f64,
    /// The machine.
    pub machine: BTreeMap<String, String>,
    /// The server; none for a device.
    pub server: Option<Server>,
    /// The files, with what they hold.
    pub files: Vec<Written>,
    /// The server's calls by file class and operation.
    pub calls: Vec<Row>,
    /// What each disk did, by file class and operation.
    pub disks: Vec<(String, Vec<Row>)>,
    /// Processor time of the server by what its tasks do.
    pub roles: Vec<RoleCpu>,
    /// Processor time of the capture itself, seconds.
    pub own_cpu_s: f64,
    /// Requests of the server's clients.
    pub requests: Option<RequestSummary>,
    /// I/O and processor time by layer; its transactions are the requests.
    pub accounts: Option<ServerAccounts>,
    /// What the server counted itself, where it could be asked.
    pub activity: Option<Activity>,
    /// What makes the figures suspect.
    pub warnings: Vec<Warning>,
}

/// How a capture ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It has not: the program was killed, or is at work.
    Unfinished,
    /// After the time that was asked for.
    Complete,
    /// The user stopped it.
    Interrupted,
    /// The server was gone.
    ServerEnded,
    /// It had as much as it keeps in memory.
    Full,
}

/// A file of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub holds: String,
    /// Why it is missing, where it is.
    pub missing: Option<String>,
}

impl Capture {
    /// Where the account of a capture is.
    pub fn path(prefix: &Path) -> PathBuf {
        with(prefix, "-accounts.json")
    }

    /// Reads the account of a capture.
    ///
    /// # Errors
    /// A file that is missing, or is no account of this version.
    pub fn read(prefix: &Path) -> Result<Self, Error> {
        let path = Self::path(prefix);
        Self::parse(&std::fs::read(&path).map_err(Error::io(&path, "read"))?, &path)
    }

    /// Parses the account of a capture; `path` is for messages.
    ///
    /// # Errors
    /// A text that is no account of this version.
    pub fn parse(text: &[u8], path: &Path) -> Result<Self, Error> {
        let what = "account of a capture";
        let read: Self = crate::run_dir::parse_json(text, path, what)?;
        if read.schema != SCHEMA {
            let cause = format!("it has schema {}, this version reads {SCHEMA}", read.schema);
            return Err(Error::Artifact { path: path.to_owned(), what, cause });
        }
        Ok(read)
    }

    /// Writes the account.
    fn write(&self, prefix: &Path) -> Result<(), Error> {
        let mut text = serde_json::to_string_pretty(self).expect("plain data");
        text.push('\n');
        crate::run_dir::write_atomically(&Self::path(prefix), text.as_bytes())
    }
}

/// `PREFIX` and a suffix.
pub(crate) fn with(prefix: &Path, suffix: &str) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}
