//! New-Order and Payment, one statement per step (TPC-C 5.11 clauses 2.4.2 and 2.5.2).

use dbms::Error as ServerError;
use dbms::postgresql::{Bind, Statement};

use super::super::procedures::{dist_of, stock_columns};
use super::super::session::{
    Context, Line, Lines, Link, Stop, all_local, foreign, text_bytes, total,
};
use super::one;
use super::rest::FindCustomer;
use crate::driver::{Outcome, Reply};
use crate::workload::input::{NewOrder as Order, Request};
use crate::workload::text::Text;

/// The statements of New-Order.
pub(super) struct NewOrder {
    warehouse: Statement,
    customer: Statement,
    district: Statement,
    order_row: Statement,
    queue_row: Statement,
    item: Statement,
    stock: Statement,
    line_row: Statement,
}

impl NewOrder {
    pub fn prepare(link: &mut Link<'_>) -> Result<Self, ServerError> {
        Ok(Self {
            warehouse: link.prepare("SELECT w_tax FROM warehouse WHERE w_id = $1")?,
            customer: link.prepare(
                "SELECT c_discount, c_last, c_credit FROM customer \
                 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            )?,
            district: link.prepare(
                "UPDATE district SET d_next_o_id = d_next_o_id + 1 \
                 WHERE d_w_id = $1 AND d_id = $2 RETURNING d_next_o_id - 1, d_tax",
            )?,
            order_row: link
                .prepare("INSERT INTO orders VALUES ($1, $2, $3, $4, $5, NULL, $6, $7)")?,
            queue_row: link.prepare("INSERT INTO new_order VALUES ($1, $2, $3)")?,
            item: link.prepare(
                "SELECT i_price, i_name, i_data LIKE '%ORIGINAL%' FROM item WHERE i_id = $1",
            )?,
            stock: link.prepare(concat!(
                "UPDATE stock SET ",
                stock_columns!(),
                ", s_remote_cnt = s_remote_cnt + $4 FROM (SELECT $5::integer AS quantity) AS line \
                 WHERE s_w_id = $1 AND s_i_id = $2 RETURNING ",
                dist_of!("$3::integer"),
                ", s_data LIKE '%ORIGINAL%'"
            ))?,
            line_row: link.prepare(
                "INSERT INTO order_line VALUES ($1, $2, $3, $4, $5, $6, NULL, $7, $8, $9)",
            )?,
        })
    }

    pub fn execute(
        &mut self,
        link: &mut Link<'_>,
        context: Context,
        order: &Order,
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        let (warehouse, district) = (context.warehouse, order.district);
        link.connection.bind(&self.warehouse).u32(warehouse).run();
        let tax = link.first(|mut row| row.decimal(4))?.ok_or(Stop::Missing("a warehouse"))?;
        link.connection.bind(&self.customer).u32(warehouse).u32(district).u32(order.customer).run();
        let (discount, texts) = link
            .first(|mut row| Ok((row.decimal(4)?, text_bytes(&mut row, 2)?)))?
            .ok_or(Stop::Missing("a customer number"))?;
        reply.text_bytes += texts;
        link.connection.bind(&self.district).u32(warehouse).u32(district).run();
        let (number, district_tax) = link
            .first(|mut row| Ok((row.u32()?, row.decimal(4)?)))?
            .ok_or(Stop::Missing("a district"))?;
        self.insert(link, context, order, number)?;
        let (mut sum, mut unused) = (0, false);
        for line in Lines::of(order).all() {
            match self.line(link, context, (number, district), line, reply)? {
                Some(amount) => sum += amount,
                None => unused = true,
            }
        }
        if unused {
            // Clause 2.4.2.3: after all other lines.
            return Ok(Outcome::RolledBack);
        }
        reply.order = number;
        reply.customer = order.customer;
        reply.total = total(sum, discount, tax + district_tax);
        Ok(Outcome::Committed)
    }

    fn insert(
        &self,
        link: &mut Link<'_>,
        context: Context,
        order: &Order,
        number: u32,
    ) -> Result<(), Stop> {
        let warehouse = context.warehouse;
        link.connection
            .bind(&self.order_row)
            .u32(number)
            .u32(order.district)
            .u32(warehouse)
            .u32(order.customer)
            .timestamp_ms(context.now_ms)
            .u32(order.count as u32)
            .u32(u32::from(all_local(order, warehouse)))
            .run();
        link.run()?;
        link.connection.bind(&self.queue_row).u32(number).u32(order.district).u32(warehouse).run();
        link.run()?;
        Ok(())
    }

    /// One line; its amount in cents, or nothing where the item is unused.
    fn line(
        &self,
        link: &mut Link<'_>,
        context: Context,
        (number, district): (u32, u32),
        line: &Line,
        reply: &mut Reply,
    ) -> Result<Option<i64>, Stop> {
        let warehouse = context.warehouse;
        link.connection.bind(&self.item).u32(line.item).run();
        let item =
            link.first(|mut row| Ok((row.decimal(2)?, text_bytes(&mut row, 1)?, row.bool()?)))?;
        let Some((price, texts, item_original)) = item else { return Ok(None) };
        let amount = i64::from(line.quantity) * price;
        link.connection
            .bind(&self.stock)
            .u32(line.supply)
            .u32(line.item)
            .u32(district)
            .u32(u32::from(line.supply != warehouse))
            .u32(line.quantity)
            .run();
        let mut dist = Text::<24>::default();
        let original = link
            .first(|mut row| {
                dist.push(row.bytes()?);
                row.bool()
            })?
            .ok_or(Stop::Missing("a stock row"))?;
        reply.text_bytes += texts + usize::from(item_original && original);
        link.connection
            .bind(&self.line_row)
            .u32(number)
            .u32(district)
            .u32(warehouse)
            .u32(u32::from(line.number))
            .u32(line.item)
            .u32(line.supply)
            .u32(line.quantity)
            .decimal(amount, 2)
            .text(dist.as_str())
            .run();
        link.run()?;
        Ok(Some(amount))
    }
}

/// The statements of Payment.
pub(super) struct Payment {
    find: FindCustomer,
    warehouse: Statement,
    district: Statement,
    customer: Statement,
    update_customer: Statement,
    update_customer_and_data: Statement,
    history: Statement,
}

impl Payment {
    pub fn prepare(link: &mut Link<'_>) -> Result<Self, ServerError> {
        Ok(Self {
            find: FindCustomer::prepare(link)?,
            warehouse: link.prepare(
                "UPDATE warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1 \
                 RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip",
            )?,
            district: link.prepare(
                "UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2 \
                 RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip",
            )?,
            customer: link.prepare(
                "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, \
                 c_phone, c_credit, c_since, c_credit_lim, c_discount, c_balance FROM customer \
                 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 FOR NO KEY UPDATE",
            )?,
            update_customer: link.prepare(
                "UPDATE customer SET c_balance = c_balance - $4, \
                 c_ytd_payment = c_ytd_payment + $4, c_payment_cnt = c_payment_cnt + 1 \
                 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            )?,
            // Clause 2.5.2.2: written in front of C_DATA, which is cut at 500 characters.
            update_customer_and_data: link.prepare(
                "UPDATE customer SET c_balance = c_balance - $4, \
                 c_ytd_payment = c_ytd_payment + $4, c_payment_cnt = c_payment_cnt + 1, \
                 c_data = left(concat_ws(' ', c_id, c_d_id, c_w_id, $5::integer, $6::integer, \
                 $4::numeric(6,2)) || '|' || c_data, 500) \
                 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            )?,
            history: link.prepare("INSERT INTO history VALUES ($1, $2, $3, $4, $5, $6, $7, $8)")?,
        })
    }

    pub fn execute(
        &mut self,
        link: &mut Link<'_>,
        context: Context,
        request: &Request,
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        let Request::Payment { district, customer_warehouse, customer_district, who, amount } =
            *request
        else {
            foreign(request)
        };
        let warehouse = context.warehouse;
        let amount = i64::from(amount);
        // H_DATA: W_NAME, four spaces, D_NAME.
        let mut data = Text::<24>::default();
        link.connection.bind(&self.warehouse).u32(warehouse).decimal(amount, 2).run();
        place(link, &mut data, reply, "a warehouse")?;
        data.push(b"    ");
        let district_row = link.connection.bind(&self.district).u32(warehouse).u32(district);
        district_row.decimal(amount, 2).run();
        place(link, &mut data, reply, "a district")?;
        let home = (customer_warehouse, customer_district);
        let customer = self.find.number(link, home, who)?;
        fn key(bind: Bind<'_>, (warehouse, district): (u32, u32), customer: u32) -> Bind<'_> {
            bind.u32(warehouse).u32(district).u32(customer)
        }
        key(link.connection.bind(&self.customer), home, customer).run();
        let (texts, bad_credit) = link
            .first(|mut row| {
                let texts = text_bytes(&mut row, 9)?;
                let credit = row.bytes()?;
                Ok((texts + credit.len(), credit == b"BC"))
            })?
            .ok_or(Stop::Missing("a customer row"))?;
        reply.text_bytes += texts;
        reply.customer = customer;
        if bad_credit {
            let update = link.connection.bind(&self.update_customer_and_data);
            let update = key(update, home, customer).decimal(amount, 2);
            update.u32(district).u32(warehouse).run();
        } else {
            let update = link.connection.bind(&self.update_customer);
            key(update, home, customer).decimal(amount, 2).run();
        }
        one(link.run()?, "a customer row")?;
        link.connection
            .bind(&self.history)
            .u32(customer)
            .u32(customer_district)
            .u32(customer_warehouse)
            .u32(district)
            .u32(warehouse)
            .timestamp_ms(context.now_ms)
            .decimal(amount, 2)
            .text(data.as_str())
            .run();
        link.run()?;
        Ok(Outcome::Committed)
    }
}

/// Name and address of a warehouse or district: the name goes into H_DATA, the rest to the
/// terminal.
fn place(
    link: &mut Link<'_>,
    data: &mut Text<24>,
    reply: &mut Reply,
    what: &'static str,
) -> Result<(), Stop> {
    let texts = link.first(|mut row| {
        data.push(row.bytes()?);
        text_bytes(&mut row, 5)
    })?;
    reply.text_bytes += texts.ok_or(Stop::Missing(what))?;
    Ok(())
}
