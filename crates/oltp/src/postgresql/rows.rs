//! Rows of order entry in the format of `COPY ... WITH (FORMAT binary)`.
//!
//! A table is a list of [`Chunk`]s; the bytes of a chunk are a function of seed and chunk alone, so
//! they are the same whichever thread makes them and however many there are. Rows come from
//! [`Population`], as SQLite's do; money and rates become NUMERIC, dates TIMESTAMP.

use dbms::postgresql::binary::{push_bytes, push_decimal, push_i32, push_null, push_timestamp_ms};

use crate::Scale;
use crate::workload::population::{Address, LOAD_TIME_MS, Population};

/// Rows of the tables without districts in one chunk.
const BLOCK_ROWS: u32 = 5000;

/// The tables, in the order of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// WAREHOUSE.
    Warehouse,
    /// DISTRICT.
    District,
    /// CUSTOMER.
    Customer,
    /// HISTORY.
    History,
    /// NEW-ORDER.
    NewOrder,
    /// ORDER.
    Orders,
    /// ORDER-LINE.
    OrderLine,
    /// ITEM.
    Item,
    /// STOCK.
    Stock,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Warehouse,
        Self::District,
        Self::Customer,
        Self::History,
        Self::NewOrder,
        Self::Orders,
        Self::OrderLine,
        Self::Item,
        Self::Stock,
    ];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warehouse => "warehouse",
            Self::District => "district",
            Self::Customer => "customer",
            Self::History => "history",
            Self::NewOrder => "new_order",
            Self::Orders => "orders",
            Self::OrderLine => "order_line",
            Self::Item => "item",
            Self::Stock => "stock",
        }
    }

    /// Bytes of an encoded row, about.
    pub fn row_bytes(self) -> u64 {
        match self {
            Self::Warehouse | Self::District => 150,
            Self::Customer => 660,
            Self::History => 90,
            Self::NewOrder => 26,
            Self::Orders => 70,
            Self::OrderLine => 115,
            Self::Item => 105,
            Self::Stock => 400,
        }
    }

    /// Rows that the load makes, on average where their number is random.
    pub fn rows_expected(self, scale: &Scale) -> u64 {
        let warehouses = u64::from(scale.warehouses);
        let districts = warehouses * u64::from(scale.districts);
        match self {
            Self::Warehouse => warehouses,
            Self::District => districts,
            Self::Customer | Self::History => districts * u64::from(scale.customers_per_district),
            Self::Orders => districts * u64::from(scale.orders_per_district()),
            Self::NewOrder => districts * u64::from(scale.new_orders_per_district()),
            Self::OrderLine => districts * u64::from(scale.orders_per_district()) * 10,
            Self::Item => u64::from(scale.items),
            Self::Stock => warehouses * u64::from(scale.items),
        }
    }
}

/// A part of a table: some tens or hundreds of kilobytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The table.
    pub table: Table,
    warehouse: u32,
    /// The district, or the first item.
    part: u32,
}

/// Makes the rows of one database.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    population: Population,
    scale: Scale,
}

impl Rows {
    /// The rows of this seed.
    pub fn new(scale: Scale, seed: u64) -> Self {
        Self { population: Population::new(scale, seed), scale }
    }

    /// The chunks of a table, in the order of its key.
    pub fn chunks(&self, table: Table) -> Vec<Chunk> {
        let scale = &self.scale;
        let parts: Vec<u32> = match table {
            Table::Warehouse | Table::District => vec![1],
            Table::Item | Table::Stock => (1..=scale.items).step_by(BLOCK_ROWS as usize).collect(),
            _ => (1..=scale.districts).collect(),
        };
        let warehouses = if table == Table::Item { 1 } else { scale.warehouses };
        let of = |warehouse| parts.iter().map(move |&part| Chunk { table, warehouse, part });
        (1..=warehouses).flat_map(of).collect()
    }

    /// Appends the rows of a chunk; returns their number.
    pub fn append(&self, chunk: Chunk, out: &mut Vec<u8>) -> u64 {
        let Chunk { table, warehouse, part } = chunk;
        let items = part..=(part + BLOCK_ROWS - 1).min(self.scale.items);
        match table {
            Table::Warehouse => self.warehouse(out, warehouse),
            Table::District => self.districts(out, warehouse),
            Table::Customer => self.customers(out, warehouse, part),
            Table::History => self.history(out, warehouse, part),
            Table::NewOrder => self.new_orders(out, warehouse, part),
            Table::Orders => self.orders(out, warehouse, part),
            Table::OrderLine => self.order_lines(out, warehouse, part),
            Table::Item => items.map(|item| self.item(out, item)).sum(),
            Table::Stock => items.map(|item| self.stock(out, warehouse, item)).sum(),
        }
    }

    /// D_YTD in cents: 10.00 per customer, as the history says; 30,000.00 at full scale.
    fn district_ytd(&self) -> i64 {
        i64::from(self.scale.customers_per_district) * 1000
    }

    fn warehouse(&self, out: &mut Vec<u8>, warehouse: u32) -> u64 {
        let row = self.population.warehouse(warehouse);
        begin(out, 9);
        integer(out, warehouse);
        text(out, row.name.as_str());
        address(out, &row.address);
        push_decimal(out, i64::from(row.tax), 4);
        // The sum of the districts' (clause 3.3.2.1): 300,000.00 at full scale.
        push_decimal(out, i64::from(self.scale.districts) * self.district_ytd(), 2);
        1
    }

    fn districts(&self, out: &mut Vec<u8>, warehouse: u32) -> u64 {
        for district in 1..=self.scale.districts {
            let row = self.population.district(warehouse, district);
            begin(out, 11);
            integer(out, district);
            integer(out, warehouse);
            text(out, row.name.as_str());
            address(out, &row.address);
            push_decimal(out, i64::from(row.tax), 4);
            push_decimal(out, self.district_ytd(), 2);
            integer(out, self.scale.orders_per_district() + 1);
        }
        u64::from(self.scale.districts)
    }

    fn customers(&self, out: &mut Vec<u8>, warehouse: u32, district: u32) -> u64 {
        for key in 1..=self.scale.customers_per_district {
            let row = self.population.customer(warehouse, district, key);
            begin(out, 21);
            integer(out, key);
            integer(out, district);
            integer(out, warehouse);
            text(out, row.first.as_str());
            text(out, "OE");
            text(out, row.last.as_str());
            address(out, &row.address);
            text(out, row.phone.as_str());
            push_timestamp_ms(out, LOAD_TIME_MS);
            text(out, if row.bad_credit { "BC" } else { "GC" });
            push_decimal(out, 5_000_000, 2);
            push_decimal(out, i64::from(row.discount), 4);
            push_decimal(out, -1000, 2);
            push_decimal(out, 1000, 2);
            integer(out, 1);
            integer(out, 0);
            text(out, row.data.as_str());
        }
        u64::from(self.scale.customers_per_district)
    }

    fn history(&self, out: &mut Vec<u8>, warehouse: u32, district: u32) -> u64 {
        for key in 1..=self.scale.customers_per_district {
            let data = self.population.history_data(warehouse, district, key);
            begin(out, 8);
            for value in [key, district, warehouse, district, warehouse] {
                integer(out, value);
            }
            push_timestamp_ms(out, LOAD_TIME_MS);
            push_decimal(out, 1000, 2);
            text(out, data.as_str());
        }
        u64::from(self.scale.customers_per_district)
    }

    fn new_orders(&self, out: &mut Vec<u8>, warehouse: u32, district: u32) -> u64 {
        let scale = &self.scale;
        for key in scale.delivered_per_district() + 1..=scale.orders_per_district() {
            begin(out, 3);
            for value in [key, district, warehouse] {
                integer(out, value);
            }
        }
        u64::from(scale.new_orders_per_district())
    }

    fn orders(&self, out: &mut Vec<u8>, warehouse: u32, district: u32) -> u64 {
        let mut customers = Vec::new();
        self.population.customers_of_orders(warehouse, district, &mut customers);
        for (key, &customer) in (1..).zip(&customers) {
            let order = self.population.order(warehouse, district, key, customer);
            begin(out, 8);
            for value in [key, district, warehouse, customer] {
                integer(out, value);
            }
            push_timestamp_ms(out, LOAD_TIME_MS);
            match order.carrier {
                Some(carrier) => integer(out, carrier),
                None => push_null(out),
            }
            integer(out, order.lines);
            integer(out, 1);
        }
        customers.len() as u64
    }

    fn order_lines(&self, out: &mut Vec<u8>, warehouse: u32, district: u32) -> u64 {
        let mut rows = 0;
        for key in 1..=self.scale.orders_per_district() {
            // The customer of an order does not bear on its lines.
            let order = self.population.order(warehouse, district, key, 0);
            let lines = self.population.lines(warehouse, district, key);
            for (number, line) in (1..=order.lines).zip(lines) {
                begin(out, 10);
                for value in [key, district, warehouse, number, line.item, warehouse] {
                    integer(out, value);
                }
                match order.carrier {
                    Some(_) => push_timestamp_ms(out, LOAD_TIME_MS),
                    None => push_null(out),
                }
                integer(out, 5);
                push_decimal(out, i64::from(line.amount), 2);
                text(out, line.dist_info.as_str());
            }
            rows += u64::from(order.lines);
        }
        rows
    }

    fn item(&self, out: &mut Vec<u8>, item: u32) -> u64 {
        let row = self.population.item(item);
        begin(out, 5);
        integer(out, item);
        integer(out, row.image);
        text(out, row.name.as_str());
        push_decimal(out, i64::from(row.price), 2);
        text(out, row.data.as_str());
        1
    }

    fn stock(&self, out: &mut Vec<u8>, warehouse: u32, item: u32) -> u64 {
        let row = self.population.stock(warehouse, item);
        begin(out, 17);
        for value in [item, warehouse, row.quantity] {
            integer(out, value);
        }
        for dist in &row.dist {
            text(out, dist.as_str());
        }
        for _ in 0..3 {
            integer(out, 0);
        }
        text(out, row.data.as_str());
        1
    }
}

/// The count of fields that begins a row.
#[inline]
fn begin(out: &mut Vec<u8>, fields: u16) {
    out.extend_from_slice(&fields.to_be_bytes());
}

#[inline]
fn integer(out: &mut Vec<u8>, value: u32) {
    push_i32(out, value as i32);
}

#[inline]
fn text(out: &mut Vec<u8>, text: &str) {
    push_bytes(out, text.as_bytes());
}

fn address(out: &mut Vec<u8>, at: &Address) {
    for column in [
        at.street_1.as_str(),
        at.street_2.as_str(),
        at.city.as_str(),
        at.state.as_str(),
        at.zip.as_str(),
    ] {
        text(out, column);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A digest of every chunk, made by so many threads that take them in whatever order.
    fn digests(threads: usize) -> Vec<(u64, u64)> {
        let scale = Scale { items: 12_000, ..Scale::miniature(3) };
        let rows = Rows::new(scale, 5);
        let chunks: Vec<Chunk> = Table::ALL.iter().flat_map(|&t| rows.chunks(t)).collect();
        let (next, found) = (AtomicUsize::new(0), Mutex::new(vec![(0, 0); chunks.len()]));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let mut out = Vec::new();
                    while let Some(&chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                        out.clear();
                        let count = rows.append(chunk, &mut out);
                        let digest =
                            out.iter().fold(0u64, |d, &b| stats::rng::mix(d ^ u64::from(b)));
                        let index = chunks.iter().position(|c| *c == chunk).unwrap();
                        found.lock().unwrap()[index] = (count, digest);
                    }
                });
            }
        });
        found.into_inner().unwrap()
    }

    #[test]
    fn rows_are_the_same_for_any_number_of_threads() {
        let one = digests(1);
        assert!(one.iter().all(|&(count, _)| count > 0));
        assert_eq!(one, digests(2));
        assert_eq!(one, digests(8));
    }

    /// Every row has the fields that it says, each as long as it says.
    #[test]
    fn rows_are_well_formed_and_as_many_as_expected() {
        let scale = Scale { items: 12_000, ..Scale::miniature(2) };
        let rows = Rows::new(scale, 5);
        for table in Table::ALL {
            let (mut out, mut count) = (Vec::new(), 0);
            for chunk in rows.chunks(table) {
                count += rows.append(chunk, &mut out);
            }
            let (mut rest, mut seen) = (&out[..], 0);
            while let Some((fields, after)) = rest.split_first_chunk::<2>() {
                rest = after;
                for _ in 0..u16::from_be_bytes(*fields) {
                    let (len, after) = rest.split_first_chunk::<4>().unwrap();
                    let len = i32::from_be_bytes(*len).max(0) as usize;
                    rest = &after[len..];
                }
                seen += 1;
            }
            assert_eq!(seen, count, "{table:?}");
            let expected = table.rows_expected(&scale);
            let near = if table == Table::OrderLine { expected / 10 } else { 0 };
            assert!(count.abs_diff(expected) <= near, "{table:?}: {count} of {expected}");
        }
    }
}
