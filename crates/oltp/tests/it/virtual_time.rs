//! The real engine on a device in virtual time.

use std::path::Path;
use std::sync::Arc;

use capture::sqlite::{Session, SessionOptions, VFS_NAME, register};
use model::Device;
use oltp::workload::commit::CommitScale;
use oltp::{Dataset, Load, LoadOptions, OltpResult, Options, Scale, SqliteSettings, Workload};
use trace::{Op, Request};
use units::{Nanos, Rate};
use virtual_time::{Computing, Settings, World};

/// Reads and writes take 100 us, flushes 1 ms, any number at a time.
struct Known;

impl Device for Known {
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos {
        Nanos(now.0 + if request.op == Op::Flush { 1_000_000 } else { 100_000 })
    }
}

fn run(directory: &Path, options: &Options, computing: Computing) -> OltpResult {
    let _turn = crate::SESSION.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    register().unwrap();
    let world = World::new(Box::new(Known), &Settings { processors: 2, computing });
    let session = Session::start(SessionOptions {
        capture: false,
        world: Some(Arc::clone(&world)),
        ..SessionOptions::new(directory)
    })
    .unwrap();
    let result = oltp::run_in(options, &world, &events::Quiet).unwrap();
    drop(session);
    result
}

fn settings(directory: &Path) -> SqliteSettings {
    let directory = directory.to_owned();
    SqliteSettings { directory, vfs: Some(VFS_NAME.to_owned()), ..SqliteSettings::default() }
}

#[test]
fn a_commit_takes_its_write_and_its_flush_and_the_database_stays() {
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path());
    let dataset = Dataset::Commit(CommitScale { rows: 100 });
    let stock = SqliteSettings { vfs: None, ..settings.clone() };
    let database = oltp::Database::Sqlite(stock);
    oltp::load(&LoadOptions { database, dataset, seed: 1 }, &events::Quiet).unwrap();
    let path = settings.database_of(Workload::Commit);
    let before = std::fs::read(&path).unwrap();
    let options = |users| Options {
        workload: Workload::Commit,
        dataset: Some(dataset),
        database: oltp::Database::Sqlite(settings.clone()),
        users,
        warmup: Nanos(1_000_000_000),
        measure: Nanos(20_000_000_000),
        ..Options::default()
    };
    let one = run(directory.path(), &options(1), Computing::Nothing);
    let kind = one.transactions.iter().find(|kind| kind.count > 0).unwrap();
    // One write of the frame and one flush; a checkpoint every 1,000 pages adds to a few.
    assert!((kind.response_ms_p50 - 1.1).abs() < 0.02, "{}", kind.response_ms_p50);
    assert!(one.transactions_per_s > 0.97 / 1.1e-3 && one.transactions_per_s <= 1.0 / 1.1e-3);
    // One writer: four users wait for each other.
    let four = run(directory.path(), &options(4), Computing::Nothing);
    assert!((four.transactions_per_s / one.transactions_per_s - 1.0).abs() < 0.01);
    let response = four.transactions.iter().find(|kind| kind.count > 0).unwrap();
    assert!((response.response_ms_p50 - 4.4).abs() < 0.05, "{}", response.response_ms_p50);
    // Nothing of the 40,000 commits is in the database.
    assert_eq!(std::fs::read(&path).unwrap(), before);
    // Connections that close at the same time may leave a log behind, without a byte in it.
    let log = directory.path().join("commit_rows.db-wal");
    assert_eq!(log.metadata().map_or(0, |file| file.len()), 0);
}

/// Workers without work wait for the next arrival; they do not wake each other for ever. The
/// responses are those of a queue with one server and constant service, M/D/1: at a load of 0.33
/// half of the requests meet nobody (Kleinrock, Queueing Systems 1, section 5.5), and the mean wait
/// is 1.1 ms x 0.33 / (2 x 0.67).
#[test]
fn an_open_loop_that_is_not_busy_waits_for_arrivals() {
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path());
    let dataset = Dataset::Commit(CommitScale { rows: 100 });
    let database = oltp::Database::Sqlite(SqliteSettings { vfs: None, ..settings.clone() });
    oltp::load(&LoadOptions { database, dataset, seed: 1 }, &events::Quiet).unwrap();
    let options = Options {
        workload: Workload::Commit,
        dataset: Some(dataset),
        database: oltp::Database::Sqlite(settings),
        users: 4,
        load: Load::Open { rate: Rate(300.0) },
        warmup: Nanos(1_000_000_000),
        measure: Nanos(60_000_000_000),
        ..Options::default()
    };
    let result = run(directory.path(), &options, Computing::Nothing);
    let kind = result.transactions.iter().find(|kind| kind.count > 0).unwrap();
    // 18,000 expected, standard deviation 134.
    assert!((17_400..18_600).contains(&result.due()), "{}", result.due());
    assert!((kind.response_ms_p50 - 1.1).abs() < 0.05, "{}", kind.response_ms_p50);
    let wait_ms = kind.response_ns.mean() / 1e6 - 1.1;
    assert!((wait_ms - 0.27).abs() < 0.05, "{wait_ms}");
    assert_eq!(result.schedule_error_ns.max(), 0, "virtual clocks are never late");
}

#[test]
fn order_entry_in_virtual_time_twice_is_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(directory.path());
    let stock = SqliteSettings { vfs: None, ..settings.clone() };
    let scale = Scale::miniature(2);
    oltp::load(&crate::load_options(&stock, scale), &events::Quiet).unwrap();
    let once = || {
        let options = Options {
            database: oltp::Database::Sqlite(settings.clone()),
            users: 6,
            warmup: Nanos(1_000_000_000),
            measure: Nanos(10_000_000_000),
            ..Options::default()
        };
        run(directory.path(), &options, Computing::Stretch(20_000))
    };
    let (first, second) = (once(), once());
    assert!(first.passed() && first.failures == 0, "{:?}", first.warnings);
    assert!(first.transactions.iter().all(|kind| kind.count > 0));
    assert_eq!(first.transactions, second.transactions);
    assert_eq!(first.series, second.series);
}
