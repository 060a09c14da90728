//! Loads the order-entry database, runs the users on it and captures their I/O.
//!
//! A run that was killed while the users ran has changed the database: the stage starts over with a
//! fresh load, so that a resumed study ends as an uninterrupted one does.

use std::path::{Path, PathBuf};

use capture::block::BlockCapture;
use capture::cpu::{CpuSampler, CpuSeries};
use capture::sqlite::{Account, Captured, IoMode, Session, SessionOptions, VFS_NAME};
use events::{Sink, Warning};
use oltp::{Load, LoadOptions, OltpResult, Options, Phase, Scale, SqliteSettings};
use serde::{Deserialize, Serialize};
use trace::Trace;
use units::Nanos;

use crate::Error;
use crate::file::StudyFile;
use crate::pipeline::Context;

/// The captured device trace.
pub const DEVICE_TRACE: &str = "device.parquet";
/// The captured logical trace.
pub const LOGICAL_TRACE: &str = "logical.parquet";
/// I/O by layer and file class, and CPU.
pub const ACCOUNTS: &str = "accounts.json";
/// The artifact.
pub const RESULT: &str = "oltp.json";
/// Folder of the database while the stage runs.
const DATABASE: &str = "database";
/// Interval of the rates in the accounts.
const WINDOW: Nanos = Nanos(500_000_000);

/// Where the bytes and the processor time went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accounts {
    /// Logical, device and, where it could be captured, physical I/O.
    pub layers: Vec<Account>,
    /// Why physical I/O could not be captured.
    pub physical_unavailable: Option<String>,
    /// Processor time of the machine and of this process.
    pub cpu: CpuSeries,
    /// Share of the measured time that the writer waited for the device.
    pub device_share: f64,
}

/// What an observed run of the load leaves.
pub struct Observed {
    /// The result.
    pub result: OltpResult,
    /// Logical and device trace; `None` where capture was off.
    pub captured: Option<Captured>,
    /// Accounts; empty layers where capture was off.
    pub accounts: Accounts,
}

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
    let scale = Scale::new(study.oltp.warehouses);
    let seed = study.study.seed;
    oltp::load(&LoadOptions { sqlite: sqlite.clone(), scale, seed }, context.log)?;
    if context.cancelled() {
        return context.run.remove(DATABASE);
    }
    let options = Options {
        sqlite,
        scale: Some(scale),
        users: study.oltp.users,
        load: Load::Closed { think: f64::from(study.oltp.think_scale) },
        mix: study.oltp.mix.parse()?,
        warmup: study.oltp.warmup,
        measure: study.oltp.duration,
        seed,
        delivery_log: None,
    };
    let observed = observe(options, study.oltp.io, true, context.log)?;
    context.run.remove(DATABASE)?;
    if context.cancelled() {
        return Ok(());
    }
    for warning in &observed.result.warnings {
        context.warn(warning.clone());
    }
    if let Some(captured) = &observed.captured {
        trace::formats::own::write(&captured.logical, &context.run.join(LOGICAL_TRACE))?;
        trace::formats::own::write(&captured.device, &context.run.join(DEVICE_TRACE))?;
    }
    context.run.write_json(ACCOUNTS, &observed.accounts)?;
    context.run.write_json(RESULT, &observed.result)
}

fn settings(study: &StudyFile, directory: &Path) -> SqliteSettings {
    let oltp = &study.oltp;
    SqliteSettings {
        directory: directory.to_path_buf(),
        journal_mode: oltp.journal,
        synchronous: oltp.synchronous,
        page_size: oltp.page,
        buffer: oltp.buffer,
        ..SqliteSettings::default()
    }
}

/// Runs the load on a database that exists, captures its I/O from the end of the warm-up on, and
/// accounts for it.
pub fn observe(
    mut options: Options,
    io: IoMode,
    capture: bool,
    sink: &dyn Sink,
) -> Result<Observed, Error> {
    let directory: PathBuf = options.sqlite.directory.clone();
    capture::sqlite::register()?;
    options.sqlite.vfs = Some(VFS_NAME.to_owned());
    let session_options = SessionOptions { io, capture: false, ..SessionOptions::new(&directory) };
    let mut session = Session::start(session_options)?;
    let mut block = None;
    let mut physical_unavailable = None;
    let mut sampler = None;
    let mut series = None;
    let result = oltp::run_observed(&options, sink, &mut |phase| match phase {
        Phase::Measurement => {
            if capture {
                match capture::block::start(&directory) {
                    Ok(started) => block = Some(started),
                    Err(unavailable) => physical_unavailable = Some(unavailable.reason),
                }
                session.set_capture(true);
            }
            session.rebase();
            sampler = Some(CpuSampler::start());
        }
        Phase::End => {
            session.set_capture(false);
            series = sampler.take().map(CpuSampler::finish);
        }
        Phase::WarmUp => {}
    })?;
    if let Some(reason) = session.fallback() {
        sink.emit(events::Event::Warning(
            Warning::new("oltp", "page_cache", format!("direct I/O was refused: {reason}"))
                .with_hint("run on ext4, xfs or btrfs to see what reaches the device"),
        ));
    }
    let captured = session.finish();
    let cpu = series.unwrap_or_else(|| CpuSampler::start().finish());
    let mut accounts = Accounts {
        layers: Vec::new(),
        physical_unavailable,
        cpu,
        device_share: waiting_share(&captured.device, result.measured_s),
    };
    if !capture {
        return Ok(Observed { result, captured: None, accounts });
    }
    accounts.layers.push(capture::sqlite::account(&captured.logical, WINDOW));
    accounts.layers.push(capture::sqlite::account(&captured.device, WINDOW));
    if let Some(block) = block {
        accounts.layers.push(physical(block, &captured, sink)?);
    }
    Ok(Observed { result, captured: Some(captured), accounts })
}

fn physical(block: BlockCapture, captured: &Captured, sink: &dyn Sink) -> Result<Account, Error> {
    let finished = block.finish(&captured.files);
    if finished.losses > 0 {
        let message = format!("{} block events were lost", finished.losses);
        sink.emit(events::Event::Warning(Warning::new("oltp", "capture_loss", message)));
    }
    Ok(capture::sqlite::account(&finished.trace, WINDOW))
}

/// Share of the measured time that actor 0, the writer, waited for the device.
fn waiting_share(device: &Trace, measured_s: f64) -> f64 {
    let Some(observed) = &device.observed else { return 0.0 };
    let of_writer = observed.actor.iter().zip(&observed.service).filter(|(actor, _)| **actor == 0);
    let waited: u64 = of_writer.map(|(_, service)| service).sum();
    waited as f64 / 1e9 / measured_s.max(f64::MIN_POSITIVE)
}
