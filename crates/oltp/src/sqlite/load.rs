//! Loading a database (TPC-C 5.11 clause 4.3.3.1).
//!
//! Rows go in through prepared statements in the order of the clustered keys, without a journal
//! and without syncs; indexes follow; then the file is marked complete, made durable, and given the
//! journal mode of the run. Until that mark (`user_version`) no stage takes the file for a database,
//! and a load that fails or is stopped removes it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use events::{Ending, Event, Sink, Step};
use rusqlite::{Connection, OpenFlags, Statement, params};
use serde::{Deserialize, Serialize};

use super::open::{integer, open_file, pragma, set_cache, set_journal_mode};
use super::schema::{APPLICATION_ID, INDEXES, LAYOUT, TABLES};
use crate::options::{LoadOptions, SqliteSettings};
use crate::workload::nurand::Constants;
use crate::workload::population::{LOAD_TIME_MS, Population};
use crate::{Error, Scale};

/// Page cache while loading: the indexes of tens of warehouses sort within it.
const LOAD_CACHE: units::Bytes = units::Bytes(256 << 20);

/// Rows between two looks at the stop flag.
const ROWS_BETWEEN_CHECKS: u32 = 5000;

/// Share of the load that the indexes and the final sync take, for progress.
const INDEX_SHARE: f64 = 0.15;

const STAGE: &str = "load";

/// What a load did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// The database file.
    pub database: PathBuf,
    /// Its size in warehouses and rows.
    pub scale: Scale,
    /// Rows of all tables.
    pub rows: u64,
    /// Size of the file, bytes.
    pub database_bytes: u64,
    /// Wall-clock time, seconds.
    pub elapsed_s: f64,
    /// CPU time of the loading thread, seconds.
    pub cpu_s: f64,
}

/// Loads a database, in place of an earlier one that wearmark made.
///
/// # Errors
/// A missing directory, a file that is not ours, a full disk, a stop by the user; nothing is left
/// behind then.
pub fn load(options: &LoadOptions, sink: &dyn Sink) -> Result<LoadReport, Error> {
    options.scale.validate()?;
    options.sqlite.validate()?;
    let path = options.sqlite.database();
    if !options.sqlite.directory.is_dir() {
        return Err(Error::NoDirectory { path: options.sqlite.directory.clone() });
    }
    refuse_foreign(&path, &options.sqlite)?;
    emit_plan(options, sink);
    let start = Instant::now();
    let cpu_start = thread_cpu_s();
    let done = fill(options, &path, sink);
    let ending = match &done {
        Ok(_) => Ending::Complete,
        Err(Error::LoadCancelled { .. }) => Ending::Interrupted,
        Err(_) => Ending::Failed,
    };
    if done.is_err() {
        remove(&path)?;
    }
    let elapsed_s = start.elapsed().as_secs_f64();
    sink.emit(Event::Done { stage: STAGE.to_owned(), elapsed_s, ending });
    let rows = done?;
    let database_bytes = std::fs::metadata(&path).map_or(0, |file| file.len());
    let cpu_s = thread_cpu_s() - cpu_start;
    Ok(LoadReport { database: path, scale: options.scale, rows, database_bytes, elapsed_s, cpu_s })
}

fn thread_cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn emit_plan(options: &LoadOptions, sink: &dyn Sink) {
    let rows = expected_rows(&options.scale) as f64;
    sink.emit(Event::Plan {
        stage: STAGE.to_owned(),
        steps: vec![Step {
            name: format!("load {} warehouses", options.scale.warehouses),
            // 2.2 us of CPU and 145 bytes per row of the specification's mixture, measured.
            expected_s: rows * 3e-6,
            writes_bytes: (rows * 145.0) as u64,
        }],
    });
}

/// Rows of all tables but order_line, whose number is random: 10 per order on average.
fn expected_rows(scale: &Scale) -> u64 {
    let districts = u64::from(scale.warehouses) * u64::from(scale.districts);
    let per_district = u64::from(scale.customers_per_district) * (1 + 1 + 1 + 10)
        + u64::from(scale.new_orders_per_district())
        + 1;
    u64::from(scale.items) * (1 + u64::from(scale.warehouses)) + districts * per_district
}

/// A file that we did not make is never touched.
fn refuse_foreign(path: &Path, settings: &SqliteSettings) -> Result<(), Error> {
    let not_ours = || Error::NotOurs { path: path.to_owned() };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => {
            return Err(Error::Io { path: path.to_owned(), doing: "looking at", source });
        }
        Ok(file) if !file.is_file() => return Err(not_ours()),
        Ok(file) if file.len() == 0 => return Err(not_ours()),
        Ok(_) => {}
    }
    let connection = open_file(path, settings.vfs.as_deref(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    match integer(&connection, path, "PRAGMA application_id") {
        Ok(APPLICATION_ID) => {
            drop(connection);
            remove(path)
        }
        _ => Err(not_ours()),
    }
}

/// Removes the database and everything that SQLite keeps beside it.
fn remove(path: &Path) -> Result<(), Error> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let file = PathBuf::from(name);
        match std::fs::remove_file(&file) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::Io { path: file, doing: "removing", source });
            }
            _ => {}
        }
    }
    Ok(())
}

fn fill(options: &LoadOptions, path: &Path, sink: &dyn Sink) -> Result<u64, Error> {
    let settings = &options.sqlite;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = open_file(path, settings.vfs.as_deref(), flags)?;
    pragma(&connection, path, "page_size", &settings.page_size.0.to_string())?;
    pragma(&connection, path, "application_id", &APPLICATION_ID.to_string())?;
    pragma(&connection, path, "journal_mode", "off")?;
    pragma(&connection, path, "synchronous", "off")?;
    pragma(&connection, path, "locking_mode", "exclusive")?;
    pragma(&connection, path, "temp_store", "memory")?;
    if let Some(limit) = settings.size_limit {
        let pages = limit.0 / settings.page_size.0;
        pragma(&connection, path, "max_page_count", &pages.to_string())?;
    }
    set_cache(&connection, path, LOAD_CACHE)?;
    let sql = |doing: &str, sql: &str| {
        connection.execute_batch(sql).map_err(|source| Error::sqlite(path, doing, source))
    };
    sql("creating the tables", TABLES)?;
    sql("beginning the load", "BEGIN")?;
    let rows = Loader::new(&connection, path, options, sink)
        .map_err(|source| Error::sqlite(path, "preparing the load", source))?
        .all()?;
    sql("ending the load", "COMMIT")?;
    for (k, (name, index)) in (0..).zip(INDEXES) {
        let doing = format!("indexing {name}");
        let done = 1.0 - INDEX_SHARE + INDEX_SHARE * f64::from(k) / INDEXES.len() as f64;
        progress(sink, path, done, &doing)?;
        sql(&doing, index)?;
    }
    sql("gathering statistics", "PRAGMA analysis_limit = 1000; ANALYZE")?;
    write_meta(&connection, options)
        .map_err(|source| Error::sqlite(path, "marking the load complete", source))?;
    drop(connection);
    finish(path, settings)?;
    progress(sink, path, 1.0, "loaded")?;
    Ok(rows)
}

/// The rows are on the device before the mark that says so is.
fn finish(path: &Path, settings: &SqliteSettings) -> Result<(), Error> {
    let sync = |file: &Path| {
        File::open(file).and_then(|file| file.sync_all()).map_err(|source| Error::Io {
            path: file.to_owned(),
            doing: "making durable",
            source,
        })
    };
    sync(path)?;
    let connection = open_file(path, settings.vfs.as_deref(), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    pragma(&connection, path, "synchronous", "full")?;
    pragma(&connection, path, "user_version", &LAYOUT.to_string())?;
    set_journal_mode(&connection, path, settings.journal_mode)?;
    drop(connection);
    sync(path)?;
    sync(&settings.directory)
}

fn write_meta(connection: &Connection, options: &LoadOptions) -> rusqlite::Result<()> {
    let scale = &options.scale;
    for (key, value) in [
        ("warehouses", i64::from(scale.warehouses)),
        ("districts", i64::from(scale.districts)),
        ("customers_per_district", i64::from(scale.customers_per_district)),
        ("items", i64::from(scale.items)),
        ("seed", options.seed as i64),
        ("c_last_load", i64::from(Constants::for_load(options.seed).c_last)),
        ("runs", 0),
    ] {
        connection.execute("INSERT INTO wearmark_meta VALUES (?1, ?2)", params![key, value])?;
    }
    Ok(())
}

fn progress(sink: &dyn Sink, path: &Path, done: f64, doing: &str) -> Result<(), Error> {
    sink.emit(Event::Progress {
        stage: STAGE.to_owned(),
        done,
        doing: doing.to_owned(),
        eta_s: None,
    });
    if sink.cancelled() {
        return Err(Error::LoadCancelled { path: path.to_owned() });
    }
    Ok(())
}

/// The statements of a load and how far it is.
struct Loader<'a> {
    path: &'a Path,
    sink: &'a dyn Sink,
    scale: Scale,
    population: Population,
    rows: u64,
    rows_expected: f64,
    start: Instant,
    until_check: u32,
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

impl<'a> Loader<'a> {
    fn new(
        connection: &'a Connection,
        path: &'a Path,
        options: &LoadOptions,
        sink: &'a dyn Sink,
    ) -> rusqlite::Result<Self> {
        let insert = |table: &str, columns: usize| {
            let values = vec!["?"; columns].join(", ");
            connection.prepare(&format!("INSERT INTO {table} VALUES ({values})"))
        };
        Ok(Self {
            path,
            sink,
            scale: options.scale,
            population: Population::new(options.scale, options.seed),
            rows: 0,
            rows_expected: expected_rows(&options.scale) as f64,
            start: Instant::now(),
            until_check: ROWS_BETWEEN_CHECKS,
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

    /// Loads everything; returns the number of rows.
    fn all(mut self) -> Result<u64, Error> {
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
        Ok(self.rows)
    }

    /// Counts one inserted row; reports and looks at the stop flag now and then.
    fn inserted(&mut self, table: &str, result: rusqlite::Result<usize>) -> Result<(), Error> {
        result.map_err(|source| Error::sqlite(self.path, format!("loading {table}"), source))?;
        self.rows += 1;
        self.until_check -= 1;
        if self.until_check > 0 {
            return Ok(());
        }
        self.until_check = ROWS_BETWEEN_CHECKS;
        let share = (self.rows as f64 / self.rows_expected).min(1.0) * (1.0 - INDEX_SHARE);
        let elapsed = self.start.elapsed().as_secs_f64();
        self.sink.emit(Event::Progress {
            stage: STAGE.to_owned(),
            done: share,
            doing: format!("loading {table}"),
            eta_s: Some(elapsed * (1.0 - share) / share.max(1e-9)),
        });
        if self.sink.cancelled() {
            return Err(Error::LoadCancelled { path: self.path.to_owned() });
        }
        Ok(())
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
