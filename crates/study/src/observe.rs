//! A load on SQLite, observed: its I/O on every layer that can be seen, and processor time.

use std::path::PathBuf;

use capture::block::{BlockCapture, Physical};
use capture::cpu::{CpuSampler, CpuSeries};
use capture::sqlite::{Account, Captured, IoMode, Session, SessionOptions, VFS_NAME};
use events::{Sink, Warning};
use oltp::{OltpResult, Options, Phase};
use serde::{Deserialize, Serialize};
use trace::Trace;
use units::Nanos;

use crate::Error;

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

/// What is captured while the users run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capture {
    /// Nothing.
    Off,
    /// What the database asks for, and what its VFS makes of it.
    Database,
    /// That, and what the block layer does, where it can be seen.
    BlockLayer,
    /// That, and what a capture of a server takes itself: the load goes on for some seconds after
    /// the run, as predictions need it.
    WithItsCost,
}

/// Runs the load on a database that exists, captures its I/O from the end of the warm-up on and
/// where asked for from its start as well, and accounts for it.
pub fn observe(
    mut options: Options,
    (io, keep_start): (IoMode, bool),
    capture: Capture,
    sink: &dyn Sink,
) -> Result<Observed, Error> {
    let Some(sqlite) = options.database.sqlite_mut() else {
        return Err(Error::NotEmbedded);
    };
    let directory: PathBuf = sqlite.directory.clone();
    capture::sqlite::register()?;
    sqlite.vfs = Some(VFS_NAME.to_owned());
    let keep_start = keep_start && capture >= Capture::Database;
    let session_options =
        SessionOptions { io, capture: false, keep_start, ..SessionOptions::new(&directory) };
    let mut layers = Layers {
        session: Some(Session::start(session_options)?),
        capture,
        directory,
        block: None,
        physical_unavailable: None,
        sampler: None,
        captured: None,
        physical: None,
        cpu: None,
    };
    let result = oltp::run_observed(&options, sink, &mut |phase| match phase {
        Phase::Measurement => layers.begin(),
        Phase::End => layers.end(),
        Phase::WarmUp => layers.warm_up(keep_start),
    })?;
    layers.end();
    layers.report(sink);
    Ok(layers.account(result))
}

/// The captures of one run, from the end of the warm-up to the end of the measurement.
struct Layers {
    session: Option<Session>,
    capture: Capture,
    directory: PathBuf,
    block: Option<BlockCapture>,
    physical_unavailable: Option<String>,
    sampler: Option<CpuSampler>,
    captured: Option<(Captured, Option<String>)>,
    physical: Option<Physical>,
    cpu: Option<CpuSeries>,
}

impl Layers {
    fn warm_up(&mut self, keep_start: bool) {
        if let Some(session) = self.session.as_mut().filter(|_| keep_start) {
            session.set_capture(true);
            session.rebase();
        }
    }

    fn begin(&mut self) {
        if let Some(session) = &mut self.session {
            session.set_capture(self.capture >= Capture::Database);
            session.rebase();
        }
        if self.capture >= Capture::BlockLayer {
            match capture::block::start(&self.directory) {
                Ok(started) => self.block = Some(started),
                Err(unavailable) => self.physical_unavailable = Some(unavailable.reason),
            }
        }
        self.sampler = Some(CpuSampler::start());
    }

    /// Ends what still runs. The connections are still open when the measurement ends, so the
    /// database's files can still be found on the disk; a closed WAL is gone.
    fn end(&mut self) {
        if let Some(sampler) = self.sampler.take() {
            self.cpu = Some(sampler.finish());
        }
        let Some(session) = self.session.take() else { return };
        let fallback = session.fallback();
        let captured = session.finish();
        self.physical = self.block.take().map(|block| block.finish(&captured.files));
        self.captured = Some((captured, fallback));
    }

    fn report(&self, sink: &dyn Sink) {
        let warn = |warning| sink.emit(events::Event::Warning(warning));
        if let Some((captured, fallback)) = &self.captured {
            if let Some(reason) = fallback {
                let message = format!("direct I/O was refused: {reason}");
                let hint = "run on ext4, xfs or btrfs to see what reaches the device";
                warn(Warning::new("oltp", "page_cache", message).with_hint(hint));
            }
            if captured.losses > 0 {
                let message = format!("{} I/Os of the database were not kept", captured.losses);
                let hint = "shorten the measurement";
                warn(Warning::new("oltp", "capture_loss", message).with_hint(hint));
            }
        }
        if let Some(physical) = self.physical.as_ref().filter(|physical| physical.losses > 0) {
            let message = format!("{} block-layer events were lost", physical.losses);
            let hint = "the physical figures are too low by that; run on an idle machine";
            warn(Warning::new("oltp", "block_capture_loss", message).with_hint(hint));
        }
    }

    fn account(self, result: OltpResult) -> Observed {
        let captured = self.captured.map(|(captured, _)| captured);
        let mut accounts = Accounts {
            layers: Vec::new(),
            physical_unavailable: self.physical_unavailable,
            cpu: self.cpu.unwrap_or_else(|| CpuSampler::start().finish()),
            device_share: 0.0,
        };
        if let Some(captured) = captured.as_ref().filter(|_| self.capture >= Capture::Database) {
            accounts.device_share = waiting_share(&captured.device, result.measured_s);
            accounts.layers.push(capture::sqlite::account(&captured.logical, WINDOW));
            accounts.layers.push(capture::sqlite::account(&captured.device, WINDOW));
        }
        if let Some(physical) = &self.physical {
            let account = capture::sqlite::account(&physical.trace, WINDOW);
            accounts.layers.push(Account { layer: "physical".into(), ..account });
        }
        Observed {
            result,
            captured: captured.filter(|_| self.capture >= Capture::Database),
            accounts,
        }
    }
}

/// Share of the measured time that actor 0, the writer, waited for the device.
fn waiting_share(device: &Trace, measured_s: f64) -> f64 {
    let Some((service, chains)) = device.captured() else { return 0.0 };
    let of_writer = chains.actor.iter().zip(service).filter(|(actor, _)| **actor == 0);
    let waited: u64 = of_writer.map(|(_, service)| service).sum();
    waited as f64 / 1e9 / measured_s.max(f64::MIN_POSITIVE)
}
