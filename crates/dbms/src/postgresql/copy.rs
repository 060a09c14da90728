//! `COPY ... FROM STDIN`, in binary or as text
//! (PostgreSQL 15 manual, chapter 55.2.6 and the page of COPY).

use super::connection::Connection;
use super::inbox::protocol;
use crate::Error;

/// The file header: signature, flags, length of the extension.
const HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// A COPY that takes rows. Ends with [`CopyIn::finish`]; one that is dropped before is cancelled on
/// the server by the next use of the connection, or by its end.
#[must_use = "rows are only stored by finish()"]
pub struct CopyIn<'c> {
    connection: &'c mut Connection,
    binary: bool,
    ended: bool,
}

impl<'c> CopyIn<'c> {
    /// Begins; `sql` is the COPY statement, `WITH (FORMAT binary, ...)` or text.
    pub(super) fn begin(
        connection: &'c mut Connection,
        sql: &str,
        binary: bool,
    ) -> Result<Self, Error> {
        connection.start_query(sql)?;
        let message = connection.message()?;
        if message.kind != b'G' {
            connection.settle()?;
            return Err(protocol("no COPY began"));
        }
        let mut copy = Self { connection, binary, ended: false };
        if binary {
            copy.send(HEADER)?;
        }
        Ok(copy)
    }

    /// Sends rows: each a 16-bit count of fields, then the fields with their lengths; or lines of
    /// text. A piece need not end with a row.
    ///
    /// # Errors
    /// A broken connection; the server's own error, which it can send at any time.
    pub fn send(&mut self, rows: &[u8]) -> Result<(), Error> {
        if self.connection.stream_readable() {
            // It only speaks before the end when something is wrong.
            self.ended = true;
            self.connection.settle()?;
            return Err(protocol("COPY ended early"));
        }
        self.connection.send_copy_data(rows)
    }

    /// Ends the COPY; returns the rows stored.
    pub fn finish(mut self) -> Result<u64, Error> {
        self.ended = true;
        if self.binary {
            // The trailer: a field count of -1.
            self.connection.send_copy_data(&[0xff, 0xff])?;
        }
        self.connection.send_message(b'c', &[])?;
        let rows = self.connection.done()?;
        self.connection.settle()?;
        Ok(rows)
    }

    /// Gives the COPY up; the server undoes it.
    pub fn abort(mut self) -> Result<(), Error> {
        self.give_up()
    }

    fn give_up(&mut self) -> Result<(), Error> {
        self.ended = true;
        self.connection.send_message(b'f', b"given up\0")?;
        match self.connection.settle() {
            // 57014: query_canceled, the answer to what we just sent.
            Err(error) if error.sqlstate() == Some("57014") => Ok(()),
            other => other.map(|_| ()),
        }
    }
}

impl Drop for CopyIn<'_> {
    fn drop(&mut self) {
        if !self.ended {
            // Only the connection can have broken; its next use says so.
            let _ = self.give_up();
        }
    }
}
