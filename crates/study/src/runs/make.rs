//! One run, with everything that is watched beside it.

use capture::server::TransactionIo;
use capture::sqlite::IoMode;
use dbms::Instance;
use events::Sink;
use oltp::Options;
use trace::Trace;

use super::{Run, server};
use crate::Error;
use crate::stages::oltp::{Capture, observe};

/// What the database of a run is, beyond its options.
pub enum Target<'a> {
    /// SQLite, whose files are opened in this way.
    Embedded(IoMode),
    /// A server that wearmark started.
    Private(&'a Instance),
    /// A server that was there.
    Foreign,
}

/// The trace of what an embedded database asked of the device since its load began.
pub const FROM_START: &str = "from-start";

/// A run and the traces that it left.
pub struct Made {
    /// The run.
    pub run: Run,
    /// Captured traces and what to call them.
    pub traces: Vec<(String, Trace)>,
    /// What each transaction did on storage, where a server's I/O was captured.
    pub transactions: Vec<TransactionIo>,
}

/// Makes one run on a loaded database.
///
/// # Errors
/// Those of [`oltp::run`] and of the capture.
pub fn make(
    options: Options,
    target: &Target<'_>,
    capture: Capture,
    sink: &dyn Sink,
) -> Result<Made, Error> {
    match target {
        Target::Embedded(io) => embedded(options, *io, capture, sink),
        Target::Private(instance) => server::make(&options, Some(instance), capture, sink),
        Target::Foreign => server::make(&options, None, capture, sink),
    }
}

fn embedded(
    options: Options,
    io: IoMode,
    capture: Capture,
    sink: &dyn Sink,
) -> Result<Made, Error> {
    let observed = observe(options, (io, true), capture, sink)?;
    let traces = observed.captured.map_or_else(Vec::new, |captured| {
        let both = [("device", captured.device), ("logical", captured.logical)];
        let start = captured.from_start.map(|trace| (FROM_START, trace));
        both.into_iter().chain(start).map(|(name, trace)| (name.to_owned(), trace)).collect()
    });
    let accounts = Some(observed.accounts);
    let run = Run { at: String::new(), result: observed.result, accounts, server: None };
    Ok(Made { run, traces, transactions: Vec::new() })
}
