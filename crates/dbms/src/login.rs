//! Where a server listens and as whom to talk to it.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Error, Limits, Tls};

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    /// A unix socket: the socket file itself, not its directory.
    Unix(PathBuf),
    /// A TCP port.
    Tcp {
        /// Name or address of the host.
        host: String,
        /// Its port.
        port: u16,
    },
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// What a connection is opened with.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// Where the server listens.
    pub address: Address,
    /// Name of the user.
    pub user: String,
    /// Password, where the server asks for one.
    pub password: Option<String>,
    /// Database to work in.
    pub database: String,
    /// How a TCP connection is protected.
    pub tls: Tls,
    /// Bounds on every wait.
    pub limits: Limits,
}

impl Login {
    /// A login without a password, with the defaults of everything else.
    pub fn new(address: Address, user: impl Into<String>, database: impl Into<String>) -> Self {
        Self {
            address,
            user: user.into(),
            password: None,
            database: database.into(),
            tls: Tls::default(),
            limits: Limits::default(),
        }
    }

    /// Refuses names that would end early on the wire.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.user.contains('\0') || self.database.contains('\0') {
            let why = "names cannot hold a zero byte".to_owned();
            return Err(Error::Login { user: self.user.clone(), why });
        }
        Ok(())
    }

    /// The error of a password that would travel for everyone to read.
    pub(crate) fn cleartext(&self) -> Error {
        Error::Login {
            user: self.user.clone(),
            why: "the server asks for the password unencrypted".to_owned(),
        }
    }
}

/// Shows everything but the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("address", &self.address)
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("database", &self.database)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let address = Address::Tcp { host: "db".to_owned(), port: 5432 };
        let login = Login { password: Some("geheim".to_owned()), ..Login::new(address, "u", "d") };
        let shown = format!("{login:?} {}", login.address);
        assert!(!shown.contains("geheim") && shown.ends_with("db:5432"), "{shown}");
    }
}
