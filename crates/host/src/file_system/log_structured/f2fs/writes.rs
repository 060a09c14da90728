//! Blocks that become requests.

use trace::Op;

use crate::file_system::{BLOCK_BYTES, Cause, Physical, request};

/// Collects blocks into requests: neighbours of one cause are one.
pub(super) struct Writes<'a> {
    pub at_ns: u64,
    pub most_bytes: u64,
    pub out: &'a mut Vec<Physical>,
    /// The request that may still grow is the last one.
    pub is_open: bool,
}

impl<'a> Writes<'a> {
    pub fn new(at_ns: u64, most_bytes: u64, out: &'a mut Vec<Physical>) -> Self {
        Self { at_ns, most_bytes, out, is_open: false }
    }

    pub fn add(&mut self, offset: u64, cause: Cause, data_bytes: u64) {
        let padding_bytes = if cause == Cause::Data { BLOCK_BYTES - data_bytes } else { 0 };
        if let Some(last) = self.out.last_mut().filter(|_| self.is_open)
            && last.cause == cause
            && last.offset + last.bytes == offset
            && last.bytes < self.most_bytes
        {
            last.bytes += BLOCK_BYTES;
            last.padding_bytes += padding_bytes;
            return;
        }
        self.is_open = true;
        let bytes = BLOCK_BYTES;
        self.out.push(Physical {
            offset,
            bytes,
            padding_bytes,
            ..request(self.at_ns, Op::Write, cause)
        });
    }
}
