//! One request.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Op {
    /// Reads `len` bytes.
    Read = 0,
    /// Writes `len` bytes; durable only after a later flush unless the device says otherwise.
    Write = 1,
    /// Tells the device that the range holds nothing any more.
    Trim = 2,
    /// Makes every write completed before it durable; offset and length are zero.
    Flush = 3,
}

impl Op {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Trim, Self::Flush];

    /// The name used in columns, JSON and on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Flush => "flush",
        }
    }
}

/// One I/O request as a host would issue it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// When it should be issued, from the start of the trace.
    pub due: Nanos,
    /// First byte on the device.
    pub offset: Bytes,
    /// Bytes; zero for a flush.
    pub len: u32,
    /// What it does.
    pub op: Op,
    /// Index into the trace's stream table: an ASU, or a file class of a DBMS.
    pub stream: u16,
}
