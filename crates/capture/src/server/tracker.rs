//! Follows what every descriptor of every process means, and turns calls into I/Os.
//!
//! Events of different processors are brought into the order of time first. A descriptor leads to
//! an open file description, the *handle*: opening makes one, a new process inherits its parent's,
//! a new thread shares its process's table, closing forgets. A handle that was not seen to be
//! opened (`dup`, `accept`, opened before the capture) is made at its first use.
//!
//! What a handle stands for is asked of `/proc` up to one poll (20 ms) later. By then the
//! descriptor may be closed and in use again, so the answer counts only if no close comes to light
//! whose time is before the question; otherwise the handle stays unknown, and is counted.
//!
//! Offsets of calls without one follow the handle's position: 0 after opening, unknown after
//! `O_APPEND` or a seek from the end, until the next seek.
//!
//! Invariants: an I/O needs both sides of its call; nothing is guessed. Tested on hand-made
//! sequences, and on real servers.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use trace::Op;

use super::calls::{Event, Kind, Point, Side};
use super::class::Server;
use super::files::{self, Files, Target};
use super::roles::role;
use super::tasks;
use crate::now_ns;
use crate::tracefs::{Reader, Recorded};

/// I/Os kept at most, 40 bytes each.
const IO_LIMIT: usize = 8_000_000;
/// The offset of an I/O whose place is not known.
pub(super) const NO_OFFSET: u64 = u64::MAX;
/// `O_APPEND` and `CLONE_THREAD`, `CLONE_FILES` of the kernel's user interface, the same on all
/// processors that Linux runs on but for O_APPEND on four old ones.
const O_APPEND: u64 = libc::O_APPEND as u64;
const CLONE_FILES: u64 = libc::CLONE_FILES as u64;
const CLONE_THREAD: u64 = libc::CLONE_THREAD as u64;

/// One I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Io {
    pub start_ns: u64,
    pub end_ns: u64,
    /// In its file, or [`NO_OFFSET`].
    pub offset: u64,
    pub len: u32,
    pub handle: u32,
    pub task: u32,
    pub op: Op,
}

/// An open file description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle {
    pub target: Target,
    position: Option<u64>,
    /// Who was asked, and when.
    process: u32,
    descriptor: u32,
    asked_ns: u64,
    /// Whether a call was seen that only files have.
    pub positional: bool,
}

/// When a client's message came in or an answer went out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub time_ns: u64,
    pub task: u32,
    pub received: bool,
}

/// A task slept until another one woke it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sleep {
    pub start_ns: u64,
    pub end_ns: u64,
    pub task: u32,
}

/// A task had a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OnProcessor {
    pub start_ns: u64,
    pub end_ns: u64,
    pub task: u32,
}

/// How far a capture is, for those who watch it from another thread.
#[derive(Debug, Default)]
pub(super) struct Status {
    /// Calls kept.
    pub calls: AtomicU64,
    /// Whether no more are kept.
    pub full: AtomicBool,
}

/// Result of the capture.
#[derive(Default)]
pub(super) struct Tracked {
    pub ios: Vec<Io>,
    pub turns: Vec<Turn>,
    pub sleeps: Vec<Sleep>,
    pub runs: Vec<OnProcessor>,
    /// From when to when these were watched.
    pub runs_seen: Vec<(u64, u64)>,
    pub handles: Vec<Handle>,
    pub files: Files,
    /// Name and process of each task that did I/O.
    pub roles: HashMap<u32, (u32, String)>,
    pub counts: Counts,
    pub recorded: Recorded,
}

/// What happened besides I/Os.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Events dropped by the kernel, and I/Os beyond our limit.
    pub losses: u64,
    /// Calls without their other side: under way at the start or the end.
    pub unpaired: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Write-back asked for (`sync_file_range`).
    pub hints: u64,
    /// Submissions of asynchronous I/O, whose addresses cannot be seen.
    pub hidden: u64,
}

/// Spreads task numbers over a table: they are no one's choice, so a multiplication will do
/// (Knuth, The Art of Computer Programming, volume 3, section 6.4), at a fraction of the default's
/// cost. Five look-ups per event are most of what the capture does.
#[derive(Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        // The table takes the upper and the lower bits.
        let product = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }
}

/// By task or process.
type ByNumber<V> = HashMap<u32, V, BuildHasherDefault<NumberHasher>>;

/// The reader of the system-call tracepoints.
pub(super) struct Tracker {
    server: Server,
    points: Vec<Point>,
    pending: Vec<Event>,
    /// The process of each task.
    process_of: ByNumber<u32>,
    /// The call that a task is in.
    within: ByNumber<Event>,
    /// Since when a task has a processor.
    running: ByNumber<u64>,
    /// Since when switches between tasks are watched; `None` while they are not.
    watching_ns: Option<u64>,
    /// Handles by process and descriptor.
    tables: ByNumber<BTreeMap<u32, u32>>,
    /// Handles to be looked up at the end of the poll.
    unknown: Vec<u32>,
    status: Arc<Status>,
    tracked: Tracked,
}

impl Tracker {
    pub(super) fn new(server: Server, points: Vec<Point>, status: Arc<Status>) -> Self {
        Self {
            server,
            points,
            pending: Vec::new(),
            process_of: ByNumber::default(),
            within: ByNumber::default(),
            running: ByNumber::default(),
            watching_ns: Some(0),
            tables: ByNumber::default(),
            unknown: Vec::new(),
            status,
            tracked: Tracked::default(),
        }
    }

    /// Takes down what every descriptor means now. Calls from before are still to come: an opening
    /// makes a new handle, a close withdraws the answer.
    fn look_around(&mut self) {
        self.process_of.extend(tasks::tasks(&self.server.pids()));
        let mut processes: Vec<u32> = self.process_of.values().copied().collect();
        processes.sort_unstable();
        processes.dedup();
        for process in processes {
            let folder = format!("/proc/{process}/fd");
            for descriptor in tasks::numbers_in(folder.as_ref()) {
                let handle = self.add_handle(process, descriptor, None);
                self.ask(handle);
                if matches!(self.tracked.handles[handle as usize].target, Target::File(_)) {
                    let position = files::position(process, descriptor);
                    self.tracked.handles[handle as usize].position = position;
                }
            }
        }
    }

    fn add_handle(&mut self, process: u32, descriptor: u32, position: Option<u64>) -> u32 {
        let handle = self.tracked.handles.len() as u32;
        let (target, asked_ns, positional) = (Target::Unknown, 0, false);
        let made = Handle { target, position, process, descriptor, asked_ns, positional };
        self.tracked.handles.push(made);
        self.tables.entry(process).or_default().insert(descriptor, handle);
        handle
    }

    fn ask(&mut self, handle: u32) {
        let Handle { process, descriptor, .. } = self.tracked.handles[handle as usize];
        // Still the same descriptor, as far as is known?
        let current = self.tables.get(&process).and_then(|table| table.get(&descriptor));
        if current != Some(&handle) {
            return;
        }
        let target = self.tracked.files.resolve(&self.server, process, descriptor);
        let entry = &mut self.tracked.handles[handle as usize];
        (entry.target, entry.asked_ns) = (target, now_ns());
    }

    fn process(&mut self, task: u32) -> u32 {
        *self.process_of.entry(task).or_insert_with(|| tasks::process_of(task).unwrap_or(task))
    }

    fn handle(&mut self, task: u32, descriptor: u32) -> u32 {
        let process = self.process(task);
        if let Some(handle) = self.tables.get(&process).and_then(|table| table.get(&descriptor)) {
            return *handle;
        }
        let handle = self.add_handle(process, descriptor, None);
        self.unknown.push(handle);
        handle
    }

    fn apply(&mut self, event: Event) {
        // Who does something has a processor. Linux 6.18 does not tell of switches from the idle
        // tasks of all processors but the first (seen on a virtual machine).
        if self.watching_ns.is_some() && event.kind != Kind::Switch {
            self.running.entry(event.task).or_insert(event.time_ns);
        }
        match (event.kind, event.side) {
            (Kind::Born, _) => self.born(event),
            (Kind::Close, _) => self.close(event),
            (Kind::Seek, _) => self.seek(event),
            (Kind::Hint, _) => self.tracked.counts.hints += 1,
            (Kind::Hidden, _) => self.tracked.counts.hidden += event.values[0],
            (Kind::Received | Kind::Sent, _) => {
                let received = event.kind == Kind::Received;
                let (time_ns, task) = (event.time_ns, event.task);
                if !self.is_full() {
                    self.tracked.turns.push(Turn { time_ns, task, received });
                }
            }
            (Kind::Wait, Side::Exit) => self.woken(event),
            (Kind::Switch, Side::Enter) => self.went_on(event),
            (Kind::Switch, Side::Exit) => self.watch(event.values[0] != 0, event.time_ns),
            (_, Side::Enter) => {
                let other = self.within.insert(event.task, event);
                // A sleep that ended without being woken shows no exit.
                let lost = other.is_some_and(|other| other.kind != Kind::Wait);
                self.tracked.counts.unpaired += u64::from(lost);
            }
            (_, Side::Exit) => match self.within.remove(&event.task) {
                Some(enter) if enter.call == event.call => self.complete(enter, event),
                _ => self.tracked.counts.unpaired += 1,
            },
        }
    }

    /// The end of a sleep; wakes of others leave an exit too, whose enter is not watched.
    fn woken(&mut self, exit: Event) {
        let slept = self.within.get(&exit.task).filter(|enter| enter.kind == Kind::Wait).copied();
        let Some(enter) = slept else { return };
        self.within.remove(&exit.task);
        if !self.is_full() {
            let (start_ns, end_ns, task) = (enter.time_ns, exit.time_ns, exit.task);
            self.tracked.sleeps.push(Sleep { start_ns, end_ns, task });
        }
    }

    /// A processor went from one task to another; one of them is no task of the server, or both
    /// are.
    fn went_on(&mut self, event: Event) {
        if self.watching_ns.is_none() {
            return;
        }
        let [before, next] = [event.values[0] as u32, event.values[1] as u32];
        if let Some(start_ns) = self.running.remove(&before).filter(|_| !self.is_full()) {
            self.tracked.runs.push(OnProcessor { start_ns, end_ns: event.time_ns, task: before });
        }
        if self.process_of.contains_key(&next) {
            self.running.insert(next, event.time_ns);
        }
    }

    /// Switches between tasks are watched from now on, or no more.
    fn watch(&mut self, on: bool, time_ns: u64) {
        if let Some(since_ns) = self.watching_ns.take() {
            self.tracked.runs_seen.push((since_ns, time_ns));
        }
        self.running.clear();
        self.watching_ns = on.then_some(time_ns);
    }

    /// Whether as much is kept as may be.
    fn is_full(&self) -> bool {
        let Tracked { ios, turns, sleeps, runs, .. } = &self.tracked;
        // All others take half the memory of an I/O.
        2 * ios.len() + turns.len() + sleeps.len() + runs.len() >= 2 * IO_LIMIT
    }

    fn born(&mut self, event: Event) {
        let (child, flags) = (event.values[0] as u32, event.values[1]);
        let parent = self.process(event.task);
        let process = if flags & CLONE_THREAD != 0 { parent } else { child };
        self.process_of.insert(child, process);
        if process == child && flags & CLONE_FILES == 0 {
            let inherited = self.tables.get(&parent).cloned().unwrap_or_default();
            self.tables.insert(child, inherited);
        }
    }

    fn close(&mut self, event: Event) {
        let process = self.process(event.task);
        let first = event.values[0] as u32;
        let last = first.max(event.values[1] as u32);
        let Some(table) = self.tables.get_mut(&process) else { return };
        let gone: Vec<(u32, u32)> = table.range(first..=last).map(|(fd, at)| (*fd, *at)).collect();
        for (descriptor, handle) in gone {
            table.remove(&descriptor);
            let handle = &mut self.tracked.handles[handle as usize];
            // The answer was about whatever came to this descriptor afterwards.
            if handle.process == process && event.time_ns <= handle.asked_ns {
                handle.target = Target::Unknown;
            }
        }
    }

    fn seek(&mut self, event: Event) {
        let [descriptor, offset, whence] = event.values;
        let handle = self.handle(event.task, descriptor as u32);
        let position = &mut self.tracked.handles[handle as usize].position;
        *position = match whence as i32 {
            libc::SEEK_SET => Some(offset),
            libc::SEEK_CUR => position.and_then(|at| at.checked_add_signed(offset as i64)),
            _ => None,
        };
    }

    fn complete(&mut self, enter: Event, exit: Event) {
        let result = exit.values[0] as i64;
        if result < 0 {
            self.tracked.counts.failed += u64::from(enter.kind != Kind::Open);
            return;
        }
        if enter.kind == Kind::Open {
            let process = self.process(exit.task);
            let position = (enter.values[1] & O_APPEND == 0).then_some(0);
            let handle = self.add_handle(process, result as u32, position);
            self.unknown.push(handle);
            return;
        }
        if result == 0 && enter.kind != Kind::Flush {
            return;
        }
        let index = self.handle(enter.task, enter.values[0] as u32);
        let handle = &mut self.tracked.handles[index as usize];
        let (op, offset) = match enter.kind {
            Kind::ReadAt => (Op::Read, enter.values[1]),
            Kind::WriteAt => (Op::Write, enter.values[1]),
            Kind::Flush => (Op::Flush, 0),
            Kind::Read | Kind::Write if handle.target == Target::NoFile => return,
            kind => {
                let op = if kind == Kind::Read { Op::Read } else { Op::Write };
                let offset = handle.position.unwrap_or(NO_OFFSET);
                handle.position = handle.position.map(|position| position + result as u64);
                (op, offset)
            }
        };
        handle.positional |= !matches!(enter.kind, Kind::Read | Kind::Write);
        self.push(Io {
            start_ns: enter.time_ns,
            end_ns: exit.time_ns,
            offset,
            len: if op == Op::Flush { 0 } else { result as u32 },
            handle: index,
            task: enter.task,
            op,
        });
    }

    fn push(&mut self, io: Io) {
        if self.is_full() {
            self.status.full.store(true, Ordering::Relaxed);
            self.tracked.counts.losses += 1;
            return;
        }
        self.tracked.ios.push(io);
        if !self.tracked.roles.contains_key(&io.task) {
            let process = self.process(io.task);
            let role = role(&self.server, process, io.task).unwrap_or_default();
            self.tracked.roles.insert(io.task, (process, role));
        }
    }
}

impl Reader for Tracker {
    type Output = Tracked;

    fn learn(&mut self, index: usize, format: &str) -> Option<()> {
        self.points[index].learn(format)
    }

    fn started(&mut self) {
        self.look_around();
    }

    fn event(&mut self, index: usize, time_ns: u64, event: &[u8]) {
        if let Some(event) = self.points[index].decode(time_ns, event) {
            self.pending.push(event);
        }
    }

    fn sampling(&mut self, on: bool, time_ns: u64) {
        // In the order of time with all others.
        let (kind, side, values) = (Kind::Switch, Side::Exit, [u64::from(on), 0, 0]);
        self.pending.push(Event { time_ns, task: 0, call: u8::MAX, kind, side, values });
    }

    fn polled(&mut self, complete_ns: u64) {
        // Stable: what one processor wrote at one time keeps its order.
        self.pending.sort_by_key(|event| event.time_ns);
        let complete = self.pending.partition_point(|event| event.time_ns <= complete_ns);
        let later = self.pending.split_off(complete);
        for event in std::mem::replace(&mut self.pending, later) {
            self.apply(event);
        }
        for handle in std::mem::take(&mut self.unknown) {
            self.ask(handle);
        }
        self.status.calls.store(self.tracked.ios.len() as u64, Ordering::Relaxed);
    }

    fn finish(mut self, recorded: Recorded) -> Tracked {
        self.watch(false, self.tracked.runs.last().map_or(0, |run| run.end_ns));
        self.tracked.counts.losses += recorded.dropped;
        self.tracked.recorded = recorded;
        let cut = self.within.values().filter(|enter| enter.kind != Kind::Wait);
        self.tracked.counts.unpaired += cut.count() as u64;
        // A process's title may have changed since its first I/O: the last one counts.
        for (task, (process, name)) in &mut self.tracked.roles {
            if let Some(now) = role(&self.server, *process, *task) {
                *name = now;
            }
        }
        self.tracked
    }
}

#[cfg(test)]
#[path = "tracker_tests.rs"]
mod tests;
