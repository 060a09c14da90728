//! Payment (TPC-C 5.11 clause 2.5.2).

use std::io::Write;

use rusqlite::Connection;

use super::customer::FindCustomer;
use super::session::{Context, Prepared, Stop, bind, text_bytes};
use crate::driver::{Outcome, Reply};
use crate::workload::input::Request;
use crate::workload::text::Text;

/// Longest C_DATA (clause 1.3).
const DATA_MAX: usize = 500;

/// The statements.
pub(super) struct Payment<'c> {
    find: FindCustomer<'c>,
    warehouse: Prepared<'c>,
    update_warehouse: Prepared<'c>,
    district: Prepared<'c>,
    update_district: Prepared<'c>,
    customer: Prepared<'c>,
    update_customer: Prepared<'c>,
    data: Prepared<'c>,
    update_customer_and_data: Prepared<'c>,
    history: Prepared<'c>,
    /// The new C_DATA, reused.
    new_data: Vec<u8>,
}

impl<'c> Payment<'c> {
    pub fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        let prepare = |sql: &str| Prepared::new(connection, sql);
        Ok(Self {
            find: FindCustomer::prepare(connection)?,
            warehouse: prepare(
                "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse \
                 WHERE w_id = ?",
            )?,
            update_warehouse: prepare("UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?")?,
            district: prepare(
                "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
                 WHERE d_w_id = ? AND d_id = ?",
            )?,
            update_district: prepare(
                "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
            )?,
            customer: prepare(
                "SELECT c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, \
                 c_zip, c_phone, c_credit, c_since, c_credit_lim, c_discount, c_balance \
                 FROM customer WHERE rowid = ?",
            )?,
            update_customer: prepare(
                "UPDATE customer SET c_balance = c_balance - ?1, \
                 c_ytd_payment = c_ytd_payment + ?1, \
                 c_payment_cnt = c_payment_cnt + 1 WHERE rowid = ?2",
            )?,
            data: prepare("SELECT c_data FROM customer WHERE rowid = ?")?,
            update_customer_and_data: prepare(
                "UPDATE customer SET c_balance = c_balance - ?1, \
                 c_ytd_payment = c_ytd_payment + ?1, \
                 c_payment_cnt = c_payment_cnt + 1, c_data = ?3 WHERE rowid = ?2",
            )?,
            history: prepare("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?)")?,
            new_data: Vec::with_capacity(DATA_MAX + 64),
        })
    }

    pub fn execute(
        &mut self,
        context: Context<'_>,
        request: &Request,
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        let Request::Payment { district, customer_warehouse, customer_district, who, amount } =
            *request
        else {
            return Err(Stop::Missing("a payment"));
        };
        let Context { meter, warehouse, now_ms, .. } = context;
        // H_DATA (clause 2.5.2.2): W_NAME, four spaces, D_NAME.
        let mut history_data = Text::<24>::default();
        self.place(context, district, amount, (&mut history_data, reply))?;
        let home = (customer_warehouse, customer_district);
        let rowid = self.find.rowid(context, home, who)?;
        bind!(self.customer, rowid);
        let (customer, bad_credit, texts) = self
            .customer
            .first(meter, |row| {
                let mut texts = 0;
                for column in 1..=10 {
                    texts += text_bytes(row, column)?;
                }
                let customer: u32 = row.get(0)?;
                Ok((customer, row.get_ref(10)?.as_bytes()? == b"BC", texts))
            })?
            .ok_or(Stop::Missing("a customer row"))?;
        reply.text_bytes += texts;
        reply.customer = customer;
        if bad_credit {
            let head = [customer, customer_district, customer_warehouse, district, warehouse];
            self.bad_credit(context, rowid, head, amount)?;
        } else {
            bind!(self.update_customer, amount, rowid);
            self.update_customer.run(meter)?;
        }
        bind!(
            self.history,
            customer,
            customer_district,
            customer_warehouse,
            district,
            warehouse,
            now_ms,
            amount,
            history_data.as_str(),
        );
        self.history.run(meter)?;
        Ok(Outcome::Committed)
    }

    /// Books the amount to warehouse and district, and reads their names and addresses.
    fn place(
        &mut self,
        context: Context<'_>,
        district: u32,
        amount: u32,
        (history_data, reply): (&mut Text<24>, &mut Reply),
    ) -> Result<(), Stop> {
        let Context { meter, warehouse, .. } = context;
        bind!(self.update_warehouse, amount, warehouse);
        self.update_warehouse.run(meter)?;
        bind!(self.warehouse, warehouse);
        let mut read = |row: &rusqlite::Row<'_>| {
            history_data.push(row.get_ref(0)?.as_bytes()?);
            for column in 1..6 {
                reply.text_bytes += text_bytes(row, column)?;
            }
            Ok(())
        };
        self.warehouse.first(meter, &mut read)?.ok_or(Stop::Missing("a warehouse"))?;
        bind!(self.update_district, amount, warehouse, district);
        self.update_district.run(meter)?;
        bind!(self.district, warehouse, district);
        let found = self.district.first(meter, |row| {
            history_data.push(b"    ");
            history_data.push(row.get_ref(0)?.as_bytes()?);
            for column in 1..6 {
                reply.text_bytes += text_bytes(row, column)?;
            }
            Ok(())
        })?;
        found.ok_or(Stop::Missing("a district"))
    }

    /// A customer of bad credit (clause 2.5.2.2): the payment is written in front of C_DATA, which
    /// is cut at 500 characters.
    fn bad_credit(
        &mut self,
        context: Context<'_>,
        rowid: i64,
        head: [u32; 5],
        amount: u32,
    ) -> Result<(), Stop> {
        let new_data = &mut self.new_data;
        new_data.clear();
        for number in head {
            // Writing into a vector cannot fail.
            let _ = write!(new_data, "{number} ");
        }
        let _ = write!(new_data, "{}.{:02}|", amount / 100, amount % 100);
        bind!(self.data, rowid);
        let found = self.data.first(context.meter, |row| {
            new_data.extend_from_slice(row.get_ref(0)?.as_bytes()?);
            Ok(())
        })?;
        found.ok_or(Stop::Missing("a customer row"))?;
        new_data.truncate(DATA_MAX);
        let data = std::str::from_utf8(new_data).map_err(|_| Stop::Missing("text in C_DATA"))?;
        bind!(self.update_customer_and_data, amount, rowid, data);
        self.update_customer_and_data.run(context.meter)?;
        Ok(())
    }
}
