//! A sweep as a table.

use report::format;

use super::file::{Figure, SweepFile};
use super::{Cell, Expected, SweepResult};

/// All cells, a row each: settings, then figures.
pub fn table(file: &SweepFile, result: &SweepResult) -> Vec<Vec<String>> {
    let settings = file.axis.iter().map(|axis| axis.title().to_uppercase());
    let figures = file.figure.iter().map(|figure| figure.name.to_uppercase());
    let mut rows = vec![settings.chain(figures).collect::<Vec<_>>()];
    rows.extend(result.cells.iter().map(|cell| row(file, cell)));
    rows
}

/// What was expected, a row each; empty where nothing was.
pub fn expectations(result: &SweepResult) -> Vec<Vec<String>> {
    if result.expected.is_empty() {
        return Vec::new();
    }
    let head = ["EXPECTED", "RATIO", "BOUND", ""].map(str::to_owned).to_vec();
    let rows = result.expected.iter().map(|one| {
        let [ratio, bounds, verdict] = expectation(one);
        vec![one.what.clone(), ratio, bounds, verdict]
    });
    std::iter::once(head).chain(rows).collect()
}

/// The cells of a row.
pub(super) fn row(file: &SweepFile, cell: &Cell) -> Vec<String> {
    let settings = file.axis.iter().map(|axis| cell.settings[&axis.name].clone());
    settings.chain(file.figure.iter().map(|figure| shown(figure, cell))).collect()
}

fn shown(figure: &Figure, cell: &Cell) -> String {
    cell.figures.get(&figure.name).map_or_else(String::new, |it| format::value(*it, &figure.unit))
}

/// An expectation in a line.
pub(super) fn expectation(of: &Expected) -> [String; 3] {
    let ratio = match of.ratio {
        Some((least, most)) if (most / least - 1.0).abs() < 0.005 => format!("{least:.2}"),
        Some((least, most)) => format!("{least:.2} to {most:.2}"),
        None => "not a number".to_owned(),
    };
    let bounds = match (of.at_least, of.at_most) {
        (Some(low), Some(high)) => format!("{low} to {high}"),
        (Some(low), None) => format!("at least {low}"),
        (None, Some(high)) => format!("at most {high}"),
        (None, None) => String::new(),
    };
    [ratio, bounds, if of.holds { "holds" } else { "does not hold" }.to_owned()]
}
