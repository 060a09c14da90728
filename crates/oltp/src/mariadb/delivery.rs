//! Delivery (TPC-C 5.11 clause 2.7.4), statement by statement: the oldest undelivered order of each
//! district. All districts of a request are one database transaction, which clause 2.7.2.4 leaves
//! open; they are taken in ascending order, so that two deliveries of a warehouse queue up.

use dbms::Error as ServerError;
use dbms::mariadb::{Connection, Parameters, Statement, Type};

use super::link::{Link, Stop, changed, changed_all, one};
use super::session::Context;
use crate::driver::{Outcome, Reply};

/// The statements, and the delivery in work.
pub(super) struct Delivery {
    take: Statement,
    customer_of_order: Statement,
    set_carrier: Statement,
    set_dates: Statement,
    amount: Statement,
    update_customer: Statement,
    work: Work,
}

#[derive(Default)]
struct Work {
    warehouse: u32,
    carrier: u32,
    now_ms: i64,
    /// Number of the order taken in each district; none where there was none.
    orders: [Option<u32>; 10],
    /// The orders taken, close together.
    taken: [Taken; 10],
    /// How many.
    count: usize,
    /// Whether all their customers are changed by one command.
    in_bulk: bool,
}

#[derive(Clone, Copy, Default)]
struct Taken {
    district: u32,
    order: u32,
    customer: u32,
    amount: i64,
}

/// Statements about an order that do not need each other's answers.
const PER_ORDER: usize = 4;

impl Delivery {
    pub fn prepare(link: &mut Link<'_>) -> Result<Self, ServerError> {
        use Type::{DateTime, Decimal, Int, Tiny};
        let mut prepare = |sql: &str, types: &[Type]| link.prepare(sql, types);
        let order = "WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?";
        let lines = "WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
        Ok(Self {
            take: prepare(
                "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? \
                 ORDER BY no_o_id LIMIT 1 RETURNING no_o_id",
                &[Int, Tiny],
            )?,
            customer_of_order: prepare(
                &format!("SELECT o_c_id FROM orders {order}"),
                &[Int, Tiny, Int],
            )?,
            set_carrier: prepare(
                &format!("UPDATE orders SET o_carrier_id = ? {order}"),
                &[Tiny, Int, Tiny, Int],
            )?,
            set_dates: prepare(
                &format!("UPDATE order_line SET ol_delivery_d = ? {lines}"),
                &[DateTime, Int, Tiny, Int],
            )?,
            amount: prepare(
                &format!("SELECT sum(ol_amount) FROM order_line {lines}"),
                &[Int, Tiny, Int],
            )?,
            update_customer: prepare(
                "UPDATE customer SET c_balance = c_balance + ?, \
                 c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                &[Decimal, Int, Tiny, Int],
            )?,
            work: Work::default(),
        })
    }

    pub fn execute(
        &mut self,
        link: &mut Link<'_>,
        context: Context,
        carrier: u32,
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        let Context { warehouse, now_ms, districts } = context;
        let in_bulk = link.in_bulk();
        self.work = Work { warehouse, carrier, now_ms, in_bulk, ..Work::default() };
        link.group(self, districts as usize, Self::queue_take, Self::receive_take)?;
        let mut count = 0;
        for (district, order) in (1..).zip(self.work.orders) {
            // Clause 2.7.4.2: a district without an undelivered order is skipped, and counted.
            let Some(order) = order else { continue };
            self.work.taken[count] = Taken { district, order, ..Taken::default() };
            reply.delivered[district as usize - 1] = order;
            count += 1;
        }
        if count > 0 {
            link.group(self, PER_ORDER * count, Self::queue_order, Self::receive_order)?;
            self.work.count = count;
            let commands = if in_bulk { 1 } else { count };
            link.group(self, commands, Self::queue_customer, Self::receive_customer)?;
        }
        Ok(Outcome::Committed)
    }

    fn queue_take(&mut self, connection: &mut Connection, step: usize) {
        let values = connection.queue(&mut self.take).integer(self.work.warehouse);
        values.integer(step as i64 + 1).finish();
    }

    fn receive_take(&mut self, connection: &mut Connection, step: usize) -> Result<(), Stop> {
        let order = &mut self.work.orders[step];
        connection.receive(&mut self.take, &mut |row| {
            *order = Some(row.number()?);
            Ok(())
        })?;
        Ok(())
    }

    fn queue_order(&mut self, connection: &mut Connection, step: usize) {
        let Work { warehouse, carrier, now_ms, .. } = self.work;
        let Taken { district, order, .. } = self.work.taken[step / PER_ORDER];
        let values = match step % PER_ORDER {
            0 => connection.queue(&mut self.customer_of_order),
            1 => connection.queue(&mut self.set_carrier).integer(carrier),
            2 => connection.queue(&mut self.set_dates).date_time(now_ms),
            _ => connection.queue(&mut self.amount),
        };
        values.integer(warehouse).integer(district).integer(order).finish();
    }

    fn receive_order(&mut self, connection: &mut Connection, step: usize) -> Result<(), Stop> {
        const ORDER: &str = "the order of a new order";
        let taken = &mut self.work.taken[step / PER_ORDER];
        match step % PER_ORDER {
            0 => one(connection, &mut self.customer_of_order, ORDER, &mut |row| {
                taken.customer = row.number()?;
                Ok(())
            }),
            1 => changed(connection, &mut self.set_carrier, ORDER),
            2 => changed(connection, &mut self.set_dates, "the lines of an order"),
            _ => one(connection, &mut self.amount, "the lines of an order", &mut |row| {
                taken.amount = row.scaled(2)?;
                Ok(())
            }),
        }
    }

    /// One customer, or all in one command.
    fn queue_customer(&mut self, connection: &mut Connection, step: usize) {
        let Work { warehouse, taken, count, in_bulk, .. } = &self.work;
        if *in_bulk {
            let mut values = connection.queue_bulk(&self.update_customer);
            for taken in &taken[..*count] {
                values = put(values, *warehouse, taken);
            }
            values.finish();
        } else {
            put(connection.queue(&mut self.update_customer), *warehouse, &taken[step]).finish();
        }
    }

    fn receive_customer(&mut self, connection: &mut Connection, _: usize) -> Result<(), Stop> {
        let count = if self.work.in_bulk { self.work.count } else { 1 };
        changed_all(connection, &mut self.update_customer, count, "the customer of an order")
    }
}

fn put<'c>(values: Parameters<'c>, warehouse: u32, taken: &Taken) -> Parameters<'c> {
    let values = values.scaled(taken.amount, 2).integer(warehouse);
    values.integer(taken.district).integer(taken.customer)
}
