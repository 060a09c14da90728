//! Loading: cardinalities, the same rows from the same seed, nothing half-done left behind.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use events::{Event, Hint, Sink};
use oltp::{Error, JournalMode, Scale, load};

use crate::{CancelAfter, Database, load_options};

#[test]
fn a_database_has_its_cardinalities() {
    let scale = Scale { warehouses: 2, districts: 4, customers_per_district: 50, items: 300 };
    let database = Database::new(scale);
    for (table, rows) in [
        ("warehouse", 2),
        ("district", 8),
        ("customer", 400),
        ("history", 400),
        ("orders", 400),
        ("new_order", 120),
        ("item", 300),
        ("stock", 600),
    ] {
        assert_eq!(database.get(&format!("SELECT count(*) FROM {table}")), rows, "{table}");
    }
    let lines = database.get("SELECT count(*) FROM order_line");
    assert!((5 * 400..=15 * 400).contains(&lines), "{lines}");
    assert_eq!(database.get("SELECT count(*) FROM orders WHERE o_carrier_id IS NOT NULL"), 280);
    assert_eq!(
        database.get("SELECT count(*) FROM stock WHERE s_quantity NOT BETWEEN 10 AND 100"),
        0
    );
    let whole: String =
        database.sql().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
}

/// Clause 4.3.3.1 at full scale: one warehouse.
#[test]
fn one_warehouse_has_the_specifications_cardinalities() {
    if std::env::var_os("SLOW").is_none() {
        println!("skipped: loads a full warehouse; set SLOW=1");
        return;
    }
    let database = Database::new(Scale::new(1));
    for (table, rows) in [
        ("district", 10),
        ("customer", 30_000),
        ("history", 30_000),
        ("orders", 30_000),
        ("new_order", 9_000),
        ("item", 100_000),
        ("stock", 100_000),
    ] {
        assert_eq!(database.get(&format!("SELECT count(*) FROM {table}")), rows, "{table}");
    }
    let lines = database.get("SELECT count(*) FROM order_line");
    // 30,000 orders of 10 lines; standard deviation 548.
    assert!((297_000..303_000).contains(&lines), "{lines}");
    assert_eq!(database.get("SELECT w_ytd FROM warehouse"), 30_000_000);
    assert_eq!(
        database.get("SELECT count(DISTINCT c_last) FROM customer WHERE c_id <= 1000"),
        1000
    );
    assert!(crate::violated(&database.settings.database()).is_empty());
}

/// Every row of every table, as text.
fn dump(database: &Database) -> Vec<String> {
    let connection = database.sql();
    let mut dump = Vec::new();
    for table in [
        "warehouse",
        "district",
        "customer",
        "history",
        "orders",
        "new_order",
        "order_line",
        "item",
    ] {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let row: Vec<_> =
                (0..columns).map(|k| format!("{:?}", row.get_ref(k).unwrap())).collect();
            dump.push(format!("{table}: {}", row.join(", ")));
        }
    }
    dump
}

#[test]
fn the_same_seed_loads_the_same_rows() {
    let scale = Scale::miniature(2);
    let (one, two) = (Database::new(scale), Database::new(scale));
    assert_eq!(dump(&one), dump(&two));
    // A warehouse is the same whatever stands beside it.
    let alone = Database::new(Scale::miniature(1));
    let first = |database: &Database| {
        database.sql().query_row("SELECT c_data FROM customer WHERE c_w_id = 1", [], |row| {
            row.get::<_, String>(0)
        })
    };
    assert_eq!(first(&one).unwrap(), first(&alone).unwrap());
}

#[test]
fn settings_take_effect() {
    for (mode, name) in [
        (JournalMode::Wal, "wal"),
        (JournalMode::Delete, "delete"),
        (JournalMode::Truncate, "delete"),
        (JournalMode::Persist, "delete"),
    ] {
        let database = Database::with(Scale::miniature(1), |settings| {
            settings.journal_mode = mode;
            settings.page_size = units::Bytes(8192);
        });
        // Of the rollback modes only "a rollback journal" is kept in the file; which one is a
        // matter of the connection.
        let kept: String =
            database.sql().query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
        assert_eq!(kept, name, "{mode:?}");
        assert_eq!(database.get("PRAGMA page_size"), 8192);
    }
}

#[test]
fn a_stopped_load_leaves_nothing() {
    let directory = crate::temporary_directory();
    let settings = oltp::SqliteSettings {
        directory: directory.path().to_owned(),
        ..oltp::SqliteSettings::default()
    };
    let options = load_options(&settings, Scale { items: 9000, ..Scale::miniature(3) });
    for looks in 0..8 {
        let error = load(&options, &CancelAfter(AtomicU64::new(looks))).unwrap_err();
        assert!(matches!(error, Error::LoadCancelled { .. }), "{error}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "look {looks}");
    }
    load(&options, &events::Quiet).unwrap();
}

#[test]
fn our_own_database_is_replaced_and_any_other_file_refused() {
    let database = Database::new(Scale::miniature(1));
    let options = load_options(&database.settings, Scale::miniature(2));
    load(&options, &events::Quiet).unwrap();
    assert_eq!(database.get("SELECT count(*) FROM warehouse"), 2);

    let path = database.settings.database();
    for content in [&b""[..], &b"my thesis"[..]] {
        std::fs::write(&path, content).unwrap();
        let error = load(&options, &events::Quiet).unwrap_err();
        assert!(matches!(error, Error::NotOurs { .. }), "{error}");
        assert!(error.hint().is_some());
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
    std::fs::remove_file(&path).unwrap();
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE t(a)").unwrap();
    let error = load(&options, &events::Quiet).unwrap_err();
    assert!(matches!(error, Error::NotOurs { .. }), "{error}");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let error = load(&options, &events::Quiet).unwrap_err();
    assert!(matches!(error, Error::NotOurs { .. }), "{error}");
}

#[test]
fn progress_never_falls_and_ends_at_one() {
    #[derive(Default)]
    struct Keep(Arc<Mutex<Vec<f64>>>);
    impl Sink for Keep {
        fn emit(&self, event: Event) {
            if let Event::Progress { done, .. } = event {
                self.0.lock().unwrap().push(done);
            }
        }
    }
    let directory = crate::temporary_directory();
    let settings = oltp::SqliteSettings {
        directory: directory.path().to_owned(),
        ..oltp::SqliteSettings::default()
    };
    let keep = Keep::default();
    let scale = Scale { items: 9000, ..Scale::miniature(3) };
    load(&load_options(&settings, scale), &keep).unwrap();
    let seen = keep.0.lock().unwrap().clone();
    assert!(seen.len() > 8 && seen.is_sorted() && seen.last() == Some(&1.0), "{seen:?}");
}
