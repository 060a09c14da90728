//! Where requests come from and answers go: a mounted directory, a connection.

use std::io;
use std::os::fd::BorrowedFd;

use crate::line::Charge;
use crate::{Fate, Lost};

/// What a port had for the server.
pub(crate) enum Taken {
    /// No request waits.
    Nothing,
    /// A request was taken in and needs nothing more.
    Answered,
    /// A request that the device is charged for, and the answer that leaves when it has served it:
    /// empty where nobody waits for one.
    Job(Charge, Vec<u8>),
    /// Somebody connected.
    Port(Box<dyn Port>),
    /// Nothing more will come.
    Ended,
}

/// A source of requests that does not block.
pub(crate) trait Port {
    /// What becomes readable when a request waits.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Whether an answer waits until the other side takes it.
    fn wants_write(&self) -> bool {
        false
    }

    /// Whether it takes in requests now.
    fn wants_read(&self) -> bool {
        true
    }

    /// Takes in one request.
    fn take(&mut self) -> io::Result<Taken>;

    /// Sends an answer.
    fn send(&mut self, reply: &[u8]) -> io::Result<()>;

    /// So many bytes of what was answered before are written back now.
    fn written(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// The answer that a request gets instead of `reply` where the device fails: `EIO`.
    fn failed(&self, reply: &[u8]) -> Vec<u8>;

    /// Whether it is needed for a power cut when nothing more will come from it.
    fn outlives_its_users(&self) -> bool {
        false
    }

    /// Takes back what was not made durable.
    fn cut_power(&mut self, fate: Fate) -> io::Result<Lost> {
        let _ = fate;
        Ok(Lost::default())
    }
}
