//! What can go wrong with a server, and what the user can do about it.
//!
//! Every message names its place (a directory, a socket, a program), every hint the next step.
//! Tested in `tests/it/errors.rs`, where real servers are driven into them.

use std::path::PathBuf;

use events::Hint;
use thiserror::Error;

use crate::{Address, System};

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
    /// The server did not answer a login in time.
    #[error("{address} did not answer within {bound_s} s")]
    Silent {
        /// Where.
        address: Address,
        /// The bound, seconds.
        bound_s: u64,
    },
    /// No encrypted connection can be had.
    #[error("no TLS with {address}: {why}")]
    Tls {
        /// Where.
        address: Address,
        /// What failed.
        why: String,
    },
    /// A file with passwords that cannot be used.
    #[error("passwords in '{}': {why}", path.display())]
    Passwords {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The server asks for a proof that we cannot give, or gives none itself.
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
    /// The server's programs are not installed.
    #[error("{system} is not installed: no '{program}' in {searched}")]
    NoProgram {
        /// Which server.
        system: System,
        /// The program that was looked for.
        program: &'static str,
        /// Where.
        searched: String,
    },
    /// The installed server is one that wearmark does not know how to run.
    #[error("'{}' is {found}, {needed} is needed", program.display())]
    WrongVersion {
        /// The program.
        program: PathBuf,
        /// What it says it is.
        found: String,
        /// What would do.
        needed: String,
    },
    /// A setting or place that this server cannot have.
    #[error("{setting} = {value} is not possible with {system}: {why}")]
    Unsupported {
        /// Which server.
        system: System,
        /// The setting.
        setting: &'static str,
        /// What was asked for.
        value: String,
        /// Why it cannot be.
        why: &'static str,
    },
    /// A directory for a new instance holds something.
    #[error("directory '{}' is not empty", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// A directory is not one of our instances.
    #[error("'{}' holds no instance that wearmark made", path.display())]
    NotOurs {
        /// The directory.
        path: PathBuf,
    },
    /// The user that the server runs as cannot enter a directory above its data.
    #[error("user '{user}' cannot enter '{}'", directory.display())]
    NotReachable {
        /// The first directory, from the root, that it cannot enter.
        directory: PathBuf,
        /// The user.
        user: String,
    },
    /// Somebody else works with the instance, or its server runs already.
    #[error("the instance in '{}' is in use: {by}", path.display())]
    InUse {
        /// The data directory.
        path: PathBuf,
        /// What is known of the other.
        by: String,
    },
    /// The file system is full.
    #[error("no space left in '{}' while {doing}", path.display())]
    DiskFull {
        /// The directory.
        path: PathBuf,
        /// What was being done.
        doing: String,
    },
    /// A program of the server failed.
    #[error("{doing} failed ({status}): {output}")]
    Program {
        /// What was being done.
        doing: String,
        /// How the program ended.
        status: String,
        /// The last lines that it wrote.
        output: String,
    },
    /// The server ended although nobody asked it to.
    #[error("{system} in '{}' ended while {doing} ({status}); its log ends: {log}", path.display())]
    Crashed {
        /// Which server.
        system: System,
        /// The data directory.
        path: PathBuf,
        /// What was being done.
        doing: String,
        /// How the process ended.
        status: String,
        /// The last lines of its log.
        log: String,
    },
    /// Something took longer than its bound.
    #[error("{doing} took longer than {bound_s} s; the log ends: {log}")]
    Timeout {
        /// What was being done.
        doing: String,
        /// The bound, seconds.
        bound_s: u64,
        /// The last lines of the server's log.
        log: String,
    },
    /// This machine, or this user, cannot do it.
    #[error("{what} is not available: {why}")]
    Unavailable {
        /// What.
        what: &'static str,
        /// What is missing.
        why: String,
    },
    /// The user stopped it; what was made so far has been removed.
    #[error("{doing} was stopped; nothing is left of it")]
    Cancelled {
        /// What was being done.
        doing: String,
    },
    /// A URL of a running server that cannot be understood.
    #[error("'{url}' is not the address of a server: {why}")]
    Address {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The operating system refused or failed.
    #[error("{doing} '{}'", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// Its answer.
        source: std::io::Error,
    },
}

impl Error {
    /// Wraps the operating system's answer; a full disk becomes [`Error::DiskFull`].
    pub(crate) fn io(
        path: impl Into<PathBuf>,
        doing: &'static str,
        source: std::io::Error,
    ) -> Self {
        let path = path.into();
        match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { path, doing: doing.to_owned() }
            }
            _ => Self::Io { path, doing, source },
        }
    }

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
            Self::Silent { .. } => Some(
                "check host and port, and that no firewall drops packets; ?connect_timeout=SECONDS \
                 waits longer"
                    .to_owned(),
            ),
            Self::Tls { .. } => Some(
                "name the root that signed the server's certificate: ?sslrootcert=FILE; \
                 ?sslmode=disable does without encryption"
                    .to_owned(),
            ),
            Self::Passwords { .. } => Some("chmod 600 FILE; only its owner may read it".to_owned()),
            Self::Login { why, .. } => Some(login_hint(why).to_owned()),
            Self::Protocol { .. } => {
                Some("check that the address is that of the DBMS named".to_owned())
            }
            Self::Server { sqlstate, detail, .. } => match (sqlstate.as_str(), detail) {
                ("53100", _) => Some("the server's disk is full: free space".to_owned()),
                ("28P01" | "28000", None) => Some(
                    "check user and password (PGPASSWORD, ~/.pgpass, MYSQL_PWD, ~/.my.cnf or \
                     --ask-password); a server that wants encryption needs ?sslmode=require"
                        .to_owned(),
                ),
                (_, detail) => detail.clone(),
            },
            other => Some(other.instance_hint()),
        }
    }
}

/// What helps after a login that failed on our side.
fn login_hint(why: &str) -> &'static str {
    if why.contains("unencrypted") {
        "?sslmode=require or better encrypts it; ?cleartext_password=allow sends it all the same"
    } else if why.contains("asks for a password") {
        "set PGPASSWORD or MYSQL_PWD, keep it in ~/.pgpass or ~/.my.cnf, or say --ask-password"
    } else {
        "check user, password and database of the URL, and that the address is the server's own"
    }
}

impl Error {
    /// The hints of what concerns an instance.
    fn instance_hint(&self) -> String {
        match self {
            Self::NoProgram { system, .. } => format!(
                "install it: apt-get install {}; or name the directory of its programs in {}",
                system.package(),
                system.programs_variable()
            ),
            Self::WrongVersion { .. } => {
                "install a version that is known, or name another directory of programs".to_owned()
            }
            Self::Unsupported { .. } => "leave the setting out".to_owned(),
            Self::NotEmpty { .. } => {
                "name an empty directory, or one that does not exist yet".to_owned()
            }
            Self::NotOurs { .. } => {
                "name the data directory that the instance was created with".to_owned()
            }
            Self::NotReachable { directory, user } => format!(
                "servers do not run as root: chmod o+x '{}', or name a directory that '{user}' \
                 can reach",
                directory.display()
            ),
            Self::InUse { .. } => "end the other one first".to_owned(),
            Self::DiskFull { .. } => {
                "free space (an empty instance takes 60 to 200 MB), or name another directory"
                    .to_owned()
            }
            Self::Program { .. } | Self::Crashed { .. } | Self::Timeout { .. } => {
                "the server's own words above say why; settings that it refuses can be left out"
                    .to_owned()
            }
            Self::Unavailable { .. } => {
                "run as root, on a kernel with FUSE (modprobe fuse); or do without it".to_owned()
            }
            Self::Cancelled { .. } => "start again, from the beginning".to_owned(),
            Self::Address { .. } => "write postgresql://user:password@host:5432/database or \
                 mysql://user:password@host:3306/database; a unix socket is ?socket=/path; other \
                 parameters: sslmode, sslrootcert, cleartext_password, connect_timeout, \
                 answer_timeout"
                .to_owned(),
            _ => "check the path, its permissions and the free space".to_owned(),
        }
    }
}
