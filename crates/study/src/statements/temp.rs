//! A sweep of memory sizes on a DBMS.

use oltp::temp::{TempResult, TempRow};
use report::{Axis, Figure, Page, Section, Series, Style, format};

use super::{as_table, or_nothing};

/// Heading and one row per memory size.
pub fn text(result: &TempResult) -> Vec<Vec<String>> {
    let header = [
        "MEMORY",
        "ELAPSED",
        "TEMP READ",
        "TEMP WRITTEN",
        "PREDICTED",
        "OFF BY",
        "PASSES",
        "MERGES",
        "BATCHES",
        "WRITTEN BY CALLS",
        "METHOD",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(result.rows.iter().map(row));
    rows
}

fn row(row: &TempRow) -> Vec<String> {
    let predicted = row.predicted.map(|predicted| predicted.written_blocks);
    let off = row.temp_written_blocks.zip(predicted).map(|(found, said)| match (found, said) {
        (0, 0) => format::percent(0.0),
        _ => format::percent(said as f64 / found as f64 - 1.0),
    });
    let passes = row.passes.map_or(format::NOTHING.to_owned(), |passes| format!("{passes:.2}"));
    let bytes = |bytes: Option<u64>| {
        bytes.map_or(format::NOTHING.to_owned(), |bytes| format::bytes(bytes as f64))
    };
    vec![
        row.memory.to_string(),
        format::duration_ns(row.elapsed_ms * 1e6),
        or_nothing(row.temp_read_blocks),
        or_nothing(row.temp_written_blocks),
        or_nothing(predicted),
        off.unwrap_or_else(|| format::NOTHING.to_owned()),
        passes,
        or_nothing(row.merges),
        or_nothing(row.batches),
        bytes(row.call_written_bytes),
        row.method.clone(),
    ]
}

/// The page of a sweep.
pub fn page(result: &TempResult) -> Page {
    let options = &result.options;
    let subtitle =
        format!("{}; {} rows of {} bytes of columns", result.version, options.rows, options.width);
    let points = |value: &dyn Fn(&TempRow) -> Option<f64>| -> Vec<(f64, f64)> {
        let point = |row: &TempRow| Some((row.memory.0 as f64, value(row)?));
        result.rows.iter().filter_map(point).collect()
    };
    let memory = || Axis::log2("Memory", "bytes");
    let elapsed = points(&|row| Some(row.elapsed_ms));
    let elapsed = vec![Series::new("elapsed", Style::LinePoints, elapsed)];
    let mut section =
        Section::new("temp", "Elapsed time and temporary files").figure(Figure::lines(
            "elapsed",
            "Elapsed time against memory",
            memory(),
            Axis::linear("Elapsed", "ms"),
            elapsed,
        ));
    let block = |blocks: u64| blocks as f64 * 8192.0;
    let written = points(&|row| row.temp_written_blocks.map(block));
    if !written.is_empty() {
        let predicted = points(&|row| row.predicted.map(|said| block(said.written_blocks)));
        let series = vec![
            Series::new("written", Style::LinePoints, written),
            Series::new("written, predicted", Style::Dashed, predicted),
        ];
        let (title, axis) = ("Temporary files against memory", Axis::linear("Written", "bytes"));
        section = section.figure(Figure::lines("written", title, memory(), axis, series));
    }
    for note in &result.notes {
        section = section.paragraph(note.clone());
    }
    let section = section.table(as_table("memories", "All of it", text(result)));
    Page::new("Sorts and joins by memory", subtitle).section(section)
}
