//! What capturing costs.
//!
//! `event`: one captured read of the log through the VFS's recorder, against the same read with
//! capture off, on a database in memory so that nothing but the VFS is measured. `inserts`: a load
//! of single-row transactions on the disk, capture on against off in alternation, as a ratio.
//!
//! Run with `cargo bench -p capture`. `CAPTURE_PAIRS=20` sets the number of pairs.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use capture::sqlite::{Context, IoMode, Session, SessionOptions, VFS_NAME, register, set_context};
use criterion::{Criterion, criterion_group, criterion_main};
use rusqlite::{Connection, OpenFlags};
use units::Bytes;

fn open(path: &Path) -> Connection {
    Connection::open_with_flags_and_vfs(path, OpenFlags::default(), VFS_NAME).unwrap()
}

/// CPU time of this process, user and system, seconds.
fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Page reads that miss SQLite's cache of two pages, in a file in memory.
fn event(criterion: &mut Criterion) {
    register().unwrap();
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let options = SessionOptions {
        io: IoMode::Buffered,
        event_limit: 4_000_000,
        ..SessionOptions::new(folder.path())
    };
    let mut session = Session::start(options).unwrap();
    let connection = open(&folder.path().join("db"));
    connection
        .execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = 2; \
             CREATE TABLE t(a INTEGER PRIMARY KEY, b); WITH RECURSIVE c(n) AS \
             (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000) \
             INSERT INTO t SELECT n, zeroblob(3000) FROM c",
        )
        .unwrap();
    let scan = || {
        let sum: i64 =
            connection.query_row("SELECT sum(length(b)) FROM t", [], |r| r.get(0)).unwrap();
        black_box(sum);
    };
    // How many events one scan is, to turn the difference into nanoseconds per event.
    session.set_capture(true);
    session.rebase();
    scan();
    let mut group = criterion.benchmark_group("event");
    for on in [false, true] {
        session.set_capture(on);
        group.bench_function(if on { "scan, captured" } else { "scan, not captured" }, |bencher| {
            bencher.iter_custom(|rounds| {
                let mut spent = 0.0;
                for _ in 0..rounds {
                    session.rebase();
                    let start = cpu();
                    scan();
                    spent += cpu() - start;
                }
                Duration::from_secs_f64(spent)
            });
        });
    }
    group.finish();
    session.set_capture(true);
    session.rebase();
    scan();
    println!("events per scan: {}", session.finish().logical.count());
}

/// One run of the load: wall and CPU seconds.
fn load(folder: &Path, options: &SessionOptions, rows: u32) -> (f64, f64) {
    let session = Session::start(options.clone()).unwrap();
    let path = folder.join("db");
    for name in ["db", "db-wal", "db-shm"] {
        let _ = std::fs::remove_file(folder.join(name));
    }
    let connection = open(&path);
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
             CREATE TABLE t(a INTEGER PRIMARY KEY, b)",
        )
        .unwrap();
    let mut insert = connection.prepare("INSERT INTO t VALUES(?1, zeroblob(200))").unwrap();
    let (wall, spent) = (Instant::now(), cpu());
    for row in 1..=rows {
        set_context(Context { actor: 0, transaction: row, kind: 0 });
        insert.execute([row]).unwrap();
    }
    let figures = (wall.elapsed().as_secs_f64(), cpu() - spent);
    drop(insert);
    drop(connection);
    drop(session);
    figures
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints the ratios `b / a` of two ways to run the load, in alternation.
fn compare(name: &str, ways: [&SessionOptions; 2], rows: u32) {
    let pairs = std::env::var("CAPTURE_PAIRS").ok().and_then(|text| text.parse().ok()).unwrap_or(7);
    let folder = ways[0].directory.as_path();
    let (mut wall, mut spent, mut rate) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs {
        let order = if pair % 2 == 0 { [0, 1] } else { [1, 0] };
        let mut figures = [(0.0, 0.0); 2];
        for way in order {
            figures[way] = load(folder, ways[way], rows);
        }
        wall.push(figures[1].0 / figures[0].0);
        spent.push(figures[1].1 / figures[0].1);
        rate.push(f64::from(rows) / figures[1].0);
    }
    println!(
        "{name}: wall ratio {:.3}, CPU ratio {:.3}, {:.0} transactions/s (medians of {pairs})",
        median(wall),
        median(spent),
        median(rate)
    );
}

fn inserts(_: &mut Criterion) {
    register().unwrap();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let on = SessionOptions::new(folder.path());
    let off = SessionOptions { capture: false, ..on.clone() };
    let unreserved = SessionOptions { preallocate: Bytes(0), ..on.clone() };
    let buffered = SessionOptions { io: IoMode::Buffered, ..on.clone() };
    compare("direct, capture on / off", [&off, &on], 1000);
    let (on_b, off_b) = (buffered.clone(), SessionOptions { capture: false, ..buffered.clone() });
    compare("buffered, capture on / off", [&off_b, &on_b], 1000);
    compare("direct, space reserved / not", [&unreserved, &on], 1000);
    compare("direct / buffered", [&buffered, &on], 1000);
}

criterion_group!(benches, event, inserts);
criterion_main!(benches);
