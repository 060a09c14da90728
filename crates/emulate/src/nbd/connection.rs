//! One client: its bytes come in when they come, and are cut into messages.

use std::cell::RefCell;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use trace::Op;

use super::store::Store;
use super::wire::{self, u16_at, u32_at, u64_at};
use crate::line::{Charge, Part};
use crate::port::{Port, Taken};

/// Longest request, bytes: what the protocol lets a client assume.
const REQUEST_BYTES_MAX: u32 = 32 << 20;
/// Longest data of an option, bytes.
const OPTION_BYTES_MAX: u32 = 4096;
/// Replies that wait until the client takes them; beyond it no request is taken in, bytes.
const OUTPUT_BYTES_MAX: usize = 64 << 20;
/// Read from the socket at once.
const READ_BYTES: usize = 1 << 16;
/// Length of a request without its data.
const REQUEST_HEADER: usize = 28;
/// Length of an option without its data.
const OPTION_HEADER: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client's flags are to come.
    Flags,
    /// Options.
    Options { no_zeroes: bool },
    /// Requests.
    Transmission,
    /// The client has said good-bye.
    Over,
}

/// A connected client.
pub(super) struct Connection {
    stream: UnixStream,
    session: Session,
}

impl Connection {
    pub(super) fn new(stream: UnixStream, store: Rc<RefCell<Store>>) -> Self {
        Self { stream, session: Session::new(store) }
    }

    /// Sends what waits, as far as the client takes it.
    fn push(&mut self) {
        let output = &mut self.session.output;
        while !output.is_empty() {
            match self.stream.write(output) {
                Ok(count) => _ = output.drain(..count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The client is gone; reading will say so.
                Err(_) => output.clear(),
            }
        }
    }
}

/// What a client said, and what it is told: no socket, so that any bytes can be tried.
pub(crate) struct Session {
    store: Rc<RefCell<Store>>,
    phase: Phase,
    input: Vec<u8>,
    /// How much of the input was used.
    used: usize,
    /// What the client is still to be told.
    pub(crate) output: Vec<u8>,
}

impl Session {
    pub(crate) fn new(store: Rc<RefCell<Store>>) -> Self {
        let (input, output) = (Vec::new(), wire::greeting());
        Self { store, phase: Phase::Flags, input, used: 0, output }
    }

    /// Takes in what `read` puts at the end of the input.
    pub(crate) fn receive(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        self.input.drain(..self.used);
        self.used = 0;
        let end = self.input.len();
        self.input.resize(end + READ_BYTES, 0);
        let result = read(&mut self.input[end..]);
        self.input.truncate(end + result.as_ref().copied().unwrap_or(0));
        result
    }

    /// The next `count` bytes, if they are here.
    fn peek(&self, count: usize) -> Option<&[u8]> {
        self.input.get(self.used..self.used + count)
    }

    /// The next message, if all of it is here.
    pub(crate) fn message(&mut self) -> Option<Taken> {
        match self.phase {
            Phase::Flags => {
                let flags = u32_at(self.peek(4)?, 0);
                self.used += 4;
                self.phase = Phase::Options { no_zeroes: flags & wire::NO_ZEROES != 0 };
                Some(Taken::Answered)
            }
            Phase::Options { no_zeroes } => self.option(no_zeroes),
            Phase::Transmission => self.request(),
            Phase::Over => Some(Taken::Ended),
        }
    }

    fn option(&mut self, no_zeroes: bool) -> Option<Taken> {
        let head = self.peek(OPTION_HEADER)?;
        let (magic, option, len) = (u64_at(head, 0), u32_at(head, 8), u32_at(head, 12));
        if magic != wire::OPTION_MAGIC || len > OPTION_BYTES_MAX {
            return Some(Taken::Ended);
        }
        let whole = self.peek(OPTION_HEADER + len as usize)?;
        let data = whole[OPTION_HEADER..].to_vec();
        self.used += OPTION_HEADER + data.len();
        let size = self.store.borrow().size();
        let answer = |kind, data: &[u8]| wire::option_reply(option, kind, data);
        match option {
            wire::EXPORT_NAME => {
                self.output.extend(wire::export(size));
                let zeroes = if no_zeroes { 0 } else { 124 };
                self.output.resize(self.output.len() + zeroes, 0);
                self.phase = Phase::Transmission;
            }
            wire::ABORT => {
                self.output.extend(answer(wire::ACK, &[]));
                self.phase = Phase::Over;
            }
            wire::LIST if data.is_empty() => {
                // One export, without a name.
                self.output.extend(answer(wire::SERVER, &[0; 4]));
                self.output.extend(answer(wire::ACK, &[]));
            }
            wire::INFO | wire::GO if is_info(&data) => {
                let mut information = vec![0; 2];
                information.extend(wire::export(size));
                self.output.extend(answer(wire::INFORMATION, &information));
                self.output.extend(answer(wire::ACK, &[]));
                if option == wire::GO {
                    self.phase = Phase::Transmission;
                }
            }
            wire::LIST | wire::INFO | wire::GO => {
                self.output.extend(answer(wire::INVALID, &[]));
            }
            _ => self.output.extend(answer(wire::UNSUPPORTED, &[])),
        }
        Some(Taken::Answered)
    }

    fn request(&mut self) -> Option<Taken> {
        let head = self.peek(REQUEST_HEADER)?;
        let (magic, flags, kind) = (u32_at(head, 0), u16_at(head, 4), u16_at(head, 6));
        let (cookie, offset, len) = (u64_at(head, 8), u64_at(head, 16), u32_at(head, 24));
        if magic != wire::REQUEST_MAGIC {
            return Some(Taken::Ended);
        }
        if kind == wire::DISCONNECT {
            self.phase = Phase::Over;
            return Some(Taken::Ended);
        }
        let is_write = kind == wire::WRITE;
        if is_write && len > REQUEST_BYTES_MAX {
            // Its data cannot be skipped without reading them all.
            return Some(Taken::Ended);
        }
        let data = if is_write { len as usize } else { 0 };
        let start = self.used + REQUEST_HEADER;
        let bytes = self.input.get(start..start + data)?;
        let served = serve(&mut self.store.borrow_mut(), kind, offset, len, bytes);
        self.used = start + data;
        let (op, found) = match served {
            Ok(served) => served,
            Err(error) => {
                let code = error.raw_os_error().unwrap_or(libc::EIO) as u32;
                self.output.extend(wire::reply(cookie, code, &[]));
                return Some(Taken::Answered);
            }
        };
        let parts = match op {
            Op::Flush => Vec::new(),
            _ => vec![Part { op, offset, len: len.into() }],
        };
        // The range of a flush means nothing, and may be any numbers.
        let is_forced = flags & wire::FUA != 0 && matches!(op, Op::Write | Op::Trim);
        if is_forced {
            self.store.borrow_mut().written_through(offset..offset + u64::from(len));
        }
        let charge = Charge { parts, then_flush: is_forced || op == Op::Flush, ..Charge::FREE };
        Some(Taken::Job(charge, wire::reply(cookie, 0, &found)))
    }
}

/// Whether the data of an option are a name and a list of what is asked.
fn is_info(data: &[u8]) -> bool {
    let Some(name) = data.get(..4).map(|len| u32_at(len, 0) as usize) else { return false };
    let Some(count) = data.get(4 + name..6 + name) else { return false };
    data.len() == 6 + name + 2 * usize::from(u16_at(count, 0))
}

/// Does what a request asks for, at once; what it costs is up to the device.
fn serve(
    store: &mut Store,
    kind: u16,
    offset: u64,
    len: u32,
    bytes: &[u8],
) -> io::Result<(Op, Vec<u8>)> {
    let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
    let end = offset.checked_add(len.into()).filter(|end| *end <= store.size());
    if kind != wire::FLUSH && (end.is_none() || len == 0) {
        return Err(invalid());
    }
    let range = offset..end.unwrap_or(offset);
    match kind {
        wire::READ if len <= REQUEST_BYTES_MAX => Ok((Op::Read, store.read(offset, len)?)),
        wire::WRITE => store.write(offset, bytes).map(|()| (Op::Write, Vec::new())),
        wire::FLUSH => {
            store.flushed();
            Ok((Op::Flush, Vec::new()))
        }
        // Zeroes are not stored by any device that has a trim: they cost what it does.
        wire::TRIM | wire::WRITE_ZEROES => store.clear(range).map(|()| (Op::Trim, Vec::new())),
        _ => Err(invalid()),
    }
}

impl Port for Connection {
    fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    fn wants_write(&self) -> bool {
        !self.session.output.is_empty()
    }

    fn wants_read(&self) -> bool {
        self.session.output.len() <= OUTPUT_BYTES_MAX
    }

    fn take(&mut self) -> io::Result<Taken> {
        self.push();
        if !self.wants_read() {
            return Ok(Taken::Nothing);
        }
        if let Some(taken) = self.session.message() {
            self.push();
            return Ok(taken);
        }
        match self.session.receive(|into| self.stream.read(into)) {
            Ok(0) => Ok(Taken::Ended),
            Ok(_) => Ok(Taken::Answered),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Taken::Nothing),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Taken::Answered),
            Err(_) => Ok(Taken::Ended),
        }
    }

    fn failed(&self, reply: &[u8]) -> Vec<u8> {
        wire::reply(u64_at(reply, 8), libc::EIO as u32, &[])
    }

    fn send(&mut self, reply: &[u8]) -> io::Result<()> {
        self.session.output.extend(reply);
        self.push();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fate;

    fn session() -> (Session, Rc<RefCell<Store>>) {
        let store = Rc::new(RefCell::new(Store::in_memory(1 << 20, true).unwrap()));
        let mut session = Session::new(Rc::clone(&store));
        session.phase = Phase::Transmission;
        (session, store)
    }

    fn say(session: &mut Session, kind: u16, flags: u16, offset: u64, len: u32) -> Option<Taken> {
        let mut said = wire::request(kind, flags, offset, len);
        said.resize(said.len() + if kind == wire::WRITE { len as usize } else { 0 }, 7);
        session.receive(|into| io::Read::read(&mut &said[..], into)).unwrap();
        session.message()
    }

    /// The protocol wants zeros there, and a client that does not keep to it must not end us.
    #[test]
    fn the_range_of_a_flush_means_nothing() {
        let (mut session, store) = session();
        assert!(matches!(say(&mut session, wire::WRITE, 0, 0, 512), Some(Taken::Job(..))));
        let flush = say(&mut session, wire::FLUSH, wire::FUA, u64::MAX, 5);
        let Some(Taken::Job(charge, _)) = flush else { panic!("a job") };
        assert!(charge.parts.is_empty() && charge.then_flush);
        assert_eq!(store.borrow_mut().cut_power(Fate::All).unwrap().bytes, 0);
    }
}
