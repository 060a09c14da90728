//! What is in a trace: the figures by which people compare workloads.
//!
//! One file per concern, each with its definitions in its header: [`counts`] (requests, sizes,
//! alignment), [`sequential`], [`arrivals`] (rate, bursts), [`blocks`] (reuse, working set, hot and
//! cold, overwrites), [`miss_ratio`], [`heat`], [`depth`], [`service`] (service times),
//! [`published`] (similar public traces).
//! Flushes and trims carry no data and count only as requests and in the times. Addresses of
//! different streams are taken as those of one device for the figures in all.
//!
//! The columns are walked in chunks; beside them a walk keeps a few hundred KiB, about 100 bytes
//! per distinct block (which [`Options::full`] lifts the bound of) and 8 bytes per request where
//! there is more than one stream. Table-tested against hand-counted traces and closed forms.

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

use events::{Event, Quiet, Sink};
use serde::{Deserialize, Serialize};

use crate::{Op, Trace};

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
    let touches = touches::count(trace);
    let seed = Sampling::default().seed;
    if touches <= TOUCHES_FOLLOWED || (options.full && touches < lru::BLOCKS_MAX) {
        let blocks_max = if options.full { lru::BLOCKS_MAX } else { BLOCKS_FOLLOWED };
        let beside = blocks::sample_beside(touches);
        let plan = Plan { sampling: Sampling { rate: 1.0, seed }, beside, blocks_max };
        match describe(trace, plan, sink) {
            Ok(info) => return Some(info),
            Err(Stop::Cancelled) => return None,
            // More blocks than it pays to follow: once more with a sample.
            Err(Stop::TooManyBlocks) => {}
        }
    }
    let rate = Sampling::default().rate.min(TOUCHES_FOLLOWED as f64 / touches as f64);
    let plan = Plan { sampling: Sampling { rate, seed }, beside: None, blocks_max: u64::MAX };
    describe(trace, plan, sink).ok()
}

/// Which blocks are followed.
#[derive(Clone, Copy)]
struct Plan {
    sampling: Sampling,
    beside: Option<Sampling>,
    blocks_max: u64,
}

/// Why a walk ended early.
enum Stop {
    Cancelled,
    TooManyBlocks,
}

fn describe(trace: &Trace, plan: Plan, sink: &dyn Sink) -> Result<Info, Stop> {
    let several = trace.streams.len() > 1;
    let total = trace.count() * if several { 2 } else { 1 };
    let mut walk = Walk { trace, plan, sink, total, done: 0 };
    let mut all = walk.part(0..trace.count())?;
    let span_s = trace.span().as_secs_f64();
    let mut streams = Vec::with_capacity(trace.streams.len());
    if several {
        // Only streams know what follows what.
        all.sequential = sequential::Gather::default();
        walk.plan.beside = None;
        for (members, stream) in members(trace).iter().zip(&trace.streams) {
            let part = walk.part(members.iter().copied())?;
            all.sequential.merge(&part.sequential);
            streams.push(part.finish(&stream.name, span_s));
        }
    }
    let all = all.finish("all", span_s);
    if let [only] = &trace.streams[..] {
        streams.push(StreamInfo { name: only.name.clone(), ..all.clone() });
    }
    Ok(Info {
        span_s,
        extent_bytes: trace.extent().0,
        similar: published::similarities(&all),
        all,
        streams,
        rates: rates(trace),
        heat: heat::heat_map(trace),
        depth: depth::depth(trace),
        service: service::service(trace),
    })
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
    trace: &'a Trace,
    plan: Plan,
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

impl Walk<'_> {
    fn part(&mut self, mut requests: impl Iterator<Item = usize> + Clone) -> Result<Part, Stop> {
        let (trace, plan) = (self.trace, self.plan);
        let span_ns = trace.span().0;
        let mut part = Part {
            counts: counts::Gather::default(),
            sequential: sequential::Gather::default(),
            arrivals: arrivals::Gather::new(span_ns),
            blocks: blocks::Gather::new(plan.sampling, plan.beside, Windows::new(span_ns)),
        };
        loop {
            let chunk = || requests.clone().take(CHUNK);
            part.counts.add(trace, chunk());
            part.sequential.add(trace, chunk());
            part.arrivals.add(trace, chunk());
            part.blocks.add(trace, chunk());
            if part.blocks.followed() > plan.blocks_max {
                return Err(Stop::TooManyBlocks);
            }
            let walked = chunk().count();
            self.progress(walked)?;
            if walked < CHUNK {
                return Ok(part);
            }
            requests.nth(CHUNK - 1);
        }
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

fn rates(trace: &Trace) -> Vec<RateWindow> {
    if trace.is_empty() {
        return Vec::new();
    }
    let windows = Windows::new(trace.span().0);
    let seconds = windows.window_ns as f64 / 1e9;
    let mut counted = vec![([0u64; Op::ALL.len()], 0u64); windows.count];
    for index in 0..trace.count() {
        let window = &mut counted[windows.of(trace.due[index])];
        window.0[trace.op[index] as usize] += 1;
        if matches!(trace.op[index], Op::Read | Op::Write) {
            window.1 += u64::from(trace.len[index]);
        }
    }
    let series = counted.iter().enumerate().map(|(index, (counts, bytes))| RateWindow {
        at_s: windows.start_s(index),
        reads_per_s: counts[Op::Read as usize] as f64 / seconds,
        writes_per_s: counts[Op::Write as usize] as f64 / seconds,
        flushes_per_s: counts[Op::Flush as usize] as f64 / seconds,
        bytes_per_s: *bytes as f64 / seconds,
    });
    series.collect()
}

#[cfg(test)]
mod tests;
