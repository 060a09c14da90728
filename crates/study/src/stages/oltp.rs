//! Loads the order-entry database, runs the users on it and captures their I/O.
//!
//! A run that was killed while the users ran has changed the database: the stage starts over with a
//! fresh load, so that a resumed study ends as an uninterrupted one does.

use std::path::Path;

use oltp::{Database, Dataset, Load, LoadOptions, Options, Scale, SqliteSettings};

use crate::Error;
use crate::artifacts::{ACCOUNTS, DEVICE_TRACE, LOAD, LOGICAL_TRACE, REFERENCES_OF_LOAD};
use crate::context::Context;
use crate::drift::References;
use crate::file::StudyFile;
use crate::observe::{Capture, observe};

/// Folder of the database while the stage runs.
const DATABASE: &str = "database";
/// Reference measurements before the users run, and after.
const REFERENCES: usize = 2;
/// Seconds that the stage takes on a common machine.
pub(crate) fn expected_s(study: &StudyFile) -> f64 {
    let oltp = &study.oltp;
    4.0 * f64::from(oltp.warehouses) + (oltp.warmup + oltp.duration).as_secs_f64() + 5.0
}

/// Bytes that the stage writes: the load, and about 16 MB/s while the users run.
pub(crate) fn writes_bytes(study: &StudyFile) -> u64 {
    let oltp = &study.oltp;
    let running = (oltp.warmup + oltp.duration).as_secs_f64() * 16e6;
    u64::from(oltp.warehouses) * 100_000_000 + running as u64
}

/// Runs the stage.
pub(crate) fn run(context: &Context<'_>) -> Result<(), Error> {
    let study = context.study;
    context.run.remove(DATABASE)?;
    let directory = context.run.join(DATABASE);
    std::fs::create_dir(&directory).map_err(Error::io(&directory, "create"))?;
    let sqlite = settings(study, &directory);
    let seed = study.study.seed;
    let database = Database::Sqlite(sqlite);
    let dataset = Dataset::OrderEntry(Scale::new(study.oltp.warehouses));
    let load = LoadOptions { database: database.clone(), dataset, seed };
    match oltp::load(&load, context.log) {
        Err(_) if context.cancelled() => return context.run.remove(DATABASE),
        loaded => loaded?,
    };
    let options = Options {
        database,
        workload: dataset.workload(),
        dataset: Some(dataset),
        users: study.oltp.users,
        load: Load::Closed { think: study.oltp.think_scale },
        mix: study.oltp.mix.parse()?,
        warmup: study.oltp.warmup,
        measure: study.oltp.duration,
        seed,
        delivery_log: None,
    };
    let mut disk = References::new(context.run, seed);
    let mut references = disk.measure(REFERENCES, context.log)?;
    let io = study.oltp.io.unwrap_or_default();
    let observed = observe(options, (io, false), Capture::BlockLayer, context.log)?;
    references.extend(disk.measure(REFERENCES, context.log)?);
    context.run.remove(DATABASE)?;
    if context.cancelled() {
        return Ok(());
    }
    if let Some(captured) = &observed.captured {
        formats::own::write(&captured.logical, &context.run.join(LOGICAL_TRACE))?;
        formats::own::write(&captured.device, &context.run.join(DEVICE_TRACE))?;
    }
    context.run.save(&ACCOUNTS, &observed.accounts)?;
    context.run.save(&REFERENCES_OF_LOAD, &references)?;
    context.finish(&LOAD, &observed.result)
}

fn settings(study: &StudyFile, directory: &Path) -> SqliteSettings {
    let (oltp, usual) = (&study.oltp, SqliteSettings::default());
    SqliteSettings {
        directory: directory.to_path_buf(),
        journal_mode: oltp.journal.unwrap_or(usual.journal_mode),
        synchronous: oltp.synchronous.unwrap_or(usual.synchronous),
        page_size: oltp.page.unwrap_or(usual.page_size),
        buffer: oltp.buffer.unwrap_or(usual.buffer),
        ..usual
    }
}
