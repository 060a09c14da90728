//! One connection with its statements, and the frame of every transaction.
//!
//! Statements are prepared once. The [`Meter`] counts as the DBMS's only what happens inside
//! `sqlite3_step` and `sqlite3_reset`; binding parameters and reading columns count as ours, so the
//! client's share that is reported is an upper bound.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, Row, Statement};

use super::bank::{Move, Transfer};
use super::commit::Update;
use super::delivery::Delivery;
use super::new_order::NewOrder;
use super::order_status::OrderStatus;
use super::own::{Frame, Transactions};
use super::payment::Payment;
use super::stock_level::StockLevel;
use crate::Error;
use crate::driver::{Failure, Meter, Outcome, Reply, Session};
use crate::workload::input::{Input, Request};
use crate::workload::{Dataset, Workload};

/// A prepared statement.
pub(super) struct Prepared<'c>(pub Statement<'c>);

impl<'c> Prepared<'c> {
    pub fn new(connection: &'c Connection, sql: &str) -> rusqlite::Result<Self> {
        connection.prepare(sql).map(Self)
    }

    /// Executes a statement without an answer; returns the rows that it changed.
    pub fn run(&mut self, meter: &Meter) -> rusqlite::Result<usize> {
        meter.dbms(|| self.0.raw_execute())
    }

    /// The first row of the answer, where there is one.
    pub fn first<T>(
        &mut self,
        meter: &Meter,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        let mut rows = self.0.raw_query();
        let value = match meter.dbms(|| rows.next())? {
            Some(row) => Some(read(row)?),
            None => None,
        };
        // Dropping the rows resets the statement: SQLite closes its cursors.
        meter.dbms(|| drop(rows));
        Ok(value)
    }

    /// Every row of the answer.
    pub fn each(
        &mut self,
        meter: &Meter,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let mut rows = self.0.raw_query();
        while let Some(row) = meter.dbms(|| rows.next())? {
            read(row)?;
        }
        Ok(())
    }
}

/// Binds values to the parameters of a prepared statement, in order.
macro_rules! bind {
    ($statement:expr, $($value:expr),+ $(,)?) => {{
        let mut index = 0usize;
        $(
            index += 1;
            $statement.0.raw_bind_parameter(index, $value)?;
        )+
        let _ = index;
    }};
}
pub(super) use bind;

/// Bytes of a text column: what a terminal would show.
#[inline]
pub(super) fn text_bytes(row: &Row<'_>, column: usize) -> rusqlite::Result<usize> {
    Ok(std::hint::black_box(row.get_ref(column)?.as_bytes()?).len())
}

/// Why a transaction stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// SQLite refused.
    Sqlite(rusqlite::Error),
    /// A row that the workload's rules promise is not there.
    Missing(&'static str),
    /// What an own workload expects is not so.
    Own(String),
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// What every transaction is given.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub meter: &'a Meter,
    /// Districts of a warehouse.
    pub districts: u32,
    /// Home warehouse.
    pub warehouse: u32,
    /// The date that it writes.
    pub now_ms: i64,
}

/// One connection of a worker.
pub(super) struct SqliteSession<'c> {
    path: PathBuf,
    dataset: Dataset,
    meter: &'c Meter,
    begin_write: Prepared<'c>,
    begin_read: Prepared<'c>,
    commit: Prepared<'c>,
    rollback: Prepared<'c>,
    statements: Statements<'c>,
}

/// The statements of the workload.
enum Statements<'c> {
    OrderEntry(Box<OrderEntry<'c>>),
    Bank(Box<Transfer<'c>>),
    Commit(Update<'c>),
    Own(Transactions<'c>),
}

/// The five transactions of order entry.
struct OrderEntry<'c> {
    new_order: NewOrder<'c>,
    payment: Payment<'c>,
    order_status: OrderStatus<'c>,
    delivery: Delivery<'c>,
    stock_level: StockLevel<'c>,
}

impl<'c> Statements<'c> {
    fn prepare(connection: &'c Connection, workload: Workload) -> rusqlite::Result<Self> {
        Ok(match workload {
            Workload::OrderEntry => Self::OrderEntry(Box::new(OrderEntry {
                new_order: NewOrder::prepare(connection)?,
                payment: Payment::prepare(connection)?,
                order_status: OrderStatus::prepare(connection)?,
                delivery: Delivery::prepare(connection)?,
                stock_level: StockLevel::prepare(connection)?,
            })),
            Workload::Bank => Self::Bank(Box::new(Transfer::prepare(connection)?)),
            Workload::Commit => Self::Commit(Update::prepare(connection)?),
            Workload::Own(own) => Self::Own(Transactions::prepare(connection, own)?),
        })
    }

    fn execute(
        &mut self,
        context: Context<'_>,
        request: &Request,
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        let Context { meter, now_ms, .. } = context;
        match (self, *request) {
            (Self::OrderEntry(all), Request::NewOrder(ref order)) => {
                all.new_order.execute(context, order, reply)
            }
            (Self::OrderEntry(all), Request::Payment { .. }) => {
                all.payment.execute(context, request, reply)
            }
            (Self::OrderEntry(all), Request::OrderStatus { district, who }) => {
                all.order_status.execute(context, (district, who), reply)
            }
            (Self::OrderEntry(all), Request::Delivery { carrier }) => {
                all.delivery.execute(context, carrier, reply)
            }
            (Self::OrderEntry(all), Request::StockLevel { district, threshold }) => {
                all.stock_level.execute(context, (district, threshold), reply)
            }
            (Self::Bank(transfer), Request::Bank { account, teller, branch, amount }) => {
                let change = Move { account, teller, branch, amount, now_ms };
                transfer.execute(meter, &change, reply)
            }
            (Self::Commit(update), Request::Commit { row }) => update.execute(meter, row),
            (_, _) => unreachable!("a session is given requests of its own workload"),
        }
    }
}

impl<'c> SqliteSession<'c> {
    pub fn new(
        connection: &'c Connection,
        path: &Path,
        dataset: Dataset,
        meter: &'c Meter,
    ) -> Result<Self, Error> {
        Self::prepare(connection, path, dataset, meter)
            .map_err(|source| Error::sqlite(path, "preparing the transactions", source))
    }

    fn prepare(
        connection: &'c Connection,
        path: &Path,
        dataset: Dataset,
        meter: &'c Meter,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            dataset,
            meter,
            begin_write: Prepared::new(connection, "BEGIN IMMEDIATE")?,
            begin_read: Prepared::new(connection, "BEGIN")?,
            commit: Prepared::new(connection, "COMMIT")?,
            rollback: Prepared::new(connection, "ROLLBACK")?,
            statements: Statements::prepare(connection, dataset.workload())?,
        })
    }

    fn attempt(&mut self, input: &Input, now_ms: i64, reply: &mut Reply) -> Result<Outcome, Stop> {
        let districts = self.dataset.scale().map_or(0, |scale| scale.districts);
        let context = Context { meter: self.meter, districts, warehouse: input.warehouse, now_ms };
        let writes = input.kind().writes();
        let begin = if writes { &mut self.begin_write } else { &mut self.begin_read };
        if let (Statements::Own(all), Request::Own(request)) =
            (&mut self.statements, &input.request)
        {
            let (commit, rollback) = (&mut self.commit, &mut self.rollback);
            let mut frame = Frame { begin, commit, rollback };
            return all.execute(self.meter, request, now_ms, &mut frame);
        }
        begin.run(self.meter)?;
        let outcome = self.statements.execute(context, &input.request, reply)?;
        let end = match outcome {
            Outcome::Committed => &mut self.commit,
            Outcome::RolledBack => &mut self.rollback,
        };
        end.run(self.meter)?;
        Ok(outcome)
    }
}

impl Session for SqliteSession<'_> {
    fn execute(
        &mut self,
        input: &Input,
        now_ms: i64,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        *reply = Reply::default();
        let stop = match self.attempt(input, now_ms, reply) {
            Ok(outcome) => return Ok(outcome),
            Err(stop) => stop,
        };
        // Fails where no transaction is open (BEGIN was refused, or SQLite rolled back by itself):
        // either way none is open afterwards.
        let _ = self.rollback.run(self.meter);
        Err(match stop {
            Stop::Missing(what) => {
                let what = format!("{what} is missing (asked for by {:?})", input.request);
                Failure::Fatal(Error::Inconsistent { path: self.path.clone(), what })
            }
            Stop::Own(what) => {
                Failure::Fatal(Error::Inconsistent { path: self.path.clone(), what })
            }
            Stop::Sqlite(source) => {
                let busy = [Some(ErrorCode::DatabaseBusy), Some(ErrorCode::DatabaseLocked)];
                if busy.contains(&source.sqlite_error_code()) {
                    return Err(Failure::Retry);
                }
                let doing = format!("executing {}", input.kind().name());
                Failure::Fatal(Error::sqlite(&self.path, doing, source))
            }
        })
    }
}
