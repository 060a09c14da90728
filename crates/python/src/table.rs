//! A table: the rows that the command prints, for the terminal and for a notebook.

use pyo3::prelude::*;

/// Rows of texts; the first has the names of the columns. Prints as the command does, and shows as
/// a table in a notebook.
#[pyclass(frozen, module = "wearmark")]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Of the rows that the command prints.
    pub fn new(rows: Vec<Vec<String>>) -> Self {
        Self { rows }
    }

    /// As HTML.
    pub fn html(&self) -> String {
        let mut text = String::from("<table>\n");
        for (index, row) in self.rows.iter().enumerate() {
            let tag = if index == 0 { "th" } else { "td" };
            text.push_str("<tr>");
            for cell in row {
                text.push_str(&format!("<{tag}>{}</{tag}>", escaped(cell)));
            }
            text.push_str("</tr>\n");
        }
        text + "</table>"
    }
}

/// A text as part of HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[pymethods]
impl Table {
    /// The rows, the first of which has the names of the columns.
    #[getter]
    fn rows(&self) -> Vec<Vec<String>> {
        self.rows.clone()
    }

    fn __len__(&self) -> usize {
        self.rows.len().saturating_sub(1)
    }

    fn __str__(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        self.rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn __repr__(&self) -> String {
        self.__str__()
    }

    fn _repr_html_(&self) -> String {
        self.html()
    }
}
