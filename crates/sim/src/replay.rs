//! Open loop: every request when it is due.

use std::ops::{ControlFlow, Range};

use model::Device;
use model::observe::{Deaf, Path, Probe};
use trace::{Op, Trace};
use units::Bytes;

use crate::Error;
use crate::breakdown::Paths;
use crate::counters::counters;
use crate::outcome::{Classes, Interval, Outcome};
use crate::wear::Marks;

/// Requests per call into the model: completions stay in the first-level cache, and the one
/// virtual call per batch costs nothing.
const BATCH: usize = 1024;

/// Refuses a trace that is malformed or does not fit on `device`.
pub fn check(device: &dyn Device, trace: &Trace) -> Result<(), Error> {
    trace.validate()?;
    check_extent(device.capacity(), trace)
}

/// Refuses a well-formed trace that does not fit into `capacity`, where there is one.
pub fn check_extent(capacity: Option<Bytes>, trace: &Trace) -> Result<(), Error> {
    let Some(capacity) = capacity else { return Ok(()) };
    if trace.extent() <= capacity {
        return Ok(());
    }
    let ends = trace.offset.iter().zip(&trace.len).map(|(offset, len)| offset + u64::from(*len));
    match ends.enumerate().find(|(_, end)| *end > capacity.0) {
        Some((index, end)) => Err(Error::BeyondCapacity { index, end, capacity_bytes: capacity.0 }),
        None => Ok(()),
    }
}

/// Submits every request of `trace` to `device` when it is due.
///
/// `device` should be fresh: its clock must not be past the first due time. The trace is expected
/// to be well formed and to fit: [`check`].
pub fn replay(device: &mut dyn Device, trace: &Trace) -> Outcome {
    replay_with(device, trace, Watched::default()).expect("nobody stops it")
}

/// How a replay is watched while it runs.
#[derive(Default)]
pub struct Watched<'a> {
    /// Told what the device does.
    pub probe: Option<&'a mut dyn Probe>,
    /// Whether [`Outcome::breakdown`] is wanted.
    pub breakdown: bool,
    /// Requests due before this only warm the device up: no class, interval or breakdown counts
    /// them.
    pub warm_up_ns: u64,
    /// Told every this many requests how far the replay is; stops it by breaking.
    pub progress: Option<&'a mut dyn FnMut(Position) -> ControlFlow<()>>,
}

/// How far a replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Requests submitted.
    pub requests: u64,
    /// Virtual time, ns: when the last of them was due.
    pub at_ns: u64,
}

/// [`replay`], watched; `None` where it was stopped. What is watched changes no figure.
pub fn replay_with(
    device: &mut dyn Device,
    trace: &Trace,
    mut watched: Watched<'_>,
) -> Option<Outcome> {
    let mut completions = [0u64; BATCH];
    let mut deaf = Deaf;
    let probe = match watched.probe.take() {
        Some(probe) => Some(probe),
        None => watched.breakdown.then_some(&mut deaf as &mut dyn Probe),
    };
    let mut observer = probe.map(|probe| Observer {
        probe,
        paths: vec![Path::default(); BATCH],
        all: Paths::default(),
    });
    let warm_up = trace.due.partition_point(|due| *due < watched.warm_up_ns);
    let warm_up_ns = if warm_up == 0 { 0 } else { watched.warm_up_ns };
    let mut classes = Classes::new(trace);
    let mut series = Series::new(warm_up_ns, trace.span().0);
    let warm_up_bytes = written_bytes(trace, 0..warm_up);
    let mut marks = (warm_up == 0).then(|| Marks::new(device, 0, trace.span().0, 0));
    let mut last_completion = 0;
    let mut start = 0;
    while start < trace.count() {
        let until = if start < warm_up { warm_up } else { trace.count() };
        let end = (start + BATCH).min(until);
        let completions = &mut completions[..end - start];
        match &mut observer {
            Some(observer) => observer.submit_due(device, trace, start..end, completions),
            None => device.submit_due(trace, start..end, completions),
        }
        last_completion = completions.iter().fold(last_completion, |last, at| last.max(*at));
        let (due, len) = (&trace.due[start..end], &trace.len[start..end]);
        if let Some(marks) = &mut marks {
            for (completion, due) in completions.iter_mut().zip(due) {
                *completion -= due;
            }
            let responses = &*completions;
            classes.record(&trace.op[start..end], &trace.stream[start..end], len, responses);
            series.record(due, len, responses);
            let written = || warm_up_bytes + classes.bytes_of(Op::Write);
            marks.look(device, trace.due[end - 1], written);
        } else if end == warm_up {
            marks = Some(Marks::new(device, warm_up_ns, trace.span().0, warm_up_bytes));
            if let Some(observer) = &mut observer {
                observer.all = Paths::default();
            }
        }
        start = end;
        if let Some(progress) = &mut watched.progress {
            let position = Position { requests: end as u64, at_ns: trace.due[end - 1] };
            if progress(position).is_break() {
                return None;
            }
        }
    }
    let written = warm_up_bytes + classes.bytes_of(Op::Write);
    Some(Outcome {
        requests: (trace.count() - warm_up) as u64,
        warm_up_requests: warm_up as u64,
        warm_up_ns,
        span_ns: last_completion,
        due_span_ns: trace.span().0,
        classes: classes.finish(trace),
        counters: counters(device),
        wear: marks.map(|marks| marks.finish(device, trace.span().0, written)).unwrap_or_default(),
        intervals: series.finish(),
        breakdown: observer.filter(|_| watched.breakdown).map(|observer| observer.all.finish()),
    })
}

/// Bytes that the requests of `range` write.
fn written_bytes(trace: &Trace, range: Range<usize>) -> u64 {
    let requests = trace.op[range.clone()].iter().zip(&trace.len[range]);
    requests.map(|(op, len)| if *op == Op::Write { u64::from(*len) } else { 0 }).sum()
}

/// Collects paths and passes on what the device does.
struct Observer<'a> {
    probe: &'a mut dyn Probe,
    paths: Vec<Path>,
    all: Paths,
}

impl Observer<'_> {
    fn submit_due(
        &mut self,
        device: &mut dyn Device,
        trace: &Trace,
        range: Range<usize>,
        completions: &mut [u64],
    ) {
        let paths = &mut self.paths[..range.len()];
        device.submit_due_observed(trace, range.clone(), completions, paths, self.probe);
        for ((index, path), completion) in range.zip(paths).zip(completions) {
            let request = trace.request(index);
            self.all.record(path, *completion - request.due.0);
            self.probe.completed(index, &request, *completion, path);
        }
    }
}

/// The response time (completion - due, ns) of every request of `trace`, in trace order.
///
/// This is the simulated side of an error ratio; see [`replay`] for what is expected of `device`
/// and `trace`.
pub fn responses(device: &mut dyn Device, trace: &Trace) -> Vec<u64> {
    let mut times = vec![0u64; trace.count()];
    for (index, chunk) in times.chunks_mut(BATCH).enumerate() {
        let start = index * BATCH;
        device.submit_due(trace, start..start + chunk.len(), chunk);
        for (time, due) in chunk.iter_mut().zip(&trace.due[start..]) {
            *time -= due;
        }
    }
    times
}

/// Collects the intervals of a run whose due times never fall.
#[derive(Debug)]
struct Series {
    width_ns: u64,
    /// First due time beyond the interval being collected.
    end_ns: u64,
    current: Interval,
    response_sum: u128,
    done: Vec<Interval>,
}

impl Series {
    fn new(start_ns: u64, end_ns: u64) -> Self {
        let span_ns = end_ns.saturating_sub(start_ns);
        let width_ns = (span_ns / Outcome::INTERVALS as u64 + 1).max(1_000);
        Self {
            width_ns,
            end_ns: start_ns.saturating_add(width_ns),
            current: Interval {
                at_s: start_ns as f64 / 1e9,
                length_s: width_ns as f64 / 1e9,
                ..Interval::default()
            },
            response_sum: 0,
            done: Vec::new(),
        }
    }

    /// Takes in a batch: cut where intervals end, then summed in one go each.
    fn record(&mut self, due: &[u64], len: &[u32], responses: &[u64]) {
        let mut from = 0;
        while from < due.len() {
            while due[from] >= self.end_ns {
                self.close();
            }
            let to = from + due[from..].partition_point(|due| *due < self.end_ns);
            let responses = &responses[from..to];
            self.current.requests += responses.len() as u64;
            self.current.bytes += len[from..to].iter().map(|len| u64::from(*len)).sum::<u64>();
            let longest = responses.iter().fold(0, |longest, response| longest.max(*response));
            self.current.max_response_ns = self.current.max_response_ns.max(longest);
            self.response_sum += responses.iter().map(|time| u128::from(*time)).sum::<u128>();
            from = to;
        }
    }

    #[cold]
    fn close(&mut self) {
        let next = Interval {
            at_s: self.end_ns as f64 / 1e9,
            length_s: self.current.length_s,
            ..Interval::default()
        };
        let mut finished = std::mem::replace(&mut self.current, next);
        if finished.requests > 0 {
            finished.mean_response_ns = self.response_sum as f64 / finished.requests as f64;
        }
        self.response_sum = 0;
        self.end_ns = self.end_ns.saturating_add(self.width_ns);
        self.done.push(finished);
    }

    fn finish(mut self) -> Vec<Interval> {
        if self.current.requests > 0 {
            self.close();
        }
        self.done
    }
}
