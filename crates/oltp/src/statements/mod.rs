//! Statements as text on any of the three DBMSs: for workloads of few and long ones.
//!
//! [`Target`] says where, [`Ground`] is it while it runs: a private server that is removed at the
//! end, or a directory with an SQLite file that is. [`Session`] is a connection. Tested through
//! `temp` and `versions`.

mod session;

use std::fs;
use std::path::{Path, PathBuf};

use dbms::{Instance, Places, Settings, System};
use events::Sink;
use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::Error;
pub use session::Session;

/// Where a workload of statements runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// SQLite in this process, its file in a directory.
    Sqlite {
        /// An existing directory.
        directory: PathBuf,
        /// Page cache of each connection.
        cache: Bytes,
        /// Page size.
        page: Bytes,
    },
    /// A private server.
    Server {
        /// Which.
        system: System,
        /// Where its files go.
        places: Places,
        /// How it is set.
        settings: Box<Settings>,
    },
}

impl Target {
    /// `sqlite`, `postgresql` or `mariadb`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sqlite { .. } => "sqlite",
            Self::Server { system, .. } => system.name(),
        }
    }
}

/// A place that is ready; what it made is removed when it is dropped.
pub struct Ground {
    kind: Kind,
}

enum Kind {
    Sqlite { folder: Folder, cache: Bytes, page: Bytes },
    Server(Box<Instance>),
}

/// A folder of ours.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing can be done about a failure here.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Bytes that went through system calls, where the kernel tells: the page cache included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallBytes {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
}

impl Ground {
    /// Makes the place ready.
    ///
    /// # Errors
    /// Missing programs, places that are not free, a full disk, an interruption.
    pub fn new(target: &Target, sink: &dyn Sink) -> Result<Self, Error> {
        let kind = match target {
            Target::Sqlite { directory, cache, page } => {
                if !directory.is_dir() {
                    return Err(Error::NoDirectory { path: directory.clone() });
                }
                let path = directory.join(format!("wearmark-sqlite-{}", std::process::id()));
                let made = fs::create_dir(&path);
                made.map_err(|source| Error::Io {
                    path: path.clone(),
                    doing: "making the folder",
                    source,
                })?;
                Kind::Sqlite { folder: Folder(path), cache: *cache, page: *page }
            }
            Target::Server { system, places, settings } => {
                let server = |doing: &str| {
                    let doing = format!("{doing} {system}");
                    move |source| Error::server(doing, source)
                };
                let instance = Instance::create(*system, places, settings, sink);
                let mut instance = instance.map_err(server("creating a private"))?.temporary();
                instance.start(sink).map_err(server("starting the private"))?;
                Kind::Server(Box::new(instance))
            }
        };
        Ok(Self { kind })
    }

    /// A new connection.
    ///
    /// # Errors
    /// The DBMS refuses it.
    pub fn session(&self) -> Result<Session, Error> {
        match &self.kind {
            Kind::Sqlite { folder, cache, page } => Session::sqlite(&folder.0, *cache, *page),
            Kind::Server(instance) => Session::server(instance.system(), &instance.login()),
        }
    }

    /// The server, where there is one.
    pub fn instance(&self) -> Option<&Instance> {
        match &self.kind {
            Kind::Sqlite { .. } => None,
            Kind::Server(instance) => Some(instance),
        }
    }

    /// The SQLite database, where that is it.
    pub fn sqlite_file(&self) -> Option<PathBuf> {
        match &self.kind {
            Kind::Sqlite { folder, .. } => Some(session::database(&folder.0)),
            Kind::Server(_) => None,
        }
    }

    /// The DBMS and its version.
    pub fn version(&self) -> String {
        match &self.kind {
            Kind::Sqlite { .. } => format!("SQLite {}", rusqlite::version()),
            Kind::Server(instance) => format!("{} {}", instance.system(), instance.version()),
        }
    }

    /// What has gone through the system calls of the server, or of this process, so far; `None`
    /// where the kernel does not tell.
    pub fn call_bytes(&self) -> Option<CallBytes> {
        let processes = match &self.kind {
            Kind::Sqlite { .. } => vec![std::process::id()],
            Kind::Server(instance) => instance.pids(),
        };
        let mut sum = CallBytes::default();
        for process in processes {
            let found = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("io"));
            let text = found.ok()?;
            let number = |name: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(name));
                line.and_then(|value| value.trim().parse::<u64>().ok())
            };
            sum.read += number("rchar:")?;
            sum.written += number("wchar:")?;
        }
        Some(sum)
    }
}
