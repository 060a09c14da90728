//! The linear response-time model `y = a x + b`, and what it lacks.
//!
//! The line, one `(a, b)` per access pattern {sequential, random} and operation {read, write}, is
//! that of Wang, Goda, Nakano and Kitsuregawa, "An Experimental Study on Basic Performance of Flash
//! SSDs with Micro Benchmarks and Real Access Traces" (2010), section 3.1. Added to it:
//!
//! - **distribution**: a request takes its line times a ratio drawn from a fitted quantile table
//!   per (operation, pattern, size class, context). The context says what came before: no request of
//!   the same operation for a while (power states, a hypervisor, worker threads that went to sleep
//!   and the time stamps of a file system all make the first one after a pause slower), a flush, or
//!   anything else.
//! - **parallelism**: `parallelism` servers hold requests for their whole time, and one shared
//!   resource in front of them (bus, channels, a provider's rate limit) admits requests at the
//!   ceiling of their line. The transfer is part of the line's time, so at depth 1 a request takes
//!   exactly its line, and under load throughput saturates at
//!   `min(parallelism / y, iops ceiling, bandwidth ceiling / size)`.
//! - **mixed load**: reads among writes and writes among reads take longer by a factor that rises
//!   with the share of the other kind up to an even mix and stays there: the bathtub of Wang et al.
//!   2011, figure 2. The share is a moving average over the last requests.
//! - **flush**: a base cost and a cost per request and byte written since the last flush, after all
//!   outstanding writes have completed. Flushes that arrive while one runs share the next one, as
//!   in Linux's flush machinery, which is what group commit builds on.
//!
//! A request is sequential where it starts at the end of the previous request of its operation *in
//! its stream*: a log that is appended between random page accesses stays sequential, as it does
//! for a device with several open write points or a read-ahead window per stream. Devices with one
//! arm lose that position: [`Detection::Global`].
//!
//! Invariants: the ones of the crate; and the i-th submitted request draws the i-th random number,
//! whatever its neighbours are. Tested against the closed forms of M/D/1 and M/M/1, and by
//! properties.

use trace::{Op, Request};
use units::{Bytes, Nanos};

use crate::observe::{Activity, Cause, Off, On, Path, Probe, Span, Track, TrackKind, Watch};
use crate::quantiles::{Draw, Quantiles, Samplers};
use crate::slots::Slots;
use crate::{Counter, Device};

/// How a request's address relates to the one before it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// It starts where the previous one ended.
    Sequential = 0,
    /// It does not.
    Random = 1,
}

/// Whose previous request decides whether a request is sequential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detection {
    /// The previous one of the same operation and stream.
    #[default]
    PerStream,
    /// The previous one of the same operation.
    Global,
}

/// Service time of one operation in one pattern at depth 1, and what it can reach at depth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Time of a request of size zero (`b`), ns.
    pub base_ns: f64,
    /// Time per byte (`a`), ns.
    pub ns_per_byte: f64,
    /// Requests per second that the device reaches at any depth, where known.
    pub ceiling_iops: Option<f64>,
    /// Bytes per second that the device reaches at any depth, where known.
    pub ceiling_bytes_per_s: Option<f64>,
}

impl Line {
    /// `b + a x`, ns.
    #[inline]
    pub fn at(&self, size_bytes: u32) -> f64 {
        self.base_ns + self.ns_per_byte * f64::from(size_bytes)
    }
}

/// What the device did before a request arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Context {
    /// Any state that no other table is for.
    Any,
    /// No request of the same operation for at least so many ns. Of several thresholds the longest
    /// that is reached counts, also after a flush.
    IdleFor(f64),
    /// The previous request was a flush.
    AfterFlush,
}

/// A quantile table of measured time over the line's time, and what it applies to.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// Read, write or flush; trims have none.
    pub op: Op,
    /// The pattern; both where `None`.
    pub pattern: Option<Pattern>,
    /// The request size that it was measured at; requests take the table of the nearest size on a
    /// logarithmic scale. `None`: all sizes. The size of a flush is what was written since the
    /// last one.
    pub size_bytes: Option<u32>,
    /// What came before.
    pub context: Context,
    /// The ratios.
    pub ratios: Quantiles,
}

/// How much longer requests take in a mixed load. 1 is no longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixed {
    /// Factor on reads in an even mix.
    pub read_factor: f64,
    /// Factor on writes in an even mix.
    pub write_factor: f64,
    /// Requests that the moving average of the mix remembers.
    pub window_requests: u32,
}

impl Default for Mixed {
    fn default() -> Self {
        Self { read_factor: 1.0, write_factor: 1.0, window_requests: 32 }
    }
}

/// Cost of making writes durable.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flush {
    /// Cost of a flush with nothing to make durable, ns.
    pub base_ns: f64,
    /// Additional cost per byte written since the last flush, ns.
    pub ns_per_dirty_byte: f64,
    /// Additional cost per write request since the last flush, ns.
    pub ns_per_dirty_request: f64,
}

/// Everything the linear model needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearParameters {
    /// Size of the device.
    pub capacity: Option<Bytes>,
    /// Lines of reads, by [`Pattern`].
    pub read: [Line; 2],
    /// Lines of writes, by [`Pattern`].
    pub write: [Line; 2],
    /// Requests that the device works on at once, at least 1.
    pub parallelism: u32,
    /// What counts as sequential.
    pub detection: Detection,
    /// Mixed-load penalty.
    pub mixed: Mixed,
    /// Flush cost.
    pub flush: Flush,
    /// Time of a trim, ns.
    pub trim_ns: f64,
    /// Distributions around the lines; where there is none for an operation, its requests take
    /// exactly their line.
    pub residuals: Vec<Residual>,
}

/// The linear model of a device.
#[derive(Clone, Debug)]
pub struct Linear {
    /// By operation and pattern.
    costs: [[Costs; 2]; 2],
    slots: Slots,
    shared_free_at: u64,
    ends: Ends,
    residuals: Residuals,
    draw: Draw,
    mix: Mix,
    flush: FlushState,
    flush_cost: Flush,
    trim_ns: f64,
    capacity: Option<Bytes>,
    /// When the latest request of each operation completed: reads, writes, flushes.
    last_completion: [u64; 3],
    last_was_flush: bool,
    counts: Counts,
}

/// What a request of one operation and pattern costs, ns.
#[derive(Clone, Copy, Debug)]
struct Costs {
    base: f64,
    per_byte: f64,
    /// On the shared resource; a request takes the larger of the two.
    shared_base: f64,
    shared_per_byte: f64,
}

impl Costs {
    fn new(line: &Line) -> Self {
        Self {
            base: line.base_ns,
            per_byte: line.ns_per_byte,
            shared_base: line.ceiling_iops.map_or(0.0, |iops| 1e9 / iops),
            shared_per_byte: line.ceiling_bytes_per_s.map_or(0.0, |rate| 1e9 / rate),
        }
    }
}

/// Rounds a finite time to whole ns; negative ones become zero, and none exceeds 52 days.
///
/// Adding 2^52 leaves the whole number in the low bits: a third of the instructions of `as u64`.
#[inline]
pub(crate) fn whole_ns(ns: f64) -> u64 {
    const TWO_52: f64 = 4_503_599_627_370_496.0;
    (ns.clamp(0.0, TWO_52 - 1.0) + TWO_52).to_bits() & ((1 << 52) - 1)
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    requests: u64,
    sequential: u64,
    flushes: u64,
    joined_flushes: u64,
    /// Read and written.
    bytes: [u64; 2],
}

impl Linear {
    /// The device of `parameters` with nothing outstanding. `seed` decides every random draw.
    ///
    /// # Panics
    /// Where a quantile table has a flaw; [`crate::Profile::check`] finds that first.
    pub fn new(parameters: &LinearParameters, seed: u64) -> Self {
        let costs = [parameters.read, parameters.write].map(|pair| pair.map(|l| Costs::new(&l)));
        Self {
            costs,
            slots: Slots::new(parameters.parallelism as usize),
            shared_free_at: 0,
            ends: Ends::new(parameters.detection),
            residuals: Residuals::new(&parameters.residuals),
            draw: Draw::new(seed),
            mix: Mix::new(parameters.mixed),
            flush: FlushState::default(),
            flush_cost: parameters.flush,
            trim_ns: parameters.trim_ns,
            capacity: parameters.capacity,
            last_completion: [0; 3],
            last_was_flush: false,
            counts: Counts::default(),
        }
    }

    /// A read (`kind` 0) or a write (1). One path for both, since which of them comes next cannot
    /// be predicted.
    #[inline]
    fn transfer<W: Watch>(
        &mut self,
        now: u64,
        request: &Request,
        kind: usize,
        watch: &mut W,
    ) -> u64 {
        // Tells the compiler that there are two.
        let kind = kind & 1;
        let sequential = self.ends.is_sequential(kind, request);
        let pattern = usize::from(!sequential);
        let idle = now.saturating_sub(self.last_completion[kind]);
        let context = self.residuals.context(idle, self.last_was_flush);
        let bits = self.draw.bits();
        let ratio = self.residuals.ratio(kind, pattern, context, request.len, bits);
        let factor = ratio * self.mix.factor(kind);
        let len = f64::from(request.len);
        let costs = &self.costs[kind][pattern];
        let service = whole_ns((costs.base + costs.per_byte * len) * factor);
        // A request that takes longer holds the shared resource longer: so one at a time never
        // meets the ceiling, however its times scatter.
        let shared = costs.shared_base.max(costs.shared_per_byte * len) * factor;
        let admitted = now.max(self.shared_free_at);
        self.shared_free_at = admitted + whole_ns(shared);
        let (slot, start) = self.slots.start(admitted);
        let completion = start + service;
        self.slots.occupy(slot, completion);
        if W::ACTIVE {
            watch.spend(Cause::SharedWait, admitted - now);
            watch.spend(Cause::Queue, start - admitted);
            watch.spend(Cause::Medium, service);
            let transfer = (admitted, self.shared_free_at);
            watch.span(Span::new(INTERFACE, Activity::Transfer, transfer.0, transfer.1));
            let server = Track::server(slot as u32);
            watch.span(Span::new(server, request.op.into(), start, completion));
        }
        self.last_completion[kind] = self.last_completion[kind].max(completion);
        self.counts.requests += 1;
        self.counts.sequential += u64::from(sequential);
        self.counts.bytes[kind] += u64::from(request.len);
        self.flush.note(kind as u64, completion, request.len);
        completion
    }

    fn flush<W: Watch>(&mut self, now: u64, watch: &mut W) -> u64 {
        let idle = now.saturating_sub(self.last_completion[FLUSH]);
        let context = self.residuals.context(idle, self.last_was_flush);
        let bits = self.draw.bits();
        let dirty_bytes = self.flush.dirty_bytes.min(u64::from(u32::MAX)) as u32;
        let pattern = Pattern::Random as usize;
        let ratio = self.residuals.ratio(FLUSH, pattern, context, dirty_bytes, bits);
        self.counts.requests += 1;
        self.counts.flushes += 1;
        let (start, completion, joined) = self.flush.submit(now, &self.flush_cost, ratio);
        watch.spend(Cause::Flush, completion - now);
        if !joined {
            watch.span(Span::new(FLUSHES, Activity::Flush, start, completion));
        }
        self.counts.joined_flushes += u64::from(joined);
        self.last_completion[FLUSH] = self.last_completion[FLUSH].max(completion);
        completion
    }

    fn trim<W: Watch>(&mut self, now: u64, watch: &mut W) -> u64 {
        self.draw.bits();
        self.counts.requests += 1;
        let (slot, start) = self.slots.start(now);
        let completion = start + whole_ns(self.trim_ns);
        self.slots.occupy(slot, completion);
        watch.spend(Cause::Queue, start - now);
        watch.spend(Cause::Medium, completion - start);
        watch.span(Span::new(Track::server(slot as u32), Activity::Trim, start, completion));
        completion
    }

    #[inline]
    fn serve<W: Watch>(&mut self, now: u64, request: &Request, watch: &mut W) -> u64 {
        let completion = match request.op {
            Op::Read | Op::Write => self.transfer(now, request, request.op as usize, watch),
            Op::Flush => self.flush(now, watch),
            Op::Trim => self.trim(now, watch),
        };
        self.last_was_flush = request.op == Op::Flush;
        completion
    }
}

/// The shared resource on a timeline.
const INTERFACE: Track = Track::new(TrackKind::Interface, 0);
/// Flushes on a timeline.
const FLUSHES: Track = Track::new(TrackKind::Flush, 0);

impl Device for Linear {
    #[inline]
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos {
        Nanos(self.serve(now.0, request, &mut Off))
    }

    fn submit_observed(
        &mut self,
        now: Nanos,
        request: &Request,
        probe: &mut dyn Probe,
    ) -> (Nanos, Path) {
        let mut watch = On::new(probe);
        let completion = self.serve(now.0, request, &mut watch);
        (Nanos(completion), watch.into_path())
    }

    fn capacity(&self) -> Option<Bytes> {
        self.capacity
    }

    fn counters(&self) -> Vec<Counter> {
        let counts = &self.counts;
        [
            ("device_requests", counts.requests),
            ("device_sequential_requests", counts.sequential),
            ("device_read_bytes", counts.bytes[0]),
            ("device_written_bytes", counts.bytes[WRITE]),
            ("device_flushes", counts.flushes),
            ("device_joined_flushes", counts.joined_flushes),
        ]
        .map(|(name, value)| Counter { name, value })
        .to_vec()
    }
}

const WRITE: usize = 1;
const FLUSH: usize = 2;

/// Where the previous request of each operation and stream ended.
#[derive(Clone, Debug)]
struct Ends {
    ends: Box<[[u64; STREAMS]; 2]>,
    /// Keeps the whole stream number per stream, or nothing of it when detection is global.
    mask: usize,
}

/// Streams that are told apart; a trace with more shares their positions modulo this.
const STREAMS: usize = 64;

impl Ends {
    fn new(detection: Detection) -> Self {
        let mask = match detection {
            Detection::PerStream => STREAMS - 1,
            Detection::Global => 0,
        };
        // No request starts at the last byte of the address space, so nothing is sequential yet.
        Self { ends: Box::new([[u64::MAX; STREAMS]; 2]), mask }
    }

    #[inline]
    fn is_sequential(&mut self, kind: usize, request: &Request) -> bool {
        let stream = usize::from(request.stream) & self.mask & (STREAMS - 1);
        let end = &mut self.ends[kind][stream];
        let sequential = *end == request.offset.0;
        *end = request.offset.0.saturating_add(u64::from(request.len));
        sequential
    }
}

/// The tables of ratios and the map from a request to its table.
#[derive(Clone, Debug)]
struct Residuals {
    samplers: Samplers,
    /// Table number by operation, pattern, context and size class, flattened.
    map: Vec<u16>,
    /// Idle thresholds, ns, ascending; context `i + 1` is idle for `idle_ns[i]`.
    idle_ns: Vec<u64>,
    /// The context after a flush, 0 where no table asks for it.
    after_flush: usize,
    contexts: usize,
}

/// Size classes are powers of two from 512 B or less to 4 MiB or more.
const CLASSES: usize = 14;

/// A table of a special context is for sizes up to so many powers of two away: what a pause adds to
/// 4 KiB says little about 1 MiB.
const NEAR: usize = 2;

/// The size class nearest to `size_bytes` on a logarithmic scale.
#[inline]
fn size_class(size_bytes: u32) -> usize {
    // Adding 41 % rounds the logarithm to the nearest whole number instead of down.
    let rounded = u64::from(size_bytes) + u64::from(size_bytes) * 27 / 64;
    (63 - (rounded | 1).leading_zeros() as usize).clamp(9, 9 + CLASSES - 1) - 9
}

impl Residuals {
    fn new(residuals: &[Residual]) -> Self {
        let mut idle_ns: Vec<u64> = residuals
            .iter()
            .filter_map(|residual| match residual.context {
                Context::IdleFor(ns) => Some(ns as u64),
                _ => None,
            })
            .collect();
        idle_ns.sort_unstable();
        idle_ns.dedup();
        let has_flush = residuals.iter().any(|residual| residual.context == Context::AfterFlush);
        let after_flush = if has_flush { idle_ns.len() + 1 } else { 0 };
        let contexts = 1 + idle_ns.len() + usize::from(has_flush);
        let mut samplers = Samplers::new();
        let numbers: Vec<u16> =
            residuals.iter().map(|residual| samplers.push(&residual.ratios)).collect();
        let mut this = Self { samplers, map: Vec::new(), idle_ns, after_flush, contexts };
        for op in [Op::Read, Op::Write, Op::Flush] {
            for pattern in [Pattern::Sequential, Pattern::Random] {
                for context in 0..contexts {
                    for class in 0..CLASSES {
                        let found = this.find(residuals, (op, pattern), context, class);
                        this.map.push(found.map_or(0, |index| numbers[index]));
                    }
                }
            }
        }
        this
    }

    /// The table for a request: of its own context if there is one for about its size, else of the
    /// next shorter idle time, else of any context, there the nearest size.
    fn find(
        &self,
        residuals: &[Residual],
        (op, pattern): (Op, Pattern),
        context: usize,
        class: usize,
    ) -> Option<usize> {
        let nearest = |context: usize| {
            residuals
                .iter()
                .enumerate()
                .filter(|(_, residual)| {
                    residual.op == op
                        && residual.pattern.is_none_or(|own| own == pattern)
                        && self.context_index(residual.context) == context
                })
                .map(|(index, residual)| match residual.size_bytes {
                    Some(size) => (size_class(size).abs_diff(class), index),
                    None => (NEAR, index),
                })
                .filter(|(distance, _)| context == 0 || *distance <= NEAR)
                .min()
                .map(|(_, index)| index)
        };
        let shorter = if context == self.after_flush { 0 } else { context };
        nearest(context).or_else(|| (0..shorter).rev().find_map(nearest)).or_else(|| nearest(0))
    }

    fn context_index(&self, context: Context) -> usize {
        match context {
            Context::Any => 0,
            Context::IdleFor(ns) => {
                let position = self.idle_ns.iter().position(|&own| own == ns as u64);
                position.map_or(0, |index| index + 1)
            }
            Context::AfterFlush => self.after_flush,
        }
    }

    #[inline]
    fn context(&self, idle: u64, last_was_flush: bool) -> usize {
        if self.contexts == 1 {
            return 0;
        }
        match self.idle_ns.iter().take_while(|&&threshold| idle >= threshold).count() {
            0 if last_was_flush => self.after_flush,
            reached => reached,
        }
    }

    #[inline]
    fn ratio(&self, kind: usize, pattern: usize, context: usize, len: u32, bits: u64) -> f64 {
        let index = ((kind * 2 + pattern) * self.contexts + context) * CLASSES + size_class(len);
        self.samplers.ratio(self.map[index], bits)
    }
}

/// The moving average of the mix and the penalty it costs.
#[derive(Clone, Debug)]
struct Mix {
    /// Share of writes among recent requests.
    write_share: f64,
    weight: f64,
    /// Factor in an even mix minus one, of reads and of writes.
    excess: [f64; 2],
    active: bool,
}

impl Mix {
    fn new(mixed: Mixed) -> Self {
        let excess = [mixed.read_factor - 1.0, mixed.write_factor - 1.0];
        Self {
            write_share: 0.0,
            weight: 1.0 / f64::from(mixed.window_requests.max(1)),
            excess,
            active: excess != [0.0, 0.0],
        }
    }

    /// The penalty of a request of `kind`, which joins the average.
    #[inline]
    fn factor(&mut self, kind: usize) -> f64 {
        if !self.active {
            return 1.0;
        }
        let is_write = kind as f64;
        let other = (is_write - self.write_share).abs();
        self.write_share += (is_write - self.write_share) * self.weight;
        1.0 + self.excess[kind] * (other * 2.0).min(1.0)
    }
}

/// Dirty data and the flushes that run or wait.
#[derive(Clone, Debug, Default)]
struct FlushState {
    last_write_end: u64,
    dirty_bytes: u64,
    dirty_requests: u64,
    /// When the flush that runs last ends.
    running_until: u64,
    /// Start and end of the flush that follows it, where one is waiting.
    waiting: Option<(u64, u64)>,
}

impl FlushState {
    /// Takes note of a write (`is_write` 1); does nothing for a read (0), without a branch.
    #[inline]
    fn note(&mut self, is_write: u64, completion: u64, len: u32) {
        self.last_write_end = self.last_write_end.max(completion * is_write);
        self.dirty_bytes += u64::from(len) * is_write;
        self.dirty_requests += is_write;
    }

    /// When a flush that arrives at `now` starts and completes, and whether it shares one that
    /// others already wait for.
    fn submit(&mut self, now: u64, cost: &Flush, ratio: f64) -> (u64, u64, bool) {
        if let Some((start, end)) = self.waiting
            && start <= now
        {
            self.running_until = end;
            self.waiting = None;
        }
        if let Some((start, end)) = self.waiting
            && self.last_write_end <= start
        {
            return (start, end, true);
        }
        let busy = self.running_until > now || self.waiting.is_some();
        let queued_behind = self.waiting.map_or(self.running_until, |(_, end)| end);
        let start = now.max(queued_behind).max(self.last_write_end);
        let end = start + whole_ns(self.take_dirty_cost(cost) * ratio);
        if busy {
            self.waiting = Some((start, end));
        } else {
            self.running_until = end;
        }
        (start, end, false)
    }

    fn take_dirty_cost(&mut self, cost: &Flush) -> f64 {
        let dirty_bytes = std::mem::take(&mut self.dirty_bytes) as f64;
        let dirty_requests = std::mem::take(&mut self.dirty_requests) as f64;
        cost.base_ns
            + cost.ns_per_dirty_byte * dirty_bytes
            + cost.ns_per_dirty_request * dirty_requests
    }
}
