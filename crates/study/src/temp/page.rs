//! The page of a sweep: elapsed time against cluster size, and where the time went.

use report::{Axis, Column, Figure, Page, Section, Series, Style, Table, format};

use super::{Measured, Sweep, Task, fastest, text};

/// The page of a sweep.
pub fn page(sweep: &Sweep, all: &[Measured]) -> Page {
    let rows = match sweep.task {
        Task::Sort(rows) => {
            format!("{} rows of {} bytes, keys {}", rows.count, rows.width_bytes, rows.keys)
        }
        Task::Join(build, probe) => {
            format!("{} build rows and {} probe rows", build.count, probe.count)
        }
    };
    let what = match sweep.task {
        Task::Sort(_) => "External sort",
        Task::Join(..) => "Hash join",
    };
    let subtitle = format!("{rows}; {} of memory, {} in flight", sweep.memory, sweep.depth);
    let mut page = Page::new(format!("{what} against cluster size"), subtitle);
    for index in fastest(all) {
        let best = &all[index];
        page = page.fact(
            best.place.clone(),
            best.resources().cluster.to_string(),
            format!("fastest: {}", format::duration_ns(best.elapsed_ns() as f64)),
        );
    }
    let mut warnings = all.iter().flat_map(Measured::warnings).cloned().collect::<Vec<_>>();
    warnings.dedup();
    page.warnings = warnings;
    let section = Section::new("temp", "Elapsed time")
        .paragraph(
            "Larger clusters cost fewer requests; fewer of them fit in memory, so that fewer runs \
             are merged at once and rows may move more than once.",
        )
        .figure(figure(all))
        .table(table(all));
    page.section(section).provenance("wearmark", env!("CARGO_PKG_VERSION"))
}

fn figure(all: &[Measured]) -> Figure {
    let mut series: Vec<Series> = Vec::new();
    for measured in all {
        let point = (measured.resources().cluster.0 as f64, measured.elapsed_ns() as f64);
        match series.last_mut() {
            Some(last) if last.name == measured.place => last.points.push(point),
            _ => series.push(Series::new(measured.place.clone(), Style::LinePoints, vec![point])),
        }
    }
    let (x, y) = (Axis::log2("Cluster size", "bytes"), Axis::log10("Elapsed", "ns"));
    Figure::lines("elapsed", "Elapsed time against cluster size", x, y, series)
        .source("after Lee et al. 2008, section 5")
}

fn table(all: &[Measured]) -> Table {
    let rows = text(all);
    let columns = rows[0].iter().enumerate().map(|(index, name)| match index {
        0 => Column::text(name.clone()),
        _ => Column::number(name.clone(), ""),
    });
    let table = Table::new("clusters", "All of it", columns.collect())
        .caption("* is the fastest of its place");
    rows.into_iter().skip(1).fold(table, Table::row)
}
