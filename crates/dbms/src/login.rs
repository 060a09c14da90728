//! Where a server listens and as whom to talk to it.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

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
}

/// Shows everything but the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("address", &self.address)
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("database", &self.database)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let login = Login {
            address: Address::Tcp { host: "db".to_owned(), port: 5432 },
            user: "u".to_owned(),
            password: Some("geheim".to_owned()),
            database: "d".to_owned(),
        };
        let shown = format!("{login:?} {}", login.address);
        assert!(!shown.contains("geheim") && shown.ends_with("db:5432"), "{shown}");
    }
}
