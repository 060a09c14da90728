//! The loop that every reading runs: bytes in, rows out, bad records counted or named.
//!
//! Lines and records are handed to the format in pieces; what is left of a piece is put in front of
//! the next one. A line or record that is longer than [`LARGEST_RECORD_BYTES`] is refused before it
//! takes memory.

use std::mem;

use super::decode::{
    Batch, Decoder, Fault, LARGEST_RECORD_BYTES, LineFormat, Piece, Place, describe,
};
use super::input::Input;
use super::notes::Notes;
use crate::{Error, Result};

/// Bytes read at a time: fits into the second-level cache together with what becomes of them. Not
/// more than the longest line, see [`Pieces::next`].
const CHUNK_BYTES: usize = 256 << 10;
const _: () = assert!(CHUNK_BYTES <= LARGEST_RECORD_BYTES);

/// What the loop needs to know beside the format.
pub(super) struct Engine<'a> {
    /// Whether bad records are left out.
    pub lenient: bool,
    /// What the format looks like, for hints.
    pub grammar: &'static str,
    /// Where bad records are noted.
    pub notes: &'a mut Notes,
}

impl Engine<'_> {
    /// Takes a fault: noted in a lenient reading that can go on, else an error.
    fn fault(&mut self, input: &Input, fault: Fault) -> Result<()> {
        if self.lenient && fault.resume.is_some() {
            self.notes.bad(fault.place, fault.cause);
            return Ok(());
        }
        let (path, cause) = (input.path().to_owned(), fault.cause);
        Err(match fault.place {
            Place::Line(line) => Error::Line { path, line, cause, grammar: self.grammar },
            Place::Byte(offset) => Error::Record { path, offset, cause, grammar: self.grammar },
        })
    }

    /// Reads all lines.
    pub fn lines(
        &mut self,
        input: &mut Input,
        format: &dyn LineFormat,
        out: &mut Batch,
    ) -> Result<()> {
        let mut pieces = Pieces::default();
        let mut buffer = Vec::new();
        loop {
            match pieces.next(input, &mut buffer)? {
                Filled::Lines(end) => self.piece(input, format, &buffer[..end], out)?,
                Filled::Endless => {
                    let place = Place::Line(out.lines() + 1);
                    out.skip_line();
                    let cause = "the line never ends".to_owned();
                    self.fault(input, Fault { place, cause, resume: Some(0) })?;
                }
                Filled::End => return Ok(()),
            }
        }
    }

    fn piece(
        &mut self,
        input: &Input,
        format: &dyn LineFormat,
        mut text: &[u8],
        out: &mut Batch,
    ) -> Result<()> {
        while let Err((start, cause)) = format.lines(text, out) {
            let line = &text[start..];
            let end = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
            let (line, rest) = line.split_at(end);
            let (place, cause) = (Place::Line(out.lines() + 1), describe(&cause, line));
            self.fault(input, Fault { place, cause, resume: Some(0) })?;
            out.skip_line();
            text = rest.get(1..).unwrap_or_default();
        }
        Ok(())
    }

    /// Feeds a decoder from one or more inputs.
    pub fn stream(
        &mut self,
        inputs: &mut [Input],
        decoder: &mut dyn Decoder,
        out: &mut Batch,
    ) -> Result<()> {
        let mut windows: Vec<Window> = inputs.iter().map(|_| Window::default()).collect();
        loop {
            let wanted = decoder.wants();
            let open = |index: &usize| windows.get(*index).is_some_and(|window| !window.done);
            let Some(source) = Some(wanted).filter(open).or_else(|| (0..windows.len()).find(open))
            else {
                break;
            };
            let (input, window) = (&mut inputs[source], &mut windows[source]);
            window.fill(input)?;
            let piece = Piece { bytes: window.waiting(), source, at_end: window.at_end };
            match decoder.decode(piece, out) {
                Ok(0) if !window.at_end && window.waiting().len() < LARGEST_RECORD_BYTES => {}
                Ok(0) if !window.waiting().is_empty() => {
                    let what = if window.at_end { "is cut off" } else { "never ends" };
                    let cause = format!("the record {what}");
                    self.fault(input, Fault { place: window.place(), cause, resume: None })?;
                }
                Ok(consumed) => window.consume(consumed),
                Err(fault) => {
                    window.consume(fault.resume.unwrap_or(0));
                    self.fault(input, fault)?;
                }
            }
            window.done = window.at_end && window.waiting().is_empty();
        }
        let finished = decoder.finish(out, self.notes);
        finished.or_else(|fault| self.fault(&inputs[0], fault))
    }
}

/// The part of an input that a decoder has not consumed yet.
#[derive(Default)]
struct Window {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes consumed.
    consumed: u64,
    at_end: bool,
    done: bool,
}

impl Window {
    fn waiting(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn place(&self) -> Place {
        Place::Byte(self.consumed)
    }

    fn consume(&mut self, count: usize) {
        assert!(count <= self.waiting().len(), "a decoder consumed more than it was given");
        self.start += count;
        self.consumed += count as u64;
    }

    /// Reads what fits behind what waits.
    fn fill(&mut self, input: &mut Input) -> Result<()> {
        self.buffer.resize(CHUNK_BYTES + LARGEST_RECORD_BYTES, 0);
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end < self.buffer.len() && !self.at_end {
            let count = input.read(&mut self.buffer[self.end..])?;
            self.end += count;
            self.at_end = count == 0;
        }
        Ok(())
    }
}

/// Cuts an input into whole lines, piece by piece.
#[derive(Default)]
struct Pieces {
    /// What follows the last piece: the start of a line.
    carry: Vec<u8>,
    at_end: bool,
    /// Inside a line that was refused; what is left of it is dropped.
    skipping: bool,
}

/// What the buffer holds now.
enum Filled {
    /// Whole lines in so many bytes; only the last of the input may lack its newline.
    Lines(usize),
    /// Nothing: a line was too long to be one.
    Endless,
    /// Nothing, for good.
    End,
}

impl Pieces {
    fn next(&mut self, input: &mut Input, buffer: &mut Vec<u8>) -> Result<Filled> {
        buffer.resize(LARGEST_RECORD_BYTES + CHUNK_BYTES, 0);
        loop {
            let carried = self.carry.len();
            buffer[..carried].copy_from_slice(&self.carry);
            self.carry.clear();
            let mut end = carried;
            while !self.at_end && end < carried + CHUNK_BYTES {
                let count = input.read(&mut buffer[end..carried + CHUNK_BYTES])?;
                self.at_end = count == 0;
                end += count;
            }
            if end == 0 {
                return Ok(Filled::End);
            }
            let newline = |text: &[u8]| text.iter().position(|byte| *byte == b'\n');
            let first = newline(&buffer[..end]).map(|at| at + 1);
            if mem::take(&mut self.skipping) {
                self.skipping = first.is_none();
                self.carry.extend_from_slice(&buffer[first.unwrap_or(end)..end]);
                continue;
            }
            // A line that begins in the bytes of this read is no longer than they are: only the
            // first one, carried over from before, can exceed the limit.
            if first.unwrap_or(end) > LARGEST_RECORD_BYTES {
                self.skipping = first.is_none();
                self.carry.extend_from_slice(&buffer[first.unwrap_or(end)..end]);
                return Ok(Filled::Endless);
            }
            let last = buffer[..end].iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
            let complete = if self.at_end { end } else { last.unwrap_or(0) };
            self.carry.extend_from_slice(&buffer[complete..end]);
            if complete > 0 {
                return Ok(Filled::Lines(complete));
            }
        }
    }
}
