//! The commit workload: each transaction changes one row and commits (Lee et al. 2008, table 2).
//!
//! Next to nothing is read or computed, so the run measures how fast the log can be made durable,
//! and how many commits the DBMS puts behind one flush.

use serde::{Deserialize, Serialize};
use stats::rng::{Rng, at};

use super::Kind;
use super::input::{Input, Request};
use crate::Error;

/// Cardinality of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommitScale {
    /// Rows, numbered from 1, of about 100 bytes each.
    pub rows: u32,
}

impl CommitScale {
    /// Checks that there is a row to change.
    pub fn validate(&self) -> Result<(), Error> {
        if (1..=100_000_000).contains(&self.rows) {
            return Ok(());
        }
        let (option, value) = ("rows", self.rows.to_string());
        Err(Error::Option { option, value, why: "must be 1 to 100000000" })
    }
}

/// The distributions that a run draws from.
#[derive(Clone, Copy, Debug)]
pub struct CommitInputs {
    seed: u64,
    scale: CommitScale,
}

impl CommitInputs {
    /// The inputs of a run with this seed.
    pub fn new(scale: CommitScale, seed: u64) -> Self {
        Self { seed, scale }
    }

    /// The table's size.
    pub fn scale(&self) -> &CommitScale {
        &self.scale
    }

    /// Random numbers of a terminal's request that its parameters do not use.
    pub(super) fn spare(&self, terminal: u32, sequence: u64) -> Rng {
        Rng::new(at(at(self.seed, u64::from(terminal)), sequence * 2))
    }

    /// The parameters of a terminal's request: a row, uniform.
    pub(super) fn draw(&self, terminal: u32, sequence: u64) -> Input {
        let mut rng = Rng::new(at(at(self.seed, u64::from(terminal)), sequence * 2 + 1));
        let row = rng.between(1, u64::from(self.scale.rows)) as u32;
        Input { warehouse: 0, request: Request::Commit { row } }
    }

    /// The only kind.
    pub(super) fn kind() -> Kind {
        Kind::Update
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_drawn_and_no_other() {
        let inputs = CommitInputs::new(CommitScale { rows: 8 }, 1);
        let mut seen = [0u32; 8];
        for sequence in 0..8_000 {
            let Request::Commit { row } = inputs.draw(3, sequence).request else { panic!() };
            seen[row as usize - 1] += 1;
        }
        // 1000 each, standard deviation 30.
        assert!(seen.iter().all(|count| (850..1150).contains(count)), "{seen:?}");
    }
}
