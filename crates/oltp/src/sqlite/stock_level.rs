//! Stock-Level (TPC-C 5.11 clause 2.8.2): distinct items of a district's last 20 orders whose stock
//! is below a threshold.

use rusqlite::Connection;

use super::session::{Context, Prepared, Stop, bind};
use crate::driver::{Outcome, Reply};

/// The statements.
pub(super) struct StockLevel<'c> {
    next_order: Prepared<'c>,
    low_stock: Prepared<'c>,
}

impl<'c> StockLevel<'c> {
    pub fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            next_order: Prepared::new(
                connection,
                "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?",
            )?,
            // CROSS JOIN fixes the order of the loops: the few recent lines first, then their
            // stock.
            low_stock: Prepared::new(
                connection,
                "SELECT count(DISTINCT ol_i_id) FROM order_line CROSS JOIN stock \
                 ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
                 WHERE ol_w_id = ?1 AND ol_d_id = ?2 AND ol_o_id < ?3 AND ol_o_id >= ?3 - 20 \
                 AND s_quantity < ?4",
            )?,
        })
    }

    pub fn execute(
        &mut self,
        context: Context<'_>,
        (district, threshold): (u32, u32),
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        let Context { meter, warehouse, .. } = context;
        bind!(self.next_order, warehouse, district);
        let next: u32 =
            self.next_order.first(meter, |row| row.get(0))?.ok_or(Stop::Missing("a district"))?;
        bind!(self.low_stock, warehouse, district, next, threshold);
        let low: Option<u32> = self.low_stock.first(meter, |row| row.get(0))?;
        reply.low_stock = low.ok_or(Stop::Missing("a count"))?;
        Ok(Outcome::Committed)
    }
}
