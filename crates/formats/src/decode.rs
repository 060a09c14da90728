//! What a format implements: a decoder of lines or of a byte stream, and what it decodes into.
//!
//! A text format whose lines do not depend on each other implements [`LineFormat`]; the engine may
//! then give chunks of one file to several threads. Everything else (binary records, events that
//! must be paired, several files of one trace) implements [`Decoder`] and sees its bytes in order.
//! Both push rows into a [`Batch`]; neither does I/O. The engine reads, decompresses, counts bad
//! lines, puts rows in the order of time and builds the trace.
//!
//! The answer of a decoder must not depend on where a piece of input ends; the engine's tests cut
//! inputs everywhere.

use std::collections::BTreeMap;
use std::fmt;

use trace::Op;

use super::machine;
use super::notes::Notes;
use super::streams::Streams;
use super::words::newline;

/// What [`Row::service_ns`] holds where the format does not say.
pub const SERVICE_UNKNOWN_NS: u64 = 0;

/// One request as a decoder sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// When it was issued, ns: from the start of the trace, or of any epoch for formats with
    /// [`Times::Absolute`].
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
    /// Which layer the trace shows, see [`trace::Origin::layer`]; empty where the format leaves it
    /// open.
    pub layer: &'static str,
    /// What the origin is to keep beyond the requests.
    pub facts: BTreeMap<String, String>,
    /// Streams seen; a decoder takes the index of a row's stream from here.
    pub streams: Streams,
    /// Lines that held no request: blank ones, comments, headers, bad ones in a lenient reading.
    pub(super) lines_without_row: u64,
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
            layer: "",
            facts: BTreeMap::new(),
            streams,
            lines_without_row: 0,
        }
    }

    /// Rows so far.
    pub fn count(&self) -> usize {
        self.due.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
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
        self.due.clear();
        self.offset.clear();
        self.len.clear();
        self.op.clear();
        self.stream.clear();
        self.service.clear();
        self.lines_without_row = 0;
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

    /// Makes room for so many more rows in all columns.
    pub(super) fn reserve(&mut self, rows: usize) {
        fn column<T>(column: &mut Vec<T>, rows: usize) {
            if column.capacity() - column.len() < rows {
                column.reserve_exact(rows);
                machine::expect_filled(column);
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

    /// Replaces the service times, for formats of which only some traces have them. As many as rows.
    pub(super) fn set_service(&mut self, service: Option<Vec<u64>>) {
        self.has_service = service.is_some();
        self.service = service.unwrap_or_default();
    }

    /// Lines taken, where every line is a row or was skipped.
    pub(super) fn lines(&self) -> u64 {
        self.count() as u64 + self.lines_without_row
    }
}

/// What the times of a format count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// The start of the trace: kept as they are.
    Relative,
    /// A calendar or the start of a machine: the smallest one becomes zero, and the origin keeps it.
    Absolute,
}

/// What is wrong with a record; turned into words only when it is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// This field is not a whole number.
    NotANumber(&'static str),
    /// This field is too large.
    TooLarge(&'static str),
    /// Fewer fields than the format has; holds what it has.
    MissingField(&'static str),
    /// A cause in words.
    Said(&'static str),
    /// A cause in words made for it.
    Told(String),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber(field) => write!(f, "{field} is not a whole number"),
            Self::TooLarge(field) => write!(f, "{field} is too large"),
            Self::MissingField(expected) => write!(f, "fewer than {expected}"),
            Self::Said(cause) => f.write_str(cause),
            Self::Told(cause) => f.write_str(cause),
        }
    }
}

/// A text format whose lines are independent of each other, so that chunks parse in parallel.
pub trait LineFormat: Send + Sync {
    /// Takes one line, without its newline and carriage return; it is not blank. Pushes a row,
    /// or calls [`Batch::skip_line`] for a line that rightly holds none (a header).
    fn line(&self, line: &[u8], out: &mut Batch) -> Result<(), Cause>;

    /// Takes whole lines. `Err` gives the position of the first bad line in `text`; rows in front of
    /// it are in `out`. Formats that are read fast override this; the answer must be the same.
    fn lines(&self, text: &[u8], out: &mut Batch) -> Result<(), (usize, Cause)> {
        let mut start = 0;
        while start < text.len() {
            let end = text[start..].iter().position(|byte| *byte == b'\n');
            let end = end.map_or(text.len(), |end| start + end);
            match without_return(&text[start..end]) {
                line if is_blank(line) => out.skip_line(),
                line => self.line(line, out).map_err(|cause| (start, cause))?,
            }
            start = end + 1;
        }
        Ok(())
    }
}

/// A line without the carriage returns at its end.
pub(super) fn without_return(mut line: &[u8]) -> &[u8] {
    while let [rest @ .., b'\r'] = line {
        line = rest;
    }
    line
}

/// Whether a line holds nothing but white space.
pub(super) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

/// Where in the input something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A line, counted from 1.
    Line(u64),
    /// A byte, counted from 0, of the decompressed input.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it starts.
    pub place: Place,
    /// What is wrong with it.
    pub cause: String,
    /// Where a lenient reading goes on, as bytes of the piece that `decode` was given; `None` where
    /// nothing behind the fault can be trusted. Everything in front of it counts as consumed.
    pub resume: Option<usize>,
}

/// A part of an input.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// What was not consumed yet, as far as it is there. Never empty unless `at_end`.
    pub bytes: &'a [u8],
    /// Which input it belongs to, where a trace has several files.
    pub source: usize,
    /// Nothing follows in this input: all of it must be consumed now.
    pub at_end: bool,
}

/// A format that must see its bytes in order.
pub trait Decoder: Send {
    /// Of which input it wants to see more next, where a trace has several files (one per CPU).
    fn wants(&self) -> usize {
        0
    }

    /// Takes whole records from the front of a piece and says how many bytes they had. With nothing
    /// consumed it is asked again with more bytes, up to [`LARGEST_RECORD_BYTES`].
    fn decode(&mut self, piece: Piece<'_>, out: &mut Batch) -> Result<usize, Fault>;

    /// Called once when all inputs are consumed: rows held back, and what is to be told.
    fn finish(&mut self, out: &mut Batch, notes: &mut Notes) -> Result<(), Fault> {
        let (_, _) = (out, notes);
        Ok(())
    }
}

/// No line and no record of any format comes near this.
pub const LARGEST_RECORD_BYTES: usize = 256 << 10;

/// A text format whose lines depend on those in front of them; [`StatefulLines`] makes it a
/// [`Decoder`].
pub trait LineSink: Send {
    /// Takes one line, without its newline and carriage return; it is not blank.
    fn line(&mut self, line: &[u8], out: &mut Batch) -> Result<(), Cause>;

    /// Called once after the last line.
    fn finish(&mut self, out: &mut Batch, notes: &mut Notes) -> Result<(), Cause> {
        let (_, _) = (out, notes);
        Ok(())
    }
}

/// Splits the input into lines for a [`LineSink`] and counts them.
#[derive(Debug)]
pub struct StatefulLines<S> {
    sink: S,
    line: u64,
}

impl<S: LineSink> StatefulLines<S> {
    /// Around a sink that has seen nothing.
    pub fn new(sink: S) -> Self {
        Self { sink, line: 0 }
    }
}

impl<S: LineSink> Decoder for StatefulLines<S> {
    fn decode(&mut self, piece: Piece<'_>, out: &mut Batch) -> Result<usize, Fault> {
        let text = piece.bytes;
        let mut start = 0;
        while start < text.len() {
            let end = match newline(&text[start..]) {
                Some(end) => start + end,
                None if piece.at_end => text.len(),
                None => break,
            };
            self.line += 1;
            let line = without_return(&text[start..end]);
            if !is_blank(line) {
                self.sink.line(line, out).map_err(|cause| Fault {
                    place: Place::Line(self.line),
                    cause: describe(&cause, line),
                    resume: Some(text.len().min(end + 1)),
                })?;
            }
            start = text.len().min(end + 1);
        }
        Ok(start)
    }

    fn finish(&mut self, out: &mut Batch, notes: &mut Notes) -> Result<(), Fault> {
        self.sink.finish(out, notes).map_err(|cause| Fault {
            place: Place::Line(self.line),
            cause: cause.to_string(),
            resume: None,
        })
    }
}

/// The cause with the line that it is about.
#[cold]
pub(super) fn describe(cause: &Cause, line: &[u8]) -> String {
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let shown = String::from_utf8_lossy(&line[..line.len().min(80)]);
    format!("{cause}: '{}'", shown.trim_end().escape_debug())
}
