//! The trace in columns.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::{Bytes, Nanos};

use crate::{Op, Request};

/// A trace in memory: one entry per request in every column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// When each request should be issued, ns from the start; never falls.
    pub due: Vec<u64>,
    /// First byte of each request.
    pub offset: Vec<u64>,
    /// Bytes of each request.
    pub len: Vec<u32>,
    /// What each request does.
    pub op: Vec<Op>,
    /// Index of each request's stream.
    pub stream: Vec<u16>,
    /// Measured completion - issue of each request, ns, where it was measured.
    pub service: Option<Vec<u64>>,
    /// Who waited for what, where the capture knows it.
    pub chains: Option<Chains>,
    /// What the stream indices mean.
    pub streams: Vec<Stream>,
    /// Where the trace came from and how it was made.
    pub origin: Origin,
}

/// Who waited for what: columns that only a capture of a running system can fill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chains {
    /// Which sequential actor (worker thread, connection) issued it. Requests of one actor form a
    /// chain: each was issued after the previous one of the same actor completed.
    pub actor: Vec<u16>,
    /// Which transaction it belongs to, numbered from 1 in the order of their start; 0 is none.
    pub transaction: Vec<u32>,
}

/// One stream of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Name: a file class (`data`, `log`, `undo`, `temp`, `journal`, `meta`) or an ASU (`asu3`).
    pub name: String,
}

/// Where a trace came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Which layer it shows: `logical` (DBMS to file system), `device` (what reaches the block
    /// device), or empty where unknown.
    pub layer: String,
    /// How it was made, one sentence: the capture method, the generator, the file it was read from.
    pub source: String,
    /// Anything else worth keeping: workload, seed, settings, losses of the capture.
    pub facts: BTreeMap<String, String>,
}

/// Why a trace is not well formed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// Columns differ in length.
    #[error("column '{column}' has {found} entries where 'due' has {expected}")]
    Ragged {
        /// The column.
        column: &'static str,
        /// Entries of `due`.
        expected: usize,
        /// Entries of the column.
        found: usize,
    },
    /// Time runs back.
    #[error("request {index} is due before the one in front of it")]
    TimeRunsBack {
        /// Its index.
        index: usize,
    },
    /// A stream index without an entry in the table.
    #[error("request {index} names stream {stream}, but the trace has {count}")]
    UnknownStream {
        /// Its index.
        index: usize,
        /// The stream it names.
        stream: u16,
        /// Entries of the stream table.
        count: usize,
    },
    /// A batch whose stream table does not go on from the one before.
    #[error("the stream table does not begin with the streams of the requests in front")]
    OtherStreams,
    /// A batch with other columns than the one before.
    #[error("service times or actors are missing here, or were missing in the requests in front")]
    OtherColumns,
    /// A request ends beyond 2^64 bytes.
    #[error("request {index} ends beyond the largest address")]
    AddressOverflow {
        /// Its index.
        index: usize,
    },
}

impl Trace {
    /// Requests in the trace.
    pub fn count(&self) -> usize {
        self.due.len()
    }

    /// Whether it holds no request.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// The request at `index`.
    pub fn request(&self, index: usize) -> Request {
        Request {
            due: Nanos(self.due[index]),
            offset: Bytes(self.offset[index]),
            len: self.len[index],
            op: self.op[index],
            stream: self.stream[index],
        }
    }

    /// All requests in order.
    pub fn requests(&self) -> impl ExactSizeIterator<Item = Request> + '_ {
        (0..self.count()).map(|index| self.request(index))
    }

    /// Appends a request. The caller keeps `service` and `chains` in step, or leaves them `None`.
    pub fn push(&mut self, request: Request) {
        self.due.push(request.due.0);
        self.offset.push(request.offset.0);
        self.len.push(request.len);
        self.op.push(request.op);
        self.stream.push(request.stream);
    }

    /// Appends a request with all that a capture knows of it: how long it took, who issued it for
    /// which transaction. For traces whose every request is appended so.
    pub fn push_captured(
        &mut self,
        request: Request,
        service: Nanos,
        actor: u16,
        transaction: u32,
    ) {
        self.push(request);
        self.service.get_or_insert_default().push(service.0);
        let chains = self.chains.get_or_insert_default();
        chains.actor.push(actor);
        chains.transaction.push(transaction);
    }

    /// Appends some rows of `other`, whose stream table is the same. An empty trace takes over
    /// which columns there are; otherwise both have the same ones, or the result is ragged.
    pub fn extend_rows(&mut self, other: &Self, rows: Range<usize>) {
        if self.is_empty() {
            self.service = other.service.as_ref().map(|_| self.service.take().unwrap_or_default());
            self.chains = other.chains.as_ref().map(|_| self.chains.take().unwrap_or_default());
        }
        self.due.extend_from_slice(&other.due[rows.clone()]);
        self.offset.extend_from_slice(&other.offset[rows.clone()]);
        self.len.extend_from_slice(&other.len[rows.clone()]);
        self.op.extend_from_slice(&other.op[rows.clone()]);
        self.stream.extend_from_slice(&other.stream[rows.clone()]);
        if let (Some(service), Some(more)) = (&mut self.service, &other.service) {
            service.extend_from_slice(&more[rows.clone()]);
        }
        if let (Some(chains), Some(more)) = (&mut self.chains, &other.chains) {
            chains.actor.extend_from_slice(&more.actor[rows.clone()]);
            chains.transaction.extend_from_slice(&more.transaction[rows]);
        }
    }

    /// Service times and chains, where it has both: what a closed loop needs.
    pub fn captured(&self) -> Option<(&[u64], &Chains)> {
        Some((self.service.as_deref()?, self.chains.as_ref()?))
    }

    /// Keeps the first `count` requests, or all where it has fewer.
    pub fn truncate(&mut self, count: usize) {
        self.due.truncate(count);
        self.offset.truncate(count);
        self.len.truncate(count);
        self.op.truncate(count);
        self.stream.truncate(count);
        if let Some(service) = &mut self.service {
            service.truncate(count);
        }
        if let Some(chains) = &mut self.chains {
            chains.actor.truncate(count);
            chains.transaction.truncate(count);
        }
    }

    /// Due time of the last request: the span of the trace.
    pub fn span(&self) -> Nanos {
        Nanos(self.due.last().copied().unwrap_or(0))
    }

    /// One byte past the last one that any request touches: the smallest device that can hold it.
    pub fn extent(&self) -> Bytes {
        let ends = self.offset.iter().zip(&self.len).map(|(offset, len)| offset + u64::from(*len));
        Bytes(ends.max().unwrap_or(0))
    }

    /// Gives every stream a region of its own, one behind the other in the order of the table, each
    /// rounded up to 1 MiB: for traces whose streams have separate address spaces (the ASUs of SPC)
    /// and are to run on one device. Flushes stay at 0. `None` where the regions exceed 64 bits.
    #[must_use]
    pub fn stack_streams(mut self) -> Option<Self> {
        const REGION_BYTES: u64 = 1 << 20;
        let mut ends = vec![0u64; self.streams.len()];
        for index in 0..self.count() {
            let end = self.offset[index].checked_add(u64::from(self.len[index]))?;
            let stream_end = ends.get_mut(usize::from(self.stream[index]))?;
            *stream_end = end.max(*stream_end);
        }
        let mut start = 0u64;
        for end in &mut ends {
            let size = end.checked_next_multiple_of(REGION_BYTES)?;
            *end = start;
            start = start.checked_add(size)?;
        }
        for index in 0..self.count() {
            if self.op[index] != Op::Flush {
                self.offset[index] += ends[usize::from(self.stream[index])];
            }
        }
        Some(self)
    }

    /// Checks the invariants in the crate's header.
    pub fn validate(&self) -> Result<(), Malformed> {
        let expected = self.count();
        let mut columns = vec![
            ("offset", self.offset.len()),
            ("len", self.len.len()),
            ("op", self.op.len()),
            ("stream", self.stream.len()),
        ];
        if let Some(service) = &self.service {
            columns.push(("service", service.len()));
        }
        if let Some(chains) = &self.chains {
            columns.push(("actor", chains.actor.len()));
            columns.push(("transaction", chains.transaction.len()));
        }
        if let Some(&(column, found)) = columns.iter().find(|(_, found)| *found != expected) {
            return Err(Malformed::Ragged { column, expected, found });
        }
        if let Some(index) = self.due.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(Malformed::TimeRunsBack { index: index + 1 });
        }
        let count = self.streams.len();
        if let Some(index) = self.stream.iter().position(|stream| usize::from(*stream) >= count) {
            return Err(Malformed::UnknownStream { index, stream: self.stream[index], count });
        }
        let overflows =
            |index: &usize| self.offset[*index].checked_add(u64::from(self.len[*index])).is_none();
        match (0..expected).find(overflows) {
            Some(index) => Err(Malformed::AddressOverflow { index }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three requests on two streams, with every column.
    fn good() -> Trace {
        Trace {
            due: vec![0, 5, 5],
            offset: vec![0, 4096, 0],
            len: vec![512, 4096, 0],
            op: vec![Op::Read, Op::Write, Op::Flush],
            stream: vec![0, 1, 1],
            service: Some(vec![1, 2, 3]),
            chains: Some(Chains { actor: vec![0, 0, 1], transaction: vec![1, 1, 0] }),
            streams: vec![Stream { name: "data".to_owned() }, Stream { name: "log".to_owned() }],
            origin: Origin::default(),
        }
    }

    #[track_caller]
    fn check(spoil: impl FnOnce(&mut Trace), expected: Option<&Malformed>) {
        let mut trace = good();
        spoil(&mut trace);
        assert_eq!(trace.validate().err().as_ref(), expected);
    }

    #[test]
    fn good_traces_pass() {
        check(|_| (), None);
        check(|trace| trace.service = None, None);
        check(|trace| trace.chains = None, None);
        check(|trace| *trace = Trace::default(), None);
        check(|trace| trace.offset[1] = u64::MAX - 4096, None);
    }

    #[test]
    fn every_column_must_be_as_long_as_due() {
        type Spoil = fn(&mut Trace);
        let chains: fn(&mut Trace) -> &mut Chains = |t| t.chains.as_mut().expect("chains");
        let cases: [(&str, Spoil); 4] = [
            ("offset", |trace| trace.offset.push(0)),
            ("len", |trace| trace.len.push(0)),
            ("op", |trace| trace.op.push(Op::Read)),
            ("stream", |trace| trace.stream.push(0)),
        ];
        for (column, spoil) in cases {
            check(spoil, Some(&Malformed::Ragged { column, expected: 3, found: 4 }));
        }
        let ragged = |column| Some(Malformed::Ragged { column, expected: 3, found: 2 });
        check(|trace| trace.service = Some(vec![1, 2]), ragged("service").as_ref());
        check(|trace| _ = chains(trace).actor.pop(), ragged("actor").as_ref());
        check(|trace| _ = chains(trace).transaction.pop(), ragged("transaction").as_ref());
    }

    #[test]
    fn time_must_not_run_back() {
        check(|trace| trace.due[2] = 4, Some(&Malformed::TimeRunsBack { index: 2 }));
    }

    #[test]
    fn every_stream_must_be_in_the_table() {
        let unknown = Malformed::UnknownStream { index: 1, stream: 2, count: 2 };
        check(|trace| trace.stream[1] = 2, Some(&unknown));
        let unknown = Malformed::UnknownStream { index: 0, stream: 0, count: 0 };
        check(|trace| trace.streams.clear(), Some(&unknown));
    }

    #[test]
    fn no_request_may_end_beyond_the_largest_address() {
        let spoil = |trace: &mut Trace| trace.offset[1] = u64::MAX - 4095;
        check(spoil, Some(&Malformed::AddressOverflow { index: 1 }));
    }

    #[test]
    fn stacked_streams_do_not_overlap() {
        let trace = good();
        let stacked = trace.clone().stack_streams().expect("fits");
        // `data` ends at 512 and so takes one region; the flush of `log` has no place.
        assert_eq!(stacked.offset, [0, 4096 + (1 << 20), 0]);
        assert_eq!(Trace { offset: trace.offset.clone(), ..stacked }, trace);
        let mut large = trace.clone();
        large.offset[1] = u64::MAX - 4096;
        assert_eq!(large.stack_streams(), None);
        let mut unknown = trace;
        unknown.stream[0] = 9;
        assert_eq!(unknown.stack_streams(), None);
    }

    #[test]
    fn views_agree_with_the_columns() {
        let trace = good();
        assert_eq!((trace.count(), trace.is_empty(), trace.span()), (3, false, Nanos(5)));
        assert_eq!(trace.extent(), Bytes(8192));
        let mut copy = Trace { streams: trace.streams.clone(), ..Trace::default() };
        trace.requests().for_each(|request| copy.push(request));
        copy.service.clone_from(&trace.service);
        copy.chains.clone_from(&trace.chains);
        assert_eq!(copy, trace);
    }

    #[test]
    fn captured_requests_fill_every_column() {
        let trace = good();
        let (service, chains) = trace.captured().expect("both");
        let mut copy = Trace { streams: trace.streams.clone(), ..Trace::default() };
        for (index, request) in trace.requests().enumerate() {
            let (actor, transaction) = (chains.actor[index], chains.transaction[index]);
            copy.push_captured(request, Nanos(service[index]), actor, transaction);
        }
        assert_eq!(copy, trace);
        assert_eq!(Trace { service: None, ..good() }.captured(), None);
        assert_eq!(Trace { chains: None, ..good() }.captured(), None);
    }

    #[test]
    fn a_truncated_trace_keeps_its_start() {
        let mut trace = good();
        trace.truncate(5);
        assert_eq!(trace, good());
        trace.truncate(1);
        assert_eq!(trace.validate(), Ok(()));
        assert_eq!((trace.count(), trace.request(0)), (1, good().request(0)));
    }
}
