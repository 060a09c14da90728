//! The programs of an installed server, and which version they are.
//!
//! Looked for in the directory that `WEARMARK_POSTGRESQL_PROGRAMS` or `WEARMARK_MARIADB_PROGRAMS`
//! names, else where distributions put them, else along `PATH`. Of several PostgreSQL versions the
//! newest is taken.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, System};

/// Oldest versions whose settings we know.
const POSTGRESQL_MIN: u32 = 13;
const MARIADB_MIN: (u32, u32) = (10, 6);

/// What is needed to create and run an instance.
#[derive(Clone, Debug)]
pub struct Programs {
    pub(crate) system: System,
    /// `postgres` or `mariadbd`.
    pub(crate) server: PathBuf,
    /// `initdb` or `mariadb-install-db`.
    pub(crate) install: PathBuf,
    /// Such as `15.18` or `10.11.19`.
    pub(crate) version: String,
    /// The version's first two numbers.
    pub(crate) number: (u32, u32),
}

impl Programs {
    /// The installed programs.
    ///
    /// # Errors
    /// [`Error::NoProgram`], and [`Error::WrongVersion`] for PostgreSQL before 13, MariaDB before
    /// 10.6 and everything that only looks like one of them.
    pub fn find(system: System) -> Result<Self, Error> {
        let directories = match std::env::var_os(system.programs_variable()) {
            Some(directory) => vec![PathBuf::from(directory)],
            None => usual(system),
        };
        Self::within(system, &directories)
    }

    /// The server program.
    pub fn server(&self) -> &Path {
        &self.server
    }

    /// Such as `15.18`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The programs in one of these directories, the first that holds them all.
    pub fn within(system: System, directories: &[PathBuf]) -> Result<Self, Error> {
        let (servers, installers): (&[&str], &[&str]) = match system {
            System::Postgresql => (&["postgres"], &["initdb"]),
            System::Mariadb => {
                (&["mariadbd", "mysqld"], &["mariadb-install-db", "mysql_install_db"])
            }
        };
        let find = |names: &[&'static str]| {
            let all = directories.iter().flat_map(|at| names.iter().map(move |name| at.join(name)));
            all.into_iter().find(|path| path.is_file())
        };
        let missing = |program| Error::NoProgram {
            system,
            program,
            searched: directories
                .iter()
                .map(|at| at.display().to_string())
                .collect::<Vec<_>>()
                .join(":"),
        };
        let server = find(servers).ok_or_else(|| missing(servers[0]))?;
        // PostgreSQL's installer must be of the same version as its server.
        let beside = server.parent().map(|at| at.join(installers[0])).filter(|at| at.is_file());
        let install = match system {
            System::Postgresql => beside,
            System::Mariadb => beside.or_else(|| find(installers)),
        };
        let install = install.ok_or_else(|| missing(installers[0]))?;
        let said = ask_version(&server)?;
        let (version, number) = parse_version(system, &said).ok_or_else(|| {
            Error::WrongVersion { program: server.clone(), found: said, needed: needed(system) }
        })?;
        Ok(Self { system, server, install, version, number })
    }
}

fn needed(system: System) -> String {
    match system {
        System::Postgresql => format!("PostgreSQL {POSTGRESQL_MIN} or later"),
        System::Mariadb => format!("MariaDB {}.{} or later", MARIADB_MIN.0, MARIADB_MIN.1),
    }
}

/// Where distributions put the programs, newest version first.
fn usual(system: System) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if system == System::Postgresql {
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut versions: Vec<(u32, PathBuf)> = versions
            .filter_map(|entry| {
                let number = entry.file_name().to_str()?.parse().ok()?;
                Some((number, entry.path().join("bin")))
            })
            .collect();
        versions.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        found.extend(versions.into_iter().map(|(_, path)| path));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    found.extend(std::env::split_paths(&path));
    for directory in ["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/libexec"] {
        let directory = PathBuf::from(directory);
        if !found.contains(&directory) {
            found.push(directory);
        }
    }
    found
}

fn ask_version(server: &Path) -> Result<String, Error> {
    let output = Command::new(server)
        .arg("--version")
        .output()
        .map_err(|source| Error::io(server, "asking the version of", source))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The version within what `--version` prints, and its first two numbers; `None` where it is too
/// old or another product.
fn parse_version(system: System, said: &str) -> Option<(String, (u32, u32))> {
    let after = match system {
        System::Postgresql => said.split_once("(PostgreSQL) ")?.1,
        System::Mariadb if said.contains("MariaDB") => said.split_once("Ver ")?.1,
        System::Mariadb => return None,
    };
    let end = after.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(after.len());
    let version = &after[..end];
    let mut numbers = version.split('.').map(|part| part.parse().ok());
    let number = (numbers.next()??, numbers.next().flatten().unwrap_or(0));
    let known = match system {
        System::Postgresql => number.0 >= POSTGRESQL_MIN,
        System::Mariadb => number >= MARIADB_MIN,
    };
    known.then(|| (version.to_owned(), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(system: System, said: &str, expected: Option<(&str, (u32, u32))>) {
        let found = parse_version(system, said);
        let found = found.as_ref().map(|(version, number)| (version.as_str(), *number));
        assert_eq!(found, expected, "{said}");
    }

    #[test]
    fn versions_as_the_servers_print_them() {
        let debian = "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)";
        check(System::Postgresql, debian, Some(("15.18", (15, 18))));
        check(System::Postgresql, "postgres (PostgreSQL) 19beta1", Some(("19", (19, 0))));
        check(System::Postgresql, "postgres (PostgreSQL) 9.6.24", None);
        check(System::Postgresql, "something else", None);
        let maria = "mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64";
        check(System::Mariadb, maria, Some(("10.11.19", (10, 11))));
        check(System::Mariadb, "mysqld  Ver 10.5.1-MariaDB", None);
        check(System::Mariadb, "mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL)", None);
    }
}
