//! From events of files to traces over one linear address space.
//!
//! Each file class has a region of its own, in the order of [`FileClass::ALL`]; within it the
//! files follow each other. Every file and every region begins on a 1 MiB boundary, so that
//! alignment within a file is alignment in the trace. The table is in `origin.facts` too.
//!
//! Invariants: a request lies inside its file's range; both traces are sorted by due time, then by
//! actor; requests that started before the interval are not in it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use trace::{Chains, Op, Origin, Request, Stream, Trace};
use units::{Bytes, Nanos};

use super::files::{self, FileClass};
use super::page_cache::PageCache;
use super::recorder::{Event, Layer};

/// Regions and files begin on a multiple of it, bytes.
const REGION_ALIGN: u64 = 1 << 20;

/// Who does the I/O of the database's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IoMode {
    /// Past the page cache (O_DIRECT): every I/O reaches the device, no root needed.
    #[default]
    Direct,
    /// SQLite's own unix VFS, page cache and all.
    Buffered,
}

/// What a session captured.
#[derive(Clone, Debug, PartialEq)]
pub struct Captured {
    /// What SQLite asked of the file system, sorted by due time; streams are file classes.
    pub logical: Trace,
    /// What reached the device, or would have (see `origin.source`), in the same address space.
    pub device: Trace,
    /// What reached the device since the session began, its zero of time; where that was kept.
    pub from_start: Option<Trace>,
    /// Events that the traces lack, because the event limit was reached.
    pub losses: u64,
    /// The files, and where each lies in the traces' address space.
    pub files: Vec<FileInfo>,
    /// Who really did the I/O.
    pub io_mode: IoMode,
    /// Transaction type of each request of `logical`, as [`super::Context::kind`] gave it.
    pub kinds: Vec<u8>,
    /// Number and type of every transaction that did something on storage since the earliest event
    /// that was kept, in the order of the numbers.
    pub transactions: Vec<(u32, u8)>,
}

/// One file of the database in the traces' address space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileInfo {
    /// What it holds: also its stream in the traces (position in [`FileClass::ALL`]).
    pub class: FileClass,
    /// Where it is, or was; temporary files have no path but a number.
    pub path: PathBuf,
    /// First byte of its range in the traces.
    pub base_offset: u64,
    /// Most bytes it was seen to have.
    pub size: u64,
}

/// What a session knows at its end.
pub(super) struct Interval {
    pub events: Vec<Event>,
    /// The same events and earlier ones, and where their time begins.
    pub start: Option<(Vec<Event>, u64)>,
    pub losses: u64,
    pub origin_ns: u64,
    pub io: IoMode,
    pub fallback: Option<String>,
    pub preallocate: Bytes,
    pub session: u64,
}

/// A file that events may name.
struct Placed {
    index: u16,
    info: FileInfo,
}

/// Lays the files out and turns the events into traces.
pub(super) fn build(mut interval: Interval) -> Captured {
    let mut events = std::mem::take(&mut interval.events);
    let mut start = interval.start.take();
    let since = |events: &mut Vec<Event>, origin_ns: u64| {
        events.retain(|event| event.start >= origin_ns);
        events.sort_by_key(|event| (event.start, event.actor, event.layer as u8));
    };
    since(&mut events, interval.origin_ns);
    if let Some((earlier, origin_ns)) = &mut start {
        since(earlier, *origin_ns);
    }
    // One layout for both.
    let kept = start.as_ref().map_or(&events, |(all, _)| all);
    let placed = place(kept, interval.session);
    let of_transactions = kept.iter().filter(|event| event.transaction != 0);
    let transactions: BTreeMap<u32, u8> =
        of_transactions.map(|event| (event.transaction, event.kind)).collect();
    let at: BTreeMap<u16, usize> =
        placed.iter().enumerate().map(|(place, file)| (file.index, place)).collect();
    let mut logical = empty(&interval, "logical", LOGICAL_SOURCE.to_owned(), &placed);
    let mut kinds = Vec::new();
    let infos: Vec<&FileInfo> = placed.iter().map(|file| &file.info).collect();
    let located = |event: &Event| infos[at[&event.file]];
    for event in events.iter().filter(|event| event.layer == Layer::Logical) {
        let before = logical.count();
        add(&mut logical, event, located(event), interval.origin_ns);
        kinds.resize(kinds.len() + logical.count() - before, event.kind);
    }
    let direct = |events: &[Event], origin_ns: u64| {
        let mut device = empty(&interval, "device", DIRECT_SOURCE.to_owned(), &placed);
        for event in events.iter().filter(|event| event.layer == Layer::Device) {
            add(&mut device, event, located(event), origin_ns);
        }
        device
    };
    let start = start.filter(|_| interval.io == IoMode::Direct);
    let from_start = start.map(|(events, origin_ns)| direct(&events, origin_ns));
    let device = if interval.io == IoMode::Direct {
        direct(&events, interval.origin_ns)
    } else {
        let mut device = empty(&interval, "device", DERIVED_SOURCE.to_owned(), &placed);
        (device.service, device.chains) = (None, None);
        PageCache::default().derive(&logical, &infos, &mut device);
        device
    };
    let files = placed.into_iter().map(|file| file.info).collect();
    let losses = interval.losses;
    let (io_mode, transactions) = (interval.io, transactions.into_iter().collect());
    Captured { logical, device, from_start, losses, files, io_mode, kinds, transactions }
}

const LOGICAL_SOURCE: &str = "SQLite VFS: calls of SQLite to its file system layer";
const DIRECT_SOURCE: &str =
    "SQLite VFS: O_DIRECT requests and flushes as issued to the kernel, page cache bypassed";
const DERIVED_SOURCE: &str = "derived: write-back page-cache model over the logical trace (4 KiB \
     pages, cold at the start, never evicting; first touch of a page reads it, a sync writes the \
     file's dirty pages in address order and flushes); times are those of the logical calls";

/// Files of this session with their ranges.
fn place(events: &[Event], session: u64) -> Vec<Placed> {
    let mut extents: BTreeMap<u16, u64> = BTreeMap::new();
    for event in events {
        let extent = extents.entry(event.file).or_default();
        *extent = (*extent).max(event.offset + event.len);
    }
    let table = files::table();
    let mut placed = Vec::new();
    for (index, entry) in table.entries.iter().enumerate() {
        let index = index as u16;
        let touched = extents.remove(&index);
        if touched.is_none() && entry.session != session {
            continue;
        }
        let now = std::fs::metadata(&entry.path).map_or(0, |metadata| metadata.len());
        let size = entry.size.max(now).max(touched.unwrap_or(0));
        let (class, path, base_offset) = (entry.class, entry.path.clone(), 0);
        placed.push(Placed { index, info: FileInfo { class, path, base_offset, size } });
    }
    // Files beyond the table's range share one entry.
    for (index, extent) in extents {
        let (class, path) = (FileClass::Temp, PathBuf::from("others"));
        let (base_offset, size) = (0, extent);
        placed.push(Placed { index, info: FileInfo { class, path, base_offset, size } });
    }
    placed.sort_by(|a, b| (a.info.class, &a.info.path).cmp(&(b.info.class, &b.info.path)));
    let mut base = 0;
    for file in &mut placed {
        file.info.base_offset = base;
        // One block of room: a direct request covers the whole last block.
        base += (file.info.size + 4096).next_multiple_of(REGION_ALIGN);
    }
    placed
}

fn empty(interval: &Interval, layer: &str, source: String, placed: &[Placed]) -> Trace {
    let mut facts = BTreeMap::new();
    let mode = if interval.io == IoMode::Direct { "direct" } else { "buffered" };
    facts.insert("io_mode".to_owned(), mode.to_owned());
    facts.insert("lost".to_owned(), interval.losses.to_string());
    facts.insert("origin_monotonic_ns".to_owned(), interval.origin_ns.to_string());
    facts.insert("preallocate_bytes".to_owned(), interval.preallocate.0.to_string());
    if let Some(reason) = &interval.fallback {
        facts.insert("buffered_because".to_owned(), reason.clone());
    }
    for (number, file) in placed.iter().enumerate() {
        let FileInfo { class, path, base_offset, size } = &file.info;
        let line = format!("{} {} {} {}", class.name(), base_offset, size, path.to_string_lossy());
        facts.insert(format!("file.{number}"), line);
    }
    Trace {
        streams: FileClass::ALL.iter().map(|class| Stream { name: class.name().into() }).collect(),
        service: Some(Vec::new()),
        chains: Some(Chains::default()),
        origin: Origin { layer: layer.to_owned(), source, facts },
        ..Trace::default()
    }
}

/// Longest request that a trace entry can say, kept to whole pages.
const LONGEST: u64 = (u32::MAX as u64) & !4095;

/// Appends an event; one longer than a request can be (a truncation) becomes several.
fn add(trace: &mut Trace, event: &Event, file: &FileInfo, origin_ns: u64) {
    if event.op == Op::Trim && event.len == 0 {
        return;
    }
    let mut done = 0;
    loop {
        let len = (event.len - done).min(LONGEST);
        let flush = event.op == Op::Flush;
        let request = Request {
            due: Nanos(event.start - origin_ns),
            offset: if flush { Bytes(0) } else { Bytes(file.base_offset + event.offset + done) },
            len: len as u32,
            op: event.op,
            stream: file.class as u16,
        };
        trace.push_captured(request, Nanos(event.duration), event.actor, event.transaction);
        done += len;
        if done >= event.len {
            return;
        }
    }
}
