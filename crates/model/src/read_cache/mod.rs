//! A read cache in front of any device: what was read stays in the device's memory for a while.
//!
//! - A read whose lines are all present is a hit: it takes the hit time on a port, and not before
//!   the lines were fetched. Any other goes to the device as it is, and its lines replace others.
//! - A write goes to the device; lines that it covers stay present, as the controller has had their
//!   data, and no line is made for it.
//! - A trim forgets the lines that it touches. A flush is the device's.
//!
//! Which line is replaced says [`profile::read_cache::ReadPolicy`]. Under independent references
//! LRU misses as Che's approximation says (Che, Tung and Wang, IEEE JSAC 2002): `sum p_i e^(-p_i
//! T)` with the `T` at which `sum (1 - e^(-p_i T))` is the size of the cache. Tested against that,
//! and against an oracle of lists (`tests/it/read_cache.rs`).
//!
//! Invariants: reads = hits + misses; at most as many lines as fit are present.

mod lines;

use profile::read_cache::ReadCacheParameters;
use trace::{Op, Request};
use units::{Bytes, Nanos};

use crate::device::submit_by_serving;
use crate::linear::whole_ns;
use crate::observe::{Activity, Cause, Span, Track, TrackKind, Watch};
use crate::slots::Slots;
use crate::snapshot::{SnapshotReader, SnapshotWriter, fingerprint};
use crate::{Counter, Device, SnapshotError};
use lines::Lines;

/// A read cache over `D`.
#[derive(Clone, Debug)]
pub struct ReadCache<D> {
    behind: D,
    lines: Lines,
    line_shift: u32,
    hit_base_ns: f64,
    hit_ns_per_byte: f64,
    ports: Slots,
    hits: u64,
    misses: u64,
    /// Of the parameters.
    fingerprint: u64,
}

impl<D: Device> ReadCache<D> {
    /// An empty cache in front of `behind`.
    ///
    /// # Panics
    /// Where `line_bytes` is not a power of two; [`profile::Profile::check`] finds that first.
    pub fn new(behind: D, parameters: &ReadCacheParameters) -> Self {
        assert!(parameters.line_bytes.is_power_of_two(), "lines of a power of two");
        let count = (parameters.capacity.0 / u64::from(parameters.line_bytes)).max(1) as usize;
        Self {
            behind,
            lines: Lines::new(count, parameters.policy),
            line_shift: parameters.line_bytes.trailing_zeros(),
            hit_base_ns: parameters.hit_base_ns,
            hit_ns_per_byte: parameters.hit_ns_per_byte,
            ports: Slots::new(parameters.ports as usize),
            hits: 0,
            misses: 0,
            fingerprint: fingerprint(parameters),
        }
    }

    /// Lines that a request touches.
    fn span(&self, request: &Request) -> std::ops::Range<u64> {
        let last = request.offset.0 + u64::from(request.len.max(1)) - 1;
        request.offset.0 >> self.line_shift..(last >> self.line_shift) + 1
    }

    fn serve<W: Watch>(&mut self, now: u64, request: &Request, watch: &mut W) -> u64 {
        match request.op {
            Op::Read => self.read(now, request, watch),
            Op::Trim => {
                for line in self.lines.present_in(self.span(request)) {
                    self.lines.forget(line);
                }
                watch.forward(&mut self.behind, Nanos(now), request).0
            }
            Op::Write | Op::Flush => watch.forward(&mut self.behind, Nanos(now), request).0,
        }
    }

    fn read<W: Watch>(&mut self, now: u64, request: &Request, watch: &mut W) -> u64 {
        let span = self.span(request);
        if span.clone().all(|line| self.lines.holds(line)) {
            self.hits += 1;
            let fetched = span.map(|line| self.lines.touch(line)).max().unwrap_or(now).max(now);
            watch.spend(Cause::SharedWait, fetched - now);
            return self.hit(fetched, request.len, watch);
        }
        self.misses += 1;
        let done = watch.forward(&mut self.behind, Nanos(now), request).0;
        for line in span {
            self.lines.fetch(line, done);
        }
        done
    }

    fn hit<W: Watch>(&mut self, now: u64, len: u32, watch: &mut W) -> u64 {
        let (port, start) = self.ports.start(now);
        let end = start + whole_ns(self.hit_base_ns + self.hit_ns_per_byte * f64::from(len));
        self.ports.occupy(port, end);
        watch.spend(Cause::Queue, start - now);
        watch.spend(Cause::Cache, end - start);
        let track = Track::new(TrackKind::Buffer, port as u32);
        watch.span(Span::new(track, Activity::Hit, start, end));
        end
    }
}

impl<D: Device> Device for ReadCache<D> {
    submit_by_serving!();

    fn snapshot(&self) -> Option<Vec<u8>> {
        let mut to = SnapshotWriter::new("reads", self.fingerprint);
        to.block(&self.behind.snapshot()?);
        self.lines.save(&mut to);
        self.ports.save(&mut to);
        to.u64s(&[self.hits, self.misses]);
        Some(to.finish())
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let mut from = SnapshotReader::new(bytes, "reads", self.fingerprint)?;
        self.behind.restore(from.block()?)?;
        self.lines.load(&mut from)?;
        self.ports.load(&mut from)?;
        [self.hits, self.misses] = from.array()?;
        from.finish()
    }

    fn capacity(&self) -> Option<Bytes> {
        self.behind.capacity()
    }

    fn counters(&self) -> Vec<Counter> {
        let own = [("read_cache_hits", self.hits), ("read_cache_misses", self.misses)];
        let mut all: Vec<Counter> =
            own.into_iter().map(|(name, value)| Counter { name, value }).collect();
        all.extend(self.behind.counters());
        all
    }
}
