//! One session of a worker: the frame of every transaction, and what its failures mean.

use dbms::{Error as ServerError, Login};

use super::bank::{Move, Transfer, Update};
use super::call::Procedures;
use super::delivery::Delivery;
use super::link::{Link, Stop};
use super::new_order::NewOrder;
use super::order_status::OrderStatus;
use super::own::Transactions;
use super::payment::Payment;
use super::stock_level::StockLevel;
use crate::Error;
use crate::driver::{Failure, Meter, Outcome, Reply, Session};
use crate::options::Access;
use crate::workload::input::{Input, Request};
use crate::workload::{Dataset, Workload};

/// What every transaction is given.
#[derive(Clone, Copy)]
pub(super) struct Context {
    /// Home warehouse.
    pub warehouse: u32,
    /// Districts of each warehouse.
    pub districts: u32,
    /// The date that it writes.
    pub now_ms: i64,
}

/// The prepared statements of a workload.
enum Statements {
    OrderEntry(Box<OrderEntry>),
    Bank(Box<Transfer>),
    Commit(Update),
    /// One call per transaction, which commits by itself.
    Procedures(Box<Procedures>),
    Own(Box<Transactions>),
}

/// The five transactions of order entry.
struct OrderEntry {
    new_order: NewOrder,
    payment: Payment,
    order_status: OrderStatus,
    delivery: Delivery,
    stock_level: StockLevel,
}

impl Statements {
    fn prepare(
        link: &mut Link<'_>,
        workload: Workload,
        access: Access,
    ) -> Result<Self, ServerError> {
        if let Workload::Own(own) = workload {
            return Ok(Self::Own(Box::new(Transactions::prepare(link, own)?)));
        }
        if access == Access::Procedure {
            return Ok(Self::Procedures(Box::new(Procedures::prepare(link, workload)?)));
        }
        Ok(match workload {
            Workload::OrderEntry => Self::OrderEntry(Box::new(OrderEntry {
                new_order: NewOrder::prepare(link)?,
                payment: Payment::prepare(link)?,
                order_status: OrderStatus::prepare(link)?,
                delivery: Delivery::prepare(link)?,
                stock_level: StockLevel::prepare(link)?,
            })),
            Workload::Bank => Self::Bank(Box::new(Transfer::prepare(link)?)),
            Workload::Commit => Self::Commit(Update::prepare(link)?),
            Workload::Own(_) => unreachable!("it was returned above"),
        })
    }

    fn execute(
        &mut self,
        link: &mut Link<'_>,
        context: Context,
        request: &Request,
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        let outcome = match (self, *request) {
            (Self::Procedures(all), _) => return all.execute(link, context, request, reply),
            (Self::Own(all), Request::Own(ref own)) => {
                return all.execute(link, own, context.now_ms);
            }
            // Its statement has committed.
            (Self::Commit(update), Request::Commit { row }) => return update.execute(link, row),
            (Self::OrderEntry(all), Request::NewOrder(ref order)) => {
                all.new_order.execute(link, context, order, reply)
            }
            (Self::OrderEntry(all), Request::Payment { .. }) => {
                all.payment.execute(link, context, request, reply)
            }
            (Self::OrderEntry(all), Request::OrderStatus { district, who }) => {
                all.order_status.execute(link, context, (district, who), reply)
            }
            (Self::OrderEntry(all), Request::Delivery { carrier }) => {
                all.delivery.execute(link, context, carrier, reply)
            }
            (Self::OrderEntry(all), Request::StockLevel { district, threshold }) => {
                all.stock_level.execute(link, context, (district, threshold), reply)
            }
            (Self::Bank(transfer), Request::Bank { account, teller, branch, amount }) => {
                let now_ms = context.now_ms;
                transfer.execute(link, Move { account, teller, branch, amount, now_ms }, reply)
            }
            (_, _) => unreachable!("a session is given requests of its own workload"),
        }?;
        link.text(match outcome {
            Outcome::Committed => "COMMIT",
            Outcome::RolledBack => "ROLLBACK",
        })?;
        Ok(outcome)
    }
}

/// One connection of a worker.
pub(super) struct MariadbSession<'m> {
    place: String,
    districts: u32,
    link: Link<'m>,
    statements: Statements,
}

impl<'m> MariadbSession<'m> {
    pub fn open(
        login: &Login,
        place: &str,
        (dataset, access): (Dataset, Access),
        meter: &'m Meter,
    ) -> Result<Self, Error> {
        let failed = |source| super::server_error(place, "preparing the transactions", source);
        let mut link = Link::open(login, meter, access).map_err(failed)?;
        let statements =
            Statements::prepare(&mut link, dataset.workload(), access).map_err(failed)?;
        let districts = dataset.scale().map_or(0, |scale| scale.districts);
        Ok(Self { place: place.to_owned(), districts, link, statements })
    }

    fn fatal(&self, stop: Stop, input: &Input) -> Error {
        match stop {
            Stop::Missing(what) => {
                let what = format!("{what} is missing (asked for by {:?})", input.request);
                Error::Inconsistent { path: self.place.clone().into(), what }
            }
            Stop::Own(what) => Error::Inconsistent { path: self.place.clone().into(), what },
            Stop::Server(ServerError::Server { sqlstate, message, .. }) if sqlstate == "45000" => {
                let what = format!("{message} is missing (asked for by {:?})", input.request);
                Error::Inconsistent { path: self.place.clone().into(), what }
            }
            Stop::Server(source) => {
                let doing = format!("executing {}", input.kind().name());
                super::server_error(&self.place, doing, source)
            }
        }
    }
}

/// Deadlock, and a lock that was waited for too long: another attempt may succeed.
fn passes(error: &ServerError) -> bool {
    matches!(error, ServerError::Server { code: 1213 | 1205, .. })
}

impl Session for MariadbSession<'_> {
    fn server_task(&mut self) -> Option<u32> {
        let mut task = None;
        let sql = "SELECT TID FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()";
        let read = self.link.connection.query(sql, &mut |row| {
            task = Some(row.integer()?);
            Ok(())
        });
        read.ok().and(task).and_then(|task| u32::try_from(task).ok())
    }

    fn execute(
        &mut self,
        input: &Input,
        now_ms: i64,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        *reply = Reply::default();
        let Self { districts, link, statements, .. } = self;
        let context = Context { warehouse: input.warehouse, districts: *districts, now_ms };
        let stop = match statements.execute(link, context, &input.request, reply) {
            Ok(outcome) => return Ok(outcome),
            Err(stop) => stop,
        };
        let rolled_back = self.link.roll_back();
        match stop {
            // A lock timeout leaves the transaction open; it is not any more.
            Stop::Server(error) if passes(&error) && rolled_back.is_ok() => Err(Failure::Retry),
            stop => Err(Failure::Fatal(self.fatal(stop, input))),
        }
    }
}
