//! What the block layer really issued to the disk, as root, through tracefs.
//!
//! Two tracepoints in a tracefs instance of our own, `block_rq_issue` and `block_rq_complete`,
//! filtered to the disk, read as binary pages every 20 ms. The sysfs `blk` tracer would do too, but
//! it exists once per machine (in the top instance, so it disturbs and is disturbed by other
//! tracing), costs the traced program three times as much per I/O, and carries no exact count of
//! losses; an instance has buffers and per-processor loss counters of its own, and works under
//! kernel lockdown. Kernel documentation: trace/ftrace.rst, trace/events.rst,
//! trace/ring-buffer-design.rst.
//!
//! Where tracefs is not mounted, the collector thread mounts it in a mount namespace of its own:
//! nothing of that outlives the thread. The instance is removed at the end, on drop and on panic;
//! one left behind by a killed process is removed by the next capture.
//!
//! Invariants: every request in the trace was issued and completed within the capture; `losses`
//! counts what the kernel dropped plus what our own limit dropped.

pub(crate) mod fiemap;
pub(crate) mod join;
mod points;

use std::path::Path;

use trace::{Origin, Stream, Trace};

use crate::device::{self, Device};
use crate::diskstats::{DiskCounter, DiskStats};
use crate::sqlite::{FileClass, FileInfo};
use crate::tracefs::Collector;
use crate::{Error, Unavailable};
use fiemap::Extents;
use join::{Joined, Paired};
use points::BlockReader;

/// What the block layer did.
#[derive(Clone, Debug, PartialEq)]
pub struct Physical {
    /// All requests of the whole disk, by any program: offsets are bytes on the disk, service
    /// times are measured from issue to completion. Streams are the file classes and `other`
    /// (file-system journal and metadata, other files, other programs). `actor` is a queue slot:
    /// requests of one slot do not overlap.
    pub trace: Trace,
    /// Requests that the trace lacks: events dropped by the kernel or by our own limit.
    pub losses: u64,
    /// Requests in flight at the start or the end, left out of the trace.
    pub unpaired: u64,
    /// The disk's own counters over the same interval, where they could be read.
    pub stats: Option<DiskStats>,
}

/// A running capture.
pub struct BlockCapture {
    collector: Collector<BlockReader>,
    device: Device,
    counter: Option<DiskCounter>,
}

/// Whether [`start`] would work for the disk under `directory`: tried, and undone.
pub fn availability(directory: &Path) -> Result<(), Unavailable> {
    start(directory).map(drop)
}

/// Starts to capture the requests of the disk under `directory`.
pub fn start(directory: &Path) -> Result<BlockCapture, Unavailable> {
    let device = device::of(directory).map_err(|error| {
        Unavailable::new(error.to_string(), "Put the database on a local disk.")
    })?;
    start_on(device)
}

/// Starts to capture the requests of the disk that a device node names.
///
/// # Errors
/// No such device, or a kernel that does not let us.
pub fn start_device(node: &Path) -> Result<BlockCapture, Error> {
    let device = device::named(node)?;
    let what = device.name.clone();
    start_on(device).map_err(|no| Error::Target { what, cause: no.reason, hint: no.remedy })
}

fn start_on(device: Device) -> Result<BlockCapture, Unavailable> {
    let collector = points::collect(device.number)?;
    let counter = DiskCounter::of(device.clone()).ok();
    Ok(BlockCapture { collector, device, counter })
}

impl BlockCapture {
    /// Name of the disk, such as `vda`.
    pub fn device(&self) -> &str {
        &self.device.name
    }

    /// Zero of the trace's time, ns of CLOCK_MONOTONIC.
    pub fn origin_ns(&self) -> u64 {
        self.collector.origin_ns()
    }

    /// Ends the capture. Requests are attributed to the classes of `files` by where the files lie
    /// on the disk now, so call this while they still exist: blocks of a file that is gone count
    /// as `other`.
    pub fn finish(self, files: &[FileInfo]) -> Physical {
        let raw = self.into_raw();
        let mut extents = Extents::default();
        let mut unmapped = Vec::new();
        for file in files.iter().filter(|file| file.path.is_absolute()) {
            let class = file.class as u16;
            if let Err(error) = extents.add(&file.path, class, raw.device.partition_start) {
                unmapped.push(format!("{}: {error}", file.path.display()));
            }
        }
        let streams = raw.requests.iter().map(|request| {
            let owner = extents.class_at(request.offset).filter(|_| request.len > 0);
            owner.unwrap_or(OTHER)
        });
        let streams: Vec<u16> = streams.collect();
        let names = FileClass::ALL.iter().map(|class| class.name()).chain(["other"]);
        let mut physical = raw.attributed(&streams, names);
        if !unmapped.is_empty() {
            let facts = &mut physical.trace.origin.facts;
            facts.insert("counted_as_other".to_owned(), unmapped.join("; "));
        }
        physical
    }

    /// Ends the capture; all requests are in one stream, for nothing is known of any files.
    pub fn finish_whole(self) -> Physical {
        let raw = self.into_raw();
        let streams = vec![0; raw.requests.len()];
        raw.attributed(&streams, std::iter::once("disk"))
    }

    /// Ends the capture, before anything is attributed.
    pub(crate) fn into_raw(self) -> Raw {
        let stats = self.counter.as_ref().and_then(|counter| counter.so_far().ok());
        let origin_ns = self.collector.origin_ns();
        let collected = self.collector.finish();
        let Paired { requests, unpaired } = join::join(collected.events);
        let (device, losses) = (self.device, collected.losses);
        Raw { device, requests, losses, unpaired, stats, origin_ns }
    }
}

/// What the block layer did, not yet attributed.
pub(crate) struct Raw {
    pub device: Device,
    pub requests: Vec<Joined>,
    losses: u64,
    unpaired: u64,
    stats: Option<DiskStats>,
    origin_ns: u64,
}

impl Raw {
    /// Puts each request into its stream, of those named.
    pub(crate) fn attributed<'a>(
        self,
        streams: &[u16],
        names: impl Iterator<Item = &'a str>,
    ) -> Physical {
        let names = names.map(|name| Stream { name: name.to_owned() }).collect();
        let trace = to_trace(&self.requests, streams, names, self.origin_ns);
        let Self { device, losses, unpaired, stats, origin_ns, .. } = self;
        let mut physical = Physical { trace, losses, unpaired, stats };
        let facts = &mut physical.trace.origin.facts;
        facts.insert("device".to_owned(), device.name);
        facts.insert("lost".to_owned(), losses.to_string());
        facts.insert("unpaired".to_owned(), unpaired.to_string());
        facts.insert("origin_monotonic_ns".to_owned(), origin_ns.to_string());
        physical
    }
}

/// Index of the stream `other`.
const OTHER: u16 = FileClass::ALL.len() as u16;

fn to_trace(requests: &[Joined], streams: &[u16], names: Vec<Stream>, origin_ns: u64) -> Trace {
    let source = "block layer: block_rq_issue and block_rq_complete of the whole disk, by tracefs";
    let mut trace = Trace {
        streams: names,
        origin: Origin {
            layer: "device".to_owned(),
            source: source.to_owned(),
            ..Origin::default()
        },
        service: Some(Vec::new()),
        chains: Some(trace::Chains::default()),
        ..Trace::default()
    };
    let slots = join::slots(requests);
    for ((request, stream), slot) in requests.iter().zip(streams).zip(slots) {
        let service = units::Nanos(request.end_ns - request.start_ns);
        let request = request.to_request(origin_ns, *stream);
        trace.push_captured(request, service, slot, 0);
    }
    trace
}
