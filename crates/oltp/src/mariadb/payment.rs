//! Payment (TPC-C 5.11 clause 2.5.2), statement by statement.
//!
//! Rows are locked in the order warehouse, district, customer.

use std::io::Write;

use dbms::Error as ServerError;
use dbms::mariadb::{Connection, Statement, Type};

use super::customer::{FindCustomer, Named};
use super::link::{Link, Stop, changed, one, texts_bytes};
use super::session::Context;
use crate::driver::{Outcome, Reply};
use crate::workload::input::{Request, Who};
use crate::workload::text::Text;

/// Longest C_DATA (clause 1.3).
const DATA_MAX: usize = 500;

/// The statements, and the payment in work.
pub(super) struct Payment {
    find: FindCustomer,
    update_warehouse: Statement,
    warehouse: Statement,
    update_district: Statement,
    district: Statement,
    customer: Statement,
    update_customer: Statement,
    update_customer_and_data: Statement,
    history: Statement,
    work: Work,
}

/// The payment in work.
struct Work {
    warehouse: u32,
    district: u32,
    /// The customer's warehouse and district.
    home: (u32, u32),
    who: Who,
    amount: i64,
    now_ms: i64,
    customer: u32,
    bad_credit: bool,
    /// The new C_DATA of a customer of bad credit.
    data: Vec<u8>,
    history: Text<24>,
    text_bytes: usize,
}

impl Payment {
    pub fn prepare(link: &mut Link<'_>) -> Result<Self, ServerError> {
        use Type::{DateTime, Decimal, Int, Text, Tiny};
        let find = FindCustomer::prepare(link)?;
        let mut prepare = |sql: &str, types: &[Type]| link.prepare(sql, types);
        let add = "UPDATE customer SET c_balance = c_balance - ?, \
                   c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1";
        let key = "WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
        Ok(Self {
            find,
            update_warehouse: prepare(
                "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?",
                &[Decimal, Int],
            )?,
            warehouse: prepare(
                "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse \
                 WHERE w_id = ?",
                &[Int],
            )?,
            update_district: prepare(
                "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
                &[Decimal, Int, Tiny],
            )?,
            district: prepare(
                "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
                 WHERE d_w_id = ? AND d_id = ?",
                &[Int, Tiny],
            )?,
            customer: prepare(
                &format!(
                    "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, \
                     c_zip, c_phone, c_credit, c_since, c_credit_lim, c_discount, c_balance, \
                     IF(c_credit = 'BC', c_data, '') FROM customer {key} FOR UPDATE"
                ),
                &[Int, Tiny, Int],
            )?,
            update_customer: prepare(&format!("{add} {key}"), &[Decimal, Decimal, Int, Tiny, Int])?,
            update_customer_and_data: prepare(
                &format!("{add}, c_data = ? {key}"),
                &[Decimal, Decimal, Text, Int, Tiny, Int],
            )?,
            history: prepare(
                "INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                &[Int, Tiny, Int, Tiny, Int, DateTime, Decimal, Text],
            )?,
            work: Work::default(),
        })
    }

    pub fn execute(
        &mut self,
        link: &mut Link<'_>,
        context: Context,
        request: &Request,
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        self.work.begin(context, request);
        link.group(self, 5, Self::queue_places, Self::receive_places)?;
        if matches!(self.work.who, Who::LastName(_)) {
            link.group(
                self,
                1,
                |payment, connection, _| payment.queue_customer(connection),
                |payment, connection, _| payment.receive_customer(connection),
            )?;
        }
        link.group(self, 2, Self::queue_write, Self::receive_write)?;
        (reply.customer, reply.text_bytes) = (self.work.customer, self.work.text_bytes);
        Ok(Outcome::Committed)
    }

    /// Books the amount to warehouse and district, reads their names and addresses, and finds the
    /// customer: by number the whole row, by name the number.
    fn queue_places(&mut self, connection: &mut Connection, step: usize) {
        let Work { warehouse, district, home, who, amount, .. } = self.work;
        match step {
            0 => {
                let values = connection.queue(&mut self.update_warehouse).scaled(amount, 2);
                values.integer(warehouse).finish();
            }
            1 => connection.queue(&mut self.warehouse).integer(warehouse).finish(),
            2 => {
                let values = connection.queue(&mut self.update_district).scaled(amount, 2);
                values.integer(warehouse).integer(district).finish();
            }
            3 => {
                connection.queue(&mut self.district).integer(warehouse).integer(district).finish();
            }
            _ => match who {
                Who::Id(_) => self.queue_customer(connection),
                Who::LastName(name) => {
                    let who = Named { warehouse: home.0, district: home.1, name };
                    self.find.queue(connection, who);
                }
            },
        }
    }

    fn receive_places(&mut self, connection: &mut Connection, step: usize) -> Result<(), Stop> {
        let work = &mut self.work;
        match step {
            0 => changed(connection, &mut self.update_warehouse, "a warehouse"),
            1 => one(connection, &mut self.warehouse, "a warehouse", &mut |row| {
                work.history.push(row.bytes()?);
                work.text_bytes += texts_bytes(row, 5)?;
                Ok(())
            }),
            2 => changed(connection, &mut self.update_district, "a district"),
            3 => one(connection, &mut self.district, "a district", &mut |row| {
                // H_DATA (clause 2.5.2.2): W_NAME, four spaces, D_NAME.
                work.history.push(b"    ");
                work.history.push(row.bytes()?);
                work.text_bytes += texts_bytes(row, 5)?;
                Ok(())
            }),
            _ if matches!(work.who, Who::Id(_)) => self.receive_customer(connection),
            _ => {
                work.customer = self.find.receive(connection)?;
                Ok(())
            }
        }
    }

    fn queue_customer(&mut self, connection: &mut Connection) {
        let Work { home, customer, .. } = self.work;
        let values = connection.queue(&mut self.customer).integer(home.0);
        values.integer(home.1).integer(customer).finish();
    }

    fn receive_customer(&mut self, connection: &mut Connection) -> Result<(), Stop> {
        let work = &mut self.work;
        one(connection, &mut self.customer, "a customer number", &mut |row| {
            work.text_bytes += texts_bytes(row, 9)?;
            let credit = row.bytes()?;
            work.text_bytes += credit.len();
            work.bad_credit = credit == b"BC";
            for _ in 0..4 {
                row.skip()?;
            }
            if work.bad_credit {
                work.bad_credit_data(row.bytes()?);
            }
            Ok(())
        })
    }

    fn queue_write(&mut self, connection: &mut Connection, step: usize) {
        let Work { home, customer, amount, .. } = self.work;
        let work = &self.work;
        match step {
            0 if work.bad_credit => {
                let update = &mut self.update_customer_and_data;
                let values = connection.queue(update).scaled(amount, 2).scaled(amount, 2);
                let values = values.text(&work.data).integer(home.0);
                values.integer(home.1).integer(customer).finish();
            }
            0 => {
                let update = &mut self.update_customer;
                let values = connection.queue(update).scaled(amount, 2).scaled(amount, 2);
                values.integer(home.0).integer(home.1).integer(customer).finish();
            }
            _ => connection
                .queue(&mut self.history)
                .integer(customer)
                .integer(home.1)
                .integer(home.0)
                .integer(work.district)
                .integer(work.warehouse)
                .date_time(work.now_ms)
                .scaled(amount, 2)
                .text(work.history.as_str())
                .finish(),
        }
    }

    fn receive_write(&mut self, connection: &mut Connection, step: usize) -> Result<(), Stop> {
        match step {
            0 if self.work.bad_credit => {
                changed(connection, &mut self.update_customer_and_data, "a customer number")
            }
            0 => changed(connection, &mut self.update_customer, "a customer number"),
            _ => changed(connection, &mut self.history, "the payment that was inserted"),
        }
    }
}

impl Default for Work {
    fn default() -> Self {
        Self {
            warehouse: 0,
            district: 0,
            home: (0, 0),
            who: Who::Id(0),
            amount: 0,
            now_ms: 0,
            customer: 0,
            bad_credit: false,
            data: Vec::with_capacity(DATA_MAX + 64),
            history: Text::default(),
            text_bytes: 0,
        }
    }
}

impl Work {
    fn begin(&mut self, context: Context, request: &Request) {
        let Request::Payment { district, customer_warehouse, customer_district, who, amount } =
            *request
        else {
            unreachable!("a payment is given payments");
        };
        (self.warehouse, self.now_ms) = (context.warehouse, context.now_ms);
        (self.district, self.home) = (district, (customer_warehouse, customer_district));
        (self.who, self.amount) = (who, i64::from(amount));
        self.customer = if let Who::Id(customer) = who { customer } else { 0 };
        (self.bad_credit, self.text_bytes) = (false, 0);
        self.history.clear();
    }

    /// A customer of bad credit (clause 2.5.2.2): the payment is written in front of C_DATA, which
    /// is cut at 500 characters.
    fn bad_credit_data(&mut self, old: &[u8]) {
        let data = &mut self.data;
        data.clear();
        let head = [self.customer, self.home.1, self.home.0, self.district, self.warehouse];
        for number in head {
            // Writing into a vector cannot fail.
            let _ = write!(data, "{number} ");
        }
        let _ = write!(data, "{}.{:02}|", self.amount / 100, self.amount % 100);
        data.extend_from_slice(old);
        data.truncate(DATA_MAX);
    }
}
