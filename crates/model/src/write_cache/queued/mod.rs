//! The write cache over a device that looks at its queue: a [`Queued`] of its own.
//!
//! [`WriteCache`](super::WriteCache) asks the device behind for a completion as soon as it sends
//! something, so a device that must know its later arrivals would serve one request at a time. Here
//! arrivals and completions go through in the order of their times, and several requests of the
//! cache are with the device at once:
//!
//! - destages, as many as `destage_depth` outstanding, while a write waits for a line, while the
//!   background drains, or after a pause;
//! - reads that miss, trims, and what goes around the cache, as they come;
//! - all that is dirty, at once, for a flush, which goes on to the device when it has landed; and
//!   the dirty lines that a read partly needs, which is complete when they have landed.
//!
//! Everything else is as in [`super`]: lines, order of replacement, watermarks, runs, hits. A write
//! that needs a line and finds none waits behind the writes that waited before; a write of lines
//! that are there goes by.
//!
//! Invariants, tested: every request completes once; lines written = destaged + dirty + overwritten
//! while dirty + trimmed while dirty; a line is reused only when its last destage has landed.

mod destages;
mod device;
mod state;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use profile::write_cache::WriteCacheParameters;
use trace::{Op, Request};
use units::Nanos;

use super::NEVER;
use super::counts::Counts;
use super::lru::{Lines, State};
use crate::linear::whole_ns;
use crate::observe::{Activity, Cause, Path, Probe, Span, Track, TrackKind};
use crate::queued::Ahead;
use crate::slots::Slots;
use crate::snapshot::fingerprint;
use crate::{Device, Queued};
use destages::Destage;

/// A request that is not complete.
#[derive(Clone, Copy, Debug)]
struct Open {
    ticket: u64,
    request: Request,
    /// The path is told up to here.
    at_ns: u64,
    /// Destages and answers of the device that it waits for.
    waits: u32,
    /// Whether the device has it.
    is_forwarded: bool,
    path: Path,
}

impl Open {
    fn until(&mut self, cause: Cause, moment_ns: u64) {
        self.path.spend(cause, moment_ns.saturating_sub(self.at_ns));
        self.at_ns = self.at_ns.max(moment_ns);
    }
}

/// A write-back cache over a device that is told of arrivals and asked for completions.
#[derive(Clone, Debug)]
pub struct QueuedCache<D> {
    behind: D,
    lines: Lines,
    line_shift: u32,
    hit_base_ns: f64,
    hit_ns_per_byte: f64,
    ports: Slots,
    high_lines: usize,
    low_lines: usize,
    coalesce_lines: u64,
    idle_after_ns: u64,
    protected: bool,
    depth: usize,
    clock: u64,
    open: Vec<Open>,
    unused: Vec<u32>,
    /// (time, order, slot) of answers from the cache to come.
    hits: BinaryHeap<Reverse<(u64, u64, u32)>>,
    order: u64,
    /// Writes that wait for a line, and which.
    stalled: VecDeque<(u32, u64)>,
    /// Destages that the device has, by number.
    destages: BTreeMap<u64, Destage>,
    /// By line: the last destage of it that the device has.
    last_of: BTreeMap<u64, u64>,
    sent: u64,
    draining: bool,
    idle_from: u64,
    completed: VecDeque<(u64, u64, Path)>,
    counts: Counts,
    ahead: Ahead,
    fingerprint: u64,
    /// While somebody watches: spans of the ports, with their tickets.
    told: Option<Vec<(u64, Span)>>,
    arrived: u64,
}

impl<D: Device> QueuedCache<D> {
    /// An empty cache in front of `behind`.
    ///
    /// # Panics
    /// Where `behind` does not look at its queue, and as
    /// [`WriteCache::new`](super::WriteCache::new).
    pub fn new(mut behind: D, parameters: &WriteCacheParameters) -> Self {
        assert!(behind.queued().is_some(), "a cache over a device without a queue is a WriteCache");
        let count = parameters.line_count();
        let share = |watermark: f64| (count as f64 * watermark) as usize;
        Self {
            behind,
            lines: Lines::new(count),
            line_shift: parameters.line_bytes.trailing_zeros(),
            hit_base_ns: parameters.hit_base_ns,
            hit_ns_per_byte: parameters.hit_ns_per_byte,
            ports: Slots::new(parameters.ports as usize),
            high_lines: share(parameters.high_watermark),
            low_lines: share(parameters.low_watermark.min(parameters.high_watermark)),
            coalesce_lines: u64::from((parameters.coalesce_bytes / parameters.line_bytes).max(1)),
            idle_after_ns: parameters.idle_destage_after_ns.map_or(NEVER, |ns| ns as u64),
            protected: parameters.power_loss_protected,
            depth: parameters.destage_depth.max(1) as usize,
            clock: 0,
            open: Vec::new(),
            unused: Vec::new(),
            hits: BinaryHeap::new(),
            order: 0,
            stalled: VecDeque::new(),
            destages: BTreeMap::new(),
            last_of: BTreeMap::new(),
            sent: 0,
            draining: false,
            idle_from: NEVER,
            completed: VecDeque::new(),
            counts: Counts::default(),
            ahead: Ahead::default(),
            fingerprint: fingerprint(&("queued", parameters)),
            told: None,
            arrived: 0,
        }
    }

    /// The device behind, which looks at its queue.
    fn device(&mut self) -> &mut dyn Queued {
        self.behind.queued().expect("it did when the cache was made")
    }

    /// Lines that a request touches, first and one past last.
    fn span(&self, request: &Request) -> (u64, u64) {
        let end = request.offset.0 + u64::from(request.len.max(1)) - 1;
        (request.offset.0 >> self.line_shift, (end >> self.line_shift) + 1)
    }

    /// Takes a request in at the present time.
    fn take_in(&mut self, ticket: u64, request: &Request) {
        self.arrived = ticket;
        self.idle_from = self.clock.saturating_add(self.idle_after_ns);
        let open = Open {
            ticket,
            request: *request,
            at_ns: self.clock,
            waits: 0,
            is_forwarded: false,
            path: Path::EMPTY,
        };
        let slot = self.unused.pop().unwrap_or(self.open.len() as u32);
        if slot as usize == self.open.len() {
            self.open.push(open);
        } else {
            self.open[slot as usize] = open;
        }
        let (first, end) = self.span(request);
        match request.op {
            Op::Read => self.read(slot, first, end),
            Op::Write if end - first > self.lines.capacity() as u64 => {
                self.counts.bypassed_writes += 1;
                self.discard(first, end);
                self.forward(slot);
            }
            Op::Write => self.write(slot, first, true),
            Op::Trim => {
                self.discard(first, end);
                self.forward(slot);
            }
            Op::Flush => self.flush(slot),
        }
        self.pump();
    }

    fn read(&mut self, slot: u32, first: u64, end: u64) {
        let present = (first..end).filter(|line| self.lines.find(*line).is_some()).count() as u64;
        if present == end - first {
            self.counts.read_hits += 1;
            return self.hit(slot);
        }
        self.counts.read_misses += 1;
        for line in first..end {
            if present > 0 && self.is_dirty(line) {
                self.destage_around(line, Some(slot));
            }
        }
        self.forward(slot);
    }

    /// Writes lines from `line` on as long as there is room; `is_new` has not waited before.
    fn write(&mut self, slot: u32, mut line: u64, is_new: bool) {
        let (_, end) = self.span(&self.open[slot as usize].request);
        while line < end {
            if let Some(held) = self.lines.find(line) {
                let was_dirty = self.lines.make_dirty(held);
                self.counts.overwritten_lines += u64::from(was_dirty);
            } else {
                let is_first = !is_new || self.stalled.is_empty();
                if !is_first || !self.lines.insert_dirty(line) {
                    self.counts.stalls += u64::from(is_new);
                    let waiting = (slot, line);
                    return if is_new {
                        self.stalled.push_back(waiting);
                    } else {
                        self.stalled.push_front(waiting);
                    };
                }
            }
            self.counts.written_lines += 1;
            line += 1;
        }
        let open = &mut self.open[slot as usize];
        self.counts.stalled_ns += self.clock - open.at_ns;
        open.until(Cause::Destage, self.clock);
        self.hit(slot);
    }

    /// The request of `slot` is answered from the cache.
    fn hit(&mut self, slot: u32) {
        let open = &mut self.open[slot as usize];
        let (port, start) = self.ports.start(self.clock);
        let len = if open.request.op == Op::Flush { 0 } else { open.request.len };
        let done = start + whole_ns(self.hit_base_ns + self.hit_ns_per_byte * f64::from(len));
        self.ports.occupy(port, done);
        open.until(Cause::Queue, start);
        open.until(Cause::Cache, done);
        self.order += 1;
        self.hits.push(Reverse((done, self.order, slot)));
        if let Some(told) = self.told.as_mut().filter(|_| done > start) {
            let track = Track::new(TrackKind::CachePort, port as u32);
            told.push((open.ticket, Span::new(track, Activity::Hit, start, done)));
        }
    }

    fn flush(&mut self, slot: u32) {
        if self.protected {
            return self.hit(slot);
        }
        for destage in self.destages.values_mut() {
            destage.waiting.push(slot);
            self.open[slot as usize].waits += 1;
        }
        while let Some(oldest) = self.lines.oldest_dirty() {
            self.destage_around(self.lines.key(oldest), Some(slot));
        }
        self.draining = false;
        if self.open[slot as usize].waits == 0 {
            self.forward(slot);
        }
    }

    /// Gives the request of `slot` to the device.
    fn forward(&mut self, slot: u32) {
        let open = &mut self.open[slot as usize];
        open.is_forwarded = true;
        open.waits += 1;
        let request = open.request;
        let now = Nanos(self.clock);
        self.device().arrive(now, u64::from(slot) << 1, &request);
    }

    /// Something that the request of `slot` waited for is done.
    fn waited(&mut self, slot: u32) {
        let open = &mut self.open[slot as usize];
        open.waits -= 1;
        if open.waits > 0 {
            return;
        }
        if open.is_forwarded {
            open.until(Cause::Destage, self.clock);
            self.complete(slot);
        } else {
            open.until(Cause::Flush, self.clock);
            self.forward(slot);
        }
    }

    fn complete(&mut self, slot: u32) {
        let Open { ticket, path, .. } = self.open[slot as usize];
        self.completed.push_back((self.clock, ticket, path));
        self.unused.push(slot);
    }

    fn discard(&mut self, first: u64, end: u64) {
        let few = end - first <= self.lines.capacity() as u64;
        let lines = if few { (first..end).collect() } else { self.lines.held_between(first, end) };
        for line in lines {
            if let Some(slot) = self.lines.find(line) {
                let was_dirty = self.lines.remove(slot);
                self.counts.trimmed_dirty_lines += u64::from(was_dirty);
            }
        }
    }

    fn is_dirty(&self, line: u64) -> bool {
        self.lines.find(line).is_some_and(|slot| self.lines.state(slot) == State::Dirty)
    }

    /// When the next hit is answered, and when the cache itself does something next.
    fn own_events(&self) -> (u64, u64) {
        let hit_at = self.hits.peek().map_or(NEVER, |Reverse((at, ..))| *at);
        let is_waiting = self.lines.dirty() > 0 && self.idle_from > self.clock;
        (hit_at, if is_waiting { hit_at.min(self.idle_from) } else { hit_at })
    }

    /// [`Queued::next_event`].
    fn next_event_ns(&mut self) -> Option<u64> {
        if let Some((at, ..)) = self.completed.front() {
            return Some(*at);
        }
        let (_, own_at) = self.own_events();
        let behind = self.device().next_event().map_or(NEVER, |at| at.0);
        Some(own_at.min(behind)).filter(|at| *at != NEVER)
    }

    /// The next completion up to `until`, whatever happens on the way.
    fn next(&mut self, until: u64, mut probe: Option<&mut dyn Probe>) -> Option<(u64, u64, Path)> {
        loop {
            if let Some(found) = self.completed.pop_front() {
                return Some(found);
            }
            let (hit_at, own_at) = self.own_events();
            // Taken apart, since a probe behind an option does not shorten its life.
            let asked = match &mut probe {
                Some(probe) => self.ask(until.min(own_at), Some(&mut **probe)),
                None => self.ask(until.min(own_at), None),
            };
            if let Some((at, ticket, path)) = asked {
                self.clock = at;
                self.answered(ticket, &path);
            } else if own_at <= until && own_at != NEVER {
                self.clock = own_at;
                if own_at == hit_at {
                    let Reverse((.., slot)) = self.hits.pop().expect("a hit");
                    self.complete(slot);
                }
            } else {
                if until != NEVER {
                    self.clock = self.clock.max(until);
                }
                return None;
            }
            self.pump();
        }
    }

    /// The device has answered `ticket` of the cache.
    fn answered(&mut self, ticket: u64, path: &Path) {
        if ticket & 1 == 1 {
            return self.landed(ticket >> 1);
        }
        let slot = (ticket >> 1) as u32;
        let open = &mut self.open[slot as usize];
        open.path.add(path);
        open.at_ns += path.total();
        self.waited(slot);
    }
}
