//! What a load writes into the database about itself, and a run reads first.
//!
//! A table `wearmark_meta` of keys and integers, the same on every DBMS. It is written last: a
//! database without it, or without `complete`, was not loaded to its end.

use crate::workload::bank::BankScale;
use crate::workload::commit::CommitScale;
use crate::workload::nurand::Constants;
use crate::workload::{Dataset, Workload};
use crate::{Error, Scale};

/// Version of the layout of tables and of this list.
pub const LAYOUT: i64 = 1;

/// What a database says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// What was loaded.
    pub dataset: Dataset,
    /// The seed of the load: what it wrote can be worked out again.
    pub seed: u64,
    /// The constant of last names at load (order entry).
    pub c_last_load: u32,
    /// Runs since the load.
    pub runs: u64,
}

impl Meta {
    /// Of a fresh load.
    pub fn of_load(dataset: Dataset, seed: u64) -> Self {
        Self { dataset, seed, c_last_load: Constants::for_load(seed).c_last, runs: 0 }
    }

    /// The rows of the table.
    pub fn rows(&self) -> Vec<(&'static str, i64)> {
        let mut rows = vec![
            ("layout", LAYOUT),
            ("workload", self.dataset.workload().code()),
            ("seed", self.seed as i64),
            ("runs", self.runs as i64),
        ];
        match self.dataset {
            Dataset::OrderEntry(scale) => rows.extend([
                ("warehouses", i64::from(scale.warehouses)),
                ("districts", i64::from(scale.districts)),
                ("customers_per_district", i64::from(scale.customers_per_district)),
                ("items", i64::from(scale.items)),
                ("c_last_load", i64::from(self.c_last_load)),
            ]),
            Dataset::Bank(scale) => rows.extend([
                ("branches", i64::from(scale.branches)),
                ("accounts_per_branch", i64::from(scale.accounts_per_branch)),
            ]),
            Dataset::Commit(scale) => rows.push(("rows", i64::from(scale.rows))),
            Dataset::Own(own) => {
                let fingerprint = own.body().map_or(0, |body| body.fingerprint);
                rows.push(("fingerprint", fingerprint));
            }
        }
        rows
    }

    /// Reads the table through `value`, which answers for one key. Of an own workload the table
    /// says only which one it is: `expected` must be it.
    ///
    /// # Errors
    /// Those of `value`, and numbers that make no database; other tables than those of an own
    /// workload that is expected.
    pub fn read(
        value: &mut dyn FnMut(&str) -> Result<i64, Error>,
        expected: Workload,
    ) -> Result<Self, Error> {
        let workload = value("workload")?;
        let all = Workload::ALL.into_iter().chain([expected]);
        let found = all.into_iter().find(|known| known.code() == workload);
        if let Some(Workload::Own(own)) = found {
            let (seed, runs) = (value("seed")? as u64, value("runs")? as u64);
            if value("fingerprint")? != own.body()?.fingerprint {
                return Err(Error::OtherTables { workload: own.name().to_owned() });
            }
            return Ok(Self { dataset: Dataset::Own(own), seed, c_last_load: 0, runs });
        }
        let mut number = |key: &str| value(key).map(|value| value as u32);
        let dataset = match found {
            Some(Workload::OrderEntry) => Dataset::OrderEntry(Scale {
                warehouses: number("warehouses")?,
                districts: number("districts")?,
                customers_per_district: number("customers_per_district")?,
                items: number("items")?,
            }),
            Some(Workload::Bank) => Dataset::Bank(BankScale {
                branches: number("branches")?,
                accounts_per_branch: number("accounts_per_branch")?,
            }),
            Some(Workload::Commit) => Dataset::Commit(CommitScale { rows: number("rows")? }),
            Some(Workload::Own(_)) => unreachable!("it was returned above"),
            None => {
                return Err(Error::Option {
                    option: "workload",
                    value: workload.to_string(),
                    why: "the database holds a workload of a user: name it with --workload",
                });
            }
        };
        dataset.validate()?;
        let c_last_load = match found {
            Some(Workload::OrderEntry) => number("c_last_load")?,
            _ => 0,
        };
        let (seed, runs) = (value("seed")? as u64, value("runs")? as u64);
        Ok(Self { dataset, seed, c_last_load, runs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        for dataset in [
            Dataset::OrderEntry(Scale::new(3)),
            Dataset::Bank(BankScale::new(2)),
            Dataset::Commit(CommitScale { rows: 10 }),
        ] {
            let meta = Meta { runs: 4, ..Meta::of_load(dataset, 9) };
            let rows = meta.rows();
            let missing = || Error::Option { option: "key", value: String::new(), why: "missing" };
            let mut value = |key: &str| {
                rows.iter().find(|(k, _)| *k == key).map(|(_, value)| *value).ok_or_else(missing)
            };
            let read = Meta::read(&mut value, dataset.workload()).unwrap();
            assert_eq!((read.dataset, read.seed, read.runs), (dataset, 9, 4));
        }
    }
}
