//! What a server answers: OK, an error, or result sets (knowledge base, "Result Set Packets").

use super::fields::{Fields, malformed};
use crate::Error;

/// Capabilities that both sides agreed on, as bits of the two 32-bit words of the handshake.
pub(super) mod capability {
    pub const FOUND_ROWS: u64 = 1 << 1;
    pub const LONG_FLAG: u64 = 1 << 2;
    pub const CONNECT_WITH_DB: u64 = 1 << 3;
    pub const LOCAL_FILES: u64 = 1 << 7;
    pub const PROTOCOL_41: u64 = 1 << 9;
    pub const SSL: u64 = 1 << 11;
    pub const TRANSACTIONS: u64 = 1 << 13;
    pub const SECURE_CONNECTION: u64 = 1 << 15;
    pub const MULTI_STATEMENTS: u64 = 1 << 16;
    pub const MULTI_RESULTS: u64 = 1 << 17;
    pub const PS_MULTI_RESULTS: u64 = 1 << 18;
    pub const PLUGIN_AUTH: u64 = 1 << 19;
    pub const DEPRECATE_EOF: u64 = 1 << 24;
    /// MariaDB's own, told in the second word where the first lacks CLIENT_MYSQL (bit 0).
    pub const CLIENT_MYSQL: u64 = 1;
    pub const BULK: u64 = 1 << 34;
    pub const CACHE_METADATA: u64 = 1 << 36;
}

/// Bit of the status: another result follows.
const MORE_RESULTS: u16 = 8;

/// How a command ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows that the command found to change, whether or not their values differ afterwards; summed
    /// over the statements of a command.
    pub affected: u64,
    /// The last value of `LAST_INSERT_ID`, 0 where the command set none.
    pub last_id: u64,
    /// Warnings of the last statement.
    pub warnings: u16,
    /// Result sets with columns.
    pub results: u32,
}

/// One column of a result set: what it takes to read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub code: u8,
    pub unsigned: bool,
}

impl Column {
    /// A column of a row that nobody reads.
    pub const UNKNOWN: Self = Self { code: 0, unsigned: false };
}

/// The end of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    pub affected: u64,
    pub last_id: u64,
    pub warnings: u16,
    pub more: bool,
}

/// The first packet of an answer.
#[derive(Debug)]
pub(super) enum First {
    Ok(End),
    /// The server asks for a local file.
    LocalFile,
    /// This many columns; whether their definitions follow.
    Columns(usize, bool),
}

/// Most columns of a table, and so of anything we ask for.
const COLUMNS_MAX: u64 = 4096;

impl First {
    pub fn parse(packet: &[u8], capabilities: u64) -> Result<Self, Error> {
        match packet.first() {
            None => Err(malformed("an empty answer")),
            Some(0x00) => Ok(Self::Ok(ok(packet)?)),
            Some(0xff) => Err(refusal(packet)),
            Some(0xfb) => Ok(Self::LocalFile),
            Some(_) => {
                let mut fields = Fields::new(packet);
                let count = fields.count()?;
                if count > COLUMNS_MAX {
                    return Err(malformed("more columns than a table can have"));
                }
                let cached = capabilities & capability::CACHE_METADATA != 0;
                let follow = !cached || fields.u8()? == 1;
                Ok(Self::Columns(count as usize, follow))
            }
        }
    }
}

/// The end of a result set's rows, where the packet is one: an OK that begins with 0xfe, or the old
/// EOF packet; a row begins with 0xfe only where it is longer than one packet.
#[inline]
pub(super) fn end_of_rows(packet: &[u8], capabilities: u64) -> Result<Option<End>, Error> {
    match packet.first() {
        Some(0xfe) if packet.len() < super::frame::PART_MAX => {
            if capabilities & capability::DEPRECATE_EOF != 0 { ok(packet) } else { eof(packet) }
                .map(Some)
        }
        Some(0xff) => Err(refusal(packet)),
        Some(_) => Ok(None),
        None => Err(malformed("an empty row")),
    }
}

fn ok(packet: &[u8]) -> Result<End, Error> {
    let mut fields = Fields::new(packet);
    fields.u8()?;
    let (affected, last_id) = (fields.count()?, fields.count()?);
    let (status, warnings) = (fields.u16()?, fields.u16()?);
    Ok(End { affected, last_id, warnings, more: status & MORE_RESULTS != 0 })
}

fn eof(packet: &[u8]) -> Result<End, Error> {
    let mut fields = Fields::new(packet);
    fields.u8()?;
    let (warnings, status) = (fields.u16()?, fields.u16()?);
    Ok(End { warnings, more: status & MORE_RESULTS != 0, ..End::default() })
}

/// An error packet as an error; one that cannot be read is an error as well.
#[cold]
pub(super) fn refusal(packet: &[u8]) -> Error {
    let read = || {
        let mut fields = Fields::new(packet);
        fields.u8()?;
        let code = fields.u16()?;
        let mut state = *b"HY000";
        let mut rest = fields;
        // Errors before the login is through come without a SQLSTATE.
        if rest.u8().is_ok_and(|mark| mark == b'#') {
            state.copy_from_slice(rest.bytes(5)?);
            fields = rest;
        }
        Ok(Error::Server {
            sqlstate: events::one_line(&String::from_utf8_lossy(&state)),
            code: u32::from(code),
            message: events::one_line(&String::from_utf8_lossy(fields.rest())),
            detail: None,
        })
    };
    read().unwrap_or_else(|error: Error| error)
}

/// A column definition: six names, then a fixed part.
pub(super) fn column(packet: &[u8]) -> Result<Column, Error> {
    let mut fields = Fields::new(packet);
    for _ in 0..6 {
        fields.string()?;
    }
    // Length of the fixed part, character set, display length.
    fields.count()?;
    fields.bytes(2 + 4)?;
    let code = fields.u8()?;
    let flags = fields.u16()?;
    Ok(Column { code, unsigned: flags & 32 != 0 })
}

/// The answer to a prepare: statement number, columns, parameters.
pub(super) fn prepared(packet: &[u8]) -> Result<(u32, usize, usize), Error> {
    if packet.first() == Some(&0xff) {
        return Err(refusal(packet));
    }
    let mut fields = Fields::new(packet);
    if fields.u8()? != 0 {
        return Err(malformed("an answer to PREPARE that is none"));
    }
    let (id, columns, parameters) = (fields.u32()?, fields.u16()?, fields.u16()?);
    Ok((id, usize::from(columns), usize::from(parameters)))
}
