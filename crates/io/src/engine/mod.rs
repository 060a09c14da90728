//! How requests reach a device: one small trait, four engines behind it.
//!
//! [`Uring`] is the one to use, [`Psync`] what is left where the kernel refuses io_uring (and the
//! cheaper one where a thread has a single request outstanding), [`Null`] completes everything at
//! once and so measures the cost of our own loop, [`Faulty`] wraps another engine and breaks it on
//! purpose. Those who drive it are generic over the trait, so what the tests drive is the code that
//! runs on devices.
//!
//! Invariants: every request queued completes exactly once; a slot and its buffer belong to the
//! request from `queue` to its completion; nothing allocates per request.

mod faulty;
mod null;
mod psync;
mod uring;

use std::io;
use std::path::Path;

pub use faulty::{Fault, Faulty, FaultyDevice};
pub use null::{Null, NullDevice};
pub use psync::Psync;
use trace::Op;
pub use uring::Uring;

use crate::buffer::{AlignedBuf, Payload};
use crate::error::Error;

/// One request on its way to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Which slot, hence which buffer; below the engine's slot count, and free.
    pub slot: u32,
    /// What to do.
    pub op: Op,
    /// First byte on the device.
    pub offset: u64,
    /// Bytes; 0 for a flush.
    pub len: u32,
}

/// One request that the device has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The slot, free again.
    pub slot: u32,
    /// Bytes transferred, or a negated errno.
    pub result: i32,
}

/// How long [`Engine::exchange`] may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    Poll,
    /// For this many completions.
    For(u32),
    /// For one completion or this many nanoseconds.
    Until(u64),
}

/// A way to the device, owned by one thread.
pub trait Engine {
    /// The memory of a slot, as large as the largest request.
    fn buffer(&mut self, slot: u32) -> &mut [u8];

    /// Queues a request; it leaves with the next [`Engine::exchange`].
    fn queue(&mut self, submission: Submission);

    /// Sends what is queued, waits as told, and appends what has completed to `completions`.
    fn exchange(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> io::Result<()>;

    /// Whether an exchange would find a completion at once; a memory load, no system call.
    fn ready(&mut self) -> bool;
}

/// What an engine has to offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// Requests outstanding at most.
    pub slots: u32,
    /// Bytes of the largest request.
    pub slot_bytes: u32,
    /// Whether writes go through the O_DSYNC descriptor.
    pub dsync: bool,
}

/// A device that threads can open engines on.
pub trait Device: Sync {
    /// Its engine.
    type Engine: Engine;

    /// Path for messages.
    fn path(&self) -> &Path;

    /// An engine for the calling thread.
    fn engine(&self, options: EngineOptions) -> Result<Self::Engine, Error>;

    /// Bytes it holds now.
    fn size_bytes(&self) -> io::Result<u64>;

    /// Makes everything written durable.
    fn flush(&self) -> io::Result<()>;

    /// Threads to keep `depth` requests outstanding with, and outstanding requests of each. Engines
    /// that block run one thread per outstanding request.
    fn layout(&self, depth: u32) -> (u32, u32) {
        (1, depth)
    }
}

/// Turns the result of a request into an error unless the request did all it was asked to.
///
/// A transfer that falls short because the target is now smaller than the request's end is told
/// apart from one that falls short for no visible reason.
pub fn check<D: Device>(device: &D, submission: Submission, result: i32) -> Result<(), Error> {
    let Submission { op, offset, len, .. } = submission;
    let path = || device.path().to_owned();
    if result < 0 {
        return Err(match -result {
            libc::ENOSPC | libc::EDQUOT => Error::NoSpace { path: path(), offset },
            errno => {
                let source = io::Error::from_raw_os_error(errno);
                Error::Io { path: path(), op, offset, len, source }
            }
        });
    }
    if matches!(op, Op::Flush | Op::Trim) || result as u32 == len {
        return Ok(());
    }
    match device.size_bytes() {
        Ok(size) if size < offset + u64::from(len) => {
            Err(Error::Shrank { path: path(), offset, size: units::Bytes(size) })
        }
        _ => Err(Error::Short { path: path(), op, offset, len, got: result as u32 }),
    }
}

/// The buffers of an engine: one region, cut into equal slots.
#[derive(Debug)]
pub(crate) struct Slots {
    region: AlignedBuf,
    stride: usize,
    slot_bytes: usize,
}

impl Slots {
    /// `count` slots of `slot_bytes`, random bytes in each.
    pub(crate) fn new(count: u32, slot_bytes: u32) -> Self {
        let slot_bytes = slot_bytes.max(512) as usize;
        let stride = slot_bytes.next_multiple_of(4096);
        let mut region = AlignedBuf::new(stride * count.max(1) as usize, 4096);
        Payload::new(count.into()).fill(region.as_mut_slice());
        Self { region, stride, slot_bytes }
    }

    /// Start of a slot's memory.
    #[inline]
    pub(crate) fn address(&self, slot: u32) -> *mut u8 {
        let start = slot as usize * self.stride;
        assert!(start + self.slot_bytes <= self.region.len(), "slot {slot} does not exist");
        // SAFETY: start is within the region, as just checked.
        unsafe { self.region.as_ptr().add(start) }
    }

    /// A slot's memory.
    #[inline]
    pub(crate) fn bytes(&mut self, slot: u32) -> &mut [u8] {
        let start = slot as usize * self.stride;
        &mut self.region.as_mut_slice()[start..start + self.slot_bytes]
    }

    /// The whole region, for registration.
    pub(crate) fn iovec(&self) -> libc::iovec {
        libc::iovec { iov_base: self.region.as_ptr().cast(), iov_len: self.region.len() }
    }
}
