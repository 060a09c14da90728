//! A device that writes down what it gets, and a slow simulator to hold a scheduler against.

use std::sync::{Arc, Mutex};

use host::scheduler::{Scheduled, Settings};
use model::{Device, Queued};
use proptest::prelude::*;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

/// (time, request) as the device got them.
pub type Log = Arc<Mutex<Vec<(u64, Request)>>>;

/// Serves one request at a time, in order, in 50 us and 10 ns per byte.
#[derive(Default)]
pub struct Recorder {
    free_at: u64,
    log: Log,
}

pub fn service_ns(request: &Request) -> u64 {
    50_000 + 10 * u64::from(request.len)
}

impl Device for Recorder {
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos {
        self.log.lock().unwrap().push((now.0, *request));
        self.free_at = self.free_at.max(now.0) + service_ns(request);
        Nanos(self.free_at)
    }
}

/// `settings` over a device that writes down what it gets.
pub fn recorded(settings: &Settings) -> (Scheduled, Log) {
    let log = Log::default();
    let device = Recorder { free_at: 0, log: Arc::clone(&log) };
    (Scheduled::new(Box::new(device), settings), log)
}

pub fn request(due: u64, op: Op, offset: u64, len: u32, stream: u16) -> Request {
    Request { due: Nanos(due), offset: Bytes(offset), len, op, stream }
}

pub fn trace_of(requests: &[Request]) -> Trace {
    let streams = (0..8).map(|stream| Stream { name: format!("process{stream}") }).collect();
    let mut trace = Trace { streams, ..Trace::default() };
    for request in requests {
        trace.push(*request);
    }
    trace
}

/// Completions of `requests` and what the device got, where all of them are due.
pub fn replay(settings: &Settings, requests: &[Request]) -> (Vec<u64>, Vec<(u64, Request)>) {
    let (mut scheduled, log) = recorded(settings);
    let trace = trace_of(requests);
    let mut completions = vec![0; requests.len()];
    scheduled.submit_due(&trace, 0..requests.len(), &mut completions);
    drop(scheduled);
    (completions, Arc::try_unwrap(log).unwrap().into_inner().unwrap())
}

/// The rule of a scheduler, slowly: requests are places in the list that it was given.
pub trait Rule {
    fn add(&mut self, now: u64, index: usize);
    fn pick(&mut self, now: u64) -> Option<usize>;
    fn done(&mut self, now: u64, index: usize) {
        let _ = (now, index);
    }
    fn timer(&self) -> Option<u64> {
        None
    }
    fn expire(&mut self, now: u64) {
        let _ = now;
    }
}

/// When each of `requests` goes to the device, in that order: (time, place).
pub fn slowly(requests: &[Request], rule: &mut dyn Rule, depth: usize) -> Vec<(u64, usize)> {
    let mut issued: Vec<(u64, usize)> = Vec::new();
    let mut in_flight: Vec<(u64, usize)> = Vec::new();
    let (mut next, mut free_at) = (0, 0);
    while issued.len() < requests.len() || !in_flight.is_empty() {
        let arrival = requests.get(next).map(|request| request.due.0);
        let completion = in_flight.first().map(|(at, _)| *at);
        let events = [completion, rule.timer(), arrival];
        let now = events.into_iter().flatten().min().expect("what arrived is issued");
        if completion == Some(now) {
            let (_, index) = in_flight.remove(0);
            rule.done(now, index);
        } else if rule.timer().is_some_and(|at| at <= now) {
            rule.expire(now);
        } else {
            while requests.get(next).is_some_and(|request| request.due.0 == now) {
                rule.add(now, next);
                next += 1;
            }
        }
        while in_flight.len() < depth {
            let Some(index) = rule.pick(now) else { break };
            free_at = now.max(free_at) + service_ns(&requests[index]);
            in_flight.push((free_at, index));
            issued.push((now, index));
        }
    }
    issued
}

/// Holds the order of dispatch of `settings` against a rule; no merging, no bound.
pub fn check(settings: &Settings, requests: &[Request], rule: &mut dyn Rule) {
    let mut settings = settings.clone();
    settings.merge = false;
    settings.nr_requests = Some(1 << 20);
    settings.plugging = Some(host::scheduler::Plugging::BlkMq);
    let (_, log) = replay(&settings, requests);
    let found: Vec<_> = log.iter().map(|(at, request)| (*at, request.offset.0)).collect();
    let issued = slowly(requests, rule, settings.depth as usize);
    let expected: Vec<_> =
        issued.iter().map(|(at, index)| (*at, requests[*index].offset.0)).collect();
    assert_eq!(found.len(), expected.len());
    for (place, pair) in found.iter().zip(&expected).enumerate() {
        assert_eq!(pair.0, pair.1, "dispatch {place} of {}", found.len());
    }
}

/// Random reads and writes of `streams` processes, mostly near one another in time; offsets differ.
pub fn loads(streams: u16) -> impl Strategy<Value = Vec<Request>> {
    let gap = prop_oneof![
        4 => Just(0_u64),
        8 => 1_000..150_000_u64,
        2 => 150_000..3_000_000_u64,
        1 => 3_000_000..40_000_000_u64
    ];
    let one = (gap, any::<bool>(), 0..5_000_u64, 0..streams, 1..9_u32);
    prop::collection::vec(one, 1..250).prop_map(|all| {
        let mut due = 0;
        let shape =
            all.into_iter().enumerate().map(|(index, (gap, write, page, stream, blocks))| {
                due += gap;
                let op = if write { Op::Write } else { Op::Read };
                // The low bits keep offsets apart.
                request(due, op, page * (1 << 20) + index as u64 * 512, 512 * blocks, stream)
            });
        shape.collect()
    })
}

/// A process that keeps `outstanding` requests on their way and thinks before each.
pub struct Process {
    pub op: Op,
    pub len: u32,
    pub outstanding: u32,
    pub think_ns: u64,
    /// Where its requests are: the first one, and how far apart.
    pub from: u64,
    pub step: u64,
    /// Instead, anywhere below this.
    pub anywhere: Option<u64>,
}

/// A request of a process that was completed.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    pub process: usize,
    pub response_ns: u64,
}

impl Process {
    /// Reads of 4 KiB one behind the other.
    pub fn reader(from: u64, outstanding: u32, think_ns: u64) -> Self {
        Self { op: Op::Read, len: 4096, outstanding, think_ns, from, step: 4096, anywhere: None }
    }
}

/// Runs processes, which are the streams, for `end_ns`: what the device got, and completions.
pub fn closed_loop(
    settings: &Settings,
    processes: &[Process],
    end_ns: u64,
) -> (Vec<(u64, Request)>, Vec<Done>) {
    let (mut scheduled, log) = recorded(settings);
    let done = run(&mut scheduled, processes, end_ns);
    let log = log.lock().unwrap().clone();
    (log, done)
}

/// The finalizer of SplitMix64.
fn mixed(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

pub fn run(scheduled: &mut Scheduled, processes: &[Process], end_ns: u64) -> Vec<Done> {
    let mut arrivals: Vec<(u64, usize)> = Vec::new();
    for (index, process) in processes.iter().enumerate() {
        arrivals.extend((0..process.outstanding).map(|_| (0, index)));
    }
    let mut issued = vec![0_u64; processes.len()];
    // By ticket: the process, and when its request arrived.
    let mut arrived: Vec<(usize, u64)> = Vec::new();
    let mut done = Vec::new();
    loop {
        let first = arrivals.iter().enumerate().min_by_key(|(_, (at, index))| (*at, *index));
        let (place, at) = first.map_or((0, end_ns), |(place, (at, _))| (place, *at));
        if let Some((at, ticket)) = scheduled.next_completion(Nanos(at.min(end_ns))) {
            let (process, since) = arrived[ticket as usize];
            done.push(Done { process, response_ns: at.0 - since });
            arrivals.push((at.0 + processes[process].think_ns, process));
        } else if at >= end_ns {
            return done;
        } else {
            let (_, index) = arrivals.remove(place);
            let Process { op, len, from, step, anywhere, .. } = processes[index];
            let count = issued[index];
            let offset = anywhere.map_or(from + count * step, |below| {
                (mixed(from ^ (count << 20)) % (below >> 12)) << 12
            });
            issued[index] += 1;
            let one = request(at, op, offset, len, index as u16);
            scheduled.arrive(Nanos(at), arrived.len() as u64, &one);
            arrived.push((index, at));
        }
    }
}

/// A decaying mean of the kernel, as (weight, total): 7/8 of what was, 1/8 of what is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Decaying(pub u64, pub u64);

impl Decaying {
    pub fn add(&mut self, sample: u64) {
        *self = Self((7 * self.0 + 256) / 8, (7 * self.1 + 256 * sample) / 8);
    }

    pub fn mean(self) -> u64 {
        (self.1 + self.0 / 2).checked_div(self.0).unwrap_or(0)
    }

    /// A seek, of which the part beyond four means and 2 Mi sectors (128 Ki later) does not count.
    pub fn add_seek(&mut self, bytes: u64) {
        let beyond = if self.0 <= 60 { 1 << 30 } else { 1 << 26 };
        self.add(bytes.min(4 * self.mean() + beyond));
    }
}

/// Which of two requests of a one-way elevator at `head` is next; it may go back by `back` bytes,
/// each of which counts twice.
pub fn elevator(all: &[Request], head: u64, back: u64, one: usize, other: usize) -> usize {
    let at = |index: usize| all[index].offset.0;
    let is_behind = |index: usize| at(index) + back < head;
    let way = |index: usize| {
        if at(index) >= head { at(index) - head } else { 2 * (head - at(index)) }
    };
    let key = |index: usize| {
        let behind = is_behind(index);
        (behind, if behind { at(index) } else { way(index) })
    };
    if key(one) <= key(other) { one } else { other }
}

/// What such an elevator that has taken `taken` takes next of `rest`: a neighbour, or the lowest.
pub fn neighbour(all: &[Request], back: u64, taken: usize, rest: &[usize]) -> Option<usize> {
    let at = |index: &usize| all[*index].offset.0;
    let (place, head) = (at(&taken), at(&taken) + u64::from(all[taken].len));
    let above = rest.iter().copied().filter(|index| at(index) > place).min_by_key(at);
    let above = above.or(rest.iter().copied().min_by_key(at));
    let below = rest.iter().copied().filter(|index| at(index) < place).max_by_key(at);
    match (above, below) {
        (Some(above), Some(below)) => Some(elevator(all, head, back, above, below)),
        (above, below) => above.or(below),
    }
}
