//! Workloads of the user: a directory with `workload.toml`, SQL files and data, or scripts of
//! pgbench.
//!
//! [`Own::open`] reads one (`read.rs`, `kinds.rs`) into a definition that stays for as long as the
//! program runs, so that a handle to it is as small as the name of a built-in workload; the same
//! text read again gives the same handle. [`program`] is what a kind of transaction consists of,
//! [`inputs`] which kind is asked for when and with which numbers, [`rows`] what the tables start
//! with. Kinds travel through results, captures and predictions by name: a result that is read back
//! has the names and facts of its kinds, and no program.
//!
//! Invariants: values are functions of seed, terminal and sequence, but for numbers of sequences,
//! which no two transactions of a run share; statements see values as parameters, never as text.

pub mod distribution;
pub mod expression;
pub mod inputs;
mod kinds;
pub mod parser;
pub mod pgbench;
pub mod program;
mod read;
pub mod rows;
mod shipped;
pub mod sql;
pub mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::schema::Table;
use super::{Kind, Workload};
use crate::Error;
pub use inputs::OwnInputs;
pub use program::Program;
pub use rows::OwnTable;

/// SQL as a DBMS understands it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgresql,
    /// MariaDB.
    Mariadb,
}

impl Dialect {
    /// All of them, by number.
    pub const ALL: [Self; 3] = [Self::Sqlite, Self::Postgresql, Self::Mariadb];

    /// Its name in the names of files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgresql => "postgresql",
            Self::Mariadb => "mariadb",
        }
    }
}

/// What is asked of a workload beside its files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// A mix by its name; none is the kinds' own weights.
    pub mix: Option<String>,
    /// Settings in place of those of the file.
    pub sizes: BTreeMap<String, i64>,
    /// Scripts of pgbench and their weights, in place of the file's kinds.
    pub scripts: Vec<(PathBuf, f64)>,
}

/// What everybody may know of a kind of transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Its name.
    pub name: String,
    /// Its number among the workload's kinds.
    pub code: u8,
    /// Whether it changes the database.
    pub writes: bool,
    /// Keying time in seconds before the request.
    pub keying_s: f64,
    /// Mean think time in seconds after the answer.
    pub think_mean_s: f64,
    /// Bound on the 90th percentile of the response time, seconds.
    pub response_p90_limit_s: f64,
}

/// A kind of an own workload; two are the same where their names are.
#[derive(Clone, Copy, Debug)]
pub struct OwnKind(&'static Facts);

impl OwnKind {
    /// What everybody may know of it.
    pub fn facts(self) -> &'static Facts {
        self.0
    }

    /// A kind that is known by its name only.
    pub fn named(name: &str) -> Self {
        let known =
            |definition: &&'static Definition| definition.facts().find(|facts| facts.name == name);
        if let Some(facts) = lock().iter().find_map(known) {
            return Self(facts);
        }
        let facts = Facts {
            name: name.to_owned(),
            code: 0,
            writes: true,
            keying_s: 0.0,
            think_mean_s: 0.0,
            response_p90_limit_s: LIMIT_S,
        };
        let definition = Definition {
            name: format!("of {name}"),
            kinds: vec![Kind::Own(Self(Box::leak(Box::new(facts))))],
            ..Definition::default()
        };
        let own = Own::keep(definition);
        match own.kinds()[0] {
            Kind::Own(kind) => kind,
            _ => unreachable!("it was made above"),
        }
    }
}

impl PartialEq for OwnKind {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for OwnKind {}

impl PartialOrd for OwnKind {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OwnKind {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.name.cmp(&other.0.name)
    }
}

impl Hash for OwnKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

/// Bound on the 90th percentile where a kind names none: that of bank.
pub const LIMIT_S: f64 = 2.0;

/// A stretch of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// How long it lasts, ns.
    pub length_ns: u64,
    /// Weights of the kinds.
    pub weights: Vec<f64>,
    /// Factors of the rate of arrivals at its start and its end; linear between.
    pub rate: (f64, f64),
}

/// Numbers that no two transactions share.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// Its name.
    pub name: String,
    /// The first number on fresh data.
    pub start: i64,
    /// A query for the first number of a run; none starts each run at `start`.
    pub from: Option<String>,
}

/// What must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Invariant {
    /// In one line.
    pub states: String,
    /// A query, by DBMS, that returns a row for each violation.
    pub sql: [String; Dialect::ALL.len()],
}

/// What a run and a load need.
#[derive(Debug, Default)]
pub struct Body {
    /// The kinds, by their codes.
    pub programs: Vec<Program>,
    /// Weights of the kinds.
    pub weights: Vec<f64>,
    /// Stretches of a run; none is one without end.
    pub phases: Vec<Phase>,
    /// Sequences.
    pub sequences: Vec<Sequence>,
    /// The tables, those without rows too.
    pub tables: Vec<Table>,
    /// The statements that make the tables, by DBMS.
    pub schema: [String; Dialect::ALL.len()],
    /// The statements that follow when the rows are in, by DBMS.
    pub after: [String; Dialect::ALL.len()],
    /// What must hold.
    pub invariants: Vec<Invariant>,
    /// Names the data: a database with another one was loaded from other tables.
    pub fingerprint: i64,
}

/// Everything about a workload.
#[derive(Debug, Default)]
struct Definition {
    name: String,
    identifier: String,
    about: String,
    mix: Option<String>,
    sizes: BTreeMap<String, i64>,
    files: BTreeMap<String, String>,
    kinds: Vec<Kind>,
    /// None for a workload of a result that was read back.
    body: Option<Body>,
}

impl Definition {
    fn facts(&self) -> impl Iterator<Item = &'static Facts> + '_ {
        self.kinds.iter().filter_map(|kind| match kind {
            Kind::Own(kind) => Some(kind.0),
            _ => None,
        })
    }

    fn written(&self) -> Written {
        Written {
            name: self.name.clone(),
            about: self.about.clone(),
            mix: self.mix.clone(),
            sizes: self.sizes.clone(),
            fingerprint: self.body.as_ref().map_or(0, |body| body.fingerprint),
            kinds: self.facts().cloned().collect(),
            files: self.files.clone(),
        }
    }
}

/// An own workload in a file of results: all of its text, so that it can be run again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Written {
    name: String,
    about: String,
    mix: Option<String>,
    sizes: BTreeMap<String, i64>,
    fingerprint: i64,
    kinds: Vec<Facts>,
    files: BTreeMap<String, String>,
}

/// All definitions of this process. Few: what was read once is found again.
static KNOWN: Mutex<Vec<&'static Definition>> = Mutex::new(Vec::new());

fn lock() -> std::sync::MutexGuard<'static, Vec<&'static Definition>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An own workload; two are the same where their names are.
#[derive(Clone, Copy)]
pub struct Own(&'static Definition);

impl Own {
    /// Reads a workload: one that ships, by its name, or a directory with `workload.toml`. None
    /// where the text is neither.
    ///
    /// # Errors
    /// Files that make no workload, with file, line and what to do.
    pub fn open(place: &str, choice: &Choice) -> Result<Option<Self>, Error> {
        let Some(definition) = read::read(place, choice)? else { return Ok(None) };
        Ok(Some(Self::keep(definition)))
    }

    /// The names of the workloads that ship.
    pub fn shipped() -> impl Iterator<Item = &'static str> {
        shipped::ALL.iter().map(|(name, _)| *name)
    }

    fn keep(definition: Definition) -> Self {
        let mut known = lock();
        let whole = |known: &&&'static Definition| {
            known.body.is_some() == definition.body.is_some()
                && known.written() == definition.written()
        };
        if let Some(known) = known.iter().find(whole) {
            return Self(known);
        }
        let definition: &'static Definition = Box::leak(Box::new(definition));
        known.push(definition);
        Self(definition)
    }

    /// A workload that is known by its name only.
    fn named(name: &str) -> Self {
        let found = lock().iter().copied().rfind(|known| known.name == name);
        found.map_or_else(
            || Self::keep(Definition { name: name.to_owned(), ..Definition::default() }),
            Self,
        )
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// Its name where a hyphen may not stand.
    pub fn identifier(self) -> &'static str {
        &self.0.identifier
    }

    /// What to show beside every figure of it.
    pub fn about(self) -> &'static str {
        &self.0.about
    }

    /// Its kinds, by their codes.
    pub fn kinds(self) -> &'static [Kind] {
        &self.0.kinds
    }

    /// What a run and a load need.
    ///
    /// # Errors
    /// A workload of a result that was read back: its files are needed.
    pub fn body(self) -> Result<&'static Body, Error> {
        self.0.body.as_ref().ok_or_else(|| Error::Workload {
            place: self.0.name.clone(),
            what: "only the results of this workload are here".to_owned(),
            hint: "name its directory with --workload".to_owned(),
        })
    }

    /// As [`Self::body`], where the workload was read from its files.
    pub(crate) fn whole(self) -> &'static Body {
        self.0.body.as_ref().expect("loads and runs are refused without it")
    }

    /// Its tables.
    pub fn tables(self) -> &'static [Table] {
        self.0.body.as_ref().map_or(&[], |body| &body.tables)
    }
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Some(mix) = &self.0.mix {
            write!(f, ", mix {mix}")?;
        }
        self.0.sizes.iter().try_for_each(|(name, value)| write!(f, ", {name} = {value}"))
    }
}

impl PartialEq for Own {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Own {}

impl Hash for Own {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl Serialize for Own {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.written().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Own {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        let leak = |facts: Facts| Kind::Own(OwnKind(Box::leak(Box::new(facts))));
        let known = lock().iter().copied().find(|known| known.written() == written);
        if let Some(known) = known {
            return Ok(Self(known));
        }
        let identifier = identifier(&written.name);
        let Written { name, about, mix, sizes, kinds, files, .. } = written;
        let kinds = kinds.into_iter().map(leak).collect();
        Ok(Self::keep(Definition { name, identifier, about, mix, sizes, files, kinds, body: None }))
    }
}

/// What stands before the name of an own workload where a name alone stands.
const PREFIX: &str = "own:";

/// An own workload by the name that stands alone in a file.
pub(super) fn workload_named(text: &str) -> Option<Workload> {
    text.strip_prefix(PREFIX).map(|name| Workload::Own(Own::named(name)))
}

/// The name as it stands alone in a file.
pub(super) fn name_alone(own: Own) -> String {
    format!("{PREFIX}{}", own.name())
}

fn identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// One request of an own workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnRequest {
    /// The workload.
    pub own: Own,
    /// The kind's code.
    pub kind: u8,
    /// Who asks.
    pub terminal: u32,
    /// Seed of its values.
    pub seed: u64,
    /// Numbers of sequences.
    pub numbers: [i64; program::NUMBERS_MAX],
}

impl OwnRequest {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.own.kinds()[usize::from(self.kind)]
    }

    /// What it consists of.
    pub(crate) fn program(&self) -> &'static Program {
        &self.own.whole().programs[usize::from(self.kind)]
    }
}
