//! The socket below a connection.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use crate::{Address, Error};

/// A connected socket.
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
    /// What a server would send, and what it was sent.
    #[cfg(test)]
    Script(io::Cursor<Vec<u8>>, Vec<u8>),
}

impl Stream {
    pub fn connect(address: &Address) -> Result<Self, Error> {
        let failed = |source| Error::Connect { address: address.clone(), source };
        match address {
            Address::Unix(path) => UnixStream::connect(path).map(Self::Unix).map_err(failed),
            Address::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).map_err(failed)?;
                // A pipeline is one write: nothing is gained by waiting for more.
                stream.set_nodelay(true).map_err(failed)?;
                Ok(Self::Tcp(stream))
            }
        }
    }

    /// Whether the server has sent something that nobody has read, or has ended the connection.
    pub fn readable(&self) -> bool {
        let socket: RawFd = match self {
            Self::Unix(stream) => stream.as_raw_fd(),
            Self::Tcp(stream) => stream.as_raw_fd(),
            #[cfg(test)]
            Self::Script(..) => return false,
        };
        let mut byte = 0u8;
        // SAFETY: the buffer is one byte of this frame, and the socket is open as long as `self`.
        let count = unsafe {
            libc::recv(socket, (&raw mut byte).cast(), 1, libc::MSG_PEEK | libc::MSG_DONTWAIT)
        };
        count >= 0
    }
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(into),
            Self::Tcp(stream) => stream.read(into),
            #[cfg(test)]
            Self::Script(answers, _) => answers.read(into),
        }
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
            #[cfg(test)]
            Self::Script(_, sent) => sent.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
