//! `pread`, `pwrite` and `fdatasync`: one request at a time, what databases with a thread per
//! connection do, and what is left where the kernel refuses io_uring.

use std::io;
use std::os::fd::RawFd;

use trace::Op;

use super::{Completion, Engine, EngineOptions, Slots, Submission, Wait};

/// Blocking system calls on one file; each exchange performs what is queued, in order.
pub struct Psync {
    fd: RawFd,
    slots: Slots,
    queued: Vec<Submission>,
}

impl Psync {
    /// On an open file. The caller keeps `fd` open for as long as the engine lives.
    pub fn new(fd: RawFd, options: EngineOptions) -> Self {
        let slots = Slots::new(options.slots, options.slot_bytes);
        Self { fd, slots, queued: Vec::with_capacity(options.slots as usize) }
    }

    fn perform(&self, submission: Submission) -> i32 {
        let Submission { slot, op, offset, len } = submission;
        let buffer = self.slots.address(slot);
        let (count, at) = (len as usize, offset as i64);
        loop {
            // SAFETY: the buffer is this slot's, at least `len` bytes as `Slots` is made for the
            // largest request; the file is open.
            let result = unsafe {
                match op {
                    Op::Read => libc::pread(self.fd, buffer.cast(), count, at),
                    Op::Write => libc::pwrite(self.fd, buffer.cast(), count, at),
                    Op::Flush => libc::fdatasync(self.fd) as isize,
                    Op::Trim => {
                        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                        libc::fallocate(self.fd, mode, at, count as i64) as isize
                    }
                }
            };
            if result >= 0 {
                return result as i32;
            }
            let errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
            if errno != libc::EINTR {
                return -errno;
            }
        }
    }
}

impl Engine for Psync {
    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.slots.bytes(slot)
    }

    #[inline]
    fn queue(&mut self, submission: Submission) {
        self.queued.push(submission);
    }

    #[inline]
    fn exchange(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> io::Result<()> {
        if self.queued.is_empty() {
            // Nothing can be outstanding: all there is to wait for is time.
            if let Wait::Until(ns) = wait {
                std::thread::sleep(std::time::Duration::from_nanos(ns));
            }
        }
        for index in 0..self.queued.len() {
            let submission = self.queued[index];
            let result = self.perform(submission);
            completions.push(Completion { slot: submission.slot, result });
        }
        self.queued.clear();
        Ok(())
    }

    #[inline]
    fn ready(&mut self) -> bool {
        false
    }
}
