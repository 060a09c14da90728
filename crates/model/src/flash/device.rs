//! The flash device: requests cut into pages.
//!
//! A request of several pages is complete when the last of its pages is; a write of a part of a
//! page reads the rest first. A page that nobody has written is answered by the controller, without
//! a read. A flush completes when all writes before it have. A trim forgets the pages that it
//! covers wholly.
//!
//! The loop over a trace first loads the map entries of the next requests, all at once, so that
//! their cache misses overlap; on maps of gigabytes that is what the speed comes from.

use std::ops::Range;

use profile::flash::FlashParameters;
use trace::{Op, Request, Trace};
use units::{Bytes, Nanos};

use super::channel::Channel;
use super::mapping::{Mapping, PageRead, PageWrite};
use super::nand::Nand;
use super::snapshot::{Reader, Writer};
use super::{Counts, StreamCounts, Wear, ZoneCounts};
use crate::device::submit_by_serving;
use crate::observe::{Cause, Off, Path, Purpose, Span, Watch};
use crate::snapshot::fingerprint;
use crate::{Counter, Device, SnapshotError};

/// Requests whose map entries are loaded together: enough misses to keep memory busy, few enough
/// to stay in the first-level cache.
const AHEAD: usize = 32;

/// What lies between host and device: one transfer at a time, in the first gap.
#[derive(Clone, Debug)]
struct Interface {
    bus: Channel,
    ps_per_byte: f64,
    command_ps: u64,
}

impl Interface {
    fn new(bytes_per_s: f64, command_ns: u64) -> Self {
        let ps_per_byte = 1e12 / bytes_per_s;
        Self { bus: Channel::new(), ps_per_byte, command_ps: command_ns * 1000 }
    }
}

/// A flash device with translation layer `M`.
#[derive(Clone, Debug)]
pub struct Flash<M> {
    mapping: M,
    nand: Nand,
    page_shift: u32,
    page_bytes: u32,
    capacity_bytes: u64,
    overhead_ns: u64,
    interface: Option<Interface>,
    /// When the request before is done, which the next one waits for; `None` where none waits.
    one_until: Option<u64>,
    behind_cache: bool,
    /// When everything written so far is in the cells.
    written_at: u64,
    requests: u64,
    host_written_bytes: u64,
    host_read_bytes: u64,
    cycles_most: Option<u32>,
    fingerprint: u64,
}

/// A request without its time.
#[derive(Clone, Copy, Debug)]
struct Bare {
    op: Op,
    offset: u64,
    len: u32,
    stream: u16,
}

impl Bare {
    #[inline]
    fn of(request: &Request) -> Self {
        Self { op: request.op, offset: request.offset.0, len: request.len, stream: request.stream }
    }
}

/// The path of a part of a request; its spans are the request's.
pub(super) struct PathApart<'a, W> {
    whole: &'a mut W,
    path: Path,
}

impl<'a, W> PathApart<'a, W> {
    pub(super) fn new(whole: &'a mut W) -> Self {
        Self { whole, path: Path::default() }
    }

    pub(super) fn into_path(self) -> Path {
        self.path
    }
}

impl<W: Watch> Watch for PathApart<'_, W> {
    const ACTIVE: bool = W::ACTIVE;

    #[inline]
    fn spend(&mut self, cause: Cause, ns: u64) {
        if W::ACTIVE {
            self.path.spend(cause, ns);
        }
    }

    #[inline]
    fn follow(&mut self, path: &Path) {
        if W::ACTIVE {
            self.path.add(path);
        }
    }

    #[inline]
    fn span(&mut self, span: Span) {
        self.whole.span(span);
    }

    fn forward<D: Device + ?Sized>(
        &mut self,
        behind: &mut D,
        now: Nanos,
        request: &Request,
    ) -> Nanos {
        self.whole.forward(behind, now, request)
    }

    fn background<D: Device + ?Sized>(
        &mut self,
        behind: &mut D,
        now: Nanos,
        request: &Request,
        purpose: Purpose,
    ) -> Nanos {
        self.whole.background(behind, now, request, purpose)
    }
}

/// A flash device with the mapping, allocation and victim policy that its
/// profile names; made by [`super::build`].
pub trait FlashDevice: Device {
    /// Counts in pages and blocks.
    fn counts(&self) -> &Counts;
    /// Puts an empty device into the state of one whose first pages, a share `fill` of all, were
    /// written once in order, or where `random` over and over at random. Counts and time stay at
    /// zero. `false`, with nothing done, where the model cannot; the device is written to then.
    ///
    /// # Panics
    /// Where the device was written before.
    fn precondition(&mut self, _fill: f64, _random: bool, _seed: u64) -> bool {
        false
    }
    /// Starts counting anew; wear goes on.
    fn reset_counts(&mut self);
    /// Counts by host stream, the last one of what is in no stream; empty where the model has none.
    fn stream_counts(&self) -> Vec<StreamCounts> {
        Vec::new()
    }
    /// What happened at the zones, where the device has some.
    fn zone_counts(&self) -> Option<ZoneCounts> {
        None
    }
    /// Erase counts and remaining life.
    fn wear(&self) -> Wear;
    /// The physical page of a logical one, where it was written.
    fn locate(&self, lpn: u32) -> Option<u32>;
    /// Free blocks.
    fn free_blocks(&self) -> u64;
    /// Verifies everything that must hold between requests; visits every page.
    ///
    /// # Panics
    /// Where it does not.
    fn audit(&self);
}

/// The idle array of `parameters`.
fn nand_of(parameters: &FlashParameters) -> Nand {
    let FlashParameters { geometry, timing, gc, multi_plane, slc, .. } = parameters;
    let nand = Nand::new(geometry, timing, gc.copy_back).with_multi_plane(geometry, *multi_plane);
    match slc {
        Some(slc) => nand.with_slc(slc.read_ns, slc.program_ns),
        None => nand,
    }
}

impl<M: Mapping> Flash<M> {
    /// The device of `parameters` with translation layer `mapping`, which is empty; `seed` is what
    /// the layer was made with.
    pub fn new(parameters: &FlashParameters, mapping: M, seed: u64) -> Self {
        let page_bytes = parameters.geometry.page_bytes;
        Self {
            mapping,
            nand: nand_of(parameters),
            page_shift: page_bytes.trailing_zeros(),
            page_bytes,
            capacity_bytes: u64::from(parameters.logical_pages) * u64::from(page_bytes),
            overhead_ns: parameters.overhead_ns,
            interface: parameters
                .interface_bytes_per_s
                .map(|rate| Interface::new(rate, parameters.interface_command_ns)),
            behind_cache: parameters.behind_cache,
            one_until: parameters.one_at_a_time.then_some(0),
            written_at: 0,
            requests: 0,
            host_written_bytes: 0,
            host_read_bytes: 0,
            cycles_most: parameters.wear.cycles_most,
            fingerprint: fingerprint(&(parameters, seed)),
        }
    }

    /// The translation layer.
    pub fn mapping(&self) -> &M {
        &self.mapping
    }

    /// Serves one request of whatever kind at `now`; gives its completion.
    #[inline]
    fn serve<W: Watch>(&mut self, now: u64, request: Bare, watch: &mut W) -> u64 {
        let Some(until) = self.one_until else { return self.work(now, request, watch) };
        let start = until.max(now);
        watch.spend(Cause::Queue, start - now);
        let done = self.work(start, request, watch);
        self.one_until = Some(done);
        done
    }

    #[inline]
    fn work<W: Watch>(&mut self, now: u64, request: Bare, watch: &mut W) -> u64 {
        self.requests += 1;
        let Bare { op, offset, len, stream } = request;
        let end = offset.saturating_add(u64::from(len));
        assert!(end <= self.capacity_bytes, "a request ends at {end}, beyond the capacity");
        let one_page = len == self.page_bytes && offset as u32 & (self.page_bytes - 1) == 0;
        let lpn = (offset >> self.page_shift) as u32;
        let done = match op {
            Op::Read if one_page => {
                self.host_read_bytes += u64::from(len);
                let read = PageRead { lpn, bytes: len };
                let ready = self.mapping.read(&mut self.nand, now, read, watch);
                self.cross((now, ready), len, watch)
            }
            Op::Write if one_page => {
                self.host_written_bytes += u64::from(len);
                let arrived_ns = self.receive(now, len, watch);
                let write = PageWrite { lpn, bytes: len, stream, arrived_ns };
                let done = self.mapping.write(&mut self.nand, now, write, watch);
                self.written_at = self.written_at.max(done);
                done
            }
            _ => self.serve_any(now, request, watch),
        };
        watch.spend(Cause::Controller, self.overhead_ns);
        done + self.overhead_ns
    }

    fn serve_any<W: Watch>(&mut self, now: u64, request: Bare, watch: &mut W) -> u64 {
        let Bare { op, offset, len, .. } = request;
        let end = offset + u64::from(len);
        match op {
            Op::Flush => {
                let done = self.written_at.max(now);
                watch.spend(Cause::Flush, done - now);
                done
            }
            Op::Trim => {
                let first = offset.div_ceil(u64::from(self.page_bytes)) as u32;
                let pages = first..(end >> self.page_shift) as u32;
                self.nand.join();
                self.mapping.trim_all(&mut self.nand, now, pages, watch);
                self.nand.part();
                now
            }
            Op::Read => {
                self.host_read_bytes += u64::from(len);
                let ready =
                    self.serve_pages(now, (offset, end), watch, |this, lpn, bytes, watch| {
                        this.mapping.read(&mut this.nand, now, PageRead { lpn, bytes }, watch)
                    });
                self.cross((now, ready), len, watch)
            }
            Op::Write => {
                let arrived_ns = self.receive(now, len, watch);
                self.write_pages((now, arrived_ns), request, watch)
            }
        }
    }

    /// Writes the pages of a request whose data arrived.
    fn write_pages<W: Watch>(
        &mut self,
        (now, arrived_ns): (u64, u64),
        Bare { offset, len, stream, .. }: Bare,
        watch: &mut W,
    ) -> u64 {
        self.host_written_bytes += u64::from(len);
        let end = offset + u64::from(len);
        // Their paths begin where the data are there: what came before is the request's.
        let done = self.serve_pages(now, (offset, end), watch, |this, lpn, bytes, watch| {
            let write = PageWrite { lpn, bytes, stream, arrived_ns };
            this.mapping.write(&mut this.nand, now, write, watch)
        });
        self.written_at = self.written_at.max(done);
        done
    }

    /// Serves `request` at `now`, for a layer above.
    pub(super) fn command<W: Watch>(&mut self, now: u64, request: &Request, watch: &mut W) -> u64 {
        self.serve(now, Bare::of(request), watch)
    }

    /// Serves a write asked for at `now` whose data the host has not before `earliest`.
    pub(super) fn write_after<W: Watch>(
        &mut self,
        (now, earliest): (u64, u64),
        request: &Request,
        watch: &mut W,
    ) -> u64 {
        self.requests += 1;
        let arrived_ns = self.cross((now, earliest), request.len, watch);
        let done = self.write_pages((now, arrived_ns), Bare::of(request), watch);
        watch.spend(Cause::Controller, self.overhead_ns);
        done + self.overhead_ns
    }

    /// Forgets what dies, channels and interface are busy with: as idle as `other`.
    pub(super) fn rest_as(&mut self, other: &Self) {
        self.nand = other.nand.clone();
        self.interface.clone_from(&other.interface);
        (self.one_until, self.written_at) = (other.one_until, other.written_at);
    }

    /// Writes the whole state.
    pub(super) fn save(&self, to: &mut Writer) {
        self.mapping.save(to);
        self.nand.save(to);
        if let Some(interface) = &self.interface {
            interface.bus.save(to);
        }
        to.u64(self.one_until.unwrap_or(0));
        for value in [self.written_at, self.requests, self.host_written_bytes, self.host_read_bytes]
        {
            to.u64(value);
        }
    }

    /// Reads back what [`Flash::save`] wrote.
    pub(super) fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        self.mapping.load(from)?;
        self.nand.load(from)?;
        if let Some(interface) = &mut self.interface {
            interface.bus.load(from)?;
        }
        let until = from.u64()?;
        self.one_until = self.one_until.map(|_| until);
        for value in [
            &mut self.written_at,
            &mut self.requests,
            &mut self.host_written_bytes,
            &mut self.host_read_bytes,
        ] {
            *value = from.u64()?;
        }
        Ok(())
    }

    /// When the data of a write are there. What a cache in front destages has crossed the interface
    /// before.
    #[inline]
    fn receive<W: Watch>(&mut self, now: u64, len: u32, watch: &mut W) -> u64 {
        if self.behind_cache { now } else { self.cross((now, now), len, watch) }
    }

    /// Moves a command and its `len` bytes across the interface, asked for at `now` and not before
    /// `ready`; gives the end.
    #[inline]
    fn cross<W: Watch>(&mut self, (now, ready): (u64, u64), len: u32, watch: &mut W) -> u64 {
        let Some(interface) = &mut self.interface else { return ready };
        let ps = (f64::from(len) * interface.ps_per_byte).round() as u64 + interface.command_ps;
        let moved = interface.bus.reserve(now, ready, ps);
        watch.spend(Cause::SharedWait, moved.start - ready);
        watch.spend(Cause::Transfer, moved.end - moved.start);
        moved.end
    }

    /// Serves every page of the bytes `from..end` and gives when the last is done, whose path is
    /// that of the request.
    fn serve_pages<W: Watch>(
        &mut self,
        now: u64,
        (from, end): (u64, u64),
        watch: &mut W,
        serve: impl Fn(&mut Self, u32, u32, &mut PathApart<W>) -> u64,
    ) -> u64 {
        let mut last = (now, Path::default());
        self.nand.join();
        for (lpn, bytes) in self.pages(from, end) {
            let mut page = PathApart::new(watch);
            let done = serve(self, lpn, bytes, &mut page);
            if done > last.0 {
                last = (done, page.path);
            }
        }
        self.nand.part();
        watch.follow(&last.1);
        last.0
    }

    /// The logical pages of the bytes `from..end` and how many bytes of each.
    fn pages(&self, from: u64, end: u64) -> impl Iterator<Item = (u32, u32)> + use<M> {
        let (shift, size) = (self.page_shift, u64::from(self.page_bytes));
        let pages = (from >> shift)..end.div_ceil(size).max(from >> shift);
        pages.map(move |lpn| {
            let start = (lpn << shift).max(from);
            let stop = ((lpn + 1) << shift).min(end);
            (lpn as u32, (stop - start) as u32)
        })
    }
}

impl<M: Mapping> Device for Flash<M> {
    submit_by_serving!(Bare::of);

    fn submit_due(&mut self, trace: &Trace, range: Range<usize>, completions: &mut [u64]) {
        assert_eq!(range.len(), completions.len(), "one completion per request");
        let mut start = range.start;
        for completions in completions.chunks_mut(AHEAD) {
            let batch = start..start + completions.len();
            start = batch.end;
            let offsets = &trace.offset[batch.clone()];
            let touched = offsets.iter().fold(0, |sum, offset| {
                sum ^ self.mapping.touch((offset >> self.page_shift) as u32)
            });
            std::hint::black_box(touched);
            let columns = trace.due[batch.clone()]
                .iter()
                .zip(offsets)
                .zip(&trace.len[batch.clone()])
                .zip(&trace.op[batch.clone()])
                .zip(&trace.stream[batch]);
            for (((((&due, &offset), &len), &op), &stream), completion) in columns.zip(completions)
            {
                *completion = self.serve(due, Bare { op, offset, len, stream }, &mut Off);
            }
        }
    }

    fn snapshot(&self) -> Option<Vec<u8>> {
        let mut to = Writer::new(self.fingerprint);
        self.save(&mut to);
        Some(to.finish())
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let mut from = Reader::new(bytes, self.fingerprint)?;
        self.load(&mut from)?;
        from.finish()
    }

    fn capacity(&self) -> Option<Bytes> {
        Some(Bytes(self.capacity_bytes))
    }

    fn counters(&self) -> Vec<Counter> {
        let counts = self.mapping.counts();
        let page = u64::from(self.page_bytes);
        let wear = self.wear();
        let counter = |name, value| Counter { name, value };
        let streams = self.mapping.stream_counts();
        let reclaim_units = streams.iter().map(|stream| stream.opened_blocks).sum();
        let mut all = vec![
            counter("flash_requests", self.requests),
            counter("host_written_bytes", self.host_written_bytes),
            counter("host_read_bytes", self.host_read_bytes),
            counter("host_programmed_pages", counts.host_pages),
            counter("nand_written_bytes", counts.programmed_pages() * page),
            counter("gc_moved_pages", counts.moved_pages),
            counter("wear_moved_pages", counts.levelled_pages),
            counter("merged_pages", counts.merged_pages),
            counter("unwritten_read_pages", counts.unwritten_pages),
            counter("trimmed_pages", counts.trimmed_pages),
            counter("erased_blocks", counts.erased_blocks),
            counter("victim_blocks", counts.victims),
            counter("in_use_plane_pages", counts.in_use_pages_mean().unwrap_or(0.0).round() as u64),
            counter("reclaim_units_opened", reclaim_units),
            counter("retired_blocks", u64::from(wear.retired_blocks)),
            counter("least_worn_block_erases", u64::from(wear.erases_min)),
            counter("most_worn_block_erases", u64::from(wear.erases_max)),
        ];
        if let Some(cached) = self.mapping.cached_pages() {
            all.push(counter("slc_folded_pages", counts.folded_pages));
            all.push(counter("slc_cached_pages", cached));
        }
        if let Some(zones) = self.mapping.zone_counts() {
            all.push(counter("zone_resets", zones.resets));
            all.push(counter("zone_misplaced_pages", zones.misplaced_pages));
            all.push(counter("zone_over_limit_pages", zones.over_limit_pages));
            all.push(counter("zone_kept_pages", zones.kept_pages));
        }
        all
    }
}

impl<M: Mapping> FlashDevice for Flash<M> {
    fn counts(&self) -> &Counts {
        self.mapping.counts()
    }

    fn precondition(&mut self, fill: f64, random: bool, seed: u64) -> bool {
        assert!(*self.mapping.counts() == Counts::default(), "the device was written before");
        let logical = self.capacity_bytes >> self.page_shift;
        let pages = (logical as f64 * fill.clamp(0.0, 1.0)).round() as u32;
        let mut scratch = self.nand.clone();
        self.mapping.precondition(&mut scratch, pages, random, seed);
        self.mapping.reset_counts();
        true
    }

    fn reset_counts(&mut self) {
        self.mapping.reset_counts();
        (self.requests, self.host_written_bytes, self.host_read_bytes) = (0, 0, 0);
    }

    fn stream_counts(&self) -> Vec<StreamCounts> {
        self.mapping.stream_counts()
    }

    fn zone_counts(&self) -> Option<ZoneCounts> {
        self.mapping.zone_counts()
    }

    fn wear(&self) -> Wear {
        Wear::of(self.mapping.blocks(), self.cycles_most)
    }

    fn locate(&self, lpn: u32) -> Option<u32> {
        self.mapping.locate(lpn)
    }

    fn free_blocks(&self) -> u64 {
        self.mapping.blocks().free_total()
    }

    fn audit(&self) {
        self.mapping.audit();
    }
}
