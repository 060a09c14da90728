//! Order-Status, Delivery and Stock-Level, one statement per step (TPC-C 5.11 clauses 2.6.2, 2.7.4
//! and 2.8.2), and finding a customer.

use dbms::Error as ServerError;
use dbms::postgresql::Statement;

use super::super::session::{Context, LOCK_CLASS, Link, Stop, text_bytes};
use super::one;
use crate::driver::{Outcome, Reply};
use crate::workload::input::Who;
use crate::workload::text::last_name;

/// Finds a customer by last name (clauses 2.5.2.2 and 2.6.2.2).
pub(super) struct FindCustomer {
    by_name: Statement,
    /// Reused from one search to the next.
    found: Vec<u32>,
}

impl FindCustomer {
    pub fn prepare(link: &mut Link<'_>) -> Result<Self, ServerError> {
        let by_name = link.prepare(
            "SELECT c_id FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 \
             ORDER BY c_first",
        )?;
        Ok(Self { by_name, found: Vec::with_capacity(64) })
    }

    /// The customer's number: of those with a name, the one at position n / 2 rounded up in the
    /// order of first names.
    pub fn number(
        &mut self,
        link: &mut Link<'_>,
        (warehouse, district): (u32, u32),
        who: Who,
    ) -> Result<u32, Stop> {
        let name = match who {
            Who::Id(customer) => return Ok(customer),
            Who::LastName(number) => last_name(number),
        };
        let bind = link.connection.bind(&self.by_name).u32(warehouse).u32(district);
        bind.text(name.as_str()).run();
        link.round_trip()?;
        self.found.clear();
        link.connection.each(|mut row| -> Result<(), ServerError> {
            self.found.push(row.u32()?);
            Ok(())
        })?;
        link.connection.settle()?;
        let middle = self.found.len().div_ceil(2);
        let found = middle.checked_sub(1).map(|position| self.found[position]);
        found.ok_or(Stop::Missing("a customer name"))
    }
}

/// The statements of Order-Status.
pub(super) struct OrderStatus {
    find: FindCustomer,
    customer: Statement,
    last_order: Statement,
    lines: Statement,
}

impl OrderStatus {
    pub fn prepare(link: &mut Link<'_>) -> Result<Self, ServerError> {
        Ok(Self {
            find: FindCustomer::prepare(link)?,
            customer: link.prepare(
                "SELECT c_balance, c_first, c_middle, c_last FROM customer \
                 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            )?,
            last_order: link.prepare(
                "SELECT o_id, o_entry_d, o_carrier_id FROM orders \
                 WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 ORDER BY o_id DESC LIMIT 1",
            )?,
            lines: link.prepare(
                "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d \
                 FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 \
                 ORDER BY ol_number",
            )?,
        })
    }

    pub fn execute(
        &mut self,
        link: &mut Link<'_>,
        context: Context,
        (district, who): (u32, Who),
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        let warehouse = context.warehouse;
        let customer = self.find.number(link, (warehouse, district), who)?;
        link.connection.bind(&self.customer).u32(warehouse).u32(district).u32(customer).run();
        let (balance, texts) = link
            .first(|mut row| Ok((row.decimal(2)?, text_bytes(&mut row, 3)?)))?
            .ok_or(Stop::Missing("a customer row"))?;
        (reply.customer, reply.balance) = (customer, balance);
        reply.text_bytes += texts;
        link.connection.bind(&self.last_order).u32(warehouse).u32(district).u32(customer).run();
        let order = link.first(|mut row| {
            let order = row.u32()?;
            std::hint::black_box((row.timestamp_ms()?, row.nullable()?));
            Ok(order)
        })?;
        reply.order = order.ok_or(Stop::Missing("an order of a customer"))?;
        link.connection.bind(&self.lines).u32(warehouse).u32(district).u32(reply.order).run();
        link.round_trip()?;
        link.connection.each(|mut row| -> Result<(), ServerError> {
            std::hint::black_box((row.u32()?, row.u32()?, row.u32()?, row.decimal(2)?));
            std::hint::black_box(row.nullable()?);
            reply.lines += 1;
            Ok(())
        })?;
        link.connection.settle()?;
        Ok(Outcome::Committed)
    }
}

/// The statements of Delivery.
pub(super) struct Delivery {
    turn: Statement,
    oldest: Statement,
    delete: Statement,
    set_carrier: Statement,
    set_dates: Statement,
    amount: Statement,
    customer: Statement,
}

impl Delivery {
    pub fn prepare(link: &mut Link<'_>) -> Result<Self, ServerError> {
        Ok(Self {
            turn: link.prepare("SELECT pg_advisory_xact_lock($1::integer, $2::integer)")?,
            oldest: link.prepare(
                "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 \
                 ORDER BY no_o_id LIMIT 1",
            )?,
            delete: link.prepare(
                "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3",
            )?,
            set_carrier: link.prepare(
                "UPDATE orders SET o_carrier_id = $4 \
                 WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 RETURNING o_c_id",
            )?,
            set_dates: link.prepare(
                "UPDATE order_line SET ol_delivery_d = $4 \
                 WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
            )?,
            amount: link.prepare(
                "SELECT sum(ol_amount) FROM order_line \
                 WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
            )?,
            customer: link.prepare(
                "UPDATE customer SET c_balance = c_balance + $4, \
                 c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            )?,
        })
    }

    pub fn execute(
        &mut self,
        link: &mut Link<'_>,
        context: Context,
        carrier: u32,
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        let warehouse = context.warehouse;
        link.connection.bind(&self.turn).i32(LOCK_CLASS).u32(warehouse).run();
        link.run()?;
        for district in 1..=context.districts {
            link.connection.bind(&self.oldest).u32(warehouse).u32(district).run();
            // Clause 2.7.4.2: a district without an undelivered order is skipped, and counted.
            let Some(order) = link.first(|mut row| row.u32())? else { continue };
            let key = |link: &mut Link<'_>, statement: &Statement| {
                link.connection.bind(statement).u32(warehouse).u32(district).u32(order).run();
            };
            key(link, &self.delete);
            one(link.run()?, "a new order")?;
            let bind = link.connection.bind(&self.set_carrier).u32(warehouse).u32(district);
            bind.u32(order).u32(carrier).run();
            let customer = link
                .first(|mut row| row.u32())?
                .ok_or(Stop::Missing("the order of a new order"))?;
            let bind = link.connection.bind(&self.set_dates).u32(warehouse).u32(district);
            bind.u32(order).timestamp_ms(context.now_ms).run();
            if link.run()? == 0 {
                return Err(Stop::Missing("the lines of an order"));
            }
            key(link, &self.amount);
            let amount = link
                .first(|mut row| row.decimal(2))?
                .ok_or(Stop::Missing("the lines of an order"))?;
            let bind = link.connection.bind(&self.customer).u32(warehouse).u32(district);
            bind.u32(customer).decimal(amount, 2).run();
            one(link.run()?, "the customer of an order")?;
            reply.delivered[district as usize - 1] = order;
        }
        Ok(Outcome::Committed)
    }
}

/// The statements of Stock-Level.
pub(super) struct StockLevel {
    next_order: Statement,
    low_stock: Statement,
}

impl StockLevel {
    pub fn prepare(link: &mut Link<'_>) -> Result<Self, ServerError> {
        Ok(Self {
            next_order: link
                .prepare("SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2")?,
            low_stock: link.prepare(
                "SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock \
                 ON s_w_id = $1 AND s_i_id = ol_i_id \
                 WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id < $3 AND ol_o_id >= $3 - 20 \
                 AND s_quantity < $4",
            )?,
        })
    }

    pub fn execute(
        &mut self,
        link: &mut Link<'_>,
        context: Context,
        (district, threshold): (u32, u32),
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        let warehouse = context.warehouse;
        link.connection.bind(&self.next_order).u32(warehouse).u32(district).run();
        let next = link.first(|mut row| row.u32())?.ok_or(Stop::Missing("a district"))?;
        let bind = link.connection.bind(&self.low_stock).u32(warehouse).u32(district);
        bind.u32(next).u32(threshold).run();
        let low = link.first(|mut row| row.i64())?.ok_or(Stop::Missing("a count"))?;
        reply.low_stock = low as u32;
        Ok(Outcome::Committed)
    }
}
