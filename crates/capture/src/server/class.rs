//! Which file class a file of a server belongs to, by its path.
//!
//! PostgreSQL 15 (manual, "Database File Layout"): `base/`, `global/` and tablespaces are data,
//! except `pgsql_tmp` (spilled sorts and hashes) and `tN_M` (temporary relations); `pg_wal` is the
//! log. It has no undo: old row versions stay in the data. MariaDB 10.11: `ibdata1` and `*.ibd` are
//! data (the doublewrite buffer lies in `ibdata1` and counts as data), `ib_logfile*`, the binary
//! and the Aria log are log, `undo*` is undo, `ibtmp1`, `#sql*` and everything under the temporary
//! directory is temp. Anything else (transaction status, statistics, settings) is other.
//!
//! A path may come relative, absolute, or with its symbolic links followed, so the places that
//! were chosen for log, undo and temporary space decide first. Tested on tables of paths.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Which database server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum System {
    /// PostgreSQL.
    Postgresql,
    /// MariaDB with InnoDB, or MySQL.
    Mariadb,
    /// Any other program: which of its files are logs is not known, all but temporary ones are
    /// data.
    Program,
}

impl System {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgresql => "PostgreSQL",
            Self::Mariadb => "MariaDB",
            Self::Program => "program",
        }
    }

    /// Whether clients ask it by messages over sockets, of which a session handles one at a time.
    pub fn has_sessions(self) -> bool {
        self != Self::Program
    }
}

/// What a file of a server holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Tables and indices.
    Data,
    /// The write-ahead log.
    Log,
    /// Old row versions, where they have files of their own.
    Undo,
    /// Sorts, hashes, temporary tables.
    Temp,
    /// Any other file of the server.
    Other,
}

impl Class {
    /// All of them, in the order of their regions and stream indices.
    pub const ALL: [Self; 5] = [Self::Data, Self::Log, Self::Undo, Self::Temp, Self::Other];

    /// The stream name in traces and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Log => "log",
            Self::Undo => "undo",
            Self::Temp => "temp",
            Self::Other => "other",
        }
    }
}

/// The server to observe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Which one.
    pub system: System,
    /// Its main process.
    pub pid: u32,
    /// Its data directory.
    pub data: PathBuf,
    /// Where its log is, unless inside the data directory.
    pub log: Option<PathBuf>,
    /// Where its temporary files are, unless inside the data directory.
    pub temp: Option<PathBuf>,
    /// Where its undo is, unless inside the data directory.
    pub undo: Option<PathBuf>,
    /// Further directories with its data: tablespaces.
    pub tablespaces: Vec<PathBuf>,
    /// Further main processes: a control group may hold several.
    pub more_pids: Vec<u32>,
}

impl Server {
    /// A server with all of its files in one directory.
    pub fn new(system: System, pid: u32, data: impl Into<PathBuf>) -> Self {
        Self {
            system,
            pid,
            data: data.into(),
            log: None,
            temp: None,
            undo: None,
            tablespaces: Vec::new(),
            more_pids: Vec::new(),
        }
    }

    /// Its main processes.
    pub fn pids(&self) -> Vec<u32> {
        std::iter::once(self.pid).chain(self.more_pids.iter().copied()).collect()
    }

    /// The directories that hold its files, each once.
    pub fn directories(&self) -> Vec<&Path> {
        let others = [&self.log, &self.undo, &self.temp].into_iter().flatten();
        let others = others.chain(&self.tablespaces);
        let mut found: Vec<&Path> = vec![&self.data];
        for place in others {
            if !found.contains(&place.as_path()) {
                found.push(place);
            }
        }
        found
    }

    /// The class of a file.
    pub fn class_of(&self, path: &Path) -> Class {
        let within = |place: &Option<PathBuf>| {
            place.as_ref().is_some_and(|place| *place != self.data && path.starts_with(place))
        };
        match self.system {
            _ if within(&self.temp) => Class::Temp,
            System::Postgresql if within(&self.log) => Class::Log,
            System::Postgresql => postgresql(path),
            System::Mariadb => mariadb(path),
            System::Program => program(path),
        }
    }
}

fn postgresql(path: &Path) -> Class {
    let has = |names: &[&str]| {
        path.components().any(|part| names.iter().any(|name| part.as_os_str() == *name))
    };
    let is_tablespace = || {
        let parts = path.components();
        parts.filter_map(|part| part.as_os_str().to_str()).any(|part| part.starts_with("PG_1"))
    };
    if has(&["pgsql_tmp"]) || file_name(path).is_some_and(is_temporary_relation) {
        Class::Temp
    } else if has(&["pg_wal"]) {
        Class::Log
    } else if has(&["base", "global", "pg_tblspc"]) || is_tablespace() {
        Class::Data
    } else {
        Class::Other
    }
}

/// `t3_16384`: backend number and relation of a temporary table.
fn is_temporary_relation(name: &str) -> bool {
    let Some((backend, relation)) = name.strip_prefix('t').and_then(|rest| rest.split_once('_'))
    else {
        return false;
    };
    let digits = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    digits(backend) && digits(relation)
}

fn mariadb(path: &Path) -> Class {
    let Some(name) = file_name(path) else { return Class::Other };
    let extension = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    let log_names = ["ib_logfile", "#ib_redo", "aria_log", "binlog.", "mysql-bin.", "mariadb-bin."];
    if name.starts_with("ibtmp") || name.starts_with("#sql") || extension == "ibt" {
        Class::Temp
    } else if name.starts_with("undo") {
        Class::Undo
    } else if log_names.iter().any(|prefix| name.starts_with(prefix)) {
        Class::Log
    } else if name.starts_with("ibdata")
        || ["ibd", "dblwr", "MAI", "MAD", "MYI", "MYD"].contains(&extension)
    {
        Class::Data
    } else {
        Class::Other
    }
}

fn program(path: &Path) -> Class {
    let temporary = ["/tmp", "/var/tmp", "/dev/shm"];
    if temporary.iter().any(|place| path.starts_with(place)) { Class::Temp } else { Class::Data }
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(system: System, cases: &[(&str, Class)]) {
        let server = Server {
            log: Some("/fast/log".into()),
            temp: Some("/scratch".into()),
            ..Server::new(system, 1, "/db/data")
        };
        for (path, class) in cases {
            assert_eq!(server.class_of(Path::new(path)), *class, "{path}");
        }
    }

    #[test]
    fn files_of_postgresql() {
        let cases = [
            ("base/5/16384", Class::Data),
            ("/db/data/base/5/16384.1", Class::Data),
            ("/db/data/base/5/16384_fsm", Class::Data),
            ("/db/data/global/1262", Class::Data),
            ("/db/data/base/5/t3_16400", Class::Temp),
            ("/db/data/base/5/t_x", Class::Data),
            ("/db/data/base/pgsql_tmp/pgsql_tmp123.0", Class::Temp),
            ("/disk2/PG_15_202209061/5/16390", Class::Data),
            ("/disk2/PG_15_202209061/pgsql_tmp/pgsql_tmp9.1", Class::Temp),
            ("/scratch/PG_15_202209061/pgsql_tmp/pgsql_tmp9.1", Class::Temp),
            ("/db/data/pg_wal/000000010000000000000001", Class::Log),
            ("/fast/log/000000010000000000000001", Class::Log),
            ("/db/data/pg_xact/0000", Class::Other),
            ("/db/data/postmaster.pid", Class::Other),
        ];
        check(System::Postgresql, &cases);
    }

    #[test]
    fn files_of_mariadb() {
        let cases = [
            ("./ibdata1", Class::Data),
            ("/db/data/tpcc/stock.ibd", Class::Data),
            ("/db/data/mysql/db.MAD", Class::Data),
            ("/fast/log/ib_logfile0", Class::Log),
            ("/db/data/aria_log.00000001", Class::Log),
            ("/db/data/undo001", Class::Undo),
            ("/db/data/ibtmp1", Class::Temp),
            ("/scratch/MYfd=42", Class::Temp),
            ("/db/data/#sql-temptable-3.MAD", Class::Temp),
            ("/db/data/tpcc/stock.frm", Class::Other),
            ("/db/data/ib_buffer_pool", Class::Other),
            ("/db/data/#innodb_redo/#ib_redo12", Class::Log),
            ("/db/data/#ib_16384_0.dblwr", Class::Data),
            ("/db/data/#innodb_temp/temp_3.ibt", Class::Temp),
        ];
        check(System::Mariadb, &cases);
    }

    #[test]
    fn files_of_any_program() {
        let cases = [("/srv/x/segment.3", Class::Data), ("/tmp/sort", Class::Temp)];
        check(System::Program, &cases);
    }

    #[test]
    fn each_directory_once() {
        let mut server = Server {
            log: Some("/l".into()),
            undo: Some("/l".into()),
            ..Server::new(System::Mariadb, 1, "/d")
        };
        assert_eq!(server.directories(), [Path::new("/d"), Path::new("/l")]);
        server.log = Some("/d".into());
        assert_eq!(server.class_of(Path::new("/d/x.ibd")), Class::Data);
    }
}
