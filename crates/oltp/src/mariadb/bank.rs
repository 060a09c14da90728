//! The bank (derived from TPC-B 2.0 clause 1.2) and the commit workload, statement by statement.
//!
//! The one-row update runs with autocommit: the statement is the transaction.

use dbms::Error as ServerError;
use dbms::mariadb::{Connection, Statement, Type};

use super::link::{Link, Stop, changed, one};
use crate::driver::{Outcome, Reply};

/// What a transfer changes.
#[derive(Clone, Copy, Default)]
pub(super) struct Move {
    pub account: u32,
    pub teller: u32,
    pub branch: u32,
    pub amount: i64,
    pub now_ms: i64,
}

/// The statements of the transfer.
pub(super) struct Transfer {
    account: Statement,
    balance: Statement,
    teller: Statement,
    branch: Statement,
    history: Statement,
    change: Move,
    left: i64,
}

impl Transfer {
    pub fn prepare(link: &mut Link<'_>) -> Result<Self, ServerError> {
        use Type::{BigInt, DateTime, Int};
        let mut prepare = |sql: &str, types: &[Type]| link.prepare(sql, types);
        let add = [BigInt, Int];
        Ok(Self {
            account: prepare("UPDATE accounts SET abalance = abalance + ? WHERE aid = ?", &add)?,
            balance: prepare("SELECT abalance FROM accounts WHERE aid = ?", &[Int])?,
            teller: prepare("UPDATE tellers SET tbalance = tbalance + ? WHERE tid = ?", &add)?,
            branch: prepare("UPDATE branches SET bbalance = bbalance + ? WHERE bid = ?", &add)?,
            history: prepare(
                "INSERT INTO history VALUES (?, ?, ?, ?, ?, '                      ')",
                &[Int, Int, Int, BigInt, DateTime],
            )?,
            change: Move::default(),
            left: 0,
        })
    }

    pub fn execute(
        &mut self,
        link: &mut Link<'_>,
        change: Move,
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        self.change = change;
        link.group(self, 5, Self::queue, Self::receive)?;
        reply.balance = self.left;
        Ok(Outcome::Committed)
    }

    fn queue(&mut self, connection: &mut Connection, step: usize) {
        let Move { account, teller, branch, amount, now_ms } = self.change;
        let (update, key) = match step {
            0 => (&mut self.account, account),
            1 => return connection.queue(&mut self.balance).integer(account).finish(),
            2 => (&mut self.teller, teller),
            3 => (&mut self.branch, branch),
            _ => {
                let values = connection.queue(&mut self.history).integer(teller).integer(branch);
                return values.integer(account).integer(amount).date_time(now_ms).finish();
            }
        };
        connection.queue(update).integer(amount).integer(key).finish();
    }

    fn receive(&mut self, connection: &mut Connection, step: usize) -> Result<(), Stop> {
        let left = &mut self.left;
        match step {
            0 => changed(connection, &mut self.account, "an account"),
            1 => one(connection, &mut self.balance, "an account", &mut |row| {
                *left = row.integer()?;
                Ok(())
            }),
            2 => changed(connection, &mut self.teller, "a teller"),
            3 => changed(connection, &mut self.branch, "a branch"),
            _ => changed(connection, &mut self.history, "the transfer that was inserted"),
        }
    }
}

/// The one statement of the commit workload.
pub(super) struct Update(Statement);

impl Update {
    pub fn prepare(link: &mut Link<'_>) -> Result<Self, ServerError> {
        link.connection.execute("SET SESSION autocommit = 1")?;
        let sql = "UPDATE commit_row SET value = value + 1 WHERE id = ?";
        link.prepare(sql, &[Type::Int]).map(Self)
    }

    pub fn execute(&mut self, link: &mut Link<'_>, row: u32) -> Result<Outcome, Stop> {
        link.connection.queue(&mut self.0).integer(row).finish();
        link.exchange()?;
        changed(&mut link.connection, &mut self.0, "a row")?;
        Ok(Outcome::Committed)
    }
}
