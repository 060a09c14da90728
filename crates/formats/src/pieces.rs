//! An input in pieces of whole lines.
//!
//! What is left of a piece is put in front of the next one. A line longer than
//! [`LARGEST_RECORD_BYTES`] is refused before it takes memory.

use std::mem;

use super::decode::{LARGEST_RECORD_BYTES, MOST_SKIPPED_BYTES};
use super::input::Input;
use crate::{Error, Result};

/// Bytes read at a time: fits into the second-level cache together with what becomes of them. Not
/// more than the longest line, see [`Pieces::next`].
pub(super) const CHUNK_BYTES: usize = 256 << 10;
const _: () = assert!(CHUNK_BYTES <= LARGEST_RECORD_BYTES);

/// Cuts an input into whole lines, piece by piece.
#[derive(Default)]
pub(super) struct Pieces {
    /// What follows the last piece: the start of a line.
    carry: Vec<u8>,
    at_end: bool,
    /// Inside a line that was refused; what is left of it is dropped.
    skipping: bool,
    /// Bytes of that line dropped so far.
    skipped: usize,
}

/// What the buffer holds now.
pub(super) enum Filled {
    /// Whole lines in this many bytes; only the last of the input may lack its newline.
    Lines(usize),
    /// Nothing: a line was too long to be one.
    Endless,
    /// Nothing: a part of a line that was refused.
    Skipped,
    /// Nothing, for good.
    End,
}

impl Pieces {
    /// Fills the buffer with the next piece.
    pub fn next(&mut self, input: &mut Input, buffer: &mut Vec<u8>) -> Result<Filled> {
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
                self.skipped += first.unwrap_or(end);
                self.carry.extend_from_slice(&buffer[first.unwrap_or(end)..end]);
                if self.skipped > MOST_SKIPPED_BYTES {
                    return Err(Error::Format {
                        path: input.path().to_owned(),
                        cause: format!("a line has more than {} MiB", MOST_SKIPPED_BYTES >> 20),
                        hint: "give a text of one request per line".to_owned(),
                    });
                }
                // Not to go on here: another thread may have failed, and the line may have no end.
                return Ok(Filled::Skipped);
            }
            // A line that begins in the bytes of this read is no longer than they are: only the
            // first one, carried over from before, can exceed the limit.
            if first.unwrap_or(end) > LARGEST_RECORD_BYTES {
                self.skipping = first.is_none();
                self.skipped = first.unwrap_or(end);
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
