//! How wrong a profile is against the response times that a trace was recorded with: E and demerit,
//! in all and by class, without a device at hand.
//!
//! The figures are those of [`crate::validation`]; what is missing is a second recording, so there
//! is no noise floor and no verdict. The recorded load is given to the model as it was given to the
//! device: by the actors of a capture, one request outstanding where the format says so (DiskSim's
//! drives), at the recorded times otherwise. An open load says less of a slower device than of a
//! faster one: it shows its own queue then, and a warning says so.

mod page;
mod text;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use events::{Event, Sink, Warning};
use profile::Profile;
use serde::Serialize;
use stats::error_ratio::{
    Block, Classified, Comparison, Requests, Resampling, compare_requests, compare_with_interval,
};
use trace::{Chains, Op, Trace};

use crate::Error;
use crate::validation::{BLOCK_NS, Curve, classes, curve};
pub use page::page;
pub use text::text;

/// How the recorded requests come to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Each when it was issued, whatever is outstanding.
    Open,
    /// Each its recorded gap after the completion of the one before.
    OneOutstanding,
    /// Each actor waits for its own requests, then for as long as it was recorded to.
    Actors,
}

/// A profile against a recording.
#[derive(Clone, Debug, Serialize)]
pub struct Recorded {
    /// The profile's name.
    pub profile: String,
    /// Requests compared.
    pub requests: u64,
    /// Requests that were simulated but have no recorded time.
    pub untimed: u64,
    /// How they came to the model.
    pub load: Load,
    /// Simulation against recording.
    pub simulated: Classified,
    /// The same split by operation only, with the curves for the figures.
    pub operations: Vec<OperationError>,
}

/// One operation.
#[derive(Clone, Debug, Serialize)]
pub struct OperationError {
    /// The operation.
    pub op: Op,
    /// Simulation against recording.
    pub simulated: Comparison,
    /// The distributions: recorded, simulated.
    pub curves: Vec<Curve>,
}

/// Simulates the recorded load on a profile and compares the times; `None` where the user stopped
/// it.
///
/// # Errors
/// Where the trace holds no times, or does not fit the device.
pub fn compare(
    profile: &Profile,
    trace: &Trace,
    seed: u64,
    sink: &dyn Sink,
) -> Result<Option<Recorded>, Error> {
    let Some(service) = trace.service.as_deref().filter(|times| times.iter().any(|ns| *ns > 0))
    else {
        return Err(Error::NothingRecorded);
    };
    let mut device = model::device(profile, seed);
    sim::check(device.as_ref(), trace)
        .map_err(|source| Error::OnDevice { profile: profile.name().to_owned(), source })?;
    let load = load(trace);
    let simulated = match load {
        Load::Actors => sim::closed_loop_times(device.as_mut(), trace)?,
        Load::OneOutstanding => sim::closed_loop_times(device.as_mut(), &by_one_actor(trace))?,
        Load::Open => {
            let Some(times) = watched(device.as_mut(), trace, sink) else { return Ok(None) };
            warn_of_a_queue(profile, trace, &times, sink);
            times
        }
    };
    // Zero is what formats give where a recording does not say.
    let timed: Vec<usize> = (0..trace.count()).filter(|index| service[*index] > 0).collect();
    let (keys, class) = classes(trace);
    let class: Vec<u16> = timed.iter().map(|index| class[*index]).collect();
    let simulated = pick(&simulated, &timed);
    let real = pick(service, &timed);
    let due = pick(&trace.due, &timed);
    let block = Block::Time { due_ns: &due, block_ns: BLOCK_NS };
    let resampling = Resampling { resamples: 200, seed, block };
    let requests = Requests { keys: &keys, class: &class, simulated: &simulated, real: &real };
    let op_of = |op: Op| {
        let of: Vec<usize> =
            (0..timed.len()).filter(|index| trace.op[timed[*index]] == op).collect();
        let due = pick(&due, &of);
        let block = Block::Time { due_ns: &due, block_ns: BLOCK_NS };
        let (simulated, real) = (pick(&simulated, &of), pick(&real, &of));
        (!of.is_empty()).then(|| OperationError {
            op,
            simulated: compare_with_interval(
                &simulated,
                &real,
                &Resampling { block, ..resampling },
            ),
            curves: vec![curve("recorded", &real), curve("simulated", &simulated)],
        })
    };
    Ok(Some(Recorded {
        profile: profile.name().to_owned(),
        requests: timed.len() as u64,
        untimed: (trace.count() - timed.len()) as u64,
        load,
        simulated: compare_requests(&requests, Some(&resampling)),
        operations: Op::ALL.into_iter().filter_map(op_of).collect(),
    }))
}

fn load(trace: &Trace) -> Load {
    let is_closed = || {
        let fact = trace.origin.facts.get(formats::LOOP_FACT);
        fact.is_some_and(|fact| fact == formats::ONE_OUTSTANDING)
    };
    if trace.captured().is_some() {
        Load::Actors
    } else if is_closed() {
        Load::OneOutstanding
    } else {
        Load::Open
    }
}

/// The same requests, all issued by one actor: gaps are kept, waits are the model's.
fn by_one_actor(trace: &Trace) -> Trace {
    let count = trace.count();
    let chains = Chains { actor: vec![0; count], transaction: vec![0; count] };
    Trace { chains: Some(chains), ..trace.clone() }
}

fn pick(column: &[u64], indices: &[usize]) -> Vec<u64> {
    indices.iter().map(|index| column[*index]).collect()
}

/// Response times at the recorded times; `None` where the user stopped it.
fn watched(device: &mut dyn model::Device, trace: &Trace, sink: &dyn Sink) -> Option<Vec<u64>> {
    let start = Instant::now();
    let mut told = start;
    sim::responses_watched(device, trace, &mut |position| {
        if sink.cancelled() {
            return ControlFlow::Break(());
        }
        if told.elapsed() > Duration::from_secs(2) {
            told = Instant::now();
            let done = position.requests as f64 / trace.count() as f64;
            sink.emit(Event::Progress {
                stage: "validate".to_owned(),
                done,
                doing: format!("{} requests simulated", position.requests),
                eta_s: Some(start.elapsed().as_secs_f64() * (1.0 - done) / done),
            });
        }
        ControlFlow::Continue(())
    })
}

/// Says that the simulated times are those of a queue that only grows.
fn warn_of_a_queue(profile: &Profile, trace: &Trace, times: &[u64], sink: &dyn Sink) {
    let ends = trace.due.iter().zip(times).map(|(due, time)| due + time);
    let outcome = sim::Outcome {
        requests: times.len() as u64,
        span_ns: ends.max().unwrap_or(0),
        due_span_ns: trace.span().0,
        ..sim::Outcome::default()
    };
    if !outcome.is_overloaded() {
        return;
    }
    let message = format!(
        "{}: {:.0} requests/s were recorded, {:.0} completed; it is slower than the device of the \
         recording, and E tells the length of its queue",
        profile.name(),
        outcome.offered_per_s(),
        outcome.completed_per_s()
    );
    let warning = Warning::new("validate", "overloaded", message)
        .with_hint("take a profile of the recorded device");
    sink.emit(Event::Warning(warning));
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use trace::{Request, Stream};
    use units::{Bytes, Nanos};

    use super::*;
    use crate::profiles::read_profile;

    /// A sink that keeps the codes of warnings.
    #[derive(Default)]
    struct Codes(Mutex<Vec<String>>);

    impl Sink for Codes {
        fn emit(&self, event: Event) {
            if let Event::Warning(warning) = event {
                self.0.lock().unwrap().push(warning.code);
            }
        }
    }

    /// Reads of 4 KiB and writes of 8 KiB in turns, this far apart.
    fn requests(count: u64, gap_ns: u64) -> Trace {
        let mut trace = Trace { streams: vec![Stream::default()], ..Trace::default() };
        for index in 0..count {
            let (op, len) = if index % 2 == 0 { (Op::Read, 4096) } else { (Op::Write, 8192) };
            let (due, offset) = (Nanos(index * gap_ns), Bytes(index * 1_048_576 % (1 << 30)));
            trace.push(Request { due, offset, len, op, stream: 0 });
        }
        trace
    }

    fn compared(trace: &Trace, profile: &str) -> (Recorded, Vec<String>) {
        let sink = Codes::default();
        let profile = read_profile(profile).unwrap();
        let found = compare(&profile, trace, 1, &sink).unwrap().expect("nobody stops it");
        (found, sink.0.into_inner().unwrap())
    }

    /// What a model makes of a trace, recorded: the model is then right, and one that is a quarter
    /// slower at writes is wrong by that, there only.
    #[test]
    fn a_model_is_right_about_its_own_recording() {
        let mut trace = requests(4000, 1_000_000);
        let profile = read_profile("micron-7400").unwrap();
        let own = sim::responses(model::device(&profile, 1).as_mut(), &trace);
        trace.service = Some(own.clone());
        let (found, warned) = compared(&trace, "micron-7400");
        assert_eq!((found.load, found.requests, found.untimed), (Load::Open, 4000, 0));
        assert_eq!(
            (found.simulated.pooled.error_ratio, found.simulated.pooled.demerit),
            (0.0, 0.0)
        );
        assert!(warned.is_empty(), "{warned:?}");
        let slower = |index: usize| if index % 2 == 1 { own[index] * 5 / 4 } else { own[index] };
        trace.service = Some((0..4000).map(slower).collect());
        let (found, _) = compared(&trace, "micron-7400");
        let error = |at: usize| found.operations[at].simulated.error_ratio;
        assert_eq!(error(0), 0.0, "reads are as recorded");
        assert!((error(1) - 0.2).abs() < 1e-3, "{}", error(1));
        let sizes: Vec<u32> = found.simulated.classes.iter().map(|c| c.0.size_bytes).collect();
        assert_eq!(sizes, [4096, 8192]);
    }

    /// One outstanding: the gaps are kept, so a device that is ten times slower than the recorded
    /// one has no queue.
    #[test]
    fn one_outstanding_request_waits_for_the_model() {
        let mut trace = requests(400, 20_000);
        trace.service = Some(vec![10_000; 400]);
        let (open, warned) = compared(&trace, "hitachi-15k450");
        assert_eq!((open.load, warned), (Load::Open, vec!["overloaded".to_owned()]));
        let facts = &mut trace.origin.facts;
        facts.insert(formats::LOOP_FACT.to_owned(), formats::ONE_OUTSTANDING.to_owned());
        let (closed, warned) = compared(&trace, "hitachi-15k450");
        assert_eq!((closed.load, warned.len()), (Load::OneOutstanding, 0));
        // A seek and a turn of 4 ms at most, where open arrivals also wait for each other.
        let (queued, alone) = (open.simulated.pooled, closed.simulated.pooled);
        assert!(alone.mean_simulated_ns < 8e6, "{alone:?}");
        assert!(queued.mean_simulated_ns > 5.0 * alone.mean_simulated_ns, "{queued:?}");
    }

    #[test]
    fn requests_without_a_time_are_simulated_but_not_compared() {
        let mut trace = requests(100, 1_000_000);
        let mut times = vec![50_000; 100];
        times[..40].fill(0);
        trace.service = Some(times);
        let (found, _) = compared(&trace, "micron-7400");
        assert_eq!((found.requests, found.untimed), (60, 40));
        assert_eq!(found.simulated.pooled.mean_real_ns, 50_000.0);
        trace.service = Some(vec![0; 100]);
        let profile = read_profile("micron-7400").unwrap();
        let error = compare(&profile, &trace, 1, &events::Quiet).expect_err("no time at all");
        assert!(matches!(error, Error::NothingRecorded), "{error}");
    }
}
