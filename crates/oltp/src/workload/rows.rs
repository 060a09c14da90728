//! The rows that every table starts with (TPC-C 5.11 clause 4.3.3.1), in the format of any DBMS.
//!
//! A table is a list of [`Chunk`]s; the rows of a chunk are a function of seed and chunk alone, so
//! they are the same whichever thread makes them and however many there are. A DBMS's [`Encoder`]
//! takes them value by value and decides how money, rates and dates are written; the code is made
//! for each encoder, so nothing stands between a row and its bytes.

use super::Dataset;
use super::bank::BankScale;
use super::population::{Address, Place, Population};
use super::schema::Table;
use crate::Scale;

/// Rows of a chunk, where a table has no districts.
pub(crate) const BLOCK_ROWS: u32 = 5000;

const FILLER: &str = match std::str::from_utf8(&[b' '; 84]) {
    Ok(spaces) => spaces,
    Err(_) => unreachable!(),
};

/// Takes rows, value by value in the order of the columns.
pub trait Encoder {
    /// Why a row may not be taken; `Infallible` where rows become bytes in memory.
    type Error;

    /// Begins a row.
    fn begin(&mut self);
    /// An integer of at most 32 bits.
    fn integer(&mut self, value: u32);
    /// An integer of 64 bits.
    fn long(&mut self, value: i64);
    /// A number with places (own workloads).
    fn real(&mut self, value: f64) {
        self.text(&value.to_string());
    }
    /// Cents.
    fn money(&mut self, cents: i64);
    /// Ten-thousandths, below 1.
    fn rate(&mut self, ten_thousandths: u32);
    /// The date of the load, [`super::population::LOAD_TIME_MS`].
    fn load_time(&mut self);
    /// Text of letters, digits and spaces.
    fn text(&mut self, text: &str);
    /// The filler of a row that has an id, perhaps a branch, and a balance: 84 spaces.
    #[inline]
    fn filler(&mut self) {
        self.text(FILLER);
    }
    /// A null.
    fn null(&mut self);
    /// The error of a row that cannot be made (own workloads).
    fn refuse(&mut self, place: String, why: String) -> Self::Error {
        unreachable!("{place}: {why}: rows of built-in workloads can be made")
    }
    /// Ends a row.
    fn end(&mut self) -> Result<(), Self::Error>;
}

/// A part of a table: some tens or hundreds of kilobytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The table.
    pub table: Table,
    /// 0 in tables that have no warehouses.
    warehouse: u32,
    /// 0 in tables that are not divided by districts.
    district: u32,
    /// First key of a block; 0 in tables that are not divided into blocks.
    first: u32,
}

/// Makes the rows of one database.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    dataset: Dataset,
    seed: u64,
}

impl Rows {
    /// The rows of a dataset with this seed.
    pub fn new(dataset: Dataset, seed: u64) -> Self {
        Self { dataset, seed }
    }

    /// The tables, in the order of the specification.
    pub fn tables(&self) -> &'static [Table] {
        Table::of(self.dataset.workload())
    }

    /// Rows that the load makes of a table, on average where their number is random.
    pub fn expected(&self, table: Table) -> u64 {
        match self.dataset {
            Dataset::OrderEntry(scale) => rows_of_order_entry(&scale, table),
            Dataset::Bank(scale) => u64::from(rows_of_bank(scale, table)),
            Dataset::Commit(scale) => u64::from(scale.rows),
            Dataset::Own(_) => match table {
                Table::Own(table) => u64::from(table.0.rows),
                _ => 0,
            },
        }
    }

    /// The chunks of a table, in the order of its key.
    pub fn chunks(&self, table: Table) -> Vec<Chunk> {
        let of = |warehouse, district, first| Chunk { table, warehouse, district, first };
        let Dataset::OrderEntry(scale) = self.dataset else {
            return blocks(self.expected(table) as u32).map(|first| of(0, 0, first)).collect();
        };
        let of_warehouse = |warehouse| -> Vec<Chunk> {
            match table {
                Table::Warehouse | Table::District => vec![of(warehouse, 0, 0)],
                Table::Stock => blocks(scale.items).map(|first| of(warehouse, 0, first)).collect(),
                _ => (1..=scale.districts).map(|district| of(warehouse, district, 0)).collect(),
            }
        };
        match table {
            Table::Item => blocks(scale.items).map(|first| of(0, 0, first)).collect(),
            _ => (1..=scale.warehouses).flat_map(of_warehouse).collect(),
        }
    }

    /// The chunks of all tables, warehouse by warehouse and district by district, so that what
    /// belongs to a district lies together in a file.
    pub fn chunks_by_place(&self) -> Vec<Chunk> {
        let mut all: Vec<Chunk> = self.tables().iter().flat_map(|&t| self.chunks(t)).collect();
        all.sort_by_key(|chunk| (chunk.warehouse, chunk.district));
        all
    }

    /// Makes the rows of a chunk; returns their number.
    ///
    /// # Errors
    /// The encoder's, at the row that it does not take.
    pub fn append<E: Encoder>(&self, chunk: Chunk, out: &mut E) -> Result<u64, E::Error> {
        let Chunk { table, first, .. } = chunk;
        match self.dataset {
            Dataset::OrderEntry(scale) => {
                let population = Population::new(scale, self.seed);
                OrderEntry { scale, population }.append(chunk, out)
            }
            Dataset::Bank(scale) => {
                let branch = |key| match table {
                    Table::Tellers => Some(scale.branch_of_teller(key)),
                    Table::Accounts => Some(scale.branch_of_account(key)),
                    _ => None,
                };
                balances(first, rows_of_bank(scale, table), branch, out)
            }
            Dataset::Commit(scale) => balances(first, scale.rows, |_| None, out),
            Dataset::Own(_) => match table {
                Table::Own(table) => table.append(self.seed, first, out),
                _ => Ok(0),
            },
        }
    }
}

fn rows_of_order_entry(scale: &Scale, table: Table) -> u64 {
    let (warehouses, items) = (u64::from(scale.warehouses), u64::from(scale.items));
    let districts = warehouses * u64::from(scale.districts);
    match table {
        Table::Warehouse => warehouses,
        Table::District => districts,
        Table::Orders => districts * u64::from(scale.orders_per_district()),
        Table::NewOrder => districts * u64::from(scale.new_orders_per_district()),
        Table::OrderLine => districts * u64::from(scale.orders_per_district()) * 10,
        Table::Item => items,
        Table::Stock => warehouses * items,
        _ => districts * u64::from(scale.customers_per_district),
    }
}

fn rows_of_bank(scale: BankScale, table: Table) -> u32 {
    match table {
        Table::Branches => scale.branches,
        Table::Tellers => scale.tellers(),
        Table::Accounts => scale.accounts(),
        _ => 0,
    }
}

/// First keys of the blocks of this many rows.
fn blocks(rows: u32) -> impl Iterator<Item = u32> {
    (1..=rows).step_by(BLOCK_ROWS as usize)
}

/// Rows with a key, perhaps a branch, a balance of 0, and a filler.
fn balances<E: Encoder>(
    first: u32,
    rows: u32,
    branch: impl Fn(u32) -> Option<u32>,
    out: &mut E,
) -> Result<u64, E::Error> {
    let last = (first + BLOCK_ROWS - 1).min(rows);
    for key in first..=last {
        out.begin();
        out.integer(key);
        if let Some(branch) = branch(key) {
            out.integer(branch);
        }
        out.long(0);
        out.filler();
        out.end()?;
    }
    Ok(u64::from(last + 1 - first))
}

/// The makers of order entry's rows.
struct OrderEntry {
    scale: Scale,
    population: Population,
}

impl OrderEntry {
    fn append<E: Encoder>(&self, chunk: Chunk, out: &mut E) -> Result<u64, E::Error> {
        let Chunk { table, warehouse: w, district: d, first } = chunk;
        let scale = &self.scale;
        let items = first..=(first + BLOCK_ROWS - 1).min(scale.items);
        let customers = 1..=scale.customers_per_district;
        match table {
            Table::Warehouse => each(w..=w, |w| self.warehouse(out, w)),
            Table::District => each(1..=scale.districts, |d| self.district(out, w, d)),
            Table::Customer => each(customers, |key| self.customer(out, (w, d, key))),
            Table::History => each(customers, |key| self.history(out, (w, d, key))),
            Table::NewOrder => {
                let keys = scale.delivered_per_district() + 1..=scale.orders_per_district();
                each(keys, |key| new_order(out, (w, d, key)))
            }
            Table::Orders => {
                let mut customers = Vec::new();
                self.population.customers_of_orders(w, d, &mut customers);
                let customer = |key: u32| customers[key as usize - 1];
                let keys = 1..=scale.orders_per_district();
                each(keys, |key| self.order(out, (w, d, key), customer(key)))
            }
            Table::OrderLine => self.order_lines(out, w, d),
            Table::Item => each(items, |item| self.item(out, item)),
            Table::Stock => each(items, |item| self.stock(out, w, item)),
            other => unreachable!("{other:?} is no table of order entry"),
        }
    }

    /// D_YTD in cents: 10.00 per customer, as the history says; 30,000.00 at full scale.
    fn district_ytd(&self) -> i64 {
        i64::from(self.scale.customers_per_district) * 1000
    }

    fn warehouse<E: Encoder>(&self, out: &mut E, warehouse: u32) -> Result<(), E::Error> {
        out.begin();
        out.integer(warehouse);
        place(out, &self.population.warehouse(warehouse));
        // The sum of the districts' (clause 3.3.2.1): 300,000.00 at full scale.
        out.money(i64::from(self.scale.districts) * self.district_ytd());
        out.end()
    }

    fn district<E: Encoder>(&self, out: &mut E, w: u32, district: u32) -> Result<(), E::Error> {
        out.begin();
        integers(out, [district, w]);
        place(out, &self.population.district(w, district));
        out.money(self.district_ytd());
        out.integer(self.scale.orders_per_district() + 1);
        out.end()
    }

    fn customer<E: Encoder>(&self, out: &mut E, (w, d, key): Key) -> Result<(), E::Error> {
        let row = self.population.customer(w, d, key);
        out.begin();
        integers(out, [key, d, w]);
        out.text(row.first.as_str());
        out.text("OE");
        out.text(row.last.as_str());
        address(out, &row.address);
        out.text(row.phone.as_str());
        out.load_time();
        out.text(if row.bad_credit { "BC" } else { "GC" });
        // C_CREDIT_LIM 50,000.00; C_BALANCE -10.00; C_YTD_PAYMENT 10.00; one payment, no delivery.
        out.money(5_000_000);
        out.rate(row.discount);
        out.money(-1000);
        out.money(1000);
        integers(out, [1, 0]);
        out.text(row.data.as_str());
        out.end()
    }

    fn history<E: Encoder>(&self, out: &mut E, (w, d, key): Key) -> Result<(), E::Error> {
        let data = self.population.history_data(w, d, key);
        out.begin();
        integers(out, [key, d, w, d, w]);
        out.load_time();
        out.money(1000);
        out.text(data.as_str());
        out.end()
    }

    fn order<E: Encoder>(
        &self,
        out: &mut E,
        (w, d, key): Key,
        customer: u32,
    ) -> Result<(), E::Error> {
        let order = self.population.order(w, d, key, customer);
        out.begin();
        integers(out, [key, d, w, customer]);
        out.load_time();
        match order.carrier {
            Some(carrier) => out.integer(carrier),
            None => out.null(),
        }
        integers(out, [order.lines, 1]);
        out.end()
    }

    fn order_lines<E: Encoder>(&self, out: &mut E, w: u32, d: u32) -> Result<u64, E::Error> {
        let mut rows = 0;
        for key in 1..=self.scale.orders_per_district() {
            // The customer of an order does not bear on its lines.
            let order = self.population.order(w, d, key, 0);
            let lines = self.population.lines(w, d, key);
            for (number, line) in (1..=order.lines).zip(lines) {
                out.begin();
                integers(out, [key, d, w, number, line.item, w]);
                match order.carrier {
                    Some(_) => out.load_time(),
                    None => out.null(),
                }
                out.integer(5);
                out.money(i64::from(line.amount));
                out.text(line.dist_info.as_str());
                out.end()?;
            }
            rows += u64::from(order.lines);
        }
        Ok(rows)
    }

    fn item<E: Encoder>(&self, out: &mut E, item: u32) -> Result<(), E::Error> {
        let row = self.population.item(item);
        out.begin();
        integers(out, [item, row.image]);
        out.text(row.name.as_str());
        out.money(i64::from(row.price));
        out.text(row.data.as_str());
        out.end()
    }

    fn stock<E: Encoder>(&self, out: &mut E, warehouse: u32, item: u32) -> Result<(), E::Error> {
        let row = self.population.stock(warehouse, item);
        out.begin();
        integers(out, [item, warehouse, row.quantity]);
        row.dist.iter().for_each(|dist| out.text(dist.as_str()));
        integers(out, [0, 0, 0]);
        out.text(row.data.as_str());
        out.end()
    }
}

/// Warehouse, district and number of a row.
type Key = (u32, u32, u32);

/// Makes a row of each key; returns their number.
fn each<Error>(
    keys: std::ops::RangeInclusive<u32>,
    mut row: impl FnMut(u32) -> Result<(), Error>,
) -> Result<u64, Error> {
    let count = u64::from(keys.end() + 1 - keys.start());
    for key in keys {
        row(key)?;
    }
    Ok(count)
}

#[inline]
fn integers<const N: usize>(out: &mut impl Encoder, values: [u32; N]) {
    for value in values {
        out.integer(value);
    }
}

fn new_order<E: Encoder>(out: &mut E, (w, d, key): Key) -> Result<(), E::Error> {
    out.begin();
    integers(out, [key, d, w]);
    out.end()
}

/// Name, address and tax of a warehouse or district.
fn place(out: &mut impl Encoder, place: &Place) {
    out.text(place.name.as_str());
    address(out, &place.address);
    out.rate(place.tax);
}

fn address(out: &mut impl Encoder, at: &Address) {
    for column in [&at.street_1, &at.street_2, &at.city] {
        out.text(column.as_str());
    }
    out.text(at.state.as_str());
    out.text(at.zip.as_str());
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::workload::commit::CommitScale;
    use crate::workload::schema::Type;

    /// Keeps the rows as values, each with the kind of its column.
    #[derive(Default)]
    struct Values(Vec<Vec<(char, String)>>);

    impl Values {
        fn push(&mut self, kind: char, value: &dyn ToString) {
            self.0.last_mut().expect("a row was begun").push((kind, value.to_string()));
        }
    }

    impl Encoder for Values {
        type Error = Infallible;

        fn begin(&mut self) {
            self.0.push(Vec::new());
        }
        fn integer(&mut self, value: u32) {
            self.push('i', &value);
        }
        fn long(&mut self, value: i64) {
            self.push('l', &value);
        }
        fn money(&mut self, cents: i64) {
            self.push('m', &cents);
        }
        fn rate(&mut self, ten_thousandths: u32) {
            self.push('r', &ten_thousandths);
        }
        fn load_time(&mut self) {
            self.push('d', &"");
        }
        fn text(&mut self, text: &str) {
            self.push('t', &text);
        }
        fn null(&mut self) {
            self.push('0', &"");
        }
        fn end(&mut self) -> Result<(), Infallible> {
            Ok(())
        }
    }

    fn datasets() -> [Dataset; 3] {
        [
            Dataset::OrderEntry(Scale { items: 12_000, ..Scale::miniature(3) }),
            Dataset::Bank(BankScale { branches: 3, accounts_per_branch: 4000 }),
            Dataset::Commit(CommitScale { rows: 12_001 }),
        ]
    }

    /// The rows of every chunk, made by this many threads that take them in whatever order.
    fn made(dataset: Dataset, threads: usize) -> Vec<(u64, u64)> {
        let rows = Rows::new(dataset, 5);
        let chunks = rows.chunks_by_place();
        let (next, found) = (AtomicUsize::new(0), Mutex::new(vec![(0, 0); chunks.len()]));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(&chunk) = chunks.get(index) else { break };
                        let mut out = Values::default();
                        let Ok(count) = rows.append(chunk, &mut out);
                        let bytes = out.0.iter().flatten().flat_map(|(_, value)| value.bytes());
                        let digest = bytes.fold(0u64, |d, b| stats::rng::mix(d ^ u64::from(b)));
                        found.lock().unwrap()[index] = (count, digest);
                    }
                });
            }
        });
        found.into_inner().unwrap()
    }

    #[test]
    fn rows_are_the_same_for_any_number_of_threads() {
        for dataset in datasets() {
            let one = made(dataset, 1);
            assert!(one.iter().all(|&(count, _)| count > 0));
            assert_eq!(one, made(dataset, 2));
            assert_eq!(one, made(dataset, 8));
        }
    }

    /// Every row has a value of the right kind and length for each column of its table, and there
    /// are as many as expected.
    #[test]
    fn rows_fit_their_tables_and_are_as_many_as_expected() {
        for dataset in datasets() {
            let rows = Rows::new(dataset, 5);
            for &table in rows.tables() {
                let (mut out, mut count) = (Values::default(), 0);
                for chunk in rows.chunks(table) {
                    let Ok(rows) = rows.append(chunk, &mut out);
                    count += rows;
                }
                assert_eq!(out.0.len() as u64, count, "{table:?}");
                let expected = rows.expected(table);
                let near = if table == Table::OrderLine { expected / 10 } else { 0 };
                assert!(count.abs_diff(expected) <= near, "{table:?}: {count} of {expected}");
                let columns = table.definition().columns;
                for row in out.0 {
                    assert_eq!(row.len(), columns.len(), "{table:?}");
                    for ((kind, value), column) in row.iter().zip(columns) {
                        let length = value.len() as u32;
                        let number = || value.parse::<i64>().unwrap().abs();
                        let fits = match (kind, column.holds) {
                            ('0', _) => column.nullable,
                            ('i', Type::Tiny) => number() <= 100,
                            ('i', Type::Short) => number() <= 32_767,
                            ('i', Type::Int) | ('l', Type::Long) | ('d', Type::Date) => true,
                            ('m', Type::Money(digits)) => number() < 10i64.pow(digits),
                            ('r', Type::Rate) => number() < 10_000,
                            ('t', Type::Char(fixed)) => length == fixed,
                            ('t', Type::Text(most) | Type::Name(most)) => length <= most,
                            _ => false,
                        };
                        assert!(fits, "{table:?}.{}: {kind} '{value}'", column.name);
                    }
                }
            }
        }
    }

    /// Warehouse by warehouse and district by district, and nothing left out.
    #[test]
    fn places_follow_each_other() {
        for dataset in datasets() {
            let rows = Rows::new(dataset, 5);
            let all = rows.chunks_by_place();
            assert!(all.is_sorted_by_key(|chunk| (chunk.warehouse, chunk.district)));
            let of = |table| all.iter().copied().filter(move |chunk| chunk.table == table);
            for &table in rows.tables() {
                assert_eq!(of(table).collect::<Vec<_>>(), rows.chunks(table));
            }
        }
    }
}
