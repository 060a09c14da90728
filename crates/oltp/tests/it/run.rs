//! Whole runs on miniatures: every setting keeps the conditions and the account of what was done.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use oltp::workload::bank::BankScale;
use oltp::workload::commit::CommitScale;
use oltp::{
    Dataset, JournalMode, Kind, Load, Mix, Options, Phase, Scale, Synchronous, run, run_observed,
};
use units::{Nanos, Rate};

use crate::{CancelAfter, Database, violated};

fn options(database: &Database) -> Options {
    Options {
        database: oltp::Database::Sqlite(database.settings.clone()),
        users: 6,
        warmup: Nanos(50_000_000),
        measure: Nanos(400_000_000),
        ..Options::default()
    }
}

#[test]
fn every_journal_mode_keeps_the_conditions() {
    for (mode, readers) in [
        (JournalMode::Wal, 2),
        (JournalMode::Wal, 0),
        (JournalMode::Delete, 1),
        (JournalMode::Truncate, 2),
        (JournalMode::Persist, 1),
    ] {
        let database = Database::new(Scale::miniature(2));
        let mut options = options(&database);
        options.database.sqlite_mut().unwrap().journal_mode = mode;
        options.database.sqlite_mut().unwrap().readers = readers;
        options.database.sqlite_mut().unwrap().synchronous = Synchronous::Off;
        options.mix = Mix::new([10.0, 10.0, 5.0, 1.0, 5.0]).unwrap();
        let result = run(&options, &events::Quiet).unwrap();
        assert_eq!(violated(&database.settings.database()), [] as [u32; 0], "{mode:?}");
        assert!(result.audit.passed, "{mode:?}: {:?}", result.audit);
        assert_eq!((result.retries, result.failures), (0, 0), "{mode:?}");
        for kind in Kind::ORDER_ENTRY {
            let of = result.of(kind).unwrap();
            assert_eq!(of.count, of.response_ns.count());
            assert_eq!(of.count, of.service_ns.count());
            assert!(of.response_ns.sum() >= of.service_ns.sum(), "{mode:?} {kind:?}");
        }
        assert!(result.of(Kind::NewOrder).unwrap().count > 0, "{mode:?}");
        assert!(result.of(Kind::StockLevel).unwrap().count > 0, "{mode:?}");
        assert!(result.cpu.user_s > 0.0 && result.cpu.transactions > 0, "{mode:?}");
    }
}

/// What the result counts is what the database holds.
#[test]
fn the_account_closes() {
    let database = Database::new(Scale::miniature(2));
    let mut options = options(&database);
    options.database.sqlite_mut().unwrap().synchronous = Synchronous::Off;
    options.warmup = Nanos::ZERO;
    options.delivery_log = Some(database.directory.path().join("deliveries.csv"));
    let result = run(&options, &events::Quiet).unwrap();
    let orders = database.get("SELECT count(*) FROM orders") - 2 * 3 * 60;
    let counted =
        result.of(Kind::NewOrder).unwrap().count - result.of(Kind::NewOrder).unwrap().rollbacks;
    // Requests in work at the end are executed and not counted: one at most per worker.
    assert!((0..=1).contains(&(orders - counted as i64)), "{orders} {counted}");
    let payments = database.get("SELECT count(*) FROM history") - 2 * 3 * 60;
    assert!((0..=1).contains(&(payments - result.of(Kind::Payment).unwrap().count as i64)));
    let series: u32 = result.series.new_orders.iter().sum();
    assert!(u64::from(series) <= result.of(Kind::NewOrder).unwrap().count + 1);
    let log = std::fs::read_to_string(options.delivery_log.unwrap()).unwrap();
    assert_eq!(log.lines().count() as u64, result.delivery.executed + 1);
    let delivered = database.get("SELECT sum(c_delivery_cnt) FROM customer");
    let in_log: usize = log
        .lines()
        .skip(1)
        .map(|line| line.split(',').skip(4).filter(|order| *order != "0").count())
        .sum();
    assert_eq!(in_log as i64, delivered);
    let counted: u64 = result.transactions.iter().map(|kind| kind.count).sum();
    assert!((counted..=counted + 2).contains(&result.attempts), "{counted} {}", result.attempts);
}

#[test]
fn results_survive_json() {
    let database = Database::new(Scale::miniature(1));
    let result = run(&options(&database), &events::Quiet).unwrap();
    let json = serde_json::to_string(&result).unwrap();
    let back: oltp::OltpResult = serde_json::from_str(&json).unwrap();
    assert_eq!(back.transactions[0].response_ns, result.transactions[0].response_ns);
    assert_eq!(back.options, result.options);
    assert!(!json.to_lowercase().contains("tpmc"));
    let codes: Vec<&str> = result.warnings.iter().map(|w| w.code.as_str()).collect();
    assert!(codes.contains(&"miniature_scale") && codes.contains(&"too_short"), "{codes:?}");
}

#[test]
fn a_stopped_run_keeps_what_it_did() {
    let database = Database::new(Scale::miniature(1));
    let mut options = options(&database);
    options.measure = Nanos(60_000_000_000);
    let result = run(&options, &CancelAfter(AtomicU64::new(5))).unwrap();
    assert!(result.interrupted && result.measured_s < 30.0);
    assert!(result.of(Kind::NewOrder).unwrap().count > 0 && result.transactions_per_s > 0.0);
    assert!(result.warnings.iter().any(|warning| warning.code == "interrupted"));
    assert_eq!(violated(&database.settings.database()), [] as [u32; 0]);
}

#[test]
fn a_run_stopped_while_warming_up_measures_nothing_and_says_so() {
    let database = Database::new(Scale::miniature(1));
    let mut options = options(&database);
    options.warmup = Nanos(60_000_000_000);
    let result = run(&options, &CancelAfter(AtomicU64::new(2))).unwrap();
    assert!(result.interrupted);
    assert_eq!((result.measured_s, result.transactions_per_s), (0.0, 0.0));
    assert!(result.series.transactions.len() < 300, "{}", result.series.transactions.len());
    assert!(result.attempts > 0);
    let json = serde_json::to_string(&result).unwrap();
    // JSON has no NaN: serde writes null, which would not read back.
    assert!(serde_json::from_str::<oltp::OltpResult>(&json).is_ok());
}

#[test]
fn phases_come_in_order() {
    let database = Database::new(Scale::miniature(1));
    let mut phases = Vec::new();
    run_observed(&options(&database), &events::Quiet, &mut |phase| phases.push(phase)).unwrap();
    assert_eq!(phases, [Phase::WarmUp, Phase::Measurement, Phase::End]);
}

/// Who counts from the start of the load misses no transaction, however long it takes to begin.
#[test]
fn the_load_waits_for_whoever_begins_to_watch() {
    let database = Database::new(Scale::miniature(1));
    let payments = || database.get("SELECT COUNT(*) FROM history");
    let before = payments();
    let mut counts = Vec::new();
    run_observed(&options(&database), &events::Quiet, &mut |phase| {
        if phase == Phase::WarmUp {
            std::thread::sleep(Duration::from_millis(300));
        }
        counts.push(payments() - before);
    })
    .unwrap();
    assert!(counts[0] == 0 && counts[1] > 0, "{counts:?}");
}

#[test]
fn an_open_loop_keeps_its_rate_and_counts_queueing() {
    let database = Database::new(Scale::miniature(1));
    let mut options = options(&database);
    options.database.sqlite_mut().unwrap().synchronous = Synchronous::Off;
    options.load = Load::Open { rate: Rate(200.0) };
    options.measure = Nanos(1_000_000_000);
    let result = run(&options, &events::Quiet).unwrap();
    // 200 expected, standard deviation 14; a slow machine may leave some unfinished.
    let count: u64 = result.transactions.iter().map(|kind| kind.count).sum();
    assert!((20..290).contains(&count), "{count}");
    assert_eq!(result.dropped, 0);
    // Every arrival of the measurement is in the account, answered or not.
    assert!((140..260).contains(&result.due()) && result.due() >= count, "{count}");
    let timed = result.schedule_error_ns.count();
    assert!((140..260).contains(&timed) && timed >= count, "{timed} {count}");
    assert!(result.schedule_error_ns.quantile(0.5) < 50_000_000, "{result:?}");
}

/// Far more than SQLite does: what waits at the end counts, and nothing is said to hold.
#[test]
fn an_overloaded_open_loop_counts_what_waits() {
    let database = Database::new(Scale::miniature(1));
    let mut options = options(&database);
    options.database.sqlite_mut().unwrap().synchronous = Synchronous::Off;
    let rate = 100_000.0;
    options.load = Load::Open { rate: Rate(rate) };
    options.warmup = Nanos(300_000_000);
    options.measure = Nanos(1_100_000_000);
    let result = run(&options, &events::Quiet).unwrap();
    let expected = rate * result.measured_s;
    let off = (result.due() as f64 - expected) / expected.sqrt();
    assert!(off.abs() < 5.0, "{} due, {expected} expected", result.due());
    assert!(result.waiting > result.due() / 2, "{} of {}", result.waiting, result.due());
    let new_order = result.of(Kind::NewOrder).unwrap();
    assert!(new_order.at_least.p50 && new_order.at_least.p99 && !new_order.p90_holds);
    assert_eq!(new_order.p90_verdict(), oltp::Verdict::Unknown);
    // By the waiting alone: uniform over 1.1 s.
    assert!(new_order.response_ms_p90 > 0.85 * 1100.0, "{}", new_order.response_ms_p90);
    assert!(!result.passed() && !result.delivery.holds);
    // What was due in the warm-up is done in the measurement, and is work all the same.
    assert!(result.transactions_per_s > 100.0, "{}", result.transactions_per_s);
    for code in ["overload", "unanswered"] {
        assert!(result.warnings.iter().any(|warning| warning.code == code), "{code}");
    }
    let back: oltp::OltpResult =
        serde_json::from_str(&serde_json::to_string(&result).unwrap()).unwrap();
    assert_eq!(back.waiting, result.waiting);
    assert_eq!(back.transactions[0].waited_ns, new_order.waited_ns);
}

#[test]
fn think_times_slow_users_down() {
    let database = Database::new(Scale::miniature(1));
    let mut options = options(&database);
    // A mean cycle of about 23 s times 0.01: 6 users ask about 26 times a second.
    options.load = Load::Closed { think: 0.01 };
    options.measure = Nanos(1_000_000_000);
    let result = run(&options, &events::Quiet).unwrap();
    let count: u64 = result.transactions.iter().map(|kind| kind.count).sum();
    assert!((1..80).contains(&count), "{count}");
}

#[test]
fn a_mix_of_deliveries_only_runs_dry_and_says_so() {
    let database = Database::new(Scale::miniature(1));
    let mut options = options(&database);
    options.mix = Mix::new([0.0, 0.0, 0.0, 1.0, 0.0]).unwrap();
    options.database.sqlite_mut().unwrap().synchronous = Synchronous::Off;
    let result = run(&options, &events::Quiet).unwrap();
    assert!(result.delivery.skipped > 0 && !result.delivery.holds);
    assert!(result.delivery.backpressured > 0);
    assert!(result.warnings.iter().any(|warning| warning.code == "deliveries"));
    assert_eq!(violated(&database.settings.database()), [] as [u32; 0]);
}

/// The framework alone, on a driver that answers at once, must cost little; the bound is loose
/// because this is a debug build on a shared machine.
#[test]
fn the_framework_costs_little() {
    let options =
        Options { measure: Nanos(200_000_000), warmup: Nanos::ZERO, ..Options::default() };
    let cost = oltp::framework_cost_ns(Scale::new(10), &options, &events::Quiet).unwrap();
    assert!(cost > 50.0 && cost < 200_000.0, "{cost} ns");
}

/// A run of bank or commit on SQLite: the conditions hold and every transaction left its mark.
fn small_workload(dataset: Dataset, mark: &str) {
    let directory = crate::temporary_directory();
    let settings = oltp::SqliteSettings {
        directory: directory.path().to_owned(),
        synchronous: Synchronous::Off,
        ..oltp::SqliteSettings::default()
    };
    let database = oltp::Database::Sqlite(settings.clone());
    let load = oltp::LoadOptions { database: database.clone(), dataset, seed: 3 };
    oltp::load(&load, &events::Quiet).unwrap();
    let options = Options {
        database,
        workload: dataset.workload(),
        users: 4,
        warmup: Nanos::ZERO,
        measure: Nanos(300_000_000),
        ..Options::default()
    };
    let result = run(&options, &events::Quiet).unwrap();
    let count = result.transactions[0].count;
    assert!(result.transactions.len() == 1 && count > 0 && result.audit.passed, "{result:?}");
    assert_eq!(result.new_orders_per_min, 0.0);
    let path = settings.database_of(dataset.workload());
    let results = oltp::sqlite::check(&path, None).unwrap();
    assert!(!results.is_empty() && results.iter().all(|result| result.holds), "{results:?}");
    let sql = rusqlite::Connection::open(&path).unwrap();
    let marks: i64 = sql.query_row(mark, [], |row| row.get(0)).unwrap();
    // One may have been in work at the end.
    assert!((0..=1).contains(&(marks - count as i64)), "{marks} {count}");
    let json = serde_json::to_string(&result).unwrap();
    assert!(serde_json::from_str::<oltp::OltpResult>(&json).is_ok());
}

#[test]
fn bank_moves_money_and_loses_none() {
    let scale = BankScale { branches: 2, accounts_per_branch: 300 };
    small_workload(Dataset::Bank(scale), "SELECT count(*) FROM history");
}

#[test]
fn commit_adds_one_to_a_row_each() {
    let dataset = Dataset::Commit(CommitScale { rows: 500 });
    small_workload(dataset, "SELECT sum(value) FROM commit_row");
}
