//! The bank in SQLite (derived from TPC-B 2.0).
//!
//! The specification's three kinds of rows have 100 bytes each, so each has a filler (clause 3.2);
//! its history row has 50. Balances are INTEGER cents.

use rusqlite::{Connection, params};

use super::load::Counter;
use super::session::{Prepared, Stop, bind};
use crate::Error;
use crate::driver::{Meter, Outcome, Reply};
use crate::workload::bank::BankScale;

/// The tables.
pub(super) const TABLES: &str = "
CREATE TABLE branches (bid INTEGER PRIMARY KEY, bbalance INTEGER NOT NULL, filler TEXT NOT NULL);
CREATE TABLE tellers (
    tid INTEGER PRIMARY KEY, bid INTEGER NOT NULL, tbalance INTEGER NOT NULL, filler TEXT NOT NULL);
CREATE TABLE accounts (
    aid INTEGER PRIMARY KEY, bid INTEGER NOT NULL, abalance INTEGER NOT NULL, filler TEXT NOT NULL);
CREATE TABLE history (
    tid INTEGER NOT NULL, bid INTEGER NOT NULL, aid INTEGER NOT NULL, delta INTEGER NOT NULL,
    mtime INTEGER NOT NULL, filler TEXT NOT NULL);
";

/// Filler of a row that has an id, a branch and a balance.
pub(crate) fn filler() -> String {
    " ".repeat(84)
}

/// Loads all balances with 0.
pub(super) fn load(
    connection: &Connection,
    scale: BankScale,
    counter: &mut Counter<'_>,
) -> Result<(), Error> {
    let filler = filler();
    let mut fill = |table: &str, rows: u32, branch: &dyn Fn(u32) -> Option<u32>| {
        let columns = if branch(1).is_some() { "?1, ?2, 0, ?3" } else { "?1, 0, ?3" };
        let sql = format!("INSERT INTO {table} VALUES ({columns})");
        let mut insert = counter.sqlite(table, connection.prepare(&sql))?;
        for key in 1..=rows {
            let row = insert.execute(params![key, branch(key), filler]);
            counter.inserted(table, row)?;
        }
        Ok(())
    };
    fill("branches", scale.branches, &|_| None)?;
    fill("tellers", scale.tellers(), &|key| Some(scale.branch_of_teller(key)))?;
    fill("accounts", scale.accounts(), &|key| Some(scale.branch_of_account(key)))
}

/// The statements of the transfer (clause 1.2).
pub(super) struct Transfer<'c> {
    account: Prepared<'c>,
    balance: Prepared<'c>,
    teller: Prepared<'c>,
    branch: Prepared<'c>,
    history: Prepared<'c>,
}

/// What a transfer changes.
pub(super) struct Move {
    pub account: u32,
    pub teller: u32,
    pub branch: u32,
    pub amount: i64,
    pub now_ms: i64,
}

impl<'c> Transfer<'c> {
    pub fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        let prepare = |sql: &str| Prepared::new(connection, sql);
        Ok(Self {
            account: prepare("UPDATE accounts SET abalance = abalance + ? WHERE aid = ?")?,
            balance: prepare("SELECT abalance FROM accounts WHERE aid = ?")?,
            teller: prepare("UPDATE tellers SET tbalance = tbalance + ? WHERE tid = ?")?,
            branch: prepare("UPDATE branches SET bbalance = bbalance + ? WHERE bid = ?")?,
            history: prepare(
                "INSERT INTO history VALUES (?, ?, ?, ?, ?, '                      ')",
            )?,
        })
    }

    pub fn execute(
        &mut self,
        meter: &Meter,
        change: &Move,
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        let Move { account, teller, branch, amount, now_ms } = *change;
        bind!(self.account, amount, account);
        if self.account.run(meter)? != 1 {
            return Err(Stop::Missing("an account"));
        }
        bind!(self.balance, account);
        reply.balance =
            self.balance.first(meter, |row| row.get(0))?.ok_or(Stop::Missing("an account"))?;
        bind!(self.teller, amount, teller);
        if self.teller.run(meter)? != 1 {
            return Err(Stop::Missing("a teller"));
        }
        bind!(self.branch, amount, branch);
        if self.branch.run(meter)? != 1 {
            return Err(Stop::Missing("a branch"));
        }
        bind!(self.history, teller, branch, account, amount, now_ms);
        self.history.run(meter)?;
        Ok(Outcome::Committed)
    }
}
