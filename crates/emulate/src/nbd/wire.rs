//! The messages; numbers are big-endian. Names are those of the protocol's description.

/// `NBDMAGIC`, `IHAVEOPT`, and the magic of replies to options.
const SERVER_MAGIC: u64 = 0x4e42_444d_4147_4943;
pub(super) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Magic of requests and of simple replies.
pub(super) const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;

/// `NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES`, of the server and of the client.
const HANDSHAKE_FLAGS: u16 = 1 | 2;
pub(super) const NO_ZEROES: u32 = 2;
/// `NBD_FLAG_HAS_FLAGS | SEND_FLUSH | SEND_FUA | SEND_TRIM | SEND_WRITE_ZEROES | CAN_MULTI_CONN`.
const TRANSMISSION_FLAGS: u16 = 1 | 4 | 8 | 32 | 64 | 256;

/// Options.
pub(super) const EXPORT_NAME: u32 = 1;
pub(super) const ABORT: u32 = 2;
pub(super) const LIST: u32 = 3;
pub(super) const INFO: u32 = 6;
pub(super) const GO: u32 = 7;

/// Replies to options.
pub(super) const ACK: u32 = 1;
pub(super) const SERVER: u32 = 2;
pub(super) const INFORMATION: u32 = 3;
pub(super) const UNSUPPORTED: u32 = 1 << 31 | 1;
pub(super) const INVALID: u32 = 1 << 31 | 3;

/// Commands.
pub(super) const READ: u16 = 0;
pub(super) const WRITE: u16 = 1;
pub(super) const DISCONNECT: u16 = 2;
pub(super) const FLUSH: u16 = 3;
pub(super) const TRIM: u16 = 4;
pub(super) const WRITE_ZEROES: u16 = 6;
/// `NBD_CMD_FLAG_FUA`.
pub(super) const FUA: u16 = 1;

/// What the server says first.
pub(super) fn greeting() -> Vec<u8> {
    let mut bytes = SERVER_MAGIC.to_be_bytes().to_vec();
    bytes.extend(OPTION_MAGIC.to_be_bytes());
    bytes.extend(HANDSHAKE_FLAGS.to_be_bytes());
    bytes
}

/// A reply to an option.
pub(super) fn option_reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = OPTION_REPLY_MAGIC.to_be_bytes().to_vec();
    for value in [option, kind, data.len() as u32] {
        bytes.extend(value.to_be_bytes());
    }
    bytes.extend(data);
    bytes
}

/// Size and flags of the export, as `NBD_INFO_EXPORT` and as the answer to `NBD_OPT_EXPORT_NAME`.
pub(super) fn export(size: u64) -> Vec<u8> {
    let mut bytes = size.to_be_bytes().to_vec();
    bytes.extend(TRANSMISSION_FLAGS.to_be_bytes());
    bytes
}

/// A simple reply; `error` is 0 or an errno of Linux.
pub(super) fn reply(cookie: u64, error: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 + data.len());
    bytes.extend(REPLY_MAGIC.to_be_bytes());
    bytes.extend(error.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(data);
    bytes
}

/// A request without data.
#[cfg(test)]
pub(super) fn request(kind: u16, flags: u16, offset: u64, len: u32) -> Vec<u8> {
    let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(7u64.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
