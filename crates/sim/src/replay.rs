//! Open loop: every request when it is due.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::{ControlFlow, Range};

use model::Device;
use model::observe::{Cause, Deaf, Path, Probe};
use trace::{Op, Outline, Parts, Trace};
use units::{Bytes, Nanos};

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
    check_extent(device.capacity(), 0, trace)
}

/// Refuses a well-formed trace that does not fit into `capacity`, where there is one; its first
/// request is the one of that number.
pub fn check_extent(capacity: Option<Bytes>, first: usize, trace: &Trace) -> Result<(), Error> {
    let Some(capacity) = capacity else { return Ok(()) };
    if trace.extent() <= capacity {
        return Ok(());
    }
    let ends = trace.offset.iter().zip(&trace.len).map(|(offset, len)| offset + u64::from(*len));
    match ends.enumerate().find(|(_, end)| *end > capacity.0) {
        Some((index, end)) => {
            let (index, capacity_bytes) = (first + index, capacity.0);
            Err(Error::BeyondCapacity { index, end, capacity_bytes })
        }
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
    watched: Watched<'_>,
) -> Option<Outcome> {
    let Ok(found) = replay_parts::<Infallible>(device, trace, watched);
    found
}

/// [`replay_with`] of a trace in parts; the same figures.
///
/// # Errors
/// Where a part cannot be read.
pub fn replay_parts<E>(
    device: &mut dyn Device,
    parts: &dyn Parts<E>,
    mut watched: Watched<'_>,
) -> Result<Option<Outcome>, E> {
    let in_parts = parts.whole().is_none();
    let outline = parts.outline();
    let mut deaf = Deaf;
    let probe = match watched.probe.take() {
        Some(probe) => Some(probe),
        None => watched.breakdown.then_some(&mut deaf as &mut dyn Probe),
    };
    let observer = probe.map(|probe| Observer {
        probe,
        paths: vec![Path::default(); BATCH],
        all: Paths::default(),
    });
    let mut run = Run::new(&outline, parts.whole(), observer, watched.warm_up_ns);
    run.progress = watched.progress.take();
    let mut waiting = (in_parts && device.queued().is_some()).then(Waiting::default);
    let mut stopped = false;
    parts.each(&mut |part| {
        let taken = match &mut waiting {
            Some(waiting) => run.arrive(device, waiting, part),
            None => run.submit(device, part),
        };
        stopped = taken.is_break();
        taken
    })?;
    if let Some(waiting) = waiting.as_mut().filter(|_| !stopped) {
        stopped = run.complete(device, waiting, Nanos(u64::MAX)).is_break();
    }
    Ok((!stopped).then(|| run.finish(device, &outline, watched.breakdown)))
}

/// A replay while it runs.
struct Run<'a, 'p> {
    observer: Option<Observer<'a>>,
    progress: Option<&'p mut dyn FnMut(Position) -> ControlFlow<()>>,
    completions: [u64; BATCH],
    span_ns: u64,
    warm_up_ns: u64,
    /// Number of the first request behind the warm-up, once it is known.
    warm_up_end: Option<u64>,
    warm_up_bytes: u64,
    /// Requests that are done, and those of them in a batch that is not full.
    done: u64,
    filled: usize,
    last_due: u64,
    last_completion: u64,
    classes: Classes,
    /// Since the warm-up is over.
    series: Option<Series>,
    marks: Option<Marks>,
}

impl<'a> Run<'a, '_> {
    fn new(
        outline: &Outline,
        whole: Option<&Trace>,
        observer: Option<Observer<'a>>,
        warm_up_ns: u64,
    ) -> Self {
        let most = whole.and_then(|trace| trace.stream.iter().max());
        let named = most.map_or(0, |most| usize::from(*most) + 1);
        Self {
            observer,
            progress: None,
            completions: [0; BATCH],
            span_ns: outline.span_ns,
            warm_up_ns,
            warm_up_end: None,
            warm_up_bytes: 0,
            done: 0,
            filled: 0,
            last_due: 0,
            last_completion: 0,
            classes: Classes::new(named.max(outline.streams.len())),
            series: None,
            marks: None,
        }
    }

    /// Looks whether the warm-up ends at request `number`, due at `due`.
    #[inline]
    fn look_for_end(&mut self, device: &dyn Device, number: u64, due: u64) {
        if self.warm_up_end.is_none() && due >= self.warm_up_ns {
            self.warm_up_end = Some(number);
            if self.done == number {
                self.begin(device);
            }
        }
    }

    /// The warm-up is over.
    fn begin(&mut self, device: &dyn Device) {
        if self.done == 0 {
            self.warm_up_ns = 0;
        }
        let (start_ns, end_ns) = (self.warm_up_ns, self.span_ns);
        self.filled = 0;
        self.series = Some(Series::new(start_ns, end_ns));
        self.marks = Some(Marks::new(device, start_ns, end_ns, self.warm_up_bytes));
        if let Some(observer) = &mut self.observer {
            observer.all = Paths::default();
        }
    }

    /// Requests until the batch is full or the warm-up over.
    fn room(&self) -> usize {
        let left =
            self.warm_up_end.filter(|end| *end > self.done).map_or(u64::MAX, |end| end - self.done);
        (BATCH - self.filled).min(usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// Submits a part to a device that answers at once.
    fn submit(&mut self, device: &mut dyn Device, part: &Trace) -> ControlFlow<()> {
        let first = self.done;
        let warm = part.due.partition_point(|due| *due < self.warm_up_ns);
        if let Some(due) = part.due.get(warm) {
            self.look_for_end(device, first + warm as u64, *due);
        }
        let mut start = 0;
        while start < part.count() {
            let end = (start + self.room()).min(part.count());
            let mut completions = self.completions;
            let completions = &mut completions[..end - start];
            match &mut self.observer {
                Some(observer) => observer.submit_due(device, part, start..end, completions),
                None => device.submit_due(part, start..end, completions),
            }
            self.took(device, part, start..end, completions)?;
            start = end;
        }
        ControlFlow::Continue(())
    }

    /// Counts requests that are done, in the order of the trace.
    fn took(
        &mut self,
        device: &dyn Device,
        part: &Trace,
        range: Range<usize>,
        completions: &mut [u64],
    ) -> ControlFlow<()> {
        let last = completions.iter().fold(self.last_completion, |last, at| last.max(*at));
        self.last_completion = last;
        let (due, len) = (&part.due[range.clone()], &part.len[range.clone()]);
        self.done += range.len() as u64;
        self.filled += range.len();
        self.last_due = due.last().copied().unwrap_or(self.last_due);
        if let Some(series) = &mut self.series {
            for (completion, due) in completions.iter_mut().zip(due) {
                *completion -= due;
            }
            let responses = &*completions;
            self.classes.record(&part.op[range.clone()], &part.stream[range], len, responses);
            series.record(due, len, responses);
        } else {
            self.warm_up_bytes += written_bytes(part, range);
            if self.warm_up_end == Some(self.done) {
                self.begin(device);
            }
        }
        if self.filled == BATCH {
            self.look(device);
        }
        let position = Position { requests: self.done, at_ns: self.last_due };
        self.progress.as_mut().map_or(ControlFlow::Continue(()), |progress| progress(position))
    }

    /// A batch is done.
    fn look(&mut self, device: &dyn Device) {
        self.filled = 0;
        let (classes, before) = (&self.classes, self.warm_up_bytes);
        if let Some(marks) = &mut self.marks {
            marks.look(device, self.last_due, || before + classes.bytes_of(Op::Write));
        }
    }

    /// Lets the requests of a part arrive at a device that looks at its queue.
    fn arrive(
        &mut self,
        device: &mut dyn Device,
        waiting: &mut Waiting,
        part: &Trace,
    ) -> ControlFlow<()> {
        for request in part.requests() {
            let number = self.done + waiting.ends.len() as u64;
            self.look_for_end(device, number, request.due.0);
            self.complete(device, waiting, request.due)?;
            let queue = device.queued().expect("it is queued");
            queue.arrive(request.due, number, &request);
            waiting.arrived.push(request);
            waiting.ends.push_back(None);
            waiting.paths.push_back(Path::EMPTY);
        }
        waiting.drop_done();
        ControlFlow::Continue(())
    }

    /// Takes what completes until then. A batch is counted when the last of it is done: what the
    /// device did by then is what its counters say.
    fn complete(
        &mut self,
        device: &mut dyn Device,
        waiting: &mut Waiting,
        until: Nanos,
    ) -> ControlFlow<()> {
        loop {
            // At the end the last batch is not full.
            let batch =
                self.room().min(if until.0 == u64::MAX { waiting.ends.len() } else { BATCH });
            while waiting.done_in_front < batch.min(waiting.ends.len())
                && waiting.ends[waiting.done_in_front].is_some()
            {
                waiting.done_in_front += 1;
            }
            if batch > 0 && waiting.done_in_front == batch {
                self.take(device, waiting, batch)?;
                continue;
            }
            let queue = device.queued().expect("it is queued");
            let next = if let Some(observer) = &mut self.observer {
                queue.next_observed(until, observer.probe)
            } else {
                let next = queue.next_completion(until);
                next.map(|(at, ticket)| (at, ticket, Path::EMPTY))
            };
            let Some((at, ticket, path)) = next else { return ControlFlow::Continue(()) };
            let place = (ticket - self.done) as usize;
            waiting.ends[place] = Some(at.0);
            waiting.paths[place] = path;
        }
    }

    /// Counts the batch in front.
    fn take(
        &mut self,
        device: &dyn Device,
        waiting: &mut Waiting,
        batch: usize,
    ) -> ControlFlow<()> {
        let first = waiting.taken;
        let mut completions = [0; BATCH];
        for (completion, end) in completions.iter_mut().zip(waiting.ends.drain(..batch)) {
            *completion = end.expect("all of them are done");
        }
        for (place, mut path) in waiting.paths.drain(..batch).enumerate() {
            let Some(observer) = &mut self.observer else { continue };
            let (request, completion) =
                (waiting.arrived.request(first + place), completions[place]);
            path.spend(Cause::Unknown, completion - request.due.0 - path.total());
            observer.all.record(&path, completion - request.due.0);
        }
        waiting.taken += batch;
        waiting.done_in_front = 0;
        let range = first..first + batch;
        self.took(device, &waiting.arrived, range, &mut completions[..batch])
    }

    fn finish(mut self, device: &dyn Device, outline: &Outline, breakdown: bool) -> Outcome {
        if self.filled > 0 {
            self.look(device);
        }
        if self.series.is_none() {
            self.begin(device);
        }
        let warm_up = self.warm_up_end.unwrap_or(self.done);
        let written = self.warm_up_bytes + self.classes.bytes_of(Op::Write);
        let marks = self.marks.expect("the warm-up is over");
        Outcome {
            requests: self.done - warm_up,
            warm_up_requests: warm_up,
            warm_up_ns: self.warm_up_ns,
            span_ns: self.last_completion,
            due_span_ns: outline.span_ns,
            classes: self.classes.finish(&outline.streams),
            counters: counters(device),
            wear: marks.finish(device, outline.span_ns, written),
            intervals: self.series.expect("the warm-up is over").finish(),
            breakdown: self.observer.filter(|_| breakdown).map(|observer| observer.all.finish()),
        }
    }
}

/// Requests that have arrived and are not counted yet.
#[derive(Default)]
struct Waiting {
    /// Columns only; those in front of `taken` are counted.
    arrived: Trace,
    taken: usize,
    /// Of those behind it: when each is done, where that is known.
    ends: VecDeque<Option<u64>>,
    paths: VecDeque<Path>,
    /// How many of them are known to be done without a gap.
    done_in_front: usize,
}

impl Waiting {
    /// Forgets what is counted.
    fn drop_done(&mut self) {
        let mut left = Trace::default();
        left.extend_rows(&self.arrived, self.taken..self.arrived.count());
        self.arrived = left;
        self.taken = 0;
    }
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
    responses_watched(device, trace, &mut |_| ControlFlow::Continue(())).expect("nobody stops it")
}

/// [`responses`]; `progress` is told how far it is, and `None` is the result where it breaks.
pub fn responses_watched(
    device: &mut dyn Device,
    trace: &Trace,
    progress: &mut dyn FnMut(Position) -> ControlFlow<()>,
) -> Option<Vec<u64>> {
    let mut times = vec![0u64; trace.count()];
    for (index, chunk) in times.chunks_mut(BATCH).enumerate() {
        let start = index * BATCH;
        let end = start + chunk.len();
        device.submit_due(trace, start..end, chunk);
        for (time, due) in chunk.iter_mut().zip(&trace.due[start..]) {
            *time -= due;
        }
        if progress(Position { requests: end as u64, at_ns: trace.due[end - 1] }).is_break() {
            return None;
        }
    }
    Some(times)
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
