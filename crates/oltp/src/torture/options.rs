//! What a torture can be told.

use dbms::{Places, Settings, System};
use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::options::Access;
use crate::workload::Dataset;
use crate::{Error, Scale};

/// What is lost beside the server's own memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Nothing: `kill -9`. The kernel keeps what was written, synced or not.
    Process,
    /// Everything that was not synced, as in a power cut at the worst moment.
    #[default]
    Unsynced,
    /// Of what was not synced, each 4 KiB and each size by chance: torn and reordered writes.
    Torn,
}

impl Loss {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Process, Self::Unsynced, Self::Torn];

    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Unsynced => "unsynced",
            Self::Torn => "torn",
        }
    }
}

/// Everything a torture can be told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TortureOptions {
    /// Which server.
    pub system: System,
    /// Directories of the private instance, which is made and removed.
    pub places: Places,
    /// How it is set.
    pub settings: Settings,
    /// What is loaded and runs.
    pub dataset: Dataset,
    /// How statements travel.
    pub access: Access,
    /// Terminals, one connection each.
    pub users: u32,
    /// Kills.
    pub cycles: u32,
    /// Longest time under load before a kill; the time is uniform from a tenth of it.
    pub longest: Nanos,
    /// What is lost.
    pub loss: Loss,
    /// The disk acknowledges syncs and forgets them.
    pub lies: bool,
    /// Seed of the inputs, the moments and the losses.
    pub seed: u64,
}

impl TortureOptions {
    /// Ten cycles of order entry with one warehouse and ten terminals on a durable server, losing
    /// what was not synced.
    pub fn new(system: System, places: Places) -> Self {
        Self {
            system,
            places,
            settings: Settings::default(),
            dataset: Dataset::OrderEntry(Scale::new(1)),
            access: Access::default(),
            users: 10,
            cycles: 10,
            longest: Nanos(1_000_000_000),
            loss: Loss::default(),
            lies: false,
            seed: 1,
        }
    }

    /// Checks the options against each other.
    ///
    /// # Errors
    /// An option without meaning.
    pub fn validate(&self) -> Result<(), Error> {
        self.dataset.validate()?;
        let bad = |option, value: String, why| Err(Error::Option { option, value, why });
        if !(1..=1000).contains(&self.users) {
            return bad("users", self.users.to_string(), "must be 1 to 1000");
        }
        if !(1..=100_000).contains(&self.cycles) {
            return bad("cycles", self.cycles.to_string(), "must be 1 to 100000");
        }
        if !(10_000_000..=600_000_000_000).contains(&self.longest.0) {
            return bad("longest", self.longest.to_string(), "must be 10ms to 10min");
        }
        if self.lies && self.loss == Loss::Process {
            return bad("lies", "true".to_owned(), "means nothing where nothing unsynced is lost");
        }
        Ok(())
    }
}
