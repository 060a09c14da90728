//! What formats decode into: rows, gathered in columns.

use std::collections::BTreeMap;

use trace::Op;

use super::huge::expect_filled;
use super::spill::Spill;
use super::streams::Streams;

/// What [`Row::service_ns`] holds where the format does not say.
pub const SERVICE_UNKNOWN_NS: u64 = 0;

/// One request as a decoder sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// When it was issued, ns: from the start of the trace, or of any epoch for formats with
    /// [`Times::Absolute`](super::decode::Times::Absolute).
    pub due_ns: u64,
    /// First byte.
    pub offset_bytes: u64,
    /// Bytes.
    pub len_bytes: u32,
    /// What it does.
    pub op: Op,
    /// Index from [`Batch::streams`].
    pub stream: u16,
    /// Measured completion - issue, ns; [`SERVICE_UNKNOWN_NS`] where the format does not say.
    pub service_ns: u64,
}

/// Rows decoded so far, in columns, in the order of the input.
#[derive(Debug)]
pub struct Batch {
    pub(super) due: Vec<u64>,
    pub(super) offset: Vec<u64>,
    pub(super) len: Vec<u32>,
    pub(super) op: Vec<Op>,
    pub(super) stream: Vec<u16>,
    /// As long as the others where the format has service times, else empty.
    pub(super) service: Vec<u64>,
    has_service: bool,
    /// What was added to all times of the input so that none is in front of zero, ns.
    pub(super) before_zero_ns: u64,
    /// Which layer the trace shows, see [`trace::Origin::layer`]; empty where the format leaves it
    /// open.
    pub layer: &'static str,
    /// What the origin is to keep beyond the requests.
    pub facts: BTreeMap<String, String>,
    /// Streams seen; a decoder takes the index of a row's stream from here.
    pub streams: Streams,
    /// Lines that held no request: blank ones, comments, headers, bad ones in a lenient reading.
    pub(super) lines_without_row: u64,
    /// Takes full blocks of rows, where not all of them are to be in memory.
    pub(super) spill: Option<Spill>,
}

impl Batch {
    /// An empty one; `has_service` where the format tells how long requests took.
    pub fn new(streams: Streams, has_service: bool) -> Self {
        Self {
            due: Vec::new(),
            offset: Vec::new(),
            len: Vec::new(),
            op: Vec::new(),
            stream: Vec::new(),
            service: Vec::new(),
            has_service,
            before_zero_ns: 0,
            layer: "",
            facts: BTreeMap::new(),
            streams,
            lines_without_row: 0,
            spill: None,
        }
    }

    /// Rows in memory.
    pub fn count(&self) -> usize {
        self.due.len()
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.count() as u64 + self.spill.as_ref().map_or(0, Spill::rows)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    /// Puts the rows aside, where they fill a block.
    pub(super) fn relieve(&mut self) -> crate::Result<()> {
        match &self.spill {
            Some(spill) if self.count() >= spill.most_rows() => self.put_aside(),
            _ => Ok(()),
        }
    }

    /// Puts the rows aside.
    pub(super) fn put_aside(&mut self) -> crate::Result<()> {
        let Some(mut spill) = self.spill.take() else { return Ok(()) };
        let added = spill.add(self);
        self.forget_rows();
        self.spill = Some(spill);
        added
    }

    /// Appends a row. A row that ends beyond 2^64 bytes is the caller's to refuse.
    #[inline]
    pub fn push(&mut self, row: Row) {
        debug_assert!(row.offset_bytes.checked_add(u64::from(row.len_bytes)).is_some());
        self.due.push(row.due_ns);
        self.offset.push(row.offset_bytes);
        self.len.push(row.len_bytes);
        self.op.push(row.op);
        self.stream.push(row.stream);
        if self.has_service {
            self.service.push(row.service_ns);
        }
    }

    /// An empty one for rows of the same format.
    pub(super) fn same_kind(&self) -> Self {
        Self::new(self.streams.same_kind(), self.has_service)
    }

    /// Forgets the rows; keeps the memory and the streams.
    pub(super) fn clear(&mut self) {
        self.forget_rows();
        self.lines_without_row = 0;
    }

    fn forget_rows(&mut self) {
        self.due.clear();
        self.offset.clear();
        self.len.clear();
        self.op.clear();
        self.stream.clear();
        self.service.clear();
    }

    /// Appends the rows of another, whose stream `s` is `streams[s]` here.
    pub(super) fn append(&mut self, other: &Self, streams: &[u16]) {
        self.due.extend_from_slice(&other.due);
        self.offset.extend_from_slice(&other.offset);
        self.len.extend_from_slice(&other.len);
        self.op.extend_from_slice(&other.op);
        if streams.iter().enumerate().all(|(there, here)| there == usize::from(*here)) {
            self.stream.extend_from_slice(&other.stream);
        } else {
            self.stream.extend(other.stream.iter().map(|stream| streams[usize::from(*stream)]));
        }
        self.service.extend_from_slice(&other.service);
        self.lines_without_row += other.lines_without_row;
    }

    /// Rows that fit without growing.
    pub(super) fn room(&self) -> usize {
        self.due.capacity() - self.due.len()
    }

    /// Makes room for this many more rows in all columns.
    pub(super) fn reserve(&mut self, rows: usize) {
        fn column<T>(column: &mut Vec<T>, rows: usize) {
            if column.capacity() - column.len() < rows {
                column.reserve_exact(rows);
                expect_filled(column);
            }
        }
        column(&mut self.due, rows);
        column(&mut self.offset, rows);
        column(&mut self.len, rows);
        column(&mut self.op, rows);
        column(&mut self.stream, rows);
        if self.has_service {
            column(&mut self.service, rows);
        }
    }

    /// Counts a line that holds no request.
    pub fn skip_line(&mut self) {
        self.lines_without_row += 1;
    }

    /// Whether rows carry service times.
    pub(super) fn has_service(&self) -> bool {
        self.has_service
    }

    /// Replaces the service times, for formats of which only some traces have them. As many as
    /// rows.
    pub(super) fn set_service(&mut self, service: Option<Vec<u64>>) {
        self.has_service = service.is_some();
        self.service = service.unwrap_or_default();
    }

    /// Lines taken, where every line is a row or was skipped.
    pub(super) fn lines(&self) -> u64 {
        self.rows() + self.lines_without_row
    }
}
