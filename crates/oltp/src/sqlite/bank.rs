//! The bank's transfer in SQLite (derived from TPC-B 2.0).

use rusqlite::Connection;

use super::session::{Prepared, Stop, bind};
use crate::driver::{Meter, Outcome, Reply};

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
