//! The requests of a trace made fit for the device, and the record of their times.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use events::{Completed, LiveTimes};
use trace::{Op, Trace};

use super::Mode;
use crate::clock;
use crate::driver::{Flight, Order, Work};

/// Time between setting up and the first due time, so that the first request is not late.
const LEAD_NS: u64 = 2_000_000;

/// The trace as it will be issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Requests {
    /// In trace order; `None` where the request is skipped.
    pub(super) list: Vec<Option<Prepared>>,
    pub(super) largest_bytes: u32,
    /// Requests that were not aligned to the logical block.
    pub(super) widened: u64,
    pub(super) skipped: u64,
    /// Due time of the last request, ns.
    pub(super) span_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prepared {
    pub(super) due_ns: u64,
    pub(super) offset: u64,
    pub(super) len: u32,
    pub(super) op: Op,
}

impl Requests {
    pub(super) fn prepare(trace: &Trace, block_bytes: u32, punch_holes: bool) -> Self {
        let block = u64::from(block_bytes.max(1));
        let (mut widened, mut skipped, mut largest_bytes) = (0, 0, 0);
        let mut one = |request: trace::Request| {
            let due_ns = request.due.0;
            let transfers = matches!(request.op, Op::Read | Op::Write);
            let empty = request.len == 0 && request.op != Op::Flush;
            if empty || (request.op == Op::Trim && !punch_holes) {
                skipped += 1;
                return None;
            }
            if !transfers {
                let (offset, len) = (request.offset.0, request.len);
                return Some(Prepared { due_ns, offset, len, op: request.op });
            }
            let start = request.offset.0 / block * block;
            let end = (request.offset.0 + u64::from(request.len)).next_multiple_of(block);
            let len = u32::try_from(end - start).unwrap_or(u32::MAX / block_bytes * block_bytes);
            widened += u64::from(len != request.len);
            largest_bytes = largest_bytes.max(len);
            Some(Prepared { due_ns, offset: start, len, op: request.op })
        };
        let list = trace.requests().map(&mut one).collect();
        Self { list, largest_bytes, widened, skipped, span_ns: trace.span().0 }
    }
}

/// Times per request and the state of the schedule.
#[derive(Clone, Debug)]
pub(super) struct Replaying {
    pub(super) service_ns: Vec<u64>,
    pub(super) response_ns: Vec<u64>,
    pub(super) lateness_ns: Vec<u64>,
    /// First request not issued yet.
    next: usize,
    timed: bool,
    /// Requests issued and completed out of order (dependent mode).
    noted: usize,
    start_ns: u64,
    /// Last issue and last completion, ns after the start.
    pub(super) last_issue_ns: u64,
    pub(super) last_completion_ns: u64,
    live: Arc<Live>,
}

/// What another thread may see of a replay while it goes on.
#[derive(Debug, Default)]
pub(super) struct Live {
    issued: AtomicU64,
    completed: AtomicU64,
    /// Response times in the order of [`Op::ALL`].
    ops: [LiveTimes; 4],
}

impl Live {
    /// Requests under way.
    pub(super) fn in_flight(&self) -> u64 {
        // Completions first: what completes in between is missed rather than counted twice.
        let completed = self.completed.load(Ordering::Relaxed);
        self.issued.load(Ordering::Relaxed).saturating_sub(completed)
    }

    /// What completed since the last call, by operation.
    pub(super) fn take(&self) -> Vec<Completed> {
        let taken = Op::ALL.iter().zip(&self.ops).map(|(op, tally)| tally.take(op.name()));
        taken.filter(|completed| completed.requests > 0).collect()
    }
}

impl Replaying {
    pub(super) fn new(requests: &Requests, mode: Mode) -> Self {
        let count = requests.list.len();
        // Written, not just reserved: the first touch of a page costs a fault.
        let column = || vec![u64::MAX; count];
        let mut this = Self {
            service_ns: column(),
            response_ns: column(),
            lateness_ns: column(),
            next: 0,
            timed: matches!(mode, Mode::Timed | Mode::Dependent),
            noted: 0,
            start_ns: 0,
            last_issue_ns: 0,
            last_completion_ns: 0,
            live: Arc::default(),
        };
        for column in [&mut this.service_ns, &mut this.response_ns, &mut this.lateness_ns] {
            column.fill(0);
        }
        this
    }

    /// Sets the time that due times count from.
    pub(super) fn start(&mut self) {
        self.start_ns = clock::now_ns() + if self.timed { LEAD_NS } else { 0 };
    }

    /// The time that due times count from.
    pub(super) fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Shows its progress there.
    pub(super) fn show_in(&mut self, live: Arc<Live>) {
        self.live = live;
    }

    /// Counts a request that is issued now.
    #[inline]
    pub(super) fn issue(&self) {
        self.live.issued.fetch_add(1, Ordering::Relaxed);
    }

    /// Writes down the times of a completed request.
    #[inline]
    pub(super) fn note(&mut self, flight: &Flight, at_ns: u64) {
        let index = flight.order.tag as usize;
        self.live.completed.fetch_add(1, Ordering::Relaxed);
        let response_ns = at_ns.saturating_sub(flight.order.due_ns);
        self.live.ops[flight.order.op as usize].record(response_ns);
        self.service_ns[index] = at_ns.saturating_sub(flight.issued_ns);
        self.response_ns[index] = at_ns.saturating_sub(flight.order.due_ns);
        self.lateness_ns[index] = flight.issued_ns.saturating_sub(flight.order.due_ns);
        let issued = flight.issued_ns.saturating_sub(self.start_ns);
        self.last_issue_ns = self.last_issue_ns.max(issued);
        self.last_completion_ns = at_ns.saturating_sub(self.start_ns);
        self.noted = self.noted.max(index + 1);
    }

    /// The schedule over these requests.
    pub(super) fn on<'a>(&'a mut self, requests: &'a Requests) -> Scheduled<'a> {
        Scheduled { state: self, requests }
    }

    /// Requests that were issued or skipped, from the first to the last issued one.
    pub(super) fn count(&self) -> usize {
        self.next.max(self.noted)
    }
}

/// A trace as work for the I/O loop.
pub(super) struct Scheduled<'a> {
    state: &'a mut Replaying,
    requests: &'a Requests,
}

impl Work for Scheduled<'_> {
    #[inline]
    fn next_due(&mut self, now_ns: u64) -> Option<u64> {
        loop {
            match self.requests.list.get(self.state.next)? {
                Some(request) if self.state.timed => {
                    return Some(self.state.start_ns + request.due_ns);
                }
                Some(_) => return Some(now_ns),
                None => self.state.next += 1,
            }
        }
    }

    #[inline]
    fn take(&mut self, now_ns: u64) -> Order {
        let index = self.state.next;
        self.state.next += 1;
        self.state.issue();
        let request = self.requests.list[index].expect("next_due stops at requests that exist");
        let due_ns = if self.state.timed { self.state.start_ns + request.due_ns } else { now_ns };
        let Prepared { offset, len, op, .. } = request;
        Order { op, offset, len, tag: index as u64, due_ns }
    }

    #[inline]
    fn completed(&mut self, flight: &Flight, at_ns: u64) -> bool {
        self.state.note(flight, at_ns);
        false
    }
}

#[cfg(test)]
mod tests {
    use trace::{Request, Stream};
    use units::{Bytes, Nanos};

    use super::*;

    fn trace_of(requests: &[(u64, Op, u64, u32)]) -> Trace {
        let mut trace = Trace { streams: vec![Stream::default()], ..Trace::default() };
        for &(due, op, offset, len) in requests {
            let (due, offset) = (Nanos(due), Bytes(offset));
            trace.push(Request { due, offset, len, op, stream: 0 });
        }
        trace
    }

    #[test]
    fn requests_are_widened_to_blocks_and_trims_skipped() {
        let trace = trace_of(&[
            (0, Op::Read, 0, 4096),
            (1, Op::Read, 100, 1),
            (2, Op::Write, 4000, 200),
            (3, Op::Trim, 0, 4096),
            (4, Op::Flush, 0, 0),
            (5, Op::Read, 512, 0),
        ]);
        let found = Requests::prepare(&trace, 512, false);
        let shape: Vec<_> = found.list.iter().map(|r| r.map(|r| (r.offset, r.len))).collect();
        assert_eq!(
            shape,
            [Some((0, 4096)), Some((0, 512)), Some((3584, 1024)), None, Some((0, 0)), None]
        );
        assert_eq!((found.widened, found.skipped, found.largest_bytes), (2, 2, 4096));
        let found = Requests::prepare(&trace, 512, true);
        assert_eq!(found.skipped, 1);
    }

    #[test]
    fn skipped_requests_are_passed_over() {
        let trace =
            trace_of(&[(0, Op::Trim, 0, 512), (5, Op::Read, 0, 512), (9, Op::Trim, 0, 512)]);
        let requests = Requests::prepare(&trace, 512, false);
        let mut state = Replaying::new(&requests, Mode::AsFastAsPossible);
        let mut work = state.on(&requests);
        assert_eq!(work.next_due(7), Some(7));
        assert_eq!(work.take(7).tag, 1);
        assert_eq!(work.next_due(8), None);
        assert_eq!(state.count(), 3);
    }
}
