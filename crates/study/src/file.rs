//! The study file.
//!
//! Everything has a default except the name, so the smallest study is two lines; unknown keys are
//! refused, because a misspelt setting that is silently ignored makes a wrong result.

use std::path::Path;

use capture::sqlite::IoMode;
use oltp::{JournalMode, Mix, Synchronous};
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use crate::Error;

/// The study that comes with wearmark.
pub const QUICKSTART: &str = include_str!("../../../studies/quickstart.toml");

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
    /// Devices to simulate the captured I/O on, besides the fitted one.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Oltp {
    /// `normal`, `read-intensive`, `write-intensive`, or five weights such as `45:43:4:4:4`.
    pub mix: String,
    /// Warehouses (about 100 MB each).
    pub warehouses: u32,
    /// Terminals.
    pub users: u32,
    /// Keying and think times: 0 for none, 1 for those of the specification.
    pub think_scale: u32,
    /// Total database buffer.
    pub buffer: Bytes,
    /// Database page.
    pub page: Bytes,
    /// `wal`, `delete`, `truncate` or `persist`.
    pub journal: JournalMode,
    /// `off`, `normal`, `full` or `extra`.
    pub synchronous: Synchronous,
    /// `direct`: past the page cache, every database I/O reaches the device; `buffered`: through it.
    pub io: IoMode,
    /// Excluded from the results.
    pub warmup: Nanos,
    /// Measured.
    pub duration: Nanos,
}

/// `[validate]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Validate {
    /// Replay at most this much of the captured trace (twice: the second run is the noise floor).
    pub duration: Nanos,
}

/// `[[scenario]]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// A shipped profile's name (`wearmark profile list`) or a TOML file's path.
    pub profile: String,
}

impl Default for Probe {
    fn default() -> Self {
        Self { plan: Plan::Quick, range: Bytes::GIB, budget: Nanos::from_secs_f64(45.0) }
    }
}

impl Default for Oltp {
    fn default() -> Self {
        Self {
            mix: "normal".into(),
            warehouses: 4,
            users: 20,
            think_scale: 0,
            buffer: Bytes(64 * Bytes::MIB.0),
            page: Bytes(4096),
            journal: JournalMode::Wal,
            synchronous: Synchronous::Full,
            io: IoMode::Direct,
            warmup: Nanos::from_secs_f64(5.0),
            duration: Nanos::from_secs_f64(30.0),
        }
    }
}

impl Default for Validate {
    fn default() -> Self {
        Self { duration: Nanos::from_secs_f64(25.0) }
    }
}

fn one() -> u64 {
    1
}

impl StudyFile {
    /// Reads and checks a study file; `quickstart` names the shipped one.
    pub fn read(path: &Path) -> Result<Self, Error> {
        if path == Path::new("quickstart") && !path.exists() {
            return Self::parse(QUICKSTART, path);
        }
        let text = std::fs::read_to_string(path).map_err(Error::io(path, "read"))?;
        Self::parse(&text, path)
    }

    /// Parses and checks the text of a study file; `path` is for messages.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Error> {
        let parsed: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
            Error::StudyFile { path: path.into(), line, cause: error.message().to_owned() }
        })?;
        parsed.check().map_err(|(key, cause)| Error::StudyFile {
            path: path.into(),
            line: line_of(text, key),
            cause: format!("{key}: {cause}"),
        })?;
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
        if let Err(error) = oltp.mix.parse::<Mix>() {
            return Err(("mix", error.to_string()));
        }
        if !oltp.page.0.is_power_of_two() || !(512..=65536).contains(&oltp.page.0) {
            return Err(("page", format!("{} is not a power of two from 512 to 64KiB", oltp.page)));
        }
        for (key, value) in [("warehouses", oltp.warehouses), ("users", oltp.users)] {
            if value == 0 {
                return Err((key, "must be at least 1".into()));
            }
        }
        for (key, value) in [("duration", oltp.duration), ("duration", self.validate.duration)] {
            if value < Nanos::from_secs_f64(1.0) {
                return Err((key, format!("{value} is too short to measure anything; from 1s on")));
            }
        }
        Ok(())
    }

    /// Upper estimate of the disk space that the run needs at once: the probe's file, the database
    /// with its growth, the replay's file of the database's size, traces.
    pub fn space_needed(&self) -> Bytes {
        let database = u64::from(self.oltp.warehouses) * 130 * Bytes::MIB.0 + 256 * Bytes::MIB.0;
        Bytes(self.probe.range.0.max(database) + database + 256 * Bytes::MIB.0)
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
    fn the_shipped_study_is_valid_and_survives_a_round_trip() {
        let study = StudyFile::parse(QUICKSTART, Path::new("quickstart")).unwrap();
        assert_eq!(StudyFile::parse(&study.to_toml(), Path::new("again")).unwrap(), study);
    }

    #[test]
    fn the_smallest_study_gets_every_default() {
        let study = StudyFile::parse("[study]\nname = 'a'", Path::new("s.toml")).unwrap();
        assert_eq!((study.oltp, study.probe), (Oltp::default(), Probe::default()));
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
        check_refused(
            "[study]\nname = 'a'\n[probe]\nplan = 'slow'",
            "s.toml:4: unknown variant `slow`",
        );
        check_refused("[study]\nname = 'a'\n[oltp]\nmix = '1:2'", "s.toml:4: mix: ");
    }
}
