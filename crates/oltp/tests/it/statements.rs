//! The workloads of few statements on every DBMS that is installed: `temp` and `versions`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use dbms::{Durability, Places, Programs, Settings, System};
use events::Quiet;
use oltp::statements::Target;
use oltp::temp::{Operation, TempOptions, TempResult};
use oltp::versions::{Order, VersionsOptions, VersionsResult};
use oltp::{temp, versions};
use tempfile::TempDir;
use units::Bytes;

/// A directory on disk that every user can enter.
fn place() -> TempDir {
    let mut builder = tempfile::Builder::new();
    builder.permissions(std::fs::Permissions::from_mode(0o755)).prefix("statements-");
    builder.tempdir_in(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap()
}

/// A small private server; `None` with the reason printed where it is not installed.
fn server(system: System, place: &TempDir, buffer_mib: u64) -> Option<Target> {
    if let Err(error) = Programs::find(system) {
        println!("skipped: {error}");
        return None;
    }
    let settings = Settings {
        buffer: Bytes(buffer_mib << 20),
        log_size: Bytes(64 << 20),
        connections: 10,
        durability: Durability::Off,
        ..Settings::default()
    };
    let temp = Some(place.path().join("temp"));
    let places = Places { temp, ..Places::at(place.path().join("data")) };
    Some(Target::Server { system, places, settings: Box::new(settings) })
}

fn sqlite(place: &TempDir, cache_kib: u64) -> Target {
    let directory = place.path().to_owned();
    Target::Sqlite { directory, cache: Bytes(cache_kib << 10), page: Bytes(4096) }
}

fn temp_options(target: Target, operation: Operation, memories_kib: &[u64]) -> TempOptions {
    let memories = memories_kib.iter().map(|kib| Bytes(kib << 10)).collect();
    TempOptions { target, operation, rows: 60_000, width: 93, memories, repeats: 1, seed: 7 }
}

fn sweep(options: &TempOptions) -> TempResult {
    let result = temp::run(options, &Quiet).unwrap();
    assert_eq!(result.rows.len(), options.memories.len());
    assert!(result.rows.iter().all(|row| row.rows == options.rows), "{:?}", result.rows);
    result
}

#[test]
fn postgresql_writes_what_was_predicted() {
    let place = place();
    // 60,000 rows are 6.2 MB: three passes, two, one, and none.
    for (operation, memories) in [
        (Operation::Sort, &[64u64, 256, 1024, 4096, 32768][..]),
        (Operation::HashJoin, &[128, 1024, 4096, 32768]),
    ] {
        let Some(target) = server(System::Postgresql, &place, 16) else { return };
        let result = sweep(&temp_options(target, operation, memories));
        for row in &result.rows {
            let predicted = row.predicted.unwrap().written_blocks as f64;
            let written = row.temp_written_blocks.unwrap() as f64;
            println!("{operation:?} {} {written} {:?}", row.memory, row.predicted);
            assert!((written - predicted).abs() <= 0.05 * predicted, "{row:?}");
        }
        let last = result.rows.last().unwrap();
        assert_eq!(last.temp_written_blocks, Some(0), "it fits: {last:?}");
        assert!(result.rows[0].temp_written_blocks > Some(700));
    }
    let left = std::fs::read_dir(place.path()).unwrap().count();
    assert_eq!(left, 0, "the private server left something");
}

#[test]
fn a_merge_join_sorts_both_sides() {
    let place = place();
    let Some(target) = server(System::Postgresql, &place, 16) else { return };
    let result = sweep(&temp_options(target, Operation::MergeJoin, &[1024]));
    let written = result.rows[0].temp_written_blocks.unwrap() as f64;
    let predicted = result.rows[0].predicted.unwrap().written_blocks as f64;
    assert!((written / predicted - 1.0).abs() < 0.05, "{:?}", result.rows[0]);
}

#[test]
fn mariadb_merges_less_with_more_memory() {
    let place = place();
    let Some(target) = server(System::Mariadb, &place, 32) else { return };
    let result = sweep(&temp_options(target.clone(), Operation::Sort, &[64, 1024, 32768]));
    let merges: Vec<u64> = result.rows.iter().map(|row| row.merges.unwrap()).collect();
    assert!(merges[0] > merges[1] && merges[2] == 0, "{merges:?}");
    let bytes: Vec<_> = result.rows.iter().map(|row| row.call_written_bytes.unwrap()).collect();
    assert!(bytes[0] >= bytes[1] && bytes[1] > 5_000_000 && bytes[2] < 2_000_000, "{bytes:?}");
    let error = temp::run(&temp_options(target, Operation::HashJoin, &[1024]), &Quiet).unwrap_err();
    assert!(error.to_string().contains("never spills"), "{error}");
}

#[test]
fn sqlite_sorts_in_files_where_the_cache_is_small() {
    let place = place();
    for operation in [Operation::Sort, Operation::MergeJoin] {
        sweep(&temp_options(sqlite(&place, 1024), operation, &[256, 65536]));
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

fn versions_options(target: Target, rows: u64, rounds: u32, wide: bool) -> VersionsOptions {
    let (updaters, readers, order) = (2, 1, Order::Table);
    let journal = oltp::JournalMode::Wal;
    let (width, seed) = (200, 1);
    VersionsOptions { target, rows, width, wide, rounds, updaters, readers, order, seed, journal }
}

fn versions_of(options: &VersionsOptions) -> VersionsResult {
    let result = versions::run(options, &Quiet).unwrap();
    assert_eq!(result.violations, [""; 0], "snapshots do not hold");
    assert_eq!(result.steps.len() as u32, options.rounds + 1);
    for step in &result.steps {
        println!("{} {:?} {:?} {:?}", step.round, step.fresh, step.old[0], step.kept);
    }
    println!("{:?}", result.cleanup);
    result
}

#[test]
fn innodb_rebuilds_old_rows_from_undo() {
    let place = place();
    let Some(target) = server(System::Mariadb, &place, 16) else { return };
    let result = versions_of(&versions_options(target, 20_000, 3, true));
    let logical = |index: usize| {
        let step = &result.steps[index];
        (step.fresh.logical_reads.unwrap(), step.old[0].logical_reads.unwrap())
    };
    // A record of undo per row and round, each a page asked for.
    let (fresh, old) = logical(3);
    assert!(old > 3 * 20_000 && old > 5 * fresh, "{old} pages against {fresh}");
    assert!(logical(0).1 < 20_000, "before any update both read the table");
    let history: Vec<_> = result.steps.iter().map(|s| s.kept.history_length.unwrap()).collect();
    assert!(history[3] > history[1] && history[1] > history[0], "{history:?}");
    assert!(result.cleanup.unwrap().complete);
}

#[test]
fn postgresql_keeps_old_rows_in_the_heap() {
    let place = place();
    let Some(target) = server(System::Postgresql, &place, 16) else { return };
    let result = versions_of(&versions_options(target, 20_000, 3, true));
    let bytes: Vec<_> = result.steps.iter().map(|step| step.kept.table_bytes).collect();
    assert!(bytes[3] > 3 * bytes[0], "{bytes:?}");
    let last = result.steps.last().unwrap();
    assert_eq!(last.kept.dead_rows, Some(60_000));
    // All readers walk the same heap.
    let (fresh, old) = (last.fresh.logical_reads.unwrap(), last.old[0].logical_reads.unwrap());
    assert!(old.abs_diff(fresh) <= fresh / 10, "{old} pages against {fresh}");
    let cleanup = result.cleanup.unwrap();
    assert_eq!((cleanup.by.as_str(), cleanup.kept.dead_rows), ("vacuum", Some(0)));
}

#[test]
fn sqlite_keeps_new_pages_in_the_wal() {
    let place = place();
    let options = versions_options(sqlite(&place, 1024), 5_000, 2, true);
    let result = versions_of(&VersionsOptions { readers: 2, order: Order::Index, ..options });
    let wal: Vec<_> = result.steps.iter().map(|step| step.kept.wal_bytes.unwrap()).collect();
    assert!(wal[0] == 0 && wal[1] > 1_000_000 && wal[2] > wal[1] * 3 / 2, "{wal:?}");
    assert!(result.steps[2].kept.wal_page_share.unwrap() > 0.5);
    assert_eq!(result.steps[2].old.len(), 2);
    let cleanup = result.cleanup.unwrap();
    assert!(cleanup.complete && cleanup.kept.wal_bytes == Some(0), "{cleanup:?}");
}

#[test]
fn a_rollback_journal_has_no_old_versions() {
    let place = place();
    for journal in [oltp::JournalMode::Delete, oltp::JournalMode::Persist] {
        let options = versions_options(sqlite(&place, 1024), 2_000, 2, true);
        let result = versions::run(&VersionsOptions { journal, ..options }, &Quiet).unwrap();
        assert_eq!((result.steps.len(), result.violations.len()), (1, 0));
        assert!(result.blocked.unwrap().contains(journal.pragma()));
    }
}

#[test]
fn options_without_a_meaning_are_refused() {
    let place = place();
    let options = temp_options(sqlite(&place, 64), Operation::Sort, &[64]);
    let check = |options: TempOptions, expected: &str| {
        let error = temp::run(&options, &Quiet).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(TempOptions { width: 5, ..options.clone() }, "20 to 139");
    check(TempOptions { memories: vec![], ..options.clone() }, "64 KiB at least");
    check(TempOptions { operation: Operation::HashJoin, ..options }, "SQLite has none");
    let options = versions_options(sqlite(&place, 64), 0, 1, true);
    assert!(versions::run(&options, &Quiet).is_err());
}
