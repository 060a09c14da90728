//! One mounted place as a port of the server: requests in, answers out, over `/dev/fuse`.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};

use super::place::Place;
use super::wire::{self, Request, reply};
use crate::line::Charge;
use crate::port::{Port, Taken};

/// A place and the kernel's end of it.
pub(crate) struct FusePort {
    device: File,
    pub(crate) place: Place,
    buffer: Vec<u8>,
}

impl FusePort {
    /// `device` is an open `/dev/fuse` that does not block.
    pub(crate) fn new(device: File, place: Place) -> Self {
        Self { device, place, buffer: vec![0; wire::BUFFER] }
    }
}

/// The reply to the bytes of a request and what it costs; `None` where it wants no reply. What
/// failed costs nothing.
pub(crate) fn respond(place: &mut Place, bytes: &[u8]) -> Option<(Charge, Vec<u8>)> {
    let request = Request::parse(bytes)?;
    let answer = place.answer(&request)?;
    Some(match answer.body {
        Ok(body) => (answer.charge, reply(request.unique, 0, &body)),
        Err(error) => (Charge::FREE, reply(request.unique, -error.raw_os_error(), &[])),
    })
}

impl Port for FusePort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    fn take(&mut self) -> io::Result<Taken> {
        if let Some(charge) = self.place.due() {
            return Ok(Taken::Job(charge, Vec::new()));
        }
        let length = match self.device.read(&mut self.buffer) {
            Ok(length) => length,
            Err(error) => {
                return match error.raw_os_error() {
                    Some(libc::EAGAIN) => Ok(Taken::Nothing),
                    // Interrupted, or the request was withdrawn.
                    Some(libc::EINTR | libc::ENOENT) => Ok(Taken::Answered),
                    // Not mounted yet.
                    Some(libc::EPERM) => {
                        std::thread::sleep(std::time::Duration::from_millis(1));
                        Ok(Taken::Nothing)
                    }
                    // Unmounted, or taken away by force.
                    Some(libc::ENODEV | libc::ECONNABORTED) => Ok(Taken::Ended),
                    _ => Err(error),
                };
            }
        };
        let Some((charge, bytes)) = respond(&mut self.place, &self.buffer[..length]) else {
            return Ok(Taken::Answered);
        };
        if charge.is_free() {
            self.send(&bytes)?;
            return Ok(Taken::Answered);
        }
        Ok(Taken::Job(charge, bytes))
    }

    fn send(&mut self, reply: &[u8]) -> io::Result<()> {
        match self.device.write_all(reply) {
            Ok(()) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // A request whose caller was killed takes no answer; an unmounted place none at
                // all.
                Some(libc::ENOENT | libc::EINVAL | libc::ENODEV | libc::EPERM) => Ok(()),
                _ => Err(error),
            },
        }
    }

    fn written(&mut self, bytes: u64) {
        self.place.written(bytes);
    }

    fn failed(&self, answer: &[u8]) -> Vec<u8> {
        let unique = u64::from_ne_bytes(answer[8..16].try_into().expect("a reply has a header"));
        reply(unique, -libc::EIO, &[])
    }

    /// Whoever wrote may have gone, and the mount with it, before the power is cut.
    fn outlives_its_users(&self) -> bool {
        true
    }

    fn cut_power(&mut self, fate: crate::Fate) -> io::Result<crate::Lost> {
        Ok(self.place.cut_power(fate)?)
    }
}
