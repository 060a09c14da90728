//! What can go wrong with a server, and what the user can do about it.

use events::Hint;
use thiserror::Error;

use crate::Address;

/// Why a server, or the talk with it, failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody answers there.
    #[error("cannot connect to {address}")]
    Connect {
        /// Where.
        address: Address,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// The connection broke: the server ended it, crashed, or was killed.
    #[error("the connection to the server broke while {doing}")]
    Broken {
        /// What was being done.
        doing: &'static str,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// The server sent what the protocol does not allow.
    #[error("the server does not keep to the protocol: {what}")]
    Protocol {
        /// What was wrong.
        what: String,
    },
    /// The server asks for a proof that we cannot give.
    #[error("cannot log in as '{user}': {why}")]
    Login {
        /// The user.
        user: String,
        /// What is missing.
        why: String,
    },
    /// The server refused a statement.
    #[error("the server answers {sqlstate}: {message}")]
    Server {
        /// Class and reason by the SQL standard, five characters.
        sqlstate: String,
        /// The server's own number, where it has one (MariaDB); else 0.
        code: u32,
        /// Its text.
        message: String,
        /// Further lines: detail, place, context.
        detail: Option<String>,
    },
}

impl Error {
    /// The SQLSTATE, where the server itself answered.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Server { sqlstate, .. } => Some(sqlstate),
            _ => None,
        }
    }
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Connect { .. } => {
                Some("check that the server runs and listens there, and who may connect".to_owned())
            }
            Self::Broken { .. } => {
                Some("look at the last lines of the server's log for the reason".to_owned())
            }
            Self::Login { .. } => Some("check user, password and database of the URL".to_owned()),
            Self::Protocol { .. } => {
                Some("check that the address is that of the DBMS named".to_owned())
            }
            Self::Server { sqlstate, detail, .. } => match (sqlstate.as_str(), detail) {
                ("53100", _) => Some("the server's disk is full: free space".to_owned()),
                (_, detail) => detail.clone(),
            },
        }
    }
}
