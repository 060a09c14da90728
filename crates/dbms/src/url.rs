//! The address of a running server, as its own tools write it.
//!
//! `postgresql://user:password@host:port/database` and `mysql://...` or `mariadb://...`;
//! `?socket=/path/of/the/socket` in place of a host, and what protects and bounds the connection:
//! `sslmode`, `sslrootcert` (MySQL's `ssl-mode`, `ssl-ca`), `cleartext_password=allow`,
//! `connect_timeout`, `answer_timeout` (seconds). Tested with a table of URLs, and that no text
//! makes it panic.

use std::path::PathBuf;
use std::time::Duration;

use crate::{Address, Environment, Error, Login, System};

impl Login {
    /// Reads a URL such as `postgresql://user:password@host:5432/database`.
    ///
    /// Parts are percent-decoded; user, port and database default to what the server's own client
    /// would take (`postgres`, 5432, `postgres`; `root`, 3306, `test`).
    ///
    /// # Errors
    /// [`Error::Address`] for an unknown scheme, a bad port, or an unknown parameter.
    pub fn parse(url: &str) -> Result<(System, Self), Error> {
        Self::parse_over(url, None)
    }

    /// As [`Login::parse`]; what the URL leaves open of encryption and bounds is taken from the
    /// environment. A password is not: see [`Login::add_password`].
    ///
    /// # Errors
    /// As [`Login::parse`].
    pub fn parse_with(url: &str, from: &Environment<'_>) -> Result<(System, Self), Error> {
        Self::parse_over(url, Some(from))
    }

    fn parse_over(url: &str, from: Option<&Environment<'_>>) -> Result<(System, Self), Error> {
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
        let or = |text: String, default: &str| if text.is_empty() { default.into() } else { text };
        let address =
            tcp(host, port).ok_or_else(|| fail("the port is not a number below 65536"))?;
        let mut login = Self::new(address, or(decode(name)?, user), or(decode(path)?, database));
        login.password = password.map(decode).transpose()?;
        if let Some(from) = from {
            login.defaults_from(system, from)?;
        }
        for parameter in parameters.split('&').filter(|text| !text.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            login.parameter(name, decode(value)?).map_err(|why| fail(&why))?;
        }
        Ok((system, login))
    }

    /// Sets what a parameter of a URL says.
    fn parameter(&mut self, name: &str, value: String) -> Result<(), String> {
        let seconds = |value: String| match value.parse() {
            Ok(seconds @ 1..=86_400) => Ok(Duration::from_secs(seconds)),
            _ => Err(format!("{name} takes seconds, 1 to 86400")),
        };
        match name {
            "socket" => self.address = Address::Unix(PathBuf::from(value)),
            "sslmode" | "ssl-mode" => {
                self.tls.mode = value.parse().map_err(|()| {
                    "sslmode is disable, prefer, require, verify-ca or verify-full".to_owned()
                })?;
            }
            "sslrootcert" | "ssl-ca" => self.tls.root_certificates = Some(value.into()),
            "cleartext_password" if value == "allow" => self.tls.cleartext_password = true,
            "cleartext_password" => return Err("cleartext_password takes allow".to_owned()),
            "connect_timeout" => self.limits.login = seconds(value)?,
            "answer_timeout" => self.limits.answer = seconds(value)?,
            other => return Err(format!("there is no parameter '{other}'")),
        }
        Ok(())
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
    use crate::{Limits, Tls, TlsMode};

    fn check(url: &str, expected: &str) {
        let shown = match Login::parse(url) {
            Ok((system, login)) => {
                let Login { address, user, password, database, .. } = login;
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
        bad("mysql://h/x?ssl=1", "there is no parameter 'ssl'");
        let modes = "sslmode is disable, prefer, require, verify-ca or verify-full";
        bad("postgresql://h/x?sslmode=yes", modes);
        bad("postgresql://h/x?connect_timeout=0", "connect_timeout takes seconds, 1 to 86400");
        bad("postgresql://h/x?cleartext_password=1", "cleartext_password takes allow");
        let error = Login::parse("mysql://me:secret@h:p/").unwrap_err().to_string();
        assert!(error.contains("me:***@h:p") && !error.contains("secret"), "{error}");
    }

    #[test]
    fn parameters_protect_and_bound_a_connection() {
        let parsed =
            |parameters: &str| Login::parse(&format!("postgresql://h/x?{parameters}")).unwrap().1;
        let plain = parsed("");
        assert_eq!((plain.tls, plain.limits), (Tls::default(), Limits::default()));
        let full = parsed("sslmode=verify-full&sslrootcert=%2Fa%20b.pem&connect_timeout=3");
        assert_eq!(full.tls.mode, TlsMode::VerifyFull);
        assert_eq!(full.tls.root_certificates, Some("/a b.pem".into()));
        assert_eq!(full.limits.login, Duration::from_secs(3));
        assert!(!full.tls.cleartext_password);
        assert!(parsed("cleartext_password=allow").tls.cleartext_password);
        assert_eq!(parsed("ssl-mode=VERIFY_IDENTITY").tls.mode, TlsMode::VerifyFull);
        assert_eq!(parsed("answer_timeout=7").limits.answer, Duration::from_secs(7));
    }

    #[test]
    fn a_url_overrides_the_environment() {
        let variable = |name: &str| match name {
            "PGSSLMODE" => Some("verify-ca".into()),
            "PGPASSWORD" => Some("env".into()),
            _ => None,
        };
        let from = Environment { variable: &variable };
        let found = |url: &str| {
            let (system, mut login) = Login::parse_with(url, &from).unwrap();
            login.add_password(system, &from).unwrap();
            login
        };
        let open = found("postgresql://h/x");
        assert_eq!((open.tls.mode, open.password.as_deref()), (TlsMode::VerifyCa, Some("env")));
        let said = found("postgresql://u:p@h/x?sslmode=disable");
        assert_eq!((said.tls.mode, said.password.as_deref()), (TlsMode::Disable, Some("p")));
        assert_eq!(found("mysql://h/x").tls.mode, TlsMode::Prefer);
        let typo = |name: &str| (name == "PGSSLMODE").then(|| "verify_ful".into());
        assert!(Login::parse_with("postgresql://h", &Environment { variable: &typo }).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(mysql://)?.{0,30}") {
            let _ = Login::parse(&text);
        }
    }
}
