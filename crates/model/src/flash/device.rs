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

use trace::{Op, Request, Trace};
use units::{Bytes, Nanos};

use super::allocation::{Dynamic, Static};
use super::gc::{Greedy, PolicyContext};
use super::mapping::block::{Bast, Fast, Replacement};
use super::mapping::{BlockMapped, Mapping, PageMapped, PageWrite, Translation};
use super::nand::Nand;
use super::snapshot::{Reader, Writer};
use super::{AllocationScheme, Counts, Error, EventFlash, FlashParameters, GcPolicy, Wear};
use crate::{Counter, Device};

/// Requests whose map entries are loaded together: enough misses to keep memory busy, few enough
/// to stay in the first-level cache.
const AHEAD: usize = 32;

/// A flash device with translation layer `M`.
#[derive(Clone, Debug)]
pub struct Flash<M> {
    mapping: M,
    nand: Nand,
    page_shift: u32,
    page_bytes: u32,
    capacity_bytes: u64,
    overhead_ns: u64,
    /// When everything written so far is in the cells.
    written_at: u64,
    requests: u64,
    host_written_bytes: u64,
    host_read_bytes: u64,
    cycles_most: Option<u32>,
    fingerprint: u64,
}

/// A flash device whatever its rooms are: what [`build`] gives.
pub trait FlashDevice: Device {
    /// Counts in pages and blocks.
    fn counts(&self) -> &Counts;
    /// Starts counting anew; wear goes on.
    fn reset_counts(&mut self);
    /// Erase counts and remaining life.
    fn wear(&self) -> Wear;
    /// The physical page of a logical one, where it was written.
    fn locate(&self, lpn: u32) -> Option<u32>;
    /// Free blocks.
    fn free_blocks(&self) -> u64;
    /// The whole state as bytes.
    fn snapshot(&self) -> Vec<u8>;
    /// Takes over the state that [`FlashDevice::snapshot`] gave of an equal device.
    ///
    /// # Errors
    /// Where the bytes are damaged or of a device with other parameters. The state of this one is
    /// then undefined but safe: make another.
    fn restore(&mut self, snapshot: &[u8]) -> Result<(), Error>;
    /// Verifies everything that must hold between requests; visits every page.
    ///
    /// # Panics
    /// Where it does not.
    fn audit(&self);
}

/// Makes the device of `parameters`, empty; `seed` decides every random choice.
///
/// # Errors
/// Where no such device can exist.
pub fn build(parameters: &FlashParameters, seed: u64) -> Result<Box<dyn FlashDevice>, Error> {
    parameters.check()?;
    match parameters.translation {
        Translation::Page => {}
        Translation::Block { width, open } => {
            return Ok(blockwise(parameters, width, seed, |n| Replacement::new(n, open)));
        }
        Translation::Bast { width, logs } => {
            return Ok(blockwise(parameters, width, seed, |n| Bast::new(n, logs)));
        }
        Translation::Fast { width, logs } => {
            return Ok(blockwise(parameters, width, seed, |n| Fast::new(n, logs)));
        }
    }
    let context = PolicyContext { geometry: &parameters.geometry, seed };
    Ok(match parameters.gc.policy {
        GcPolicy::Greedy => with_victims(parameters, Greedy::new(&context), seed),
    })
}

/// A device that maps whole blocks; `layer` makes its layer for so many logical blocks.
fn blockwise<L: super::mapping::block::Layer + 'static>(
    parameters: &FlashParameters,
    width: u32,
    seed: u64,
    layer: impl FnOnce(usize) -> L,
) -> Box<dyn FlashDevice> {
    Box::new(Flash::new(parameters, BlockMapped::new(parameters, width, layer), seed))
}

fn with_victims<V: super::gc::Victim + 'static>(
    parameters: &FlashParameters,
    victims: V,
    seed: u64,
) -> Box<dyn FlashDevice> {
    if let Some(events) = &parameters.events {
        return Box::new(EventFlash::new(parameters, events, victims, seed));
    }
    let geometry = &parameters.geometry;
    match parameters.allocation {
        AllocationScheme::Static(order) => {
            let allocation = Static::new(geometry, order);
            Box::new(Flash::new(parameters, PageMapped::new(parameters, victims, allocation), seed))
        }
        AllocationScheme::RoundRobin | AllocationScheme::Dynamic => {
            let by_load = parameters.allocation == AllocationScheme::Dynamic;
            let allocation = Dynamic::new(geometry, by_load);
            Box::new(Flash::new(parameters, PageMapped::new(parameters, victims, allocation), seed))
        }
    }
}

impl<M: Mapping> Flash<M> {
    /// The device of `parameters` with translation layer `mapping`, which is empty; `seed` is what
    /// the layer was made with.
    pub fn new(parameters: &FlashParameters, mapping: M, seed: u64) -> Self {
        let page_bytes = parameters.geometry.page_bytes;
        let text = format!("{parameters:?} {seed}");
        let mix = |sum: u64, byte: u8| stats::rng::mix(sum.rotate_left(7) ^ u64::from(byte));
        Self {
            mapping,
            nand: Nand::new(&parameters.geometry, &parameters.timing, parameters.gc.copy_back),
            page_shift: page_bytes.trailing_zeros(),
            page_bytes,
            capacity_bytes: u64::from(parameters.logical_pages) * u64::from(page_bytes),
            overhead_ns: parameters.overhead_ns,
            written_at: 0,
            requests: 0,
            host_written_bytes: 0,
            host_read_bytes: 0,
            cycles_most: parameters.wear.cycles_most,
            fingerprint: text.bytes().fold(0, mix),
        }
    }

    /// The translation layer.
    pub fn mapping(&self) -> &M {
        &self.mapping
    }

    /// Serves one request of whatever kind at `now`; gives its completion.
    #[inline]
    fn serve(&mut self, now: u64, op: Op, (offset, len): (u64, u32), stream: u16) -> u64 {
        self.requests += 1;
        let end = offset.saturating_add(u64::from(len));
        assert!(end <= self.capacity_bytes, "a request ends at {end}, beyond the capacity");
        let in_page = offset as u32 & (self.page_bytes - 1);
        let done = match op {
            Op::Read if len == self.page_bytes && in_page == 0 => {
                self.host_read_bytes += u64::from(len);
                self.mapping.read(&mut self.nand, now, (offset >> self.page_shift) as u32, len)
            }
            Op::Write if len == self.page_bytes && in_page == 0 => {
                self.host_written_bytes += u64::from(len);
                let lpn = (offset >> self.page_shift) as u32;
                let write = PageWrite { lpn, bytes: len, stream };
                let done = self.mapping.write(&mut self.nand, now, write);
                self.written_at = self.written_at.max(done);
                done
            }
            _ => self.serve_any(now, op, (offset, len), stream),
        };
        done + self.overhead_ns
    }

    fn serve_any(&mut self, now: u64, op: Op, (offset, len): (u64, u32), stream: u16) -> u64 {
        let end = offset + u64::from(len);
        match op {
            Op::Flush => self.written_at.max(now),
            Op::Trim => {
                let whole = offset.div_ceil(u64::from(self.page_bytes))..end >> self.page_shift;
                whole.for_each(|lpn| self.mapping.trim(lpn as u32));
                now
            }
            Op::Read => {
                self.host_read_bytes += u64::from(len);
                self.pages(offset, end).fold(now, |done, (lpn, bytes)| {
                    done.max(self.mapping.read(&mut self.nand, now, lpn, bytes))
                })
            }
            Op::Write => {
                self.host_written_bytes += u64::from(len);
                let done = self.pages(offset, end).fold(now, |done, (lpn, bytes)| {
                    let write = PageWrite { lpn, bytes, stream };
                    done.max(self.mapping.write(&mut self.nand, now, write))
                });
                self.written_at = self.written_at.max(done);
                done
            }
        }
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
    #[inline]
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos {
        let bytes = (request.offset.0, request.len);
        Nanos(self.serve(now.0, request.op, bytes, request.stream))
    }

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
                *completion = self.serve(due, op, (offset, len), stream);
            }
        }
    }

    fn capacity(&self) -> Option<Bytes> {
        Some(Bytes(self.capacity_bytes))
    }

    fn counters(&self) -> Vec<Counter> {
        let counts = self.mapping.counts();
        let page = u64::from(self.page_bytes);
        let wear = self.wear();
        let counter = |name, value| Counter { name, value };
        vec![
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
            counter("free_blocks", self.free_blocks()),
            counter("retired_blocks", u64::from(wear.retired_blocks)),
            counter("most_worn_block_erases", u64::from(wear.erases_max)),
        ]
    }
}

impl<M: Mapping> FlashDevice for Flash<M> {
    fn counts(&self) -> &Counts {
        self.mapping.counts()
    }

    fn reset_counts(&mut self) {
        self.mapping.reset_counts();
        (self.requests, self.host_written_bytes, self.host_read_bytes) = (0, 0, 0);
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

    fn snapshot(&self) -> Vec<u8> {
        let mut to = Writer::new(self.fingerprint);
        self.mapping.save(&mut to);
        self.nand.save(&mut to);
        for value in [self.written_at, self.requests, self.host_written_bytes, self.host_read_bytes]
        {
            to.u64(value);
        }
        to.finish()
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), Error> {
        let mut from = Reader::new(snapshot, self.fingerprint)?;
        self.mapping.load(&mut from)?;
        self.nand.load(&mut from)?;
        for value in [
            &mut self.written_at,
            &mut self.requests,
            &mut self.host_written_bytes,
            &mut self.host_read_bytes,
        ] {
            *value = from.u64()?;
        }
        from.finish()
    }

    fn audit(&self) {
        self.mapping.audit();
    }
}
