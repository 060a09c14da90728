//! A trace as few bytes: its columns one after another, every number in as many bytes as it needs.
//!
//! What repeats is left to the compression that a page applies anyway. Kept are times, addresses,
//! lengths, operations and streams; what a capture measured besides is not.

use trace::{Op, Stream, Trace};

/// First bytes of a packed trace: a name and the version of the layout.
const MAGIC: &[u8] = b"wmpk1";

/// The trace as bytes.
pub fn pack(trace: &Trace) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    put(&mut out, trace.count() as u64);
    put(&mut out, trace.streams.len() as u64);
    for stream in &trace.streams {
        put(&mut out, stream.name.len() as u64);
        out.extend_from_slice(stream.name.as_bytes());
    }
    let bytes = trace.offset.iter().copied().chain(trace.len.iter().map(|len| u64::from(*len)));
    let unit = bytes.fold(0, common_divisor).max(1);
    put(&mut out, unit);
    let mut before = 0;
    for due in &trace.due {
        put(&mut out, due - before);
        before = *due;
    }
    out.extend(trace.op.iter().map(|op| *op as u8));
    trace.stream.iter().for_each(|stream| put(&mut out, u64::from(*stream)));
    trace.len.iter().for_each(|len| put(&mut out, u64::from(*len) / unit));
    let mut end = 0;
    for (offset, len) in trace.offset.iter().zip(&trace.len) {
        // Sequential requests start where the one before ended: zero.
        put(&mut out, zigzag((offset / unit).wrapping_sub(end) as i64));
        end = (offset + u64::from(*len)) / unit;
    }
    out
}

/// The trace of [`pack`]; `None` where the bytes are none.
pub fn unpack(bytes: &[u8]) -> Option<Trace> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let rest = &mut rest;
    let count = usize::try_from(take(rest)?).ok()?;
    // Every request takes at least five bytes.
    if count > rest.len() {
        return None;
    }
    let mut trace = Trace::default();
    for _ in 0..take(rest)? {
        let length = usize::try_from(take(rest)?).ok()?;
        let name = rest.split_off(..length)?;
        trace.streams.push(Stream { name: String::from_utf8(name.to_vec()).ok()? });
    }
    let unit = take(rest)?;
    let mut due = 0u64;
    for _ in 0..count {
        due = due.checked_add(take(rest)?)?;
        trace.due.push(due);
    }
    for code in rest.split_off(..count)? {
        trace.op.push(*Op::ALL.get(usize::from(*code))?);
    }
    for _ in 0..count {
        trace.stream.push(u16::try_from(take(rest)?).ok()?);
    }
    for _ in 0..count {
        trace.len.push(u32::try_from(take(rest)?.checked_mul(unit)?).ok()?);
    }
    let mut end = 0u64;
    for len in &trace.len {
        let offset = end.wrapping_add(unzigzag(take(rest)?) as u64).checked_mul(unit)?;
        trace.offset.push(offset);
        end = offset.checked_add(u64::from(*len))? / unit.max(1);
    }
    (rest.is_empty() && trace.validate().is_ok()).then_some(trace)
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *rest.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Small numbers of either sign as small ones.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
