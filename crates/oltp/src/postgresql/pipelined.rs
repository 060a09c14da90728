//! Pipelined access: the statements of a transaction in one write, one transaction, one round trip.
//!
//! What a statement needs of an earlier one it looks up by key, or shares a statement with it
//! (data-modifying CTEs), so that nothing has to come back first. The pipeline is the transaction:
//! it commits at its Sync, and an error in it undoes it. That is how a new order with an unused
//! item rolls back: after all other lines, a function raises an error of our own.

use dbms::Error as ServerError;
use dbms::postgresql::{Row, Statement};

use super::procedures::{delivery, dist_of, stock_columns};
use super::session::{
    Context, LOCK_CLASS, Line, Lines, Link, Stop, all_local, foreign, text_bytes, total,
};
use crate::driver::{Outcome, Reply};
use crate::workload::input::{LINES_MAX, NewOrder, Request, Who};
use crate::workload::text::last_name;

/// The middle one of the customers with a name (clause 2.5.2.2), by parameters of the payment and
/// the order status alike.
macro_rules! customer_by_name {
    () => {
        "(SELECT (array_agg(c_id ORDER BY c_first))[(count(*) + 1) / 2] FROM customer \
          WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3)"
    };
}

macro_rules! pay_customer {
    ($customer:expr) => {
        concat!(
            "WITH paid AS (UPDATE customer SET c_balance = c_balance - $4, \
             c_ytd_payment = c_ytd_payment + $4, c_payment_cnt = c_payment_cnt + 1, \
             c_data = CASE c_credit WHEN 'BC' THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, \
             $5::integer, $6::integer, $4::numeric(6,2)) || '|' || c_data, 500) ELSE c_data END \
             WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = ",
            $customer,
            " RETURNING c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, \
             c_zip, c_phone, c_credit, c_since, c_credit_lim, c_discount, c_balance), \
             kept AS (INSERT INTO history SELECT c_id, $2, $1, $5, $6, $7, $4, \
             (SELECT w_name FROM warehouse WHERE w_id = $6) || '    ' || \
             (SELECT d_name FROM district WHERE d_w_id = $6 AND d_id = $5) FROM paid) \
             SELECT * FROM paid"
        )
    };
}

macro_rules! status_of {
    ($customer:expr) => {
        concat!(
            "SELECT c_id, c_balance, c_first, c_middle, c_last, o_id, o_entry_d, o_carrier_id, \
             ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM customer \
             CROSS JOIN LATERAL (SELECT o_id, o_entry_d, o_carrier_id FROM orders \
             WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = c_id ORDER BY o_id DESC LIMIT 1) AS o \
             JOIN order_line ON ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = o_id \
             WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = ",
            $customer,
            " ORDER BY ol_number"
        )
    };
}

/// The statements of all five transactions.
pub(super) struct Pipelined {
    terms: Statement,
    order_rows: Statement,
    lines: Statement,
    pay_warehouse: Statement,
    pay_district: Statement,
    pay_by_number: Statement,
    pay_by_name: Statement,
    status_by_number: Statement,
    status_by_name: Statement,
    turn: Statement,
    deliver: Statement,
    low_stock: Statement,
}

impl Pipelined {
    pub fn prepare(link: &mut Link<'_>) -> Result<Self, ServerError> {
        Ok(Self {
            terms: link.prepare(
                "SELECT w_tax, c_discount, c_last, c_credit FROM warehouse, customer \
                 WHERE w_id = $1 AND c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
            )?,
            order_rows: link.prepare(
                "WITH d AS (UPDATE district SET d_next_o_id = d_next_o_id + 1 \
                 WHERE d_w_id = $1 AND d_id = $2 RETURNING d_next_o_id - 1 AS o, d_tax), \
                 queued AS (INSERT INTO new_order SELECT o, $2, $1 FROM d), \
                 entered AS (INSERT INTO orders SELECT o, $2, $1, $3, $4, NULL, $5, $6 FROM d) \
                 SELECT o, d_tax FROM d",
            )?,
            lines: link.prepare(LINES)?,
            pay_warehouse: link.prepare(
                "UPDATE warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1 \
                 RETURNING w_street_1, w_street_2, w_city, w_state, w_zip",
            )?,
            pay_district: link.prepare(
                "UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2 \
                 RETURNING d_street_1, d_street_2, d_city, d_state, d_zip",
            )?,
            pay_by_number: link.prepare(pay_customer!("$3"))?,
            pay_by_name: link.prepare(pay_customer!(customer_by_name!()))?,
            status_by_number: link.prepare(status_of!("$3"))?,
            status_by_name: link.prepare(status_of!(customer_by_name!()))?,
            turn: link.prepare("SELECT pg_advisory_xact_lock($1::integer, $2::integer)")?,
            deliver: link.prepare(delivery!("$1", "$2::integer", "$3", "$4"))?,
            low_stock: link.prepare(
                "SELECT count(DISTINCT s_i_id) FROM district \
                 JOIN order_line ON ol_w_id = d_w_id AND ol_d_id = d_id \
                 AND ol_o_id < d_next_o_id AND ol_o_id >= d_next_o_id - 20 \
                 JOIN stock ON s_w_id = $1 AND s_i_id = ol_i_id \
                 WHERE d_w_id = $1 AND d_id = $2 AND s_quantity < $3",
            )?,
        })
    }

    pub fn execute(
        &mut self,
        link: &mut Link<'_>,
        context: Context,
        request: &Request,
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        match request {
            Request::NewOrder(order) => self.new_order(link, context, order, reply)?,
            Request::Payment { .. } => self.payment(link, context, request, reply)?,
            Request::OrderStatus { district, who } => {
                self.order_status(link, context, (*district, *who), reply)?;
            }
            Request::Delivery { carrier } => self.delivery(link, context, *carrier, reply)?,
            Request::StockLevel { district, threshold } => {
                let bind = link.connection.bind(&self.low_stock).u32(context.warehouse);
                bind.u32(*district).u32(*threshold).run();
                let low = link.first(|mut row| row.i64())?.ok_or(Stop::Missing("a count"))?;
                reply.low_stock = low as u32;
            }
            Request::Bank { .. } | Request::Commit { .. } | Request::Own(_) => foreign(request),
        }
        Ok(Outcome::Committed)
    }

    fn new_order(
        &mut self,
        link: &mut Link<'_>,
        context: Context,
        order: &NewOrder,
        reply: &mut Reply,
    ) -> Result<(), Stop> {
        let Context { warehouse, now_ms, .. } = context;
        let (district, customer) = (order.district, order.customer);
        let connection = &mut link.connection;
        connection.bind(&self.terms).u32(warehouse).u32(district).u32(customer).run();
        let rows = connection.bind(&self.order_rows).u32(warehouse).u32(district).u32(customer);
        let rows = rows.timestamp_ms(now_ms).u32(order.count as u32);
        rows.u32(u32::from(all_local(order, warehouse))).run();
        let lines = Lines::of(order);
        let mut wave = [Line::default(); LINES_MAX];
        for number in 1..=lines.waves {
            let part = lines.wave(number, &mut wave);
            let values = |value: fn(&Line) -> u32| part.iter().map(move |line| value(line) as i32);
            let bind = connection.bind(&self.lines).u32(warehouse).u32(district);
            let bind = bind.i32s(values(|line| u32::from(line.number)));
            let bind = bind.i32s(values(|line| line.item)).i32s(values(|line| line.supply));
            bind.i32s(values(|line| line.quantity)).run();
        }
        link.round_trip()?;
        let connection = &mut link.connection;
        let (tax, discount, texts) = connection
            .first(|mut row| -> Result<_, ServerError> {
                Ok((row.decimal(4)?, row.decimal(4)?, text_bytes(&mut row, 2)?))
            })?
            .ok_or(Stop::Missing("a warehouse or a customer number"))?;
        let (entered, district_tax) = connection
            .first(|mut row| -> Result<_, ServerError> { Ok((row.u32()?, row.decimal(4)?)) })?
            .ok_or(Stop::Missing("a district"))?;
        reply.text_bytes += texts;
        let mut sum = 0;
        for _ in 0..lines.waves {
            connection.each(|mut row| -> Result<(), ServerError> {
                sum += row.decimal(2)?;
                reply.text_bytes += text_bytes(&mut row, 1)? + usize::from(row.bool()?);
                Ok(())
            })?;
        }
        connection.settle()?;
        (reply.order, reply.customer) = (entered, customer);
        reply.total = total(sum, discount, tax + district_tax);
        Ok(())
    }

    fn payment(
        &mut self,
        link: &mut Link<'_>,
        context: Context,
        request: &Request,
        reply: &mut Reply,
    ) -> Result<(), Stop> {
        let Request::Payment { district, customer_warehouse, customer_district, who, amount } =
            *request
        else {
            foreign(request)
        };
        let warehouse = context.warehouse;
        let amount = i64::from(amount);
        let connection = &mut link.connection;
        connection.bind(&self.pay_warehouse).u32(warehouse).decimal(amount, 2).run();
        let bind = connection.bind(&self.pay_district).u32(warehouse).u32(district);
        bind.decimal(amount, 2).run();
        let (statement, name) = match who {
            Who::Id(_) => (&self.pay_by_number, None),
            Who::LastName(number) => (&self.pay_by_name, Some(last_name(number))),
        };
        let bind = connection.bind(statement).u32(customer_warehouse).u32(customer_district);
        let bind = match (who, &name) {
            (Who::Id(customer), _) => bind.u32(customer),
            (_, name) => bind.text(name.as_ref().map_or("", |name| name.as_str())),
        };
        let bind = bind.decimal(amount, 2).u32(district).u32(warehouse);
        bind.timestamp_ms(context.now_ms).run();
        link.round_trip()?;
        let connection = &mut link.connection;
        for what in ["a warehouse", "a district"] {
            let texts = connection.first(|mut row| text_bytes(&mut row, 5))?;
            reply.text_bytes += texts.ok_or(Stop::Missing(what))?;
        }
        let (customer, texts) = connection
            .first(|mut row| -> Result<_, ServerError> {
                Ok((row.u32()?, text_bytes(&mut row, 10)?))
            })?
            .ok_or(Stop::Missing("a customer"))?;
        connection.settle()?;
        reply.text_bytes += texts;
        reply.customer = customer;
        Ok(())
    }

    fn order_status(
        &mut self,
        link: &mut Link<'_>,
        context: Context,
        (district, who): (u32, Who),
        reply: &mut Reply,
    ) -> Result<(), Stop> {
        let connection = &mut link.connection;
        match who {
            Who::Id(customer) => {
                let bind = connection.bind(&self.status_by_number).u32(context.warehouse);
                bind.u32(district).u32(customer).run();
            }
            Who::LastName(number) => {
                let bind = connection.bind(&self.status_by_name).u32(context.warehouse);
                bind.u32(district).text(last_name(number).as_str()).run();
            }
        }
        link.round_trip()?;
        let read = |mut row: Row<'_>| -> Result<(), ServerError> {
            reply.customer = row.u32()?;
            reply.balance = row.decimal(2)?;
            reply.text_bytes = text_bytes(&mut row, 3)?;
            reply.order = row.u32()?;
            std::hint::black_box((row.timestamp_ms()?, row.nullable()?));
            std::hint::black_box((row.u32()?, row.u32()?, row.u32()?, row.decimal(2)?));
            std::hint::black_box(row.nullable()?);
            reply.lines += 1;
            Ok(())
        };
        let rows = link.connection.each(read)?;
        link.connection.settle()?;
        if rows == 0 { Err(Stop::Missing("a customer or an order of one")) } else { Ok(()) }
    }

    fn delivery(
        &mut self,
        link: &mut Link<'_>,
        context: Context,
        carrier: u32,
        reply: &mut Reply,
    ) -> Result<(), Stop> {
        let connection = &mut link.connection;
        connection.bind(&self.turn).i32(LOCK_CLASS).u32(context.warehouse).run();
        let bind = connection.bind(&self.deliver).u32(context.warehouse).u32(context.districts);
        bind.u32(carrier).timestamp_ms(context.now_ms).run();
        link.round_trip()?;
        link.connection.done()?;
        delivered(link, reply)
    }
}

/// Reads the answer of the statement that delivers.
pub(super) fn delivered(link: &mut Link<'_>, reply: &mut Reply) -> Result<(), Stop> {
    let mut whole = true;
    link.connection.each(|mut row| -> Result<(), ServerError> {
        let district = row.u32()? as usize;
        if let Some(place) = reply.delivered.get_mut(district.wrapping_sub(1)) {
            *place = row.u32()?;
        }
        whole &= row.bool()?;
        Ok(())
    })?;
    link.connection.settle()?;
    if whole { Ok(()) } else { Err(Stop::Missing("the order, lines or customer of a new order")) }
}

/// All lines of a wave: stock changed in the order of the arrays, lines written, what the terminal
/// shows. An unused item has no row of `item`, so there is a line fewer, and the order is undone.
const LINES: &str = concat!(
    "WITH sold AS (UPDATE stock SET ",
    stock_columns!(),
    ", s_remote_cnt = s_remote_cnt + (supply <> $1)::integer \
     FROM unnest($3::integer[], $4::integer[], $5::integer[], $6::integer[]) \
     AS line (number, item, supply, quantity) JOIN item ON i_id = item \
     WHERE s_w_id = supply AND s_i_id = item \
     RETURNING number, item, supply, quantity, i_price * quantity AS amount, i_name, \
     i_data LIKE '%ORIGINAL%' AND s_data LIKE '%ORIGINAL%' AS brand, ",
    dist_of!("$2::integer"),
    " AS dist), \
     written AS (INSERT INTO order_line SELECT (SELECT d_next_o_id - 1 FROM district \
     WHERE d_w_id = $1 AND d_id = $2), $2, $1, number, item, supply, NULL, quantity, amount, dist \
     FROM sold) \
     SELECT amount, i_name, brand FROM sold UNION ALL \
     SELECT order_entry_unused_item(), NULL, NULL \
     WHERE (SELECT count(*) FROM sold) < cardinality($3::integer[])"
);
