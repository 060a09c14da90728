//! Order-Status (TPC-C 5.11 clause 2.6.2), statement by statement, in one snapshot.

use dbms::Error as ServerError;
use dbms::mariadb::{Connection, Statement, Type};

use super::customer::{FindCustomer, Named};
use super::link::{Link, Stop, one, texts_bytes};
use super::session::Context;
use crate::driver::{Outcome, Reply};
use crate::workload::input::Who;

/// What the transaction begins with; the session's own level is READ COMMITTED.
pub(super) const SNAPSHOT: &str = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY";

/// The statements, and the question in work.
pub(super) struct OrderStatus {
    find: FindCustomer,
    customer: Statement,
    last_order: Statement,
    lines: Statement,
    warehouse: u32,
    district: u32,
    who: Who,
    reply: Reply,
}

impl OrderStatus {
    pub fn prepare(link: &mut Link<'_>) -> Result<Self, ServerError> {
        use Type::{Int, Tiny};
        let find = FindCustomer::prepare(link)?;
        let mut prepare = |sql: &str| link.prepare(sql, &[Int, Tiny, Int]);
        Ok(Self {
            find,
            customer: prepare(
                "SELECT c_balance, c_first, c_middle, c_last FROM customer \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
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
            warehouse: 0,
            district: 0,
            who: Who::Id(0),
            reply: Reply::default(),
        })
    }

    pub fn execute(
        &mut self,
        link: &mut Link<'_>,
        context: Context,
        (district, who): (u32, Who),
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        (self.warehouse, self.district, self.who) = (context.warehouse, district, who);
        self.reply = Reply::default();
        match who {
            Who::Id(customer) => self.reply.customer = customer,
            Who::LastName(_) => link.group(self, 2, Self::queue_find, Self::receive_find)?,
        }
        // The snapshot is asked for with the first statement of the transaction.
        let first = usize::from(matches!(who, Who::LastName(_)));
        link.group(
            self,
            3 - first,
            |status, connection, step| status.queue_heads(connection, step + first),
            |status, connection, step| status.receive_heads(connection, step + first),
        )?;
        link.group(self, 1, Self::queue_lines, Self::receive_lines)?;
        *reply = self.reply;
        Ok(Outcome::Committed)
    }

    fn queue_find(&mut self, connection: &mut Connection, step: usize) {
        let (warehouse, district) = (self.warehouse, self.district);
        match self.who {
            Who::LastName(name) if step == 1 => {
                self.find.queue(connection, Named { warehouse, district, name });
            }
            _ => connection.queue_text(SNAPSHOT),
        }
    }

    fn receive_find(&mut self, connection: &mut Connection, step: usize) -> Result<(), Stop> {
        if step == 0 {
            connection.receive_text(&mut |_| Ok(()))?;
        } else {
            self.reply.customer = self.find.receive(connection)?;
        }
        Ok(())
    }

    /// Snapshot, customer, last order.
    fn queue_heads(&mut self, connection: &mut Connection, step: usize) {
        let select = match step {
            0 => return connection.queue_text(SNAPSHOT),
            1 => &mut self.customer,
            _ => &mut self.last_order,
        };
        let values = connection.queue(select).integer(self.warehouse);
        values.integer(self.district).integer(self.reply.customer).finish();
    }

    fn receive_heads(&mut self, connection: &mut Connection, step: usize) -> Result<(), Stop> {
        let reply = &mut self.reply;
        match step {
            0 => connection.receive_text(&mut |_| Ok(())).map(drop).map_err(Stop::from),
            1 => one(connection, &mut self.customer, "a customer number", &mut |row| {
                reply.balance = row.scaled(2)?;
                reply.text_bytes += texts_bytes(row, 3)?;
                Ok(())
            }),
            _ => one(connection, &mut self.last_order, "an order of a customer", &mut |row| {
                reply.order = row.number()?;
                std::hint::black_box((row.bytes()?, row.integer_or_null()?));
                Ok(())
            }),
        }
    }

    fn queue_lines(&mut self, connection: &mut Connection, _: usize) {
        let values = connection.queue(&mut self.lines).integer(self.warehouse);
        values.integer(self.district).integer(self.reply.order).finish();
    }

    fn receive_lines(&mut self, connection: &mut Connection, _: usize) -> Result<(), Stop> {
        let reply = &mut self.reply;
        connection.receive(&mut self.lines, &mut |row| {
            std::hint::black_box((row.integer()?, row.integer()?, row.integer()?));
            std::hint::black_box((row.scaled(2)?, row.bytes_or_null()?));
            reply.lines += 1;
            Ok(())
        })?;
        Ok(())
    }
}
