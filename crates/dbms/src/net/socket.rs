//! A connected socket whose waits are bounded and end on the user's request.
//!
//! The kernel's own receive timeout wakes a blocked call every [`TICK`]; only then is a clock read,
//! so a server that answers costs no system call more than a plain blocking socket. A Unix socket
//! is polled before it is read: a blocked read is woken when the peer takes what was sent to it,
//! too (`unix_write_space`; reads and writes wait in one queue), a poll for input is not.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{RecvFlags, SendFlags};

use super::Limits;
use crate::{Address, Error};

/// Time between two looks at the clock and at the user's request to stop.
const TICK: Duration = Duration::from_millis(100);

/// How long an answer is still waited for after the user asked to stop: transactions in work end.
const GRACE: Duration = Duration::from_secs(2);

/// A socket to a server.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    limits: Limits,
    /// When the login must be over; none once it is.
    login_until: Option<Instant>,
    /// A read takes what is there and does not wait.
    impatient: bool,
    /// A read waits in a poll.
    polls: bool,
}

impl Socket {
    /// Connects within the bound of a login.
    pub fn connect(address: &Address, limits: Limits) -> Result<Self, Error> {
        let login_until = Instant::now() + limits.login;
        let fd = connected(address, limits, login_until)?;
        let failed =
            |errno: Errno| Error::Connect { address: address.clone(), source: errno.into() };
        for direction in [Timeout::Recv, Timeout::Send] {
            sockopt::set_socket_timeout(&fd, direction, Some(TICK)).map_err(failed)?;
        }
        if let Address::Tcp { .. } = address {
            // A pipeline is one write: nothing is gained by waiting for more.
            sockopt::set_tcp_nodelay(&fd, true).map_err(failed)?;
            // A peer that vanished is noticed although nothing is sent.
            sockopt::set_socket_keepalive(&fd, true).map_err(failed)?;
        }
        let polls = matches!(address, Address::Unix(_));
        Ok(Self { fd, limits, login_until: Some(login_until), impatient: false, polls })
    }

    /// From now on the bound of an answer holds.
    pub fn logged_in(&mut self) {
        self.login_until = None;
    }

    /// Makes reads return [`ErrorKind::WouldBlock`] instead of waiting, or wait again.
    pub fn set_impatient(&mut self, impatient: bool) {
        self.impatient = impatient;
    }

    /// Whether the server has sent something that nobody has read, or has ended the connection.
    pub fn readable(&self) -> bool {
        let mut byte = [0u8; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        rustix::net::recv(&self.fd, &mut byte, flags).is_ok()
    }

    /// Repeats `attempt` until it succeeds, fails, or the wait is over.
    #[cold]
    fn wait(&self, attempt: impl Fn() -> Result<usize, Errno>) -> io::Result<usize> {
        let begun = Instant::now();
        let mut stop_seen = None;
        loop {
            let now = Instant::now();
            let stopped = self.limits.stop.asked();
            match self.login_until {
                Some(_) if stopped => return Err(stop()),
                Some(until) if now >= until => return Err(ErrorKind::TimedOut.into()),
                None if now - begun >= self.limits.answer => {
                    let text = format!("no answer within {} s", self.limits.answer.as_secs());
                    return Err(io::Error::new(ErrorKind::TimedOut, text));
                }
                None if stopped && now - *stop_seen.get_or_insert(now) >= GRACE => {
                    return Err(stop());
                }
                _ => {}
            }
            match attempt() {
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }
}

/// The wait ended because the user asked to stop. Not `Interrupted`: that is tried again.
fn stop() -> io::Error {
    io::Error::other(Stopped)
}

/// Why a wait ended: the user stopped it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopped;

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stopped by the user")
    }
}

impl std::error::Error for Stopped {}

/// Looks the name up and connects, in a thread of its own: neither can be interrupted, and a lookup
/// has no bound that we could set.
fn connected(address: &Address, limits: Limits, until: Instant) -> Result<OwnedFd, Error> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let to = address.clone();
    let bound = limits.login;
    let name = "connect".to_owned();
    let attempt = move || {
        // There is no listener any more where the wait is over.
        let _ = sender.send(match &to {
            Address::Unix(path) => UnixStream::connect(path).map(OwnedFd::from),
            Address::Tcp { host, port } => tcp(host, *port, bound).map(OwnedFd::from),
        });
    };
    let failed = |source| Error::Connect { address: address.clone(), source };
    std::thread::Builder::new().name(name).spawn(attempt).map_err(failed)?;
    loop {
        match receiver.recv_timeout(TICK) {
            Ok(connected) => {
                return connected.map_err(|source| match source.kind() {
                    ErrorKind::TimedOut => silent(address, limits),
                    _ => failed(source),
                });
            }
            Err(RecvTimeoutError::Timeout) if limits.stop.asked() => return Err(cancelled()),
            Err(RecvTimeoutError::Timeout) if Instant::now() < until => {}
            Err(_) => return Err(silent(address, limits)),
        }
    }
}

/// Tries the addresses of a host one after the other, each for its share of the time.
fn tcp(host: &str, port: u16, bound: Duration) -> io::Result<TcpStream> {
    use std::net::ToSocketAddrs;
    let addresses: Vec<_> = (host, port).to_socket_addrs()?.collect();
    let share = bound / addresses.len().max(1) as u32;
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, share) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The server did not answer in time.
pub(super) fn silent(address: &Address, limits: Limits) -> Error {
    Error::Silent { address: address.clone(), bound_s: limits.login.as_secs() }
}

/// The user stopped a login.
pub(super) fn cancelled() -> Error {
    Error::Cancelled { doing: "logging in".to_owned() }
}

impl Read for Socket {
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let flags = if self.impatient { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        if self.polls && !self.impatient {
            // Whatever ends it: the read that follows waits on, or tells what is wrong.
            let tick = Timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as _ };
            let _ = poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], Some(&tick));
        }
        match rustix::net::recv(&self.fd, &mut *into, flags) {
            Ok((count, _)) => Ok(count),
            Err(Errno::AGAIN) if self.impatient => Err(ErrorKind::WouldBlock.into()),
            Err(Errno::AGAIN | Errno::INTR) => {
                let into = std::cell::RefCell::new(into);
                self.wait(|| {
                    let mut into = into.borrow_mut();
                    rustix::net::recv(&self.fd, &mut **into, flags).map(|(count, _)| count)
                })
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Write for Socket {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::net::send(&self.fd, bytes, SendFlags::NOSIGNAL) {
            Err(Errno::AGAIN | Errno::INTR) => {
                self.wait(|| rustix::net::send(&self.fd, bytes, SendFlags::NOSIGNAL))
            }
            other => Ok(other?),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    const ANSWERS: u64 = 100;

    fn sleeps_of_this_thread() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"));
        line.unwrap().split_whitespace().last().unwrap().parse().unwrap()
    }

    /// A server takes a request long before it answers: who waits for the answer is not woken then.
    #[test]
    fn a_reader_sleeps_once_for_an_answer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut byte = [0u8; 1];
            for _ in 0..ANSWERS {
                std::thread::sleep(Duration::from_millis(1));
                stream.read_exact(&mut byte).unwrap();
                std::thread::sleep(Duration::from_millis(1));
                stream.write_all(&byte).unwrap();
            }
        });
        let mut socket = Socket::connect(&Address::Unix(path), Limits::default()).unwrap();
        let before = sleeps_of_this_thread();
        let mut byte = [0u8; 1];
        for _ in 0..ANSWERS {
            socket.write_all(&byte).unwrap();
            socket.read_exact(&mut byte).unwrap();
        }
        let sleeps = sleeps_of_this_thread() - before;
        server.join().unwrap();
        assert!(sleeps < ANSWERS * 3 / 2, "{sleeps} sleeps for {ANSWERS} answers");
    }
}
