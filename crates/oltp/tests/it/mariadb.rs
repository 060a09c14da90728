//! MariaDB, on a server of the tests' own: the same inputs as on SQLite give the same answers and
//! the same tables, whatever the access; and each condition fails on its defect.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use dbms::mariadb::Connection;
use dbms::{Durability, Instance, Places, Programs, Settings, System};
use oltp::driver::{Dbms, Meter, Outcome, Reply, Worker};
use oltp::mariadb::Mariadb;
use oltp::sqlite::Sqlite;
use oltp::workload::bank::BankScale;
use oltp::workload::commit::CommitScale;
use oltp::workload::input::Input;
use oltp::workload::nurand::Constants;
use oltp::{Access, Dataset, Mix, Scale, ServerSettings, SqliteSettings, Workload};
use tempfile::TempDir;
use units::Bytes;

const NOW_MS: i64 = 1_800_000_000_123;
const SEED: u64 = 42;

/// A server; stopped and removed when the last test that uses it ends.
struct Server {
    instance: Instance,
    _place: TempDir,
}

/// The server, shared by the tests that run at the same time; none where it is not installed.
fn server() -> Option<Arc<Server>> {
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
    fn settings(&self, database: &str, access: Access) -> ServerSettings {
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
            "d_id d_w_id d_name d_street_1 d_street_2 d_city d_state d_zip d_tax% d_ytd$ d_next_o_id"
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
    let name = format!("same_{}_{}", workload.identifier(), access.name());
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
