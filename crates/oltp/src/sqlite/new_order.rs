//! New-Order (TPC-C 5.11 clause 2.4.2).

use rusqlite::{Connection, Row};

use super::session::{Context, Prepared, Stop, bind, text_bytes};
use crate::driver::{Outcome, Reply};
use crate::scale::DISTRICTS_MAX;
use crate::workload::input::{NewOrder as Order, OrderLine};

/// The statements.
pub(super) struct NewOrder<'c> {
    warehouse: Prepared<'c>,
    district: Prepared<'c>,
    next_order: Prepared<'c>,
    customer: Prepared<'c>,
    order_row: Prepared<'c>,
    queue_row: Prepared<'c>,
    item: Prepared<'c>,
    /// One per district: its S_DIST_xx column.
    stock: Vec<Prepared<'c>>,
    update_stock: Prepared<'c>,
    line_row: Prepared<'c>,
}

/// What a line needs of its order.
#[derive(Clone, Copy)]
struct Place {
    order: u32,
    district: u32,
    number: usize,
}

impl<'c> NewOrder<'c> {
    pub fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        let prepare = |sql: &str| Prepared::new(connection, sql);
        let stock = (1..=DISTRICTS_MAX).map(|district| {
            prepare(&format!(
                "SELECT rowid, s_quantity, s_dist_{district:02}, s_data FROM stock \
                 WHERE s_w_id = ? AND s_i_id = ?"
            ))
        });
        Ok(Self {
            warehouse: prepare("SELECT w_tax FROM warehouse WHERE w_id = ?")?,
            district: prepare(
                "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?",
            )?,
            next_order: prepare(
                "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?",
            )?,
            customer: prepare(
                "SELECT c_discount, c_last, c_credit FROM customer \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            )?,
            order_row: prepare("INSERT INTO orders VALUES (?, ?, ?, ?, ?, NULL, ?, ?)")?,
            queue_row: prepare("INSERT INTO new_order VALUES (?, ?, ?)")?,
            item: prepare("SELECT i_price, i_name, i_data FROM item WHERE i_id = ?")?,
            stock: stock.collect::<rusqlite::Result<_>>()?,
            update_stock: prepare(
                "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, \
                 s_order_cnt = s_order_cnt + 1, \
                 s_remote_cnt = s_remote_cnt + ? WHERE rowid = ?",
            )?,
            line_row: prepare("INSERT INTO order_line VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, ?)")?,
        })
    }

    pub fn execute(
        &mut self,
        context: Context<'_>,
        order: &Order,
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        let Context { meter, warehouse, .. } = context;
        bind!(self.warehouse, warehouse);
        let warehouse_tax: i64 =
            self.warehouse.first(meter, |row| row.get(0))?.ok_or(Stop::Missing("a warehouse"))?;
        bind!(self.district, warehouse, order.district);
        let (district_tax, number): (i64, u32) = self
            .district
            .first(meter, |row| Ok((row.get(0)?, row.get(1)?)))?
            .ok_or(Stop::Missing("a district"))?;
        bind!(self.next_order, warehouse, order.district);
        self.next_order.run(meter)?;
        bind!(self.customer, warehouse, order.district, order.customer);
        let (discount, texts): (i64, usize) = self
            .customer
            .first(meter, |row| Ok((row.get(0)?, text_bytes(row, 1)? + text_bytes(row, 2)?)))?
            .ok_or(Stop::Missing("a customer number"))?;
        reply.text_bytes += texts;
        self.insert(context, order, number)?;
        let mut sum = 0;
        for (k, line) in order.lines().iter().enumerate() {
            let place = Place { order: number, district: order.district, number: k + 1 };
            match self.line(context, place, line, reply)? {
                Some(amount) => sum += amount,
                // Clause 2.4.2.3: an unused item ends the transaction after all lines before it.
                None => return Ok(Outcome::RolledBack),
            }
        }
        reply.order = number;
        reply.customer = order.customer;
        // Rates are ten-thousandths: the product of two of them is rounded once, half up.
        let taxed = sum * (10_000 - discount) * (10_000 + warehouse_tax + district_tax);
        reply.total = (taxed + 50_000_000) / 100_000_000;
        Ok(Outcome::Committed)
    }

    fn insert(&mut self, context: Context<'_>, order: &Order, number: u32) -> Result<(), Stop> {
        let Context { meter, warehouse, now_ms, .. } = context;
        let all_local = order.lines().iter().all(|line| line.supply == warehouse);
        bind!(
            self.order_row,
            number,
            order.district,
            warehouse,
            order.customer,
            now_ms,
            order.count as i64,
            i64::from(all_local),
        );
        self.order_row.run(meter)?;
        bind!(self.queue_row, number, order.district, warehouse);
        self.queue_row.run(meter)?;
        Ok(())
    }

    /// One line; its amount in cents, or nothing where the item is unused.
    fn line(
        &mut self,
        context: Context<'_>,
        place: Place,
        line: &OrderLine,
        reply: &mut Reply,
    ) -> Result<Option<i64>, Stop> {
        let Context { meter, warehouse, .. } = context;
        bind!(self.item, line.item);
        let item = self.item.first(meter, |row| {
            let price: i64 = row.get(0)?;
            Ok((price, text_bytes(row, 1)?, original(row, 2)?))
        })?;
        let Some((price, texts, item_original)) = item else { return Ok(None) };
        let amount = i64::from(line.quantity) * price;

        let select = &mut self.stock[place.district as usize - 1];
        bind!(select, line.supply, line.item);
        let insert = &mut self.line_row;
        // The district's text goes from the stock row into the order line without a copy of ours.
        let (rowid, quantity, brand) = select
            .first(meter, |row| {
                insert.0.raw_bind_parameter(9, row.get_ref(2)?.as_str()?)?;
                let (rowid, quantity): (i64, i64) = (row.get(0)?, row.get(1)?);
                Ok((rowid, quantity, item_original && original(row, 3)?))
            })?
            .ok_or(Stop::Missing("a stock row"))?;
        reply.text_bytes += texts + usize::from(brand);

        let ordered = i64::from(line.quantity);
        // Clause 2.4.2.2: at least ten remain, or 91 are added.
        let left =
            if quantity >= ordered + 10 { quantity - ordered } else { quantity - ordered + 91 };
        bind!(self.update_stock, left, ordered, i64::from(line.supply != warehouse), rowid);
        self.update_stock.run(meter)?;
        bind!(
            self.line_row,
            place.order,
            place.district,
            warehouse,
            place.number as i64,
            line.item,
            line.supply,
            ordered,
            amount,
        );
        self.line_row.run(meter)?;
        Ok(Some(amount))
    }
}

/// Whether a data column says ORIGINAL (brand-generic "B").
fn original(row: &Row<'_>, column: usize) -> rusqlite::Result<bool> {
    let data = row.get_ref(column)?.as_bytes()?;
    Ok(data.windows(8).any(|part| part == b"ORIGINAL"))
}
