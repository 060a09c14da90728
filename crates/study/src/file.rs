//! The study file.
//!
//! Everything has a default except the name, so the smallest study is two lines; unknown keys are
//! refused, because a misspelt setting that is silently ignored makes a wrong result.

use std::collections::BTreeMap;
use std::path::Path;

use capture::sqlite::IoMode;
use dbms::Durability;
use oltp::{JournalMode, Mix, Synchronous, Workload};
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use crate::Error;
use crate::cost::Asked;

/// The study of a disk with an embedded database.
pub const QUICKSTART: &str = include_str!("../../../studies/quickstart.toml");

/// The studies that come with wearmark, by name.
pub const SHIPPED: [(&str, &str); 3] = [
    ("quickstart", QUICKSTART),
    ("choose-a-volume", include_str!("../../../studies/choose-a-volume.toml")),
    ("modern/log-device", include_str!("../../../studies/modern/log-device.toml")),
];

/// A study: what to run, on what, and which questions to answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyFile {
    /// Name, title and seed.
    pub study: Header,
    /// How the disk is measured.
    #[serde(default)]
    pub probe: Probe,
    /// The database load.
    #[serde(default)]
    pub oltp: Oltp,
    /// How the simulation is checked against the real disk.
    #[serde(default)]
    pub validate: Validate,
    /// What storage is to be paid for.
    #[serde(default)]
    pub cost: Asked,
    /// Devices to ask about, besides the disk under the run directory.
    #[serde(default)]
    pub scenario: Vec<Scenario>,
}

/// `[study]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Name of the run directory: letters, digits, `-` and `_`.
    pub name: String,
    /// One line for the report's title.
    #[serde(default)]
    pub title: String,
    /// Seed of everything random.
    #[serde(default = "one")]
    pub seed: u64,
}

/// `[probe]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Probe {
    /// `quick` (under a minute) or `full` (until steady).
    pub plan: Plan,
    /// Size of the file that is measured.
    pub range: Bytes,
    /// Time that the quick plan takes.
    pub budget: Nanos,
}

/// Which plan a probe walks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plan {
    /// Under a minute.
    #[default]
    Quick,
    /// Until steady by the SNIA PTS rules; hours on a large device.
    Full,
}

/// `[oltp]`
///
/// A setting that only some systems have is `None` where the system has not; [`StudyFile::parse`]
/// fills in the defaults of those that it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Oltp {
    /// `sqlite`, `postgresql` or `mariadb`.
    pub dbms: System,
    /// `order-entry`, `bank` or `commit`.
    pub workload: String,
    /// `normal`, `read-intensive`, `write-intensive`, or five weights such as `45:43:4:4:4`.
    pub mix: String,
    /// Warehouses of order entry (about 100 MB each).
    pub warehouses: u32,
    /// Branches of bank (about 15 MB each).
    pub branches: u32,
    /// Rows of commit (about 120 bytes each).
    pub rows: u32,
    /// Terminals.
    #[serde(alias = "terminals")]
    pub users: u32,
    /// Keying and think times: 0 for none, 1 for those of the specification.
    pub think_scale: f64,
    /// Total database buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Bytes>,
    /// Database page; PostgreSQL has no choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<Bytes>,
    /// `wal`, `delete`, `truncate` or `persist` (SQLite).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalMode>,
    /// `off`, `normal`, `full` or `extra` (SQLite).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synchronous: Option<Synchronous>,
    /// `direct`: past the page cache, every database I/O reaches the device; `buffered`: through it
    /// (SQLite).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io: Option<IoMode>,
    /// How statements reach the server: `statement`, `statement-pipelined`, `pipelined` or
    /// `procedure` (servers).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<String>,
    /// Connections at most; more terminals share them (servers).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u32>,
    /// What a commit promises: `full`, `relaxed` or `off` (servers).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
    /// Excluded from the results.
    pub warmup: Nanos,
    /// Measured.
    pub duration: Nanos,
    /// Runs at each place where the load really runs; with one there is no A/A.
    pub rounds: u32,
    /// Further settings in the server's own words (servers).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
}

/// A system that a workload runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum System {
    /// Embedded.
    #[default]
    Sqlite,
    /// A private server.
    Postgresql,
    /// A private server.
    Mariadb,
}

impl System {
    /// As the command line calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgresql => "postgresql",
            Self::Mariadb => "mariadb",
        }
    }

    /// As people call it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgresql => "PostgreSQL",
            Self::Mariadb => "MariaDB",
        }
    }

    /// Whether it runs in a process of its own.
    pub fn is_server(self) -> bool {
        self != Self::Sqlite
    }
}

/// `[validate]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Validate {
    /// Replay at most this much of the captured trace, in six slices, each at least twice: the
    /// second time is the noise floor.
    pub duration: Nanos,
    /// Slices replayed at most; as long as E cannot be told from its aim, one more, then again from
    /// the first. Four at least, unless fewer are allowed.
    pub rounds: u32,
}

/// `[[scenario]]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is called; its devices where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The device: a shipped profile's name (`wearmark profile list`) or a TOML file's path.
    pub profile: String,
    /// The device of the log, where it has its own (servers).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// What is above that device: `[scheduler]`, `[volume]` and `[cache_device]` of a host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<toml::Table>,
    /// The same above the device of the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_host: Option<toml::Table>,
    /// Whether the load really runs there; on servers it does unless told otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<How>,
}

/// How a scenario's figures come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The load really runs, on the emulated device; the prediction stands beside it.
    Emulated,
    /// Nothing runs: the captured load is simulated.
    Predicted,
}

impl Scenario {
    /// What it is called.
    pub fn title(&self) -> String {
        let above = |host: Option<&toml::Table>, device: &str| match devices_above(host) {
            Ok(Some(spec)) => spec.describe(device),
            _ => device.to_owned(),
        };
        let data = above(self.host.as_ref(), &self.profile);
        match (&self.name, &self.log) {
            (Some(name), _) => name.clone(),
            (None, Some(log)) => format!("{data}, log on {}", above(self.log_host.as_ref(), log)),
            (None, None) => data,
        }
    }
}

/// What a table puts above devices, or why it cannot be.
pub(crate) fn devices_above(host: Option<&toml::Table>) -> Result<Option<host::Spec>, String> {
    let Some(table) = host else { return Ok(None) };
    let text = toml::to_string(table).map_err(|error| error.to_string())?;
    let spec = host::Spec::from_toml(&text, "host").map_err(|error| match error {
        // Its lines are those of the table alone.
        host::Error::Syntax { cause, .. } => cause,
        host::Error::Impossible { field, cause, .. } => format!("{field}: {cause}"),
        error => error.to_string(),
    })?;
    if spec.file_layer.is_some() {
        return Err("the page cache and the file system are those of this machine; leave out \
                    [file_system] and [page_cache]"
            .to_owned());
    }
    Ok(Some(spec))
}

impl Default for Probe {
    fn default() -> Self {
        Self { plan: Plan::Quick, range: Bytes::GIB, budget: Nanos::from_secs_f64(45.0) }
    }
}

impl Default for Oltp {
    fn default() -> Self {
        Self {
            dbms: System::Sqlite,
            workload: "order-entry".into(),
            mix: "normal".into(),
            warehouses: 4,
            branches: 20,
            rows: 100_000,
            users: 20,
            think_scale: 0.0,
            buffer: None,
            page: None,
            journal: None,
            synchronous: None,
            io: None,
            access: None,
            connections: None,
            durability: None,
            warmup: Nanos::from_secs_f64(5.0),
            duration: Nanos::from_secs_f64(30.0),
            rounds: 2,
            set: BTreeMap::new(),
        }
    }
}

impl Oltp {
    /// Fills in the defaults of the system.
    fn resolve(&mut self) {
        let is_server = self.dbms.is_server();
        let buffer_mib = if is_server { 128 } else { 64 };
        self.buffer.get_or_insert(Bytes(buffer_mib * Bytes::MIB.0));
        if is_server {
            self.access.get_or_insert_with(|| "statement".to_owned());
            self.connections.get_or_insert(64);
            self.durability.get_or_insert_default();
        } else {
            self.journal.get_or_insert(JournalMode::Wal);
            self.synchronous.get_or_insert(Synchronous::Full);
            self.io.get_or_insert(IoMode::Direct);
        }
        match self.dbms {
            System::Sqlite => _ = self.page.get_or_insert(Bytes(4096)),
            System::Mariadb => _ = self.page.get_or_insert(Bytes(16384)),
            System::Postgresql => {}
        }
    }

    /// Refuses a setting that the system has not.
    fn refuse_foreign(&self) -> Result<(), (&'static str, String)> {
        let embedded = [
            ("journal", self.journal.is_some()),
            ("synchronous", self.synchronous.is_some()),
            ("io", self.io.is_some()),
        ];
        let of_servers = [
            ("access", self.access.is_some()),
            ("connections", self.connections.is_some()),
            ("durability", self.durability.is_some()),
            ("set", !self.set.is_empty()),
        ];
        let page = [("page", self.page.is_some() && self.dbms == System::Postgresql)];
        let foreign = if self.dbms.is_server() {
            embedded.iter().chain(&page)
        } else {
            of_servers.iter().chain(&[])
        };
        match foreign.into_iter().find(|(_, is_set)| *is_set) {
            Some((key, _)) => Err((key, format!("{} has no such setting", self.dbms.title()))),
            None => Ok(()),
        }
    }

    /// Size of the database with its indexes, about.
    pub fn bytes(&self) -> u64 {
        match self.workload.as_str() {
            "bank" => u64::from(self.branches) * 15_000_000,
            "commit" => u64::from(self.rows) * 120,
            _ => u64::from(self.warehouses) * 130_000_000,
        }
    }
}

impl Default for Validate {
    fn default() -> Self {
        Self { duration: Nanos::from_secs_f64(25.0), rounds: 8 }
    }
}

fn one() -> u64 {
    1
}

impl StudyFile {
    /// Reads and checks a study file: a shipped one by its name, or a path.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let shipped = SHIPPED.iter().find(|(name, _)| path == Path::new(name));
        if let Some((_, text)) = shipped.filter(|_| !path.exists()) {
            return Self::parse(text, path);
        }
        let text = std::fs::read_to_string(path).map_err(Error::io(path, "read"))?;
        Self::parse(&text, path)
    }

    /// Parses and checks the text of a study file; `path` is for messages.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Error> {
        let mut parsed: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
            let cause = events::one_line(error.message());
            Error::StudyFile { path: path.into(), line, cause }
        })?;
        parsed.check().map_err(|(key, cause)| Error::StudyFile {
            path: path.into(),
            line: line_of(text, key),
            cause: events::one_line(&format!("{key}: {cause}")),
        })?;
        parsed.oltp.resolve();
        Ok(parsed)
    }

    /// The resolved configuration as TOML, every default spelt out.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("a study file holds only tables of plain values")
    }

    /// Refuses what cannot work, naming the key.
    fn check(&self) -> Result<(), (&'static str, String)> {
        let name = &self.study.name;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(("name", format!("'{name}' must be letters, digits, '-' and '_'")));
        }
        if self.probe.range.0 < 16 * Bytes::MIB.0 {
            return Err(("range", format!("{} is below 16MiB", self.probe.range)));
        }
        let oltp = &self.oltp;
        oltp.refuse_foreign()?;
        if let Err(error) = oltp.workload.parse::<Workload>() {
            return Err(("workload", error.to_string()));
        }
        if let Err(error) = oltp.mix.parse::<Mix>() {
            return Err(("mix", error.to_string()));
        }
        if let Some(page) =
            oltp.page.filter(|page| !page.0.is_power_of_two() || !(512..=65536).contains(&page.0))
        {
            return Err(("page", format!("{page} is not a power of two from 512 to 64KiB")));
        }
        if !(oltp.think_scale.is_finite() && oltp.think_scale >= 0.0) {
            return Err(("think_scale", format!("{} is no scale of times", oltp.think_scale)));
        }
        for (key, value) in [
            ("warehouses", oltp.warehouses),
            ("branches", oltp.branches),
            ("rows", oltp.rows),
            ("users", oltp.users),
            ("rounds", oltp.rounds),
            ("rounds", self.validate.rounds),
        ] {
            if value == 0 {
                return Err((key, "must be at least 1".into()));
            }
        }
        for (key, value) in [("duration", oltp.duration), ("duration", self.validate.duration)] {
            if value < Nanos::from_secs_f64(1.0) {
                return Err((key, format!("{value} is too short to measure anything; from 1s on")));
            }
        }
        if !(self.cost.years.is_finite() && self.cost.years > 0.0) {
            return Err(("years", format!("{} is no time to use a drive", self.cost.years)));
        }
        self.check_scenarios()
    }

    fn check_scenarios(&self) -> Result<(), (&'static str, String)> {
        if self.oltp.workload != "order-entry" && !self.is_run_on_devices() {
            let cause = "only order-entry is simulated; a scenario with run = \"emulated\" runs it";
            return Err(("workload", cause.to_owned()));
        }
        for (index, scenario) in self.scenario.iter().enumerate() {
            if scenario.log.is_some() && !self.oltp.dbms.is_server() {
                return Err(("log", "SQLite keeps its log beside its data".to_owned()));
            }
            if scenario.log_host.is_some() && scenario.log.is_none() {
                let cause = "the log has no device of its own; 'log' names one";
                return Err(("log_host", cause.to_owned()));
            }
            for (key, host) in [("host", &scenario.host), ("log_host", &scenario.log_host)] {
                devices_above(host.as_ref()).map_err(|cause| (key, cause))?;
            }
            let title = scenario.title();
            if self.scenario[..index].iter().any(|other| other.title() == title) {
                return Err(("profile", format!("two scenarios are called '{title}'; name one")));
            }
        }
        Ok(())
    }

    /// Whether the load really runs on other devices: on a server it is never only simulated.
    pub fn is_run_on_devices(&self) -> bool {
        self.oltp.dbms.is_server() || self.scenario.iter().any(|one| self.is_emulated(one))
    }

    /// Whether the load really runs on a scenario's devices.
    pub fn is_emulated(&self, scenario: &Scenario) -> bool {
        let usual = if self.oltp.dbms.is_server() { How::Emulated } else { How::Predicted };
        scenario.run.unwrap_or(usual) == How::Emulated
    }

    /// Upper estimate of the disk space that the run needs at once: the probe's file, the database
    /// with its growth, the replay's file of the database's size, traces.
    pub fn space_needed(&self) -> Bytes {
        let (mib, database) = (Bytes::MIB.0, self.oltp.bytes());
        if self.is_run_on_devices() {
            // The database as it was loaded, its copy with the growth and the log of a run, traces.
            let log = if self.oltp.dbms.is_server() { 1024 * mib } else { 256 * mib };
            return Bytes(3 * database + log + 256 * mib);
        }
        let database = database + 256 * mib;
        Bytes(self.probe.range.0.max(database) + database + 256 * mib)
    }
}

/// The line on which `key` is set, for messages about values that parse but cannot work.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let sets = |line: &str| {
        line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    text.lines().position(sets).map(|index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_refused(text: &str, expected: &str) {
        let error = StudyFile::parse(text, Path::new("s.toml")).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}\n gave: {error}");
    }

    #[test]
    fn the_shipped_studies_are_valid_and_survive_a_round_trip() {
        for (name, text) in SHIPPED {
            let study = StudyFile::parse(text, Path::new(name)).unwrap();
            assert_eq!(StudyFile::parse(&study.to_toml(), Path::new("again")).unwrap(), study);
            assert_eq!(name.rsplit('/').next(), Some(&*study.study.name));
            assert_eq!(study.is_run_on_devices(), study.oltp.dbms.is_server(), "{name}");
        }
    }

    #[test]
    fn a_setting_of_another_system_is_refused() {
        let on = |dbms: &str, line: &str| {
            format!("[study]\nname = 'a'\n[oltp]\ndbms = '{dbms}'\n{line}\n")
        };
        check_refused(
            &on("postgresql", "journal = 'wal'"),
            "s.toml:5: journal: PostgreSQL has no such setting",
        );
        check_refused(&on("postgresql", "page = '8KiB'"), "PostgreSQL has no such setting");
        check_refused(&on("sqlite", "connections = 8"), "SQLite has no such setting");
        check_refused(&on("oracle", ""), "unknown variant `oracle`");
        let mariadb = on("mariadb", "terminals = 7\npage = '8KiB'\n[oltp.set]\nx = '1'");
        let study = StudyFile::parse(&mariadb, Path::new("s.toml")).unwrap();
        assert_eq!((study.oltp.users, study.oltp.page), (7, Some(Bytes(8192))));
        assert!(study.is_run_on_devices());
    }

    #[test]
    fn a_scenario_has_what_stands_above_its_device() {
        let head = "[study]\nname = 'a'\n[oltp]\ndbms = 'postgresql'\n[[scenario]]\n\
                    profile = 'aws-gp3'\n[[scenario]]\nprofile = 'aws-gp3'\n";
        let text = format!("{head}[scenario.host.volume]\nlevel = 'raid0'\nmembers = 4\n");
        let study = StudyFile::parse(&text, Path::new("s.toml")).unwrap();
        assert_eq!(study.scenario[1].title(), "raid0 of 4 aws-gp3");
        assert_eq!(StudyFile::parse(&study.to_toml(), Path::new("again")).unwrap(), study);
        let level = "[scenario.host.volume]\nlevel = 'raid7'\nmembers = 4\n";
        check_refused(&format!("{head}{level}"), "host: unknown variant `raid7`");
        let files = "[scenario.host.file_system]\nkind = 'xfs'\n";
        check_refused(&format!("{head}{files}"), "file system are those of this machine");
        let log = "name = 'b'\n[scenario.log_host.scheduler]\nkind = 'none'\n";
        check_refused(&format!("{head}{log}"), "log_host: the log has no device of its own");
    }

    #[test]
    fn scenarios_that_cannot_be_told_apart_or_run_are_refused() {
        let twice = "[[scenario]]\nprofile = 'aws-gp3'\n";
        let head = "[study]\nname = 'a'\n";
        check_refused(&format!("{head}{twice}{twice}"), "two scenarios are called 'aws-gp3'");
        check_refused(&format!("{head}{twice}log = 'aws-gp3'\n"), "SQLite keeps its log");
        let bank = format!("{head}[oltp]\nworkload = 'bank'\n{twice}");
        check_refused(&bank, "only order-entry is simulated");
        let really = format!("{bank}run = 'emulated'\n");
        assert!(StudyFile::parse(&really, Path::new("s.toml")).unwrap().is_run_on_devices());
    }

    #[test]
    fn the_smallest_study_gets_every_default() {
        let study = StudyFile::parse("[study]\nname = 'a'", Path::new("s.toml")).unwrap();
        let mut oltp = Oltp::default();
        oltp.resolve();
        assert_eq!((study.oltp, study.probe), (oltp, Probe::default()));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        check_refused("", "missing field `study`");
        check_refused("[study]\nname = 'a'\n[oltp]\nwarehouse = 3", "s.toml:4: unknown field");
        check_refused(
            "[study]\nname = 'a'\n[oltp]\nusers = 0",
            "s.toml:4: users: must be at least 1",
        );
        check_refused("[study]\nname = 'a'\n[oltp]\npage = '5000'", "s.toml:4: page: ");
        check_refused("[study]\nname = 'a'\n[oltp]\nwarmup = '5 parsecs'", "s.toml:4: ");
        check_refused("[study]\nname = '../x'", "s.toml:2: name: ");
        check_refused("[study\nname = 'a'", "s.toml:1: ");
        check_refused("[study]\n\"\\u001b[2J\\n\" = 1", "s.toml:2: unknown field ` [2J `");
        check_refused(
            "[study]\nname = 'a'\n[probe]\nplan = 'slow'",
            "s.toml:4: unknown variant `slow`",
        );
        check_refused("[study]\nname = 'a'\n[oltp]\nmix = '1:2'", "s.toml:4: mix: ");
    }
}
