//! io_uring: one ring per thread, fixed buffers and file, completions deferred to our own waits.
//!
//! The ring is set up with `SINGLE_ISSUER | DEFER_TASKRUN | TASKRUN_FLAG`, so that completions cost
//! no interrupt of the submitting thread: they are collected when it enters the kernel anyway, and
//! a flag in shared memory tells a spinning caller that there is something to collect. Kernels that
//! do not know a flag get a plainer ring. See io_uring_setup(2), io_uring_enter(2).

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::RawFd;

use io_uring::types::{Fd, Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use trace::Op;

use super::{Completion, Engine, EngineOptions, Slots, Submission, Wait};

/// An io_uring of our own on one file.
pub struct Uring {
    ring: IoUring,
    slots: ManuallyDrop<Slots>,
    fd: RawFd,
    fixed_file: bool,
    fixed_buffers: bool,
    outstanding: u32,
}

impl Uring {
    /// A ring on an open file. The caller keeps `fd` open for as long as the engine lives.
    pub fn new(fd: RawFd, options: EngineOptions) -> io::Result<Self> {
        let ring = build_ring(options.slots.max(1).next_power_of_two())?;
        let slots = Slots::new(options.slots, options.slot_bytes);
        let submitter = ring.submitter();
        let fixed_file = submitter.register_files(&[fd]).is_ok();
        // SAFETY: the region lives until no request is outstanding any more (see `drop`).
        let fixed_buffers = unsafe { submitter.register_buffers(&[slots.iovec()]) }.is_ok();
        Ok(Self {
            ring,
            slots: ManuallyDrop::new(slots),
            fd,
            fixed_file,
            fixed_buffers,
            outstanding: 0,
        })
    }

    /// Whether buffers are registered; RLIMIT_MEMLOCK may forbid it.
    pub fn has_fixed_buffers(&self) -> bool {
        self.fixed_buffers
    }

    fn entry(&self, submission: Submission) -> squeue::Entry {
        let Submission { slot, op, offset, len } = submission;
        let buffer = self.slots.address(slot);
        macro_rules! on_file {
            ($fd:expr) => {
                match op {
                    Op::Read if self.fixed_buffers => {
                        opcode::ReadFixed::new($fd, buffer, len, 0).offset(offset).build()
                    }
                    Op::Read => opcode::Read::new($fd, buffer, len).offset(offset).build(),
                    Op::Write if self.fixed_buffers => {
                        opcode::WriteFixed::new($fd, buffer, len, 0).offset(offset).build()
                    }
                    Op::Write => opcode::Write::new($fd, buffer, len).offset(offset).build(),
                    Op::Flush => opcode::Fsync::new($fd).flags(FsyncFlags::DATASYNC).build(),
                    Op::Trim => opcode::Fallocate::new($fd, u64::from(len))
                        .offset(offset)
                        .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                        .build(),
                }
            };
        }
        let entry = if self.fixed_file { on_file!(Fixed(0)) } else { on_file!(Fd(self.fd)) };
        entry.user_data(u64::from(slot))
    }

    fn enter(&mut self, wait: Wait) -> io::Result<usize> {
        let submitter = self.ring.submitter();
        match wait {
            Wait::Poll => submitter.submit(),
            Wait::For(count) => submitter.submit_and_wait(count as usize),
            Wait::Until(ns) => {
                let time = Timespec::from(std::time::Duration::from_nanos(ns));
                submitter.submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
        }
    }
}

/// The best ring that this kernel gives.
fn build_ring(entries: u32) -> io::Result<IoUring> {
    let mut best = IoUring::builder();
    best.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
    let mut middling = IoUring::builder();
    middling.setup_coop_taskrun().setup_taskrun_flag();
    let refused = |error: &io::Error| error.raw_os_error() == Some(libc::EINVAL);
    match best.build(entries) {
        Err(error) if refused(&error) => match middling.build(entries) {
            Err(error) if refused(&error) => IoUring::new(entries),
            other => other,
        },
        other => other,
    }
}

impl Engine for Uring {
    #[inline]
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.slots.bytes(slot)
    }

    #[inline]
    fn queue(&mut self, submission: Submission) {
        let entry = self.entry(submission);
        // SAFETY: the buffer belongs to the slot until its completion, and outlives the ring.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        assert!(pushed.is_ok(), "more requests queued than the ring has slots");
        self.outstanding += 1;
    }

    fn exchange(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> io::Result<()> {
        if let Err(error) = self.enter(wait) {
            match error.raw_os_error() {
                // Time is up, a signal came, or completions must be taken first: the caller comes
                // back for what is missing, and what was not sent is still queued.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY) => {}
                // The kernel is short of memory for a moment.
                Some(libc::EAGAIN) => std::thread::yield_now(),
                _ => return Err(error),
            }
        }
        for entry in self.ring.completion() {
            self.outstanding -= 1;
            completions.push(Completion { slot: entry.user_data() as u32, result: entry.result() });
        }
        Ok(())
    }

    #[inline]
    fn ready(&mut self) -> bool {
        self.ring.submission().taskrun() || !self.ring.completion().is_empty()
    }
}

impl Drop for Uring {
    /// The kernel may write into the buffers until the last request has completed; after an error
    /// some may still be under way.
    fn drop(&mut self) {
        let mut completions = Vec::new();
        while self.outstanding > 0 {
            if self.exchange(Wait::For(1), &mut completions).is_err() {
                // Better a leak than memory that the device still writes into.
                return;
            }
        }
        // SAFETY: dropped here and nowhere else; no request refers to the memory any more.
        unsafe { ManuallyDrop::drop(&mut self.slots) }
    }
}
