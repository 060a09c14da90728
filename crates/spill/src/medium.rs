//! What the engine spills to: requests, a clock, and room.

use io::engine::{Device, FaultyDevice};

use crate::error::Error;

/// A place for temporary clusters, with the clock that the work on it is timed by.
pub trait Medium: Device {
    /// Nanoseconds since some start.
    fn now_ns(&self) -> u64;

    /// CPU time used so far by this thread, ns.
    fn cpu_ns(&self) -> u64;

    /// Told that the engine has worked on this many rows. A device model in virtual time lets the
    /// time pass that this takes; on a real device it has passed.
    fn worked(&self, rows: u64);

    /// Smallest unit of a transfer, bytes.
    fn sector_bytes(&self) -> u32;

    /// Makes room for this many bytes from the start, or says that there is none.
    fn reserve(&self, bytes: u64) -> Result<(), Error>;

    /// What is suspect about it.
    fn warnings(&self) -> Vec<events::Warning>;

    /// Which layer its requests show in a trace: `device` or `logical`.
    fn layer(&self) -> &'static str;
}

/// A medium that breaks on purpose, for the tests of every error branch.
impl<M: Medium> Medium for &FaultyDevice<M> {
    fn now_ns(&self) -> u64 {
        self.inner.now_ns()
    }

    fn cpu_ns(&self) -> u64 {
        self.inner.cpu_ns()
    }

    fn worked(&self, rows: u64) {
        self.inner.worked(rows);
    }

    fn sector_bytes(&self) -> u32 {
        self.inner.sector_bytes()
    }

    fn reserve(&self, bytes: u64) -> Result<(), Error> {
        self.inner.reserve(bytes)
    }

    fn warnings(&self) -> Vec<events::Warning> {
        self.inner.warnings()
    }

    fn layer(&self) -> &'static str {
        self.inner.layer()
    }
}
