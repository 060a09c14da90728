//! Stock-Level (TPC-C 5.11 clause 2.8.2), statement by statement: distinct items of a district's
//! last 20 orders whose stock is below a threshold. READ COMMITTED is enough for it (clause 3.4.2).

use dbms::Error as ServerError;
use dbms::mariadb::{Statement, Type};

use super::link::{Link, Stop, one};
use super::session::Context;
use crate::driver::{Outcome, Reply};

/// The recent lines first, then their stock: the server's own choice could be all stock rows.
pub(super) const LOW_STOCK: &str = "SELECT count(DISTINCT ol_i_id) FROM order_line STRAIGHT_JOIN \
     stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id";

/// The statements.
pub(super) struct StockLevel {
    next_order: Statement,
    low_stock: Statement,
}

impl StockLevel {
    pub fn prepare(link: &mut Link<'_>) -> Result<Self, ServerError> {
        use Type::{Int, Tiny};
        Ok(Self {
            next_order: link.prepare(
                "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?",
                &[Int, Tiny],
            )?,
            low_stock: link.prepare(
                &format!(
                    "{LOW_STOCK} WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? \
                     AND ol_o_id >= ? AND s_quantity < ?"
                ),
                &[Int, Tiny, Int, Int, Int],
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
        let mut next = 0;
        let values = link.connection.queue(&mut self.next_order);
        values.integer(warehouse).integer(district).finish();
        link.exchange()?;
        one(&mut link.connection, &mut self.next_order, "a district", &mut |row| {
            next = row.number()?;
            Ok(())
        })?;
        let values = link.connection.queue(&mut self.low_stock).integer(warehouse);
        let values = values.integer(district).integer(next).integer(i64::from(next) - 20);
        values.integer(threshold).finish();
        link.exchange()?;
        one(&mut link.connection, &mut self.low_stock, "a count", &mut |row| {
            reply.low_stock = row.number()?;
            Ok(())
        })?;
        Ok(Outcome::Committed)
    }
}
