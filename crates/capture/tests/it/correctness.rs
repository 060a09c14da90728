//! Nothing that SQLite promises is lost.

use std::io::Write;
use std::path::Path;

use capture::sqlite::{IoMode, Session};
use proptest::prelude::*;
use rusqlite::{Connection, ErrorCode};

use crate::support::{assert_whole, child, folder, lines, open, open_stock, session, task, turn};

/// How a database is set up.
#[derive(Clone, Debug)]
struct Settings {
    journal: &'static str,
    synchronous: &'static str,
    page_size: u32,
    cache_pages: u32,
}

impl Settings {
    fn apply(&self, connection: &Connection) {
        let Self { journal, synchronous, page_size, cache_pages } = self;
        connection
            .execute_batch(&format!(
                "PRAGMA page_size = {page_size}; PRAGMA journal_mode = {journal}; \
                 PRAGMA synchronous = {synchronous}; PRAGMA cache_size = {cache_pages}; \
                 PRAGMA cache_spill = 2; PRAGMA temp_store = FILE;"
            ))
            .unwrap();
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert { rows: u32, bytes: u32 },
    Update { modulus: u32, bytes: u32 },
    Delete { modulus: u32 },
    Begin,
    Commit,
    Rollback,
    Savepoint,
    RollbackTo,
    Checkpoint(&'static str),
    Vacuum,
    Sort,
    TempTable,
    Reopen,
    JournalMode(&'static str),
}

fn settings() -> impl Strategy<Value = Settings> {
    let journal = prop_oneof![
        4 => Just("WAL"),
        2 => Just("DELETE"),
        1 => Just("TRUNCATE"),
        1 => Just("PERSIST"),
    ];
    let synchronous = prop_oneof![Just("OFF"), Just("NORMAL"), Just("FULL"), Just("EXTRA")];
    let page_size = prop_oneof![Just(512), Just(1024), Just(4096), Just(16384)];
    let cache_pages = prop_oneof![Just(3), Just(10), Just(2000)];
    (journal, synchronous, page_size, cache_pages).prop_map(
        |(journal, synchronous, page_size, cache_pages)| Settings {
            journal,
            synchronous,
            page_size,
            cache_pages,
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes = prop_oneof![1..50u32, 100..600u32, Just(9000)];
    let step = prop_oneof![
        8 => (1..60u32, bytes.clone()).prop_map(|(rows, bytes)| Step::Insert { rows, bytes }),
        5 => (1..9u32, bytes).prop_map(|(modulus, bytes)| Step::Update { modulus, bytes }),
        2 => (2..9u32).prop_map(|modulus| Step::Delete { modulus }),
        4 => Just(Step::Begin),
        3 => Just(Step::Commit),
        2 => Just(Step::Rollback),
        2 => Just(Step::Savepoint),
        2 => Just(Step::RollbackTo),
        1 => prop_oneof![Just("PASSIVE"), Just("RESTART"), Just("TRUNCATE")]
            .prop_map(Step::Checkpoint),
        1 => Just(Step::Vacuum),
        1 => Just(Step::Sort),
        1 => Just(Step::TempTable),
        1 => Just(Step::Reopen),
        1 => prop_oneof![Just("WAL"), Just("DELETE"), Just("PERSIST")].prop_map(Step::JournalMode),
    ];
    prop::collection::vec(step, 1..25)
}

/// Runs the steps and returns everything that a user can see, then closes the database.
fn run(
    path: &Path,
    open: fn(&Path) -> Connection,
    settings: &Settings,
    steps: &[Step],
) -> Vec<String> {
    let mut connection = open(path);
    settings.apply(&connection);
    let create = "CREATE TABLE t(id INTEGER PRIMARY KEY, k INTEGER, v BLOB); \
                  CREATE INDEX i ON t(k);";
    connection.execute_batch(create).unwrap();
    let mut seen = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        if matches!(step, Step::Reopen) {
            connection.close().unwrap();
            connection = open(path);
            settings.apply(&connection);
            continue;
        }
        // What is not allowed now (a commit without a transaction) must fail alike.
        let outcome = connection.execute_batch(&sql(number, step));
        seen.push(format!("{number} {:?} {}", outcome.err(), digest(&connection)));
    }
    let _ = connection.execute_batch("COMMIT");
    assert_whole(&connection);
    seen.push(digest(&connection));
    connection.close().unwrap();
    seen
}

fn sql(number: usize, step: &Step) -> String {
    match step {
        Step::Insert { rows, bytes } => format!(
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < {rows}) \
             INSERT INTO t(k, v) SELECT (x * 7919 + {number}) % 1009, \
             substr(replace(hex(zeroblob({bytes})), '0', char(65 + x % 26)), 1, {bytes}) FROM c"
        ),
        Step::Update { modulus, bytes } => format!(
            "UPDATE t SET v = substr(replace(hex(zeroblob({bytes})), '0', char(97 + id % 26)), \
             1, {bytes} - id % 3), k = k + 1 WHERE id % {modulus} = 0"
        ),
        Step::Delete { modulus } => format!("DELETE FROM t WHERE id % {modulus} = 1"),
        Step::Begin => "BEGIN".to_owned(),
        Step::Commit => "COMMIT".to_owned(),
        Step::Rollback => "ROLLBACK".to_owned(),
        Step::Savepoint => "SAVEPOINT s".to_owned(),
        Step::RollbackTo => "ROLLBACK TO s".to_owned(),
        Step::Checkpoint(kind) => format!("PRAGMA wal_checkpoint({kind})"),
        Step::Vacuum => "VACUUM".to_owned(),
        Step::Sort => "SELECT count(*) FROM (SELECT v FROM t ORDER BY v || k LIMIT -1)".to_owned(),
        Step::TempTable => "CREATE TEMP TABLE IF NOT EXISTS p(v); INSERT INTO p SELECT v FROM t; \
                            DELETE FROM p WHERE rowid % 3 = 0"
            .to_owned(),
        Step::Reopen => String::new(),
        Step::JournalMode(mode) => format!("PRAGMA journal_mode = {mode}"),
    }
}

fn digest(connection: &Connection) -> String {
    let one = "SELECT count(*) || ' ' || total(id) || ' ' || total(k) || ' ' || total(length(v)) \
               || ' ' || total(unicode(v)) FROM t";
    connection.query_row(one, [], |row| row.get(0)).unwrap()
}

fn check(io: IoMode, settings: &Settings, steps: &[Step]) {
    let _turn = turn();
    let (ours, stock) = (folder(), folder());
    let running = session(ours.path(), io);
    let seen = run(&ours.path().join("db"), open, settings, steps);
    let captured = running.finish();
    captured.logical.validate().unwrap();
    captured.device.validate().unwrap();
    let expected = run(&stock.path().join("db"), open_stock, settings, steps);
    assert_eq!(seen, expected);
    let bytes = |folder: &Path| std::fs::read(folder.join("db")).unwrap();
    assert!(bytes(ours.path()) == bytes(stock.path()), "the database files differ");
    let names = |folder: &Path| {
        let mut names: Vec<_> =
            folder.read_dir().unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(ours.path()), names(stock.path()));
}

/// Cases of the random test: many more with `SLOW=1`.
fn cases() -> u32 {
    if std::env::var_os("SLOW").is_some() { 600 } else { 24 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]
    #[test]
    fn random_sql_does_what_the_stock_vfs_does(
        settings in settings(), steps in steps(), direct in prop::bool::weighted(0.8),
    ) {
        check(if direct { IoMode::Direct } else { IoMode::Buffered }, &settings, &steps);
    }
}

#[test]
fn readers_see_whole_transactions_while_another_connection_writes() {
    let _turn = turn();
    let folder = folder();
    let path = folder.path().join("db");
    let running = session(folder.path(), IoMode::Direct);
    let writer = open(&path);
    writer
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = 10; \
             PRAGMA wal_autocheckpoint = 50; CREATE TABLE a(n, pad); INSERT INTO a \
             WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 100) \
             SELECT 0, zeroblob(900) FROM c",
        )
        .unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (stop, path) = (&stop, &path);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(move || {
                let reader = open(path);
                let mut last = 0;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let row = "SELECT min(n), max(n), count(*) FROM a";
                    let (least, most, count): (i64, i64, i64) = reader
                        .query_row(row, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                        .unwrap();
                    assert_eq!((least, count), (most, 100), "a transaction seen by half");
                    assert!(least >= last);
                    last = least;
                }
            });
        }
        for _ in 0..100 {
            writer.execute_batch("UPDATE a SET n = n + 1").unwrap();
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_whole(&writer);
    assert_eq!(running.finish().losses, 0);
}

/// Runs in a child: adds one transaction after the other, telling each that was acknowledged.
#[test]
fn child_that_writes() {
    let Some(task) = task() else { return println!("not alone: a child of other tests") };
    let [folder, vfs, journal, synchronous, start, count] = &task[..] else { panic!("{task:?}") };
    let folder = Path::new(folder);
    let _session: Option<Session> = (vfs == "ours").then(|| session(folder, IoMode::Direct));
    let path = folder.join("db");
    let connection = if vfs == "ours" { open(&path) } else { open_stock(&path) };
    connection
        .execute_batch(&format!(
            "PRAGMA journal_mode = {journal}; PRAGMA synchronous = {synchronous}; \
             PRAGMA cache_size = 8; PRAGMA wal_autocheckpoint = 40; \
             CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, writer, v); \
             CREATE TABLE IF NOT EXISTS counter(n); \
             INSERT INTO counter SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM counter)"
        ))
        .unwrap();
    let start: i64 = start.parse().unwrap();
    for id in start..start + count.parse::<i64>().unwrap() {
        // Several pages per transaction, more than the cache holds: some are spilled.
        connection
            .execute_batch(&format!(
                "BEGIN IMMEDIATE; INSERT INTO t VALUES({id}, {start}, \
                 hex(zeroblob(500 + {id} * 37 % 20000))); UPDATE counter SET n = n + 1; \
                 UPDATE t SET v = v || 'x' WHERE id % 10 = {id} % 10 AND id > {id} - 200; COMMIT"
            ))
            .unwrap();
        println!("\nacknowledged {id}");
        std::io::stdout().flush().unwrap();
    }
}

fn crash(journal: &str, synchronous: &str, acknowledged: usize) {
    let folder = folder();
    let task = format!("{}|ours|{journal}|{synchronous}|1|1000000", folder.path().display());
    let mut writer = child("correctness::child_that_writes", &task);
    let mut output = lines(&mut writer, "acknowledged");
    let before = output.by_ref().take(acknowledged).count();
    assert_eq!(before, acknowledged, "the child died by itself");
    writer.kill().unwrap();
    writer.wait().unwrap();
    let last: i64 = output.last().map_or(acknowledged as i64, |line| line.parse().unwrap());
    let stock = open_stock(&folder.path().join("db"));
    assert_whole(&stock);
    let (count, counter): (i64, i64) = stock
        .query_row("SELECT (SELECT count(*) FROM t), n FROM counter", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!(count, counter, "{journal} {synchronous}: half a transaction");
    // At most the one transaction whose acknowledgement the kill swallowed may be there too.
    assert!((last..=last + 1).contains(&count), "{journal} {synchronous}: {last} but {count}");
}

#[test]
fn a_kill_loses_nothing_that_was_acknowledged() {
    // Behind the page cache a kill loses nothing even without syncs, so it must not here.
    for (journal, synchronous) in [
        ("WAL", "FULL"),
        ("WAL", "NORMAL"),
        ("WAL", "OFF"),
        ("DELETE", "FULL"),
        ("DELETE", "OFF"),
        ("PERSIST", "NORMAL"),
        ("TRUNCATE", "OFF"),
    ] {
        for acknowledged in [7, 45] {
            crash(journal, synchronous, acknowledged);
        }
    }
}

/// Two processes write one database at the same time.
fn together(journal: &str, synchronous: &str, other: &str) {
    let folder = folder();
    let path = folder.path().display();
    const EACH: i64 = 60;
    let start = |vfs: &str, first: i64| {
        let task = format!("{path}|{vfs}|{journal}|{synchronous}|{first}|{EACH}");
        child("correctness::child_that_writes", &task)
    };
    let mut first = start("ours", 1);
    // Both must not set the database up at once.
    let mut output = lines(&mut first, "acknowledged");
    assert!(output.next().is_some());
    // The pipe must be emptied, or the child stops.
    let emptied = std::thread::spawn(move || output.count());
    let second = start(other, 100_000);
    for writer in [first, second] {
        let output = writer.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    emptied.join().unwrap();
    let stock = open_stock(&folder.path().join("db"));
    assert_whole(&stock);
    let count = |sql| stock.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT n FROM counter"), 2 * EACH, "{journal} {synchronous} {other}");
    assert_eq!(count("SELECT count(*) FROM t"), 2 * EACH);
}

#[test]
fn two_processes_write_one_database() {
    for (journal, synchronous, other) in [
        ("WAL", "FULL", "ours"),
        ("WAL", "OFF", "ours"),
        ("WAL", "NORMAL", "stock"),
        ("DELETE", "OFF", "ours"),
        ("PERSIST", "NORMAL", "stock"),
    ] {
        together(journal, synchronous, other);
    }
}

/// Runs in a child: tries to get the write lock through the stock VFS, and tells how that went.
#[test]
fn child_that_locks() {
    let Some(task) = task() else { return println!("not alone: a child of other tests") };
    let connection = Connection::open(&task[0]).unwrap();
    connection.busy_timeout(std::time::Duration::ZERO).unwrap();
    let code =
        connection.execute_batch("BEGIN IMMEDIATE").err().and_then(|e| e.sqlite_error_code());
    println!("\nlock {}", if code == Some(ErrorCode::DatabaseBusy) { "busy" } else { "free" });
}

#[test]
fn closing_one_connection_keeps_the_locks_of_another() {
    let _turn = turn();
    let folder = folder();
    let path = folder.path().join("db");
    let running = session(folder.path(), IoMode::Direct);
    let holder = open(&path);
    holder.execute_batch("CREATE TABLE t(a); BEGIN IMMEDIATE").unwrap();
    let ask = || {
        let mut asks = child("correctness::child_that_locks", &path.display().to_string());
        let answer = lines(&mut asks, "lock").last();
        asks.wait().unwrap();
        answer.unwrap()
    };
    assert_eq!(ask(), "busy");
    let other = open(&path);
    other.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)).unwrap();
    other.close().unwrap();
    assert_eq!(ask(), "busy", "the other connection's close dropped the lock");
    holder.execute_batch("COMMIT").unwrap();
    assert_eq!(ask(), "free");
    drop(running);
}

#[test]
fn a_log_left_behind_is_recovered_and_a_transaction_over_two_files_is_atomic() {
    let _turn = turn();
    let folder = folder();
    let running = session(folder.path(), IoMode::Direct);
    let first = open(&folder.path().join("a"));
    let attach = format!("ATTACH '{}' AS b", folder.path().join("b").display());
    first.execute_batch(&attach).unwrap();
    first
        .execute_batch(
            "PRAGMA main.journal_mode = DELETE; PRAGMA b.journal_mode = DELETE; \
             CREATE TABLE main.t(a); CREATE TABLE b.t(a); \
             BEGIN; INSERT INTO main.t VALUES(1); INSERT INTO b.t VALUES(1); COMMIT",
        )
        .unwrap();
    drop(first);
    for name in ["a", "b"] {
        let stock = open_stock(&folder.path().join(name));
        assert_whole(&stock);
        let count: i64 = stock.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(count, 1);
    }
    // A log that outlives its connections, read back through the VFS and by the stock one.
    let path = folder.path().join("c");
    let keeper = open(&path);
    let keep = [("PRAGMA journal_mode = WAL", ""), ("PRAGMA wal_autocheckpoint = 0", "")];
    for (pragma, _) in keep {
        keeper.query_row(pragma, [], |_| Ok(())).unwrap();
    }
    keeper.execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES(1), (2), (3)").unwrap();
    let copy = folder.path().join("copy");
    std::fs::copy(&path, &copy).unwrap();
    std::fs::copy(folder.path().join("c-wal"), folder.path().join("copy-wal")).unwrap();
    for connection in [open(&copy), open_stock(&copy)] {
        assert_whole(&connection);
        let sum: i64 = connection.query_row("SELECT sum(a) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(sum, 6);
        connection.execute_batch("PRAGMA wal_autocheckpoint = 0").ok();
    }
    drop(keeper);
    drop(running);
}

#[test]
fn a_read_behind_the_end_is_short_and_zeroed() {
    use rusqlite::ffi;
    let _turn = turn();
    let folder = folder();
    let running = session(folder.path(), IoMode::Direct);
    let connection = open(&folder.path().join("db"));
    connection.execute_batch("PRAGMA page_size = 4096; CREATE TABLE t(a)").unwrap();
    let mut file: *mut ffi::sqlite3_file = std::ptr::null_mut();
    // SAFETY: the documented way to the handle of an open database, which outlives its use here.
    let code = unsafe {
        let operation = ffi::SQLITE_FCNTL_FILE_POINTER;
        let result = (&raw mut file).cast();
        ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), operation, result)
    };
    assert_eq!(code, ffi::SQLITE_OK);
    for (offset, found) in [(8192 - 100, 100), (8192, 0), (1 << 30, 0)] {
        let mut into = [0xee_u8; 300];
        // SAFETY: the buffer has the length that is passed.
        let code = unsafe {
            let read = (*(*file).pMethods).xRead.unwrap();
            read(file, into.as_mut_ptr().cast(), 300, offset)
        };
        assert_eq!(code, ffi::SQLITE_IOERR_SHORT_READ, "at {offset}");
        assert!(into[found..].iter().all(|byte| *byte == 0), "at {offset}");
    }
    drop(running);
}
