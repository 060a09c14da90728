//! The logical I/O of a server as a trace: who asked for which bytes of which file class, when, and
//! how long the call took.
//!
//! The files are laid out in one address space, class after class, each file rounded up to 1 MiB,
//! so that the trace replays into a single file and simulates on a single device. Reads and writes
//! whose offset is not known are put at the start of their file; I/O on descriptors whose file
//! could not be found out goes to a region of its own in the class `other`. Both are counted.
//!
//! Invariants: every call on a file within the capture is in the trace or in `losses`; requests of
//! one actor do not overlap. Tested on real servers (`tests/it/server.rs`) against their counters.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use trace::{Op, Origin, Request, Stream, Trace};
use units::{Bytes, Nanos};

use super::calls;
use super::class::{Class, Server, System};
use super::files::Target;
use super::tasks;
use super::tracker::{Counts, Io, NO_OFFSET, OnProcessor, Sleep, Status, Tracked, Tracker, Turn};
use crate::Unavailable;
use crate::tracefs::Collector;

/// Regions of files begin at multiples of this.
const REGION_BYTES: u64 = 1 << 20;

/// What to watch besides the I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// When messages of clients come in and answers go out, so that waiting for the client can be
    /// told from computing. Costs two more events per round trip.
    pub client_turns: bool,
    /// When tasks sleep until another one wakes them, so that commits that waited for another's
    /// flush are told from requests that committed nothing. Costs two events per such sleep.
    pub waits: bool,
    /// When tasks get a processor and leave it, so that computing is told from waiting for locks
    /// and processors; for some thousand switches from or to a task of the server in each second.
    pub processors: bool,
}

/// A running capture of a server's logical I/O.
pub struct ServerCapture {
    collector: Collector<Tracker>,
    server: Server,
    status: Arc<Status>,
}

/// What a server asked of the file system.
#[derive(Clone, Debug, Default)]
pub struct Logical {
    /// One request per call that moved bytes or flushed. Streams are the classes of
    /// [`Class::ALL`], actors index `actors`, `transaction` is 0 until [`super::attribute`] is
    /// told.
    pub trace: Trace,
    /// Zero of the trace's time, ns of CLOCK_MONOTONIC.
    pub origin_ns: u64,
    /// The tasks that did I/O.
    pub actors: Vec<Actor>,
    /// The files, in the order of their addresses.
    pub files: Vec<ServerFile>,
    /// Events dropped by the kernel or by our own limit.
    pub losses: u64,
    /// Events that were recorded.
    pub events: u64,
    /// What recording an event took the task in which it happened, ns: measured when the capture
    /// began.
    pub event_ns: f64,
    /// Calls under way at the start or the end, left out of the trace.
    pub unpaired: u64,
    /// Calls that failed, left out of the trace.
    pub failed: u64,
    /// Requests for write-back without waiting (`sync_file_range`), left out of the trace.
    pub write_back_hints: u64,
    /// Asynchronous I/Os that were submitted where no tracepoint shows their addresses: the trace
    /// lacks them. MariaDB does this unless `innodb_use_native_aio` is off.
    pub hidden: u64,
    /// I/O on descriptors whose file could not be found out.
    pub unresolved: Unresolved,
    /// Requests of known files whose offset is not known.
    pub offset_unknown: u64,
    pub(super) turns: Vec<Turn>,
    pub(super) sleeps: Vec<Sleep>,
    pub(super) runs: Vec<OnProcessor>,
    pub(super) runs_seen: Vec<(u64, u64)>,
}

/// A task (process or thread) of the server that did I/O.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// Its number.
    pub task: u32,
    /// The process it belongs to.
    pub process: u32,
    /// What it does, in the server's own word: `connection`, `checkpointer`, `walwriter` and so on.
    pub role: String,
}

/// A file of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFile {
    /// Where it was.
    pub path: PathBuf,
    /// What it holds.
    pub class: Class,
    /// Where its bytes begin in the trace's address space.
    pub base_offset: Bytes,
    /// One past the last byte that was seen of it.
    pub size: Bytes,
    /// Number of its file system.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
}

/// I/O on descriptors whose file could not be found out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unresolved {
    /// Calls that only files have; they are in the trace, in class `other`.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Plain reads and writes of something: a file, a pipe or a socket; not in the trace.
    pub perhaps: u64,
    /// Their bytes.
    pub perhaps_bytes: u64,
}

impl ServerCapture {
    /// Starts to capture the I/O of a running server. Processes and threads that it starts later
    /// are followed.
    pub fn start(server: &Server, options: Options) -> Result<Self, Unavailable> {
        let (wanted, points) = calls::list(server.system, options);
        let mains = server.pids();
        let tasks = Box::new(move || tasks::tasks(&mains).into_keys().collect());
        let status = Arc::<Status>::default();
        let tracker = Tracker::new(server.clone(), points, Arc::clone(&status));
        let collector = Collector::start("calls", wanted, Some(tasks), tracker)?;
        Ok(Self { collector, server: server.clone(), status })
    }

    /// Calls kept so far.
    pub fn calls(&self) -> u64 {
        self.status.calls.load(Ordering::Relaxed)
    }

    /// Whether it keeps no more: its memory is bounded.
    pub fn is_full(&self) -> bool {
        self.status.full.load(Ordering::Relaxed)
    }

    /// Zero of the trace's time, ns of CLOCK_MONOTONIC.
    pub fn origin_ns(&self) -> u64 {
        self.collector.origin_ns()
    }

    /// Ends the capture; call this while the server still runs, so that its tasks can be named.
    pub fn finish(self) -> Logical {
        let origin_ns = self.collector.origin_ns();
        logical(self.collector.finish(), &self.server, origin_ns)
    }
}

fn logical(tracked: Tracked, server: &Server, origin_ns: u64) -> Logical {
    let Tracked { mut ios, turns, sleeps, runs, runs_seen, handles, .. } = tracked;
    let Tracked { mut files, roles, counts, recorded, .. } = tracked;
    let mut unresolved = Unresolved::default();
    // Only now is it known what every handle stands for.
    ios.retain(|io| {
        let handle = handles[io.handle as usize];
        match handle.target {
            Target::NoFile => false,
            Target::Unknown if !handle.positional => {
                unresolved.perhaps += 1;
                unresolved.perhaps_bytes += u64::from(io.len);
                false
            }
            Target::Unknown => {
                unresolved.requests += 1;
                unresolved.bytes += u64::from(io.len);
                true
            }
            Target::File(_) => true,
        }
    });
    ios.sort_by_key(|io| io.start_ns);
    let mut unknown_reach = 0;
    for io in &ios {
        let end = if io.offset == NO_OFFSET { 0 } else { io.offset } + u64::from(io.len);
        match handles[io.handle as usize].target {
            Target::File(index) => files.reaches(index, end),
            _ => unknown_reach = end.max(unknown_reach),
        }
    }
    let mut placed = Placed::new(&files.entries, unknown_reach);
    let mut made = Logical {
        trace: empty_trace(server.system),
        origin_ns,
        losses: counts.losses,
        events: recorded.events,
        event_ns: recorded.event_ns,
        unpaired: counts.unpaired,
        failed: counts.failed,
        write_back_hints: counts.hints,
        hidden: counts.hidden,
        unresolved,
        turns,
        sleeps,
        runs,
        runs_seen,
        ..Logical::default()
    };
    let mut actors: HashMap<u32, u16> = HashMap::new();
    for io in &ios {
        let next = u16::try_from(actors.len()).unwrap_or(u16::MAX);
        let actor = *actors.entry(io.task).or_insert(next);
        if usize::from(actor) == made.actors.len() {
            let (process, role) = roles.get(&io.task).cloned().unwrap_or_default();
            made.actors.push(Actor { task: io.task, process, role });
        }
        let (base, class) = placed.of(handles[io.handle as usize].target);
        made.offset_unknown += u64::from(io.offset == NO_OFFSET);
        let request = request(io, base, class, origin_ns);
        made.trace.push_captured(request, Nanos(io.end_ns - io.start_ns), actor, 0);
    }
    made.files = std::mem::take(&mut placed.files);
    super::roles::by_behaviour(&mut made, server);
    facts(&mut made, &counts);
    made
}

fn request(io: &Io, base: u64, class: Class, origin_ns: u64) -> Request {
    let within = if io.offset == NO_OFFSET { 0 } else { io.offset };
    let offset = if io.op == Op::Flush { 0 } else { base + within };
    let due = Nanos(io.start_ns.saturating_sub(origin_ns));
    Request { due, offset: Bytes(offset), len: io.len, op: io.op, stream: class as u16 }
}

fn empty_trace(system: System) -> Trace {
    let streams = Class::ALL.iter().map(|class| Stream { name: class.name().to_owned() });
    Trace {
        streams: streams.collect(),
        origin: Origin {
            layer: "logical".to_owned(),
            source: format!("system calls of {} on its files, by tracefs", system.name()),
            ..Origin::default()
        },
        service: Some(Vec::new()),
        chains: Some(trace::Chains::default()),
        ..Trace::default()
    }
}

fn facts(made: &mut Logical, counts: &Counts) {
    let unresolved = made.unresolved;
    let numbers = [
        ("lost", counts.losses),
        ("unpaired", counts.unpaired),
        ("failed", counts.failed),
        ("write_back_hints", counts.hints),
        ("hidden", counts.hidden),
        ("unresolved", unresolved.requests + unresolved.perhaps),
        ("offset_unknown", made.offset_unknown),
        ("origin_monotonic_ns", made.origin_ns),
    ];
    let texts = numbers.map(|(name, number)| (name.to_owned(), number.to_string()));
    made.trace.origin.facts.extend(texts);
    let roles: Vec<&str> = made.actors.iter().map(|actor| actor.role.as_str()).collect();
    let roles = ("actor_roles".to_owned(), roles.join(","));
    made.trace.origin.facts.extend([roles]);
}

/// Where files lie in the address space.
struct Placed {
    files: Vec<ServerFile>,
    /// Base and class by the index of the file.
    by_index: Vec<(u64, Class)>,
    unknown_base: u64,
}

impl Placed {
    fn new(entries: &[super::files::FileEntry], unknown_reach: u64) -> Self {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by_key(|index| (entries[*index].class, &entries[*index].path));
        let (mut files, mut base) = (Vec::new(), 0);
        let mut by_index = vec![(0, Class::Other); entries.len()];
        for index in order {
            let entry = &entries[index];
            by_index[index] = (base, entry.class);
            files.push(ServerFile {
                path: entry.path.clone(),
                class: entry.class,
                base_offset: Bytes(base),
                size: Bytes(entry.reach),
                device: entry.device,
                inode: entry.inode,
            });
            base += entry.reach.next_multiple_of(REGION_BYTES).max(REGION_BYTES);
        }
        // Addresses never run over: files of 2^63 bytes do not exist.
        assert!(base.checked_add(unknown_reach).is_some(), "the address space ends");
        Self { files, by_index, unknown_base: base }
    }

    fn of(&self, target: Target) -> (u64, Class) {
        match target {
            Target::File(index) => self.by_index[index as usize],
            _ => (self.unknown_base, Class::Other),
        }
    }
}
