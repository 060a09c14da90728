//! Delivery (TPC-C 5.11 clause 2.7.4): the oldest undelivered order of each district.
//!
//! All districts of a request are one database transaction, which clause 2.7.2.4 leaves open.

use rusqlite::Connection;

use super::session::{Context, Prepared, Stop, bind};
use crate::driver::{Outcome, Reply};

/// The statements.
pub(super) struct Delivery<'c> {
    oldest: Prepared<'c>,
    delete: Prepared<'c>,
    customer_of_order: Prepared<'c>,
    set_carrier: Prepared<'c>,
    set_dates: Prepared<'c>,
    amount: Prepared<'c>,
    update_customer: Prepared<'c>,
}

impl<'c> Delivery<'c> {
    pub fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        let prepare = |sql: &str| Prepared::new(connection, sql);
        Ok(Self {
            oldest: prepare(
                "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? \
                 ORDER BY no_o_id LIMIT 1",
            )?,
            delete: prepare(
                "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?",
            )?,
            customer_of_order: prepare(
                "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
            )?,
            set_carrier: prepare(
                "UPDATE orders SET o_carrier_id = ?4 \
                 WHERE o_w_id = ?1 AND o_d_id = ?2 AND o_id = ?3",
            )?,
            set_dates: prepare(
                "UPDATE order_line SET ol_delivery_d = ?4 \
                 WHERE ol_w_id = ?1 AND ol_d_id = ?2 AND ol_o_id = ?3",
            )?,
            amount: prepare(
                "SELECT sum(ol_amount) FROM order_line \
                 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            )?,
            update_customer: prepare(
                "UPDATE customer SET c_balance = c_balance + ?4, \
                 c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = ?1 AND c_d_id = ?2 AND c_id = ?3",
            )?,
        })
    }

    pub fn execute(
        &mut self,
        context: Context<'_>,
        carrier: u32,
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        let Context { meter, warehouse, now_ms, districts } = context;
        for district in 1..=districts {
            bind!(self.oldest, warehouse, district);
            let oldest: Option<u32> = self.oldest.first(meter, |row| row.get(0))?;
            // Clause 2.7.4.2: a district without an undelivered order is skipped, and counted.
            let Some(order) = oldest else { continue };
            bind!(self.delete, warehouse, district, order);
            self.delete.run(meter)?;
            bind!(self.customer_of_order, warehouse, district, order);
            let customer: u32 = self
                .customer_of_order
                .first(meter, |row| row.get(0))?
                .ok_or(Stop::Missing("the order of a new order"))?;
            bind!(self.set_carrier, warehouse, district, order, carrier);
            self.set_carrier.run(meter)?;
            bind!(self.set_dates, warehouse, district, order, now_ms);
            self.set_dates.run(meter)?;
            bind!(self.amount, warehouse, district, order);
            let amount: Option<i64> = self.amount.first(meter, |row| row.get(0))?.flatten();
            let amount = amount.ok_or(Stop::Missing("the lines of an order"))?;
            bind!(self.update_customer, warehouse, district, customer, amount);
            self.update_customer.run(meter)?;
            reply.delivered[district as usize - 1] = order;
        }
        Ok(Outcome::Committed)
    }
}
