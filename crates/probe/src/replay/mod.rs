//! Replays a trace on a real device and certifies how well it kept the trace's times.
//!
//! Requests are issued on an **absolute schedule**: request `i` is due at `start + due[i]`,
//! whatever happened before, so that delays do not add up. Service time is completion - issue,
//! response time completion - due. A flush is issued at its due time like anything else, as an
//! fdatasync; it covers the writes that have completed by then, and does not wait for others.
//!
//! A trace that was captured from a closed loop can instead be replayed with its dependencies
//! ([`Mode::Dependent`]): due is then when the application would have asked.
//!
//! Requests that are not aligned to the logical block are widened to it. Trims are skipped and
//! counted unless [`ReplayOptions::punch_holes`] is set. Every run carries a [`Certificate`]; one
//! whose 99th percentile of lateness exceeds 10 us and a tenth of the median service time is
//! invalid.

mod certificate;
mod dependent;
mod schedule;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

pub use certificate::Certificate;
use dependent::{Chains, Dependent};
use events::{Ending, Event, Sink, Step, Warning};
use io::engine::{Device, EngineOptions};
use io::target::{self, Need, TargetInfo, TargetSpec};
use schedule::{Live, Replaying, Requests};
use serde::{Deserialize, Serialize};
use trace::Trace;
use units::Bytes;

use crate::cell::SPIN_NS;
use crate::clock::{self, CpuTime};
use crate::disturbance::{Disturbance, Watch};
use crate::driver::{self, DriveOptions, Driven};
use crate::error::Error;
use crate::precondition::{self, Fill};
use crate::realtime::{self, Urgency};

const STAGE: &str = "replay";
/// Pace of telling what completed, ns.
const TELL_NS: u64 = 1_000_000_000;
/// Memory for requests under way, at most.
const MOST_BUFFER_BYTES: u64 = 256 << 20;

/// When requests are issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// At the captured times.
    #[default]
    Timed,
    /// Each actor of a captured trace waits for its previous request, then for the captured CPU
    /// time between the two: the load reacts to the device as the application did.
    Dependent,
    /// In the order of the trace, as soon as a slot is free, `max_outstanding` at once.
    AsFastAsPossible,
    /// In the order of the trace, this many at once.
    ClosedLoop {
        /// Outstanding requests.
        depth: u32,
    },
}

/// How a trace is replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayOptions {
    /// A path that does not exist yet, a file that wearmark created, a directory (a private file is
    /// made in it), or a file or block device named twice.
    pub target: TargetSpec,
    /// When requests are issued.
    pub mode: Mode,
    /// Whether to ask for real-time priority and resident memory.
    pub realtime: bool,
    /// Requests outstanding at most; further ones wait, which shows as lateness.
    pub max_outstanding: u32,
    /// Whether the target's range is written before the replay; without it, reads may hit blocks
    /// that were never written.
    pub precondition: bool,
    /// Whether a file that was created stays, for a second replay on the same blocks.
    pub keep_file: bool,
    /// Whether a trim punches a hole in the file; otherwise it is skipped.
    pub punch_holes: bool,
    /// Seed of the data written.
    pub seed: u64,
}

impl ReplayOptions {
    /// At the captured times, with real-time priority, on a preconditioned target.
    pub fn new(target: TargetSpec) -> Self {
        Self {
            target,
            mode: Mode::Timed,
            realtime: true,
            max_outstanding: 256,
            precondition: true,
            keep_file: false,
            punch_holes: false,
            seed: 1,
        }
    }
}

/// What a replay measured, per request in the order of the trace.
///
/// A cancelled replay holds the requests up to the last one issued. Requests that were skipped
/// (trims) have zero times.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// Completion - issue.
    pub service_ns: Vec<u64>,
    /// Completion - due.
    pub response_ns: Vec<u64>,
    /// Issue - due.
    pub lateness_ns: Vec<u64>,
    /// How well the times were kept.
    pub certificate: Certificate,
    /// What makes the replay suspect.
    pub warnings: Vec<Warning>,
}

/// Replays a trace on a target.
pub fn replay(trace: &Trace, options: &ReplayOptions, sink: &dyn Sink) -> Result<Replayed, Error> {
    check(trace)?;
    let range_bytes = trace.extent().0.next_multiple_of(1 << 20).max(1 << 20);
    let need = Need { range_bytes, keep_file: options.keep_file, must_write: writes(trace) };
    let prepared = target::prepare(&options.target, &need)?;
    if prepared.info.range_bytes < trace.extent().0 {
        let size = Bytes(prepared.info.range_bytes);
        let path = prepared.info.path;
        return Err(io::Error::TooSmall { path, size, needed: trace.extent() }.into());
    }
    let warnings = prepared.warnings.clone();
    replay_on(&prepared.device, &prepared.info, trace, options, warnings, sink)
}

fn writes(trace: &Trace) -> bool {
    trace.op.iter().any(|op| matches!(op, trace::Op::Write | trace::Op::Trim))
}

fn check(trace: &Trace) -> Result<(), Error> {
    if trace.is_empty() {
        return Err(Error::BadTrace { why: "it holds no request".to_owned() });
    }
    trace.validate().map_err(|error| Error::BadTrace { why: error.to_string() })
}

/// Replays a trace on any device; what `replay` does once the target is open.
pub fn replay_on<D: Device>(
    device: &D,
    info: &TargetInfo,
    trace: &Trace,
    options: &ReplayOptions,
    warnings: Vec<Warning>,
    sink: &dyn Sink,
) -> Result<Replayed, Error> {
    check(trace)?;
    let started_ns = clock::now_ns();
    let fills = options.precondition && info.writable;
    let (span_s, fill_bytes) = (trace.span().as_secs_f64(), info.range_bytes);
    let step = |name: &str, expected_s, writes_bytes| Step {
        name: name.to_owned(),
        expected_s,
        writes_bytes,
    };
    let mut steps = Vec::new();
    let fill_s = if fills { fill_bytes as f64 / 5e8 } else { 0.0 };
    if fills {
        steps.push(step("precondition", fill_s, fill_bytes));
    }
    let written = trace.op.iter().zip(&trace.len).filter(|(op, _)| **op == trace::Op::Write);
    steps.push(step("replay", span_s, written.map(|(_, len)| u64::from(*len)).sum()));
    sink.emit(Event::Plan { stage: STAGE.to_owned(), steps });
    let total_s = (fill_s + span_s).max(1e-9);
    let mut progress = Progress { sink, total_s, shown: 0.0, told_ns: 0 };
    let outcome = go(device, info, (trace, options), fill_s, &mut progress);
    let ending = match &outcome {
        Err(_) => Ending::Failed,
        Ok(_) if sink.cancelled() => Ending::Interrupted,
        Ok(_) => Ending::Complete,
    };
    let elapsed_s = (clock::now_ns() - started_ns) as f64 / 1e9;
    let outcome = outcome.map(|mut replayed| {
        replayed.warnings.splice(0..0, warnings);
        for warning in &replayed.warnings {
            sink.emit(Event::Warning(warning.clone()));
        }
        replayed
    });
    sink.emit(Event::Done { stage: STAGE.to_owned(), elapsed_s, ending });
    outcome
}

struct Progress<'a> {
    sink: &'a dyn Sink,
    total_s: f64,
    shown: f64,
    /// End of the last interval whose completions were told, ns after the first issue.
    told_ns: u64,
}

impl Progress<'_> {
    fn show(&mut self, done_s: f64, doing: &str) -> bool {
        self.shown = self.shown.max((done_s / self.total_s).min(1.0));
        self.sink.emit(Event::Progress {
            stage: STAGE.to_owned(),
            done: self.shown,
            doing: doing.to_owned(),
            eta_s: Some((self.total_s - done_s).max(0.0)),
        });
        !self.sink.cancelled()
    }

    /// Tells what completed since the last time.
    fn completions(&mut self, live: &Live, now_ns: u64) {
        let span_ns = now_ns - std::mem::replace(&mut self.told_ns, now_ns);
        self.sink.emit(Event::Completions {
            stage: STAGE.to_owned(),
            device: None,
            at_s: now_ns as f64 / 1e9,
            span_s: span_ns as f64 / 1e9,
            in_flight: live.in_flight(),
            classes: live.take(),
        });
    }
}

fn go<D: Device>(
    device: &D,
    info: &TargetInfo,
    (trace, options): (&Trace, &ReplayOptions),
    fill_s: f64,
    progress: &mut Progress<'_>,
) -> Result<Replayed, Error> {
    if fill_s > 0.0 {
        let range_bytes = info.range_bytes;
        let fill = Fill { range_bytes, passes: 1, random: false, seed: options.seed };
        let mut last_ns = 0;
        precondition::fill(device, fill, &mut |share| {
            let now_ns = clock::now_ns();
            if now_ns < last_ns + 50_000_000 {
                return true;
            }
            last_ns = now_ns;
            progress.show(fill_s * share, "writing the target before the replay")
        })?;
    }
    let requests = Requests::prepare(trace, info.logical_block_bytes, options.punch_holes);
    let chains = if options.mode == Mode::Dependent { Chains::of(&requests, trace) } else { None };
    if options.mode == Mode::Dependent && chains.is_none() {
        let why = "it does not say which actor issued which request, and how long each took";
        return Err(Error::BadTrace { why: why.to_owned() });
    }
    let stop = AtomicBool::new(progress.sink.cancelled());
    let watch = Watch::start();
    let (sender, receiver) = mpsc::channel();
    let live = Arc::new(Live::default());
    let ran = thread::scope(|scope| {
        let (requests, chains, stop) = (&requests, chains.as_ref(), &stop);
        let shown = Arc::clone(&live);
        scope.spawn(move || {
            let _ = sender.send(issue(device, (requests, chains), (options, shown), stop));
        });
        let begun_ns = clock::now_ns();
        loop {
            match receiver.recv_timeout(Duration::from_millis(100)) {
                Ok(ran) => {
                    progress.completions(&live, clock::now_ns() - begun_ns);
                    return ran;
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => unreachable!("the thread sends first"),
            }
            let elapsed_ns = clock::now_ns() - begun_ns;
            if elapsed_ns >= progress.told_ns + TELL_NS {
                progress.completions(&live, elapsed_ns);
            }
            let done_s = fill_s + elapsed_ns as f64 / 1e9;
            if !progress.show(done_s, "issuing requests") {
                stop.store(true, Ordering::Relaxed);
            }
        }
    })?;
    let disturbance = watch.finish(ran.run_queue_delay_ns, 1);
    Ok(ran.into_replayed(&requests, options, &disturbance))
}

/// What the issuing thread hands back.
struct Ran {
    work: Replaying,
    driven: Driven,
    cpu: CpuTime,
    run_queue_delay_ns: Option<u64>,
    priority: String,
    memory_locked: bool,
    slots: u32,
}

fn issue<D: Device>(
    device: &D,
    (requests, chains): (&Requests, Option<&Chains>),
    (options, live): (&ReplayOptions, Arc<Live>),
    stop: &AtomicBool,
) -> Result<Ran, Error> {
    let wanted = match options.mode {
        Mode::ClosedLoop { depth } => depth,
        Mode::Timed | Mode::Dependent | Mode::AsFastAsPossible => options.max_outstanding,
    };
    let affordable = MOST_BUFFER_BYTES / u64::from(requests.largest_bytes.max(4096));
    let slots = wanted.clamp(1, 4096).min(affordable.max(1) as u32);
    let engine = EngineOptions { slots, slot_bytes: requests.largest_bytes, dsync: false };
    let mut engine = device.engine(engine)?;
    let mut work = Replaying::new(requests, options.mode);
    work.show_in(live);
    let urgency = Urgency::raise(options.realtime, true);
    realtime::short_timers();
    let (cpu, delay) = (CpuTime::of_thread(), clock::run_queue_delay_ns());
    work.start();
    let drive = DriveOptions { slots, spin_ns: SPIN_NS, seed: options.seed };
    let driven = match chains {
        Some(chains) => {
            let mut work = Dependent::new(&mut work, requests, chains);
            driver::drive(device, &mut engine, &mut work, drive, stop)?
        }
        None => driver::drive(device, &mut engine, &mut work.on(requests), drive, stop)?,
    };
    Ok(Ran {
        cpu: CpuTime::of_thread().since(cpu),
        run_queue_delay_ns: clock::run_queue_delay_ns()
            .zip(delay)
            .map(|(after, before)| after - before),
        priority: urgency.priority.clone(),
        memory_locked: urgency.memory_locked,
        work,
        driven,
        slots,
    })
}

impl Ran {
    fn into_replayed(
        self,
        requests: &Requests,
        options: &ReplayOptions,
        disturbance: &Disturbance,
    ) -> Replayed {
        let certificate = certificate::of(&self, requests, options);
        let mut warnings = disturbance.warnings(STAGE, "replay");
        warnings.extend(certificate.warnings(options));
        let count = self.work.count();
        let Replaying { mut service_ns, mut response_ns, mut lateness_ns, .. } = self.work;
        for column in [&mut service_ns, &mut response_ns, &mut lateness_ns] {
            column.truncate(count);
        }
        Replayed { service_ns, response_ns, lateness_ns, certificate, warnings }
    }
}

/// Where a replay's file may be put, for messages and callers that only have a path.
impl From<PathBuf> for ReplayOptions {
    fn from(path: PathBuf) -> Self {
        Self::new(TargetSpec::new(path))
    }
}
