//! What can go wrong in loading, running and checking, and what the user can do about it.

use std::path::PathBuf;

use events::Hint;
use thiserror::Error;

/// Why a stage of this crate could not do its work.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The directory for the database is not there.
    #[error("directory '{}' does not exist", path.display())]
    NoDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// There is no database file to run on or to check.
    #[error("no database at '{}'", path.display())]
    NoDatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file exists and something else made it.
    #[error("'{}' was not created by wearmark", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
    },
    /// A load began and did not end.
    #[error("the load of '{}' never finished", path.display())]
    HalfLoaded {
        /// The file.
        path: PathBuf,
    },
    /// Another version of wearmark laid the tables out.
    #[error(
        "'{}' has database layout {found}, this version reads layout {expected}",
        path.display()
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// Layout of the file.
        found: i64,
        /// Layout of this version.
        expected: i64,
    },
    /// The database has another size, or another page size, than the run asks for.
    #[error("'{place}' was loaded with {what} {found}, the run asks for {wanted}")]
    OtherScale {
        /// The database.
        place: String,
        /// What differs.
        what: &'static str,
        /// What the file has.
        found: String,
        /// What the options say.
        wanted: String,
    },
    /// A file of an own workload, or what it says, cannot be used.
    #[error("{place}: {what}")]
    Workload {
        /// File and line.
        place: String,
        /// What is wrong.
        what: String,
        /// What to do.
        hint: String,
    },
    /// The database was loaded from other tables than the workload has now.
    #[error("the database was loaded from other tables or rows than '{workload}' has now")]
    OtherTables {
        /// The workload.
        workload: String,
    },
    /// An option has no meaning.
    #[error("{option} = {value}: {why}")]
    Option {
        /// Its name.
        option: &'static str,
        /// What it was set to.
        value: String,
        /// Why that cannot be.
        why: &'static str,
    },
    /// The file system, or the size that the settings allow, is full.
    #[error("no space left for '{}' while {doing}", path.display())]
    DiskFull {
        /// The database.
        path: PathBuf,
        /// What was being done.
        doing: String,
    },
    /// SQLite refused or failed.
    #[error("{doing} on '{}'", path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// What was being done.
        doing: String,
        /// SQLite's answer.
        source: rusqlite::Error,
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
    /// The database contradicts the workload, for example a customer that must exist does not.
    #[error("{what} in '{}'", path.display())]
    Inconsistent {
        /// The database.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// A server refused, failed or went away.
    #[error("{doing}")]
    Server {
        /// What was being done.
        doing: String,
        /// What came of it.
        source: Box<dbms::Error>,
    },
    /// The server's database holds nothing of ours, or not all of it.
    #[error("{what} in {place}")]
    NotLoaded {
        /// The server's address and database.
        place: String,
        /// What was found.
        what: String,
    },
    /// The server's database holds a table of our names that something else made.
    #[error("{place} holds a table '{what}' that was not created by wearmark")]
    Foreign {
        /// The server's address and database.
        place: String,
        /// The table.
        what: String,
    },
    /// A worker thread panicked.
    #[error("worker {worker} died: {reason}")]
    WorkerDied {
        /// Its number.
        worker: usize,
        /// Its panic message.
        reason: String,
    },
    /// The user stopped the load; the unfinished file was removed.
    #[error("the load was stopped; '{place}' was removed")]
    LoadCancelled {
        /// The file, or a server's address and database.
        place: String,
    },
}

impl Error {
    /// Wraps what came of a server.
    pub fn server(doing: impl Into<String>, source: dbms::Error) -> Self {
        Self::Server { doing: doing.into(), source: Box::new(source) }
    }

    /// Wraps SQLite's answer; a full disk becomes [`Error::DiskFull`].
    pub(crate) fn sqlite(
        path: &std::path::Path,
        doing: impl Into<String>,
        source: rusqlite::Error,
    ) -> Self {
        let (path, doing) = (path.to_owned(), doing.into());
        match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::DiskFull { path, doing },
            _ => Self::Sqlite { path, doing, source },
        }
    }
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoDirectory { path } => format!("create it: mkdir -p '{}'", path.display()),
            Self::NoDatabase { .. } => {
                "'wearmark oltp run DIRECTORY' loads one where there is none".to_owned()
            }
            Self::NotOurs { path } => format!(
                "name another directory, or move '{}' away yourself; wearmark overwrites only \
                 files that it made",
                path.display()
            ),
            Self::HalfLoaded { .. } => {
                "remove it; 'wearmark oltp run DIRECTORY' loads it again".to_owned()
            }
            Self::OtherVersion { .. } => {
                "remove it; 'wearmark oltp run DIRECTORY' loads it with this version".to_owned()
            }
            Self::OtherScale { what, found, .. } => {
                format!("load it again with the wanted {what}, or run with {what} {found}")
            }
            Self::Option { .. } | Self::WorkerDied { .. } => return None,
            Self::Workload { hint, .. } => hint.clone(),
            Self::OtherTables { .. } => {
                "load it again: remove the database, or name another directory".to_owned()
            }
            Self::DiskFull { path, .. } => format!(
                "free space (a warehouse takes about 80 MB, and grows during a run), or name \
                 another directory than '{}'",
                path.parent().unwrap_or(path).display()
            ),
            Self::Sqlite { source, .. } => match source.sqlite_error_code() {
                Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                    "another process has the database open: close it and run again".to_owned()
                }
                Some(rusqlite::ErrorCode::CannotOpen | rusqlite::ErrorCode::ReadOnly) => {
                    "check the permissions of the file and of its directory".to_owned()
                }
                _ => "if the file is damaged, remove it; 'wearmark oltp run DIRECTORY' loads it \
                     again"
                    .to_owned(),
            },
            Self::Io { .. } => "check the path, its permissions and the free space".to_owned(),
            Self::Inconsistent { .. } => {
                "check the database: wearmark oltp check; then load it again".to_owned()
            }
            Self::Server { source, .. } => return source.hint(),
            Self::Foreign { .. } => {
                "name another database; wearmark overwrites only tables that it made".to_owned()
            }
            Self::NotLoaded { .. } => "load it: wearmark oltp load".to_owned(),
            Self::LoadCancelled { .. } => "start the load again, from the beginning".to_owned(),
        };
        Some(hint)
    }
}
