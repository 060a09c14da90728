//! Procedure access: one call of a stored procedure per transaction ([`super::procedures`]).

use dbms::Error as ServerError;
use dbms::postgresql::{Row, Statement};

use super::pipelined::delivered;
use super::session::{
    Context, LOCK_CLASS, Line, Lines, Link, Stop, all_local, foreign, text_bytes,
};
use crate::driver::{Outcome, Reply};
use crate::workload::input::{NewOrder, Request, Who};
use crate::workload::text::last_name;

/// The calls.
pub(super) struct Procedure {
    new_order: Statement,
    payment: Statement,
    order_status: Statement,
    delivery: Statement,
    stock_level: Statement,
}

impl Procedure {
    pub fn prepare(link: &mut Link<'_>) -> Result<Self, ServerError> {
        Ok(Self {
            new_order: link.prepare(
                "SELECT * FROM order_entry_new_order($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            )?,
            payment: link
                .prepare("SELECT * FROM order_entry_payment($1, $2, $3, $4, $5, $6, $7, $8)")?,
            order_status: link.prepare("SELECT * FROM order_entry_order_status($1, $2, $3, $4)")?,
            delivery: link.prepare("SELECT * FROM order_entry_delivery($1, $2, $3, $4, $5)")?,
            stock_level: link.prepare("SELECT order_entry_stock_level($1, $2, $3)")?,
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
                let bind = link.connection.bind(&self.order_status).u32(context.warehouse);
                match *who {
                    Who::Id(customer) => bind.u32(*district).u32(customer).null().run(),
                    Who::LastName(number) => {
                        bind.u32(*district).null().text(last_name(number).as_str()).run();
                    }
                }
                order_status(link, reply)?;
            }
            Request::Delivery { carrier } => {
                let bind = link.connection.bind(&self.delivery).i32(LOCK_CLASS);
                let bind = bind.u32(context.warehouse).u32(context.districts).u32(*carrier);
                bind.timestamp_ms(context.now_ms).run();
                link.round_trip()?;
                delivered(link, reply)?;
            }
            Request::StockLevel { district, threshold } => {
                let bind = link.connection.bind(&self.stock_level).u32(context.warehouse);
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
        let lines = Lines::of(order);
        let values =
            |value: fn(&Line) -> u32| lines.all().iter().map(move |line| value(line) as i32);
        let bind = link.connection.bind(&self.new_order).u32(context.warehouse);
        let bind = bind.u32(order.district).u32(order.customer);
        let bind = bind.u32(u32::from(all_local(order, context.warehouse)));
        let bind = bind.timestamp_ms(context.now_ms).u32(u32::from(lines.waves));
        let bind = bind.i32s(values(|line| u32::from(line.wave)));
        let bind = bind.i32s(values(|line| u32::from(line.number)));
        let bind = bind.i32s(values(|line| line.item)).i32s(values(|line| line.supply));
        bind.i32s(values(|line| line.quantity)).run();
        let read = |mut row: Row<'_>| {
            reply.order = row.u32()?;
            reply.total = row.decimal(2)?;
            reply.text_bytes = text_bytes(&mut row, 2)? + array_bytes(&mut row)?;
            reply.text_bytes += row.u32()? as usize;
            Ok(())
        };
        link.first(read)?.ok_or(Stop::Missing("the answer of a procedure"))?;
        reply.customer = order.customer;
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
        let bind = link.connection.bind(&self.payment).u32(context.warehouse).u32(district);
        let bind = bind.u32(customer_warehouse).u32(customer_district);
        let bind = match who {
            Who::Id(customer) => bind.u32(customer).null(),
            Who::LastName(number) => bind.null().text(last_name(number).as_str()),
        };
        bind.decimal(i64::from(amount), 2).timestamp_ms(context.now_ms).run();
        let found = link.first(|mut row| {
            let customer = row.u32()?;
            // Names of warehouse and district go into the history, not to the terminal.
            let mut texts = 0;
            for _ in 0..2 {
                let place = row.array()?;
                let name = place.clone().next().and_then(Result::ok).flatten();
                texts += bytes_of(place) - name.map_or(0, <[u8]>::len);
            }
            Ok((customer, texts + array_bytes(&mut row)?))
        })?;
        let (customer, texts) = found.ok_or(Stop::Missing("the answer of a procedure"))?;
        (reply.customer, reply.text_bytes) = (customer, texts);
        Ok(())
    }
}

fn order_status(link: &mut Link<'_>, reply: &mut Reply) -> Result<(), Stop> {
    let found = link.first(|mut row| {
        reply.customer = row.u32()?;
        reply.balance = row.decimal(2)?;
        reply.text_bytes = array_bytes(&mut row)?;
        reply.order = row.u32()?;
        std::hint::black_box((row.timestamp_ms()?, row.nullable()?));
        reply.lines = row.array()?.len() as u32;
        for _ in 0..4 {
            std::hint::black_box(row.array()?.count());
        }
        Ok(())
    })?;
    found.ok_or(Stop::Missing("the answer of a procedure"))
}

/// Bytes of all texts of the next field, an array.
fn array_bytes(row: &mut Row<'_>) -> Result<usize, ServerError> {
    row.array().map(bytes_of)
}

fn bytes_of(texts: dbms::postgresql::binary::Elements<'_>) -> usize {
    texts.flatten().flatten().map(|text| std::hint::black_box(text).len()).sum()
}
