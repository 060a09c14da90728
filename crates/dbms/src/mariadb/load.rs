//! `LOAD DATA LOCAL INFILE` without a file: the rows go from a closure onto the wire.
//!
//! The server asks for the file by name (packet 0xfb); we answer with pieces and an empty packet.

use super::answer::Done;
use super::connection::{Connection, TEXT};
use super::fields::malformed;
use super::frame;
use crate::Error;

/// What [`Connection::load_data`] is given: appends the next piece to the buffer; tells whether
/// more will follow.
pub type Source<'a> = dyn FnMut(&mut Vec<u8>) -> Result<bool, Error> + 'a;

/// A good size for a piece of a file.
const PIECE: usize = 256 << 10;

/// Longest piece that goes into one packet.
const PIECE_MAX: usize = 1 << 20;

impl Connection {
    /// Executes `LOAD DATA LOCAL INFILE ...` with what `source` makes in place of the file, piece
    /// by piece; a piece of a few hundred KiB is a good size. An error of `source` ends the load;
    /// what was sent until then stands in the table if nobody rolls back.
    ///
    /// # Errors
    /// As [`Connection::receive`]; what `source` returns.
    pub fn load_data(&mut self, sql: &str, source: &mut Source<'_>) -> Result<Done, Error> {
        self.fresh()?;
        self.queue_text(sql);
        self.flush()?;
        let mut columns = std::mem::take(&mut self.columns);
        let done = self.answer(&mut columns, TEXT, &mut |_| Ok(()), Some(source));
        self.columns = columns;
        done
    }

    /// Sends what the source makes, then the empty packet that ends a file; the inner error is the
    /// source's.
    pub(super) fn send_file(
        &mut self,
        source: Option<&mut Source<'_>>,
    ) -> Result<Option<Error>, Error> {
        let mut sequence = self.input.sequence();
        let mut failed = None;
        let Some(source) = source else {
            self.send_piece(&[], &mut sequence)?;
            return Ok(Some(malformed("the server asked for a local file that was not offered")));
        };
        let mut piece = Vec::with_capacity(PIECE);
        let mut more = true;
        while more {
            piece.clear();
            match source(&mut piece) {
                Ok(follows) => more = follows,
                Err(error) => {
                    (failed, more) = (Some(error), false);
                    piece.clear();
                }
            }
            for part in piece.chunks(PIECE_MAX) {
                self.send_piece(part, &mut sequence)?;
            }
        }
        self.send_piece(&[], &mut sequence)?;
        Ok(failed)
    }

    fn send_piece(&mut self, piece: &[u8], sequence: &mut u8) -> Result<(), Error> {
        *sequence = sequence.wrapping_add(1);
        let start = frame::begin(&mut self.output, *sequence);
        self.output.extend_from_slice(piece);
        frame::end(&mut self.output, start);
        self.flush()
    }
}
