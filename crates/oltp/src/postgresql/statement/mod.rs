//! Statement access: one prepared statement per step, one round trip each, COMMIT included, BEGIN
//! with the first: what a portable program does.

mod entry;
mod rest;

use dbms::Error as ServerError;
use dbms::postgresql::Statement;

use super::session::{Context, Link, Stop, foreign};
use crate::driver::{Outcome, Reply};
use crate::workload::input::Request;
use entry::{NewOrder, Payment};
use rest::{Delivery, OrderStatus, StockLevel};

/// The statements of all five transactions.
pub(super) struct Statements {
    begin: Statement,
    begin_read: Statement,
    commit: Statement,
    rollback: Statement,
    new_order: NewOrder,
    payment: Payment,
    order_status: OrderStatus,
    delivery: Delivery,
    stock_level: StockLevel,
}

impl Statements {
    pub fn prepare(link: &mut Link<'_>) -> Result<Self, ServerError> {
        Ok(Self {
            begin: link.prepare("BEGIN")?,
            begin_read: link.prepare("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?,
            commit: link.prepare("COMMIT")?,
            rollback: link.prepare("ROLLBACK")?,
            new_order: NewOrder::prepare(link)?,
            payment: Payment::prepare(link)?,
            order_status: OrderStatus::prepare(link)?,
            delivery: Delivery::prepare(link)?,
            stock_level: StockLevel::prepare(link)?,
        })
    }

    pub fn execute(
        &mut self,
        link: &mut Link<'_>,
        context: Context,
        request: &Request,
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        let reads = matches!(request, Request::OrderStatus { .. } | Request::StockLevel { .. });
        link.begin(if reads { &self.begin_read } else { &self.begin });
        let outcome = match request {
            Request::NewOrder(order) => self.new_order.execute(link, context, order, reply)?,
            Request::Payment { .. } => self.payment.execute(link, context, request, reply)?,
            Request::OrderStatus { district, who } => {
                self.order_status.execute(link, context, (*district, *who), reply)?
            }
            Request::Delivery { carrier } => {
                self.delivery.execute(link, context, *carrier, reply)?
            }
            Request::StockLevel { district, threshold } => {
                self.stock_level.execute(link, context, (*district, *threshold), reply)?
            }
            Request::Bank { .. } | Request::Commit { .. } | Request::Own(_) => foreign(request),
        };
        let end = match outcome {
            Outcome::Committed => &self.commit,
            Outcome::RolledBack => &self.rollback,
        };
        run(link, end)?;
        Ok(outcome)
    }
}

/// Runs a statement without parameters.
fn run(link: &mut Link<'_>, statement: &Statement) -> Result<(), ServerError> {
    link.connection.bind(statement).run();
    link.run().map(|_| ())
}

/// One row must have been changed.
fn one(rows: u64, what: &'static str) -> Result<(), Stop> {
    if rows == 1 { Ok(()) } else { Err(Stop::Missing(what)) }
}
