//! A proof as a page.

use report::{Column, Page, Section, Table};

use super::text::{number, remarks, share};
use super::{HERE, Proof};

/// The page.
pub fn page(proof: &Proof) -> Page {
    let subtitle = format!("wearmark oltp run {}", proof.load.join(" "));
    let mut page = Page::new("The same load, measured and predicted", subtitle);
    for warning in proof.places.iter().flat_map(|place| &place.runs).flat_map(|run| &run.warnings) {
        page = page.warning(warning.clone());
    }
    for place in &proof.places {
        let columns = vec![
            Column::text("figure"),
            Column::number("measured", ""),
            Column::number("predicted", ""),
            Column::number("error", ""),
            Column::number("A/A", ""),
        ];
        let id = place.name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let title = if place.name == HERE { "On this disk" } else { &place.name };
        let mut table = Table::new(format!("{id}-figures"), title, columns);
        let dash = || "-".to_owned();
        for figure in place.compared() {
            table = table.row([
                figure.name.clone(),
                number(figure.measured),
                figure.predicted.map_or_else(dash, number),
                figure.error().map_or_else(dash, share),
                figure.spread.map_or_else(dash, |spread| format!("{:.0} %", spread * 100.0)),
            ]);
        }
        page = page.section(Section::new(id, title).table(table));
    }
    let mut section = Section::new("how", "How it was done");
    section = section.paragraph(
        "Every run started from the same copy of the database. Rounds went through the places \
         forwards and backwards in turns. A/A is the spread of the runs at one place over their \
         median: no error below it means anything.",
    );
    for remark in remarks(proof) {
        section = section.paragraph(remark);
    }
    page.section(section)
}
