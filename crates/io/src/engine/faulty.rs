//! A twin of another device that breaks on purpose, for the tests of every error branch.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use trace::Op;

use super::{Completion, Device, Engine, EngineOptions, Submission, Wait};
use crate::error::Error;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request fails with this errno.
    Errno(i32),
    /// It transfers half of what it should.
    Half,
    /// The target is truncated to this many bytes; what lies beyond reads as nothing.
    ShrinksTo(u64),
    /// Every request from then on takes this many microseconds longer.
    Slow(u64),
    /// The exchange itself fails with this errno.
    Exchange(i32),
    /// No engine can be opened, with this errno.
    NoEngine(i32),
    /// Flushing the device outside of a cell fails with this errno.
    NoFlush(i32),
}

/// A device with a fault from its n-th request on.
#[derive(Debug)]
pub struct FaultyDevice<D> {
    /// The device that does the work.
    pub inner: D,
    /// What goes wrong.
    pub fault: Fault,
    /// Requests that still go well.
    pub good_requests: u64,
    seen: AtomicU64,
}

impl<D> FaultyDevice<D> {
    /// `inner`, with `fault` once `good_requests` have gone well.
    pub fn new(inner: D, fault: Fault, good_requests: u64) -> Self {
        Self { inner, fault, good_requests, seen: AtomicU64::new(0) }
    }

    fn broken(&self) -> bool {
        self.seen.load(Ordering::Relaxed) > self.good_requests
    }
}

/// The engine of a [`FaultyDevice`].
pub struct Faulty<'a, E> {
    inner: E,
    fault: Fault,
    good_requests: u64,
    seen: &'a AtomicU64,
    /// The request in each slot, and whether it is to fail.
    requests: Vec<Option<(Submission, bool)>>,
}

impl<E: Engine> Engine for Faulty<'_, E> {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.inner.buffer(slot)
    }

    fn queue(&mut self, submission: Submission) {
        let broken = self.seen.fetch_add(1, Ordering::Relaxed) >= self.good_requests;
        self.requests[submission.slot as usize] = Some((submission, broken));
        self.inner.queue(submission);
    }

    fn exchange(&mut self, wait: Wait, completions: &mut Vec<Completion>) -> io::Result<()> {
        let first = completions.len();
        self.inner.exchange(wait, completions)?;
        for completion in &mut completions[first..] {
            let Some((request, true)) = self.requests[completion.slot as usize].take() else {
                continue;
            };
            let transfers = matches!(request.op, Op::Read | Op::Write);
            let end = request.offset + u64::from(request.len);
            match self.fault {
                Fault::Errno(errno) => completion.result = -errno,
                Fault::Half if transfers => completion.result /= 2,
                Fault::ShrinksTo(size) if transfers && end > size => {
                    completion.result = size.saturating_sub(request.offset) as i32;
                }
                Fault::Slow(us) => std::thread::sleep(Duration::from_micros(us)),
                Fault::Exchange(errno) => return Err(io::Error::from_raw_os_error(errno)),
                _ => {}
            }
        }
        Ok(())
    }

    fn ready(&mut self) -> bool {
        self.inner.ready()
    }
}

// The lifetime of the engine is that of the device, so the counter is leaked into neither: the
// engine borrows it through this impl on a reference.
impl<'a, D: Device> Device for &'a FaultyDevice<D> {
    type Engine = Faulty<'a, D::Engine>;

    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn engine(&self, options: EngineOptions) -> Result<Self::Engine, Error> {
        if let Fault::NoEngine(errno) = self.fault {
            let source = io::Error::from_raw_os_error(errno);
            return Err(Error::Engine { engine: "faulty", source });
        }
        Ok(Faulty {
            inner: self.inner.engine(options)?,
            fault: self.fault,
            good_requests: self.good_requests,
            seen: &self.seen,
            requests: vec![None; options.slots as usize],
        })
    }

    fn size_bytes(&self) -> io::Result<u64> {
        match self.fault {
            Fault::ShrinksTo(size) if self.broken() => Ok(size),
            _ => self.inner.size_bytes(),
        }
    }

    fn flush(&self) -> io::Result<()> {
        match self.fault {
            Fault::NoFlush(errno) => Err(io::Error::from_raw_os_error(errno)),
            _ => self.inner.flush(),
        }
    }

    fn layout(&self, depth: u32) -> (u32, u32) {
        self.inner.layout(depth)
    }
}
