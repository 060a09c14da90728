//! Workloads of the user: what is refused, what runs, and that every DBMS does the same.

use std::fs;
use std::path::Path;

use events::Hint;
use oltp::driver::{Dbms, Failure, Meter, Reply, Worker};
use oltp::mariadb::Mariadb;
use oltp::postgresql::Postgresql;
use oltp::sqlite::Sqlite;
use oltp::statements::Session;
use oltp::workload::nurand::Constants;
use oltp::workload::own::Choice;
use oltp::{
    Access, Database, Dataset, Error, Load, LoadOptions, Mix, OltpResult, Options, Own,
    SqliteSettings, Workload, run,
};
use units::{Nanos, Rate};

use crate::temporary_directory;

/// A workload of files, below a directory.
fn write(directory: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        fs::write(directory.join(name), text).unwrap();
    }
}

fn open(directory: &Path) -> Result<Own, Error> {
    let place = directory.to_str().unwrap();
    Own::open(place, &Choice::default()).map(|own| own.expect("it has workload.toml"))
}

/// A shop of a few rows.
fn shop() -> Own {
    let sizes = [("products", 30), ("customers", 20), ("orders", 40)];
    let sizes = sizes.map(|(name, value)| (name.to_owned(), value)).into();
    Own::open("web-shop", &Choice { sizes, ..Choice::default() }).unwrap().unwrap()
}

fn settings(directory: &Path) -> SqliteSettings {
    SqliteSettings { directory: directory.to_owned(), ..SqliteSettings::default() }
}

fn options(database: Database, own: Own) -> Options {
    Options {
        database,
        workload: Workload::Own(own),
        dataset: Some(Dataset::Own(own)),
        users: 4,
        warmup: Nanos(20_000_000),
        measure: Nanos(300_000_000),
        ..Options::default()
    }
}

/// Loads, runs, and checks every invariant.
fn ran(settings: &SqliteSettings, own: Own, load: Load) -> OltpResult {
    let database = Database::Sqlite(settings.clone());
    let dataset = Dataset::Own(own);
    let file = settings.database_of(dataset.workload());
    if !file.exists() {
        let load = LoadOptions { database: database.clone(), dataset, seed: 3 };
        oltp::load(&load, &events::Quiet).unwrap();
    }
    let result = run(&Options { load, ..options(database, own) }, &events::Quiet).unwrap();
    let results = oltp::sqlite::check_of(&file, None, dataset.workload()).unwrap();
    assert!(!results.is_empty() && results.iter().all(|one| one.holds), "{results:?}");
    result
}

#[test]
fn the_shop_runs_and_its_result_reads_back() {
    let place = temporary_directory();
    let own = shop();
    let result = ran(&settings(place.path()), own, Load::default());
    let names: Vec<&str> = result.transactions.iter().map(|kind| kind.kind.name()).collect();
    assert_eq!(names, ["browse", "search", "orders", "checkout", "restock"]);
    assert!(result.transactions.iter().all(|kind| kind.count > 0), "{result:?}");
    assert!(result.audit.passed && result.audit.checks.len() == 5, "{:?}", result.audit);
    let sql = rusqlite::Connection::open(place.path().join("web_shop.db")).unwrap();
    let orders: i64 = sql.query_row("SELECT count(*) - 40 FROM orders", [], |r| r.get(0)).unwrap();
    let checkouts = result.transactions[3].count as i64;
    // Those of the warm-up and one in work at the end are in the table only.
    assert!(orders >= checkouts && checkouts > 0, "{orders} {checkouts}");

    let json = serde_json::to_string(&result).unwrap();
    let back: OltpResult = serde_json::from_str(&json).unwrap();
    assert_eq!(back.workload.name(), "web-shop");
    assert_eq!(back.kinds().len(), 5);
    let checkout = back.kinds()[3];
    assert_eq!(back.of(checkout).unwrap().count, result.transactions[3].count);
    assert!(checkout.writes() && (checkout.think_mean_s() - 10.0).abs() < 1e-9);
    let text = |result: &OltpResult| serde_json::to_string(&result.dataset).unwrap();
    assert_eq!(text(&back), text(&result));
}

/// Each of the six mixes, in a closed and an open loop; inserts go on behind those of earlier runs.
#[test]
fn all_of_ycsb_runs_on_one_database() {
    let place = temporary_directory();
    for (at, mix) in ["a", "b", "c", "d", "e", "f", "d"].into_iter().enumerate() {
        let choice = Choice {
            mix: Some(mix.to_owned()),
            sizes: [("records".to_owned(), 300)].into(),
            ..Choice::default()
        };
        let own = Own::open("ycsb", &choice).unwrap().unwrap();
        let load = if at % 2 == 0 { Load::default() } else { Load::Open { rate: Rate(500.0) } };
        let result = ran(&settings(place.path()), own, load);
        let kinds = result.transactions.iter().filter(|kind| kind.count > 0);
        let names: Vec<&str> = kinds.map(|kind| kind.kind.name()).collect();
        let expected: &[&str] = match mix {
            "a" | "b" => &["read", "update"],
            "c" => &["read"],
            "d" => &["insert", "latest"],
            "e" => &["insert", "scan"],
            _ => &["read", "modify"],
        };
        // In 300 ms at 500 per second a twentieth may not come up.
        assert!(names.iter().all(|name| expected.contains(name)), "{mix}: {names:?}");
        assert!(names.contains(expected.last().unwrap()), "{mix}: {names:?}");
    }
}

/// A defect that is planted is found by the invariant's name.
#[test]
fn a_violated_invariant_is_named() {
    let place = temporary_directory();
    let (settings, own) = (settings(place.path()), shop());
    ran(&settings, own, Load::default());
    let file = settings.database_of(Workload::Own(own));
    let sql = rusqlite::Connection::open(&file).unwrap();
    let violated = |change: &str, back: &str| {
        assert_eq!(sql.execute(change, []).unwrap(), 1, "{change}");
        let results = oltp::sqlite::check_of(&file, None, Workload::Own(own)).unwrap();
        sql.execute(back, []).unwrap();
        let broken = results.into_iter().filter(|one| !one.holds);
        broken.map(|one| (one.states, one.detail)).collect::<Vec<_>>()
    };
    let found = violated(
        "UPDATE products SET stock = stock + 1 WHERE id = 7",
        "UPDATE products SET stock = stock - 1 WHERE id = 7",
    );
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, "stock = received - sold");
    assert!(found[0].1[0].starts_with("7, "), "{found:?}");
    let order = "(SELECT max(id) FROM orders)";
    let found = violated(
        &format!("UPDATE orders SET total = total + 1 WHERE id = {order}"),
        &format!("UPDATE orders SET total = total - 1 WHERE id = {order}"),
    );
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, "total of an order = its items");
    // Another size is other data.
    let sizes = [("products".to_owned(), 31)].into();
    let other = Own::open("web-shop", &Choice { sizes, ..Choice::default() }).unwrap().unwrap();
    let error = oltp::sqlite::check_of(&file, None, Workload::Own(other)).unwrap_err();
    assert!(error.to_string().contains("other tables or rows than 'web-shop'"), "{error}");
}

/// Every table, row by row.
const TABLES: [&str; 4] = [
    "SELECT id, category, name, description, price, stock, sold, received FROM products \
     ORDER BY id",
    "SELECT id, name, city FROM customers ORDER BY id",
    "SELECT id, customer, total FROM orders ORDER BY id",
    "SELECT order_id, product, quantity, price FROM order_items ORDER BY 1, 2, 3",
];

/// Loads, executes a list of inputs in turn, and reads the tables.
fn tables(dbms: &dyn Dbms, session: impl FnOnce() -> Session) -> Vec<Vec<Vec<Option<String>>>> {
    let dataset = Dataset::Own(shop());
    dbms.load(dataset, 5, &events::Quiet).unwrap();
    let source = dataset.source(Mix::NORMAL, 9, Constants::for_run(1, 0));
    let driver = dbms.driver(dataset).unwrap();
    driver
        .with_session(Worker { index: 0, writes: true }, &Meter::default(), &mut |session| {
            for sequence in 0..400 {
                let (kind, _) = source.kind(sequence as u32 % 7, sequence);
                let input = source.draw(sequence as u32 % 7, sequence, kind);
                let outcome = session.execute(&input, 1_800_000_000_000, &mut Reply::default());
                outcome.unwrap_or_else(|failure| panic!("{failure:?} of {input:?}"));
            }
            Ok(())
        })
        .unwrap();
    assert!(dbms.check().unwrap().iter().all(|one| one.holds));
    let mut session = session();
    TABLES.iter().map(|sql| session.rows(sql).unwrap()).collect()
}

#[test]
fn every_dbms_and_access_leaves_the_same_tables() {
    let place = temporary_directory();
    let settings = settings(place.path());
    let workload = Workload::Own(shop());
    let sqlite = Sqlite::new(&settings, workload);
    let file = settings.database_of(workload);
    let expected = tables(&sqlite, || {
        Session::Sqlite(rusqlite::Connection::open(&file).unwrap(), file.clone())
    });
    assert!(expected[2].len() > 50 && expected[3].len() > 20, "{}", expected[2].len());
    for access in [Access::Statement, Access::Pipelined] {
        if let Some(settings) =
            crate::server::settings(&format!("own_{}", access.name().replace('-', "_")), access)
        {
            let postgresql = Postgresql::new(&settings, workload);
            let found = tables(&postgresql, || {
                let login = settings.login(workload);
                Session::Postgresql(dbms::postgresql::Connection::connect(&login).unwrap())
            });
            assert_eq!(found, expected, "PostgreSQL, {access:?}");
        }
        if let Some(server) = crate::mariadb::server() {
            let settings =
                server.settings(&format!("own_{}", access.name().replace('-', "_")), access);
            let mariadb = Mariadb::new(&settings, workload);
            let found = tables(&mariadb, || {
                let login = settings.login(workload);
                Session::Mariadb(dbms::mariadb::Connection::connect(&login).unwrap())
            });
            assert_eq!(found, expected, "MariaDB, {access:?}");
        }
    }
}

/// A workload that reads one row by its number.
const SMALL: [(&str, &str); 3] = [
    (
        "workload.toml",
        "name = 'small'\n[tables.t]\nrows = '5'\ncolumns = { id = 'row()' }\n\
                       [kinds.get]\nparameters = { id = 'random(6, 6)' }\n",
    ),
    ("schema.sql", "CREATE TABLE t (id integer PRIMARY KEY);\n"),
    ("get.sql", "\n-- rows: 1\nSELECT id FROM t WHERE id = :id\n"),
];

#[test]
fn a_statement_that_finds_other_rows_ends_the_run() {
    let place = temporary_directory();
    write(place.path(), &SMALL);
    let own = open(place.path()).unwrap();
    let database = Database::Sqlite(settings(place.path()));
    let dataset = Dataset::Own(own);
    let load = LoadOptions { database: database.clone(), dataset, seed: 3 };
    oltp::load(&load, &events::Quiet).unwrap();
    let error = run(&options(database, own), &events::Quiet).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("get.sql:3: 0 rows where 1 is expected with id = 6"), "{text}");
}

/// The mix changes with the phases, counted from the start of the measurement.
#[test]
fn phases_change_the_mix_and_the_rate() {
    let place = temporary_directory();
    write(place.path(), &SMALL);
    let text = "name = 'phased'\n[kinds.get]\nweight = 1\nparameters = { id = '1' }\n\
                [kinds.put]\nfile = 'get.sql'\nweight = 0\nparameters = { id = '1' }\n\
                [mixes]\nputs = { put = 1 }\n\
                [[phases]]\nfor = '1s'\n[[phases]]\nfor = '2s'\nmix = 'puts'\nrate = [0, 2]\n";
    write(place.path(), &[("workload.toml", text)]);
    let own = open(place.path()).unwrap();
    let mut source = Dataset::Own(own).source(Mix::NORMAL, 1, Constants::for_run(1, 0));
    source.begin_phases(500_000_000);
    let name = |now_ms: u64| source.kind_at(0, 0, now_ms * 1_000_000).0.name();
    let seen: Vec<&str> = [0, 600, 1499, 1501, 3499, 3501].into_iter().map(name).collect();
    assert_eq!(seen, ["get", "get", "get", "put", "put", "get"]);
    // 100/s for 1.5 s, then a ramp from 0 to 200/s over 2 s: 150 and 200 mean gaps.
    let mut rng = stats::rng::Rng::new(4);
    let (mut counts, mut sum) = ([0u32; 3], 0);
    for _ in 0..200 {
        let mut at = source.next_arrival(0, rng.exponential(1.0), 100.0);
        while at < 3_500_000_000 {
            sum += 1;
            let part = match at {
                0..1_500_000_000 => 0,
                1_500_000_000..2_500_000_000 => 1,
                _ => 2,
            };
            counts[part] += 1;
            at = source.next_arrival(at, rng.exponential(1.0), 100.0);
        }
    }
    // 30,000, 10,000 and 30,000 arrivals expected, standard deviations 173, 100, 173.
    assert!((29_200..30_800).contains(&counts[0]), "{counts:?} {sum}");
    assert!((9_500..10_500).contains(&counts[1]), "{counts:?}");
    assert!((29_200..30_800).contains(&counts[2]), "{counts:?}");
}

/// What is wrong is said with file, line and what to do.
#[test]
fn mistakes_are_named_with_their_line() {
    let toml = SMALL[0].1;
    let cases: [(&str, &str, &str); 16] = [
        ("workload.toml", "name = 'a'\nnam = 'b'\n", "workload.toml:2: unknown field `nam`"),
        ("workload.toml", "name = 'a'\n", "0 kinds of transactions"),
        ("workload.toml", "[kinds.get]\nweigth = 1\n", "workload.toml:2: unknown field `weigth`"),
        ("workload.toml", "[kinds.put]\n", "put.sql: the file is missing"),
        (
            "workload.toml",
            "[kinds.get]\nparameters = { no = '1' }\n",
            "get.sql:3: nothing is called",
        ),
        (
            "workload.toml",
            "[kinds.get]\n\nparameters = { id = 'random(1)' }\n",
            "workload.toml:3: random takes 2 values",
        ),
        ("workload.toml", "[kinds.get]\nparameters = { id = 'x + 1', x = 'id' }\n", "needs itself"),
        (
            "workload.toml",
            "[kinds.get]\nparameters = { id = \"next('k')\" }\n",
            "there is no [sequences.k]",
        ),
        (
            "workload.toml",
            "[kinds.get]\nparameters = { id = '1' }\n[tables.u]\nrows = '1'\n\
             columns = { a = '1' }\n",
            "schema.sql makes no table 'u'",
        ),
        (
            "workload.toml",
            "[kinds.get]\nparameters = { id = '1' }\n[mixes]\na = { put = 1 }\n[[phases]]\n\
             for = '1s'\nmix = 'a'\n",
            "names 'put', which is no kind",
        ),
        (
            "workload.toml",
            "[kinds.get]\nparameters = { id = '1' }\n[[phases]]\nfor = '1s'\nmix = 'b'\n",
            "there is no mix 'b'",
        ),
        ("get.sql", "SELECT 'a\n", "get.sql:1: ' without its end"),
        ("get.sql", "-- rows: few\nSELECT 1\n", "get.sql:2: 'rows: few'"),
        ("get.sql", "SELECT 1;\nCOMMIT;\n", "get.sql:2: BEGIN and COMMIT must be"),
        ("get.sql", "-- only this\n", "get.sql:1: no statement"),
        ("schema.sql", "CREATE TABLE t (id integer);\nSELECT :n;\n", "schema.sql:2: there is no"),
    ];
    for (file, text, expected) in cases {
        let place = temporary_directory();
        write(place.path(), &SMALL);
        write(place.path(), &[(file, text)]);
        let error = open(place.path()).unwrap_err();
        assert!(error.to_string().contains(expected), "{text}: {error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("own-transactions")), "{text}");
    }
    assert!(toml.contains("[kinds.get]"));
    // A row that cannot be made ends a load, and leaves nothing.
    let place = temporary_directory();
    write(place.path(), &SMALL);
    let late = toml.replace("'row()'", "'6 / (row() - 3)'");
    write(place.path(), &[("workload.toml", &late)]);
    let dataset = Dataset::Own(open(place.path()).unwrap());
    let database = Database::Sqlite(settings(place.path()));
    let error = oltp::load(&LoadOptions { database, dataset, seed: 1 }, &events::Quiet);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("row 3 of t: division by zero"), "{error}");
    assert!(!place.path().join("small.db").exists());
}

/// Two scripts of pgbench with weights, on its tables; values made of answers.
#[test]
fn scripts_of_pgbench_run_as_they_are() {
    let place = temporary_directory();
    let second = "\\set aid random_gaussian(1, 100000 * :scale, 5)\n\
                  SELECT abalance AS old FROM pgbench_accounts WHERE aid = :aid \\gset\n\
                  \\set new :old + 1\nBEGIN;\n\
                  UPDATE pgbench_accounts SET abalance = :new\n  WHERE aid = :aid;\nROLLBACK;\n";
    write(
        place.path(),
        &[("peek.sql", "SELECT count(*) FROM pgbench_tellers;"), ("up.sql", second)],
    );
    let script = |name: &str| place.path().join(name);
    let scripts = vec![(script("peek.sql"), 1.0), (script("up.sql"), 3.0)];
    let own = Own::open("pgbench", &Choice { scripts, ..Choice::default() }).unwrap().unwrap();
    let result = ran(&settings(place.path()), own, Load::default());
    let [peek, up] = &result.transactions[..] else { panic!("{result:?}") };
    assert_eq!((peek.kind.name(), up.kind.name()), ("peek", "up"));
    assert!(peek.count > 0 && !peek.kind.writes() && up.kind.writes());
    assert!(up.count > 0 && up.rollbacks == up.count, "{up:?}");
}

/// A refused attempt leaves no transaction open, whatever the access.
#[test]
fn a_refusal_is_rolled_back() {
    let place = temporary_directory();
    let text = "name = 'refused'\n[kinds.put]\n[kinds.count]\nfile = 'count.sql'\n\
                [invariants]\n'no half' = 'SELECT id FROM t'\n";
    let put = "INSERT INTO t VALUES (1);\nINSERT INTO t VALUES (1);\n";
    write(
        place.path(),
        &[
            ("workload.toml", text),
            ("schema.sql", "CREATE TABLE t (id integer PRIMARY KEY);"),
            ("put.sql", put),
            ("count.sql", "-- rows: 0\nSELECT id FROM t"),
        ],
    );
    let own = open(place.path()).unwrap();
    let dataset = Dataset::Own(own);
    let check = |dbms: &dyn Dbms| {
        dbms.load(dataset, 1, &events::Quiet).unwrap();
        let source = dataset.source(Mix::NORMAL, 1, Constants::for_run(1, 0));
        let worker = Worker { index: 0, writes: true };
        let driver = dbms.driver(dataset).unwrap();
        let mut work = |session: &mut dyn oltp::driver::Session| {
            let [put, count] = [0, 1].map(|kind| source.draw(0, 1, own.kinds()[kind]));
            let refused = session.execute(&put, 0, &mut Reply::default());
            assert!(matches!(refused, Err(Failure::Fatal(_))), "{refused:?}");
            let counted = session.execute(&count, 0, &mut Reply::default());
            assert!(counted.is_ok(), "{counted:?}");
            Ok(())
        };
        driver.with_session(worker, &Meter::default(), &mut work).unwrap();
        assert!(dbms.check().unwrap().iter().all(|one| one.holds));
    };
    check(&Sqlite::new(&settings(place.path()), Workload::Own(own)));
    for access in [Access::Statement, Access::Pipelined] {
        let name = format!("refused_{}", access.name().replace('-', "_"));
        if let Some(settings) = crate::server::settings(&name, access) {
            check(&Postgresql::new(&settings, Workload::Own(own)));
        }
        if let Some(server) = crate::mariadb::server() {
            check(&Mariadb::new(&server.settings(&name, access), Workload::Own(own)));
        }
    }
}
