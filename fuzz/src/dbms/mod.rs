//! Servers that may say anything, to the clients of both protocols.
//!
//! The first byte of an input chooses the login and how the stream is cut, the rest is what the
//! server says. Whatever it is, a client ends with an answer or with an error of one line.

pub mod mariadb;
pub mod postgresql;
mod script;

use dbms::{Address, Error, Login, Tls, TlsMode};

/// Inputs beyond this find nothing that shorter ones do not.
const LONGEST_BYTES: usize = 256 << 10;

/// Bit of the choice: every read returns at most one message.
const BY_MESSAGE: u8 = 1 << 4;

/// The login that a choice stands for.
fn login(choice: u8) -> Login {
    let address = match choice & 3 {
        0 => Address::Unix("/nowhere".into()),
        _ => Address::Tcp { host: "nowhere".to_owned(), port: 1 },
    };
    let mode = match choice & 3 {
        0 | 1 => TlsMode::Disable,
        2 => TlsMode::Prefer,
        _ => TlsMode::Require,
    };
    let tls = Tls { mode, ..Tls::default() };
    let password = (choice & 4 == 0).then(|| "pencil".to_owned());
    let database = if choice & 8 == 0 { "d" } else { "" };
    Login { password, tls, ..Login::new(address, "u", database) }
}

/// What a person is shown is one line, and nothing in it steers a terminal.
fn check_error(error: &Error) {
    let hint = events::Hint::hint(error).unwrap_or_default();
    for text in [error.to_string(), hint] {
        assert!(!text.contains(char::is_control), "one line: {text:?}");
    }
}
