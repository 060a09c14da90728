//! One run, with everything that is watched beside it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use capture::server::TransactionIo;
use capture::sqlite::{IoMode, Session, SessionOptions, VFS_NAME};
use dbms::Instance;
use events::Sink;
use oltp::Options;
use trace::{Op, Trace};
use units::Bytes;
use virtual_time::World;

use super::{Run, server};
use crate::Error;
use crate::observe::{Capture, observe};

/// What the database of a run is, beyond its options.
pub enum Target<'a> {
    /// SQLite, whose files are opened in this way.
    Embedded(IoMode),
    /// SQLite in virtual time: its files are read, and lie on the device of a world.
    Simulated(Arc<World>),
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
        Target::Simulated(world) => simulated(options, world, sink),
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
    let mut transactions = Vec::new();
    let traces = observed.captured.map_or_else(Vec::new, |captured| {
        let seen = captured.from_start.as_ref().unwrap_or(&captured.device);
        transactions = of_embedded(seen, &captured.transactions);
        let both = [("device", captured.device), ("logical", captured.logical)];
        let start = captured.from_start.map(|trace| (FROM_START, trace));
        both.into_iter().chain(start).map(|(name, trace)| (name.to_owned(), trace)).collect()
    });
    let accounts = Some(observed.accounts);
    let run = Run { at: String::new(), result: observed.result, accounts, server: None };
    Ok(Made { run, traces, transactions })
}

/// A run whose time is its own processor time and that of a modelled device. The database is left
/// as it is.
fn simulated(mut options: Options, world: &Arc<World>, sink: &dyn Sink) -> Result<Made, Error> {
    let database = options.workload;
    let Some(sqlite) = options.database.sqlite_mut() else { return Err(Error::NotEmbedded) };
    let path = sqlite.database_of(database);
    refuse_unfinished(&path)?;
    let needed = Bytes(path.metadata().map_or(0, |file| file.len()));
    if let Some(capacity) = world.capacity().filter(|capacity| needed > *capacity) {
        return Err(Error::LargerThanDevice { path, needed, capacity });
    }
    capture::sqlite::register()?;
    sqlite.vfs = Some(VFS_NAME.to_owned());
    let directory = sqlite.directory.clone();
    let world_of_files = Some(Arc::clone(world));
    let session = Session::start(SessionOptions {
        capture: false,
        world: world_of_files,
        ..SessionOptions::new(directory)
    })?;
    let result = oltp::run_in(&options, world, sink)?;
    drop(session);
    let run = Run { at: String::new(), result, accounts: None, server: None };
    Ok(Made { run, traces: Vec::new(), transactions: Vec::new() })
}

/// A log or journal with something in it belongs to its database: without it the database is not
/// what was committed, and with it SQLite would want to write.
fn refuse_unfinished(database: &Path) -> Result<(), Error> {
    for suffix in ["-wal", "-journal"] {
        let mut path = database.as_os_str().to_owned();
        path.push(suffix);
        let path = PathBuf::from(path);
        if path.metadata().is_ok_and(|file| file.len() > 0) {
            return Err(Error::UnfinishedLog { path });
        }
    }
    Ok(())
}

/// What each transaction of an embedded database did on the device.
fn of_embedded(device: &Trace, kinds: &[(u32, u8)]) -> Vec<TransactionIo> {
    let Some((service, chains)) = device.captured() else { return Vec::new() };
    let mut found: BTreeMap<u32, TransactionIo> = BTreeMap::new();
    for (at, number) in chains.transaction.iter().enumerate() {
        let Ok(known) = kinds.binary_search_by_key(number, |(number, _)| *number) else { continue };
        let start_ns = device.due[at];
        let own = found.entry(*number).or_insert_with(|| TransactionIo {
            kind: u16::from(kinds[known].1),
            number: *number,
            task: u32::from(chains.actor[at]),
            start_ns,
            ..TransactionIo::default()
        });
        let bytes = u64::from(device.len[at]);
        match device.op[at] {
            Op::Read => (own.reads, own.read_bytes) = (own.reads + 1, own.read_bytes + bytes),
            Op::Write => {
                (own.writes, own.written_bytes) = (own.writes + 1, own.written_bytes + bytes);
            }
            Op::Flush => own.flushes += 1,
            Op::Trim => {}
        }
        own.service_ns += service[at];
        own.duration_ns = (start_ns + service[at]).saturating_sub(own.start_ns);
        own.gap_ns = own.duration_ns.saturating_sub(own.service_ns);
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_with_something_in_it_is_refused_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("a.db");
        std::fs::write(dir.path().join("a.db-wal"), "").unwrap();
        assert!(refuse_unfinished(&database).is_ok());
        for log in ["a.db-wal", "a.db-journal"] {
            let log = dir.path().join(log);
            std::fs::write(&log, "frames").unwrap();
            let error = refuse_unfinished(&database).unwrap_err();
            assert!(matches!(&error, Error::UnfinishedLog { path } if *path == log), "{error}");
            std::fs::remove_file(&log).unwrap();
        }
    }
}
