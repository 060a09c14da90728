//! SQLite on a directory whose power is cut while it writes: what it acknowledged is there
//! afterwards where its settings promise so, and a setting or a disk that does not keep the promise
//! is caught. Ten cuts for each; 100 with `SLOW=1`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use emulate::{Fate, Lossy, mount_all};
use rusqlite::Connection;
use stats::rng::Rng;

/// A way to keep what is acknowledged.
#[derive(Clone, Copy, Debug)]
struct Setting {
    journal: &'static str,
    synchronous: &'static str,
}

/// The write-ahead log, synced at each commit.
const WAL: Setting = Setting { journal: "wal", synchronous: "full" };
/// A rollback journal whose removal, which commits, is synced too.
const EXTRA: Setting = Setting { journal: "delete", synchronous: "extra" };
/// The same without: a commit is acknowledged before its journal is gone for good.
const FULL: Setting = Setting { journal: "delete", synchronous: "full" };

fn cuts() -> u64 {
    if std::env::var_os("SLOW").is_some() { 100 } else { 10 }
}

fn open(file: &Path, setting: Setting) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    if setting.journal == "wal" {
        // Its index is shared memory otherwise, mapped from a file that we serve ourselves.
        connection.pragma_update(None, "locking_mode", "exclusive")?;
    }
    connection.pragma_update(None, "journal_mode", setting.journal)?;
    connection.pragma_update(None, "synchronous", setting.synchronous)?;
    Ok(connection)
}

/// What a writer has done.
#[derive(Default)]
struct Seen {
    /// The last number that was acknowledged.
    acknowledged: AtomicI64,
    /// The power is about to be cut. A process would be gone with it; this one goes on, and SQLite
    /// takes a directory that cannot be opened for one that need not be synced.
    is_over: AtomicBool,
}

/// Inserts one number after another until the disk is gone.
fn write(file: &Path, setting: Setting, seen: &Seen) -> rusqlite::Result<()> {
    let connection = open(file, setting)?;
    loop {
        let next = seen.acknowledged.load(Ordering::Relaxed) + 1;
        connection.execute("INSERT INTO t VALUES (?1, randomblob(300))", [next])?;
        if seen.is_over.load(Ordering::SeqCst) {
            return Ok(());
        }
        seen.acknowledged.store(next, Ordering::Relaxed);
        // The power also fails between transactions.
        if next % 2 == 0 {
            std::thread::sleep(Duration::from_millis(3));
        }
    }
}

/// Cuts the power while the database is written; tells whether all that was acknowledged was there
/// after each cut. The database is whole after every one, or this panics.
fn survives(setting: Setting, lies: bool, torn: bool, cuts: u64) -> bool {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("db");
    std::fs::create_dir(&directory).unwrap();
    let file: PathBuf = directory.join("t.db");
    let made = open(&file, setting).unwrap();
    made.execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY, filler BLOB)").unwrap();
    drop(made);
    let mut rng = Rng::new(7);
    let mut least = 0;
    for seed in 0..cuts {
        let lossy = Lossy::serve(&directory, lies).unwrap();
        let points = vec![lossy.mount_point()];
        let seen = Arc::new(Seen::default());
        seen.acknowledged.store(least, Ordering::Relaxed);
        let (told, noted) = (file.clone(), Arc::clone(&seen));
        let writer = std::thread::spawn(move || {
            mount_all(&points).unwrap();
            write(&told, setting, &noted)
        });
        // Not before it has written something.
        while seen.acknowledged.load(Ordering::Relaxed) == least && !writer.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(rng.below(30)));
        let fate = if torn { Fate::Some { seed } } else { Fate::All };
        seen.is_over.store(true, Ordering::SeqCst);
        let (lost, counts) = lossy.end(Some(fate)).unwrap();
        let ended = writer.join().unwrap();
        let acknowledged = seen.acknowledged.load(Ordering::Relaxed);
        println!("{setting:?} {seed}: {acknowledged}, {lost:?}, {counts:?}, {ended:?}");
        assert!(acknowledged > least, "nothing was written: {ended:?}");
        let Some((rows, last)) = kept(&file) else { return false };
        assert_eq!(rows, last, "{setting:?}, seed {seed}: a row is missing in between");
        assert!(last <= acknowledged + 1, "a row that nobody wrote");
        if last < acknowledged {
            return false;
        }
        least = last;
    }
    true
}

/// Rows and the largest number; none where the database is damaged.
fn kept(file: &Path) -> Option<(i64, i64)> {
    let connection = Connection::open(file).unwrap();
    let whole = connection.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    if whole.as_deref() != Ok("ok") {
        println!("{whole:?}");
        return None;
    }
    let counts = "SELECT count(*), coalesce(max(n), 0) FROM t";
    connection.query_row(counts, [], |row| Ok((row.get(0)?, row.get(1)?))).ok()
}

#[test]
fn sqlite_keeps_what_it_acknowledged() {
    if let Some(why) = Lossy::missing() {
        return println!("skipped: {why}");
    }
    for setting in [WAL, EXTRA] {
        for torn in [false, true] {
            assert!(survives(setting, false, torn, cuts()), "{setting:?}, torn: {torn}");
        }
    }
}

/// The manual of SQLite says so of `synchronous = FULL` without a write-ahead log: the removal of
/// the journal may be undone, and the transaction with it.
#[test]
fn a_removed_journal_that_comes_back_is_caught() {
    if let Some(why) = Lossy::missing() {
        return println!("skipped: {why}");
    }
    assert!(!survives(FULL, false, false, cuts()));
}

#[test]
fn a_disk_that_lies_is_caught_by_sqlite_every_time() {
    if let Some(why) = Lossy::missing() {
        return println!("skipped: {why}");
    }
    for _ in 0..cuts() / 2 {
        assert!(!survives(WAL, true, false, 1));
    }
}
