//! The address of a running server, as its own tools write it.
//!
//! `postgresql://user:password@host:port/database` and `mysql://...` or `mariadb://...`;
//! `?socket=/path/of/the/socket` in place of a host. Tested with a table of URLs, and that no text
//! makes it panic.

use std::path::PathBuf;

use crate::{Address, Error, Login, System};

impl Login {
    /// Reads a URL such as `postgresql://user:password@host:5432/database`.
    ///
    /// Parts are percent-decoded; user, port and database default to what the server's own client
    /// would take (`postgres`, 5432, `postgres`; `root`, 3306, `test`).
    ///
    /// # Errors
    /// [`Error::Address`] for an unknown scheme, a bad port, or an unknown parameter.
    pub fn parse(url: &str) -> Result<(System, Self), Error> {
        let fail = |why: &str| Error::Address { url: hidden(url), why: why.to_owned() };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| fail("it has no scheme"))?;
        let (system, user, port, database) = match scheme {
            "postgresql" | "postgres" => (System::Postgresql, "postgres", 5432, "postgres"),
            "mysql" | "mariadb" => (System::Mariadb, "root", 3306, "test"),
            _ => return Err(fail("the scheme is neither postgresql nor mysql")),
        };
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (account, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (name, password) = match account.split_once(':') {
            Some((name, password)) => (name, Some(password)),
            None => (account, None),
        };
        let decode = |text: &str| decoded(text).ok_or_else(|| fail("a % escape is malformed"));
        let mut socket = None;
        for parameter in parameters.split('&').filter(|text| !text.is_empty()) {
            match parameter.split_once('=') {
                Some(("socket", value)) => socket = Some(PathBuf::from(decode(value)?)),
                _ => return Err(fail("the only parameter known is socket")),
            }
        }
        let address = match socket {
            Some(path) => Address::Unix(path),
            None => tcp(host, port).ok_or_else(|| fail("the port is not a number below 65536"))?,
        };
        let or = |text: String, default: &str| if text.is_empty() { default.into() } else { text };
        let login = Self {
            address,
            user: or(decode(name)?, user),
            password: password.map(decode).transpose()?,
            database: or(decode(path)?, database),
        };
        Ok((system, login))
    }
}

/// `host`, `host:port`, `[::1]`, `[::1]:port`; nothing is the local host.
fn tcp(text: &str, default_port: u16) -> Option<Address> {
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (host, port) = match bracketed {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().ok()?,
        None => default_port,
    };
    let host = if host.is_empty() { "localhost" } else { host };
    Some(Address::Tcp { host: host.to_owned(), port })
}

/// The URL without its password, for messages.
fn hidden(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    match rest.rsplit_once('@') {
        Some((account, rest)) => {
            let name = account.split(':').next().unwrap_or("");
            format!("{scheme}://{name}:***@{rest}")
        }
        None => url.to_owned(),
    }
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(url: &str, expected: &str) {
        let shown = match Login::parse(url) {
            Ok((system, login)) => {
                let Login { address, user, password, database } = login;
                format!("{system:?} {user}@{address}/{database} {password:?}")
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected, "{url}");
    }

    #[test]
    fn urls_as_people_write_them() {
        check("postgresql://", "Postgresql postgres@localhost:5432/postgres None");
        check("postgres://me:s%40x@db:99/shop", "Postgresql me@db:99/shop Some(\"s@x\")");
        check("mysql://me:a@b@[::1]:7/x", "Mariadb me@::1:7/x Some(\"a@b\")");
        check("mariadb://[::1]", "Mariadb root@::1:3306/test None");
        check("mysql:///d?socket=/run/m.sock", "Mariadb root@/run/m.sock/d None");
    }

    #[test]
    fn what_is_refused_says_why_and_hides_the_password() {
        let bad = |url: &str, why: &str| check(url, &format!("'{url}' is not {WHAT}: {why}"));
        const WHAT: &str = "the address of a server";
        bad("localhost", "it has no scheme");
        bad("oracle://x", "the scheme is neither postgresql nor mysql");
        bad("mysql://h:99999/x", "the port is not a number below 65536");
        bad("mysql://h/%g1", "a % escape is malformed");
        bad("mysql://h/x?ssl=1", "the only parameter known is socket");
        let error = Login::parse("mysql://me:secret@h:p/").unwrap_err().to_string();
        assert!(error.contains("me:***@h:p") && !error.contains("secret"), "{error}");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(mysql://)?.{0,30}") {
            let _ = Login::parse(&text);
        }
    }
}
