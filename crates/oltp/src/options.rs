//! What a load and a run can be told.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, Rate};

use crate::Error;
use crate::workload::{Dataset, Mix, Workload};

/// How SQLite commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalMode {
    /// Write-ahead log: readers and the writer go side by side.
    #[default]
    Wal,
    /// Rollback journal, deleted at each commit.
    Delete,
    /// Rollback journal, truncated at each commit.
    Truncate,
    /// Rollback journal, its header zeroed at each commit.
    Persist,
}

impl JournalMode {
    /// SQLite's name of it.
    pub fn pragma(self) -> &'static str {
        match self {
            Self::Wal => "wal",
            Self::Delete => "delete",
            Self::Truncate => "truncate",
            Self::Persist => "persist",
        }
    }
}

/// When SQLite asks the device to make writes durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Synchronous {
    /// Never: a power cut may destroy the database.
    Off,
    /// WAL: at checkpoints only, so the last commits may be lost.
    Normal,
    /// At every commit.
    #[default]
    Full,
    /// As full, and the directory after a rollback journal is deleted.
    Extra,
}

impl Synchronous {
    /// SQLite's name of it.
    pub fn pragma(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Normal => "normal",
            Self::Full => "full",
            Self::Extra => "extra",
        }
    }

    /// Whether a commit that was acknowledged survives a power cut.
    pub fn durable(self) -> bool {
        matches!(self, Self::Full | Self::Extra)
    }
}

/// Settings of the embedded database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SqliteSettings {
    /// Where the database file and its log or journal are.
    pub directory: PathBuf,
    /// How it commits.
    pub journal_mode: JournalMode,
    /// When it syncs.
    pub synchronous: Synchronous,
    /// Page size; fixed at load.
    pub page_size: Bytes,
    /// Page caches of all connections together.
    pub buffer: Bytes,
    /// Share of `buffer` that the reader connections divide among them; the writer has the rest.
    /// Without readers the writer has all.
    pub reader_buffer_share: f64,
    /// Pages of log after which a commit checkpoints it.
    pub wal_autocheckpoint: u32,
    /// Connections for Order-Status and Stock-Level; with none the writer runs them too.
    pub readers: u32,
    /// SQLite VFS to open the files with; none is the platform's own.
    pub vfs: Option<String>,
    /// Largest size of the database file; none is the file system's bound.
    pub size_limit: Option<Bytes>,
}

impl Default for SqliteSettings {
    fn default() -> Self {
        Self {
            directory: PathBuf::from("."),
            journal_mode: JournalMode::Wal,
            synchronous: Synchronous::Full,
            page_size: Bytes(4096),
            buffer: Bytes(64 << 20),
            reader_buffer_share: 0.25,
            wal_autocheckpoint: 1000,
            readers: 1,
            vfs: None,
            size_limit: None,
        }
    }
}

impl SqliteSettings {
    /// The database file of order entry.
    pub fn database(&self) -> PathBuf {
        self.database_of(Workload::OrderEntry)
    }

    /// The database file of a workload.
    pub fn database_of(&self, workload: Workload) -> PathBuf {
        self.directory.join(format!("{}.db", workload.identifier()))
    }

    /// Bytes of page cache of the writer and of each reader.
    pub fn buffer_split(&self) -> (Bytes, Bytes) {
        if self.readers == 0 {
            return (self.buffer, Bytes(0));
        }
        let readers = (self.buffer.0 as f64 * self.reader_buffer_share) as u64;
        (Bytes(self.buffer.0 - readers), Bytes(readers / u64::from(self.readers)))
    }

    /// Checks the settings against each other.
    pub fn validate(&self) -> Result<(), Error> {
        let page = self.page_size.0;
        if !(page.is_power_of_two() && (512..=65536).contains(&page)) {
            return Err(Error::Option {
                option: "page_size",
                value: self.page_size.to_string(),
                why: "must be a power of two from 512B to 64KiB",
            });
        }
        if !(0.0..=0.9).contains(&self.reader_buffer_share) {
            return Err(Error::Option {
                option: "reader_buffer_share",
                value: self.reader_buffer_share.to_string(),
                why: "must be 0 to 0.9",
            });
        }
        if self.readers > 64 {
            return Err(Error::Option {
                option: "readers",
                value: self.readers.to_string(),
                why: "must be 0 to 64",
            });
        }
        if self.buffer.0 < 16 * page {
            return Err(Error::Option {
                option: "buffer",
                value: self.buffer.to_string(),
                why: "must hold at least 16 pages",
            });
        }
        Ok(())
    }
}

/// How a transaction's statements travel to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Prepared statements, one per step and row, one round trip each: what a portable program
    /// does.
    #[default]
    Statement,
    /// The same statements, as many per round trip as do not need each other's answers: what a
    /// driver that pipelines brings by itself.
    #[serde(rename = "statement-pipelined")]
    StatementPipelined,
    /// Statements that do as much as one can, pipelined: sets of rows, and what depends on each
    /// other in one statement where the server has a way to say so.
    Pipelined,
    /// One call of a stored procedure per transaction.
    Procedure,
}

impl Access {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Statement, Self::StatementPipelined, Self::Pipelined, Self::Procedure];

    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Statement => "statement",
            Self::StatementPipelined => "statement-pipelined",
            Self::Pipelined => "pipelined",
            Self::Procedure => "procedure",
        }
    }

    /// Whether statements travel together.
    pub fn pipelines(self) -> bool {
        matches!(self, Self::StatementPipelined | Self::Pipelined)
    }
}

/// A database server, and how transactions reach it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// Where it listens.
    pub address: dbms::Address,
    /// As whom.
    pub user: String,
    /// The password; never written to a file.
    #[serde(skip)]
    pub password: Option<String>,
    /// How a TCP connection is protected.
    #[serde(default)]
    pub tls: dbms::Tls,
    /// Bounds on waits for the server.
    #[serde(skip)]
    pub limits: dbms::Limits,
    /// Database that holds the tables; none is the workload's own name.
    #[serde(default)]
    pub database: Option<String>,
    /// How statements travel.
    #[serde(default)]
    pub access: Access,
    /// Connections at most; terminals beyond them share.
    #[serde(default = "connections")]
    pub connections: u32,
}

fn connections() -> u32 {
    64
}

impl ServerSettings {
    /// A server at an address, with defaults for the rest.
    pub fn new(address: dbms::Address, user: impl Into<String>) -> Self {
        Self {
            address,
            user: user.into(),
            password: None,
            tls: dbms::Tls::default(),
            limits: dbms::Limits::default(),
            database: None,
            access: Access::default(),
            connections: connections(),
        }
    }

    /// The server of a login, and its database.
    pub fn of(login: &dbms::Login) -> Self {
        Self {
            password: login.password.clone(),
            tls: login.tls.clone(),
            limits: login.limits,
            database: Some(login.database.clone()),
            ..Self::new(login.address.clone(), login.user.clone())
        }
    }

    /// The login for a workload's database.
    pub fn login(&self, workload: Workload) -> dbms::Login {
        let database = self.database.clone();
        dbms::Login {
            address: self.address.clone(),
            user: self.user.clone(),
            password: self.password.clone(),
            tls: self.tls.clone(),
            limits: self.limits,
            database: database.unwrap_or_else(|| workload.identifier().to_owned()),
        }
    }

    fn validate(&self) -> Result<(), Error> {
        if (1..=10_000).contains(&self.connections) {
            return Ok(());
        }
        let (option, value) = ("connections", self.connections.to_string());
        Err(Error::Option { option, value, why: "must be 1 to 10000" })
    }
}

/// The DBMS of a load or a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "dbms", rename_all = "lowercase")]
pub enum Database {
    /// SQLite, in this process.
    Sqlite(SqliteSettings),
    /// A PostgreSQL server.
    Postgresql(ServerSettings),
    /// A MariaDB server.
    Mariadb(ServerSettings),
}

impl Database {
    /// The embedded database's settings.
    pub fn sqlite(&self) -> Option<&SqliteSettings> {
        match self {
            Self::Sqlite(settings) => Some(settings),
            Self::Postgresql(_) | Self::Mariadb(_) => None,
        }
    }

    /// As [`Self::sqlite`], to change them.
    pub fn sqlite_mut(&mut self) -> Option<&mut SqliteSettings> {
        match self {
            Self::Sqlite(settings) => Some(settings),
            Self::Postgresql(_) | Self::Mariadb(_) => None,
        }
    }

    /// The server's settings.
    pub fn server(&self) -> Option<&ServerSettings> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgresql(settings) | Self::Mariadb(settings) => Some(settings),
        }
    }

    /// Checks the settings against each other.
    pub fn validate(&self) -> Result<(), Error> {
        match self {
            Self::Sqlite(settings) => settings.validate(),
            Self::Postgresql(settings) | Self::Mariadb(settings) => settings.validate(),
        }
    }
}

impl Default for Database {
    fn default() -> Self {
        Self::Sqlite(SqliteSettings::default())
    }
}

/// How terminals send their requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Load {
    /// Each terminal waits for its answer, thinks, keys and asks again. `think` scales the keying
    /// and think times of clause 5.2.5: 0 is none, 1 the specification's.
    Closed {
        /// The factor.
        think: f64,
    },
    /// Requests arrive as a Poisson process whatever is still active.
    Open {
        /// Transactions per second.
        rate: Rate,
    },
}

impl Default for Load {
    fn default() -> Self {
        Self::Closed { think: 0.0 }
    }
}

/// Everything a run can be told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// The DBMS and its settings.
    pub database: Database,
    /// What the terminals run.
    pub workload: Workload,
    /// What must be loaded; none takes it as it is.
    pub dataset: Option<Dataset>,
    /// Terminals.
    pub users: u32,
    /// How they ask.
    pub load: Load,
    /// What they ask for (order entry).
    pub mix: Mix,
    /// Time before the measurement.
    pub warmup: Nanos,
    /// Length of the measurement.
    pub measure: Nanos,
    /// Seed of all inputs.
    pub seed: u64,
    /// Where to write the result log of deferred deliveries (clause 2.7.2), CSV; none keeps counts
    /// only.
    pub delivery_log: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            database: Database::default(),
            workload: Workload::default(),
            dataset: None,
            users: 20,
            load: Load::default(),
            mix: Mix::NORMAL,
            warmup: Nanos(10_000_000_000),
            measure: Nanos(60_000_000_000),
            seed: 1,
            delivery_log: None,
        }
    }
}

impl Options {
    /// Checks the options against each other.
    pub fn validate(&self) -> Result<(), Error> {
        self.database.validate()?;
        let bad = |option, value: String, why| Err(Error::Option { option, value, why });
        if self.users == 0 || self.users > 1_000_000 {
            return bad("users", self.users.to_string(), "must be 1 to 1000000");
        }
        if self.measure == Nanos::ZERO {
            return bad("measure", self.measure.to_string(), "must be longer than zero");
        }
        match self.load {
            Load::Closed { think } if !(0.0..=1000.0).contains(&think) => {
                bad("think", think.to_string(), "must be 0 to 1000")
            }
            Load::Open { rate } if !(rate.0 > 0.0 && rate.0 <= 1e6) => {
                bad("rate", rate.to_string(), "must be above 0 and at most 1M/s")
            }
            _ => Ok(()),
        }
    }
}

/// Everything a load can be told.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadOptions {
    /// The DBMS and its settings.
    pub database: Database,
    /// What to load.
    pub dataset: Dataset,
    /// Seed of all rows.
    pub seed: u64,
}
