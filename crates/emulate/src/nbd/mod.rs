//! The network block device protocol over a unix socket: a server whose requests take the time of a
//! device. Any client can be on the other side: a kernel, qemu, `fio --ioengine=nbd`.
//!
//! Fixed newstyle negotiation, one export whatever its name, simple replies; flush, FUA, trim and
//! write-zeroes arrive as what they are. By the protocol's description
//! (github.com/NetworkBlockDevice/nbd, doc/proto.md). `wire.rs` holds the messages, `connection.rs`
//! the state of one client, `store.rs` the bytes.

mod connection;
mod store;
mod wire;

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::rc::Rc;

pub(crate) use connection::Session;
pub(crate) use store::Store;

use crate::port::{Port, Taken};
use crate::{Error, Fate, Lost};

/// A socket that clients connect to; its file is removed with it.
pub(crate) struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Makes the socket; one without a server is replaced.
    pub(crate) fn bind(path: &Path) -> Result<Self, Error> {
        let fail = |source| Error::io(path, "listening", source);
        let listener = match UnixListener::bind(path) {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse
                    && std::os::unix::net::UnixStream::connect(path).is_err() =>
            {
                std::fs::remove_file(path).map_err(fail)?;
                UnixListener::bind(path).map_err(fail)?
            }
            bound => bound.map_err(fail)?,
        };
        listener.set_nonblocking(true).map_err(fail)?;
        Ok(Self { listener, path: path.to_owned() })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.path);
    }
}

/// Takes in clients; all of them see the same bytes.
pub(crate) struct Listener {
    socket: Socket,
    store: Rc<RefCell<Store>>,
}

impl Listener {
    pub(crate) fn new(socket: Socket, store: Store) -> Self {
        Self { socket, store: Rc::new(RefCell::new(store)) }
    }
}

impl Port for Listener {
    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.listener.as_fd()
    }

    fn take(&mut self) -> io::Result<Taken> {
        match self.socket.listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                let store = Rc::clone(&self.store);
                Ok(Taken::Port(Box::new(connection::Connection::new(stream, store))))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Taken::Nothing),
            // The client went away before it was taken in.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Ok(Taken::Answered),
            Err(error) => Err(error),
        }
    }

    fn send(&mut self, _reply: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn failed(&self, reply: &[u8]) -> Vec<u8> {
        reply.to_vec()
    }

    fn cut_power(&mut self, fate: Fate) -> io::Result<Lost> {
        self.store.borrow_mut().cut_power(fate)
    }
}
