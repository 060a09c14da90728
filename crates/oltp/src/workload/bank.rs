//! The bank workload: what a teller asks for (derived from TPC-B 2.0).
//!
//! One short transaction that changes an account, a teller and a branch and appends to a history
//! (clause 1.2): the branch row is the point where concurrent transactions meet, and the commit is
//! most of the work, which is what the workload is run for. A teller belongs to a branch; the
//! account is of the same branch in 85 of 100 transactions and of any other one in the rest, where
//! there are several (clause 5.3.5). The amount is uniform (clause 5.3.6).
//!
//! Not comparable to published TPC results.

use serde::{Deserialize, Serialize};
use stats::rng::{Rng, at};

use super::Kind;
use super::input::{Input, Request};
use crate::Error;

/// Tellers of each branch.
pub const TELLERS_PER_BRANCH: u32 = 10;

/// Largest amount of a transfer, in either direction (clause 5.3.6).
pub const AMOUNT_MAX: u32 = 999_999;

/// Cardinalities of a bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BankScale {
    /// Branches.
    pub branches: u32,
    /// Accounts of each branch; 100,000 by the specification.
    #[serde(default = "spec_accounts")]
    pub accounts_per_branch: u32,
}

fn spec_accounts() -> u32 {
    100_000
}

impl BankScale {
    /// The specification's cardinalities for this many branches.
    pub fn new(branches: u32) -> Self {
        Self { branches, accounts_per_branch: spec_accounts() }
    }

    /// Tellers of the bank, numbered from 1; those of branch b are 10 (b - 1) + 1 to 10 b.
    pub fn tellers(&self) -> u32 {
        self.branches * TELLERS_PER_BRANCH
    }

    /// Accounts of the bank, numbered from 1 in the same way.
    pub fn accounts(&self) -> u32 {
        self.branches * self.accounts_per_branch
    }

    /// The branch of a teller.
    pub fn branch_of_teller(&self, teller: u32) -> u32 {
        (teller - 1) / TELLERS_PER_BRANCH + 1
    }

    /// The branch of an account.
    pub fn branch_of_account(&self, account: u32) -> u32 {
        (account - 1) / self.accounts_per_branch + 1
    }

    /// Checks that the numbers make a bank.
    pub fn validate(&self) -> Result<(), Error> {
        let bad =
            |option, value: u32, why| Err(Error::Option { option, value: value.to_string(), why });
        match (self.branches, self.accounts_per_branch) {
            (0 | 20_001.., _) => bad("branches", self.branches, "must be 1 to 20000"),
            (_, 0 | 100_001..) => {
                bad("accounts_per_branch", self.accounts_per_branch, "must be 1 to 100000")
            }
            _ => Ok(()),
        }
    }
}

/// The distributions that a run draws from.
#[derive(Clone, Copy, Debug)]
pub struct BankInputs {
    seed: u64,
    scale: BankScale,
}

impl BankInputs {
    /// The inputs of a run with this seed.
    pub fn new(scale: BankScale, seed: u64) -> Self {
        Self { seed, scale }
    }

    /// The bank's size.
    pub fn scale(&self) -> &BankScale {
        &self.scale
    }

    /// Random numbers of a terminal's request that its parameters do not use.
    pub(super) fn spare(&self, terminal: u32, sequence: u64) -> Rng {
        Rng::new(at(at(self.seed, u64::from(terminal)), sequence * 2))
    }

    /// The parameters of a terminal's request.
    pub(super) fn draw(&self, terminal: u32, sequence: u64) -> Input {
        let mut rng = Rng::new(at(at(self.seed, u64::from(terminal)), sequence * 2 + 1));
        let BankScale { branches, accounts_per_branch } = self.scale;
        let teller = rng.between(1, u64::from(self.scale.tellers())) as u32;
        let branch = self.scale.branch_of_teller(teller);
        let elsewhere = rng.below(100) >= 85 && branches > 1;
        let of = if elsewhere {
            let other = rng.between(1, u64::from(branches) - 1) as u32;
            if other >= branch { other + 1 } else { other }
        } else {
            branch
        };
        let within = rng.between(1, u64::from(accounts_per_branch)) as u32;
        let account = (of - 1) * accounts_per_branch + within;
        let amount = rng.between(0, 2 * u64::from(AMOUNT_MAX)) as i64 - i64::from(AMOUNT_MAX);
        Input { warehouse: 0, request: Request::Bank { account, teller, branch, amount } }
    }

    /// The only kind.
    pub(super) fn kind() -> Kind {
        Kind::Transfer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(branches: u32, count: u64) -> Vec<(u32, u32, u32, i64)> {
        let inputs = BankInputs::new(BankScale { branches, accounts_per_branch: 50 }, 3);
        let parts = |sequence| match inputs.draw(1, sequence).request {
            Request::Bank { account, teller, branch, amount } => (account, teller, branch, amount),
            other => panic!("{other:?}"),
        };
        (0..count).map(parts).collect()
    }

    #[test]
    fn fifteen_in_a_hundred_accounts_are_of_another_branch() {
        let scale = BankScale { branches: 4, accounts_per_branch: 50 };
        let all = draws(4, 40_000);
        let away = all.iter().filter(|(account, _, b, _)| scale.branch_of_account(*account) != *b);
        // 6000 expected, standard deviation 71.
        let away = away.count();
        assert!((5_600..6_400).contains(&away), "{away}");
        for &(account, teller, branch, amount) in &all {
            assert!((1..=200).contains(&account) && (1..=40).contains(&teller));
            assert_eq!(branch, scale.branch_of_teller(teller));
            assert!(amount.unsigned_abs() <= u64::from(AMOUNT_MAX));
        }
        assert!(all.iter().any(|draw| draw.3 < 0) && all.iter().any(|draw| draw.3 > 0));
    }

    #[test]
    fn one_branch_has_all_accounts() {
        assert!(
            draws(1, 2_000).iter().all(|&(account, _, branch, _)| account <= 50 && branch == 1)
        );
    }
}
