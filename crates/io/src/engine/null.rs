//! No device: every request completes at the next exchange. What a cell costs on it is the
//! tool's own share of the CPU per request.

use std::io;
use std::path::Path;

use super::{Completion, Device, Engine, EngineOptions, Slots, Submission, Wait};
use crate::error::Error;

/// Completes everything at once.
pub struct Null {
    slots: Slots,
    queued: Vec<Completion>,
}

impl Engine for Null {
    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.slots.bytes(slot)
    }

    #[inline]
    fn queue(&mut self, submission: Submission) {
        self.queued.push(Completion { slot: submission.slot, result: submission.len as i32 });
    }

    #[inline]
    fn exchange(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> io::Result<()> {
        if let (true, Wait::Until(ns)) = (self.queued.is_empty(), wait) {
            std::thread::sleep(std::time::Duration::from_nanos(ns));
        }
        completions.append(&mut self.queued);
        Ok(())
    }

    #[inline]
    fn ready(&mut self) -> bool {
        !self.queued.is_empty()
    }
}

/// A device that is not there.
#[derive(Clone, Copy, Debug)]
pub struct NullDevice {
    /// Bytes that it pretends to hold.
    pub size_bytes: u64,
}

impl Device for NullDevice {
    type Engine = Null;

    fn path(&self) -> &Path {
        Path::new("null")
    }

    fn engine(&self, options: EngineOptions) -> Result<Null, Error> {
        let queued = Vec::with_capacity(options.slots as usize);
        Ok(Null { slots: Slots::new(options.slots, options.slot_bytes), queued })
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.size_bytes)
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}
