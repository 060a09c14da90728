//! The I/O of a real PostgreSQL, compared with what it counts itself.

use std::path::PathBuf;

use capture::server::{
    Class, Logical, Observer, Options, PhysicalClass, Server, ServerCapture, Span, System,
    attribute,
};
use trace::Op;

use crate::postgresql::{OwnDisk, Postgresql};

pub fn home() -> PathBuf {
    let program = std::env::current_exe().expect("a test has a program");
    program.parent().expect("in a folder").to_owned()
}

fn server(postgresql: &Postgresql) -> Server {
    let (system, data) = (System::Postgresql, postgresql.data());
    Server::new(system, postgresql.pid(), data)
}

/// Requests and bytes of one kind.
pub fn sum(logical: &Logical, class: Class, op: Op) -> (u64, u64) {
    let mine = |request: &trace::Request| request.stream == class as u16 && request.op == op;
    let found = logical.trace.requests().filter(mine);
    found.fold((0, 0), |(count, bytes), one| (count + 1, bytes + u64::from(one.len)))
}

/// The first column of the first row as a number.
fn number(postgresql: &Postgresql, sql: &str) -> i64 {
    postgresql.query(sql).expect("a query").trim().parse().expect("a number")
}

/// Blocks that were not found in the server's buffers, tables and indices of the load alone: the
/// sessions that ask read catalogues too, at moments of their own. PostgreSQL counts a block that
/// is added to a table as one that was read, hence the sizes.
const BLOCKS: &str = "SELECT (sum(heap_blks_read) + sum(idx_blks_read) - (SELECT sum(\
                      pg_relation_size(oid)) / 8192 FROM pg_class WHERE relname LIKE \
                      'pgbench%'))::bigint FROM pg_statio_user_tables";
/// The files of those tables and indices.
const PATHS: &str = "SELECT pg_relation_filepath(oid) FROM pg_class WHERE relname LIKE 'pgbench%'";

/// Bytes read of files whose relative path is on the list, all forks.
fn read_bytes_of(logical: &Logical, paths: &str) -> u64 {
    let listed =
        |file: &&capture::server::ServerFile| paths.lines().any(|path| file.path.ends_with(path));
    let ranges: Vec<_> = logical.files.iter().filter(listed).collect();
    let reads = logical.trace.requests().filter(|request| request.op == Op::Read);
    let mine = reads.filter(|request| {
        let inside = |file: &&capture::server::ServerFile| {
            let start = file.base_offset.0;
            (start..start + file.size.0).contains(&request.offset.0)
        };
        ranges.iter().any(inside)
    });
    mine.map(|request| u64::from(request.len)).sum()
}

#[test]
fn what_postgresql_counts_is_what_was_captured() {
    let postgresql = match Postgresql::start(&home(), 4) {
        Ok(postgresql) => postgresql,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let server = server(&postgresql);
    let blocks = || number(&postgresql, BLOCKS);
    let paths = postgresql.query(PATHS).unwrap();
    let wal = |column| number(&postgresql, &format!("SELECT {column} FROM pg_stat_wal"));
    let (blocks_before, writes_before, syncs_before) =
        (blocks(), wal("wal_write"), wal("wal_sync"));
    let capture =
        match ServerCapture::start(&server, Options { client_turns: true, ..Options::default() }) {
            Ok(capture) => capture,
            Err(unavailable) => return println!("skipped: {unavailable}"),
        };
    // No checkpoint: one that is asked for opens a table, writes it and closes it within one poll
    // on a fast machine, and its pages would count as those of a file that could not be found out.
    postgresql.bench(&["-c", "4", "-t", "2500", "-M", "prepared"]);
    // Backends hand their counts over within a second.
    std::thread::sleep(std::time::Duration::from_millis(1200));
    let (blocks, writes, syncs) = (blocks(), wal("wal_write"), wal("wal_sync"));
    let logical = capture.finish();
    logical.trace.validate().unwrap();
    assert_eq!((logical.losses, logical.hidden), (0, 0));

    let read_blocks = read_bytes_of(&logical, &paths) / 8192;
    assert!(read_blocks > 100, "16 MB of buffers do not hold 60 MB of tables: {read_blocks}");
    let close = |found: u64, counted: i64| {
        let difference = found.abs_diff(counted as u64) as f64;
        assert!(difference <= 0.02 * counted as f64 + 5.0, "{found} captured, {counted} counted");
    };
    // pgbench's first session looks at a table and is gone before its files can be found out.
    close(read_blocks, blocks - blocks_before);
    close(sum(&logical, Class::Log, Op::Write).0, writes - writes_before);
    close(sum(&logical, Class::Log, Op::Flush).0, syncs - syncs_before);
    // Files of a session that begins and ends within one poll cannot be found out any more: those
    // of the few queries above, none of the load's.
    let all: u64 = logical.trace.len.iter().map(|len| u64::from(*len)).sum();
    assert!(logical.unresolved.bytes < all / 100, "{:?} of {all}", logical.unresolved);

    let connections = logical.actors.iter().filter(|actor| actor.role == "connection");
    assert!(connections.count() >= 4, "{:?}", logical.actors);
    assert!(logical.actors.iter().any(|actor| actor.role == "walwriter"), "{:?}", logical.actors);
}

#[test]
fn a_sort_that_spills_shows_as_temporary_files() {
    let postgresql = match Postgresql::start(&home(), 2) {
        Ok(postgresql) => postgresql,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let capture = match ServerCapture::start(&server(&postgresql), Options::default()) {
        Ok(capture) => capture,
        Err(unavailable) => return println!("skipped: {unavailable}"),
    };
    let sql = "SET work_mem = '1MB'; SET max_parallel_workers_per_gather = 0; \
               EXPLAIN (ANALYZE, BUFFERS, FORMAT TEXT) \
               SELECT * FROM pgbench_accounts ORDER BY filler, abalance, aid DESC";
    let plan = postgresql.query(sql).unwrap();
    let mut logical = capture.finish();
    // "temp read=3102 written=3110" on the plan's lines; the topmost node has all of it.
    let counted = |word: &str| -> u64 {
        let found = plan.split("temp ").nth(1).and_then(|rest| rest.split(word).nth(1));
        let digits = found.unwrap_or_else(|| panic!("{plan}"));
        digits.split(|one: char| !one.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    let blocks = |op| sum(&logical, Class::Temp, op).1 / 8192;
    assert!(blocks(Op::Write) > 1000, "{plan}");
    assert_eq!((blocks(Op::Read), blocks(Op::Write)), (counted("read="), counted("written=")));

    let busiest = logical.trace.chains.as_ref().unwrap().actor[logical.trace.count() / 2];
    let task = logical.actors[usize::from(busiest)].task;
    let (start_ns, end_ns) = (logical.origin_ns, capture::clock_ns());
    let found = attribute(&mut logical, &[Span { kind: 0, task, start_ns, end_ns }]);
    assert!(u64::from(found[0].writes) >= blocks_of(&found), "one transaction did it all");
}

fn blocks_of(found: &[capture::server::TransactionIo]) -> u64 {
    found[0].written_bytes / (1 << 20)
}

/// On a disk that nobody else uses, every byte must be the server's or the file system's.
#[test]
fn every_byte_of_an_own_disk_has_an_owner() {
    let disk = match OwnDisk::make(&home(), 900) {
        Ok(disk) => disk,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let postgresql = match Postgresql::start(&disk.home(), 10) {
        Ok(postgresql) => postgresql,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let server = server(&postgresql);
    let observer = Observer::start(&server, Options::default());
    postgresql.bench(&["-c", "4", "-T", "4", "-M", "prepared"]);
    postgresql.query("CREATE TABLE more AS SELECT * FROM pgbench_accounts LIMIT 200000").unwrap();
    postgresql.query("CHECKPOINT").unwrap();
    let observed = observer.finish(1000, &[]);
    let accounts = observed.accounts;
    let (Some(logical), Some(physical)) = (observed.logical, observed.physical) else {
        return println!("skipped: {:?}", accounts.unavailable);
    };
    assert_eq!(accounts.transactions, 1000);
    let [closure] = &accounts.closures[..] else { panic!("one disk: {:?}", accounts.closures) };
    println!("{closure:?}");
    for row in &accounts.per_transaction {
        println!("{row:?}");
    }
    assert!(closure.counted_bytes > 20 << 20, "{closure:?}");
    assert!(closure.closes, "{closure:?}");
    assert!(closure.foreign_share <= 0.02, "{closure:?}");
    let (_, disk) = &physical.disks[0];
    let bytes = |stream: u16| -> u64 {
        let writes = disk.trace.requests().filter(|request| request.op == Op::Write);
        writes.filter(|request| request.stream == stream).map(|one| u64::from(one.len)).sum()
    };
    assert!(bytes(PhysicalClass::Filesystem.stream()) > 0, "the journal");
    // The log is written in whole pages and synced at once, so both layers write the same.
    let (physical_log, logical_log) =
        (bytes(Class::Log as u16) as f64, sum(&logical, Class::Log, Op::Write).1 as f64);
    assert!((physical_log / logical_log - 1.0).abs() < 0.1, "{physical_log} of {logical_log}");
    assert!(bytes(Class::Data as u16) > 10 << 20, "the table and the checkpoint");
    assert!(accounts.cpu_us_per_transaction["server user"] > 0.0);
}
