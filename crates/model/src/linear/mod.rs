//! The linear response-time model `y = a x + b`, and what it lacks.
//!
//! The line, one `(a, b)` per access pattern {sequential, random} and operation {read, write}, is
//! that of Wang, Goda, Nakano and Kitsuregawa, "An Experimental Study on Basic Performance of Flash
//! SSDs with Micro Benchmarks and Real Access Traces" (2010), section 3.1. Added to it:
//!
//! - **distribution**: a request takes its line times a ratio drawn from a fitted quantile table
//!   per (operation, pattern, size class, context). The context says what came before: no request
//!   of the same operation for a while (power states, a hypervisor, worker threads that went to
//!   sleep and the time stamps of a file system all make the first one after a pause slower), a
//!   flush, or anything else.
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
//! for a device with several open write points or a read-ahead window per stream. A write may begin
//! with the last block of the previous one again, as a log does that had not filled it. Devices
//! with one arm lose that position: `Detection::Global`.
//!
//! Invariants: the ones of the crate; and the i-th submitted request draws the i-th random number,
//! whatever its neighbours are. Tested against the closed forms of M/D/1 and M/M/1, and by
//! properties.

use profile::linear::{Flush, Line, LinearParameters, Pattern};
use trace::{Op, Request};
use units::Bytes;

use crate::device::submit_by_serving;
use crate::observe::{Activity, Cause, Span, Track, TrackKind, Watch};
use crate::samplers::Draw;
use crate::slots::Slots;
use crate::snapshot::{SnapshotReader, SnapshotWriter, fingerprint};
use crate::{Counter, Device, SnapshotError};
use residuals::Residuals;
use state::{Ends, FlushState, Mix};

mod residuals;
mod state;

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
    /// What reads and writes did so far.
    kinds: [Kind; 2],
    last_flush_completion: u64,
    counts: Counts,
    /// Of the parameters and the seed.
    fingerprint: u64,
}

/// What the requests of one operation did so far.
#[derive(Clone, Copy, Debug, Default)]
struct Kind {
    /// When the latest one completed.
    last_completion: u64,
    requests: u64,
    bytes: u64,
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
/// The comparisons are written so that each is one instruction.
#[inline]
pub(crate) fn whole_ns(ns: f64) -> u64 {
    const TWO_52: f64 = 4_503_599_627_370_496.0;
    const MOST: f64 = TWO_52 - 1.0;
    let ns = if ns > 0.0 { ns } else { 0.0 };
    let ns = if ns < MOST { ns } else { MOST };
    (ns + TWO_52).to_bits() & ((1 << 52) - 1)
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sequential: u64,
    flushes: u64,
    joined_flushes: u64,
    trims: u64,
}

impl Linear {
    /// The device of `parameters` with nothing outstanding. `seed` decides every random draw.
    ///
    /// # Panics
    /// Where a quantile table has a flaw; [`profile::Profile::check`] finds that first.
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
            kinds: [Kind::default(); 2],
            last_flush_completion: 0,
            counts: Counts::default(),
            fingerprint: fingerprint(&(parameters, seed)),
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
        let last = self.kinds[kind].last_completion;
        let ratio = self.residuals.ratio(kind, pattern, request.len, (now, last), &mut self.draw);
        let factor = ratio * self.mix.factor(kind);
        let len = f64::from(request.len);
        let costs = &self.costs[kind][pattern];
        let service = whole_ns((costs.base + costs.per_byte * len) * factor);
        // A request that takes longer holds the shared resource longer: so one at a time never
        // meets the ceiling, however its times scatter.
        let (least, shared) = (costs.shared_base, costs.shared_per_byte * len);
        let shared = if shared > least { shared } else { least } * factor;
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
        self.residuals.note_transfer();
        self.counts.sequential += u64::from(sequential);
        let own = &mut self.kinds[kind];
        own.last_completion = own.last_completion.max(completion);
        own.requests += 1;
        own.bytes += u64::from(request.len);
        completion
    }

    #[cold]
    #[inline(never)]
    fn flush<W: Watch>(&mut self, now: u64, watch: &mut W) -> u64 {
        let writes = &self.kinds[WRITE];
        let written = (writes.requests, writes.bytes);
        let dirty_bytes = self.flush.dirty_bytes(written).min(u64::from(u32::MAX)) as u32;
        let (pattern, last) = (Pattern::Random as usize, self.last_flush_completion);
        let ratio = self.residuals.ratio(FLUSH, pattern, dirty_bytes, (now, last), &mut self.draw);
        self.counts.flushes += 1;
        let (start, completion, joined) =
            self.flush.submit(now, written, writes.last_completion, &self.flush_cost, ratio);
        watch.spend(Cause::Flush, completion - now);
        if !joined {
            watch.span(Span::new(FLUSHES, Activity::Flush, start, completion));
        }
        self.counts.joined_flushes += u64::from(joined);
        self.last_flush_completion = self.last_flush_completion.max(completion);
        self.residuals.note_flush();
        completion
    }

    #[cold]
    #[inline(never)]
    fn trim<W: Watch>(&mut self, now: u64, watch: &mut W) -> u64 {
        self.draw.skip();
        self.counts.trims += 1;
        self.residuals.note_transfer();
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
        if matches!(request.op, Op::Read | Op::Write) {
            self.transfer(now, request, request.op as usize, watch)
        } else if request.op == Op::Flush {
            self.flush(now, watch)
        } else {
            self.trim(now, watch)
        }
    }
}

/// The shared resource on a timeline.
const INTERFACE: Track = Track::new(TrackKind::Interface, 0);
/// Flushes on a timeline.
const FLUSHES: Track = Track::new(TrackKind::Flush, 0);

impl Device for Linear {
    submit_by_serving!();

    fn snapshot(&self) -> Option<Vec<u8>> {
        let mut to = SnapshotWriter::new("linear", self.fingerprint);
        self.slots.save(&mut to);
        self.ends.save(&mut to);
        self.mix.save(&mut to);
        self.flush.save(&mut to);
        to.u64(u64::from(self.residuals.last_was_flush()));
        for kind in &self.kinds {
            to.u64s(&[kind.last_completion, kind.requests, kind.bytes]);
        }
        let counts = &self.counts;
        let own = [counts.sequential, counts.flushes, counts.joined_flushes, counts.trims];
        to.u64s(&own);
        to.u64s(&[self.shared_free_at, self.draw.state(), self.last_flush_completion]);
        Some(to.finish())
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let mut from = SnapshotReader::new(bytes, "linear", self.fingerprint)?;
        self.slots.load(&mut from)?;
        self.ends.load(&mut from)?;
        self.mix.load(&mut from)?;
        self.flush.load(&mut from)?;
        if from.below(2)? == 1 {
            self.residuals.note_flush();
        } else {
            self.residuals.note_transfer();
        }
        for kind in &mut self.kinds {
            let [last_completion, requests, bytes] = from.array()?;
            *kind = Kind { last_completion, requests, bytes };
        }
        let [sequential, flushes, joined_flushes, trims] = from.array()?;
        self.counts = Counts { sequential, flushes, joined_flushes, trims };
        let [shared_free_at, draw, last_flush_completion] = from.array()?;
        self.shared_free_at = shared_free_at;
        self.draw.set_state(draw);
        self.last_flush_completion = last_flush_completion;
        from.finish()
    }

    fn capacity(&self) -> Option<Bytes> {
        self.capacity
    }

    fn counters(&self) -> Vec<Counter> {
        let (counts, [reads, writes]) = (&self.counts, &self.kinds);
        let transfers = reads.requests + writes.requests;
        [
            ("device_requests", transfers + counts.flushes + counts.trims),
            ("device_sequential_requests", counts.sequential),
            ("device_read_bytes", reads.bytes),
            ("device_written_bytes", writes.bytes),
            ("device_flushes", counts.flushes),
            ("device_joined_flushes", counts.joined_flushes),
        ]
        .map(|(name, value)| Counter { name, value })
        .to_vec()
    }
}

const WRITE: usize = 1;
const FLUSH: usize = 2;
