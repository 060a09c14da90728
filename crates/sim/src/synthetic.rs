//! A fixed number of outstanding synthetic requests: the papers' micro-benchmark in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use model::Device;
use profile::linear::Pattern;
use serde::{Deserialize, Serialize};
use stats::{Histogram, rng::Rng};
use trace::{Op, Request};
use units::{Bytes, Nanos};

use crate::users::{Users, serve};

/// What the synthetic users do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synthetic {
    /// Where requests go. Sequential: each starts where the previously issued one ended, from the
    /// start of the range again at its end.
    pub pattern: Pattern,
    /// Share of reads, 0 to 1.
    pub read_share: f64,
    /// Bytes per request.
    pub size_bytes: u32,
    /// Bytes addressed, from the start of the device.
    pub range_bytes: u64,
    /// Whether a flush follows every write.
    pub flush_each_write: bool,
    /// Requests issued before counting starts.
    pub warm_up_requests: u64,
    /// When the first request is issued: not before the clock of the device, ns.
    pub start_ns: u64,
    /// Decides addresses and the order of reads and writes.
    pub seed: u64,
}

impl Synthetic {
    /// Reads (`read_share` 1) or writes (0) or a mix of `size_bytes` over 1 GiB, no warm-up.
    pub fn new(pattern: Pattern, read_share: f64, size_bytes: u32) -> Self {
        Self {
            pattern,
            read_share,
            size_bytes,
            range_bytes: 1 << 30,
            flush_each_write: false,
            warm_up_requests: 0,
            start_ns: 0,
            seed: 1,
        }
    }
}

/// What the synthetic users saw after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DepthOutcome {
    /// Requests counted, flushes not included.
    pub requests: u64,
    /// Virtual time that they took, ns.
    pub elapsed_ns: u64,
    /// Requests per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Completion - issue of reads, ns.
    pub reads: Histogram,
    /// Of writes.
    pub writes: Histogram,
    /// Of flushes.
    pub flushes: Histogram,
    /// Of reads and writes, by the window that they completed in; none where requests were counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Histogram>,
    /// When the last request completed, ns.
    #[serde(default)]
    pub end_ns: u64,
}

/// Keeps `depth` requests outstanding on `device` until `count` have been counted.
pub fn closed_loop_depth(
    device: &mut dyn Device,
    load: Synthetic,
    depth: usize,
    count: u64,
) -> DepthOutcome {
    let mut slots = Slots::new(load, depth);
    slots.issues = load.warm_up_requests + count;
    serve(device, &mut slots);
    slots.finish()
}

/// Keeps `depth` requests outstanding on `device` until the end of `span_ns`, and counts what
/// completes within it, in this many `windows`: what a probe of a real disk does.
///
/// # Panics
/// Where the span is empty or begins before the load, or there are no windows.
pub fn closed_loop_span(
    device: &mut dyn Device,
    load: Synthetic,
    depth: usize,
    span_ns: Range<u64>,
    windows: usize,
) -> DepthOutcome {
    assert!(load.start_ns <= span_ns.start && span_ns.start < span_ns.end && windows > 0);
    let mut slots = Slots::new(load, depth);
    slots.outcome.windows = vec![Histogram::new(); windows];
    slots.span_ns = Some(span_ns);
    serve(device, &mut slots);
    slots.finish()
}

/// The outstanding requests of a synthetic load; the ticket is the slot.
struct Slots {
    load: Synthetic,
    source: Source,
    ready: BinaryHeap<Reverse<(u64, usize)>>,
    /// By slot: what it waits for, issued at its `due`, and whether that is past the warm-up.
    waiting: Vec<(Request, bool)>,
    owes_flush: Vec<bool>,
    /// Requests to issue, flushes not counted.
    issues: u64,
    issued: u64,
    counted_from: u64,
    last: u64,
    /// Where time decides what is issued and counted, and not `issues`.
    span_ns: Option<Range<u64>>,
    outcome: DepthOutcome,
}

impl Users for Slots {
    fn next_issue(&mut self) -> Option<u64> {
        while let Some(Reverse((now, slot))) = self.ready.peek().copied() {
            let goes_on = match &self.span_ns {
                Some(span) => now < span.end,
                None => self.issued < self.issues,
            };
            if goes_on || self.owes_flush[slot] {
                return Some(now);
            }
            self.ready.pop();
        }
        None
    }

    fn issue(&mut self) -> (u64, Nanos, Request) {
        let Reverse((now, slot)) = self.ready.pop().expect("a request to issue");
        if self.issued == self.load.warm_up_requests && !self.owes_flush[slot] {
            self.counted_from = now;
        }
        let request =
            if self.owes_flush[slot] { Source::flush(now) } else { self.source.next(now) };
        self.owes_flush[slot] = self.load.flush_each_write && request.op == Op::Write;
        self.issued += u64::from(request.op != Op::Flush);
        let counted = self.issued > self.load.warm_up_requests || self.span_ns.is_some();
        self.waiting[slot] = (request, counted);
        (slot as u64, Nanos(now), request)
    }

    fn completed(&mut self, ticket: u64, at: u64) {
        let slot = ticket as usize;
        let (request, counted) = self.waiting[slot];
        self.outcome.end_ns = self.outcome.end_ns.max(at);
        let within = self.span_ns.as_ref().is_none_or(|span| span.contains(&at));
        if counted && within {
            self.outcome.requests += u64::from(request.op != Op::Flush);
            self.last = self.last.max(at);
            let time = at - request.due.0;
            if let Some(span) = self.span_ns.as_ref().filter(|_| request.op != Op::Flush) {
                let windows = self.outcome.windows.len() as u64;
                let window = (at - span.start) * windows / (span.end - span.start);
                self.outcome.windows[window as usize].record(time);
            }
            match request.op {
                Op::Read => self.outcome.reads.record(time),
                Op::Flush => self.outcome.flushes.record(time),
                _ => self.outcome.writes.record(time),
            }
        }
        self.ready.push(Reverse((at, slot)));
    }
}

impl Slots {
    fn new(load: Synthetic, depth: usize) -> Self {
        let depth = depth.max(1);
        Self {
            load,
            source: Source::new(load),
            ready: (0..depth).map(|slot| Reverse((load.start_ns, slot))).collect(),
            waiting: vec![(Source::flush(0), false); depth],
            owes_flush: vec![false; depth],
            issues: 0,
            issued: 0,
            counted_from: load.start_ns,
            last: load.start_ns,
            span_ns: None,
            outcome: DepthOutcome::default(),
        }
    }

    fn finish(self) -> DepthOutcome {
        let mut outcome = self.outcome;
        outcome.elapsed_ns = match self.span_ns {
            Some(span) => span.end - span.start,
            None => self.last - self.counted_from.min(self.last),
        };
        if outcome.elapsed_ns > 0 {
            outcome.iops = outcome.requests as f64 * 1e9 / outcome.elapsed_ns as f64;
            outcome.bytes_per_s = outcome.iops * f64::from(self.load.size_bytes);
        }
        outcome
    }
}

/// The requests of a synthetic load, one after another.
#[derive(Debug)]
struct Source {
    load: Synthetic,
    rng: Rng,
    blocks: u64,
    next_block: u64,
}

impl Source {
    fn new(load: Synthetic) -> Self {
        let blocks = (load.range_bytes / u64::from(load.size_bytes.max(1))).max(1);
        Self { load, rng: Rng::new(load.seed), blocks, next_block: 0 }
    }

    fn next(&mut self, now: u64) -> Request {
        let is_read = self.rng.unit() < self.load.read_share;
        let block = match self.load.pattern {
            Pattern::Sequential => {
                let block = self.next_block;
                self.next_block = (block + 1) % self.blocks;
                block
            }
            Pattern::Random => self.rng.below(self.blocks),
        };
        Request {
            due: Nanos(now),
            offset: Bytes(block * u64::from(self.load.size_bytes)),
            len: self.load.size_bytes,
            op: if is_read { Op::Read } else { Op::Write },
            stream: 0,
        }
    }

    fn flush(now: u64) -> Request {
        Request { due: Nanos(now), offset: Bytes(0), len: 0, op: Op::Flush, stream: 0 }
    }
}
