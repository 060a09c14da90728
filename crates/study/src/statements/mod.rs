//! How the workloads of few statements are shown: `temp` and `versions`, as tables and pages.

mod temp;
#[cfg(test)]
mod tests;
mod versions;

pub use temp::{page as temp_page, text as temp_text};
pub use versions::{page as versions_page, text as versions_text};

use report::{Column, Table};

/// A number that may not be known.
fn or_nothing(value: Option<u64>) -> String {
    value.map_or(report::format::NOTHING.to_owned(), |value| report::format::count(value as f64))
}

/// The rows of a table for the terminal as one for a page; the first column is text.
fn as_table(id: &str, title: &str, rows: Vec<Vec<String>>) -> Table {
    let mut rows = rows.into_iter();
    let header = rows.next().unwrap_or_default();
    let columns = header.into_iter().enumerate().map(|(index, name)| match index {
        0 => Column::text(name),
        _ => Column::number(name, ""),
    });
    rows.fold(Table::new(id, title, columns.collect()), Table::row)
}
