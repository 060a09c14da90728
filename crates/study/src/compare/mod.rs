//! One trace on several devices, side by side on all cores.
//!
//! Devices are independent, so each is simulated by one thread from start to end; which thread, and
//! how many there are, changes no byte of the result (test). Everything is checked before anything
//! runs: profiles, and whether the trace fits each device. When the user stops it, devices that are
//! done are kept and the others are not there.

mod life;
mod page;
#[cfg(test)]
mod tests;
mod text;
mod timeline;

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use events::{Ending, Event, Sink, Warning};
use serde::Serialize;
use sim::Watched;
use sim::timeline::Timeline;
use trace::Parts;
use units::Bytes;

use crate::Error;
use crate::assumed::Count;
use crate::host_stack::Devices;
use crate::profiles::fits_memory;
pub use life::{FlashWear, Life, Within};
pub use page::page;
pub use text::text;
pub use timeline::write_timeline;

/// What is compared.
#[derive(Clone, Copy)]
pub struct Comparison<'a> {
    /// The trace, in memory or in parts. A closed loop and a timeline take it into memory.
    pub trace: &'a dyn Parts<formats::Error>,
    /// The devices.
    pub targets: &'a [Devices],
    /// Decides every random draw of the models.
    pub seed: u64,
    /// Whether each actor of a captured trace waits for the device.
    pub closed: bool,
    /// Requests of an open loop that are due before this only warm the devices up.
    pub warm_up_ns: u64,
    /// Devices simulated at a time, at least one.
    pub threads: usize,
    /// Keep a timeline of this window, and no more than this many events of it.
    pub timeline: Option<(&'a Range<u64>, usize)>,
}

/// One device's result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulated {
    /// The profile's name.
    pub profile: String,
    /// Values of the profile that nobody published or measured.
    pub assumed_values: u32,
    /// All values of the profile.
    pub values: u32,
    /// Every request when it is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<sim::Outcome>,
    /// How it wears.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub life: Option<Life>,
    /// Every actor waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_loop: Option<sim::ClosedOutcome>,
}

impl Simulated {
    /// Times by operation and stream.
    pub fn classes(&self) -> &[sim::ClassOutcome] {
        match (&self.open_loop, &self.closed_loop) {
            (Some(outcome), _) => &outcome.classes,
            (None, Some(outcome)) => &outcome.classes,
            (None, None) => &[],
        }
    }
}

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// One per device that was done, in the order of the profiles.
    pub devices: Vec<Simulated>,
    /// Their timelines, where they were asked for.
    pub timelines: Vec<Timeline>,
    /// Whether the user stopped it before all were done.
    pub interrupted: bool,
}

/// Simulates the trace on every device.
///
/// # Errors
/// Where the trace is malformed, does not fit a device or, closed, was not observed: before
/// anything runs.
pub fn compare(comparison: &Comparison<'_>, sink: &dyn Sink) -> Result<Compared, Error> {
    let wants_whole = comparison.closed || comparison.timeline.is_some();
    if comparison.trace.whole().is_none() && wants_whole {
        let whole = formats::collect(comparison.trace, u64::MAX)?;
        return compare(&Comparison { trace: &whole, ..*comparison }, sink);
    }
    check(comparison)?;
    let count = comparison.targets.len();
    let work = Work {
        comparison,
        sink,
        next: AtomicUsize::new(0),
        at_ns: (0..count).map(|_| AtomicU64::new(0)).collect(),
        done: (0..count).map(|_| Mutex::new(None)).collect(),
    };
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..comparison.threads.clamp(1, count.max(1)) {
            let (tell, work) = (tell.clone(), &work);
            scope.spawn(move || work.run(&tell));
        }
        drop(tell);
        work.watch(&told);
    });
    let results: Vec<_> = work
        .done
        .into_iter()
        .map(|done| done.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect();
    let mut found = Compared::default();
    for result in results {
        let Some(result) = result else {
            found.interrupted = true;
            continue;
        };
        let (device, timeline) = result?;
        found.timelines.extend(timeline);
        found.devices.push(device);
    }
    for device in &found.devices {
        if let Some(outcome) = device.open_loop.as_ref().filter(|found| found.is_overloaded()) {
            sink.emit(Event::Warning(overloaded(&device.profile, outcome)));
        }
    }
    for device in &found.devices {
        let life = device.life.iter().flat_map(|life| life.warnings(&device.profile));
        life.for_each(|warning| sink.emit(Event::Warning(warning)));
    }
    for (device, timeline) in found.devices.iter().zip(&found.timelines) {
        if timeline.left_out() > 0 {
            sink.emit(Event::Warning(left_out(&device.profile, timeline.left_out())));
        }
    }
    Ok(found)
}

fn overloaded(profile: &str, outcome: &sim::Outcome) -> Warning {
    let message = format!(
        "{profile}: {:.0} requests/s offered, {:.0} completed; its queue grows to the end of the \
         trace, and its response times tell the length of that queue",
        outcome.offered_per_s(),
        outcome.completed_per_s()
    );
    Warning::new("sim", "overloaded", message).with_hint(
        "--closed lets the actors of a captured trace wait for the device; 'wearmark trace scale' \
         slows a trace down",
    )
}

fn left_out(profile: &str, count: u64) -> Warning {
    let message = format!("{count} events of {profile} did not fit into the timeline");
    Warning::new("sim", "timeline_cut", message)
        .with_hint("choose a shorter --timeline-window, or one that starts later")
}

fn check(comparison: &Comparison<'_>) -> Result<(), Error> {
    let whole = comparison.trace.whole();
    if let Some(trace) = whole {
        trace.validate().map_err(sim::Error::Malformed)?;
    }
    for target in comparison.targets {
        target.profile().check()?;
    }
    // The device itself is built once, by the thread that simulates it.
    let (mut first, mut found) = (0, Ok(()));
    comparison.trace.each(&mut |part| {
        found = comparison.targets.iter().try_for_each(|target| {
            sim::check_extent(target.capacity(), first, part)
                .map_err(|source| Error::OnDevice { profile: target.name(), source })
        });
        first += part.count();
        if found.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    found?;
    // As many as are simulated at a time, the largest first.
    let mut largest: Vec<&Devices> = comparison.targets.iter().collect();
    largest.sort_by_key(|target| std::cmp::Reverse(target.memory()));
    let at_a_time = largest.iter().take(comparison.threads.max(1));
    let needed = at_a_time.map(|target| target.memory().0).fold(0, u64::saturating_add);
    if let Some(first) = largest.first() {
        fits_memory(first.profile(), Bytes(needed))?;
    }
    let span_ns = comparison.trace.outline().span_ns;
    if comparison.warm_up_ns > 0 && comparison.warm_up_ns >= span_ns {
        return Err(Error::WarmUpTooLong { warm_up_ns: comparison.warm_up_ns, span_ns });
    }
    if comparison.closed && whole.is_none_or(|trace| trace.captured().is_none()) {
        return Err(sim::Error::NotObserved.into());
    }
    Ok(())
}

type Done = Result<(Simulated, Option<Timeline>), Error>;

/// The devices that are to be simulated, and how far each is.
struct Work<'a> {
    comparison: &'a Comparison<'a>,
    sink: &'a dyn Sink,
    next: AtomicUsize,
    /// Virtual time of each.
    at_ns: Vec<AtomicU64>,
    done: Vec<Mutex<Option<Done>>>,
}

impl Work<'_> {
    /// One thread: the next device until there is none.
    fn run(&self, tell: &mpsc::Sender<()>) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(target) = self.comparison.targets.get(index) else { return };
            if self.sink.cancelled() {
                return;
            }
            let Some(result) = self.simulate(target, &self.at_ns[index]).transpose() else {
                continue;
            };
            *self.done[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            // There is no listener where the watcher has gone: then nothing is reported.
            let _ = tell.send(());
        }
    }

    /// `None` where the user stopped it.
    fn simulate(
        &self,
        target: &Devices,
        at_ns: &AtomicU64,
    ) -> Result<Option<(Simulated, Option<Timeline>)>, Error> {
        let comparison = self.comparison;
        let mut device = target.device(comparison.seed);
        let count = Count::of(&target.profile().to_toml());
        let mut found = Simulated {
            profile: target.name(),
            assumed_values: count.assumed,
            values: count.all,
            open_loop: None,
            life: None,
            closed_loop: None,
        };
        if comparison.closed {
            let trace = comparison.trace.whole().ok_or(sim::Error::NotObserved)?;
            let outcome = sim::closed_loop(device.as_mut(), trace)?;
            found.closed_loop = Some(outcome);
            return Ok(Some((found, None)));
        }
        let mut progress = |position: sim::Position| {
            at_ns.store(position.at_ns, Ordering::Relaxed);
            if self.sink.cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut timeline =
            comparison.timeline.map(|(window, most)| Timeline::new(window.clone(), most));
        let probe = timeline.as_mut().map(|timeline| timeline as &mut dyn model::observe::Probe);
        let watched = Watched {
            probe,
            breakdown: true,
            warm_up_ns: comparison.warm_up_ns,
            progress: Some(&mut progress),
        };
        let parts = comparison.trace;
        let outcome = sim::replay_parts(device.as_mut(), parts, watched)?;
        Ok(outcome.map(|outcome| {
            // What several devices share is not the wear of one.
            found.life = target.alone_profile().and_then(|profile| Life::of(&outcome, profile));
            found.open_loop = Some(outcome);
            (found, timeline)
        }))
    }

    /// Tells the user how far it is, once it takes longer than [`PATIENCE`].
    fn watch(&self, told: &mpsc::Receiver<()>) {
        let start = Instant::now();
        let span_ns = self.comparison.trace.outline().span_ns.max(1) as f64;
        let count = self.comparison.targets.len();
        let mut finished = 0;
        loop {
            match told.recv_timeout(Duration::from_millis(200)) {
                Ok(()) => finished += 1,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if start.elapsed() < PATIENCE {
                continue;
            }
            let simulated: f64 =
                self.at_ns.iter().map(|at| at.load(Ordering::Relaxed) as f64).sum();
            let elapsed_s = start.elapsed().as_secs_f64();
            let done = (simulated / span_ns / count as f64).min(1.0);
            self.sink.emit(Event::Progress {
                stage: "sim".to_owned(),
                done,
                doing: format!(
                    "{finished} of {count} devices done, {:.0} simulated seconds per second",
                    simulated / 1e9 / elapsed_s
                ),
                eta_s: (done > 0.0).then(|| elapsed_s * (1.0 - done) / done),
            });
        }
        if start.elapsed() >= PATIENCE {
            let ending = if finished == count { Ending::Complete } else { Ending::Interrupted };
            let elapsed_s = start.elapsed().as_secs_f64();
            self.sink.emit(Event::Done { stage: "sim".to_owned(), elapsed_s, ending });
        }
    }
}

/// Nobody wants to be told of what is over before it can be read.
const PATIENCE: Duration = Duration::from_secs(2);
