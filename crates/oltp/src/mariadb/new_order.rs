//! New-Order (TPC-C 5.11 clause 2.4.2), statement by statement.
//!
//! Two groups: everything that is read, and with it the district's next number and the locks on the
//! stock rows; then everything that is written. With the access `pipelined` all items are one query
//! (IN), the changes of all stock rows one bulk execution and all lines another, where the server
//! has it; else each item, stock row and line has a statement of its own. Stock rows are
//! locked in the order of warehouse and item, after the district: two orders cannot wait for each
//! other. Lines keep their numbers.

use dbms::Error as ServerError;
use dbms::mariadb::{Connection, Statement, Type};

use super::link::{Link, Stop, changed, changed_all, one, original, text_bytes};
use super::session::Context;
use crate::driver::{Outcome, Reply};
use crate::scale::DISTRICTS_MAX;
use crate::workload::input::{LINES_MAX, NewOrder as Order, OrderLine};
use crate::workload::text::Text;

/// The statements, and the order in work.
pub(super) struct NewOrder {
    warehouse: Statement,
    next_order: Statement,
    district: Statement,
    customer: Statement,
    item: Statement,
    /// One per number of lines, from [`LINES_MIN`].
    items: Vec<Statement>,
    /// One per district: its S_DIST_xx column.
    stock: Vec<Statement>,
    order_row: Statement,
    queue_row: Statement,
    update_stock: Statement,
    line_row: Statement,
    work: Work,
}

/// What is known of a line.
#[derive(Clone, Copy, Default)]
struct Line {
    /// OL_NUMBER.
    number: u8,
    input: OrderLine,
    /// I_PRICE in cents; none where no item has the number.
    price: Option<i64>,
    item_original: bool,
    /// S_QUANTITY; none where there is no stock row.
    quantity: Option<i64>,
    dist_info: Text<24>,
}

/// The order in work.
#[derive(Default)]
struct Work {
    warehouse: u32,
    district: u32,
    customer: u32,
    now_ms: i64,
    number: u32,
    taxes: i64,
    discount: i64,
    all_local: bool,
    count: usize,
    /// By warehouse and item.
    lines: [Line; LINES_MAX],
    text_bytes: usize,
    /// Statements that read the items: one, or one for each line.
    item_reads: usize,
}

impl Work {
    fn begin(&mut self, context: Context, order: &Order) {
        let Context { warehouse, now_ms, .. } = context;
        (self.warehouse, self.now_ms) = (warehouse, now_ms);
        (self.district, self.customer) = (order.district, order.customer);
        (self.count, self.text_bytes, self.taxes) = (order.count, 0, 0);
        self.all_local = order.lines().iter().all(|line| line.supply == warehouse);
        for (number, (line, input)) in (1..).zip(self.lines.iter_mut().zip(order.lines())) {
            *line = Line { number, input: *input, ..Line::default() };
        }
        self.lines[..self.count]
            .sort_unstable_by_key(|line| (line.input.supply, line.input.item, line.number));
    }

    /// The lines whose item exists: those that are executed.
    fn valid(&self) -> impl Iterator<Item = &Line> {
        self.lines[..self.count].iter().filter(|line| line.price.is_some())
    }

    /// S_QUANTITY after each line, from what the stock rows had before all of them: a stock row of
    /// two lines is taken from twice.
    fn take_stock(&mut self) -> Result<(), Stop> {
        let mut before: Option<(OrderLine, i64)> = None;
        for line in self.lines[..self.count].iter_mut().filter(|line| line.price.is_some()) {
            let OrderLine { item, supply, quantity } = line.input;
            let found = match before {
                Some((last, left)) if (last.item, last.supply) == (item, supply) => left,
                _ => line.quantity.ok_or(Stop::Missing("a stock row"))?,
            };
            let ordered = i64::from(quantity);
            // Clause 2.4.2.2: at least ten remain, or 91 are added.
            let left = if found >= ordered + 10 { found - ordered } else { found - ordered + 91 };
            line.quantity = Some(left);
            before = Some((line.input, left));
        }
        Ok(())
    }
}

/// Fewest lines of an order (clause 2.4.1.3).
const LINES_MIN: usize = 5;

/// Steps of the first group before those that read items.
const READS: usize = 4;

impl NewOrder {
    pub fn prepare(link: &mut Link<'_>) -> Result<Self, ServerError> {
        use Type::{DateTime, Decimal, Int, Text, Tiny};
        let stock = (1..=DISTRICTS_MAX).map(|district| {
            let sql = format!(
                "SELECT s_quantity, s_dist_{district:02}, s_data FROM stock \
                 WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE"
            );
            link.prepare(&sql, &[Int, Int])
        });
        let stock = stock.collect::<Result<_, _>>()?;
        let items = (LINES_MIN..=LINES_MAX).map(|count| {
            let sql = "SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id IN";
            let marks = vec!["?"; count].join(", ");
            link.prepare(&format!("{sql} ({marks})"), &vec![Int; count])
        });
        let items = items.collect::<Result<_, _>>()?;
        let mut prepare = |sql: &str, types: &[Type]| link.prepare(sql, types);
        Ok(Self {
            stock,
            item: prepare("SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id = ?", &[Int])?,
            items,
            warehouse: prepare("SELECT w_tax FROM warehouse WHERE w_id = ?", &[Int])?,
            next_order: prepare(
                "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?",
                &[Int, Tiny],
            )?,
            // After the update: its row is locked, and shows the next order's number.
            district: prepare(
                "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?",
                &[Int, Tiny],
            )?,
            customer: prepare(
                "SELECT c_discount, c_last, c_credit FROM customer \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                &[Int, Tiny, Int],
            )?,
            order_row: prepare(
                "INSERT INTO orders VALUES (?, ?, ?, ?, ?, NULL, ?, ?)",
                &[Int, Tiny, Int, Int, DateTime, Tiny, Tiny],
            )?,
            queue_row: prepare("INSERT INTO new_order VALUES (?, ?, ?)", &[Int, Tiny, Int])?,
            update_stock: prepare(
                "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, \
                 s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? \
                 WHERE s_w_id = ? AND s_i_id = ?",
                &[Int, Int, Tiny, Int, Int],
            )?,
            line_row: prepare(
                "INSERT INTO order_line VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, ?)",
                &[Int, Tiny, Int, Tiny, Int, Int, Tiny, Decimal, Text],
            )?,
            work: Work::default(),
        })
    }

    pub fn execute(
        &mut self,
        link: &mut Link<'_>,
        context: Context,
        order: &Order,
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        self.work.begin(context, order);
        let count = order.count;
        let item_reads = if link.set_based { 1 } else { count };
        self.work.item_reads = item_reads;
        link.group(self, READS + item_reads + count, Self::queue_read, Self::receive_read)?;
        self.work.take_stock()?;
        if link.in_bulk() {
            link.group(self, 4, Self::queue_bulk, Self::receive_bulk)?;
        } else {
            let valid = self.work.valid().count();
            link.group(self, 2 + 2 * valid, Self::queue_write, Self::receive_write)?;
        }
        let work = &self.work;
        reply.text_bytes = work.text_bytes;
        if work.valid().count() < count {
            // Clause 2.4.2.3: an unused item ends the transaction after all other lines.
            return Ok(Outcome::RolledBack);
        }
        let amounts = work.valid().map(amount);
        (reply.order, reply.customer) = (work.number, order.customer);
        reply.total = total(amounts.sum(), work.discount, work.taxes);
        Ok(Outcome::Committed)
    }

    fn queue_read(&mut self, connection: &mut Connection, step: usize) {
        let Work { warehouse, district, customer, count, lines, item_reads, .. } = &self.work;
        let (warehouse, district) = (*warehouse, *district);
        match step {
            0 => connection.queue(&mut self.warehouse).integer(warehouse).finish(),
            1 => {
                let values = connection.queue(&mut self.next_order).integer(warehouse);
                values.integer(district).finish();
            }
            2 => {
                connection.queue(&mut self.district).integer(warehouse).integer(district).finish();
            }
            3 => {
                let values = connection.queue(&mut self.customer).integer(warehouse);
                values.integer(district).integer(*customer).finish();
            }
            READS if *item_reads == 1 => {
                let select = &mut self.items[count - LINES_MIN];
                let values = connection.queue(select);
                let items = lines[..*count].iter().map(|line| line.input.item);
                items.fold(values, dbms::mariadb::Parameters::integer).finish();
            }
            _ if step < READS + item_reads => {
                let item = lines[step - READS].input.item;
                connection.queue(&mut self.item).integer(item).finish();
            }
            _ => {
                let OrderLine { item, supply, .. } = lines[step - READS - item_reads].input;
                let select = &mut self.stock[district as usize - 1];
                connection.queue(select).integer(supply).integer(item).finish();
            }
        }
    }

    fn receive_read(&mut self, connection: &mut Connection, step: usize) -> Result<(), Stop> {
        let work = &mut self.work;
        match step {
            0 => one(connection, &mut self.warehouse, "a warehouse", &mut |row| {
                work.taxes += row.scaled(4)?;
                Ok(())
            }),
            1 => changed(connection, &mut self.next_order, "a district"),
            2 => one(connection, &mut self.district, "a district", &mut |row| {
                work.taxes += row.scaled(4)?;
                work.number = row.number()? - 1;
                Ok(())
            }),
            3 => one(connection, &mut self.customer, "a customer number", &mut |row| {
                work.discount = row.scaled(4)?;
                work.text_bytes += text_bytes(row)? + text_bytes(row)?;
                Ok(())
            }),
            _ if step < READS + work.item_reads => {
                let Work { lines, count, item_reads, text_bytes: read, .. } = work;
                let (select, asked) = match *item_reads {
                    1 => (&mut self.items[*count - LINES_MIN], &mut lines[..*count]),
                    _ => (&mut self.item, &mut lines[step - READS..=step - READS]),
                };
                connection.receive(select, &mut |row| {
                    let (item, price) = (row.number()?, row.scaled(2)?);
                    let (name_bytes, is_original) = (text_bytes(row)?, original(row.bytes()?));
                    // Several lines may name an item; each shows it.
                    for line in asked.iter_mut().filter(|line| line.input.item == item) {
                        (line.price, line.item_original) = (Some(price), is_original);
                        *read += name_bytes;
                    }
                    Ok(())
                })?;
                Ok(())
            }
            _ => {
                let line = &mut work.lines[step - READS - work.item_reads];
                let text_bytes_read = &mut work.text_bytes;
                let select = &mut self.stock[work.district as usize - 1];
                connection.receive(select, &mut |row| {
                    line.quantity = Some(row.integer()?);
                    line.dist_info.clear();
                    line.dist_info.push(row.bytes()?);
                    let brand = line.item_original && original(row.bytes()?);
                    *text_bytes_read += usize::from(brand);
                    Ok(())
                })?;
                Ok(())
            }
        }
    }

    fn queue_order(&mut self, connection: &mut Connection, step: usize) {
        let work = &self.work;
        if step == 0 {
            connection
                .queue(&mut self.order_row)
                .integer(work.number)
                .integer(work.district)
                .integer(work.warehouse)
                .integer(work.customer)
                .date_time(work.now_ms)
                .integer(work.count as i64)
                .integer(work.all_local)
                .finish();
        } else {
            let values = connection.queue(&mut self.queue_row).integer(work.number);
            values.integer(work.district).integer(work.warehouse).finish();
        }
    }

    fn receive_order(&mut self, connection: &mut Connection, step: usize) -> Result<(), Stop> {
        let row = if step == 0 { &mut self.order_row } else { &mut self.queue_row };
        changed(connection, row, "the order that was inserted")
    }

    /// Order and queue row, then update and line of each valid line.
    fn queue_write(&mut self, connection: &mut Connection, step: usize) {
        let Some(step_of_lines) = step.checked_sub(2) else {
            return self.queue_order(connection, step);
        };
        let work = &self.work;
        let Some(line) = work.valid().nth(step_of_lines / 2) else {
            unreachable!("a step beyond the last line");
        };
        if step_of_lines.is_multiple_of(2) {
            put_stock(connection.queue(&mut self.update_stock), work, line).finish();
        } else {
            put_line(connection.queue(&mut self.line_row), work, line).finish();
        }
    }

    fn receive_write(&mut self, connection: &mut Connection, step: usize) -> Result<(), Stop> {
        match step {
            0 | 1 => self.receive_order(connection, step),
            _ if step.is_multiple_of(2) => {
                changed(connection, &mut self.update_stock, "a stock row")
            }
            _ => changed(connection, &mut self.line_row, "the line that was inserted"),
        }
    }

    /// As [`Self::queue_write`], all stock rows in one command and all lines in another.
    fn queue_bulk(&mut self, connection: &mut Connection, step: usize) {
        let work = &self.work;
        match step {
            2 => {
                let values = connection.queue_bulk(&self.update_stock);
                work.valid().fold(values, |values, line| put_stock(values, work, line)).finish();
            }
            3 => {
                let values = connection.queue_bulk(&self.line_row);
                work.valid().fold(values, |values, line| put_line(values, work, line)).finish();
            }
            _ => self.queue_order(connection, step),
        }
    }

    fn receive_bulk(&mut self, connection: &mut Connection, step: usize) -> Result<(), Stop> {
        let valid = self.work.valid().count();
        match step {
            2 => changed_all(connection, &mut self.update_stock, valid, "a stock row"),
            3 => changed_all(connection, &mut self.line_row, valid, "the lines that were inserted"),
            _ => self.receive_order(connection, step),
        }
    }
}

/// OL_AMOUNT in cents.
fn amount(line: &Line) -> i64 {
    i64::from(line.input.quantity) * line.price.unwrap_or(0)
}

/// Rates are ten-thousandths: the product of two of them is rounded once, half up.
pub(super) fn total(amounts: i64, discount: i64, taxes: i64) -> i64 {
    (amounts * (10_000 - discount) * (10_000 + taxes) + 50_000_000) / 100_000_000
}

type Values<'c> = dbms::mariadb::Parameters<'c>;

fn put_stock<'c>(values: Values<'c>, work: &Work, line: &Line) -> Values<'c> {
    let OrderLine { item, supply, quantity } = line.input;
    values
        .integer(line.quantity.unwrap_or(0))
        .integer(quantity)
        .integer(supply != work.warehouse)
        .integer(supply)
        .integer(item)
}

fn put_line<'c>(values: Values<'c>, work: &Work, line: &Line) -> Values<'c> {
    let OrderLine { item, supply, quantity } = line.input;
    values
        .integer(work.number)
        .integer(work.district)
        .integer(work.warehouse)
        .integer(line.number)
        .integer(item)
        .integer(supply)
        .integer(quantity)
        .scaled(amount(line), 2)
        .text(line.dist_info.as_str())
}
