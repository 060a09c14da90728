//! Which workload, on how much data, and where its inputs come from.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stats::rng::Rng;

use super::bank::{BankInputs, BankScale};
use super::commit::{CommitInputs, CommitScale};
use super::input::{Input, Inputs};
use super::nurand::Constants;
use super::own::{self, Own, OwnInputs};
use super::{Kind, Mix};
use crate::{Error, Scale};

/// A workload and its size: what is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "workload", rename_all = "kebab-case")]
pub enum Dataset {
    /// Warehouses (derived from TPC-C).
    OrderEntry(Scale),
    /// Branches (derived from TPC-B).
    Bank(BankScale),
    /// One table.
    Commit(CommitScale),
    /// The tables of an own workload.
    Own(Own),
}

impl Dataset {
    /// The workload that runs on it.
    pub fn workload(&self) -> Workload {
        match self {
            Self::OrderEntry(_) => Workload::OrderEntry,
            Self::Bank(_) => Workload::Bank,
            Self::Commit(_) => Workload::Commit,
            Self::Own(own) => Workload::Own(*own),
        }
    }

    /// Checks its numbers.
    pub fn validate(&self) -> Result<(), Error> {
        match self {
            Self::OrderEntry(scale) => scale.validate(),
            Self::Bank(scale) => scale.validate(),
            Self::Commit(scale) => scale.validate(),
            Self::Own(own) => own.body().map(|_| ()),
        }
    }

    /// The warehouses of order entry; `None` for the others.
    pub fn scale(&self) -> Option<Scale> {
        match self {
            Self::OrderEntry(scale) => Some(*scale),
            Self::Bank(_) | Self::Commit(_) | Self::Own(_) => None,
        }
    }

    /// Whether it is smaller than the workload's rules have it, for tests.
    pub fn is_miniature(&self) -> bool {
        match self {
            Self::OrderEntry(scale) => scale.is_miniature(),
            Self::Bank(scale) => *scale != BankScale::new(scale.branches),
            Self::Commit(_) | Self::Own(_) => false,
        }
    }

    /// What a run with these draws from.
    pub fn source(&self, mix: Mix, seed: u64, constants: Constants) -> Source {
        match *self {
            Self::OrderEntry(scale) => Source::OrderEntry(Inputs::new(scale, mix, seed, constants)),
            Self::Bank(scale) => Source::Bank(BankInputs::new(scale, seed)),
            Self::Commit(scale) => Source::Commit(CommitInputs::new(scale, seed)),
            Self::Own(own) => Source::Own(OwnInputs::new(own, seed)),
        }
    }
}

impl fmt::Display for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OrderEntry(scale) if scale.is_miniature() => write!(f, "{scale:?}"),
            Self::OrderEntry(scale) => write!(f, "{} warehouses", scale.warehouses),
            Self::Bank(scale) if *scale == BankScale::new(scale.branches) => {
                write!(f, "{} branches", scale.branches)
            }
            Self::Bank(scale) => write!(f, "{scale:?}"),
            Self::Commit(scale) => write!(f, "{} rows", scale.rows),
            Self::Own(own) => own.fmt(f),
        }
    }
}

/// The workloads that terminals run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Workload {
    /// Orders, payments and deliveries of warehouses, derived from TPC-C 5.11.
    #[default]
    OrderEntry,
    /// Transfers between accounts, tellers and branches, derived from TPC-B 2.0.
    Bank,
    /// One-row updates, each committed.
    Commit,
    /// One of the user's own.
    Own(Own),
}

impl Workload {
    /// Those that are built in.
    pub const ALL: [Self; 3] = [Self::OrderEntry, Self::Bank, Self::Commit];

    /// The number that a database keeps of it.
    pub(crate) fn code(self) -> i64 {
        match self {
            Self::OrderEntry => 0,
            Self::Bank => 1,
            Self::Commit => 2,
            Self::Own(_) => 3,
        }
    }

    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::OrderEntry => "order-entry",
            Self::Bank => "bank",
            Self::Commit => "commit",
            Self::Own(own) => own.name(),
        }
    }

    /// Its name where a hyphen may not stand: of a database, of a file.
    pub fn identifier(self) -> &'static str {
        match self {
            Self::OrderEntry => "order_entry",
            Self::Bank => "bank",
            Self::Commit => "commit_rows",
            Self::Own(own) => own.identifier(),
        }
    }

    /// Its kinds of transactions.
    pub fn kinds(self) -> &'static [Kind] {
        match self {
            Self::OrderEntry => &Kind::ORDER_ENTRY,
            Self::Bank => &[Kind::Transfer],
            Self::Commit => &[Kind::Update],
            Self::Own(own) => own.kinds(),
        }
    }

    /// What to show beside every figure of it.
    pub fn disclaimer(self) -> &'static str {
        match self {
            Self::OrderEntry => crate::DISCLAIMER,
            Self::Bank => "derived from TPC-B 2.0, not comparable to published TPC results",
            Self::Commit => "one-row updates after table 2 of Lee et al., SIGMOD 2008",
            Self::Own(own) => own.about(),
        }
    }
}

impl Workload {
    /// How many codes its kinds may have; see [`Kind::code`].
    pub fn codes(self) -> usize {
        match self {
            Self::Own(own) => own.kinds().len(),
            _ => Kind::BUILT_IN.len(),
        }
    }

    /// The kinds by their codes, those of other workloads too where they share the numbers.
    pub fn by_code(self) -> &'static [Kind] {
        match self {
            Self::Own(own) => own.kinds(),
            _ => &Kind::BUILT_IN,
        }
    }
}

impl Serialize for Workload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Own(own) => serializer.serialize_str(&own::name_alone(*own)),
            built_in => serializer.serialize_str(built_in.name()),
        }
    }
}

impl<'de> Deserialize<'de> for Workload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let own = own::workload_named(&name).map(Ok);
        own.unwrap_or_else(|| name.parse()).map_err(serde::de::Error::custom)
    }
}

impl FromStr for Workload {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|workload| workload.name() == text).ok_or_else(|| {
            Error::Option {
                option: "workload",
                value: text.to_owned(),
                why: "is none of order-entry, bank, commit, ycsb, web-shop, pgbench, nor a \
                      directory with workload.toml",
            }
        })
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where the inputs of a run come from; every draw is a function of seed, terminal and sequence.
#[derive(Clone, Debug)]
pub enum Source {
    /// See [`Inputs`].
    OrderEntry(Inputs),
    /// See [`BankInputs`].
    Bank(BankInputs),
    /// See [`CommitInputs`].
    Commit(CommitInputs),
    /// See [`OwnInputs`].
    Own(OwnInputs),
}

impl Source {
    /// Which transaction a terminal asks for, and random numbers for its keying and think times.
    /// Where the mix changes over time (own workloads) it is that of the start.
    pub fn kind(&self, terminal: u32, sequence: u64) -> (Kind, Rng) {
        self.kind_at(terminal, sequence, 0)
    }

    /// As [`Self::kind`], at a time, ns since the start of the run.
    pub fn kind_at(&self, terminal: u32, sequence: u64, now_ns: u64) -> (Kind, Rng) {
        match self {
            Self::Own(inputs) => inputs.kind(terminal, sequence, now_ns),
            Self::OrderEntry(inputs) => inputs.kind(terminal, sequence),
            Self::Bank(inputs) => (BankInputs::kind(), inputs.spare(terminal, sequence)),
            Self::Commit(inputs) => (CommitInputs::kind(), inputs.spare(terminal, sequence)),
        }
    }

    /// The parameters of that transaction.
    pub fn draw(&self, terminal: u32, sequence: u64, kind: Kind) -> Input {
        match self {
            Self::OrderEntry(inputs) => inputs.draw(terminal, sequence, kind),
            Self::Bank(inputs) => inputs.draw(terminal, sequence),
            Self::Commit(inputs) => inputs.draw(terminal, sequence),
            Self::Own(inputs) => inputs.draw(terminal, sequence, kind),
        }
    }

    /// The data that it draws for.
    pub fn dataset(&self) -> Dataset {
        match self {
            Self::OrderEntry(inputs) => Dataset::OrderEntry(*inputs.scale()),
            Self::Bank(inputs) => Dataset::Bank(*inputs.scale()),
            Self::Commit(inputs) => Dataset::Commit(*inputs.scale()),
            Self::Own(inputs) => Dataset::Own(inputs.own()),
        }
    }

    /// The inputs of order entry.
    pub fn order_entry(&self) -> Option<&Inputs> {
        match self {
            Self::OrderEntry(inputs) => Some(inputs),
            Self::Bank(_) | Self::Commit(_) | Self::Own(_) => None,
        }
    }

    /// When the arrival of an open loop that follows one at `due_ns` is due; `gap` is exponential
    /// with mean 1.
    pub fn next_arrival(&self, due_ns: u64, gap: f64, per_s: f64) -> u64 {
        match self {
            Self::Own(inputs) => inputs.next_arrival(due_ns, gap, per_s),
            _ => due_ns + (gap * (1e9 / per_s)) as u64,
        }
    }

    /// Lets what changes over time begin at a time, ns since the start of the run.
    pub fn begin_phases(&mut self, from_ns: u64) {
        if let Self::Own(inputs) = self {
            inputs.begin_phases(from_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datasets_read_back_as_written() {
        for dataset in [
            Dataset::OrderEntry(Scale::new(3)),
            Dataset::OrderEntry(Scale::miniature(1)),
            Dataset::Bank(BankScale::new(7)),
            Dataset::Commit(CommitScale { rows: 9 }),
        ] {
            let text = serde_json::to_string(&dataset).unwrap();
            assert_eq!(serde_json::from_str::<Dataset>(&text).unwrap(), dataset, "{text}");
            assert_eq!(dataset.workload().name().parse::<Workload>().unwrap(), dataset.workload());
        }
    }
}
