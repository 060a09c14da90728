//! A device model that is asked in real time: requests arrive when they arrive, answers leave when
//! the model says, less what the path to the user takes.
//!
//! Time is passed in, so that all of it is tested in virtual time. The clock of the device is real
//! time since the line was made. A model whose completions are known at arrival goes through a heap
//! of deadlines; one that looks at its queue ([`model::Queued`]) is led from event to event, never
//! further than the time that has passed, so that later arrivals change its completions as they
//! would those of the real device.
//!
//! A job is what one request of the user costs: parts that go to the device side by side, then a
//! flush behind them where the request was to be durable on its own (FUA, `O_DSYNC`).
//!
//! Invariants: every job is answered once; none before it arrived, none before the model completes
//! it less the path's cost; the device's clock never runs back.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use events::LiveTimes;
use model::Device;
use trace::{Op, Request};
use units::{Bytes, Nanos};

use crate::counters::Counters;
use crate::path::Path;

/// Longest piece that the device is given at once, bytes; a longer one is cut.
const PART_BYTES_MAX: u64 = 1 << 30;

/// One request to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Read, write, trim or flush.
    pub op: Op,
    /// Where, bytes.
    pub offset: u64,
    /// How much, bytes; 0 for a flush.
    pub len: u64,
}

/// What answering one request of the user costs on the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// Served side by side.
    pub parts: Vec<Part>,
    /// A flush after all of them.
    pub then_flush: bool,
    /// What goes to the device besides, answered already.
    pub(crate) written_back: Option<WrittenBack>,
}

/// Data of a file that whoever wrote them does not wait for any more. A flush of the same charge
/// waits until the device has written all of the file that was given to it so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WrittenBack {
    /// Whose data.
    pub(crate) file: FileId,
    /// The parts of each write, and when it came, ns.
    pub(crate) writes: Vec<(Vec<Part>, u64)>,
}

impl WrittenBack {
    pub(crate) fn bytes(&self) -> u64 {
        self.writes.iter().flat_map(|(parts, _)| parts).map(|part| part.len).sum()
    }
}

/// The device below and the number of an inode there.
pub(crate) type FileId = (u64, u64);

impl Charge {
    /// A request that costs nothing.
    pub const FREE: Self = Self { parts: Vec::new(), then_flush: false, written_back: None };

    /// Whether it costs nothing.
    pub fn is_free(&self) -> bool {
        self.parts.is_empty() && !self.then_flush && self.written_back.is_none()
    }

    /// What it is counted as, and its bytes.
    fn kind(&self) -> (Op, u64) {
        let op = self.parts.first().map_or(Op::Flush, |part| part.op);
        (op, self.parts.iter().map(|part| part.len).sum())
    }
}

/// A job whose answer is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Done<T> {
    /// What the caller gave with it.
    pub(crate) payload: T,
}

/// A job that the device works at.
struct Open<T> {
    payload: T,
    op: Op,
    bytes: u64,
    /// Real time, ns.
    arrived: u64,
    parts_left: usize,
    then_flush: bool,
    /// The file of which it writes back.
    file: Option<FileId>,
    /// Latest completion of its parts, on the device's clock.
    at: u64,
}

/// What is written back of a file.
#[derive(Default)]
struct WritingBack {
    jobs: usize,
    /// Flushes that wait for them, by slot.
    flushes: Vec<usize>,
}

/// A device and the jobs on it.
pub(crate) struct Line<T> {
    device: Box<dyn Device>,
    is_queued: bool,
    /// Real time at which the device's clock was 0.
    origin: u64,
    /// Newest time that the device was told.
    clock: u64,
    /// What a request and its answer need on the way between the user and us.
    path: Path,
    /// Real time since which nobody was told anything and nobody asked.
    quiet_since: u64,
    /// Completions that are known, on the device's clock, by slot.
    due: BinaryHeap<Reverse<(u64, u64, usize)>>,
    pushed: u64,
    open: Vec<Option<Open<T>>>,
    unused: Vec<usize>,
    files: HashMap<FileId, WritingBack>,
    counters: Counters,
    /// The same for whoever watches, in the order of [`Op::ALL`].
    live: Arc<[LiveTimes; 4]>,
}

impl<T> Line<T> {
    /// A line of `device`, whose clock starts at the real time `now`.
    pub(crate) fn new(mut device: Box<dyn Device>, now: u64) -> Self {
        Self {
            is_queued: device.queued().is_some(),
            device,
            origin: now,
            clock: 0,
            path: Path::fixed(Nanos(0)),
            quiet_since: now,
            due: BinaryHeap::new(),
            pushed: 0,
            open: Vec::new(),
            unused: Vec::new(),
            files: HashMap::new(),
            counters: Counters::default(),
            live: Arc::default(),
        }
    }

    /// Counts answers there too.
    pub(crate) fn show_in(&mut self, live: Arc<[LiveTimes; 4]>) {
        self.live = live;
    }

    /// Sets what the path takes.
    pub(crate) fn set_path(&mut self, path: Path) {
        self.path = path;
    }

    /// Another device takes over, idle; what the one before works at completes at once.
    pub(crate) fn replace(&mut self, mut device: Box<dyn Device>, now: u64) {
        self.due.clear();
        self.files.clear();
        for (slot, open) in self.open.iter_mut().enumerate() {
            if let Some(open) = open {
                (open.parts_left, open.then_flush) = (1, false);
                self.due.push(Reverse((0, 0, slot)));
            }
        }
        self.is_queued = device.queued().is_some();
        (self.device, self.origin, self.clock) = (device, now, 0);
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Jobs that are not answered.
    pub(crate) fn depth(&self) -> usize {
        self.open.len() - self.unused.len()
    }

    /// A request that costs something arrives.
    #[cfg(test)]
    pub(crate) fn arrive(&mut self, now: u64, charge: &Charge, payload: T) {
        self.arrive_later(now, now, charge, payload);
    }

    /// A request that costs something arrives, and reaches the device at `at`.
    pub(crate) fn arrive_later(&mut self, now: u64, at: u64, charge: &Charge, payload: T) {
        let slot = self.begin(charge, now, None, payload);
        self.quiet_since = now;
        let at = at.saturating_sub(self.origin);
        for part in &charge.parts {
            self.submit(at, slot, part);
        }
        if !charge.parts.is_empty() {
            return;
        }
        let file = charge.written_back.as_ref().map(|back| back.file);
        if let Some(writing) = file.and_then(|file| self.files.get_mut(&file)) {
            writing.flushes.push(slot);
        } else {
            self.part_done(slot, at);
        }
    }

    /// Data of a file, which arrived at `at`, go to the device; whoever wrote them does not wait.
    pub(crate) fn write_back(&mut self, at: u64, file: FileId, parts: &[Part], payload: T) {
        let charge = Charge { parts: parts.to_vec(), ..Charge::FREE };
        let slot = self.begin(&charge, at, Some(file), payload);
        self.files.entry(file).or_default().jobs += 1;
        for part in &charge.parts {
            self.submit(at.saturating_sub(self.origin), slot, part);
        }
    }

    /// A job is under way; returns its slot.
    fn begin(&mut self, charge: &Charge, arrived: u64, file: Option<FileId>, payload: T) -> usize {
        let (op, bytes) = charge.kind();
        let slot = self.unused.pop().unwrap_or_else(|| {
            self.open.push(None);
            self.open.len() - 1
        });
        self.open[slot] = Some(Open {
            payload,
            op,
            bytes,
            arrived,
            parts_left: charge.parts.len(),
            then_flush: charge.then_flush,
            file,
            at: 0,
        });
        self.counters.arrived(self.depth());
        slot
    }

    fn submit(&mut self, at: u64, slot: usize, part: &Part) {
        self.clock = self.clock.max(at);
        let now = Nanos(self.clock);
        let len = part.len.min(PART_BYTES_MAX) as u32;
        let request = Request { due: now, offset: Bytes(part.offset), len, op: part.op, stream: 0 };
        if self.is_queued {
            let queued = self.device.queued().expect("it was when the line was made");
            queued.arrive(now, slot as u64, &request);
        } else {
            let completion = self.device.submit(now, &request).0;
            self.pushed += 1;
            self.due.push(Reverse((completion, self.pushed, slot)));
        }
    }

    /// A part of a job completed at `at`; tells whether the job is done.
    fn part_done(&mut self, slot: usize, at: u64) -> bool {
        let open = self.open[slot].as_mut().expect("a part belongs to an open job");
        open.at = open.at.max(at);
        open.parts_left = open.parts_left.saturating_sub(1);
        if open.parts_left > 0 {
            return false;
        }
        if !std::mem::take(&mut open.then_flush) {
            return true;
        }
        open.parts_left = 1;
        let at = open.at;
        self.submit(at, slot, &Part { op: Op::Flush, offset: 0, len: 0 });
        false
    }

    /// When to call [`Line::finish`] next, in real time; `None` while nothing is under way.
    pub(crate) fn next_at(&mut self) -> Option<u64> {
        self.next_event().map(|at| self.leaves_at(at))
    }

    /// When an answer leaves that is due at `at` on the device's clock: the longer the user has
    /// waited by then, the longer it is on its way.
    fn leaves_at(&self, at: u64) -> u64 {
        let due = self.origin + at;
        due.saturating_sub(self.path.after_ns(due.saturating_sub(self.quiet_since)))
    }

    fn next_event(&mut self) -> Option<u64> {
        let known = self.due.peek().map(|Reverse((at, ..))| *at);
        if !self.is_queued {
            return known;
        }
        let queued = self.device.queued().expect("it was when the line was made");
        let inside = queued.next_event().map(|at| at.0);
        known.into_iter().chain(inside).min()
    }

    /// Takes out the jobs whose answer is due at the real time `now`.
    pub(crate) fn finish(&mut self, now: u64, done: &mut Vec<Done<T>>) {
        let before = done.len();
        while let Some(at) = self.next_event().filter(|at| self.leaves_at(*at) <= now) {
            let known = self.due.peek().is_some_and(|Reverse((known, ..))| *known <= at);
            let (slot, at) = if known {
                let Reverse((at, _, slot)) = self.due.pop().expect("it was there a line above");
                (slot, at)
            } else {
                self.clock = self.clock.max(at);
                let queued = self.device.queued().expect("it was when the line was made");
                let Some((at, ticket)) = queued.next_completion(Nanos(at)) else { continue };
                (ticket as usize, at.0)
            };
            if self.part_done(slot, at) {
                done.push(self.close(slot, now));
            }
        }
        if done.len() > before {
            self.quiet_since = now;
        }
    }

    fn close(&mut self, slot: usize, now: u64) -> Done<T> {
        let open = self.open[slot].take().expect("a job is closed once");
        self.unused.push(slot);
        if let Some(file) = open.file {
            self.written_back(file, open.at);
        }
        let arrived = open.arrived.saturating_sub(self.origin);
        let target = self.leaves_at(open.at).max(open.arrived);
        let service = open.at.saturating_sub(arrived);
        self.live[open.op as usize].record(service);
        self.counters.answered(open.op, open.bytes, service, now.saturating_sub(target));
        Done { payload: open.payload }
    }

    /// A job of a file has written back at `at`: after the last one its flushes begin.
    fn written_back(&mut self, file: FileId, at: u64) {
        let Some(writing) = self.files.get_mut(&file) else { return };
        writing.jobs -= 1;
        if writing.jobs > 0 {
            return;
        }
        let writing = self.files.remove(&file).unwrap_or_default();
        for slot in writing.flushes {
            if let Some(open) = &mut self.open[slot] {
                // As if the kernel had waited: the flush is asked for now.
                open.arrived = open.arrived.max(self.origin + at);
            }
            self.part_done(slot, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use model::queued::{self, Ahead, Queued};
    use model::ram::Ram;
    use profile::ram::RamParameters;
    use proptest::prelude::*;
    use trace::Trace;

    use super::*;

    /// 100 ns a request, whatever it is, on this many ports.
    fn ram(ports: u32) -> Box<dyn Device> {
        let parameters =
            RamParameters { capacity: None, latency_ns: 100.0, bytes_per_s: 1e15, ports };
        Box::new(Ram::new(&parameters))
    }

    fn charge(op: Op, then_flush: bool) -> Charge {
        Charge { parts: vec![Part { op, offset: 0, len: 4096 }], then_flush, ..Charge::FREE }
    }

    /// Lets everything complete; gives (time of the answer, payload).
    fn drain(line: &mut Line<u32>) -> Vec<(u64, u32)> {
        let mut found = Vec::new();
        let mut done = Vec::new();
        while let Some(at) = line.next_at() {
            line.finish(at, &mut done);
            found.extend(done.drain(..).map(|done| (at, done.payload)));
        }
        found
    }

    #[test]
    fn answers_leave_when_the_model_says_less_the_path() {
        let mut line = Line::new(ram(1), 1000);
        line.arrive(1000, &charge(Op::Read, false), 1);
        line.arrive(1010, &charge(Op::Read, false), 2);
        let mut done = Vec::new();
        line.finish(1099, &mut done);
        assert!(done.is_empty());
        line.set_path(Path::fixed(Nanos(7)));
        assert_eq!(drain(&mut line), [(1093, 1), (1193, 2)]);
        assert_eq!(line.depth(), 0);
    }

    #[test]
    fn an_answer_leaves_the_earlier_the_longer_the_user_has_slept() {
        let mut line = Line::new(ram(1), 0);
        line.set_path(Path::measured(vec![(0, 5), (100, 25)]));
        line.arrive(0, &charge(Op::Read, false), 1);
        assert_eq!(line.next_at(), Some(75));
        // Whoever has just asked is awake.
        line.arrive(60, &charge(Op::Read, false), 2);
        assert_eq!(line.next_at(), Some(100 - 13));
        let mut done = Vec::new();
        line.finish(86, &mut done);
        assert!(done.is_empty());
        line.finish(87, &mut done);
        assert_eq!((done.len(), line.next_at()), (1, Some(200 - 25)));
        assert_eq!(line.counters().lateness.max(), 0);
    }

    #[test]
    fn a_forced_write_takes_a_flush_after_it() {
        let mut line = Line::new(ram(4), 0);
        line.arrive(0, &charge(Op::Write, true), 1);
        line.arrive(0, &Charge { then_flush: true, ..Charge::FREE }, 2);
        assert_eq!(drain(&mut line), [(100, 2), (200, 1)]);
    }

    /// Two writes of a file that were answered already, and a sync of it: the flush begins after
    /// the later of them, and is counted from there. A sync of another file waits for nothing.
    #[test]
    fn a_flush_waits_for_what_is_written_back_of_its_file() {
        let mut line = Line::new(ram(1), 1000);
        let file = (1, 7);
        let write = charge(Op::Write, false).parts;
        line.write_back(1000, file, &write, 1);
        line.write_back(1010, file, &write, 2);
        let sync = |file| Charge {
            then_flush: true,
            written_back: Some(WrittenBack { file, writes: Vec::new() }),
            ..Charge::FREE
        };
        line.arrive(1020, &sync(file), 3);
        line.arrive(1020, &sync((1, 8)), 4);
        assert_eq!(drain(&mut line), [(1100, 1), (1200, 2), (1300, 4), (1400, 3)]);
        let [written, flushed] = [Op::Write, Op::Flush].map(|op| line.counters().of(op).clone());
        assert_eq!((written.requests, written.bytes), (2, 8192));
        assert_eq!((flushed.requests, flushed.service.max()), (2, 280));
        assert_eq!(flushed.service.min(), 200, "1200 to 1400");
        // Nothing is left of the file.
        line.arrive(2000, &sync(file), 5);
        assert_eq!(drain(&mut line), [(2100, 5)]);
    }

    #[test]
    fn a_late_answer_is_counted_as_late_and_never_as_service() {
        let mut line = Line::new(ram(1), 0);
        line.arrive(0, &charge(Op::Read, false), 1);
        let mut done = Vec::new();
        line.finish(350, &mut done);
        assert_eq!(done.len(), 1);
        let counters = line.counters();
        assert_eq!((counters.lateness.max(), counters.of(Op::Read).service.max()), (250, 100));
    }

    #[test]
    fn a_device_that_is_replaced_owes_nothing() {
        let mut line = Line::new(ram(1), 0);
        line.arrive(0, &charge(Op::Read, true), 1);
        line.replace(ram(1), 50);
        assert_eq!(drain(&mut line), [(50, 1)]);
        line.arrive(60, &charge(Op::Read, false), 2);
        assert_eq!(drain(&mut line), [(160, 2)]);
    }

    /// One server that takes `offset` ns, the lowest of those that wait first.
    #[derive(Default)]
    struct LowestFirst {
        clock: u64,
        /// (offset, ticket)
        waiting: Vec<(u64, u64)>,
        /// (end, ticket)
        serving: Option<(u64, u64)>,
        ahead: Ahead,
    }

    impl LowestFirst {
        fn start(&mut self) {
            if self.serving.is_none() && !self.waiting.is_empty() {
                self.waiting.sort_by_key(|(offset, _)| *offset);
                let (offset, ticket) = self.waiting.remove(0);
                self.serving = Some((self.clock + offset, ticket));
            }
        }
    }

    impl Queued for LowestFirst {
        fn arrive(&mut self, now: Nanos, ticket: u64, request: &Request) {
            assert!(now.0 >= self.clock, "time runs back");
            self.clock = now.0;
            self.waiting.push((request.offset.0, ticket));
            self.start();
        }

        fn next_completion(&mut self, until: Nanos) -> Option<(Nanos, u64)> {
            let (end, ticket) = self.serving.filter(|(end, _)| *end <= until.0)?;
            self.clock = end;
            self.serving = None;
            self.start();
            Some((Nanos(end), ticket))
        }

        fn next_event(&mut self) -> Option<Nanos> {
            self.serving.map(|(end, _)| Nanos(end))
        }
    }

    impl Device for LowestFirst {
        fn submit(&mut self, now: Nanos, request: &Request) -> Nanos {
            queued::submit(self, now, request)
        }

        fn submit_due(&mut self, trace: &Trace, range: Range<usize>, completions: &mut [u64]) {
            let mut ahead = std::mem::take(&mut self.ahead);
            queued::submit_due(self, &mut ahead, trace, range, completions);
            self.ahead = ahead;
        }

        fn queued(&mut self) -> Option<&mut dyn Queued> {
            Some(self)
        }
    }

    /// (gap, offset) as a trace.
    fn trace(requests: Vec<(u64, u64)>) -> Trace {
        let mut trace = Trace::default();
        trace.streams.push(trace::Stream { name: "data".to_owned() });
        let mut due = 0;
        for (gap, offset) in requests {
            due += gap;
            let (at, offset) = (Nanos(due), Bytes(offset));
            trace.push(Request { due: at, offset, len: 512, op: Op::Read, stream: 0 });
        }
        trace
    }

    /// When the line answers the requests of a trace, with an exact clock.
    fn serve(trace: &Trace, device: Box<dyn Device>) -> Vec<u64> {
        let mut line = Line::new(device, 0);
        let mut found = vec![0; trace.count()];
        let mut done = Vec::new();
        let mut next = 0;
        while next < trace.count() || line.depth() > 0 {
            let arrival = trace.due.get(next).copied();
            let event = line.next_at();
            if let Some(at) = arrival.filter(|at| event.is_none_or(|event| *at < event)) {
                let request = trace.request(next);
                let part =
                    Part { op: request.op, offset: request.offset.0, len: request.len.into() };
                line.arrive(at, &Charge { parts: vec![part], ..Charge::FREE }, next as u32);
                next += 1;
                continue;
            }
            let at = event.expect("something is under way");
            line.finish(at, &mut done);
            for done in done.drain(..) {
                found[done.payload as usize] = at;
            }
        }
        found
    }

    proptest! {
        /// Served in real time with an exact clock, a device that looks at its queue completes its
        /// requests when it does in a replay that knows all arrivals.
        #[test]
        fn a_queued_device_answers_as_it_does_in_a_replay(
            requests in prop::collection::vec((0u64..3000, 1u64..2000), 1..60),
        ) {
            let trace = trace(requests);
            let mut expected = vec![0; trace.count()];
            LowestFirst::default().submit_due(&trace, 0..trace.count(), &mut expected);
            prop_assert_eq!(serve(&trace, Box::new(LowestFirst::default())), expected);
        }
    }
}
