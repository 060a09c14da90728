//! Statement access: one prepared statement per step, COMMIT included, BEGIN with the first: what a
//! portable program does. One round trip each, or with the access `statement-pipelined` one for all
//! that do not need each other's answers ([`Link::group`]), COMMIT with the last.

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
    ends: Ends,
    new_order: NewOrder,
    payment: Payment,
    order_status: OrderStatus,
    delivery: Delivery,
    stock_level: StockLevel,
}

/// What ends a transaction.
pub(super) struct Ends {
    commit: Statement,
    rollback: Statement,
}

impl Ends {
    fn of(&self, outcome: Outcome) -> &Statement {
        match outcome {
            Outcome::Committed => &self.commit,
            Outcome::RolledBack => &self.rollback,
        }
    }
}

impl Statements {
    pub fn prepare(link: &mut Link<'_>) -> Result<Self, ServerError> {
        Ok(Self {
            begin: link.prepare("BEGIN")?,
            begin_read: link.prepare("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?,
            ends: Ends { commit: link.prepare("COMMIT")?, rollback: link.prepare("ROLLBACK")? },
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
        let ends = &self.ends;
        match request {
            Request::NewOrder(order) => {
                return self.new_order.execute((link, ends), context, order, reply);
            }
            Request::Payment { .. } => {
                self.payment.execute((link, ends), context, request, reply)?;
            }
            Request::OrderStatus { district, who } => {
                self.order_status.execute((link, ends), context, (*district, *who), reply)?;
            }
            Request::Delivery { carrier } => {
                self.delivery.execute((link, ends), context, *carrier, reply)?;
            }
            Request::StockLevel { district, threshold } => {
                let asked = (*district, *threshold);
                self.stock_level.execute((link, ends), context, asked, reply)?;
            }
            Request::Bank { .. } | Request::Commit { .. } | Request::Own(_) => foreign(request),
        }
        Ok(Outcome::Committed)
    }
}

/// One row must have been changed.
fn one(rows: u64, what: &'static str) -> Result<(), Stop> {
    if rows == 1 { Ok(()) } else { Err(Stop::Missing(what)) }
}
