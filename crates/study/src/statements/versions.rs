//! Old snapshots against fresh ones.

use oltp::versions::{Kept, Scan, Step, VersionsResult};
use report::{Axis, Figure, Page, Section, Series, Style, format};

use super::{as_table, or_nothing};

/// The slowest old scan of a step.
fn slowest(step: &Step) -> Scan {
    let slower = |a: Scan, b: &Scan| if b.elapsed_ms > a.elapsed_ms { *b } else { a };
    step.old.iter().fold(Scan::default(), slower)
}

/// Heading and one row per round.
pub fn text(result: &VersionsResult) -> Vec<Vec<String>> {
    let header = [
        "ROUND",
        "UPDATE",
        "FRESH SCAN",
        "OLD SCAN",
        "RATIO",
        "FRESH PAGES",
        "OLD PAGES",
        "FRESH READ",
        "OLD READ",
        "TABLE",
        "KEPT",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for step in &result.steps {
        let old = slowest(step);
        rows.push(vec![
            step.round.to_string(),
            format::duration_ns(step.update_ms * 1e6),
            format::duration_ns(step.fresh.elapsed_ms * 1e6),
            format::duration_ns(old.elapsed_ms * 1e6),
            format!("{:.1}", old.elapsed_ms / step.fresh.elapsed_ms.max(1e-6)),
            or_nothing(step.fresh.logical_reads),
            or_nothing(old.logical_reads),
            or_nothing(step.fresh.physical_reads),
            or_nothing(old.physical_reads),
            format::bytes(step.kept.table_bytes as f64),
            kept(&step.kept),
        ]);
    }
    rows
}

/// What is kept, in the terms of its DBMS.
fn kept(kept: &Kept) -> String {
    let bytes = |bytes: u64| format::bytes(bytes as f64);
    if let Some(dead) = kept.dead_rows {
        return format!("{} dead rows", format::count(dead as f64));
    }
    if let (Some(undo), Some(history)) = (kept.undo_bytes, kept.history_length) {
        return format!("{} of undo, {history} transactions", bytes(undo));
    }
    if let (Some(wal), Some(share)) = (kept.wal_bytes, kept.wal_page_share) {
        return format!("{} of WAL, {} of pages", bytes(wal), format::percent(share));
    }
    String::new()
}

/// The page of a run.
pub fn page(result: &VersionsResult) -> Page {
    let options = &result.options;
    let subtitle = format!(
        "{}; {} rows of {} bytes, {} updaters, {} old readers",
        result.version, options.rows, options.width, options.updaters, options.readers
    );
    let points = |value: &dyn Fn(&Step) -> Option<f64>| -> Vec<(f64, f64)> {
        let point = |step: &Step| Some((f64::from(step.round), value(step)?));
        result.steps.iter().filter_map(point).collect()
    };
    let pair = |fresh: Vec<(f64, f64)>, old: Vec<(f64, f64)>| {
        vec![
            Series::new("fresh snapshot", Style::LinePoints, fresh),
            Series::new("old snapshot", Style::LinePoints, old),
        ]
    };
    let rounds = || Axis::linear("Updates of every row", "");
    let times = pair(
        points(&|step| Some(step.fresh.elapsed_ms)),
        points(&|step| Some(slowest(step).elapsed_ms)),
    );
    let pages = pair(
        points(&|step| step.fresh.logical_reads.map(|pages| pages as f64)),
        points(&|step| slowest(step).logical_reads.map(|pages| pages as f64)),
    );
    let mut section = Section::new("versions", "The same scan at the same moment")
        .figure(Figure::lines(
            "elapsed",
            "Elapsed time of a scan",
            rounds(),
            Axis::linear("Elapsed", "ms"),
            times,
        ))
        .figure(Figure::lines(
            "pages",
            "Pages that a scan asks for",
            rounds(),
            Axis::linear("Pages", ""),
            pages,
        ));
    if let Some(cleanup) = &result.cleanup {
        section = section.paragraph(format!(
            "When the readers had ended, {} took {}{}.",
            cleanup.by,
            format::duration_ns(cleanup.elapsed_ms * 1e6),
            if cleanup.complete { "" } else { " and was not done then" },
        ));
    }
    let section = section.table(as_table("rounds", "All of it", text(result)));
    Page::new("Readers of old versions", subtitle).section(section)
}
