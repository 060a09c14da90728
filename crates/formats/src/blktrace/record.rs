//! One record of `blk_io_trace`.

use super::super::block_events::{Action, BlockEvent, Flags};

/// Bytes in front of the payload.
pub(super) const RECORD_BYTES: usize = 48;
/// The magic without its version.
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;

// Kinds of command, the high half of `action` (enum blktrace_cat).
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const PASS_THROUGH: u32 = 1 << 9;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;
const DRIVER_DATA: u32 = 1 << 14;
const FUA: u32 = 1 << 15;

/// The note that holds the wall clock (`__BLK_TN_TIMESTAMP`).
const NOTE_TIMESTAMP: u32 = 1;

/// Byte order of the traced machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// What the magic at the front says; `None` where there is none.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let magic = bytes.first_chunk::<4>()?;
        if u32::from_le_bytes(*magic) & !0xff == MAGIC {
            Some(Self::Little)
        } else if u32::from_be_bytes(*magic) & !0xff == MAGIC {
            Some(Self::Big)
        } else {
            None
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Little => "little",
            Self::Big => "big",
        }
    }

    fn magic(self) -> [u8; 4] {
        match self {
            Self::Little => (MAGIC | VERSION).to_le_bytes(),
            Self::Big => (MAGIC | VERSION).to_be_bytes(),
        }
    }
}

// Numbers of a record in a byte order that is known when the program is built, so that each is one
// load.

#[inline]
fn u16_at<const BIG: bool>(record: &[u8; RECORD_BYTES], at: usize) -> u16 {
    let bytes = [record[at], record[at + 1]];
    if BIG { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
}

#[inline]
fn u32_at<const BIG: bool>(bytes: &[u8], at: usize) -> u32 {
    let bytes = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if BIG { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

#[inline]
fn u64_at<const BIG: bool>(record: &[u8; RECORD_BYTES], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&record[at..at + 8]);
    if BIG { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
}

/// What a record says.
pub(super) enum Parsed {
    Event(BlockEvent),
    /// A note with the wall clock in its payload.
    WallClock,
    /// Another note.
    Note,
}

/// A record.
pub(super) struct Record {
    pub event: Parsed,
    pub payload_bytes: u16,
    /// Whether it is a completion with an error.
    pub failed: bool,
}

/// Why a record cannot be read.
pub(super) struct BadRecord {
    pub cause: String,
    /// Whether looking for the next magic makes sense.
    recoverable: bool,
}

impl BadRecord {
    /// Bytes to skip from the start of the bad record to where the next one may start.
    pub(super) fn resume(&self, bytes: &[u8], order: ByteOrder) -> Option<usize> {
        let magic = order.magic();
        let next = bytes[1..].windows(4).position(|window| window == magic);
        // A magic may be cut at the end of the piece.
        self.recoverable.then(|| next.map_or(bytes.len().saturating_sub(3).max(1), |at| at + 1))
    }
}

/// Reads the fixed part of a record.
#[inline]
pub(super) fn parse<const BIG: bool>(record: &[u8; RECORD_BYTES]) -> Result<Record, BadRecord> {
    let magic = u32_at::<BIG>(record, 0);
    if magic != MAGIC | VERSION {
        return Err(bad_magic(magic));
    }
    let action = u32_at::<BIG>(record, 28);
    let kind = action >> 16;
    let (sector, bytes) = (u64_at::<BIG>(record, 16), u32_at::<BIG>(record, 24));
    let payload_bytes = u16_at::<BIG>(record, 46);
    if kind & NOTIFY != 0 {
        let event = if action & 0xff == NOTE_TIMESTAMP { Parsed::WallClock } else { Parsed::Note };
        return Ok(Record { event, payload_bytes, failed: false });
    }
    let action = if kind & DRIVER_DATA == 0 { action_of(action & 0xff) } else { Action::Other };
    let mut flags = 0;
    flags |= if kind & WRITE != 0 { Flags::WRITE } else { 0 };
    flags |= if kind & FLUSH != 0 { Flags::FLUSH } else { 0 };
    flags |= if kind & DISCARD != 0 { Flags::DISCARD } else { 0 };
    flags |= if kind & FUA != 0 { Flags::FUA } else { 0 };
    flags |= if kind & PASS_THROUGH != 0 { Flags::FOREIGN } else { 0 };
    let event = BlockEvent {
        time_ns: u64_at::<BIG>(record, 8),
        sector,
        bytes,
        device: u32_at::<BIG>(record, 36),
        action,
        flags: Flags(flags),
    };
    if action.pairs() && event.is_beyond_addresses() {
        let cause = format!("sector {sector} has no byte address in 64 bits");
        return Err(BadRecord { cause, recoverable: true });
    }
    let failed = action == Action::Complete && u16_at::<BIG>(record, 44) != 0;
    Ok(Record { event: Parsed::Event(event), payload_bytes, failed })
}

#[cold]
fn bad_magic(found: u32) -> BadRecord {
    if found & !0xff == MAGIC {
        let cause = format!("version {} of blk_io_trace; this build reads 7", found & 0xff);
        return BadRecord { cause, recoverable: false };
    }
    let cause = format!("the magic of a record is missing, {found:#010x} is in its place");
    BadRecord { cause, recoverable: true }
}

/// What the low byte of `action` says (enum blktrace_act).
#[inline]
fn action_of(code: u32) -> Action {
    const CODES: [Action; 18] = [
        Action::Other,
        Action::Queue,
        Action::BackMerge,
        Action::FrontMerge,
        Action::GetRequest,
        Action::SleepRequest,
        Action::Requeue,
        Action::Issue,
        Action::Complete,
        Action::Plug,
        Action::Unplug,
        Action::UnplugTimer,
        Action::Insert,
        Action::Split,
        Action::Bounce,
        Action::Remap,
        Action::Abort,
        Action::Other,
    ];
    CODES.get(code as usize).copied().unwrap_or(Action::Other)
}

/// The payload of a wall clock note: u32 seconds, u32 nanoseconds.
pub(super) fn wall_clock<const BIG: bool>(payload: &[u8]) -> Option<u64> {
    (payload.len() >= 8).then(|| {
        let (seconds, nanos) = (u32_at::<BIG>(payload, 0), u32_at::<BIG>(payload, 4));
        u64::from(seconds) * 1_000_000_000 + u64::from(nanos)
    })
}
