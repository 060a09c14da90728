//! The two servers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A server that wearmark can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum System {
    /// PostgreSQL 13 or later.
    Postgresql,
    /// MariaDB 10.6 or later.
    Mariadb,
}

impl System {
    /// Both, in the order of reports.
    pub const ALL: [Self; 2] = [Self::Postgresql, Self::Mariadb];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgresql => "postgresql",
            Self::Mariadb => "mariadb",
        }
    }

    /// Debian's package.
    pub fn package(self) -> &'static str {
        match self {
            Self::Postgresql => "postgresql",
            Self::Mariadb => "mariadb-server",
        }
    }

    /// The environment variable that names a directory of its programs.
    pub fn programs_variable(self) -> &'static str {
        match self {
            Self::Postgresql => "WEARMARK_POSTGRESQL_PROGRAMS",
            Self::Mariadb => "WEARMARK_MARIADB_PROGRAMS",
        }
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Postgresql => "PostgreSQL",
            Self::Mariadb => "MariaDB",
        })
    }
}
