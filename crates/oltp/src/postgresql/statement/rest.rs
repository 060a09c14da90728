//! Order-Status, Delivery and Stock-Level, one statement per step (TPC-C 5.11 clauses 2.6.2, 2.7.4
//! and 2.8.2), and finding a customer.

use dbms::Error as ServerError;
use dbms::postgresql::{Connection, Statement};

use super::super::session::{Context, LOCK_CLASS, Link, Stop, text_bytes};
use super::{Ends, one};
use crate::driver::{Outcome, Reply};
use crate::scale::DISTRICTS_MAX;
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

    /// Asks for the customers with a name, by its number.
    pub fn ask(&self, connection: &mut Connection, home: (u32, u32), name: u32) {
        let bind = connection.bind(&self.by_name).u32(home.0).u32(home.1);
        bind.text(last_name(name).as_str()).run();
    }

    /// The customer's number: of those with the name, the one at position n / 2 rounded up in the
    /// order of first names.
    pub fn hear(&mut self, connection: &mut Connection) -> Result<u32, Stop> {
        self.found.clear();
        connection.each(|mut row| -> Result<(), ServerError> {
            self.found.push(row.u32()?);
            Ok(())
        })?;
        let middle = self.found.len().div_ceil(2);
        let found = middle.checked_sub(1).map(|position| self.found[position]);
        found.ok_or(Stop::Missing("a customer name"))
    }
}

/// The statements of Order-Status, and the question in work.
pub(super) struct OrderStatus {
    find: FindCustomer,
    customer: Statement,
    last_order: Statement,
    lines: Statement,
    work: StatusWork,
}

/// The question in work.
#[derive(Clone, Copy, Default)]
struct StatusWork {
    warehouse: u32,
    district: u32,
    customer: u32,
    balance: i64,
    text_bytes: usize,
    order: u32,
    lines: u32,
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
            work: StatusWork::default(),
        })
    }

    pub fn execute(
        &mut self,
        (link, ends): (&mut Link<'_>, &Ends),
        context: Context,
        (district, who): (u32, Who),
        reply: &mut Reply,
    ) -> Result<(), Stop> {
        let (customer, name) = match who {
            Who::Id(customer) => (customer, None),
            Who::LastName(name) => (0, Some(name)),
        };
        let warehouse = context.warehouse;
        self.work = StatusWork { warehouse, district, customer, ..StatusWork::default() };
        if let Some(name) = name {
            link.group(
                self,
                (1, None),
                |status, connection, _| {
                    status.find.ask(
                        connection,
                        (status.work.warehouse, status.work.district),
                        name,
                    );
                },
                |status, connection, _| {
                    status.work.customer = status.find.hear(connection)?;
                    Ok(())
                },
            )?;
        }
        link.group(self, (2, None), Self::ask, Self::hear)?;
        let commit = ends.of(Outcome::Committed);
        link.group(self, (1, Some(commit)), Self::ask_lines, Self::hear_lines)?;
        let work = self.work;
        (reply.customer, reply.balance) = (work.customer, work.balance);
        (reply.text_bytes, reply.order, reply.lines) = (work.text_bytes, work.order, work.lines);
        Ok(())
    }

    fn ask(&mut self, connection: &mut Connection, step: usize) {
        let StatusWork { warehouse, district, customer, .. } = self.work;
        let statement = if step == 0 { &self.customer } else { &self.last_order };
        connection.bind(statement).u32(warehouse).u32(district).u32(customer).run();
    }

    fn hear(&mut self, connection: &mut Connection, step: usize) -> Result<(), Stop> {
        let work = &mut self.work;
        if step == 0 {
            let found = connection.first(|mut row| -> Result<_, ServerError> {
                work.balance = row.decimal(2)?;
                work.text_bytes = text_bytes(&mut row, 3)?;
                Ok(())
            })?;
            return found.ok_or(Stop::Missing("a customer row"));
        }
        let order = connection.first(|mut row| -> Result<_, ServerError> {
            let order = row.u32()?;
            std::hint::black_box((row.timestamp_ms()?, row.nullable()?));
            Ok(order)
        })?;
        work.order = order.ok_or(Stop::Missing("an order of a customer"))?;
        Ok(())
    }

    fn ask_lines(&mut self, connection: &mut Connection, _: usize) {
        let StatusWork { warehouse, district, order, .. } = self.work;
        connection.bind(&self.lines).u32(warehouse).u32(district).u32(order).run();
    }

    fn hear_lines(&mut self, connection: &mut Connection, _: usize) -> Result<(), Stop> {
        let work = &mut self.work;
        connection.each(|mut row| -> Result<(), ServerError> {
            std::hint::black_box((row.u32()?, row.u32()?, row.u32()?, row.decimal(2)?));
            std::hint::black_box(row.nullable()?);
            work.lines += 1;
            Ok(())
        })?;
        Ok(())
    }
}

/// The statements of Delivery, and the delivery in work.
pub(super) struct Delivery {
    turn: Statement,
    oldest: Statement,
    delete: Statement,
    set_carrier: Statement,
    set_dates: Statement,
    amount: Statement,
    customer: Statement,
    work: DeliveryWork,
}

/// The delivery in work.
#[derive(Clone, Copy, Default)]
struct DeliveryWork {
    warehouse: u32,
    carrier: u32,
    now_ms: i64,
    taken: [Taken; DISTRICTS_MAX as usize],
    count: usize,
}

/// An order that is delivered.
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
            work: DeliveryWork::default(),
        })
    }

    pub fn execute(
        &mut self,
        (link, ends): (&mut Link<'_>, &Ends),
        context: Context,
        carrier: u32,
        reply: &mut Reply,
    ) -> Result<(), Stop> {
        let Context { warehouse, now_ms, districts } = context;
        self.work = DeliveryWork { warehouse, carrier, now_ms, ..DeliveryWork::default() };
        link.group(self, (1 + districts as usize, None), Self::ask_oldest, Self::hear_oldest)?;
        let count = self.work.count;
        link.group(self, (PER_ORDER * count, None), Self::ask, Self::hear)?;
        let commit = ends.of(Outcome::Committed);
        link.group(
            self,
            (count, Some(commit)),
            |delivery, connection, step| {
                let Taken { district, customer, amount, .. } = delivery.work.taken[step];
                let bind = connection.bind(&delivery.customer).u32(delivery.work.warehouse);
                bind.u32(district).u32(customer).decimal(amount, 2).run();
            },
            |_, connection, _| one(connection.done()?, "the customer of an order"),
        )?;
        for taken in &self.work.taken[..count] {
            reply.delivered[taken.district as usize - 1] = taken.order;
        }
        Ok(())
    }

    /// Waits for its turn, then asks each district for its oldest order.
    fn ask_oldest(&mut self, connection: &mut Connection, step: usize) {
        let warehouse = self.work.warehouse;
        if step == 0 {
            connection.bind(&self.turn).i32(LOCK_CLASS).u32(warehouse).run();
        } else {
            connection.bind(&self.oldest).u32(warehouse).u32(step as u32).run();
        }
    }

    fn hear_oldest(&mut self, connection: &mut Connection, step: usize) -> Result<(), Stop> {
        if step == 0 {
            connection.done()?;
            return Ok(());
        }
        // Clause 2.7.4.2: a district without an undelivered order is skipped, and counted.
        let order = connection.first(|mut row| row.u32())?;
        if let Some(order) = order {
            let district = step as u32;
            self.work.taken[self.work.count] = Taken { district, order, ..Taken::default() };
            self.work.count += 1;
        }
        Ok(())
    }

    fn ask(&mut self, connection: &mut Connection, step: usize) {
        let DeliveryWork { warehouse, carrier, now_ms, .. } = self.work;
        let Taken { district, order, .. } = self.work.taken[step / PER_ORDER];
        let statement = match step % PER_ORDER {
            0 => &self.delete,
            1 => &self.set_carrier,
            2 => &self.set_dates,
            _ => &self.amount,
        };
        let bind = connection.bind(statement).u32(warehouse).u32(district).u32(order);
        match step % PER_ORDER {
            1 => bind.u32(carrier).run(),
            2 => bind.timestamp_ms(now_ms).run(),
            _ => bind.run(),
        }
    }

    fn hear(&mut self, connection: &mut Connection, step: usize) -> Result<(), Stop> {
        let lines = Stop::Missing("the lines of an order");
        let taken = &mut self.work.taken[step / PER_ORDER];
        match step % PER_ORDER {
            0 => one(connection.done()?, "a new order"),
            1 => {
                let customer = connection.first(|mut row| row.u32())?;
                taken.customer = customer.ok_or(Stop::Missing("the order of a new order"))?;
                Ok(())
            }
            2 if connection.done()? == 0 => Err(lines),
            2 => Ok(()),
            _ => {
                taken.amount = connection.first(|mut row| row.decimal(2))?.ok_or(lines)?;
                Ok(())
            }
        }
    }
}

/// The statements of Stock-Level, and the question in work.
pub(super) struct StockLevel {
    next_order: Statement,
    low_stock: Statement,
    work: LevelWork,
}

/// The question in work.
#[derive(Clone, Copy, Default)]
struct LevelWork {
    warehouse: u32,
    district: u32,
    threshold: u32,
    next: u32,
    low: i64,
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
            work: LevelWork::default(),
        })
    }

    pub fn execute(
        &mut self,
        (link, ends): (&mut Link<'_>, &Ends),
        context: Context,
        (district, threshold): (u32, u32),
        reply: &mut Reply,
    ) -> Result<(), Stop> {
        let warehouse = context.warehouse;
        self.work = LevelWork { warehouse, district, threshold, ..LevelWork::default() };
        link.group(
            self,
            (1, None),
            |level, connection, _| {
                let LevelWork { warehouse, district, .. } = level.work;
                connection.bind(&level.next_order).u32(warehouse).u32(district).run();
            },
            |level, connection, _| {
                let next = connection.first(|mut row| row.u32())?;
                level.work.next = next.ok_or(Stop::Missing("a district"))?;
                Ok(())
            },
        )?;
        link.group(
            self,
            (1, Some(ends.of(Outcome::Committed))),
            |level, connection, _| {
                let LevelWork { warehouse, district, threshold, next, .. } = level.work;
                let bind = connection.bind(&level.low_stock).u32(warehouse).u32(district);
                bind.u32(next).u32(threshold).run();
            },
            |level, connection, _| {
                let low = connection.first(|mut row| row.i64())?;
                level.work.low = low.ok_or(Stop::Missing("a count"))?;
                Ok(())
            },
        )?;
        reply.low_stock = self.work.low as u32;
        Ok(())
    }
}
