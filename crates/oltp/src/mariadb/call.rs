//! Transactions by procedure: one call and its answer.

use dbms::Error as ServerError;
use dbms::mariadb::{Connection, Row, Statement, Type};

use super::link::{Each, Link, Stop, text_bytes, texts_bytes};
use super::new_order::total;
use super::session::Context;
use crate::driver::{Outcome, Reply};
use crate::workload::Workload;
use crate::workload::input::{LINES_MAX, NewOrder, Request, Who};
use crate::workload::text::last_name;

/// The calls of a workload, in the order of its kinds.
pub(super) struct Procedures {
    calls: Vec<Statement>,
    /// New-Order's lines as text, reused.
    lines: Vec<u8>,
}

/// Digits of one line.
const LINE_LEN: usize = 16;

impl Procedures {
    pub fn prepare(link: &mut Link<'_>, workload: Workload) -> Result<Self, ServerError> {
        use Type::{BigInt, DateTime, Decimal, Int, Text, Tiny};
        let signatures: &[&[Type]] = match workload {
            Workload::OrderEntry => &[
                &[Int, Tiny, Int, Tiny, Tiny, DateTime, Text],
                &[Int, Tiny, Int, Tiny, Int, Text, Decimal, DateTime],
                &[Int, Tiny, Int, Text],
                &[Int, Tiny, DateTime, Tiny],
                &[Int, Tiny, Int],
            ],
            Workload::Bank => &[&[Int, Int, Int, BigInt, DateTime]],
            Workload::Commit => &[&[Int]],
            Workload::Own(_) => &[],
        };
        let calls =
            super::procedures::names(workload).iter().zip(signatures).map(|(name, types)| {
                let marks = vec!["?"; types.len()].join(", ");
                link.prepare(&format!("CALL {name}({marks})"), types)
            });
        let calls = calls.collect::<Result<_, _>>()?;
        Ok(Self { calls, lines: Vec::with_capacity(LINES_MAX * LINE_LEN) })
    }

    pub fn execute(
        &mut self,
        link: &mut Link<'_>,
        context: Context,
        request: &Request,
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        let Context { warehouse, districts, now_ms } = context;
        let connection = &mut link.connection;
        let kind = match request {
            Request::NewOrder(order) => {
                self.queue_new_order(connection, context, order);
                0
            }
            Request::Payment { .. } => {
                queue_payment(connection, &mut self.calls[1], context, request);
                1
            }
            Request::OrderStatus { district, who } => {
                let values = connection.queue(&mut self.calls[2]).integer(warehouse);
                put_who(values.integer(*district), *who).finish();
                2
            }
            Request::Delivery { carrier } => {
                let values = connection.queue(&mut self.calls[3]).integer(warehouse);
                values.integer(*carrier).date_time(now_ms).integer(districts).finish();
                3
            }
            Request::StockLevel { district, threshold } => {
                let values = connection.queue(&mut self.calls[4]).integer(warehouse);
                values.integer(*district).integer(*threshold).finish();
                4
            }
            Request::Bank { account, teller, branch, amount } => {
                let values = connection.queue(&mut self.calls[0]).integer(*account);
                let values = values.integer(*teller).integer(*branch);
                values.integer(*amount).date_time(now_ms).finish();
                0
            }
            Request::Commit { row } => {
                connection.queue(&mut self.calls[0]).integer(*row).finish();
                0
            }
            Request::Own(_) => unreachable!("own workloads have no procedures of ours"),
        };
        link.exchange()?;
        let call = &mut self.calls[kind];
        let connection = &mut link.connection;
        match request {
            Request::NewOrder(order) => receive_new_order(connection, call, order, reply),
            Request::Payment { .. } => answered(connection, call, &mut |row| payment(row, reply)),
            Request::OrderStatus { .. } => {
                answered(connection, call, &mut |row| order_status(row, reply))
            }
            Request::Delivery { .. } => {
                answered(connection, call, &mut |row| delivered(row, reply))
            }
            Request::StockLevel { .. } => answered(connection, call, &mut |row| {
                reply.low_stock = row.number()?;
                Ok(())
            }),
            Request::Bank { .. } => answered(connection, call, &mut |row| {
                reply.balance = row.integer()?;
                Ok(())
            }),
            Request::Commit { .. } => {
                connection.receive(call, &mut |_| Ok(()))?;
                Ok(Outcome::Committed)
            }
            Request::Own(_) => unreachable!("own workloads have no procedures of ours"),
        }
    }

    fn queue_new_order(&mut self, connection: &mut Connection, context: Context, order: &NewOrder) {
        let Context { warehouse, now_ms, .. } = context;
        let mut sorted: [usize; LINES_MAX] = std::array::from_fn(|k| k);
        let lines = order.lines();
        sorted[..order.count].sort_unstable_by_key(|&k| (lines[k].supply, lines[k].item, k));
        self.lines.clear();
        for &k in &sorted[..order.count] {
            push_digits(&mut self.lines, k as u32 + 1, 2);
            push_digits(&mut self.lines, lines[k].item, 6);
            push_digits(&mut self.lines, lines[k].supply, 6);
            push_digits(&mut self.lines, lines[k].quantity, 2);
        }
        let all_local = lines.iter().all(|line| line.supply == warehouse);
        connection
            .queue(&mut self.calls[0])
            .integer(warehouse)
            .integer(order.district)
            .integer(order.customer)
            .integer(order.count as i64)
            .integer(all_local)
            .date_time(now_ms)
            .text(&self.lines)
            .finish();
    }
}

fn queue_payment(
    connection: &mut Connection,
    call: &mut Statement,
    context: Context,
    request: &Request,
) {
    let Request::Payment { district, customer_warehouse, customer_district, who, amount } =
        *request
    else {
        unreachable!("a payment is given payments");
    };
    let values = connection.queue(call).integer(context.warehouse).integer(district);
    let values = values.integer(customer_warehouse).integer(customer_district);
    put_who(values, who).scaled(i64::from(amount), 2).date_time(context.now_ms).finish();
}

/// A customer's number and no name, or no number and the name.
fn put_who(values: dbms::mariadb::Parameters<'_>, who: Who) -> dbms::mariadb::Parameters<'_> {
    match who {
        Who::Id(customer) => values.integer(customer).null(),
        Who::LastName(name) => values.null().text(last_name(name).as_str()),
    }
}

/// A number as this many digits.
#[inline]
fn push_digits(text: &mut Vec<u8>, number: u32, digits: usize) {
    let at = text.len();
    text.resize(at + digits, b'0');
    let mut rest = number;
    for digit in text[at..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    assert_eq!(rest, 0, "a number that is too wide for its place");
}

/// Reads an answer that must have a row.
fn answered(
    connection: &mut Connection,
    call: &mut Statement,
    each: &mut Each<'_>,
) -> Result<Outcome, Stop> {
    super::link::one(connection, call, "an answer", each)?;
    Ok(Outcome::Committed)
}

fn receive_new_order(
    connection: &mut Connection,
    call: &mut Statement,
    order: &NewOrder,
    reply: &mut Reply,
) -> Result<Outcome, Stop> {
    let (mut number, mut taxes, mut discount, mut missing) = (0, 0, 0, false);
    let (mut amounts, mut text_bytes_read) = (0, 0);
    connection.receive(call, &mut |row| {
        if row.result() == 0 {
            (number, taxes, discount) = (row.number()?, row.scaled(4)?, row.scaled(4)?);
            text_bytes_read += texts_bytes(row, 2)?;
            missing = row.integer()? != 0;
        } else {
            amounts += row.scaled(2)?;
            text_bytes_read += text_bytes(row)?;
            std::hint::black_box((row.scaled(2)?, row.integer()?));
            text_bytes_read += usize::from(row.integer()? != 0);
        }
        Ok(())
    })?;
    reply.text_bytes = text_bytes_read;
    if missing {
        return Ok(Outcome::RolledBack);
    }
    (reply.order, reply.customer) = (number, order.customer);
    reply.total = total(amounts, discount, taxes);
    Ok(Outcome::Committed)
}

fn payment(row: &mut Row<'_>, reply: &mut Reply) -> Result<(), ServerError> {
    reply.customer = row.number()?;
    reply.text_bytes = texts_bytes(row, 20)?;
    Ok(())
}

fn order_status(row: &mut Row<'_>, reply: &mut Reply) -> Result<(), ServerError> {
    if row.result() == 0 {
        (reply.customer, reply.balance) = (row.number()?, row.scaled(2)?);
        reply.text_bytes = texts_bytes(row, 3)?;
        reply.order = row.number()?;
        std::hint::black_box((row.bytes()?, row.integer_or_null()?));
    } else {
        std::hint::black_box((row.integer()?, row.integer()?, row.integer()?));
        std::hint::black_box((row.scaled(2)?, row.bytes_or_null()?));
        reply.lines += 1;
    }
    Ok(())
}

/// Numbers, each with a space after it.
fn delivered(row: &mut Row<'_>, reply: &mut Reply) -> Result<(), ServerError> {
    let mut districts = reply.delivered.iter_mut();
    let mut number = 0u32;
    for &byte in row.bytes()? {
        if byte.is_ascii_digit() {
            number = number.wrapping_mul(10).wrapping_add(u32::from(byte - b'0'));
        } else if let Some(district) = districts.next() {
            *district = number;
            number = 0;
        }
    }
    Ok(())
}
