//! MariaDB, on a server of the tests' own: the same inputs as on SQLite give the same answers and
//! the same tables, whatever the access; and each condition fails on its defect.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use dbms::mariadb::Connection;
use dbms::{Durability, Instance, Places, Programs, Settings, System};
use oltp::driver::{Dbms, Failure, Meter, Outcome, Reply, Worker};
use oltp::mariadb::Mariadb;
use oltp::sqlite::Sqlite;
use oltp::workload::bank::BankScale;
use oltp::workload::commit::CommitScale;
use oltp::workload::input::{Input, Request, Who};
use oltp::workload::nurand::Constants;
use oltp::{
    Access, Database, Dataset, Error, LoadOptions, Mix, Options, Scale, ServerSettings,
    SqliteSettings, Workload, run,
};
use tempfile::TempDir;
use units::{Bytes, Nanos};

const NOW_MS: i64 = 1_800_000_000_123;
const SEED: u64 = 42;

/// A server; stopped and removed when the last test that uses it ends.
pub(crate) struct Server {
    instance: Instance,
    _place: TempDir,
}

/// The server, shared by the tests that run at the same time; none where it is not installed.
pub(crate) fn server() -> Option<Arc<Server>> {
    static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return Some(server);
    }
    if let Err(error) = Programs::find(System::Mariadb) {
        println!("skipped: {error}");
        return None;
    }
    let server = Arc::new(Server::start());
    *shared = Arc::downgrade(&server);
    Some(server)
}

impl Server {
    fn start() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::Builder::new()
            .permissions(std::fs::Permissions::from_mode(0o755))
            .prefix("oltp-")
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .unwrap();
        let settings = Settings {
            buffer: Bytes(32 << 20),
            log_size: Bytes(32 << 20),
            connections: 40,
            durability: Durability::Off,
            ..Settings::default()
        };
        let places = Places::at(place.path().join("instance"));
        let instance = Instance::create(System::Mariadb, &places, &settings, &events::Quiet);
        let mut instance = instance.unwrap().temporary();
        instance.start(&events::Quiet).unwrap();
        Self { instance, _place: place }
    }

    /// Settings for a database of a test's own.
    pub(crate) fn settings(&self, database: &str, access: Access) -> ServerSettings {
        let login = self.instance.login();
        let mut settings = ServerSettings::new(login.address, login.user);
        settings.database = Some(database.to_owned());
        (settings.access, settings.connections) = (access, 8);
        settings
    }

    fn sql(&self, database: &str) -> Connection {
        let login = dbms::Login { database: database.to_owned(), ..self.instance.login() };
        let mut connection = Connection::connect(&login).unwrap();
        connection.execute("SET time_zone = '+00:00'").unwrap();
        connection
    }
}

/// Executes inputs one after the other; what they answered.
fn answers(dbms: &dyn Dbms, dataset: Dataset, inputs: &[Input]) -> Vec<(Outcome, Reply)> {
    let mut answers = Vec::new();
    let worker = Worker { index: 0, writes: true };
    let driver = dbms.driver(dataset).unwrap();
    driver
        .with_session(worker, &Meter::default(), &mut |session| {
            for (k, input) in inputs.iter().enumerate() {
                let mut reply = Reply::default();
                let outcome = session.execute(input, NOW_MS + k as i64, &mut reply);
                let outcome = outcome.unwrap_or_else(|failure| panic!("{input:?}: {failure:?}"));
                answers.push((outcome, reply));
            }
            Ok(())
        })
        .unwrap();
    answers
}

/// What a column holds: SQLite has integers for everything but text.
#[derive(Clone, Copy)]
enum Holds {
    Plain,
    Cents,
    Rate,
    Date,
}

fn columns(table: &str, workload: Workload) -> &'static str {
    match (table, workload) {
        ("warehouse", _) => "w_id w_name w_street_1 w_street_2 w_city w_state w_zip w_tax% w_ytd$",
        ("district", _) => {
            "d_id d_w_id d_name d_street_1 d_street_2 d_city d_state d_zip d_tax% d_ytd$ \
             d_next_o_id"
        }
        ("customer", _) => {
            "c_id c_d_id c_w_id c_first c_middle c_last c_street_1 c_street_2 c_city c_state c_zip \
             c_phone c_since@ c_credit c_credit_lim$ c_discount% c_balance$ c_ytd_payment$ \
             c_payment_cnt c_delivery_cnt c_data"
        }
        ("history", Workload::OrderEntry) => {
            "h_c_id h_c_d_id h_c_w_id h_d_id h_w_id h_date@ h_amount$ h_data"
        }
        ("new_order", _) => "no_o_id no_d_id no_w_id",
        ("orders", _) => "o_id o_d_id o_w_id o_c_id o_entry_d@ o_carrier_id o_ol_cnt o_all_local",
        ("order_line", _) => {
            "ol_o_id ol_d_id ol_w_id ol_number ol_i_id ol_supply_w_id ol_delivery_d@ ol_quantity \
             ol_amount$ ol_dist_info"
        }
        ("item", _) => "i_id i_im_id i_name i_price$ i_data",
        ("stock", _) => {
            "s_i_id s_w_id s_quantity s_dist_01 s_dist_02 s_dist_03 s_dist_04 s_dist_05 s_dist_06 \
             s_dist_07 s_dist_08 s_dist_09 s_dist_10 s_ytd s_order_cnt s_remote_cnt s_data"
        }
        ("branches", _) => "bid bbalance",
        ("tellers", _) => "tid bid tbalance",
        ("accounts", _) => "aid bid abalance",
        ("history", _) => "tid bid aid delta mtime@",
        ("commit_row", _) => "id value",
        other => panic!("{other:?}"),
    }
}

fn tables(workload: Workload) -> &'static [&'static str] {
    match workload {
        Workload::OrderEntry => &[
            "warehouse",
            "district",
            "customer",
            "history",
            "new_order",
            "orders",
            "order_line",
            "item",
            "stock",
        ],
        Workload::Bank => &["branches", "tellers", "accounts", "history"],
        Workload::Commit => &["commit_row"],
        Workload::Own(_) => &[],
    }
}

fn holds(column: &str) -> (&str, Holds) {
    match column.split_at(column.len() - 1) {
        (name, "$") => (name, Holds::Cents),
        (name, "%") => (name, Holds::Rate),
        (name, "@") => (name, Holds::Date),
        _ => (column, Holds::Plain),
    }
}

/// A table's rows as sorted lines.
fn rows_of_mariadb(sql: &mut Connection, table: &str, workload: Workload) -> Vec<String> {
    let select: Vec<String> = columns(table, workload)
        .split_whitespace()
        .map(|column| match holds(column) {
            (name, Holds::Plain) => name.to_owned(),
            (name, Holds::Cents) => format!("CAST({name} * 100 AS SIGNED)"),
            (name, Holds::Rate) => format!("CAST({name} * 10000 AS SIGNED)"),
            (name, Holds::Date) => format!("CAST(UNIX_TIMESTAMP({name}) * 1000 AS SIGNED)"),
        })
        .collect();
    let mut rows = Vec::new();
    sql.query(&format!("SELECT {} FROM {table}", select.join(", ")), &mut |row| {
        let fields: Result<Vec<String>, _> = (0..row.columns()).map(|_| row.string()).collect();
        rows.push(fields?.join("|"));
        Ok(())
    })
    .unwrap();
    rows.sort_unstable();
    rows
}

fn rows_of_sqlite(sql: &rusqlite::Connection, table: &str, workload: Workload) -> Vec<String> {
    use rusqlite::types::ValueRef;
    let names: Vec<&str> =
        columns(table, workload).split_whitespace().map(|column| holds(column).0).collect();
    let mut statement = sql.prepare(&format!("SELECT {} FROM {table}", names.join(", "))).unwrap();
    let rows = statement.query_map([], |row| {
        let field = |k| match row.get_ref(k)? {
            ValueRef::Null => Ok("NULL".to_owned()),
            ValueRef::Integer(value) => Ok(value.to_string()),
            other => Ok(other.as_str()?.to_owned()),
        };
        let fields: rusqlite::Result<Vec<String>> = (0..names.len()).map(field).collect();
        Ok(fields?.join("|"))
    });
    let mut rows: Vec<String> = rows.unwrap().map(Result::unwrap).collect();
    rows.sort_unstable();
    rows
}

/// The same load and the same inputs on SQLite and on MariaDB: the same answers, the same tables.
fn same_as_sqlite(dataset: Dataset, access: Access, count: u64) {
    let Some(server) = server() else { return };
    let workload = dataset.workload();
    let name = format!("same_{}_{}", workload.identifier(), access.name().replace('-', "_"));
    let mariadb = Mariadb::new(&server.settings(&name, access), workload);
    let directory = crate::temporary_directory();
    let settings =
        SqliteSettings { directory: directory.path().to_owned(), ..SqliteSettings::default() };
    let sqlite = Sqlite::new(&settings, workload);
    let report = mariadb.load(dataset, SEED, &events::Quiet).unwrap();
    assert_eq!(report.rows, sqlite.load(dataset, SEED, &events::Quiet).unwrap().rows);
    assert!(report.database_bytes > 0);
    assert_eq!(mariadb.meta().unwrap(), sqlite.meta().unwrap());

    let mix = Mix::new([30.0, 30.0, 10.0, 10.0, 10.0]).unwrap();
    let source = dataset.source(mix, 7, Constants::for_run(7, 0));
    let inputs: Vec<Input> = (0..count)
        .map(|k| {
            let (terminal, sequence) = ((k % 6) as u32, k / 6);
            let (kind, _) = source.kind(terminal, sequence);
            source.draw(terminal, sequence, kind)
        })
        .collect();
    let expected = answers(&sqlite, dataset, &inputs);
    let found = answers(&mariadb, dataset, &inputs);
    for ((input, expected), found) in inputs.iter().zip(&expected).zip(&found) {
        assert_eq!(found, expected, "{} {input:?}", access.name());
    }
    let (mut maria, lite) =
        (server.sql(&name), rusqlite::Connection::open(sqlite.place()).unwrap());
    for table in tables(workload) {
        let expected = rows_of_sqlite(&lite, table, workload);
        let found = rows_of_mariadb(&mut maria, table, workload);
        assert_eq!(found.len(), expected.len(), "{} {table}", access.name());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{} {table}", access.name());
        }
    }
    mariadb.count_run().unwrap();
    assert_eq!(mariadb.meta().unwrap().runs, 1);
    assert_eq!(violated(&mariadb), [] as [u32; 0]);
    maria.execute(&format!("DROP DATABASE {name}")).unwrap();
}

fn violated(dbms: &dyn Dbms) -> Vec<u32> {
    let results = dbms.check().unwrap();
    results.iter().filter(|result| !result.holds).map(|result| result.number).collect()
}

#[test]
fn order_entry_by_statements_is_sqlites() {
    let dataset = Dataset::OrderEntry(Scale::miniature(2));
    same_as_sqlite(dataset, Access::Statement, 700);
}

#[test]
fn order_entry_by_pipelined_statements_is_sqlites() {
    let dataset = Dataset::OrderEntry(Scale::miniature(2));
    same_as_sqlite(dataset, Access::StatementPipelined, 700);
}

#[test]
fn order_entry_pipelined_is_sqlites() {
    let dataset = Dataset::OrderEntry(Scale::miniature(2));
    same_as_sqlite(dataset, Access::Pipelined, 700);
}

#[test]
fn order_entry_by_procedures_is_sqlites() {
    let dataset = Dataset::OrderEntry(Scale::miniature(2));
    same_as_sqlite(dataset, Access::Procedure, 700);
}

#[test]
fn bank_and_commit_are_sqlites_whatever_the_access() {
    for access in Access::ALL {
        let scale = BankScale { branches: 3, accounts_per_branch: 40 };
        same_as_sqlite(Dataset::Bank(scale), access, 300);
        same_as_sqlite(Dataset::Commit(CommitScale { rows: 20 }), access, 100);
    }
}

/// A database of two small warehouses, loaded; none where MariaDB is not installed.
fn loaded(server: &Server, name: &str) -> Mariadb {
    let mariadb = Mariadb::new(&server.settings(name, Access::Pipelined), Workload::OrderEntry);
    let dataset = Dataset::OrderEntry(Scale::miniature(2));
    mariadb.load(dataset, SEED, &events::Quiet).unwrap();
    mariadb
}

/// The defects of the SQLite test and more; each with the conditions that must fail.
const DEFECTS: &[(&str, &[u32])] = &[
    ("UPDATE warehouse SET w_ytd = w_ytd + 0.01 WHERE w_id = 2", &[1, 8]),
    ("UPDATE district SET d_ytd = d_ytd + 0.01 WHERE d_w_id = 2 AND d_id = 1", &[1, 9]),
    ("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 3", &[2]),
    ("UPDATE district SET d_next_o_id = d_next_o_id - 1 WHERE d_w_id = 1 AND d_id = 3", &[2]),
    (
        "UPDATE order_line SET ol_o_id = 999 WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 3 \
         AND ol_number = 1",
        &[6, 7, 13],
    ),
    ("UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1 AND o_id = 5", &[4, 6]),
    (
        "DELETE FROM order_line WHERE ol_w_id = 2 AND ol_d_id = 2 AND ol_o_id = 60 \
         AND ol_number = 5",
        &[4, 6],
    ),
    ("DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 50", &[3, 5, 11]),
    (
        "UPDATE orders SET o_carrier_id = 3 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 60",
        &[5, 7, 15],
    ),
    ("UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 1", &[5, 7]),
    (
        "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 1 \
         AND ol_o_id = 1 AND ol_number = 2",
        &[7],
    ),
    ("UPDATE customer SET c_balance = c_balance + 0.01 WHERE c_id = 7 AND c_d_id = 2", &[10, 12]),
    ("UPDATE customer SET c_ytd_payment = c_ytd_payment - 0.01 WHERE c_id = 7", &[12]),
    ("UPDATE order_line SET ol_amount = 0.05 WHERE ol_o_id = 1 AND ol_number = 1", &[10, 12]),
    ("UPDATE history SET h_amount = h_amount + 0.01 LIMIT 1", &[8, 9, 10]),
    ("UPDATE history SET h_w_id = 3 - h_w_id LIMIT 1", &[8, 9]),
    ("UPDATE history SET h_c_id = h_c_id + 1 WHERE h_c_id < 50 LIMIT 1", &[10, 14]),
    ("UPDATE stock SET s_ytd = s_ytd + 1 WHERE s_w_id = 1 AND s_i_id = 5", &[13]),
    ("UPDATE customer SET c_payment_cnt = 2 WHERE c_id = 4 AND c_d_id = 1", &[14]),
    ("UPDATE customer SET c_delivery_cnt = 1 WHERE c_id = 4 AND c_d_id = 1", &[15]),
    ("DELETE FROM stock WHERE s_w_id = 2 AND s_i_id = 17", &[16]),
    ("UPDATE item SET i_price = i_price + 1 WHERE i_id = 9", &[17]),
    // Rows that are missing altogether: comparisons are null-safe.
    ("DELETE FROM warehouse WHERE w_id = 2", &[1, 8, 16]),
    ("DELETE FROM district WHERE d_w_id = 2 AND d_id = 2", &[1, 2, 9, 16]),
    ("DELETE FROM customer WHERE c_w_id = 2 AND c_d_id = 2 AND c_id = 3", &[10, 16]),
    ("DELETE FROM orders WHERE o_w_id = 2 AND o_d_id = 2 AND o_id = 3", &[4, 6, 7, 11]),
    ("DELETE FROM orders WHERE o_w_id = 2 AND o_d_id = 2", &[2, 4, 5, 6, 7, 11]),
];

/// Each condition of clause 3.3.2 fails on a defect planted for it, and holds without it.
#[test]
fn each_condition_fails_on_its_defect() {
    let Some(server) = server() else { return };
    let mariadb = loaded(&server, "planted");
    let mut sql = server.sql("planted");
    let tables = tables(Workload::OrderEntry);
    for table in tables {
        sql.execute(&format!("CREATE TABLE {table}_whole AS SELECT * FROM {table}")).unwrap();
    }
    assert_eq!(violated(&mariadb), [] as [u32; 0]);
    for (defect, expected) in DEFECTS {
        let changed = sql.execute(defect).unwrap().affected;
        assert!(changed > 0, "nothing was planted by: {defect}");
        assert_eq!(violated(&mariadb), *expected, "{defect}");
        for table in tables.iter().filter(|table| defect.contains(**table)) {
            let mend =
                format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM {table}_whole");
            sql.execute(&mend).unwrap();
        }
    }
    assert_eq!(violated(&mariadb), [] as [u32; 0]);
    sql.execute("UPDATE customer SET c_balance = c_balance + 1; DROP DATABASE IF EXISTS none")
        .unwrap();
    let tenth = &mariadb.check().unwrap()[9];
    assert_eq!((tenth.violations, tenth.detail.len()), (360, 10));
    assert_eq!(
        tenth.detail[0],
        "c_w_id 1, c_d_id 1, c_id 1, c_balance -9.00, delivered 0.00, paid 10.00"
    );
    sql.execute("DROP DATABASE planted").unwrap();
}

/// Many users on two small warehouses meet in every way; the database stays whole.
#[test]
fn concurrent_users_leave_a_consistent_database() {
    let Some(server) = server() else { return };
    for access in Access::ALL {
        let name = format!("users_{}", access.name().replace('-', "_"));
        let mut settings = server.settings(&name, access);
        settings.connections = 8;
        let database = Database::Mariadb(settings);
        let dataset = Dataset::OrderEntry(Scale::miniature(2));
        let load = LoadOptions { database: database.clone(), dataset, seed: SEED };
        oltp::load(&load, &events::Quiet).unwrap();
        let options = Options {
            database: database.clone(),
            users: 8,
            mix: Mix::new([45.0, 35.0, 5.0, 10.0, 5.0]).unwrap(),
            warmup: Nanos::ZERO,
            measure: Nanos(1_000_000_000),
            ..Options::default()
        };
        let result = run(&options, &events::Quiet).unwrap();
        assert!(result.transactions.iter().all(|kind| kind.count > 0), "{}", access.name());
        assert_eq!(result.failures, 0, "{}", access.name());
        let dbms = database.dbms(Workload::OrderEntry).unwrap();
        assert_eq!(dbms.meta().unwrap().runs, 1);
        assert_eq!(violated(&*dbms), [] as [u32; 0], "{}", access.name());
        let sizes = dbms.stored();
        assert!(sizes.data > 1 << 20 && sizes.log > 0, "{sizes:?}");
        server.sql(&name).execute(&format!("DROP DATABASE {name}")).unwrap();
    }
}

/// A payment that loses a deadlock is undone as a whole, even where its group went out at once, and
/// may be tried again.
#[test]
fn a_deadlock_is_a_retry_and_leaves_nothing() {
    let Some(server) = server() else { return };
    let mariadb = loaded(&server, "deadlock");
    let count = "SELECT (SELECT count(*) FROM history) * 1000 + (SELECT count(*) FROM orders)";
    let before = server.sql("deadlock").get(count).unwrap().unwrap();
    let request = Request::Payment {
        district: 1,
        customer_warehouse: 1,
        customer_district: 1,
        who: Who::Id(3),
        amount: 500,
    };
    let input = Input { warehouse: 1, request };
    let driver = mariadb.driver(Dataset::OrderEntry(Scale::miniature(2))).unwrap();
    let worker = Worker { index: 0, writes: true };
    let mut work = |session: &mut dyn oltp::driver::Session| {
        let mut reply = Reply::default();
        let failed = lose_a_deadlock(&server, || session.execute(&input, NOW_MS, &mut reply));
        assert!(matches!(failed, Err(Failure::Retry)), "{failed:?}");
        let mut sql = server.sql("deadlock");
        assert_eq!(sql.get(count).unwrap(), Some(before));
        let ytd = "SELECT w_ytd = 1800 FROM warehouse WHERE w_id = 1";
        assert_eq!(sql.get(ytd).unwrap(), Some(1));
        let done = session.execute(&input, NOW_MS, &mut reply);
        assert!(matches!(done, Ok(Outcome::Committed)), "{done:?}");
        assert_eq!(sql.get(count).unwrap(), Some(before + 1000));
        Ok(())
    };
    driver.with_session(worker, &Meter::default(), &mut work).unwrap();
    server.sql("deadlock").execute("DROP DATABASE deadlock").unwrap();
}

/// Runs a payment of warehouse 1 while another transaction, which has changed more and is therefore
/// spared, holds its customer and then wants the warehouse.
fn lose_a_deadlock<T>(server: &Server, payment: impl FnOnce() -> T) -> T {
    let mut other = server.sql("deadlock");
    other.execute("START TRANSACTION; UPDATE customer SET c_payment_cnt = 9").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // It reads its customer: the warehouse is its own already.
            let reads = "db = 'deadlock' AND info LIKE '%FROM customer%FOR UPDATE%'";
            wait_for_statement(server, reads);
            other.execute("UPDATE warehouse SET w_ytd = 0; ROLLBACK").unwrap();
        });
        payment()
    })
}

/// Statements behind a refused one of their group are executed; they are undone with the rest.
#[test]
fn what_ran_behind_a_refusal_is_undone() {
    let Some(server) = server() else { return };
    let mariadb = loaded(&server, "behind");
    let who = Who::Id(3);
    let (district, customer_warehouse, customer_district, amount) = (1, 1, 1, 500);
    let request = Request::Payment { district, customer_warehouse, customer_district, who, amount };
    let input = Input { warehouse: 1, request };
    let driver = mariadb.driver(Dataset::OrderEntry(Scale::miniature(2))).unwrap();
    let worker = Worker { index: 0, writes: true };
    let mut work = |session: &mut dyn oltp::driver::Session| {
        let mut reply = Reply::default();
        let mut other = server.sql("behind");
        other.execute("START TRANSACTION; UPDATE warehouse SET w_ytd = 0").unwrap();
        // The payment waits for its warehouse and is refused there; its district is free.
        let refused = std::thread::scope(|scope| {
            scope.spawn(|| {
                let like = "db = 'behind' AND info LIKE 'UPDATE warehouse%'";
                let connection = wait_for_statement(&server, like);
                server.sql("").execute(&format!("KILL QUERY {connection}")).unwrap();
            });
            session.execute(&input, NOW_MS, &mut reply)
        });
        assert!(matches!(refused, Err(Failure::Fatal(Error::Server { .. }))), "{refused:?}");
        other.execute("ROLLBACK").unwrap();
        assert_eq!(violated(&mariadb), [] as [u32; 0]);
        let ytd = "SELECT d_ytd = 600 FROM district WHERE d_w_id = 1 AND d_id = 1";
        assert_eq!(other.get(ytd).unwrap(), Some(1));
        let done = session.execute(&input, NOW_MS, &mut reply);
        assert!(matches!(done, Ok(Outcome::Committed)), "{done:?}");
        Ok(())
    };
    driver.with_session(worker, &Meter::default(), &mut work).unwrap();
    server.sql("behind").execute("DROP DATABASE behind").unwrap();
}

/// The connection whose statement is like that and has run for a tenth of a second: it waits.
/// (`innodb_trx` would say so, but is not renewed while somebody asks for it often.)
fn wait_for_statement(server: &Server, like: &str) -> i64 {
    let mut sql = server.sql("");
    let waits = format!(
        "SELECT id FROM information_schema.processlist \
         WHERE {like} AND time_ms > 100 AND id <> CONNECTION_ID()"
    );
    let start = std::time::Instant::now();
    loop {
        if let Some(connection) = sql.get(&waits).unwrap() {
            return connection;
        }
        let waited = start.elapsed();
        assert!(waited < std::time::Duration::from_mins(1), "no statement is {like}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// What is not there, not ours, or not whole is named; a stopped load leaves nothing.
#[test]
fn databases_that_cannot_be_used_are_told_apart() {
    let Some(server) = server() else { return };
    let dataset = Dataset::OrderEntry(Scale::miniature(1));
    let of = |name| Mariadb::new(&server.settings(name, Access::Statement), Workload::OrderEntry);
    assert!(matches!(of("nowhere").meta(), Err(Error::NotLoaded { .. })));
    let mut sql = server.sql("");
    sql.execute("CREATE DATABASE foreign_one; CREATE TABLE foreign_one.stock (a INT)").unwrap();
    let error = of("foreign_one").load(dataset, SEED, &events::Quiet).unwrap_err();
    assert!(matches!(&error, Error::Foreign { what, .. } if what == "stock"), "{error}");
    assert!(matches!(of("foreign_one").meta(), Err(Error::NotLoaded { .. })));

    for looks in [0, 1] {
        let cancel = crate::CancelAfter(looks.into());
        let error = of("stopped").load(dataset, SEED, &cancel);
        // The load may be over before the second look.
        assert!(matches!(error, Err(Error::LoadCancelled { .. })) || looks > 0, "{error:?}");
    }
    let cancel = crate::CancelAfter(0.into());
    let large = Dataset::OrderEntry(Scale::new(1));
    sql.execute("DROP DATABASE IF EXISTS stopped").unwrap();
    let error = of("stopped").load(large, SEED, &cancel).unwrap_err();
    assert!(matches!(error, Error::LoadCancelled { .. }), "{error}");
    let left = "SELECT count(*) FROM information_schema.schemata WHERE schema_name = 'stopped'";
    assert_eq!(sql.get(left).unwrap(), Some(0));

    let whole = of("half");
    whole.load(dataset, SEED, &events::Quiet).unwrap();
    sql.execute("DELETE FROM half.wearmark_meta WHERE name = 'layout'").unwrap();
    assert!(matches!(whole.meta(), Err(Error::NotLoaded { .. })));
    // And is replaced by the next load.
    whole.load(dataset, SEED, &events::Quiet).unwrap();
    assert_eq!(whole.meta().unwrap().dataset, dataset);
    sql.execute("DELETE FROM half.stock").unwrap();
    let order = Request::StockLevel { district: 1, threshold: 20 };
    let input = Input { warehouse: 9, request: order };
    let worker = Worker { index: 0, writes: true };
    let missing =
        whole.driver(dataset).unwrap().with_session(worker, &Meter::default(), &mut |session| {
            match session.execute(&input, NOW_MS, &mut Reply::default()) {
                Err(Failure::Fatal(error)) => Err(error),
                other => panic!("{other:?}"),
            }
        });
    assert!(matches!(missing, Err(Error::Inconsistent { .. })), "{missing:?}");
    sql.execute("DROP DATABASE half; DROP DATABASE foreign_one").unwrap();
}
