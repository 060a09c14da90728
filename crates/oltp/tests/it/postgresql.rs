//! PostgreSQL against SQLite: the same inputs get the same answers and leave the same rows, in
//! every access; what SQLite's tests establish about the clauses then holds here too.

use std::sync::atomic::AtomicU64;

use events::Hint;
use oltp::driver::{Dbms, Failure, Meter, Outcome, Reply, Worker};
use oltp::postgresql::Postgresql;
use oltp::sqlite::Sqlite;
use oltp::workload::bank::BankScale;
use oltp::workload::commit::CommitScale;
use oltp::workload::input::{Input, Inputs, Request};
use oltp::workload::nurand::Constants;
use oltp::{
    Access, Dataset, Error, Kind, LoadOptions, Mix, Options, Scale, SqliteSettings, Workload,
};
use units::Nanos;

use crate::CancelAfter;
use crate::server::{postgresql, sql};

const NOW_MS: i64 = 1_800_000_000_000;

/// Answers to a list of inputs, one after the other; the reply of a rolled-back order counts not.
fn answers(dbms: &dyn Dbms, dataset: Dataset, inputs: &[Input]) -> Vec<(Outcome, Reply)> {
    let meter = Meter::default();
    let mut answers = Vec::new();
    let driver = dbms.driver(dataset).unwrap();
    driver
        .with_session(Worker { index: 0, writes: true }, &meter, &mut |session| {
            for (k, input) in (0..).zip(inputs) {
                let mut reply = Reply::default();
                let outcome = session
                    .execute(input, NOW_MS + 1000 * k, &mut reply)
                    .unwrap_or_else(|failure| panic!("{failure:?} of {input:?}"));
                if outcome == Outcome::RolledBack {
                    reply = Reply::default();
                }
                answers.push((outcome, reply));
            }
            Ok(())
        })
        .unwrap();
    answers
}

/// Columns of each table with money in cents, rates in ten-thousandths, dates in milliseconds.
const TABLES: [(&str, &str, &str); 9] = [
    ("warehouse", "w_id w_name w_street_1 w_street_2 w_city w_state w_zip w_tax/4 w_ytd/2", "w_id"),
    (
        "district",
        "d_id d_w_id d_name d_street_1 d_street_2 d_city d_state d_zip d_tax/4 d_ytd/2 d_next_o_id",
        "d_w_id, d_id",
    ),
    (
        "customer",
        "c_id c_d_id c_w_id c_first c_middle c_last c_street_1 c_street_2 c_city c_state c_zip \
         c_phone c_since/t c_credit c_credit_lim/2 c_discount/4 c_balance/2 c_ytd_payment/2 \
         c_payment_cnt c_delivery_cnt c_data",
        "c_w_id, c_d_id, c_id",
    ),
    (
        "history",
        "h_c_id h_c_d_id h_c_w_id h_d_id h_w_id h_date/t h_amount/2 h_data",
        "h_w_id, h_d_id, h_date, h_c_w_id, h_c_d_id, h_c_id",
    ),
    ("new_order", "no_o_id no_d_id no_w_id", "no_w_id, no_d_id, no_o_id"),
    (
        "orders",
        "o_id o_d_id o_w_id o_c_id o_entry_d/t o_carrier_id o_ol_cnt o_all_local",
        "o_w_id, o_d_id, o_id",
    ),
    (
        "order_line",
        "ol_o_id ol_d_id ol_w_id ol_number ol_i_id ol_supply_w_id ol_delivery_d/t ol_quantity \
         ol_amount/2 ol_dist_info",
        "ol_w_id, ol_d_id, ol_o_id, ol_number",
    ),
    ("item", "i_id i_im_id i_name i_price/2 i_data", "i_id"),
    (
        "stock",
        "s_i_id s_w_id s_quantity s_dist_01 s_dist_02 s_dist_03 s_dist_04 s_dist_05 s_dist_06 \
         s_dist_07 s_dist_08 s_dist_09 s_dist_10 s_ytd s_order_cnt s_remote_cnt s_data",
        "s_w_id, s_i_id",
    ),
];

/// Every row of every table as one text, ordered by key.
fn dump(column: impl Fn(&str) -> String, mut ask: impl FnMut(&str) -> Vec<String>) -> Vec<String> {
    let mut all = Vec::new();
    for (table, columns, key) in TABLES {
        let columns: Vec<String> = columns
            .split_whitespace()
            .map(|name| format!("coalesce(CAST({} AS text), '-')", column(name)))
            .collect();
        let sql = format!(
            "SELECT '{table} ' || {} FROM {table} ORDER BY {key}",
            columns.join(" || ',' || ")
        );
        all.extend(ask(&sql));
    }
    all
}

fn dump_sqlite(settings: &SqliteSettings) -> Vec<String> {
    let connection = rusqlite::Connection::open(settings.database()).unwrap();
    let plain = |column: &str| column.split('/').next().unwrap().to_owned();
    dump(plain, |sql| {
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    })
}

fn dump_postgresql(database: &str) -> Vec<String> {
    let mut connection = sql(database);
    let integers = |column: &str| match column.split_once('/') {
        Some((name, "2")) => format!("({name} * 100)::bigint"),
        Some((name, "4")) => format!("({name} * 10000)::bigint"),
        Some((name, _)) => format!("(extract(epoch FROM {name}) * 1000)::bigint"),
        None => column.to_owned(),
    };
    dump(integers, |sql| {
        let rows = connection.query(sql).unwrap();
        rows.into_iter().map(|mut row| row.remove(0).unwrap()).collect()
    })
}

/// Fails with the first line that differs.
fn same(one: &[String], two: &[String], what: &str) {
    for (a, b) in one.iter().zip(two) {
        assert_eq!(a, b, "{what}");
    }
    assert_eq!(one.len(), two.len(), "{what}");
}

fn inputs(scale: Scale, count: u64) -> Vec<Input> {
    let inputs = Inputs::new(scale, Mix::NORMAL, 9, Constants::for_run(9, 0));
    (0..count)
        .map(|k| {
            let (kind, _) = inputs.kind((k % 20) as u32, k);
            inputs.draw((k % 20) as u32, k, kind)
        })
        .collect()
}

fn load(postgresql: &Postgresql, dataset: Dataset) {
    postgresql.load(dataset, 42, &events::Quiet).unwrap();
}

/// An order may name the same stock several times, here often: there are 200 items.
#[test]
fn every_access_answers_as_sqlite_does_and_leaves_the_same_rows() {
    let scale = Scale::miniature(2);
    let dataset = Dataset::OrderEntry(scale);
    let inputs = inputs(scale, 1500);
    let repeats = |input: &&Input| match &input.request {
        Request::NewOrder(order) => {
            let mut keys: Vec<_> = order.lines().iter().map(|l| (l.supply, l.item)).collect();
            keys.sort_unstable();
            keys.windows(2).any(|two| two[0] == two[1])
        }
        _ => false,
    };
    assert!(inputs.iter().filter(repeats).count() > 50);
    let directory = crate::temporary_directory();
    let settings =
        SqliteSettings { directory: directory.path().to_owned(), ..SqliteSettings::default() };
    let sqlite = Sqlite::new(&settings, Workload::OrderEntry);
    sqlite.load(dataset, 42, &events::Quiet).unwrap();
    let loaded = dump_sqlite(&settings);
    let expected = answers(&sqlite, dataset, &inputs);
    assert!(expected.iter().any(|(outcome, _)| *outcome == Outcome::RolledBack));
    let left = dump_sqlite(&settings);
    for access in Access::ALL {
        let name = format!("cross_{}", access.name().replace('-', "_"));
        let Some(postgresql) = postgresql(&name, Workload::OrderEntry, access) else { return };
        load(&postgresql, dataset);
        same(&dump_postgresql(&name), &loaded, &format!("loaded, {access:?}"));
        let found = answers(&postgresql, dataset, &inputs);
        for ((input, found), expected) in inputs.iter().zip(&found).zip(&expected) {
            assert_eq!(found, expected, "{access:?}: {input:?}");
        }
        same(&dump_postgresql(&name), &left, &format!("left, {access:?}"));
        postgresql.count_run().unwrap();
        let conditions = postgresql.check().unwrap();
        assert!(conditions.iter().all(|condition| condition.holds), "{conditions:?}");
    }
}

/// Numbers of the conditions that do not hold.
fn violated(postgresql: &Postgresql) -> Vec<u32> {
    let results = postgresql.check().unwrap();
    results.iter().filter(|result| !result.holds).map(|result| result.number).collect()
}

/// Each condition fails on a defect planted for it, and on rows that are missing altogether.
#[test]
fn each_condition_fails_on_its_defect() {
    let Some(postgresql) = postgresql("planted", Workload::OrderEntry, Access::Statement) else {
        return;
    };
    load(&postgresql, Dataset::OrderEntry(Scale::miniature(2)));
    assert_eq!(violated(&postgresql), [] as [u32; 0]);
    let mut sql = sql("planted");
    for (defect, expected) in [
        ("UPDATE warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2", &[1, 8][..]),
        ("UPDATE district SET d_ytd = d_ytd + 1 WHERE d_w_id = 2 AND d_id = 1", &[1, 9]),
        ("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 3", &[2]),
        ("DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 50", &[3, 5, 11]),
        ("UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1 AND o_id = 5", &[4, 6]),
        (
            "UPDATE orders SET o_carrier_id = 3 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 60",
            &[5, 7, 15],
        ),
        (
            "UPDATE order_line SET ol_o_id = 999 WHERE ol_w_id = 1 AND ol_d_id = 1 \
             AND ol_o_id = 3 AND ol_number = 1",
            &[6, 7, 13],
        ),
        (
            "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 1 \
             AND ol_o_id = 1 AND ol_number = 2",
            &[7],
        ),
        (
            "UPDATE history SET h_amount = h_amount + 1 WHERE h_c_id = 9 AND h_c_w_id = 1",
            &[8, 9, 10],
        ),
        ("UPDATE customer SET c_balance = c_balance + 1 WHERE c_id = 7 AND c_d_id = 2", &[10, 12]),
        ("UPDATE customer SET c_ytd_payment = c_ytd_payment - 1 WHERE c_id = 7", &[12]),
        ("DELETE FROM warehouse WHERE w_id = 2", &[1, 8, 16]),
        ("DELETE FROM district WHERE d_w_id = 2 AND d_id = 2", &[1, 2, 9, 16]),
        ("DELETE FROM customer WHERE c_w_id = 2 AND c_d_id = 2 AND c_id = 3", &[10, 16]),
        ("DELETE FROM orders WHERE o_w_id = 2 AND o_d_id = 2 AND o_id = 3", &[4, 6, 7, 11]),
        ("DELETE FROM history WHERE h_w_id = 1", &[8, 9, 10, 14]),
        ("DELETE FROM order_line", &[4, 6]),
        ("UPDATE stock SET s_ytd = s_ytd + 1 WHERE s_w_id = 1 AND s_i_id = 5", &[13]),
        ("UPDATE customer SET c_payment_cnt = 2 WHERE c_id = 4 AND c_d_id = 1", &[14]),
        ("UPDATE customer SET c_delivery_cnt = 1 WHERE c_id = 4 AND c_d_id = 1", &[15]),
        ("DELETE FROM stock WHERE s_w_id = 2 AND s_i_id = 17", &[16]),
        ("UPDATE item SET i_price = i_price + 1 WHERE i_id = 9", &[17]),
    ] {
        // Each defect is planted in the sound database: the tables it changes are kept aside.
        sql.execute("CREATE SCHEMA kept").unwrap();
        let table = defect.split_whitespace().find(|word| TABLES.iter().any(|t| t.0 == *word));
        let table = table.unwrap();
        sql.execute(&format!("CREATE TABLE kept.{table} AS TABLE {table}")).unwrap();
        sql.execute(defect).unwrap();
        assert_eq!(violated(&postgresql), expected, "{defect}");
        let restore = format!(
            "TRUNCATE {table}; INSERT INTO {table} TABLE kept.{table}; DROP SCHEMA kept CASCADE"
        );
        sql.execute(&restore).unwrap();
    }
    assert_eq!(violated(&postgresql), [] as [u32; 0]);
    sql.execute("UPDATE customer SET c_balance = c_balance + 1").unwrap();
    let tenth = &postgresql.check().unwrap()[9];
    assert_eq!(
        (tenth.clause.as_str(), tenth.violations, tenth.detail.len()),
        ("3.3.2.10", 360, 10)
    );
    let shown = "c_w_id 1, c_d_id 1, c_id 1, c_balance -9.00, delivered 0.00, paid 10.00";
    assert_eq!(tenth.detail[0], shown);
}

/// Users meet on the same rows: whatever is retried, the conditions hold and the account closes.
#[test]
fn users_at_once_keep_the_conditions_in_every_access() {
    for access in Access::ALL {
        let name = format!("users_{}", access.name().replace('-', "_"));
        let Some(settings) = crate::server::settings(&name, access) else { return };
        let database = oltp::Database::Postgresql(settings);
        let dataset = Dataset::OrderEntry(Scale::miniature(2));
        let options = LoadOptions { database: database.clone(), dataset, seed: 1 };
        oltp::load(&options, &events::Quiet).unwrap();
        let options = Options {
            database,
            users: 8,
            warmup: Nanos::ZERO,
            measure: Nanos(1_500_000_000),
            mix: Mix::new([10.0, 10.0, 2.0, 4.0, 2.0]).unwrap(),
            ..Options::default()
        };
        let result = oltp::run(&options, &events::Quiet).unwrap();
        assert_eq!(result.failures, 0, "{access:?}");
        assert!(result.audit.passed, "{access:?}: {:?}", result.audit);
        let postgresql = Postgresql::new(options.database.server().unwrap(), Workload::OrderEntry);
        assert_eq!(violated(&postgresql), [] as [u32; 0], "{access:?}");
        let mut sql = sql(&name);
        let mut count = |what: &str| -> u64 {
            sql.query(what).unwrap()[0][0].as_ref().unwrap().parse().unwrap()
        };
        let orders = count("SELECT count(*) FROM orders") - 2 * 3 * 60;
        let entered = result.of(Kind::NewOrder).unwrap();
        // Requests in work at the end are executed and not counted: one at most per worker.
        assert!((0..=8).contains(&(orders - (entered.count - entered.rollbacks))), "{access:?}");
        assert!(entered.rollbacks > 0 && result.delivery.executed > 0, "{access:?}");
        let payments = count("SELECT count(*) FROM history") - 2 * 3 * 60;
        assert!((0..=8).contains(&(payments - result.of(Kind::Payment).unwrap().count)));
    }
}

/// Bank and commit in every access: balances add up, rows are there, answers are SQLite's.
#[test]
fn bank_and_commit_keep_their_conditions_in_every_access() {
    let bank = Dataset::Bank(BankScale { branches: 2, accounts_per_branch: 500 });
    let rows = Dataset::Commit(CommitScale { rows: 100 });
    let directory = crate::temporary_directory();
    let settings =
        SqliteSettings { directory: directory.path().to_owned(), ..SqliteSettings::default() };
    for (dataset, kind) in [(bank, Kind::Transfer), (rows, Kind::Update)] {
        let source = dataset.source(Mix::NORMAL, 4, Constants::for_run(1, 0));
        let inputs: Vec<Input> = (0..300).map(|k| source.draw(1, k, kind)).collect();
        let workload = dataset.workload();
        let sqlite = Sqlite::new(&settings, workload);
        sqlite.load(dataset, 1, &events::Quiet).unwrap();
        let expected = answers(&sqlite, dataset, &inputs);
        for access in Access::ALL {
            let name = format!("{}_{}", workload.identifier(), access.name().replace('-', "_"));
            let Some(settings) = crate::server::settings(&name, access) else { return };
            let postgresql = Postgresql::new(&settings, workload);
            load(&postgresql, dataset);
            assert_eq!(answers(&postgresql, dataset, &inputs), expected, "{name}");
            let options = Options {
                database: oltp::Database::Postgresql(settings),
                workload,
                users: 8,
                warmup: Nanos::ZERO,
                measure: Nanos(300_000_000),
                ..Options::default()
            };
            let result = oltp::run(&options, &events::Quiet).unwrap();
            assert!(result.of(kind).unwrap().count > 20 && result.failures == 0, "{name}");
            assert_eq!(violated(&postgresql), [] as [u32; 0], "{name}");
            let (table, defect) = match dataset {
                Dataset::Bank(_) => ("history", "UPDATE branches SET bbalance = bbalance + 1"),
                _ => ("commit_row", "DELETE FROM commit_row WHERE id = 1"),
            };
            let mut sql = sql(&name);
            let rows = sql.query(&format!("SELECT count(*) FROM {table}")).unwrap();
            assert!(rows[0][0].as_ref().unwrap().parse::<u64>().unwrap() >= 100, "{name}");
            sql.execute(defect).unwrap();
            assert_eq!(violated(&postgresql), [1], "{name}");
        }
    }
}

fn exists(database: &str) -> bool {
    let named = format!("SELECT 1 FROM pg_database WHERE datname = '{database}'");
    !sql("postgres").query(&named).unwrap().is_empty()
}

#[test]
fn a_stopped_load_leaves_nothing() {
    // Large enough that something is always in work.
    let dataset = Dataset::OrderEntry(Scale::new(1));
    let Some(stopped) = postgresql("stopped", Workload::OrderEntry, Access::Statement) else {
        return;
    };
    for looks in [0, 3, 12] {
        let error = stopped.load(dataset, 1, &CancelAfter(AtomicU64::new(looks))).unwrap_err();
        assert!(matches!(error, Error::LoadCancelled { .. }), "{error}");
        assert!(!exists("stopped"), "after {looks} looks");
    }
    let error = stopped.meta().unwrap_err();
    assert!(matches!(error, Error::NotLoaded { .. }), "{error}");
    // A database that was there before stays, empty.
    sql("postgres").execute("CREATE DATABASE stopped").unwrap();
    let error = stopped.load(dataset, 1, &CancelAfter(AtomicU64::new(5))).unwrap_err();
    assert!(matches!(error, Error::LoadCancelled { .. }), "{error}");
    let left = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(sql("stopped").query(left).unwrap()[0][0].as_deref(), Some("0"));
    let error = stopped.meta().unwrap_err();
    assert!(matches!(error, Error::NotLoaded { .. }) && error.hint().is_some(), "{error}");
}

#[test]
fn our_own_load_is_replaced_and_other_tables_are_refused() {
    let Some(ours) = postgresql("ours", Workload::OrderEntry, Access::Statement) else { return };
    load(&ours, Dataset::OrderEntry(Scale::miniature(1)));
    load(&ours, Dataset::OrderEntry(Scale::miniature(2)));
    let meta = ours.meta().unwrap();
    assert_eq!(meta.dataset, Dataset::OrderEntry(Scale::miniature(2)));
    assert!(ours.version().unwrap().starts_with("PostgreSQL 1"));
    assert!(ours.stored().data > 1 << 20 && ours.stored().log > 0);
    sql("ours").execute("DELETE FROM wearmark_meta WHERE key <> 'layout'").unwrap();
    assert!(matches!(ours.meta().unwrap_err(), Error::NotLoaded { .. }));
    sql("ours").execute("UPDATE wearmark_meta SET value = 99").unwrap();
    let error = ours.meta().unwrap_err().to_string();
    assert!(error.contains("layout 99"), "{error}");
    // A load that was killed leaves tables of ours, which the next one takes away.
    sql("ours").execute("DELETE FROM wearmark_meta").unwrap();
    assert!(ours.meta().unwrap_err().to_string().contains("never finished"));
    load(&ours, Dataset::OrderEntry(Scale::miniature(1)));

    sql("ours").execute("DROP TABLE wearmark_meta").unwrap();
    let error = ours.load(Dataset::OrderEntry(Scale::miniature(1)), 1, &events::Quiet).unwrap_err();
    assert!(matches!(error, Error::Foreign { .. }) && error.hint().is_some(), "{error}");
    let rows = sql("ours").query("SELECT count(*) FROM warehouse").unwrap();
    assert_eq!(rows[0][0].as_deref(), Some("1"));
}

/// A customer, or stock, that must be there and is not is no rollback and no retry, in any access.
#[test]
fn a_missing_row_is_an_inconsistent_database() {
    for access in Access::ALL {
        let name = format!("missing_{}", access.name().replace('-', "_"));
        let Some(missing) = postgresql(&name, Workload::OrderEntry, access) else { return };
        let dataset = Dataset::OrderEntry(Scale::miniature(1));
        load(&missing, dataset);
        for defect in ["DELETE FROM stock", "DELETE FROM customer"] {
            sql(&name).execute(defect).unwrap();
            let driver = missing.driver(dataset).unwrap();
            let mut seen = 0;
            let run = &mut |session: &mut dyn oltp::driver::Session| {
                let mut reply = Reply::default();
                for input in inputs(Scale::miniature(1), 60) {
                    let order = matches!(input.request, Request::NewOrder(_));
                    let who = matches!(
                        input.request,
                        Request::Payment { .. } | Request::OrderStatus { .. }
                    );
                    if order || (who && defect.ends_with("customer")) {
                        match session.execute(&input, NOW_MS, &mut reply) {
                            Err(Failure::Fatal(Error::Inconsistent { .. })) => seen += 1,
                            // An order that rolls back says so before its stock is missed.
                            Ok(Outcome::RolledBack) if order => {}
                            other => panic!("{other:?} of {input:?}, {access:?}, {defect}"),
                        }
                    }
                }
                Ok(())
            };
            let worker = Worker { index: 0, writes: true };
            driver.with_session(worker, &Meter::default(), run).unwrap();
            assert!(seen > 20, "{seen}");
        }
        let orders = sql(&name).query("SELECT max(o_id) FROM orders").unwrap();
        assert_eq!(orders[0][0].as_deref(), Some("60"), "{access:?}: an order was entered");
    }
}
