//! New-Order and Payment, one statement per step (TPC-C 5.11 clauses 2.4.2 and 2.5.2).

use dbms::Error as ServerError;
use dbms::postgresql::{Bind, Connection, Statement};

use super::super::procedures::{dist_of, stock_columns};
use super::super::session::{
    Context, Line, Lines, Link, Stop, all_local, foreign, text_bytes, total,
};
use super::rest::FindCustomer;
use super::{Ends, one};
use crate::driver::{Outcome, Reply};
use crate::workload::input::{LINES_MAX, NewOrder as Order, Request, Who};
use crate::workload::text::Text;

/// The statements of New-Order, and the order in work.
pub(super) struct NewOrder {
    warehouse: Statement,
    customer: Statement,
    district: Statement,
    order_row: Statement,
    queue_row: Statement,
    item: Statement,
    stock: Statement,
    line_row: Statement,
    work: OrderWork,
}

/// What is known of a line.
#[derive(Clone, Copy, Default)]
struct Known {
    line: Line,
    /// In cents; none where no item has the number.
    amount: Option<i64>,
    texts: usize,
    item_original: bool,
    dist: Text<24>,
}

/// The order in work.
#[derive(Default)]
struct OrderWork {
    warehouse: u32,
    district: u32,
    customer: u32,
    now_ms: i64,
    all_local: bool,
    number: u32,
    taxes: i64,
    discount: i64,
    text_bytes: usize,
    /// By warehouse and item.
    lines: [Known; LINES_MAX],
    count: usize,
    /// How many of them have an item; these come first once all were read.
    valid: usize,
}

/// Steps of the first group of New-Order before those of its lines, which have two each.
const BEFORE_LINES: usize = 3;

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
            work: OrderWork::default(),
        })
    }

    pub fn execute(
        &mut self,
        (link, ends): (&mut Link<'_>, &Ends),
        context: Context,
        order: &Order,
        reply: &mut Reply,
    ) -> Result<Outcome, Stop> {
        self.work.begin(context, order);
        let reads = BEFORE_LINES + 2 * order.count;
        link.group(self, (reads, None), Self::ask, Self::hear)?;
        self.work.gather()?;
        // Clause 2.4.2.3: an unused item undoes the order after all other lines.
        let unused = self.work.valid < order.count;
        let outcome = if unused { Outcome::RolledBack } else { Outcome::Committed };
        let writes = 2 + self.work.valid;
        link.group(self, (writes, Some(ends.of(outcome))), Self::write, |_, connection, _| {
            connection.done()?;
            Ok(())
        })?;
        let work = &self.work;
        reply.text_bytes = work.text_bytes;
        if outcome == Outcome::Committed {
            let amounts = work.lines[..work.valid].iter().filter_map(|known| known.amount);
            (reply.order, reply.customer) = (work.number, order.customer);
            reply.total = total(amounts.sum(), work.discount, work.taxes);
        }
        Ok(outcome)
    }

    /// Everything that is read, the district's next number and the stock that is taken.
    fn ask(&mut self, connection: &mut Connection, step: usize) {
        let OrderWork { warehouse, district, customer, lines, .. } = &self.work;
        let (warehouse, district) = (*warehouse, *district);
        match step {
            0 => connection.bind(&self.warehouse).u32(warehouse).run(),
            1 => {
                connection.bind(&self.customer).u32(warehouse).u32(district).u32(*customer).run();
            }
            2 => connection.bind(&self.district).u32(warehouse).u32(district).run(),
            _ => {
                let Known { line, .. } = &lines[(step - BEFORE_LINES) / 2];
                if (step - BEFORE_LINES).is_multiple_of(2) {
                    connection.bind(&self.item).u32(line.item).run();
                } else {
                    let bind = connection.bind(&self.stock).u32(line.supply).u32(line.item);
                    let bind = bind.u32(district).u32(u32::from(line.supply != warehouse));
                    bind.u32(line.quantity).run();
                }
            }
        }
    }

    fn hear(&mut self, connection: &mut Connection, step: usize) -> Result<(), Stop> {
        let work = &mut self.work;
        match step {
            0 => {
                let tax = connection.first(|mut row| row.decimal(4))?;
                work.taxes = tax.ok_or(Stop::Missing("a warehouse"))?;
            }
            1 => {
                let found = connection.first(|mut row| -> Result<_, ServerError> {
                    Ok((row.decimal(4)?, text_bytes(&mut row, 2)?))
                })?;
                let (discount, texts) = found.ok_or(Stop::Missing("a customer number"))?;
                (work.discount, work.text_bytes) = (discount, texts);
            }
            2 => {
                let found = connection.first(|mut row| -> Result<_, ServerError> {
                    Ok((row.u32()?, row.decimal(4)?))
                })?;
                let (number, tax) = found.ok_or(Stop::Missing("a district"))?;
                work.number = number;
                work.taxes += tax;
            }
            _ if (step - BEFORE_LINES).is_multiple_of(2) => {
                let known = &mut work.lines[(step - BEFORE_LINES) / 2];
                connection.first(|mut row| -> Result<_, ServerError> {
                    known.amount = Some(i64::from(known.line.quantity) * row.decimal(2)?);
                    known.texts = text_bytes(&mut row, 1)?;
                    known.item_original = row.bool()?;
                    Ok(())
                })?;
            }
            _ => {
                let known = &mut work.lines[(step - BEFORE_LINES) / 2];
                let original = connection.first(|mut row| {
                    known.dist.push(row.bytes()?);
                    row.bool()
                })?;
                match (original, known.amount) {
                    (Some(original), Some(_)) => {
                        work.text_bytes +=
                            known.texts + usize::from(known.item_original && original);
                    }
                    // Of an unused item there is no stock.
                    (_, None) => {}
                    (None, Some(_)) => return Err(Stop::Missing("a stock row")),
                }
            }
        }
        Ok(())
    }

    /// Order and queue row, then the lines.
    fn write(&mut self, connection: &mut Connection, step: usize) {
        let work = &self.work;
        let row = match step {
            0 => connection.bind(&self.order_row),
            1 => connection.bind(&self.queue_row),
            _ => connection.bind(&self.line_row),
        };
        let row = row.u32(work.number).u32(work.district).u32(work.warehouse);
        match step.checked_sub(2) {
            None if step == 0 => {
                let row = row.u32(work.customer).timestamp_ms(work.now_ms);
                row.u32(work.count as u32).u32(u32::from(work.all_local)).run();
            }
            None => row.run(),
            Some(line) => {
                let Known { line, amount, dist, .. } = &work.lines[line];
                let row = row.u32(u32::from(line.number)).u32(line.item).u32(line.supply);
                let row = row.u32(line.quantity).decimal(amount.unwrap_or(0), 2);
                row.text(dist.as_str()).run();
            }
        }
    }
}

impl OrderWork {
    fn begin(&mut self, context: Context, order: &Order) {
        let Context { warehouse, now_ms, .. } = context;
        (self.warehouse, self.now_ms) = (warehouse, now_ms);
        (self.district, self.customer) = (order.district, order.customer);
        self.all_local = all_local(order, warehouse);
        (self.count, self.valid) = (order.count, 0);
        for (known, line) in self.lines.iter_mut().zip(Lines::of(order).all()) {
            *known = Known { line: *line, ..Known::default() };
        }
    }

    /// Puts the lines that have an item first, in their order.
    fn gather(&mut self) -> Result<(), Stop> {
        for k in 0..self.count {
            if self.lines[k].amount.is_some() {
                self.lines.swap(self.valid, k);
                self.valid += 1;
            }
        }
        if self.valid == 0 { Err(Stop::Missing("every item of an order")) } else { Ok(()) }
    }
}

/// The statements of Payment, and the payment in work.
pub(super) struct Payment {
    find: FindCustomer,
    warehouse: Statement,
    district: Statement,
    customer: Statement,
    update_customer: Statement,
    update_customer_and_data: Statement,
    history: Statement,
    work: PaymentWork,
}

/// The payment in work.
struct PaymentWork {
    warehouse: u32,
    district: u32,
    home: (u32, u32),
    who: Who,
    amount: i64,
    now_ms: i64,
    customer: u32,
    bad_credit: bool,
    /// H_DATA: W_NAME, four spaces, D_NAME.
    data: Text<24>,
    text_bytes: usize,
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
            work: PaymentWork::default(),
        })
    }

    pub fn execute(
        &mut self,
        (link, ends): (&mut Link<'_>, &Ends),
        context: Context,
        request: &Request,
        reply: &mut Reply,
    ) -> Result<(), Stop> {
        self.work.begin(context, request);
        link.group(self, (3, None), Self::ask, Self::hear)?;
        if matches!(self.work.who, Who::LastName(_)) {
            link.group(
                self,
                (1, None),
                |payment, connection, _| payment.ask_customer(connection),
                |payment, connection, _| payment.hear_customer(connection),
            )?;
        }
        let commit = ends.of(Outcome::Committed);
        link.group(self, (2, Some(commit)), Self::write, |_, connection, _| {
            one(connection.done()?, "a customer row")
        })?;
        (reply.customer, reply.text_bytes) = (self.work.customer, self.work.text_bytes);
        Ok(())
    }

    /// Books the amount to warehouse and district, and finds the customer: by number the whole row,
    /// by name the number.
    fn ask(&mut self, connection: &mut Connection, step: usize) {
        let PaymentWork { warehouse, district, home, who, amount, .. } = self.work;
        match (step, who) {
            (0, _) => {
                connection.bind(&self.warehouse).u32(warehouse).decimal(amount, 2).run();
            }
            (1, _) => {
                let bind = connection.bind(&self.district).u32(warehouse).u32(district);
                bind.decimal(amount, 2).run();
            }
            (_, Who::Id(_)) => self.ask_customer(connection),
            (_, Who::LastName(name)) => self.find.ask(connection, home, name),
        }
    }

    fn hear(&mut self, connection: &mut Connection, step: usize) -> Result<(), Stop> {
        let work = &mut self.work;
        match (step, work.who) {
            (0, _) => {
                work.place(connection, "a warehouse")?;
                work.data.push(b"    ");
                Ok(())
            }
            (1, _) => work.place(connection, "a district"),
            (_, Who::Id(_)) => self.hear_customer(connection),
            (_, Who::LastName(_)) => {
                work.customer = self.find.hear(connection)?;
                Ok(())
            }
        }
    }

    fn ask_customer(&mut self, connection: &mut Connection) {
        self.work.key(connection.bind(&self.customer)).run();
    }

    fn hear_customer(&mut self, connection: &mut Connection) -> Result<(), Stop> {
        let found = connection.first(|mut row| -> Result<_, ServerError> {
            let texts = text_bytes(&mut row, 9)?;
            let credit = row.bytes()?;
            Ok((texts + credit.len(), credit == b"BC"))
        })?;
        let (texts, bad_credit) = found.ok_or(Stop::Missing("a customer row"))?;
        self.work.text_bytes += texts;
        self.work.bad_credit = bad_credit;
        Ok(())
    }

    fn write(&mut self, connection: &mut Connection, step: usize) {
        let work = &self.work;
        match step {
            0 if work.bad_credit => {
                let update = work.key(connection.bind(&self.update_customer_and_data));
                update.decimal(work.amount, 2).u32(work.district).u32(work.warehouse).run();
            }
            0 => {
                let update = work.key(connection.bind(&self.update_customer));
                update.decimal(work.amount, 2).run();
            }
            _ => {
                let row = connection.bind(&self.history).u32(work.customer);
                let row = row.u32(work.home.1).u32(work.home.0).u32(work.district);
                let row = row.u32(work.warehouse).timestamp_ms(work.now_ms);
                row.decimal(work.amount, 2).text(work.data.as_str()).run();
            }
        }
    }
}

impl Default for PaymentWork {
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
            data: Text::default(),
            text_bytes: 0,
        }
    }
}

impl PaymentWork {
    fn begin(&mut self, context: Context, request: &Request) {
        let Request::Payment { district, customer_warehouse, customer_district, who, amount } =
            *request
        else {
            foreign(request)
        };
        *self = Self {
            warehouse: context.warehouse,
            district,
            home: (customer_warehouse, customer_district),
            who,
            amount: i64::from(amount),
            now_ms: context.now_ms,
            customer: if let Who::Id(customer) = who { customer } else { 0 },
            ..Self::default()
        };
    }

    /// The key of the customer.
    fn key<'c>(&self, bind: Bind<'c>) -> Bind<'c> {
        bind.u32(self.home.0).u32(self.home.1).u32(self.customer)
    }

    /// Name and address of a warehouse or district: the name goes into H_DATA, the rest to the
    /// terminal.
    fn place(&mut self, connection: &mut Connection, what: &'static str) -> Result<(), Stop> {
        let data = &mut self.data;
        let texts = connection.first(|mut row| {
            data.push(row.bytes()?);
            text_bytes(&mut row, 5)
        })?;
        self.text_bytes += texts.ok_or(Stop::Missing(what))?;
        Ok(())
    }
}
