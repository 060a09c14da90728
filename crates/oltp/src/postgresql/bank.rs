//! The transactions of bank and commit, in every access.
//!
//! The transfer (derived from TPC-B 2.0 clause 1.2) changes the branch last: its row is where
//! concurrent transfers meet, and so it is locked for the shortest time. Statement access has one
//! round trip per step, COMMIT included, BEGIN with the first; an update of one row is its own
//! transaction. Both pipelined accesses have the same statements here.

use dbms::Error as ServerError;
use dbms::postgresql::Statement;

use super::session::{Context, Link, Stop, foreign};
use crate::driver::{Outcome, Reply};
use crate::options::Access;
use crate::workload::input::Request;

/// The transfer.
pub(super) struct Transfer {
    access: Access,
    begin: Statement,
    account: Statement,
    teller: Statement,
    history: Statement,
    branch: Statement,
    commit: Statement,
    call: Statement,
}

impl Transfer {
    pub fn prepare(link: &mut Link<'_>, access: Access) -> Result<Self, ServerError> {
        Ok(Self {
            access,
            begin: link.prepare("BEGIN")?,
            account: link.prepare(
                "UPDATE accounts SET abalance = abalance + $2 WHERE aid = $1 RETURNING abalance",
            )?,
            teller: link.prepare("UPDATE tellers SET tbalance = tbalance + $2 WHERE tid = $1")?,
            history: link.prepare("INSERT INTO history VALUES ($1, $2, $3, $4, $5, '')")?,
            branch: link.prepare("UPDATE branches SET bbalance = bbalance + $2 WHERE bid = $1")?,
            commit: link.prepare("COMMIT")?,
            call: link.prepare("SELECT * FROM bank_transfer($1, $2, $3, $4, $5)")?,
        })
    }

    pub fn execute(
        &mut self,
        link: &mut Link<'_>,
        context: Context,
        request: &Request,
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        let Request::Bank { account, teller, branch, amount } = *request else { foreign(request) };
        let (balance, found) = match self.access {
            Access::Procedure => {
                let bind = link.connection.bind(&self.call).u32(account).u32(teller).u32(branch);
                bind.i64(amount).timestamp_ms(context.now_ms).run();
                let answer = link.first(|mut row| {
                    let balance = row.nullable()?.and_then(|bytes| bytes.try_into().ok());
                    Ok((balance.map(i64::from_be_bytes), u64::from(row.u32()?)))
                })?;
                answer.ok_or(Stop::Missing("the answer of a procedure"))?
            }
            Access::StatementPipelined | Access::Pipelined => {
                self.bind(link, context, request, |_| Ok(()))?;
                link.round_trip()?;
                let balance = link.connection.first(|mut row| row.i64())?;
                let teller = link.connection.done()?;
                link.connection.done()?;
                let branch = link.connection.done()?;
                link.connection.settle()?;
                (balance, u64::from(balance.is_some()) + teller + branch)
            }
            Access::Statement => {
                let (mut balance, mut changed, mut step) = (None, [0; 4], 0);
                link.begin(&self.begin);
                self.bind(link, context, request, |link| {
                    if step == 0 {
                        balance = link.first(|mut row| row.i64())?;
                        changed[0] = u64::from(balance.is_some());
                    } else {
                        changed[step] = link.run()?;
                    }
                    step += 1;
                    Ok(())
                })?;
                link.connection.bind(&self.commit).run();
                link.run()?;
                (balance, changed[0] + changed[1] + changed[3])
            }
        };
        match balance {
            Some(balance) if found == 3 => reply.balance = balance,
            _ => return Err(Stop::Missing("an account, teller or branch")),
        }
        Ok(Outcome::Committed)
    }

    /// Binds the four steps, with `after` each of them.
    fn bind(
        &self,
        link: &mut Link<'_>,
        context: Context,
        request: &Request,
        mut after: impl FnMut(&mut Link<'_>) -> Result<(), ServerError>,
    ) -> Result<(), ServerError> {
        let Request::Bank { account, teller, branch, amount } = *request else { foreign(request) };
        link.connection.bind(&self.account).u32(account).i64(amount).run();
        after(link)?;
        link.connection.bind(&self.teller).u32(teller).i64(amount).run();
        after(link)?;
        let history = link.connection.bind(&self.history).u32(teller).u32(branch).u32(account);
        history.i64(amount).timestamp_ms(context.now_ms).run();
        after(link)?;
        link.connection.bind(&self.branch).u32(branch).i64(amount).run();
        after(link)
    }
}

/// The update of one row.
pub(super) struct Update {
    statement: Statement,
    call: bool,
}

impl Update {
    pub fn prepare(link: &mut Link<'_>, access: Access) -> Result<Self, ServerError> {
        let call = access == Access::Procedure;
        let sql = if call {
            "SELECT commit_update($1)"
        } else {
            "UPDATE commit_row SET value = value + 1 WHERE id = $1"
        };
        Ok(Self { statement: link.prepare(sql)?, call })
    }

    pub fn execute(&mut self, link: &mut Link<'_>, request: &Request) -> Result<Outcome, Stop> {
        let Request::Commit { row } = *request else { foreign(request) };
        link.connection.bind(&self.statement).u32(row).run();
        let changed = if self.call {
            link.first(|mut row| row.u32())?.map_or(0, u64::from)
        } else {
            link.run()?
        };
        if changed == 1 { Ok(Outcome::Committed) } else { Err(Stop::Missing("a row")) }
    }
}
