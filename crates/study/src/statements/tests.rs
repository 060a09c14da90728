//! Tables and pages from made-up results.

use std::path::PathBuf;

use oltp::statements::Target;
use oltp::temp::predict::Prediction;
use oltp::temp::{Operation, TempOptions, TempResult, TempRow};
use oltp::versions::{Kept, Order, Scan, Step, VersionsOptions, VersionsResult};
use units::Bytes;

use super::*;

fn target() -> Target {
    Target::Sqlite { directory: PathBuf::from("."), cache: Bytes(1 << 20), page: Bytes(4096) }
}

#[test]
fn a_sweep_is_shown_beside_its_prediction() {
    let row = |memory: u64, blocks: u64, predicted: u64| TempRow {
        memory: Bytes(memory),
        elapsed_ms: 12.5,
        temp_written_blocks: Some(blocks),
        predicted: Some(Prediction { written_blocks: predicted, passes: 1, pieces: 2 }),
        ..TempRow::default()
    };
    let operation = Operation::Sort;
    let (memories, repeats) = (Vec::new(), 1);
    let target = target();
    let result = TempResult {
        options: TempOptions { target, operation, rows: 7, width: 93, memories, repeats, seed: 1 },
        version: "PostgreSQL 15.18".to_owned(),
        rows: vec![row(1 << 20, 1000, 1020), row(1 << 30, 0, 0)],
        interrupted: false,
        notes: vec!["a note".to_owned()],
    };
    let rows = temp_text(&result);
    assert_eq!(rows[1][5], report::format::percent(0.02));
    assert_eq!(rows[2][5], report::format::percent(0.0));
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    let html = report::html(&temp_page(&result));
    assert!(html.contains("written, predicted") && html.contains("a note"));
}

#[test]
fn the_slowest_old_reader_is_shown() {
    let scan = |elapsed_ms| Scan { elapsed_ms, logical_reads: Some(50), ..Scan::default() };
    let step = Step {
        round: 1,
        fresh: scan(2.0),
        old: vec![scan(3.0), scan(9.0), scan(4.0)],
        kept: Kept { wal_bytes: Some(4096), wal_page_share: Some(0.5), ..Kept::default() },
        ..Step::default()
    };
    let (rows, width, wide, rounds) = (10, 10, true, 1);
    let (updaters, readers, order, seed) = (1, 3, Order::Table, 1);
    let journal = oltp::JournalMode::Wal;
    let target = target();
    let result = VersionsResult {
        options: VersionsOptions {
            target,
            rows,
            width,
            wide,
            rounds,
            updaters,
            readers,
            order,
            seed,
            journal,
        },
        version: "SQLite".to_owned(),
        steps: vec![step],
        cleanup: None,
        violations: Vec::new(),
        blocked: None,
        interrupted: false,
    };
    let rows = versions_text(&result);
    assert_eq!(rows[1][4], "4.5");
    assert!(rows[1][10].contains("of WAL"), "{rows:?}");
    assert!(report::html(&versions_page(&result)).contains("old snapshot"));
}
