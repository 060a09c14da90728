//! The loop that every reading runs: bytes in, rows out, bad records counted or named.
//!
//! Lines and records are handed to the format in pieces; what is left of a piece is put in front of
//! the next one. A line or record that is longer than [`LARGEST_RECORD_BYTES`] is refused before it
//! takes memory.

use std::path::Path;

use super::batch::Batch;
use super::cause::{Place, describe};
use super::decode::{Decoder, Fault, LARGEST_RECORD_BYTES, LineFormat, Piece};
use super::input::Input;
use super::notes::{Notes, SHOWN_BAD};
use super::pieces::{CHUNK_BYTES, Filled, Pieces};
use crate::{Error, Result};

/// Most rows that room is made for at a time.
const MOST_ROOM_ROWS: usize = 1 << 30;

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
    fn fault(&mut self, path: &Path, fault: Fault) -> Result<()> {
        if self.lenient && fault.resume.is_some() {
            self.notes.bad(fault.place, fault.cause);
            return Ok(());
        }
        let (path, cause) = (path.to_owned(), fault.cause);
        Err(match fault.place {
            Place::Line(line) => Error::Line { path, line, cause, grammar: self.grammar },
            Place::Byte(offset) => Error::Record { path, offset, cause, grammar: self.grammar },
        })
    }

    /// Reads all lines on the thread that calls.
    pub fn lines(
        &mut self,
        input: &mut Input,
        format: &dyn LineFormat,
        out: &mut Batch,
    ) -> Result<()> {
        let mut pieces = Pieces::default();
        let mut buffer = Vec::new();
        loop {
            let rows = out.count();
            match pieces.next(input, &mut buffer)? {
                Filled::Lines(end) => {
                    let bad = parse(format, &buffer[..end], out, self.lenient);
                    self.bad_lines(input.path(), 0, bad)?;
                    let rows = out.count() - rows;
                    out.relieve()?;
                    make_room(out, rows, end, input.rest());
                }
                Filled::Endless => {
                    let bad = endless(out);
                    self.bad_lines(input.path(), 0, bad)?;
                }
                Filled::Skipped => {}
                Filled::End => return Ok(()),
            }
        }
    }

    /// Takes the bad lines of a piece that begins behind line `base`.
    pub fn bad_lines(&mut self, path: &Path, base: u64, bad: BadLines) -> Result<()> {
        let shown = bad.first.len() as u64;
        for (line, cause) in bad.first {
            let place = Place::Line(base + line);
            self.fault(path, Fault { place, cause, resume: Some(0) })?;
        }
        self.notes.bad += bad.count - shown;
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
                    let what = if window.at_end { "is cut off" } else { "has more than 1 MiB" };
                    let cause = format!("the record {what}");
                    self.fault(input.path(), Fault { place: window.place(), cause, resume: None })?;
                }
                Ok(consumed) => window.consume(consumed),
                Err(fault) => {
                    window.consume(fault.resume.unwrap_or(0));
                    self.fault(input.path(), fault)?;
                }
            }
            out.relieve()?;
            window.done = window.at_end && window.waiting().is_empty();
        }
        let finished = decoder.finish(out, self.notes);
        finished.or_else(|fault| self.fault(inputs[0].path(), fault))
    }
}

/// Lines of a piece that do not read.
#[derive(Default)]
pub(super) struct BadLines {
    /// All of them.
    pub count: u64,
    /// The first ones: line within the batch, counted from 1, and cause.
    pub first: Vec<(u64, String)>,
}

/// Parses a piece; a strict reading stops at the first bad line.
pub(super) fn parse(
    format: &dyn LineFormat,
    mut text: &[u8],
    out: &mut Batch,
    lenient: bool,
) -> BadLines {
    let mut bad = BadLines::default();
    while let Err((start, cause)) = format.lines(text, out) {
        let line = &text[start..];
        let end = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
        let (line, rest) = line.split_at(end);
        out.skip_line();
        bad.count += 1;
        if bad.first.len() < SHOWN_BAD {
            bad.first.push((out.lines(), describe(&cause, line)));
        }
        text = rest.get(1..).unwrap_or_default();
        if !lenient {
            break;
        }
    }
    bad
}

/// A line that was too long to be one.
pub(super) fn endless(out: &mut Batch) -> BadLines {
    out.skip_line();
    BadLines { count: 1, first: vec![(out.lines(), "the line has more than 1 MiB".to_owned())] }
}

/// Makes room for what is still to come, where the size of the input tells, else for as much again;
/// `rows` is the outcome of the last piece of `bytes`.
pub(super) fn make_room(out: &mut Batch, rows: usize, bytes: usize, rest: Option<u64>) {
    if out.room() >= 2 * rows {
        return;
    }
    // Two percent more than the last piece would make of the rest: lines grow with their numbers
    // more often than they shrink.
    let rest = rest.map(|rest| (rest as f64 / bytes.max(1) as f64 * rows as f64 * 1.02) as usize);
    let most = out
        .spill
        .as_ref()
        .map_or(MOST_ROOM_ROWS, |spill| (spill.most_rows() + 2 * rows).saturating_sub(out.count()));
    out.reserve(rest.unwrap_or(out.count()).max(2 * rows).min(most));
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
            let most = self.buffer.len().min(self.end + CHUNK_BYTES);
            let count = input.read(&mut self.buffer[self.end..most])?;
            self.end += count;
            self.at_end = count == 0;
        }
        Ok(())
    }
}
