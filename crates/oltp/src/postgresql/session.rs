//! One connection of a worker, and what the accesses have in common.
//!
//! Isolation is READ COMMITTED, the server's default, which is enough: every row that a
//! transaction reads in order to change it is locked by the statement that reads it (UPDATE ...
//! RETURNING), and what is only read never changes (taxes, prices, discounts). Order-Status with
//! one statement per step takes a snapshot (REPEATABLE READ); elsewhere it is one statement. Rows
//! are locked in the order warehouse, district, stock by (warehouse, item), customer. Deliveries of
//! a warehouse take turns by an advisory lock: two at once would wait for the same oldest order,
//! and the second would find it gone and skip the district.

use dbms::Error as ServerError;
use dbms::postgresql::{Connection, Row, Statement, Status};

use super::bank::{Transfer, Update};
use super::own::Transactions as OwnTransactions;
use super::pipelined::Pipelined;
use super::procedure::Procedure;
use super::statement::Statements;
use super::{procedures, server_error};
use crate::Error;
use crate::driver::{Failure, Meter, Outcome, Reply, Session};
use crate::options::Access;
use crate::workload::input::{Input, LINES_MAX, NewOrder, Request};
use crate::workload::{Dataset, Workload};

/// Plans are made once, for any parameters, and go by key: the tables are far larger than what a
/// transaction takes of them, whatever the statistics of a small one say.
const SETTINGS: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; \
    SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off; \
    SET jit = off; SET max_parallel_workers_per_gather = 0; SET client_min_messages = 'warning'; \
    SET default_transaction_isolation = 'read committed'";

/// Of own workloads: the server plans as it is set to.
const OWN_SETTINGS: &str = "SET client_min_messages = 'warning'";

/// Orders with an unused item are no errors: nobody wants their statements in the server's log.
/// Only a superuser may say so.
const QUIET: &str = "SET log_min_error_statement = 'panic'; SET log_min_messages = 'fatal'";

/// First key of our advisory locks: "WEAR". The second is a warehouse.
pub(super) const LOCK_CLASS: i32 = 0x5745_4152;

/// Why a transaction stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// The server refused.
    Server(ServerError),
    /// A row that the workload's rules promise is not there.
    Missing(&'static str),
    /// What an own workload expects is not so.
    Own(String),
}

impl From<ServerError> for Stop {
    fn from(error: ServerError) -> Self {
        Self::Server(error)
    }
}

/// A connection whose waiting is the DBMS's time.
pub(super) struct Link<'m> {
    pub connection: Connection,
    pub meter: &'m Meter,
    /// Whether the statements of a group travel together.
    pipelined: bool,
    /// A BEGIN travels with the next statement.
    begins: bool,
}

impl Link<'_> {
    /// Prepares a statement; the server finds out the types of its parameters.
    pub fn prepare(&mut self, sql: &str) -> Result<Statement, ServerError> {
        self.connection.prepare(sql, &[])
    }

    /// Begins a transaction with the next round trip, as JDBC's driver does: BEGIN has no answer
    /// that a program would wait for.
    pub fn begin(&mut self, begin: &Statement) {
        self.connection.bind(begin).run();
        self.begins = true;
    }

    /// Sends what was bound and waits for the first of the answers.
    #[inline]
    pub fn round_trip(&mut self) -> Result<(), ServerError> {
        let connection = &mut self.connection;
        self.meter.dbms(|| connection.round_trip())?;
        if std::mem::take(&mut self.begins) {
            self.connection.done()?;
        }
        Ok(())
    }

    /// Sends what was bound, one statement; what `read` makes of its first row.
    #[inline]
    pub fn first<T>(
        &mut self,
        read: impl FnOnce(Row<'_>) -> Result<T, ServerError>,
    ) -> Result<Option<T>, ServerError> {
        self.round_trip()?;
        let value = self.connection.first(read)?;
        self.connection.settle()?;
        Ok(value)
    }

    /// Executes the steps `0..count` of a group of statements that do not need each other's
    /// answers, and `end` after them, which ends the transaction: `ask` binds a step, `hear` reads
    /// its answer. Pipelined it is one round trip, else one for each.
    #[inline]
    pub fn group<S>(
        &mut self,
        state: &mut S,
        (count, end): (usize, Option<&Statement>),
        ask: impl Fn(&mut S, &mut Connection, usize),
        hear: impl Fn(&mut S, &mut Connection, usize) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        if !self.pipelined {
            for step in 0..count {
                ask(state, &mut self.connection, step);
                self.round_trip()?;
                hear(state, &mut self.connection, step)?;
                self.connection.settle()?;
            }
            if let Some(end) = end {
                self.connection.bind(end).run();
                self.run()?;
            }
            return Ok(());
        }
        if count == 0 && end.is_none() {
            return Ok(());
        }
        (0..count).for_each(|step| ask(state, &mut self.connection, step));
        if let Some(end) = end {
            self.connection.bind(end).run();
        }
        self.round_trip()?;
        (0..count).try_for_each(|step| hear(state, &mut self.connection, step))?;
        // What ends the transaction may fail like any other statement.
        if end.is_some() {
            self.connection.done()?;
        }
        self.connection.settle()?;
        Ok(())
    }

    /// Sends what was bound, one statement; returns the rows that it changed.
    #[inline]
    pub fn run(&mut self) -> Result<u64, ServerError> {
        self.round_trip()?;
        let rows = self.connection.done()?;
        self.connection.settle()?;
        Ok(rows)
    }
}

/// What every transaction is given.
#[derive(Clone, Copy)]
pub(super) struct Context {
    /// Districts of a warehouse.
    pub districts: u32,
    /// Home warehouse.
    pub warehouse: u32,
    /// The date that it writes.
    pub now_ms: i64,
}

/// Bytes of the next `columns` texts of a row: what a terminal would show.
#[inline]
pub(super) fn text_bytes(row: &mut Row<'_>, columns: usize) -> Result<usize, ServerError> {
    let mut sum = 0;
    for _ in 0..columns {
        sum += std::hint::black_box(row.bytes()?).len();
    }
    Ok(sum)
}

/// A new order's total in cents: rates are ten-thousandths, and the product of two of them is
/// rounded once, half up.
pub(super) fn total(sum: i64, discount: i64, taxes: i64) -> i64 {
    (sum * (10_000 - discount) * (10_000 + taxes) + 50_000_000) / 100_000_000
}

/// A line of a new order as the database gets it.
#[derive(Clone, Copy, Default)]
pub(super) struct Line {
    pub wave: u8,
    pub number: u8,
    pub item: u32,
    pub supply: u32,
    pub quantity: u32,
}

/// The lines of a new order in the order in which their stock is locked: by (warehouse, item).
///
/// A statement changes a row once. Where an order names the same stock twice, the second line is of
/// the second *wave*, which is another run of the statement.
pub(super) struct Lines {
    sorted: [Line; LINES_MAX],
    count: usize,
    pub waves: u8,
}

impl Lines {
    pub fn of(order: &NewOrder) -> Self {
        let mut lines = [Line::default(); LINES_MAX];
        for (k, (line, ordered)) in lines.iter_mut().zip(order.lines()).enumerate() {
            let number = k as u8 + 1;
            let (item, supply, quantity) = (ordered.item, ordered.supply, ordered.quantity);
            *line = Line { wave: 1, number, item, supply, quantity };
        }
        let used = &mut lines[..order.count];
        used.sort_unstable_by_key(|line| (line.supply, line.item, line.number));
        let mut waves = 1;
        for k in 1..used.len() {
            if (used[k].supply, used[k].item) == (used[k - 1].supply, used[k - 1].item) {
                used[k].wave = used[k - 1].wave + 1;
                waves = waves.max(used[k].wave);
            }
        }
        Self { sorted: lines, count: order.count, waves }
    }

    pub fn all(&self) -> &[Line] {
        &self.sorted[..self.count]
    }

    /// The lines of a wave, in order, at the front of `into`.
    pub fn wave<'a>(&self, wave: u8, into: &'a mut [Line; LINES_MAX]) -> &'a [Line] {
        let mut count = 0;
        for line in self.all().iter().filter(|line| line.wave == wave) {
            into[count] = *line;
            count += 1;
        }
        &into[..count]
    }
}

/// Whether all stock of an order is of its own warehouse.
pub(super) fn all_local(order: &NewOrder, warehouse: u32) -> bool {
    order.lines().iter().all(|line| line.supply == warehouse)
}

/// The transactions of a workload in one access.
enum Transactions {
    Statement(Box<Statements>),
    Pipelined(Box<Pipelined>),
    Procedure(Box<Procedure>),
    Bank(Box<Transfer>),
    Commit(Box<Update>),
    Own(Box<OwnTransactions>),
}

/// One connection of a worker.
pub(super) struct PostgresqlSession<'m> {
    link: Link<'m>,
    place: &'m str,
    districts: u32,
    access: Transactions,
}

impl<'m> PostgresqlSession<'m> {
    pub fn new(
        connection: Connection,
        place: &'m str,
        (dataset, access): (Dataset, Access),
        meter: &'m Meter,
    ) -> Result<Self, Error> {
        let pipelined = access == Access::StatementPipelined;
        let mut link = Link { connection, meter, pipelined, begins: false };
        let access = prepare(&mut link, dataset.workload(), access)
            .map_err(|source| server_error(place, "preparing the transactions", source))?;
        let districts = dataset.scale().map_or(0, |scale| scale.districts);
        Ok(Self { link, place, districts, access })
    }

    fn attempt(&mut self, input: &Input, now_ms: i64, reply: &mut Reply) -> Result<Outcome, Stop> {
        let link = &mut self.link;
        let context = Context { districts: self.districts, warehouse: input.warehouse, now_ms };
        let request = &input.request;
        match &mut self.access {
            Transactions::Statement(all) => all.execute(link, context, request, reply),
            Transactions::Pipelined(all) => all.execute(link, context, request, reply),
            Transactions::Procedure(all) => all.execute(link, context, request, reply),
            Transactions::Bank(transfer) => transfer.execute(link, context, request, reply),
            Transactions::Commit(update) => update.execute(link, request),
            Transactions::Own(all) => {
                let Request::Own(own) = request else { foreign(request) };
                all.execute(link, own, now_ms)
            }
        }
    }

    /// Ends whatever a transaction that stopped has left open.
    fn end(&mut self) -> Result<(), ServerError> {
        self.link.begins = false;
        let connection = &mut self.link.connection;
        let settled = connection.settle();
        if connection.status() != Status::Idle {
            connection.execute("ROLLBACK")?;
        }
        settled.map(|_| ())
    }
}

fn prepare(
    link: &mut Link<'_>,
    workload: Workload,
    access: Access,
) -> Result<Transactions, ServerError> {
    if let Workload::Own(own) = workload {
        link.connection.execute(OWN_SETTINGS)?;
        return Ok(Transactions::Own(Box::new(OwnTransactions::prepare(link, own, access)?)));
    }
    link.connection.execute(SETTINGS)?;
    // 42501: not a superuser. Then the log has a line for one order in two hundred.
    let _ = link.connection.execute(QUIET);
    Ok(match (workload, access) {
        (Workload::OrderEntry, Access::Statement | Access::StatementPipelined) => {
            Transactions::Statement(Box::new(Statements::prepare(link)?))
        }
        (Workload::OrderEntry, Access::Pipelined) => {
            Transactions::Pipelined(Box::new(Pipelined::prepare(link)?))
        }
        (Workload::OrderEntry, Access::Procedure) => {
            Transactions::Procedure(Box::new(Procedure::prepare(link)?))
        }
        (Workload::Bank, access) => Transactions::Bank(Box::new(Transfer::prepare(link, access)?)),
        (Workload::Commit, access) => {
            Transactions::Commit(Box::new(Update::prepare(link, access)?))
        }
        (Workload::Own(_), _) => unreachable!("it was returned above"),
    })
}

impl Session for PostgresqlSession<'_> {
    fn server_task(&mut self) -> Option<u32> {
        Some(self.link.connection.process())
    }

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
        let ended = self.end();
        let missing = match stop {
            Stop::Missing(what) => what,
            Stop::Own(what) => {
                let path = self.place.into();
                return Err(Failure::Fatal(Error::Inconsistent { path, what }));
            }
            Stop::Server(error) => match (error.sqlstate(), &ended) {
                (Some(procedures::UNUSED_ITEM), Ok(())) => match &input.request {
                    Request::NewOrder(order) if order.rolls_back => return Ok(Outcome::RolledBack),
                    _ => "an item or its stock",
                },
                (Some(procedures::NO_ROW), _) => "a row that a procedure needs",
                // Serialization failure, deadlock.
                (Some("40001" | "40P01"), Ok(())) => return Err(Failure::Retry),
                _ => {
                    let doing = format!("executing {}", input.kind().name());
                    return Err(Failure::Fatal(server_error(self.place, doing, error)));
                }
            },
        };
        let what = format!("{missing} is missing (asked for by {:?})", input.request);
        Err(Failure::Fatal(Error::Inconsistent { path: self.place.into(), what }))
    }
}

/// A request of another workload than the session's.
pub(super) fn foreign(_request: &Request) -> ! {
    unreachable!("a session is given requests of its own workload")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::input::OrderLine;

    #[test]
    fn lines_are_sorted_and_repeated_stock_comes_in_waves() {
        let mut order = NewOrder {
            district: 1,
            customer: 1,
            rolls_back: false,
            count: 5,
            lines: [OrderLine::default(); LINES_MAX],
        };
        let wanted = [(7, 2), (7, 1), (3, 1), (7, 1), (7, 1)];
        for (line, (item, supply)) in order.lines.iter_mut().zip(wanted) {
            *line = OrderLine { item, supply, quantity: 4 };
        }
        let lines = Lines::of(&order);
        let seen: Vec<_> = lines.all().iter().map(|l| (l.number, l.wave)).collect();
        assert_eq!(seen, [(3, 1), (2, 1), (4, 2), (5, 3), (1, 1)]);
        assert_eq!(lines.waves, 3);
        let mut into = [Line::default(); LINES_MAX];
        let first: Vec<_> = lines.wave(1, &mut into).iter().map(|l| l.number).collect();
        assert_eq!(first, [3, 2, 1]);
    }

    #[test]
    fn totals_round_half_up_once() {
        assert_eq!(total(1000, 0, 0), 1000);
        // 0.9 x 1.2 = 1.08
        assert_eq!(total(12_345, 1000, 2000), 13_333);
        assert_eq!(total(1, 5000, 0), 1);
    }
}
