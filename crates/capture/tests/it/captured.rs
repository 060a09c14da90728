//! What a session captures.

use std::path::Path;

use capture::sqlite::{
    Captured, Context, FileClass, IoMode, Session, SessionOptions, account, set_context,
};
use capture::{Error, block, cpu, diskstats};
use trace::{Op, Trace};
use units::Nanos;

use crate::support::{folder, open, session, turn};

const COMMITS: u32 = 50;

/// One row per transaction into a log, then a checkpoint.
fn commits(folder: &Path, io: IoMode) -> Captured {
    let mut running = session(folder, io);
    let connection = open(&folder.join("db"));
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; \
             CREATE TABLE t(a INTEGER PRIMARY KEY, b)",
        )
        .unwrap();
    running.rebase();
    for transaction in 1..=COMMITS {
        set_context(Context { actor: 3, transaction, kind: (transaction % 5) as u8 });
        connection.execute("INSERT INTO t VALUES(?1, zeroblob(100))", [transaction]).unwrap();
    }
    set_context(Context::default());
    connection.query_row("PRAGMA wal_checkpoint(FULL)", [], |_| Ok(())).unwrap();
    let captured = running.finish();
    captured.logical.validate().unwrap();
    captured.device.validate().unwrap();
    captured
}

fn of(trace: &Trace, class: FileClass, op: Op) -> Vec<usize> {
    let wanted = |index: &usize| trace.op[*index] == op && trace.stream[*index] == class as u16;
    (0..trace.count()).filter(wanted).collect()
}

/// Whether direct I/O works where the build folder is.
fn direct_works(captured: &Captured) -> bool {
    let direct = captured.io_mode == IoMode::Direct;
    if !direct {
        println!("skipped: {:?}", captured.device.origin.facts.get("buffered_because"));
    }
    direct
}

#[test]
fn a_commit_is_one_device_write_and_one_flush() {
    let _turn = turn();
    let folder = folder();
    let captured = commits(folder.path(), IoMode::Direct);
    if !direct_works(&captured) {
        return;
    }
    let (logical, device) = (&captured.logical, &captured.device);
    let seen = logical.chains.as_ref().unwrap();
    let commits = COMMITS as usize;
    // Each frame is written as its header and its page.
    let frames = of(logical, FileClass::Log, Op::Write);
    assert!(frames.len() >= 2 * commits && frames.len().is_multiple_of(2));
    assert!(frames.iter().all(|&at| [24, 4096].contains(&logical.len[at])));
    let of_transactions = frames.iter().filter(|&&at| seen.transaction[at] > 0).count();
    assert_eq!(of_transactions, frames.len());
    assert!(frames.iter().all(|&at| seen.actor[at] == 3));
    assert!(frames.iter().all(|&at| u32::from(captured.kinds[at]) == seen.transaction[at] % 5));
    let writes = of(device, FileClass::Log, Op::Write);
    assert_eq!(writes.len(), commits, "one device write per commit");
    let flushes = of(device, FileClass::Log, Op::Flush);
    // The checkpoint syncs the log once more.
    assert_eq!(flushes.len(), commits + 1);
    assert!(writes.iter().all(|&at| device.offset[at] % 4096 == 0 && device.len[at] % 4096 == 0));
    let (service, seen) = device.captured().unwrap();
    assert!(writes.iter().all(|&at| service[at] > 0 && seen.transaction[at] > 0));
    // The log goes on where it ended: each write begins in the block where the last one ended.
    for pair in writes.windows(2) {
        let end = device.offset[pair[0]] + u64::from(device.len[pair[0]]);
        assert!(end - device.offset[pair[1]] <= 4096);
    }
    assert!(!of(device, FileClass::Data, Op::Write).is_empty(), "the checkpoint writes pages");
}

#[test]
fn layers_close_their_account() {
    let _turn = turn();
    let folder = folder();
    let captured = commits(folder.path(), IoMode::Direct);
    if !direct_works(&captured) {
        return;
    }
    for (index, request) in captured.device.requests().enumerate() {
        if request.op == Op::Flush {
            continue;
        }
        let class = FileClass::ALL[usize::from(request.stream)];
        let home = captured.files.iter().find(|file| {
            let range = file.base_offset..file.base_offset + file.size + 4096;
            file.class == class && range.contains(&request.offset.0)
        });
        assert!(home.is_some(), "request {index} lies in no file of its class");
    }
    assert!(captured.files.iter().all(|file| file.base_offset.is_multiple_of(1 << 20)));
    let logical = account(&captured.logical, Nanos(0));
    let device = account(&captured.device, Nanos(0));
    let log = |account: &capture::sqlite::Account| {
        account.classes.iter().find(|class| class.class == "log").unwrap().clone()
    };
    let (asked, done) = (log(&logical), log(&device));
    assert!(done.write.bytes >= asked.write.bytes, "padding only adds");
    assert!(done.write.average_bytes > asked.write.average_bytes);
    assert_eq!(asked.flush.requests, done.flush.requests);
}

#[test]
fn a_buffered_session_derives_its_device_trace() {
    let _turn = turn();
    let folder = folder();
    let captured = commits(folder.path(), IoMode::Buffered);
    let device = &captured.device;
    assert_eq!(captured.io_mode, IoMode::Buffered);
    assert!(device.origin.source.starts_with("derived: "));
    assert!(device.service.is_none() && device.chains.is_none());
    let writes = of(device, FileClass::Log, Op::Write);
    assert_eq!(writes.len(), COMMITS as usize, "one run of dirty pages per sync");
    assert_eq!(of(device, FileClass::Log, Op::Flush).len(), COMMITS as usize + 1);
    assert_eq!(device.origin.facts["lost"], "0");
}

#[test]
fn sorts_and_temporary_tables_are_temp() {
    let _turn = turn();
    let folder = folder();
    let running = session(folder.path(), IoMode::Direct);
    let connection = open(&folder.path().join("db"));
    connection
        .execute_batch(
            "PRAGMA temp_store = FILE; PRAGMA cache_size = 10; CREATE TEMP TABLE x(a); \
             WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 500) \
             INSERT INTO x SELECT hex(zeroblob(1000)) || n FROM c; \
             CREATE INDEX temp.i ON x(a);",
        )
        .unwrap();
    let count: i64 = connection
        .query_row("SELECT count(*) FROM (SELECT a FROM x ORDER BY a || 'x')", [], |r| r.get(0))
        .unwrap();
    assert_eq!(count, 500);
    drop(connection);
    let captured = running.finish();
    assert!(of(&captured.logical, FileClass::Temp, Op::Write).len() > 100);
    if direct_works(&captured) {
        assert!(!of(&captured.device, FileClass::Temp, Op::Write).is_empty());
    }
    let left: Vec<_> = folder.path().read_dir().unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["db"], "temporary files leave no names");
}

#[test]
fn a_rollback_journal_is_written_synced_and_deleted() {
    let _turn = turn();
    let folder = folder();
    let running = session(folder.path(), IoMode::Direct);
    let connection = open(&folder.path().join("db"));
    connection
        .execute_batch("CREATE TABLE t(a); INSERT INTO t VALUES(1); UPDATE t SET a = 2")
        .unwrap();
    let captured = running.finish();
    let journal = |op| of(&captured.logical, FileClass::Journal, op).len();
    assert!(journal(Op::Write) > 3 && journal(Op::Flush) >= 3);
    assert_eq!(journal(Op::Trim), 3, "each transaction deletes its journal");
}

#[test]
fn phases_that_are_not_to_be_captured_are_not() {
    let _turn = turn();
    let folder = folder();
    capture::sqlite::register().unwrap();
    let options = SessionOptions { capture: false, ..SessionOptions::new(folder.path()) };
    let mut running = Session::start(options).unwrap();
    let before = running.origin_ns();
    let connection = open(&folder.path().join("db"));
    connection.execute_batch("CREATE TABLE t(a)").unwrap();
    running.set_capture(true);
    connection.execute_batch("INSERT INTO t VALUES(1)").unwrap();
    running.rebase();
    assert!(running.origin_ns() > before);
    connection.execute_batch("INSERT INTO t VALUES(2)").unwrap();
    running.set_capture(false);
    connection.execute_batch("INSERT INTO t VALUES(3)").unwrap();
    let captured = running.finish();
    let pages = of(&captured.logical, FileClass::Data, Op::Write).len();
    assert_eq!(pages, 2, "the header page and the leaf of one insert");
    assert!(captured.logical.due[0] < 1_000_000_000);
}

/// The start of a load is kept beside the measurement, in the same address space.
#[test]
fn what_came_before_the_measurement_can_be_kept() {
    let _turn = turn();
    let folder = folder();
    capture::sqlite::register().unwrap();
    let options = SessionOptions { keep_start: true, ..SessionOptions::new(folder.path()) };
    let mut running = Session::start(options).unwrap();
    if running.io_mode() != IoMode::Direct {
        return println!("skipped: the file system has no direct I/O");
    }
    let connection = open(&folder.path().join("db"));
    connection.execute_batch("CREATE TABLE t(a)").unwrap();
    running.rebase();
    connection.execute_batch("INSERT INTO t VALUES(1)").unwrap();
    running.rebase();
    connection.execute_batch("INSERT INTO t VALUES(2)").unwrap();
    let captured = running.finish();
    let start = captured.from_start.expect("it was asked for");
    let of_device = captured.device.count();
    assert_eq!(start.count(), 2 * of_device, "two inserts alike, the table's creation not");
    let later = start.count() - of_device..start.count();
    assert_eq!(start.offset[later.clone()], captured.device.offset[..]);
    let apart = start.due[later.start] - captured.device.due[0];
    assert!(start.due[later].iter().zip(&captured.device.due).all(|(a, b)| a - b == apart));
}

#[test]
fn one_session_at_a_time_and_files_without_any() {
    let _turn = turn();
    let folder = folder();
    let running = session(folder.path(), IoMode::Direct);
    let second = Session::start(SessionOptions::new(folder.path()));
    assert!(matches!(second, Err(Error::SessionActive)));
    drop(running);
    let missing = Session::start(SessionOptions::new(folder.path().join("nowhere")));
    assert!(matches!(missing, Err(Error::Path { .. })));
    // The failed start must not block the next one, and the VFS works without a session.
    let connection = open(&folder.path().join("db"));
    connection.execute_batch("CREATE TABLE t(a)").unwrap();
    drop(session(folder.path(), IoMode::Buffered));
}

#[test]
fn memory_has_no_device_behind_it() {
    let _turn = turn();
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return println!("skipped: no /dev/shm here");
    };
    let captured = commits(folder.path(), IoMode::Direct);
    assert_eq!(captured.io_mode, IoMode::Buffered);
    assert!(captured.device.origin.facts["buffered_because"].contains("in memory"));
    assert!(block::availability(folder.path()).is_err());
    assert!(diskstats::DiskCounter::start(folder.path()).is_err());
}

#[test]
fn more_events_than_the_limit_are_counted() {
    let _turn = turn();
    let folder = folder();
    capture::sqlite::register().unwrap();
    let options = SessionOptions { event_limit: 4096, ..SessionOptions::new(folder.path()) };
    let running = Session::start(options).unwrap();
    let connection = open(&folder.path().join("db"));
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = 5; \
             CREATE TABLE t(a); WITH RECURSIVE c(n) AS \
             (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5000) \
             INSERT INTO t SELECT zeroblob(2000) FROM c",
        )
        .unwrap();
    let captured = running.finish();
    assert!(captured.losses > 0);
    assert_eq!(captured.logical.origin.facts["lost"], captured.losses.to_string());
    let kept = captured.logical.count() + captured.device.count();
    assert!(kept <= 4096 && kept > 4000, "{kept}");
}

#[test]
fn the_sampler_lines_up_with_a_session() {
    let _turn = turn();
    let folder = folder();
    let sampler = cpu::CpuSampler::start();
    commits(folder.path(), IoMode::Direct);
    let series = sampler.finish();
    let total = series.total.process;
    assert!(total.user_s + total.system_s > 0.0);
    assert!(total.voluntary_switches > 0, "commits block");
    println!("{:?}", series.unavailable);
}
