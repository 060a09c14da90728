//! The page of a capture.

use report::{Axis, BarSeries, Column, Figure, Page, Section, Table, format};

use super::Capture;
use super::text::{Piece, text};

/// The page of a capture.
pub fn page(capture: &Capture) -> Page {
    let subtitle = format!("{}, {:.1} s", capture.captured, capture.seconds);
    let mut page = Page::new("What a server asks of storage", subtitle);
    if let Some(all) = &capture.requests {
        let detail = format!("from {} sessions, {} commits", all.sessions, all.commits);
        page = page.fact("requests per second", format::count(all.per_s), detail);
    }
    for row in capture.calls.iter().filter(|row| row.op == "flush") {
        let detail = format!("p99 {}", format::duration_ns(row.service_ns[2] as f64));
        page = page.fact(format!("flushes of {}", row.class), format::count(row.per_s), detail);
    }
    page.warnings.clone_from(&capture.warnings);
    let mut section = Section::new("io", "I/O, processors and requests");
    section = section.figure(bytes(capture));
    let (mut tables, mut lines) = (Vec::new(), Vec::new());
    for piece in text(capture).into_iter().skip(1) {
        match piece {
            Piece::Table(rows) => tables.push(rows),
            Piece::Line(line) => lines.push(line),
        }
    }
    for (number, rows) in tables.into_iter().enumerate() {
        let title = rows[0][0].to_lowercase();
        let columns = rows[0].iter().map(|name| Column::text(name.to_lowercase())).collect();
        let table = Table::new(format!("table-{number}"), title, columns);
        section = section.table(rows.into_iter().skip(1).fold(table, Table::row));
    }
    for line in lines {
        section = section.paragraph(line);
    }
    page.section(section).provenance("wearmark", env!("CARGO_PKG_VERSION"))
}

fn bytes(capture: &Capture) -> Figure {
    let moved = |rows: &[capture::server::Row]| {
        let mut found = Vec::new();
        for row in rows.iter().filter(|row| row.bytes > 0) {
            found.push((format!("{} {}", row.class, row.op), row.bytes_per_s));
        }
        found
    };
    let mut bars = moved(&capture.calls);
    for (disk, rows) in &capture.disks {
        bars.extend(moved(rows).into_iter().map(|(name, rate)| (format!("{disk}: {name}"), rate)));
    }
    let (names, values) = bars.into_iter().unzip();
    let series = vec![BarSeries::new("bytes per second", values)];
    let y = Axis::linear("Bytes per second", "B/s");
    Figure::bars("bytes", "Bytes by layer and file class", names, y, series)
}
