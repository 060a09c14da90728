//! A plain simulation of a server, which shares no code with the one under test: what its clients
//! really see, and what a capture of it shows.
//!
//! Processors take tasks in the order of their arrival and keep them to the end. A transaction is
//! the client computing, the server computing and reading in turns, a commit, and the client
//! again. Commits follow `XLogFlush` of PostgreSQL: the first that finds nobody flushing writes and
//! flushes all that was inserted; the others wait, are woken as tasks that need a processor, and
//! look again.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use model::Device;
use predict::{Captured, Contended, Cpu, KindOf, System, Transaction};
use sim::transactions::{Load, Scheduling, Switching, Think};
use stats::rng::Rng;
use trace::{Chains, Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

/// Unit of the log.
const LOG_PAGE: u64 = 8192;
const DATA_PAGE: u32 = 8192;
/// The log goes round in this much, behind the data.
const LOG_REGION: u64 = 1 << 26;

/// A server and its load.
#[derive(Clone, Debug)]
pub struct Server {
    pub terminals: u32,
    pub processors: u32,
    /// Processor time of a transaction: of the client, and of the server.
    pub client_ns: u64,
    pub work_ns: u64,
    /// Pages that it reads, in the mean.
    pub reads: f64,
    /// Share of the transactions that commit.
    pub commits: f64,
    pub log_bytes: u64,
    pub think_ns: u64,
    /// An idle processor begins after so long.
    pub wake_ns: u64,
    /// What a task computes when it is woken for the log.
    pub switch_ns: u64,
    /// What the host adds to a sync of the log, and to a read.
    pub sync_ns: u64,
    pub read_ns: u64,
    pub data_bytes: u64,
}

/// What the clients see.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub per_min: f64,
    /// Of the transactions that commit.
    pub p99_ms: f64,
}

#[derive(Clone, Copy, Debug)]
enum Do {
    Compute(u64),
    Read,
    Commit,
    /// Its pages are written: makes them durable.
    Sync,
    /// Hands the log on.
    Release,
    /// Woken: is it durable, who flushes?
    Look,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Thought enough.
    Begins,
    /// Has computed: the processor is free.
    Computed,
    /// The device has answered its read.
    Read,
    Written,
    Flushed,
}

#[derive(Default)]
struct Terminal {
    todo: VecDeque<Do>,
    number: u32,
    commits: bool,
    began: u64,
    /// What the server computes for it, as the switches between tasks show.
    computes: u64,
    waited: u64,
    asked: u64,
    lsn: u64,
}

/// The state of the log.
#[derive(Default)]
struct Log {
    inserted: u64,
    flushed: u64,
    /// Up to where the leader writes.
    target: u64,
    leads: bool,
    waiting: Vec<usize>,
    /// When the leader began, and until when its write took.
    began: u64,
}

/// A call or a request of the disk, as a capture has it.
#[derive(Clone, Copy)]
struct Noted {
    request: Request,
    service: u64,
    actor: u16,
    number: u32,
}

struct World<'a> {
    server: &'a Server,
    devices: Vec<Box<dyn Device>>,
    rng: Rng,
    now: u64,
    count: u32,
    events: BinaryHeap<Reverse<(u64, u64, Event, usize)>>,
    queued: u64,
    idle: u32,
    ready: VecDeque<(usize, u64)>,
    terminals: Vec<Terminal>,
    log: Log,
    started: u32,
    /// End and response of each that ended, whether it committed.
    ended: Vec<(u64, u64, bool)>,
    captured: Captured,
    calls: Vec<Noted>,
    disk: Vec<Noted>,
}

/// Runs so many transactions on devices: one for both, or a second for the log.
pub fn run(
    server: &Server,
    devices: Vec<Box<dyn Device>>,
    count: u32,
    seed: u64,
) -> (Seen, Captured) {
    let mut world = World {
        server,
        devices,
        rng: Rng::new(seed),
        now: 0,
        count,
        events: BinaryHeap::new(),
        queued: 0,
        idle: server.processors,
        ready: VecDeque::new(),
        terminals: (0..server.terminals).map(|_| Terminal::default()).collect(),
        log: Log::default(),
        started: 0,
        ended: Vec::new(),
        captured: blank(server, count),
        calls: Vec::new(),
        disk: Vec::new(),
    };
    for terminal in 0..world.terminals.len() {
        let first = world.rng.below(server.think_ns + 10_000);
        world.at(first, Event::Begins, terminal);
    }
    while let Some(Reverse((now, _, event, terminal))) = world.events.pop() {
        assert!(now >= world.now, "time runs back");
        world.now = now;
        world.handle(event, terminal);
    }
    assert_eq!(world.ended.len(), count as usize);
    world.finish()
}

/// A capture in which nothing was seen yet.
fn blank(server: &Server, count: u32) -> Captured {
    let trace = |names: &[&str]| Trace {
        streams: names.iter().map(|name| Stream { name: (*name).to_owned() }).collect(),
        service: Some(Vec::new()),
        chains: Some(Chains::default()),
        ..Trace::default()
    };
    let kind = |name: &str, writes| KindOf { name: name.to_owned(), writes };
    Captured {
        system: System::Postgresql,
        kinds: vec![kind("update", true), kind("look", false)],
        transactions: vec![Transaction::default(); count as usize],
        logical: trace(&["data", "log"]),
        connections: vec![true; server.terminals as usize],
        physical: Some(trace(&["data", "log", "filesystem"])),
        cpu: Cpu {
            capture_ns: 0.0,
            server_ns: server.work_ns as f64,
            client_ns: server.client_ns as f64,
            kernel_ns: 0.0,
        },
        processors: server.processors,
        scheduling: Scheduling { finds_idle: true, ..Scheduling::default() },
        wake_ns: None,
        switching: Switching::default(),
        disturbed: false,
        terminals: server.terminals,
        load: Load::Closed(Think { mean_ns: server.think_ns as f64, exponential: false }),
        per_s: 0.0,
        log_bytes: None,
        buffer_bytes: None,
        contended: Contended::Unknown,
        start: None,
    }
}

impl World<'_> {
    fn at(&mut self, when: u64, event: Event, terminal: usize) {
        self.queued += 1;
        self.events.push(Reverse((when, self.queued, event, terminal)));
    }

    fn handle(&mut self, event: Event, terminal: usize) {
        match event {
            Event::Begins => self.begin(terminal),
            Event::Computed => {
                // Linux was seen to take the youngest as often as the oldest of those who wait.
                let any = self.rng.below(self.ready.len().max(1) as u64) as usize;
                match self.ready.remove(any) {
                    Some((next, ns)) => self.at(self.now + ns, Event::Computed, next),
                    None => self.idle += 1,
                }
                self.proceed(terminal);
            }
            Event::Read => {
                self.waited(terminal);
                self.proceed(terminal);
            }
            Event::Written => self.after_a_wake(terminal, Do::Sync),
            Event::Flushed => self.flushed(terminal),
        }
    }

    fn begin(&mut self, terminal: usize) {
        if self.started == self.count {
            return;
        }
        self.started += 1;
        let server = self.server;
        let reads = u64::from(self.rng.poisson(server.reads));
        let commits = self.rng.unit() < server.commits;
        // Work varies by a third either way.
        let work = server.work_ns as f64 * (2.0 + 2.0 * self.rng.unit()) / 3.0;
        let piece = work as u64 / (reads + 1);
        let mut todo = VecDeque::from([Do::Compute(server.client_ns / 2)]);
        for _ in 0..reads {
            todo.extend([Do::Compute(piece), Do::Read]);
        }
        todo.push_back(Do::Compute(piece));
        if commits {
            todo.push_back(Do::Commit);
        }
        todo.push_back(Do::Compute(server.client_ns / 2));
        let blank = Terminal { todo, number: self.started, commits, ..Terminal::default() };
        self.terminals[terminal] = Terminal { began: self.now, computes: work as u64, ..blank };
        self.proceed(terminal);
    }

    fn proceed(&mut self, terminal: usize) {
        match self.terminals[terminal].todo.pop_front() {
            None => self.end(terminal),
            Some(Do::Compute(ns)) if self.idle > 0 => {
                self.idle -= 1;
                self.at(self.now + self.server.wake_ns + ns, Event::Computed, terminal);
            }
            Some(Do::Compute(ns)) => self.ready.push_back((terminal, ns)),
            Some(Do::Read) => {
                let pages = self.server.data_bytes / u64::from(DATA_PAGE);
                let offset = self.rng.below(pages) * u64::from(DATA_PAGE);
                let done = self.ask(Op::Read, offset, DATA_PAGE);
                let back = done + self.server.read_ns;
                self.note_call(terminal, Op::Read, (offset, DATA_PAGE), (self.now, back));
                self.terminals[terminal].asked = self.now;
                self.at(back, Event::Read, terminal);
            }
            Some(Do::Commit) => {
                self.log.inserted += self.server.log_bytes;
                self.terminals[terminal].lsn = self.log.inserted;
                self.terminals[terminal].asked = self.now;
                self.look(terminal);
            }
            Some(Do::Sync) => {
                let done = self.ask(Op::Flush, 0, 0);
                self.at(done + self.server.sync_ns, Event::Flushed, terminal);
            }
            Some(Do::Release) => self.release(terminal),
            Some(Do::Look) => self.look(terminal),
        }
    }

    /// Goes on where its commit is durable; otherwise leads, or waits for who does.
    fn look(&mut self, terminal: usize) {
        if self.terminals[terminal].lsn <= self.log.flushed {
            self.waited(terminal);
            self.proceed(terminal);
            return;
        }
        if self.log.leads {
            self.log.waiting.push(terminal);
            return;
        }
        let from = self.log.flushed / LOG_PAGE * LOG_PAGE;
        (self.log.leads, self.log.target) = (true, self.log.inserted);
        let len = (self.log.target.next_multiple_of(LOG_PAGE) - from) as u32;
        let offset = from % LOG_REGION;
        let done = self.ask(Op::Write, offset, len);
        self.note_call(terminal, Op::Write, (offset, len), (self.now, self.now));
        self.log.began = self.now;
        self.at(done, Event::Written, terminal);
    }

    fn flushed(&mut self, leader: usize) {
        // A call ends when its task runs again.
        let times = (self.log.began, self.now + self.server.wake_ns);
        self.note_call(leader, Op::Flush, (0, 0), times);
        self.after_a_wake(leader, Do::Release);
    }

    fn release(&mut self, leader: usize) {
        self.log.flushed = self.log.target;
        self.log.leads = false;
        // Who waits until a lock is free is put before those who came earlier.
        for terminal in std::mem::take(&mut self.log.waiting).into_iter().rev() {
            self.after_a_wake(terminal, Do::Look);
        }
        self.waited(leader);
        self.proceed(leader);
    }

    /// A task that slept needs a processor.
    fn after_a_wake(&mut self, terminal: usize, next: Do) {
        let todo = &mut self.terminals[terminal].todo;
        todo.push_front(next);
        todo.push_front(Do::Compute(self.server.switch_ns));
        self.proceed(terminal);
    }

    fn waited(&mut self, terminal: usize) {
        let asked = self.terminals[terminal].asked;
        self.terminals[terminal].waited += self.now - asked;
    }

    fn end(&mut self, terminal: usize) {
        let Terminal { number, commits, began, computes, waited, .. } = self.terminals[terminal];
        self.ended.push((self.now, self.now - began, commits));
        let duration_ns = self.now - began - self.server.client_ns;
        self.captured.transactions[number as usize - 1] = Transaction {
            number: 0,
            kind: u16::from(!commits),
            turns: 1,
            duration_ns,
            gap_ns: duration_ns.saturating_sub(waited),
            cpu_ns: computes,
            answer_cpu_ns: computes,
        };
        self.at(self.now + self.server.think_ns, Event::Begins, terminal);
    }

    /// Asks the device of the log, or that of the data; says when it is done.
    fn ask(&mut self, op: Op, offset: u64, len: u32) -> u64 {
        let is_log = op != Op::Read;
        let base = if is_log { self.server.data_bytes.next_multiple_of(1 << 20) } else { 0 };
        let stream = u16::from(is_log);
        let (due, offset) = (Nanos(self.now), Bytes(offset));
        let request = Request { due, offset: Bytes(base + offset.0), len, op, stream };
        let on = if is_log { self.devices.len() - 1 } else { 0 };
        let done = self.devices[on].submit(Nanos(self.now), &request).0;
        let stream = if op == Op::Flush { 2 } else { stream };
        let request = Request { offset, stream, ..request };
        self.disk.push(Noted { request, service: done - self.now, actor: 0, number: 0 });
        done
    }

    fn note_call(&mut self, terminal: usize, op: Op, (offset, len): (u64, u32), times: (u64, u64)) {
        let (due, offset) = (Nanos(times.0), Bytes(offset));
        let request = Request { due, offset, len, op, stream: u16::from(op != Op::Read) };
        let number = self.terminals[terminal].number;
        let service = times.1 - times.0;
        self.calls.push(Noted { request, service, actor: terminal as u16, number });
    }

    /// The middle of the run, when as many terminals work as there are.
    fn finish(mut self) -> (Seen, Captured) {
        let push = |trace: &mut Trace, mut noted: Vec<Noted>| {
            noted.sort_by_key(|one| one.request.due);
            for Noted { request, service, actor, number } in noted {
                trace.push_captured(request, Nanos(service), actor, number);
            }
        };
        push(&mut self.captured.logical, self.calls);
        push(self.captured.physical.as_mut().expect("it is captured"), self.disk);
        let ended = &self.ended[self.ended.len() / 10..self.ended.len() * 9 / 10];
        let seconds = (ended[ended.len() - 1].0 - ended[0].0) as f64 / 1e9;
        self.captured.per_s = (ended.len() - 1) as f64 / seconds;
        self.captured.log_bytes = Some(self.log.inserted);
        let commits = ended.iter().filter(|(_, _, commits)| *commits);
        let mut times: Vec<u64> = commits.map(|(_, response, _)| *response).collect();
        times.sort_unstable();
        let p99_ms = times[(times.len() - 1) * 99 / 100] as f64 / 1e6;
        (Seen { per_min: self.captured.per_s * 60.0, p99_ms }, self.captured)
    }
}
