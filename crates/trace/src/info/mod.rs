//! What is in a trace: the figures by which people compare workloads.
//!
//! One file per concern, each with its definitions in its header: [`counts`] (requests, sizes,
//! alignment), [`sequential`], [`arrivals`] (rate, bursts), [`blocks`] (reuse, working set, hot and
//! cold, overwrites), [`miss_ratio`], [`heat`], [`depth`], [`service`] (service times),
//! [`published`] (similar public traces).
//! Flushes and trims carry no data and count only as requests and in the times. Addresses of
//! different streams are taken as those of one device for the figures in all.
//!
//! The columns are walked in chunks, of a trace in memory or in parts; beside them a walk keeps a
//! few hundred KiB, about 100 bytes per distinct block (which [`Options::full`] lifts the bound of)
//! and, where there is more than one stream, 8 bytes per request of a part and as much again for
//! each of [`STREAMS_AT_ONCE`] streams. Table-tested against hand-counted traces and closed forms.

pub mod arrivals;
pub mod blocks;
pub mod counts;
pub mod depth;
pub mod heat;
pub mod hot;
mod lru;
pub mod miss_ratio;
pub mod published;
pub mod sequential;
pub mod service;
mod touches;

use std::convert::Infallible;
use std::ops::ControlFlow;

use events::{Event, Quiet, Sink};
use serde::{Deserialize, Serialize};

use crate::{Op, Parts, Trace};

pub use arrivals::Arrivals;
pub use blocks::Blocks;
pub use counts::{Counts, SizeCount};
pub use depth::Depth;
pub use heat::HeatMap;
pub use lru::{LruStack, Touched};
pub use miss_ratio::{MissRatioCurve, Sampling};
pub use published::Similarity;
pub use sequential::Sequentiality;
pub use service::{Service, ServiceTimes};

/// Block in which the working set, reuse and alignment are counted.
pub const BLOCK_BYTES: u64 = 4096;
/// Points of the series over time at most, and their shortest length.
const SERIES_POINTS: u64 = 200;
const SHORTEST_WINDOW_NS: u64 = 1_000_000;
/// Touches and distinct blocks (16 GiB of them) up to which every block is followed.
const TOUCHES_FOLLOWED: u64 = 1 << 24;
const BLOCKS_FOLLOWED: u64 = 1 << 22;
/// Requests between two looks at whether to go on.
const CHUNK: usize = 1 << 18;
/// Streams followed at once where a trace is read in parts.
pub const STREAMS_AT_ONCE: usize = 64;
/// Traces below this are described too fast to talk about.
const WORTH_PROGRESS: usize = 2_000_000;

/// How to characterise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Follow every block however many there are, at about 100 bytes of memory each. Without it,
    /// traces of more than 16 Mi touches or 4 Mi distinct blocks are sampled at 1 % (see
    /// [`Blocks::followed_share`]).
    pub full: bool,
}

/// A trace, characterised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// Due time of the last request, s.
    pub span_s: f64,
    /// One byte past the last one touched.
    pub extent_bytes: u64,
    /// All requests together; its name is `all`.
    pub all: StreamInfo,
    /// Each stream of the table, in its order.
    pub streams: Vec<StreamInfo>,
    /// Rate over time: at most 200 windows of equal length, at least 1 ms each.
    pub rates: Vec<RateWindow>,
    /// Where requests go over time.
    pub heat: HeatMap,
    /// Outstanding requests, where the trace holds service times.
    pub depth: Option<Depth>,
    /// Service times, where the trace holds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// Published traces, the most similar first.
    pub similar: Vec<Similarity>,
}

/// One stream, characterised. Means and shares of nothing are 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamInfo {
    /// Name in the stream table.
    pub name: String,
    /// Requests, sizes, alignment.
    #[serde(flatten)]
    pub counts: Counts,
    /// Requests over the span of the trace.
    pub requests_per_s: f64,
    /// How much follows on.
    pub sequentiality: Sequentiality,
    /// When requests arrive.
    pub arrivals: Arrivals,
    /// What happens to single blocks.
    pub blocks: Blocks,
}

/// One interval of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateWindow {
    /// Start, s.
    pub at_s: f64,
    /// Reads per second.
    pub reads_per_s: f64,
    /// Writes per second.
    pub writes_per_s: f64,
    /// Flushes per second.
    pub flushes_per_s: f64,
    /// Bytes read and written per second.
    pub bytes_per_s: f64,
}

/// Characterises a well-formed trace (see [`Trace::validate`]).
pub fn characterise(trace: &Trace) -> Info {
    characterise_with(trace, Options::default(), &Quiet).expect("nobody cancels")
}

/// The same with options; says how far it is where it may take seconds, and gives `None` when it is
/// cancelled.
pub fn characterise_with(trace: &Trace, options: Options, sink: &dyn Sink) -> Option<Info> {
    let Ok(found) = characterise_parts::<Infallible>(trace, options, sink);
    found
}

/// The same of a trace in parts, which are read twice, and once more for every
/// [`STREAMS_AT_ONCE`] streams where there are several.
///
/// # Errors
/// Where a part cannot be read.
pub fn characterise_parts<E>(
    parts: &dyn Parts<E>,
    options: Options,
    sink: &dyn Sink,
) -> Result<Option<Info>, E> {
    let (mut first, mut cancelled) = (First::default(), false);
    parts.each(&mut |part| {
        first.add(part);
        cancelled = parts.whole().is_none() && sink.cancelled();
        if cancelled { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if cancelled {
        return Ok(None);
    }
    let touches = first.touches;
    let seed = Sampling::default().seed;
    if touches <= TOUCHES_FOLLOWED || (options.full && touches < lru::BLOCKS_MAX) {
        let blocks_max = if options.full { lru::BLOCKS_MAX } else { BLOCKS_FOLLOWED };
        let beside = blocks::sample_beside(touches);
        let plan = Plan { sampling: Sampling { rate: 1.0, seed }, beside, blocks_max };
        match describe(parts, &first, plan, sink)? {
            Ok(info) => return Ok(Some(info)),
            Err(Stop::Cancelled) => return Ok(None),
            // More blocks than it pays to follow: once more with a sample.
            Err(Stop::TooManyBlocks) => {}
        }
    }
    let rate = Sampling::default().rate.min(TOUCHES_FOLLOWED as f64 / touches as f64);
    let plan = Plan { sampling: Sampling { rate, seed }, beside: None, blocks_max: u64::MAX };
    Ok(describe(parts, &first, plan, sink)?.ok())
}

/// What must be known of all requests before the others can be counted.
#[derive(Default)]
struct First {
    touches: u64,
    extent_bytes: u64,
    /// First and last start of reads and writes.
    starts: Option<(u64, u64)>,
    /// Whether there are service times, when the last request is done, and its sizes.
    timed: bool,
    last_end_ns: u64,
    sizes: service::Sizes,
}

impl First {
    fn add(&mut self, part: &Trace) {
        self.touches += touches::count(part);
        self.extent_bytes = self.extent_bytes.max(part.extent().0);
        self.starts = heat::ends(part, self.starts);
        if part.service.as_ref().is_some_and(|service| !service.is_empty()) {
            self.timed = true;
            self.last_end_ns = self.last_end_ns.max(depth::end(part));
            service::count_sizes(part, &mut self.sizes);
        }
    }
}

/// Which blocks are followed.
#[derive(Clone, Copy)]
struct Plan {
    sampling: Sampling,
    beside: Option<Sampling>,
    blocks_max: u64,
}

/// Why a walk ended early.
#[derive(Clone, Copy)]
enum Stop {
    Cancelled,
    TooManyBlocks,
}

fn describe<E>(
    parts: &dyn Parts<E>,
    first: &First,
    plan: Plan,
    sink: &dyn Sink,
) -> Result<Result<Info, Stop>, E> {
    let outline = parts.outline();
    let (span_ns, requests) = (outline.span_ns, outline.requests as usize);
    let several = outline.streams.len() > 1;
    let total = requests * if several { 2 } else { 1 };
    let mut walk = Walk { plan, span_ns, sink, total, done: 0 };
    let mut all = walk.start();
    let mut rates = Rates::new(span_ns);
    let mut heat = first.starts.map(|starts| heat::Gather::new(starts, span_ns));
    let mut depth = first.timed.then(|| depth::Gather::new(first.last_end_ns));
    let mut service = first.timed.then(|| service::Gather::new(&first.sizes));
    let stopped = walk.parts(parts, |walk, part| {
        rates.add(part);
        if let Some(heat) = &mut heat {
            heat.add(part);
        }
        if let Some(depth) = &mut depth {
            depth.add(part);
        }
        if let Some(service) = &mut service {
            service.add(part);
        }
        walk.add(&mut all, part, 0..part.count())
    })?;
    if let Some(stop) = stopped {
        return Ok(Err(stop));
    }
    let span_s = span_ns as f64 / 1e9;
    let mut streams = Vec::with_capacity(outline.streams.len());
    if several {
        // Only streams know what follows what.
        all.sequential = sequential::Gather::default();
        walk.plan.beside = None;
        let found = match parts.whole() {
            Some(trace) => walk.streams_of(trace),
            None => walk.streams(parts, outline.streams.len())?,
        };
        let found = match found {
            Ok(found) => found,
            Err(stop) => return Ok(Err(stop)),
        };
        for ((sequential, mut info), stream) in found.into_iter().zip(&outline.streams) {
            all.sequential.merge(&sequential);
            info.name.clone_from(&stream.name);
            streams.push(info);
        }
    }
    let all = all.finish("all", span_s);
    if let [only] = &outline.streams[..] {
        streams.push(StreamInfo { name: only.name.clone(), ..all.clone() });
    }
    Ok(Ok(Info {
        span_s,
        extent_bytes: first.extent_bytes,
        similar: published::similarities(&all),
        all,
        streams,
        rates: if requests == 0 { Vec::new() } else { rates.finish() },
        heat: heat.map(heat::Gather::finish).unwrap_or_default(),
        depth: depth.map(depth::Gather::finish),
        service: service.map(|service| service.finish(&outline.streams)),
    }))
}

/// The indices of each stream's requests.
fn members(trace: &Trace) -> Vec<Vec<usize>> {
    let mut counts = vec![0; trace.streams.len()];
    trace.stream.iter().for_each(|stream| counts[usize::from(*stream)] += 1);
    let mut members: Vec<Vec<usize>> = counts.into_iter().map(Vec::with_capacity).collect();
    for (index, stream) in trace.stream.iter().enumerate() {
        members[usize::from(*stream)].push(index);
    }
    members
}

/// A walk over the requests, some of them several times.
struct Walk<'a> {
    plan: Plan,
    span_ns: u64,
    sink: &'a dyn Sink,
    total: usize,
    done: usize,
}

/// What is gathered of one selection of requests.
struct Part {
    counts: counts::Gather,
    sequential: sequential::Gather,
    arrivals: arrivals::Gather,
    blocks: blocks::Gather,
}

/// What is kept of a stream.
type OfStream = (sequential::Gather, StreamInfo);

impl Walk<'_> {
    fn start(&self) -> Part {
        let Self { plan, span_ns, .. } = *self;
        Part {
            counts: counts::Gather::default(),
            sequential: sequential::Gather::default(),
            arrivals: arrivals::Gather::new(span_ns),
            blocks: blocks::Gather::new(plan.sampling, plan.beside, Windows::new(span_ns)),
        }
    }

    /// Hands every part to `take` and says where that stopped.
    fn parts<E>(
        &mut self,
        parts: &dyn Parts<E>,
        mut take: impl FnMut(&mut Self, &Trace) -> Result<(), Stop>,
    ) -> Result<Option<Stop>, E> {
        let mut stopped = None;
        parts.each(&mut |part| match take(self, part) {
            Ok(()) => ControlFlow::Continue(()),
            Err(stop) => {
                stopped = Some(stop);
                ControlFlow::Break(())
            }
        })?;
        Ok(stopped)
    }

    /// Adds some requests of a trace to `part`.
    fn add(
        &mut self,
        part: &mut Part,
        trace: &Trace,
        mut requests: impl Iterator<Item = usize> + Clone,
    ) -> Result<(), Stop> {
        loop {
            let chunk = || requests.clone().take(CHUNK);
            part.counts.add(trace, chunk());
            part.sequential.add(trace, chunk());
            part.arrivals.add(trace, chunk());
            part.blocks.add(trace, chunk());
            if part.blocks.followed() > self.plan.blocks_max {
                return Err(Stop::TooManyBlocks);
            }
            let walked = chunk().count();
            self.progress(walked)?;
            if walked < CHUNK {
                return Ok(());
            }
            requests.nth(CHUNK - 1);
        }
    }

    /// The streams of a trace in memory, one after the other.
    fn streams_of(&mut self, trace: &Trace) -> Result<Vec<OfStream>, Stop> {
        let mut found = Vec::with_capacity(trace.streams.len());
        for members in members(trace) {
            let mut part = self.start();
            self.add(&mut part, trace, members.iter().copied())?;
            found.push(self.of_stream(part));
        }
        Ok(found)
    }

    /// The streams of a trace that is read anew for every few of them.
    fn streams<E>(
        &mut self,
        parts: &dyn Parts<E>,
        count: usize,
    ) -> Result<Result<Vec<OfStream>, Stop>, E> {
        let mut found = Vec::with_capacity(count);
        while found.len() < count {
            let from = found.len();
            let at_once = STREAMS_AT_ONCE.min(count - from);
            let mut gathered: Vec<Part> = (0..at_once).map(|_| self.start()).collect();
            let stopped = self.parts(parts, |walk, part| {
                for (gather, members) in gathered.iter_mut().zip(&members(part)[from..]) {
                    walk.add(gather, part, members.iter().copied())?;
                }
                Ok(())
            })?;
            if let Some(stop) = stopped {
                return Ok(Err(stop));
            }
            found.extend(gathered.into_iter().map(|part| self.of_stream(part)));
        }
        Ok(Ok(found))
    }

    fn of_stream(&self, part: Part) -> OfStream {
        (part.sequential.clone(), part.finish("", self.span_ns as f64 / 1e9))
    }

    fn progress(&mut self, walked: usize) -> Result<(), Stop> {
        self.done += walked;
        if self.total >= WORTH_PROGRESS {
            self.sink.emit(Event::Progress {
                stage: "info".to_owned(),
                done: self.done as f64 / self.total as f64,
                doing: format!("{} of {} million requests", self.done >> 20, self.total >> 20),
                eta_s: None,
            });
        }
        if self.sink.cancelled() { Err(Stop::Cancelled) } else { Ok(()) }
    }
}

impl Part {
    fn finish(self, name: &str, span_s: f64) -> StreamInfo {
        let counts = self.counts.finish();
        StreamInfo {
            name: name.to_owned(),
            requests_per_s: ratio(counts.requests as f64, span_s),
            counts,
            sequentiality: self.sequential.finish(),
            arrivals: self.arrivals.finish(),
            blocks: self.blocks.finish(),
        }
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The windows of the series over time.
#[derive(Clone, Copy, Debug)]
struct Windows {
    window_ns: u64,
    count: usize,
}

impl Windows {
    fn new(span_ns: u64) -> Self {
        let window_ns = (span_ns / SERIES_POINTS + 1).max(SHORTEST_WINDOW_NS);
        Self { window_ns, count: (span_ns / window_ns + 1) as usize }
    }

    fn of(self, time_ns: u64) -> usize {
        (time_ns / self.window_ns) as usize
    }

    fn start_ns(self, window: usize) -> u64 {
        window as u64 * self.window_ns
    }

    fn end_ns(self, window: usize) -> u64 {
        self.start_ns(window).saturating_add(self.window_ns)
    }

    fn start_s(self, window: usize) -> f64 {
        self.start_ns(window) as f64 / 1e9
    }
}

/// Counts requests by window.
struct Rates {
    windows: Windows,
    /// Requests by operation, and bytes.
    counted: Vec<([u64; Op::ALL.len()], u64)>,
}

impl Rates {
    fn new(span_ns: u64) -> Self {
        let windows = Windows::new(span_ns);
        Self { windows, counted: vec![([0; Op::ALL.len()], 0); windows.count] }
    }

    fn add(&mut self, trace: &Trace) {
        for index in 0..trace.count() {
            let window = &mut self.counted[self.windows.of(trace.due[index])];
            window.0[trace.op[index] as usize] += 1;
            if matches!(trace.op[index], Op::Read | Op::Write) {
                window.1 += u64::from(trace.len[index]);
            }
        }
    }

    fn finish(self) -> Vec<RateWindow> {
        let seconds = self.windows.window_ns as f64 / 1e9;
        let series = self.counted.iter().enumerate().map(|(index, (counts, bytes))| RateWindow {
            at_s: self.windows.start_s(index),
            reads_per_s: counts[Op::Read as usize] as f64 / seconds,
            writes_per_s: counts[Op::Write as usize] as f64 / seconds,
            flushes_per_s: counts[Op::Flush as usize] as f64 / seconds,
            bytes_per_s: *bytes as f64 / seconds,
        });
        series.collect()
    }
}

#[cfg(test)]
mod tests;
