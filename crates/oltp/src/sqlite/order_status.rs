//! Order-Status (TPC-C 5.11 clause 2.6.2): a customer's balance and last order.

use rusqlite::Connection;

use super::customer::FindCustomer;
use super::session::{Context, Prepared, Stop, bind, text_bytes};
use crate::driver::{Outcome, Reply};
use crate::workload::input::Who;

/// The statements.
pub(super) struct OrderStatus<'c> {
    find: FindCustomer<'c>,
    customer: Prepared<'c>,
    last_order: Prepared<'c>,
    lines: Prepared<'c>,
}

impl<'c> OrderStatus<'c> {
    pub fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        let prepare = |sql: &str| Prepared::new(connection, sql);
        Ok(Self {
            find: FindCustomer::prepare(connection)?,
            customer: prepare(
                "SELECT c_id, c_balance, c_first, c_middle, c_last FROM customer WHERE rowid = ?",
            )?,
            last_order: prepare(
                "SELECT o_id, o_entry_d, o_carrier_id FROM orders \
                 WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1",
            )?,
            lines: prepare(
                "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d \
                 FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ? \
                 ORDER BY ol_number",
            )?,
        })
    }

    pub fn execute(
        &mut self,
        context: Context<'_>,
        (district, who): (u32, Who),
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        let Context { meter, warehouse, .. } = context;
        let rowid = self.find.rowid(context, (warehouse, district), who)?;
        bind!(self.customer, rowid);
        let found = self.customer.first(meter, |row| {
            reply.customer = row.get(0)?;
            reply.balance = row.get(1)?;
            reply.text_bytes += text_bytes(row, 2)? + text_bytes(row, 3)? + text_bytes(row, 4)?;
            Ok(())
        })?;
        found.ok_or(Stop::Missing("a customer row"))?;
        bind!(self.last_order, warehouse, district, reply.customer);
        let order = self.last_order.first(meter, |row| {
            let dates: (i64, Option<i64>) = (row.get(1)?, row.get(2)?);
            std::hint::black_box(dates);
            row.get(0)
        })?;
        reply.order = order.ok_or(Stop::Missing("an order of a customer"))?;
        bind!(self.lines, warehouse, district, reply.order);
        self.lines.each(meter, |row| {
            for column in 0..4 {
                std::hint::black_box(row.get::<_, i64>(column)?);
            }
            std::hint::black_box(row.get::<_, Option<i64>>(4)?);
            reply.lines += 1;
            Ok(())
        })?;
        Ok(Outcome::Committed)
    }
}
