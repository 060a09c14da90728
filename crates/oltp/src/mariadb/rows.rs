//! The rows of a load as LOAD DATA reads them: fields between tabs, a line each, `\N` for NULL.
//!
//! Every value is a number, a date of the load or letters and digits: nothing needs an escape. A
//! piece is a function of its number alone, so the bytes do not depend on who makes it.

use crate::Scale;
use crate::workload::Dataset;
use crate::workload::population::{Address, LOAD_TIME_MS, Place, Population};

/// What a table is filled with.
pub(super) struct Source {
    pub pieces: usize,
    pub rows_expected: u64,
    /// About; to begin with the largest.
    pub bytes_expected: u64,
    /// Appends a piece; returns its rows.
    pub append: Box<Append>,
}

/// Makes a piece.
type Append = dyn Fn(usize, &mut Vec<u8>) -> u64 + Sync;

/// Rows of a piece, where a table has no natural pieces.
const PIECE_ROWS: u32 = 2000;

/// The date of the load, `LOAD_TIME_MS`, in UTC.
const LOAD_TIME: &str = "2026-01-01 00:00:00";
const _: () = assert!(LOAD_TIME_MS == 1_767_225_600_000, "LOAD_TIME says the same");

/// C_CREDIT_LIM 50,000.00; C_BALANCE -10.00; C_YTD_PAYMENT 10.00; one payment, no delivery.
const CUSTOMER_NUMBERS: &str = "\t50000.00\t";
const CUSTOMER_PAID: &str = "\t-10.00\t10.00\t1\t0\t";

/// The source of a table of a dataset.
pub(super) fn source(dataset: &Dataset, seed: u64, table: &str) -> Source {
    match *dataset {
        Dataset::OrderEntry(scale) => order_entry(Rows::new(scale, seed), table),
        Dataset::Bank(scale) => match table {
            "branches" => plain(scale.branches, |_| None),
            "tellers" => plain(scale.tellers(), move |key| Some(scale.branch_of_teller(key))),
            "accounts" => plain(scale.accounts(), move |key| Some(scale.branch_of_account(key))),
            _ => plain(0, |_| None),
        },
        Dataset::Commit(scale) => plain(scale.rows, |_| None),
    }
}

/// Rows with a key, perhaps a branch, a balance of 0, and a filler.
fn plain(rows: u32, branch: impl Fn(u32) -> Option<u32> + Sync + 'static) -> Source {
    Source {
        pieces: rows.div_ceil(PIECE_ROWS) as usize,
        rows_expected: u64::from(rows),
        bytes_expected: u64::from(rows) * 100,
        append: Box::new(move |piece, out| {
            let first = piece as u32 * PIECE_ROWS + 1;
            let last = (first + PIECE_ROWS - 1).min(rows);
            for key in first..=last {
                number(out, key);
                if let Some(branch) = branch(key) {
                    tab_number(out, branch);
                }
                // CHAR is padded with spaces by the server.
                out.extend_from_slice(b"\t0\t\n");
            }
            u64::from(last + 1 - first)
        }),
    }
}

fn order_entry(rows: Rows, table: &str) -> Source {
    let Scale { warehouses, districts, customers_per_district, items } = rows.scale;
    let (w, all) = (u64::from(warehouses), (warehouses * districts) as usize);
    let of_district = |per: u32| w * u64::from(districts) * u64::from(per);
    let orders = customers_per_district;
    // Of a table: pieces, rows, bytes per row, how a piece is made.
    type Make = fn(&Rows, usize, &mut Vec<u8>) -> u64;
    let stock_pieces = (warehouses * items.div_ceil(PIECE_ROWS)) as usize;
    let (pieces, rows_expected, row_bytes, append): (usize, u64, u64, Make) = match table {
        "warehouse" => (1, w, 100, Rows::warehouses),
        "district" => (1, of_district(1), 100, Rows::districts),
        "customer" => (all, of_district(customers_per_district), 580, Rows::customers),
        "history" => (all, of_district(customers_per_district), 60, Rows::history),
        "new_order" => {
            (all, of_district(rows.scale.new_orders_per_district()), 20, Rows::new_orders)
        }
        "orders" => (all, of_district(orders), 50, Rows::orders),
        "order_line" => (all, of_district(orders) * 10, 75, Rows::order_lines),
        "item" => (items.div_ceil(PIECE_ROWS) as usize, u64::from(items), 80, Rows::items),
        "stock" => (stock_pieces, w * u64::from(items), 310, Rows::stock),
        other => unreachable!("no table {other}"),
    };
    Source {
        pieces,
        rows_expected,
        bytes_expected: rows_expected * row_bytes,
        append: Box::new(move |piece, out| append(&rows, piece, out)),
    }
}

/// The makers of order entry's rows.
struct Rows {
    scale: Scale,
    population: Population,
}

impl Rows {
    fn new(scale: Scale, seed: u64) -> Self {
        Self { scale, population: Population::new(scale, seed) }
    }

    /// Warehouse and district of a piece, in the order of the primary keys.
    fn district_of(&self, piece: usize) -> (u32, u32) {
        let (piece, districts) = (piece as u32, self.scale.districts);
        (piece / districts + 1, piece % districts + 1)
    }

    /// D_YTD in units: 10.00 per customer, as the history says; 30,000.00 at full scale.
    fn district_ytd(&self) -> u32 {
        self.scale.customers_per_district * 10
    }

    fn warehouses(&self, _: usize, out: &mut Vec<u8>) -> u64 {
        for warehouse in 1..=self.scale.warehouses {
            number(out, warehouse);
            // The sum of the districts' (clause 3.3.2.1): 300,000.00 at full scale.
            place(out, &self.population.warehouse(warehouse));
            tab_number(out, self.district_ytd() * self.scale.districts);
            out.push(b'\n');
        }
        u64::from(self.scale.warehouses)
    }

    fn districts(&self, _: usize, out: &mut Vec<u8>) -> u64 {
        for warehouse in 1..=self.scale.warehouses {
            for district in 1..=self.scale.districts {
                number(out, district);
                tab_number(out, warehouse);
                place(out, &self.population.district(warehouse, district));
                tab_number(out, self.district_ytd());
                tab_number(out, self.scale.orders_per_district() + 1);
                out.push(b'\n');
            }
        }
        u64::from(self.scale.warehouses * self.scale.districts)
    }

    fn customers(&self, piece: usize, out: &mut Vec<u8>) -> u64 {
        let (warehouse, district) = self.district_of(piece);
        for key in 1..=self.scale.customers_per_district {
            let row = self.population.customer(warehouse, district, key);
            number(out, key);
            tab_number(out, district);
            tab_number(out, warehouse);
            tab(out, row.first.as_str());
            tab(out, "OE");
            tab(out, row.last.as_str());
            address(out, &row.address);
            tab(out, row.phone.as_str());
            tab(out, LOAD_TIME);
            tab(out, if row.bad_credit { "BC" } else { "GC" });
            out.extend_from_slice(CUSTOMER_NUMBERS.as_bytes());
            rate(out, row.discount);
            out.extend_from_slice(CUSTOMER_PAID.as_bytes());
            out.extend_from_slice(row.data.as_str().as_bytes());
            out.push(b'\n');
        }
        u64::from(self.scale.customers_per_district)
    }

    fn history(&self, piece: usize, out: &mut Vec<u8>) -> u64 {
        let (warehouse, district) = self.district_of(piece);
        for key in 1..=self.scale.customers_per_district {
            let data = self.population.history_data(warehouse, district, key);
            number(out, key);
            for key in [district, warehouse, district, warehouse] {
                tab_number(out, key);
            }
            tab(out, LOAD_TIME);
            tab(out, "10.00");
            tab(out, data.as_str());
            out.push(b'\n');
        }
        u64::from(self.scale.customers_per_district)
    }

    fn new_orders(&self, piece: usize, out: &mut Vec<u8>) -> u64 {
        let (warehouse, district) = self.district_of(piece);
        let orders = self.scale.delivered_per_district() + 1..=self.scale.orders_per_district();
        for key in orders {
            number(out, key);
            tab_number(out, district);
            tab_number(out, warehouse);
            out.push(b'\n');
        }
        u64::from(self.scale.new_orders_per_district())
    }

    fn orders(&self, piece: usize, out: &mut Vec<u8>) -> u64 {
        let (warehouse, district) = self.district_of(piece);
        let mut customers = Vec::new();
        self.population.customers_of_orders(warehouse, district, &mut customers);
        for (key, &customer) in (1..).zip(&customers) {
            let order = self.population.order(warehouse, district, key, customer);
            number(out, key);
            tab_number(out, district);
            tab_number(out, warehouse);
            tab_number(out, customer);
            tab(out, LOAD_TIME);
            match order.carrier {
                Some(carrier) => tab_number(out, carrier),
                None => tab(out, "\\N"),
            }
            tab_number(out, order.lines);
            tab(out, "1\n");
        }
        customers.len() as u64
    }

    fn order_lines(&self, piece: usize, out: &mut Vec<u8>) -> u64 {
        let (warehouse, district) = self.district_of(piece);
        let mut count = 0;
        for key in 1..=self.scale.orders_per_district() {
            // Neither carrier nor number of lines depends on the customer.
            let order = self.population.order(warehouse, district, key, 0);
            let delivered = if order.carrier.is_some() { LOAD_TIME } else { "\\N" };
            let lines = self.population.lines(warehouse, district, key);
            for (line_number, line) in (1..=order.lines).zip(lines) {
                number(out, key);
                tab_number(out, district);
                tab_number(out, warehouse);
                tab_number(out, line_number);
                tab_number(out, line.item);
                tab_number(out, warehouse);
                tab(out, delivered);
                tab(out, "5\t");
                cents(out, line.amount);
                tab(out, line.dist_info.as_str());
                out.push(b'\n');
            }
            count += u64::from(order.lines);
        }
        count
    }

    fn items(&self, piece: usize, out: &mut Vec<u8>) -> u64 {
        let keys = self.items_of(piece);
        let count = keys.clone().count() as u64;
        for key in keys {
            let item = self.population.item(key);
            number(out, key);
            tab_number(out, item.image);
            tab(out, item.name.as_str());
            out.push(b'\t');
            cents(out, item.price);
            tab(out, item.data.as_str());
            out.push(b'\n');
        }
        count
    }

    fn items_of(&self, piece: usize) -> std::ops::RangeInclusive<u32> {
        let first = piece as u32 * PIECE_ROWS + 1;
        first..=(first + PIECE_ROWS - 1).min(self.scale.items)
    }

    fn stock(&self, piece: usize, out: &mut Vec<u8>) -> u64 {
        let per_warehouse = self.scale.items.div_ceil(PIECE_ROWS) as usize;
        let warehouse = (piece / per_warehouse) as u32 + 1;
        let items = self.items_of(piece % per_warehouse);
        let count = items.clone().count() as u64;
        for item in items {
            let row = self.population.stock(warehouse, item);
            number(out, item);
            tab_number(out, warehouse);
            tab_number(out, row.quantity);
            for dist in &row.dist {
                tab(out, dist.as_str());
            }
            tab(out, "0\t0\t0");
            tab(out, row.data.as_str());
            out.push(b'\n');
        }
        count
    }
}

/// Name, address and tax of a warehouse or district.
fn place(out: &mut Vec<u8>, place: &Place) {
    tab(out, place.name.as_str());
    address(out, &place.address);
    out.push(b'\t');
    rate(out, place.tax);
}

fn address(out: &mut Vec<u8>, address: &Address) {
    tab(out, address.street_1.as_str());
    tab(out, address.street_2.as_str());
    tab(out, address.city.as_str());
    tab(out, address.state.as_str());
    tab(out, address.zip.as_str());
}

fn tab(out: &mut Vec<u8>, text: &str) {
    out.push(b'\t');
    out.extend_from_slice(text.as_bytes());
}

fn tab_number(out: &mut Vec<u8>, value: u32) {
    out.push(b'\t');
    number(out, value);
}

fn number(out: &mut Vec<u8>, value: u32) {
    let mut digits = [0; 10];
    let (mut at, mut rest) = (digits.len(), value);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Cents as a decimal of two digits.
fn cents(out: &mut Vec<u8>, value: u32) {
    number(out, value / 100);
    let rest = (value % 100) as u8;
    out.extend_from_slice(&[b'.', b'0' + rest / 10, b'0' + rest % 10]);
}

/// A rate of ten-thousandths, below 1.
fn rate(out: &mut Vec<u8>, value: u32) {
    assert!(value < 10_000, "a rate of 100 % or more");
    out.extend_from_slice(b"0.");
    for divisor in [1000, 100, 10, 1] {
        out.push(b'0' + (value / divisor % 10) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::bank::BankScale;

    fn text(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_written_as_sql_reads_them() {
        assert_eq!(text(|out| number(out, 0)), "0");
        assert_eq!(text(|out| number(out, u32::MAX)), "4294967295");
        assert_eq!(text(|out| cents(out, 5)), "0.05");
        assert_eq!(text(|out| cents(out, 999_999)), "9999.99");
        assert_eq!(text(|out| rate(out, 7)), "0.0007");
        assert_eq!(text(|out| rate(out, 5000)), "0.5000");
    }

    /// Every line has the columns of its table, every piece the rows that it says.
    #[test]
    fn pieces_hold_whole_rows() {
        let order_entry = Dataset::OrderEntry(Scale::miniature(2));
        let bank = Dataset::Bank(BankScale { branches: 3, accounts_per_branch: 1500 });
        let tables = [
            (order_entry, "warehouse", 9, 2),
            (order_entry, "district", 11, 6),
            (order_entry, "customer", 21, 360),
            (order_entry, "history", 8, 360),
            (order_entry, "new_order", 3, 108),
            (order_entry, "orders", 8, 360),
            (order_entry, "order_line", 10, 0),
            (order_entry, "item", 5, 200),
            (order_entry, "stock", 17, 400),
            (bank, "branches", 3, 3),
            (bank, "tellers", 4, 30),
            (bank, "accounts", 4, 4500),
            (bank, "history", 0, 0),
        ];
        for (dataset, table, columns, rows) in tables {
            let source = source(&dataset, 7, table);
            let mut found = 0;
            for piece in 0..source.pieces {
                let mut out = Vec::new();
                let count = (source.append)(piece, &mut out);
                let out = String::from_utf8(out).unwrap();
                assert_eq!(out.lines().count() as u64, count, "{table}");
                let whole = |line: &str| line.split('\t').count() == columns;
                assert!(out.lines().all(whole), "{table}");
                found += count;
            }
            assert!(rows == 0 || found == rows, "{table} {found}");
            assert!(table == "order_line" || found == source.rows_expected, "{table}");
        }
    }
}
