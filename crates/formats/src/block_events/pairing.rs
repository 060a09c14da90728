//! From events in the order of time to requests.

use trace::Op;

use super::super::batch::SERVICE_UNKNOWN_NS;
use super::devices::Devices;
use super::in_flight::{Entry, InFlight, Key};
use super::{Action, BlockEvent, Clock, Flags, SECTOR_BYTES};

/// Service time of a row that has not completed.
const OPEN: u64 = u64::MAX;
/// Service time of a row that was requeued: another row stands for its next issue.
const REQUEUED: u64 = u64::MAX - 1;
/// Issue time of an entry that waits in a queue.
const WAITING: u64 = u64::MAX;

/// Commands in keys beyond those of [`Op`]: a flush that carries the write bit, as old kernels have
/// it, must not be ended by the empty completion of a new kernel's flush machinery.
const FLUSH: u64 = Op::Flush as u64;
const FLUSH_WRITE: u64 = 4;

/// What is being made of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// No issue was seen yet; queue events are kept as rows in case none comes.
    Undecided,
    /// A row per issue.
    Issues,
    /// A row per queue event.
    Queued,
}

/// What was seen, and its outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Events by [`Action`].
    pub actions: [u64; Action::ALL.len()],
    /// Completions of requests whose issue is not in the trace.
    pub completed_only: u64,
    /// Requests that never completed although others did; their service time is unknown.
    pub never_completed: u64,
    /// Completions of a part.
    pub partial: u64,
    /// Requests given back by the device and issued again.
    pub requeued: u64,
    /// Empty completions of the flush machinery.
    pub bookkeeping: u64,
    /// Commands that move no data, or are no file-system I/O.
    pub without_data: u64,
    /// Writes that ask for a flush in front; the flush is an event of its own where it is issued.
    pub flush_in_front: u64,
    /// Writes with forced unit access.
    pub fua: u64,
    /// Issues of requests whose queue event is not in the trace; due is their issue.
    pub issued_only: u64,
    /// Requests of which the device was given parts (split by limits of the queue).
    pub issued_in_parts: u64,
    /// Events later than the window could sort.
    pub late: u64,
    /// Sum of D - Q, ns, over the requests that completed; with queue times only.
    pub wait_ns: u64,
    /// Requests that completed.
    pub completed: u64,
    /// Time of the first event, ns; `None` without events.
    pub first_ns: Option<u64>,
}

impl Tally {
    /// All counts with what they count.
    pub(crate) fn counts(&self) -> Vec<(&'static str, u64)> {
        let mut counts: Vec<(&'static str, u64)> = Action::ALL
            .iter()
            .map(|action| (action.plural(), self.actions[*action as usize]))
            .collect();
        counts.extend([
            ("completions of requests issued before the trace began", self.completed_only),
            ("requests never completed", self.never_completed),
            ("partial completions", self.partial),
            ("requests issued again after a requeue", self.requeued),
            ("empty completions: bookkeeping of the flush machinery", self.bookkeeping),
            ("events left out: no data and no flush", self.without_data),
            ("writes with a flush in front", self.flush_in_front),
            ("writes with forced unit access", self.fua),
            ("requests without a queue event: due is their issue", self.issued_only),
            ("requests issued in parts", self.issued_in_parts),
            ("events too late to be sorted", self.late),
        ]);
        counts
    }
}

/// Requests under construction.
pub(crate) struct Pairing {
    mode: Mode,
    clock: Clock,
    rows: Rows,
    in_flight: InFlight,
    waiting: InFlight,
    devices: Devices,
    newest_ns: u64,
    pub tally: Tally,
}

/// Requests in columns.
#[derive(Default)]
pub(crate) struct Rows {
    pub due: Vec<u64>,
    pub offset: Vec<u64>,
    pub len: Vec<u32>,
    pub op: Vec<Op>,
    /// Indices of [`Paired::devices`].
    pub stream: Vec<u16>,
    pub service: Vec<u64>,
}

/// What came out.
pub(crate) struct Paired {
    /// The requests, in the order of time unless events were late; `due` as [`Clock`] says.
    pub rows: Rows,
    /// Whether rows have service times: whether completions were seen.
    pub has_service: bool,
    pub tally: Tally,
    /// Devices in the order of their appearance, major << 20 | minor.
    pub devices: Vec<u32>,
    /// Whether `due` is when requests were queued because there are no issues.
    pub queue_only: bool,
}

impl Pairing {
    /// `queued_times`: a request is due when it was queued, not when it was issued.
    pub(crate) fn new(clock: Clock, queued_times: bool) -> Self {
        Self {
            clock,
            mode: if queued_times { Mode::Queued } else { Mode::Undecided },
            rows: Rows::default(),
            in_flight: InFlight::default(),
            waiting: InFlight::default(),
            devices: Devices::default(),
            newest_ns: 0,
            tally: Tally::default(),
        }
    }

    /// Whether requests are due when they were queued.
    pub(crate) fn queued_times(&self) -> bool {
        self.mode == Mode::Queued
    }

    /// Counts an event, whether or not it goes on to [`Self::event`].
    #[inline]
    pub(crate) fn count(&mut self, action: Action, time_ns: u64) {
        self.tally.actions[action as usize] += 1;
        if self.tally.first_ns.is_none_or(|first| time_ns < first) {
            self.tally.first_ns = Some(time_ns);
        }
    }

    /// Whether [`Self::event`] still looks at queue events.
    #[inline]
    #[expect(clippy::needless_bitwise_bool, reason = "a branch here cannot be predicted")]
    pub(crate) fn wants(&self, action: Action) -> bool {
        action.pairs() & ((action != Action::Queue) | (self.mode != Mode::Issues))
    }

    /// Takes an event.
    #[inline]
    pub(crate) fn event(&mut self, event: &BlockEvent) {
        if event.time_ns < self.newest_ns {
            self.tally.late += 1;
        }
        self.newest_ns = self.newest_ns.max(event.time_ns);
        let device = self.devices.index(event.device);
        match event.action {
            Action::Issue => self.issue(event, device),
            Action::Complete => self.complete(event, device),
            Action::Queue => self.queue(event, device),
            Action::Requeue => self.requeue(event, device),
            _ => {}
        }
    }

    #[inline]
    fn row(&mut self, event: &BlockEvent, op: Op, sector: u64, bytes: u32, device: u16) -> usize {
        let rows = &mut self.rows;
        rows.due.push(event.time_ns);
        rows.offset.push(if op == Op::Flush { 0 } else { sector * SECTOR_BYTES });
        rows.len.push(bytes);
        rows.op.push(op);
        rows.stream.push(device);
        rows.service.push(OPEN);
        rows.service.len() - 1
    }

    fn queue(&mut self, event: &BlockEvent, device: u16) {
        if self.mode == Mode::Issues {
            return;
        }
        let Some(op) = event.op() else {
            self.tally.without_data += 1;
            return;
        };
        self.flags(event);
        let row = self.row(event, op, event.sector, event.bytes, device);
        if self.mode == Mode::Queued {
            let code = op as u64;
            let key = key(event.sector, code, device);
            // What is given up here keeps its row, which counts as never completed at the end.
            self.waiting.insert(Entry { key, bytes: event.bytes, row, issued: WAITING });
        }
    }

    #[inline]
    fn flags(&mut self, event: &BlockEvent) {
        if event.bytes > 0 && event.flags.has(Flags::FLUSH | Flags::FUA) {
            self.tally.flush_in_front += u64::from(event.flags.has(Flags::FLUSH));
            self.tally.fua += u64::from(event.flags.has(Flags::FUA));
        }
    }

    #[inline]
    fn issue(&mut self, event: &BlockEvent, device: u16) {
        let Some(op) = event.op() else {
            self.tally.without_data += 1;
            return;
        };
        if self.mode == Mode::Queued {
            self.issue_queued(event, op, device);
            return;
        }
        if self.mode == Mode::Undecided {
            self.drop_queue_rows();
        }
        self.flags(event);
        let row = self.row(event, op, event.sector, event.bytes, device);
        let key = key(event.sector, code(op, event), device);
        self.in_flight.insert(Entry { key, bytes: event.bytes, row, issued: event.time_ns });
    }

    #[cold]
    fn drop_queue_rows(&mut self) {
        self.mode = Mode::Issues;
        self.rows = Rows::default();
        (self.tally.flush_in_front, self.tally.fua, self.tally.without_data) = (0, 0, 0);
    }

    /// Finds the queued requests that an issue covers: merged ones lie one behind the other.
    fn issue_queued(&mut self, event: &BlockEvent, op: Op, device: u16) {
        let issued_code = code(op, event);
        let issued = event.time_ns;
        if op == Op::Flush {
            let mut found = false;
            while let Some(entry) = self.waiting.take(key(0, FLUSH, device), 0) {
                found = true;
                let key = key(0, issued_code, device);
                self.in_flight.insert(Entry { key, issued, ..entry });
            }
            if !found {
                self.issue_unqueued(event, op, event.sector, 0, device);
            }
            return;
        }
        let (mut sector, mut left) = (event.sector, event.bytes);
        while left > 0 {
            let key_here = key(sector, issued_code, device);
            let Some(entry) = self.waiting.take(key_here, left) else {
                self.issue_unqueued(event, op, sector, left, device);
                return;
            };
            let part = entry.bytes.min(left);
            let sectors = u64::from(part) / SECTOR_BYTES;
            let first_issued = if entry.issued == WAITING { issued } else { entry.issued };
            if entry.bytes > left {
                self.tally.issued_in_parts += u64::from(entry.issued == WAITING);
                let rest = key(sector + sectors, issued_code, device);
                let bytes = entry.bytes - left;
                self.waiting.insert(Entry { key: rest, bytes, issued: first_issued, ..entry });
            }
            let entry = Entry { key: key_here, bytes: part, issued: first_issued, ..entry };
            self.in_flight.insert(entry);
            left -= part;
            sector += sectors;
        }
    }

    fn issue_unqueued(&mut self, event: &BlockEvent, op: Op, sector: u64, len: u32, device: u16) {
        self.tally.issued_only += 1;
        let row = self.row(event, op, sector, len, device);
        let key = key(sector, code(op, event), device);
        self.in_flight.insert(Entry { key, bytes: len, row, issued: event.time_ns });
    }

    fn requeue(&mut self, event: &BlockEvent, device: u16) {
        let Some(op) = event.op() else { return };
        let (mut sector, mut left) = (event.sector, event.bytes);
        while let Some(entry) = self.in_flight.take(key(sector, code(op, event), device), left) {
            self.tally.requeued += 1;
            if self.mode == Mode::Queued {
                let key = if op == Op::Flush { key(0, FLUSH, device) } else { entry.key };
                self.waiting.insert(Entry { key, issued: WAITING, ..entry });
            } else {
                self.rows.service[entry.row] = REQUEUED;
            }
            left = left.saturating_sub(entry.bytes);
            sector += u64::from(entry.bytes) / SECTOR_BYTES;
            if left == 0 || self.mode != Mode::Queued {
                return;
            }
        }
    }

    #[inline]
    fn complete(&mut self, event: &BlockEvent, device: u16) {
        let op = match event.op() {
            Some(op) => op,
            None if event.bytes == 0 && event.flags.0 == Flags::WRITE => Op::Flush,
            None => {
                self.tally.without_data += 1;
                return;
            }
        };
        let code = code(op, event);
        if op == Op::Flush {
            self.complete_flush(event, code, device);
            return;
        }
        let key = key(event.sector, code, device);
        match self.in_flight.take(key, event.bytes) {
            Some(entry) if entry.bytes == event.bytes => self.end(event, entry),
            Some(entry) => self.complete_parts(event, entry, code),
            None => self.tally.completed_only += 1,
        }
    }

    /// Gives the row of an entry that was taken out its service time.
    #[inline]
    fn end(&mut self, event: &BlockEvent, entry: Entry) {
        // A late event may stand in front of the issue.
        let service_ns = event.time_ns.saturating_sub(entry.issued);
        self.rows.service[entry.row] = service_ns.max(SERVICE_UNKNOWN_NS + 1);
        self.tally.completed += 1;
        if self.mode == Mode::Queued {
            let due = self.rows.due[entry.row];
            self.tally.wait_ns =
                self.tally.wait_ns.saturating_add(entry.issued.saturating_sub(due));
        }
    }

    /// Part of a request, or several that were merged when they were issued.
    fn complete_parts(&mut self, event: &BlockEvent, first: Entry, code: u64) {
        let (mut sector, mut left) = (event.sector, event.bytes);
        let mut next = Some(first);
        while let Some(entry) = next {
            let device = entry.key.device;
            if entry.bytes > left {
                self.tally.partial += 1;
                let place = key(sector + u64::from(left) / SECTOR_BYTES, code, device);
                let rest = Entry { key: place, bytes: entry.bytes - left, ..entry };
                self.in_flight.insert(rest);
                return;
            }
            self.end(event, entry);
            left -= entry.bytes;
            sector += u64::from(entry.bytes) / SECTOR_BYTES;
            // An issue is one request; only queued ones are merged.
            if left == 0 || self.mode != Mode::Queued {
                return;
            }
            next = self.in_flight.take(key(sector, code, device), left);
        }
    }

    fn complete_flush(&mut self, event: &BlockEvent, code: u64, device: u16) {
        let mut found = false;
        while let Some(entry) = self.in_flight.take(key(0, code, device), 0) {
            found = true;
            self.end(event, entry);
            // One flush of the device serves every flush that waited for it.
            if self.mode != Mode::Queued {
                break;
            }
        }
        match (found, code) {
            (true, _) => {}
            (false, FLUSH_WRITE) => self.tally.bookkeeping += 1,
            (false, _) => self.tally.completed_only += 1,
        }
    }

    /// The requests. Call when every event has been taken.
    pub(crate) fn finish(mut self) -> Paired {
        let issues = self.tally.actions[Action::Issue as usize];
        let queue_only = issues == 0 && !self.rows.due.is_empty();
        let service = &self.rows.service;
        let completions = self.tally.actions[Action::Complete as usize] > 0;
        let has_service = completions && !queue_only;
        if service.contains(&REQUEUED) {
            let kept: Vec<bool> = service.iter().map(|service| *service != REQUEUED).collect();
            self.rows.retain(&kept);
        }
        let first_ns = self.tally.first_ns.unwrap_or(0);
        if self.clock == Clock::SinceBoot {
            for due in &mut self.rows.due {
                *due = due.saturating_sub(first_ns);
            }
        }
        if has_service {
            for service in &mut self.rows.service {
                if *service == OPEN {
                    *service = SERVICE_UNKNOWN_NS;
                    self.tally.never_completed += 1;
                }
            }
        } else {
            self.rows.service.clear();
        }
        let (rows, tally, devices) = (self.rows, self.tally, self.devices.into_numbers());
        Paired { rows, has_service, tally, devices, queue_only }
    }
}

impl Rows {
    /// Keeps the rows with a true entry.
    fn retain(&mut self, kept: &[bool]) {
        fn column<T>(column: &mut Vec<T>, kept: &[bool]) {
            let mut kept = kept.iter();
            column.retain(|_| *kept.next().expect("one entry per row"));
        }
        column(&mut self.due, kept);
        column(&mut self.offset, kept);
        column(&mut self.len, kept);
        column(&mut self.op, kept);
        column(&mut self.stream, kept);
        column(&mut self.service, kept);
    }
}

#[inline]
fn key(sector: u64, code: u64, device: u16) -> Key {
    let sector = if code >= FLUSH { 0 } else { sector };
    Key { place: sector << 3 | code, device }
}

/// What a command is called in a key.
#[inline]
fn code(op: Op, event: &BlockEvent) -> u64 {
    match op {
        Op::Flush if event.flags.has(Flags::WRITE) => FLUSH_WRITE,
        op => op as u64,
    }
}
