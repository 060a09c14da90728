//! The rows of order entry as SQLite gets them, in the order of the clustered keys (TPC-C 5.11 clause
//! 4.3.3.1).

use rusqlite::{Connection, Statement};

use super::load::Counter;
use crate::workload::population::{LOAD_TIME_MS, Population};
use crate::{Error, Scale};

/// The statements of a load.
pub(super) struct Rows<'c, 'a> {
    counter: &'c mut Counter<'a>,
    scale: Scale,
    population: Population,
    warehouse: Statement<'a>,
    district: Statement<'a>,
    customer: Statement<'a>,
    history: Statement<'a>,
    orders: Statement<'a>,
    new_order: Statement<'a>,
    order_line: Statement<'a>,
    item: Statement<'a>,
    stock: Statement<'a>,
}

impl<'c, 'a> Rows<'c, 'a> {
    /// Prepares to insert the rows of this seed.
    pub fn new(
        connection: &'a Connection,
        scale: Scale,
        seed: u64,
        counter: &'c mut Counter<'a>,
    ) -> rusqlite::Result<Self> {
        let insert = |table: &str, columns: usize| {
            let values = vec!["?"; columns].join(", ");
            connection.prepare(&format!("INSERT INTO {table} VALUES ({values})"))
        };
        Ok(Self {
            counter,
            scale,
            population: Population::new(scale, seed),
            warehouse: insert("warehouse", 9)?,
            district: insert("district", 11)?,
            customer: insert("customer", 21)?,
            history: insert("history", 8)?,
            orders: insert("orders", 8)?,
            new_order: insert("new_order", 3)?,
            order_line: insert("order_line", 10)?,
            item: insert("item", 5)?,
            stock: insert("stock", 17)?,
        })
    }

    /// Loads everything.
    pub fn all(mut self) -> Result<(), Error> {
        self.items()?;
        for warehouse in 1..=self.scale.warehouses {
            self.warehouse(warehouse)?;
            self.stock(warehouse)?;
            for district in 1..=self.scale.districts {
                self.district(warehouse, district)?;
                self.customers(warehouse, district)?;
                self.orders(warehouse, district)?;
            }
        }
        Ok(())
    }

    fn inserted(&mut self, table: &str, result: rusqlite::Result<usize>) -> Result<(), Error> {
        self.counter.inserted(table, result)
    }

    fn items(&mut self) -> Result<(), Error> {
        for key in 1..=self.scale.items {
            let item = self.population.item(key);
            let row = (key, item.image, item.name.as_str(), item.price, item.data.as_str());
            let result = self.item.execute(row);
            self.inserted("items", result)?;
        }
        Ok(())
    }

    fn warehouse(&mut self, warehouse: u32) -> Result<(), Error> {
        let row = self.population.warehouse(warehouse);
        let at = &row.address;
        // The sum of the districts' (clause 3.3.2.1): 300,000.00 at full scale.
        let ytd = i64::from(self.scale.districts) * self.district_ytd();
        let result = self.warehouse.execute((
            warehouse,
            row.name.as_str(),
            at.street_1.as_str(),
            at.street_2.as_str(),
            at.city.as_str(),
            at.state.as_str(),
            at.zip.as_str(),
            row.tax,
            ytd,
        ));
        self.inserted("warehouses", result)
    }

    /// D_YTD: 10.00 per customer, as the history says; 30,000.00 at full scale.
    fn district_ytd(&self) -> i64 {
        i64::from(self.scale.customers_per_district) * 1000
    }

    fn district(&mut self, warehouse: u32, district: u32) -> Result<(), Error> {
        let row = self.population.district(warehouse, district);
        let (at, ytd) = (&row.address, self.district_ytd());
        let result = self.district.execute((
            district,
            warehouse,
            row.name.as_str(),
            at.street_1.as_str(),
            at.street_2.as_str(),
            at.city.as_str(),
            at.state.as_str(),
            at.zip.as_str(),
            row.tax,
            ytd,
            self.scale.orders_per_district() + 1,
        ));
        self.inserted("districts", result)
    }

    fn stock(&mut self, warehouse: u32) -> Result<(), Error> {
        for item in 1..=self.scale.items {
            let row = self.population.stock(warehouse, item);
            let result = self.bind_stock(warehouse, item, &row);
            self.inserted("stock", result)?;
        }
        Ok(())
    }

    fn bind_stock(
        &mut self,
        warehouse: u32,
        item: u32,
        row: &crate::workload::population::Stock,
    ) -> rusqlite::Result<usize> {
        let stock = &mut self.stock;
        stock.raw_bind_parameter(1, item)?;
        stock.raw_bind_parameter(2, warehouse)?;
        stock.raw_bind_parameter(3, row.quantity)?;
        for (column, dist) in (4..).zip(&row.dist) {
            stock.raw_bind_parameter(column, dist.as_str())?;
        }
        for column in 14..=16 {
            stock.raw_bind_parameter(column, 0)?;
        }
        stock.raw_bind_parameter(17, row.data.as_str())?;
        stock.raw_execute()
    }

    fn customers(&mut self, warehouse: u32, district: u32) -> Result<(), Error> {
        for key in 1..=self.scale.customers_per_district {
            let row = self.population.customer(warehouse, district, key);
            let result = self.bind_customer((warehouse, district, key), &row);
            self.inserted("customers", result)?;
            let data = self.population.history_data(warehouse, district, key);
            let history =
                (key, district, warehouse, district, warehouse, LOAD_TIME_MS, 1000, data.as_str());
            let result = self.history.execute(history);
            self.inserted("history", result)?;
        }
        Ok(())
    }

    fn bind_customer(
        &mut self,
        (warehouse, district, key): (u32, u32, u32),
        row: &crate::workload::population::Customer,
    ) -> rusqlite::Result<usize> {
        let at = &row.address;
        let texts = [
            row.first.as_str(),
            "OE",
            row.last.as_str(),
            at.street_1.as_str(),
            at.street_2.as_str(),
            at.city.as_str(),
            at.state.as_str(),
            at.zip.as_str(),
            row.phone.as_str(),
        ];
        let customer = &mut self.customer;
        for (column, value) in (1..).zip([key, district, warehouse]) {
            customer.raw_bind_parameter(column, value)?;
        }
        for (column, text) in (4..).zip(texts) {
            customer.raw_bind_parameter(column, text)?;
        }
        customer.raw_bind_parameter(13, LOAD_TIME_MS)?;
        customer.raw_bind_parameter(14, if row.bad_credit { "BC" } else { "GC" })?;
        // C_CREDIT_LIM 50,000.00; C_BALANCE -10.00; C_YTD_PAYMENT 10.00; one payment, no delivery.
        let numbers = [5_000_000, i64::from(row.discount), -1000, 1000, 1, 0];
        for (column, value) in (15..).zip(numbers) {
            customer.raw_bind_parameter(column, value)?;
        }
        customer.raw_bind_parameter(21, row.data.as_str())?;
        customer.raw_execute()
    }

    fn orders(&mut self, warehouse: u32, district: u32) -> Result<(), Error> {
        let mut customers = Vec::new();
        self.population.customers_of_orders(warehouse, district, &mut customers);
        let mut orders = Vec::with_capacity(customers.len());
        for (key, &customer) in (1..).zip(&customers) {
            let order = self.population.order(warehouse, district, key, customer);
            orders.push(order);
            let (date, lines) = (LOAD_TIME_MS, order.lines);
            let row = (key, district, warehouse, customer, date, order.carrier, lines, 1);
            let result = self.orders.execute(row);
            self.inserted("orders", result)?;
        }
        for key in self.scale.delivered_per_district() + 1..=self.scale.orders_per_district() {
            let result = self.new_order.execute((key, district, warehouse));
            self.inserted("new orders", result)?;
        }
        for (key, order) in (1..).zip(&orders) {
            let delivered = order.carrier.map(|_| LOAD_TIME_MS);
            let lines = self.population.lines(warehouse, district, key);
            for (number, line) in (1..=order.lines).zip(lines) {
                let info = line.dist_info.as_str();
                let row = (
                    key,
                    district,
                    warehouse,
                    number,
                    line.item,
                    warehouse,
                    delivered,
                    5,
                    line.amount,
                    info,
                );
                let result = self.order_line.execute(row);
                self.inserted("order lines", result)?;
            }
        }
        Ok(())
    }
}
