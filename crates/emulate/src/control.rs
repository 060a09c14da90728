//! Orders to devices that are being served, from another terminal.
//!
//! An emulation listens at a socket in the abstract name space (unix(7)) that is named after its
//! directory, so that nothing is left behind by `kill -9`. Such sockets have no permissions;
//! whoever is neither this user nor root is turned away by the credentials of the peer.
//!
//! A question is words, one a line; the answer is `ok` or `error` and a text.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;
use rustix::process::getuid;

use crate::Error;

/// Longest wait for the other side.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest question that is read, bytes.
const QUESTION_MAX: u64 = 64 << 10;
/// Longest name of an abstract socket, bytes.
const NAME_MAX: usize = 107;

/// Where orders for a directory arrive.
#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
}

/// An order that waits for its answer.
#[derive(Debug)]
pub struct Asked {
    /// What was asked, word by word.
    pub words: Vec<String>,
    stream: UnixStream,
}

fn address(directory: &Path) -> io::Result<SocketAddr> {
    let path = directory.canonicalize()?;
    let name = [b"wearmark-emulate:", path.as_os_str().as_bytes()].concat();
    // Of a path that is too long the end tells more than its start.
    let from = name.len().saturating_sub(NAME_MAX);
    SocketAddr::from_abstract_name(&name[from..])
}

impl Control {
    /// Listens for orders to the device under `directory`.
    ///
    /// # Errors
    /// Somebody listens already, or the directory is gone.
    pub fn listen(directory: &Path) -> Result<Self, Error> {
        let fail = |source| Error::io(directory, "listening for orders", source);
        let listener = UnixListener::bind_addr(&address(directory).map_err(fail)?).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        Ok(Self { listener })
    }

    /// The next order, if one waits. Whoever may not give orders, or does not finish, gets none.
    pub fn next(&self) -> Option<Asked> {
        let (mut stream, _) = self.listener.accept().ok()?;
        let peer = socket_peercred(&stream).ok()?;
        if peer.uid != getuid() && !peer.uid.is_root() {
            return None;
        }
        stream.set_nonblocking(false).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        let mut text = String::new();
        (&mut stream).take(QUESTION_MAX).read_to_string(&mut text).ok()?;
        Some(Asked { words: text.lines().map(str::to_owned).collect(), stream })
    }
}

impl Asked {
    /// Answers; a side that has gone away is not waited for.
    pub fn answer(mut self, answer: &Result<String, String>) {
        let text = match answer {
            Ok(text) => format!("ok\n{text}"),
            Err(text) => format!("error\n{text}"),
        };
        _ = self.stream.write_all(text.as_bytes());
    }
}

/// Asks the emulation of `directory`.
///
/// # Errors
/// Nothing is served there, it does not answer, or it refuses.
pub fn ask(directory: &Path, words: &[String]) -> Result<String, Error> {
    let fail = |source: io::Error| match source.kind() {
        io::ErrorKind::ConnectionRefused => Error::Unavailable {
            cause: format!("{}: nothing is emulated there", directory.display()),
            hint: "name the directory that 'wearmark emulate' was given with --dir".to_owned(),
        },
        _ => Error::io(directory, "giving an order", source),
    };
    let mut stream = UnixStream::connect_addr(&address(directory).map_err(fail)?).map_err(fail)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(fail)?;
    stream.write_all(words.join("\n").as_bytes()).map_err(fail)?;
    stream.shutdown(Shutdown::Write).map_err(fail)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(fail)?;
    match answer.split_once('\n') {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some(("error", text)) => Err(Error::Refused { cause: text.to_owned() }),
        _ => Err(fail(io::ErrorKind::UnexpectedEof.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves one order, as an emulation does.
    fn serve(control: &Control, answer: &Result<String, String>) -> Vec<String> {
        loop {
            if let Some(asked) = control.next() {
                let words = asked.words.clone();
                asked.answer(answer);
                return words;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn orders_and_answers_pass() {
        let directory = tempfile::tempdir().expect("a directory");
        let control = Control::listen(directory.path()).expect("it listens");
        for (answer, expected) in [
            (Ok("done\nand more".to_owned()), "done\nand more"),
            (Err("no such field".to_owned()), "no such field"),
        ] {
            let words = ["set".to_owned(), "a=1".to_owned()];
            std::thread::scope(|scope| {
                let asked = scope.spawn(|| ask(directory.path(), &words));
                assert_eq!(serve(&control, &answer), words);
                let found = asked.join().expect("no panic");
                let found = found.unwrap_or_else(|error| error.to_string());
                assert_eq!(found, expected);
            });
        }
    }

    #[test]
    fn nobody_there_and_somebody_there_already_are_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let error = ask(directory.path(), &[]).expect_err("no server is listening");
        assert!(error.to_string().contains("nothing is emulated there"), "{error}");
        let _first = Control::listen(directory.path()).expect("it listens");
        assert!(Control::listen(directory.path()).is_err());
    }
}
