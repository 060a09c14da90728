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

use super::batch::Batch;
use super::cause::{Cause, Place, describe};
use super::notes::Notes;
use super::words::newline;

/// What the times of a format count from. Those of a trace count from its first request, and the
/// origin keeps what was taken off, see [`START_FACT`](crate::START_FACT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// The start of the capture: what is taken off is worth telling.
    Relative,
    /// A calendar or the start of a machine.
    Absolute,
}

/// A text format whose lines are independent of each other, so that chunks parse in parallel.
pub trait LineFormat: Send + Sync {
    /// Takes one line, without its newline and carriage return; it is not blank. Pushes a row,
    /// or calls [`Batch::skip_line`] for a line that rightly holds none (a header).
    fn line(&self, line: &[u8], out: &mut Batch) -> Result<(), Cause>;

    /// Takes whole lines. `Err` gives the position of the first bad line in `text`; rows in front
    /// of it are in `out`. Formats that are read fast override this; the answer must be the same.
    fn lines(&self, text: &[u8], out: &mut Batch) -> Result<(), (usize, Cause)> {
        let mut start = 0;
        while start < text.len() {
            let end = newline(&text[start..]).map_or(text.len(), |end| start + end);
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
pub const LARGEST_RECORD_BYTES: usize = 1 << 20;
/// Bytes of one line after which even a lenient reading stops: the input is no text.
pub(super) const MOST_SKIPPED_BYTES: usize = 64 << 20;

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
