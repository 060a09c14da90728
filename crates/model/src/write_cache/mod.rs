//! A write-back cache in front of any device.
//!
//! Wang et al. 2010 (section 3.2) put a 16 MB write-back cache with "LRU-like" replacement over
//! their linear model, without which the simulator produced far more long response times than the
//! real SSD. This one is an exact LRU: with the rings of `lru` it costs no more than CLOCK, and
//! an exact policy has an obvious oracle (a list and a map, see the tests).
//!
//! - A write goes into lines of `line_bytes`. It completes after the hit time unless it needs a
//!   line and every line is dirty or on its way out: then it stalls until a destage has freed one.
//! - A destage takes the least recently written dirty line and the dirty lines adjacent to it, up
//!   to `coalesce_bytes`, in one write to the device behind. Its lines become clean and stay
//!   readable; they can be reused once the write has completed.
//! - The *background* destages one run at a time while the dirty share is above `high_watermark`,
//!   until it is at `low_watermark`; and whatever is dirty once no request has come for
//!   `idle_destage_after`.
//! - A read whose lines are all present is a hit. Any other goes to the device, after the dirty
//!   lines that it overlaps; reads leave no copy behind (this is a write cache).
//! - A flush destages everything dirty and then flushes the device; with `power_loss_protected` it
//!   is acknowledged at once.
//! - A write of a *durable stream* (forced unit access: `O_DSYNC` on the log of a DBMS) crosses the
//!   cache and completes when it is on the medium, without waiting for other dirty lines; lines
//!   that it covers in part are destaged first. With `power_loss_protected` it is a write like any
//!   other.
//!
//! The unit of account is the line: a write of part of a line dirties all of it. Conservation,
//! property-tested: lines written = lines destaged + lines dirty now + lines overwritten while
//! dirty + lines trimmed while dirty.
//!
//! Nothing here needs an event queue: what the background did since the last request is worked out
//! when the next one arrives, in time order, so that the device behind sees time that never falls.

mod counts;
mod index;
mod lru;
mod queued;

use profile::write_cache::WriteCacheParameters;
use trace::{Op, Request};
use units::{Bytes, Nanos};

use crate::device::submit_by_serving;
use crate::linear::whole_ns;
use crate::observe::{Activity, Cause, Purpose, Span, Track, TrackKind, Watch};
use crate::slots::Slots;
use crate::snapshot::{SnapshotReader, SnapshotWriter, fingerprint};
use crate::{Counter, Device, SnapshotError};
use counts::Counts;
use lru::{Lines, State};

pub use queued::QueuedCache;

/// A write-back cache over `D`, which answers at once; [`QueuedCache`] is one over a device that
/// looks at its queue.
#[derive(Clone, Debug)]
pub struct WriteCache<D> {
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
    /// Streams whose writes wait for the medium; none where a power loss does no harm.
    durable_streams: u64,
    /// Whether the background works its way down to the low watermark.
    draining: bool,
    /// When the running destage completes; its lines can be reused from then on.
    destage_until: u64,
    /// Until then every clean line is one that a stall handed out before its destage completed.
    clean_from: u64,
    /// When the pause that destages everything is reached unless a request comes.
    idle_from: u64,
    /// When the background starts its next destage unless a request comes.
    background_at: u64,
    counts: Counts,
    /// Of the parameters.
    fingerprint: u64,
}

impl<D: Device> WriteCache<D> {
    /// An empty cache in front of `behind`.
    ///
    /// # Panics
    /// Where `line_bytes` is not a power of two or there are more than
    /// [`profile::write_cache::MOST_CACHE_LINES`] lines; [`profile::Profile::check`] finds that
    /// first.
    pub fn new(behind: D, parameters: &WriteCacheParameters) -> Self {
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
            durable_streams: if parameters.power_loss_protected {
                0
            } else {
                parameters.durable_streams
            },
            draining: false,
            destage_until: 0,
            clean_from: 0,
            idle_from: NEVER,
            background_at: NEVER,
            counts: Counts::default(),
            fingerprint: fingerprint(parameters),
        }
    }

    /// The device behind the cache.
    pub fn behind(&self) -> &D {
        &self.behind
    }

    /// Lines that a request touches, first and one past last.
    #[inline]
    fn span(&self, request: &Request) -> (u64, u64) {
        let end = request.offset.0 + u64::from(request.len.max(1)) - 1;
        (request.offset.0 >> self.line_shift, (end >> self.line_shift) + 1)
    }

    #[inline]
    fn write<W: Watch>(&mut self, now: u64, request: &Request, watch: &mut W) -> u64 {
        let (first, end) = self.span(request);
        if self.durable_streams != 0 && self.is_durable(request) {
            return self.write_through(now, request, (first, end), watch);
        }
        if end - first > self.lines.capacity() as u64 {
            return self.bypass(now, request, (first, end), watch);
        }
        let mut ready = now;
        for line in first..end {
            ready = self.put(now, ready, line, watch);
        }
        watch.spend(Cause::Destage, ready - now);
        self.hit(ready, request.len, watch)
    }

    /// Makes `line` dirty in the cache, and says when there was room for it.
    #[inline]
    fn put<W: Watch>(&mut self, now: u64, ready: u64, line: u64, watch: &mut W) -> u64 {
        self.counts.written_lines += 1;
        if let Some(slot) = self.lines.find(line) {
            let was_dirty = self.lines.make_dirty(slot);
            self.counts.overwritten_lines += u64::from(was_dirty);
            return ready;
        }
        if self.lines.insert_dirty(line) {
            return self.not_before_clean(now, ready);
        }
        self.stall(now, ready, line, watch)
    }

    /// When a clean line can be reused, of which a stall may have handed some out early.
    #[inline]
    fn not_before_clean(&self, now: u64, ready: u64) -> u64 {
        if self.clean_from > now { ready.max(self.clean_from) } else { ready }
    }

    /// Frees a line the hard way: waits for the running destage, starting one if there is none.
    /// What has landed unnoticed is taken first.
    #[cold]
    fn stall<W: Watch>(&mut self, now: u64, ready: u64, line: u64, watch: &mut W) -> u64 {
        if self.destage_until <= now {
            self.lines.land();
            if self.lines.insert_dirty(line) {
                return self.not_before_clean(now, ready);
            }
        }
        if !self.lines.has_in_flight() {
            self.destage(now, watch);
        }
        self.lines.land();
        let inserted = self.lines.insert_dirty(line);
        assert!(inserted, "a completed destage leaves clean lines");
        self.counts.stalls += 1;
        let freed = ready.max(self.destage_until);
        self.counts.stalled_ns += freed - ready;
        self.clean_from = freed;
        freed
    }

    /// Time of a request that only touches the cache, from `now`.
    #[inline]
    fn hit<W: Watch>(&mut self, now: u64, len: u32, watch: &mut W) -> u64 {
        let (port, start) = self.ports.start(now);
        let completion = start + whole_ns(self.hit_base_ns + self.hit_ns_per_byte * f64::from(len));
        self.ports.occupy(port, completion);
        watch.spend(Cause::Queue, start - now);
        watch.spend(Cause::Cache, completion - start);
        let track = Track::new(TrackKind::CachePort, port as u32);
        watch.span(Span::new(track, Activity::Hit, start, completion));
        completion
    }

    fn is_durable(&self, request: &Request) -> bool {
        self.durable_streams.checked_shr(request.stream.into()).unwrap_or(0) & 1 == 1
    }

    /// A write that is durable when it completes: it crosses the interface, then waits for the
    /// device. What it replaces goes; what it leaves of a line is written back before.
    #[cold]
    fn write_through<W: Watch>(
        &mut self,
        now: u64,
        request: &Request,
        (first, end): (u64, u64),
        watch: &mut W,
    ) -> u64 {
        self.counts.durable_writes += 1;
        let line = 1u64 << self.line_shift;
        let last = request.offset.0 + u64::from(request.len);
        let whole = request.offset.0.is_multiple_of(line) && last.is_multiple_of(line);
        let ready = if whole { now } else { self.destage_between(now, first, end, watch) };
        self.discard(first, end);
        let arrived = self.hit(now, request.len, watch);
        let done = self.forward_after(now, ready, request, watch);
        done + (arrived - now)
    }

    /// A write larger than the cache goes straight to the device and leaves no line behind.
    fn bypass<W: Watch>(
        &mut self,
        now: u64,
        request: &Request,
        (first, end): (u64, u64),
        watch: &mut W,
    ) -> u64 {
        self.counts.bypassed_writes += 1;
        self.discard(first, end);
        watch.forward(&mut self.behind, Nanos(now), request).0
    }

    #[inline]
    fn read<W: Watch>(&mut self, now: u64, request: &Request, watch: &mut W) -> u64 {
        let (first, end) = self.span(request);
        let mut present = u64::from(self.lines.find(first).is_some());
        if end - first > 1 {
            let rest = first + 1..end;
            present += rest.filter(|&line| self.lines.find(line).is_some()).count() as u64;
        }
        if present == end - first {
            self.counts.read_hits += 1;
            return self.hit(now, request.len, watch);
        }
        self.counts.read_misses += 1;
        if present == 0 {
            return watch.forward(&mut self.behind, Nanos(now), request).0;
        }
        let ready = self.destage_between(now, first, end, watch);
        self.forward_after(now, ready, request, watch)
    }

    /// Submits a request to the device behind that does not complete before `ready`, when what it
    /// needs of the cache has been written back.
    fn forward_after<W: Watch>(
        &mut self,
        now: u64,
        ready: u64,
        request: &Request,
        watch: &mut W,
    ) -> u64 {
        let completion = watch.forward(&mut self.behind, Nanos(now), request).0;
        watch.spend(Cause::Destage, ready.saturating_sub(completion));
        completion.max(ready)
    }

    /// Destages what is dirty of the lines from `first` up to but not including `end`, and says
    /// when that completes.
    #[cold]
    fn destage_between<W: Watch>(&mut self, now: u64, first: u64, end: u64, watch: &mut W) -> u64 {
        let mut ready = now;
        for line in first..end {
            let Some(slot) = self.lines.find(line) else { continue };
            if self.lines.state(slot) == State::Dirty {
                ready = ready.max(self.destage_around(now, slot, watch));
            }
        }
        ready
    }

    fn flush<W: Watch>(&mut self, now: u64, request: &Request, watch: &mut W) -> u64 {
        if self.protected {
            return self.hit(now, 0, watch);
        }
        let in_flight = self.lines.has_in_flight();
        let mut drained = if in_flight { now.max(self.destage_until) } else { now };
        while self.lines.dirty() > 0 {
            drained = drained.max(self.destage(now, watch));
        }
        self.draining = false;
        self.forward_after(now, drained, request, watch)
    }

    /// Apart, so that reads and writes are told apart by one comparison and not by a jump table.
    #[cold]
    #[inline(never)]
    fn command<W: Watch>(&mut self, now: u64, request: &Request, watch: &mut W) -> u64 {
        if request.op == Op::Flush {
            self.flush(now, request, watch)
        } else {
            self.trim(now, request, watch)
        }
    }

    fn trim<W: Watch>(&mut self, now: u64, request: &Request, watch: &mut W) -> u64 {
        let (first, end) = self.span(request);
        self.discard(first, end);
        watch.forward(&mut self.behind, Nanos(now), request).0
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

    /// Destages the least recently written dirty line and its neighbours at `now`, and says when
    /// that completes.
    fn destage<W: Watch>(&mut self, now: u64, watch: &mut W) -> u64 {
        let slot = self.lines.oldest_dirty().expect("a destage needs a dirty line");
        self.destage_around(now, slot, watch)
    }

    fn destage_around<W: Watch>(&mut self, now: u64, slot: u32, watch: &mut W) -> u64 {
        // Landing is put off until something else is sent or a line is wanted.
        if self.destage_until <= now {
            self.lines.land();
        }
        let line = self.lines.key(slot);
        let dirty = |lines: &Lines, line: u64| {
            lines.find(line).filter(|&slot| lines.state(slot) == State::Dirty)
        };
        let mut first = line;
        while line - first + 1 < self.coalesce_lines
            && first > 0
            && dirty(&self.lines, first - 1).is_some()
        {
            first -= 1;
        }
        let mut end = line + 1;
        while end - first < self.coalesce_lines && dirty(&self.lines, end).is_some() {
            end += 1;
        }
        let count = end - first;
        if count == 1 {
            self.lines.send(slot);
        } else {
            for line in first..end {
                let slot = dirty(&self.lines, line).expect("just looked up");
                self.lines.send(slot);
            }
        }
        self.counts.destages += 1;
        self.counts.destaged_lines += count;
        let request = Request {
            due: Nanos(now),
            offset: Bytes(first << self.line_shift),
            len: (count << self.line_shift) as u32,
            op: Op::Write,
            stream: DESTAGE_STREAM,
        };
        let completion =
            watch.background(&mut self.behind, Nanos(now), &request, Purpose::Destage).0;
        self.destage_until = self.destage_until.max(completion);
        completion
    }

    /// From when on the background has something to do, seen from a request at `now`: at once and
    /// one destage at a time while it drains, after a pause while anything is dirty, else never.
    #[inline]
    fn next_background(&self, now: u64) -> u64 {
        let dirty = self.lines.dirty();
        if self.draining || dirty > self.high_lines {
            return now.max(self.destage_until);
        }
        if dirty > 0 {
            now.saturating_add(self.idle_after_ns).max(self.destage_until)
        } else {
            NEVER
        }
    }

    /// Does what the background did until `now`. What starts at `now` or later cannot be told from
    /// what the request at `now` causes, and is left to the next call.
    #[cold]
    #[inline(never)]
    fn run_background<W: Watch>(&mut self, now: u64, watch: &mut W) {
        while self.background_at < now {
            let dirty = self.lines.dirty();
            self.draining = dirty > if self.draining { self.low_lines } else { self.high_lines };
            let is_idle = self.background_at >= self.idle_from;
            if dirty == 0 || !(self.draining || is_idle) {
                // The low watermark is reached; what is left waits for a pause.
                self.background_at =
                    if dirty > 0 { self.idle_from.max(self.destage_until) } else { NEVER };
                continue;
            }
            // Whatever is on its way has arrived by then, and lands.
            self.destage(self.background_at, watch);
            self.background_at = self.destage_until;
        }
    }

    #[inline]
    fn serve<W: Watch>(&mut self, now: u64, request: &Request, watch: &mut W) -> u64 {
        if self.background_at < now {
            self.run_background(now, watch);
        }
        let completion = match request.op {
            Op::Read => self.read(now, request, watch),
            Op::Write => self.write(now, request, watch),
            _ => self.command(now, request, watch),
        };
        self.idle_from = now.saturating_add(self.idle_after_ns);
        self.background_at = self.next_background(now);
        completion
    }
}

/// Later than any event.
const NEVER: u64 = u64::MAX;

/// The stream of destages: they are one flow of writes, whatever streams the data came from.
const DESTAGE_STREAM: u16 = 0;

impl<D: Device> Device for WriteCache<D> {
    submit_by_serving!();

    fn snapshot(&self) -> Option<Vec<u8>> {
        let mut to = SnapshotWriter::new("cache", self.fingerprint);
        to.block(&self.behind.snapshot()?);
        self.lines.save(&mut to);
        self.ports.save(&mut to);
        to.u64s(&self.counts.numbers());
        to.u64s(&[u64::from(self.draining), self.destage_until, self.clean_from]);
        to.u64s(&[self.idle_from, self.background_at]);
        Some(to.finish())
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let mut from = SnapshotReader::new(bytes, "cache", self.fingerprint)?;
        self.behind.restore(from.block()?)?;
        self.lines.load(&mut from)?;
        self.ports.load(&mut from)?;
        self.counts = Counts::from_numbers(from.array()?);
        let [draining, destage_until, clean_from] = from.array()?;
        let [idle_from, background_at] = from.array()?;
        self.draining = draining != 0;
        (self.destage_until, self.clean_from) = (destage_until, clean_from);
        (self.idle_from, self.background_at) = (idle_from, background_at);
        from.finish()
    }

    fn capacity(&self) -> Option<Bytes> {
        self.behind.capacity()
    }

    fn counters(&self) -> Vec<Counter> {
        let mut all = self.counts.counters(self.lines.dirty());
        all.extend(self.behind.counters());
        all
    }
}
