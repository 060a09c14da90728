//! The byte stream below both protocols: a unix socket, TCP, or TLS over TCP.
//!
//! Every wait is bounded ([`Limits`]) and ends when the user asks to stop. Tested against servers
//! that never speak, that lie, and that show certificates which must not pass
//! (`tests/it/logins.rs`).

mod limits;
#[cfg(test)]
pub(crate) mod script;
mod socket;
mod tls;

use std::io::{self, Read, Write};

pub use limits::{Limits, Stop};
use rustls::{ClientConnection, StreamOwned};
use socket::{Socket, Stopped, cancelled, silent};
pub use tls::{Tls, TlsMode};

use crate::{Address, Error, Login};

/// A stream that somebody else has connected: a tunnel, or a script of what a server says.
pub trait Wire: Read + Write + Send {}

impl<T: Read + Write + Send> Wire for T {}

/// What a connection runs over.
pub(crate) enum Stream {
    /// Unencrypted.
    Plain(Socket),
    /// Encrypted.
    Tls(Box<StreamOwned<ClientConnection, Socket>>),
    /// Given up.
    Closed,
    /// Not opened here; how long it waits is its own affair.
    Other(Box<dyn Wire>),
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "Plain",
            Self::Tls(_) => "Tls",
            Self::Closed => "Closed",
            Self::Other(_) => "Other",
        })
    }
}

impl Stream {
    /// Connects, unencrypted as yet.
    pub fn connect(login: &Login) -> Result<Self, Error> {
        Socket::connect(&login.address, login.limits).map(Self::Plain)
    }

    /// Encrypts what follows. Nothing that the server sent before may be waiting.
    pub fn encrypt(&mut self, login: &Login) -> Result<(), Error> {
        let Address::Tcp { host, .. } = &login.address else { return Ok(()) };
        let mut client = login.tls.client(host, &login.address)?;
        while client.is_handshaking() {
            client.complete_io(self).map_err(|source| match source.get_ref() {
                Some(inner) if inner.is::<rustls::Error>() => Error::Tls {
                    address: login.address.clone(),
                    why: events::one_line(&inner.to_string()),
                },
                _ => of_login(Error::Broken { doing: "starting TLS", source }, login),
            })?;
        }
        let Self::Plain(socket) = std::mem::replace(self, Self::Closed) else {
            let why = "only a socket that was opened here can be encrypted".to_owned();
            return Err(Error::Tls { address: login.address.clone(), why });
        };
        *self = Self::Tls(Box::new(StreamOwned::new(client, socket)));
        Ok(())
    }

    /// From now on the bound of an answer holds.
    pub fn logged_in(&mut self) {
        match self {
            Self::Plain(socket) => socket.logged_in(),
            Self::Tls(stream) => stream.sock.logged_in(),
            Self::Closed | Self::Other(_) => {}
        }
    }

    /// Whether a TCP connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Whether a password may be sent as it is: over a unix socket, over TLS that the user insisted
    /// on, or because the user said so. TLS that is only preferred proves nothing: whoever sits in
    /// the middle could have offered it.
    pub fn may_carry_password(&self, login: &Login) -> bool {
        match &login.address {
            Address::Unix(_) => true,
            Address::Tcp { .. } if login.tls.cleartext_password => true,
            Address::Tcp { .. } => self.is_encrypted() && login.tls.mode >= TlsMode::Require,
        }
    }

    /// Whether the server has sent something that nobody has read, or has ended the connection.
    pub fn readable(&mut self) -> bool {
        match self {
            Self::Plain(socket) => socket.readable(),
            Self::Tls(stream) => {
                // What has arrived may be a record of TLS itself.
                stream.sock.set_impatient(true);
                let arrived = stream.conn.read_tls(&mut stream.sock);
                stream.sock.set_impatient(false);
                match arrived {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) | Ok(0) => return true,
                    Ok(_) => {}
                }
                let state = stream.conn.process_new_packets();
                state.is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
            }
            Self::Closed | Self::Other(_) => false,
        }
    }
}

/// What a failed login was: a broken connection, silence, or a request to stop.
pub(crate) fn of_login(error: Error, login: &Login) -> Error {
    let Error::Broken { source, .. } = &error else { return error };
    if let Some(inner) = source.get_ref()
        && inner.is::<Stopped>()
    {
        return cancelled();
    }
    if source.kind() == io::ErrorKind::TimedOut {
        return silent(&login.address, login.limits);
    }
    error
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(into),
            Self::Tls(stream) => stream.read(into),
            Self::Closed => Err(io::ErrorKind::NotConnected.into()),
            Self::Other(wire) => wire.read(into),
        }
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
            Self::Closed => Err(io::ErrorKind::NotConnected.into()),
            Self::Other(wire) => wire.write(bytes),
        }
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tls(stream) => stream.flush(),
            Self::Other(wire) => wire.flush(),
            Self::Plain(_) | Self::Closed => Ok(()),
        }
    }
}
