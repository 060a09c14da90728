//! The trace in columns.

use std::collections::BTreeMap;

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
    /// What the capture knows beyond the request itself, where it knows it.
    pub observed: Option<Observed>,
    /// What the stream indices mean.
    pub streams: Vec<Stream>,
    /// Where the trace came from and how it was made.
    pub origin: Origin,
}

/// Columns that only a capture of a running system can fill.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Measured completion - issue, ns.
    pub service: Vec<u64>,
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

    /// Appends a request. The caller keeps `observed` in step, or leaves it `None`.
    pub fn push(&mut self, request: Request) {
        self.due.push(request.due.0);
        self.offset.push(request.offset.0);
        self.len.push(request.len);
        self.op.push(request.op);
        self.stream.push(request.stream);
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

    /// Checks the invariants in the crate's header.
    pub fn validate(&self) -> Result<(), Malformed> {
        let expected = self.count();
        let mut columns = vec![
            ("offset", self.offset.len()),
            ("len", self.len.len()),
            ("op", self.op.len()),
            ("stream", self.stream.len()),
        ];
        if let Some(observed) = &self.observed {
            columns.push(("service", observed.service.len()));
            columns.push(("actor", observed.actor.len()));
            columns.push(("transaction", observed.transaction.len()));
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
