//! A trend: results of one kind in their order, and where their figures changed.
//!
//! The order is that of the file names, numbers in them compared as numbers, so that a date, a
//! build number or `wearmark study run`'s own numbering tells it. A file of several runs is one
//! point, its median.

use std::cmp::Ordering;
use std::fs;
use std::path::Path;

use formats::Stop;
use report::{Axis, Column, Figure, Page, Section, Series, Style, Table, format};
use serde::Serialize;
use stats::change::{Change, change};
use stats::level::level_changes;
use stats::quantile::quantile_sorted_f64;

use super::read::one;
use crate::Error;
use crate::run_dir::CONFIG;
use crate::verdict::Figure as OneFigure;

/// Decides in which random orders changes are looked for.
const SEED: u64 = 1;

/// Results in their order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trend {
    /// What they are results of.
    pub kind: String,
    /// Their names, in order.
    pub names: Vec<String>,
    /// Every figure that two results or more have.
    pub lines: Vec<Line>,
}

/// One figure over the results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// What it is.
    pub figure: String,
    /// Its unit.
    pub unit: String,
    /// Whether more of it is better.
    pub more_is_better: bool,
    /// Index of a result and the figure's value there.
    pub points: Vec<(usize, f64)>,
    /// Between changes, in order; one where nothing changed.
    pub levels: Vec<Level>,
}

/// Results between which nothing changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Level {
    /// Index of the first of them.
    pub from: usize,
    /// Index of the last.
    pub to: usize,
    /// Median.
    pub median: f64,
    /// By which factor it differs from the level before, with its 95 % interval.
    pub change: Option<Change>,
}

impl Line {
    /// Whether the last change made it worse.
    pub fn got_worse(&self) -> bool {
        let change = self.levels.last().and_then(|level| level.change);
        change.is_some_and(|change| (change.factor < 1.0) == self.more_is_better)
    }
}

/// Reads the results in a directory: its `.json` files and run directories.
///
/// # Errors
/// A directory that cannot be read or has fewer than two results; results of different kinds.
pub fn trend(directory: &Path, stop: Stop) -> Result<Trend, Error> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .map_err(Error::io(directory, "list"))?
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let is_result =
                path.extension().is_some_and(|end| end == "json") || path.join(CONFIG).exists();
            let name = path.file_name()?.to_str()?;
            is_result.then(|| name.to_owned())
        })
        .collect();
    names.sort_by(|a, b| by_numbers(a, b));
    let mut kind: Option<String> = None;
    let mut lines: Vec<(OneFigure, Vec<(usize, f64)>)> = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let side = one(&directory.join(name), stop)?;
        let first = kind.get_or_insert_with(|| side.kind.clone());
        if *first != side.kind {
            return Err(Error::Unlike { old: first.clone(), new: side.kind });
        }
        for figure in side.figures {
            let Some(value) = median(&figure.values) else { continue };
            match lines.iter_mut().find(|(own, _)| own.name == figure.name) {
                Some((_, points)) => points.push((index, value)),
                None => lines.push((figure, vec![(index, value)])),
            }
        }
    }
    let Some(kind) = kind.filter(|_| names.len() > 1) else {
        let what = "trend";
        let cause = "it takes two results: .json files or run directories".to_owned();
        return Err(Error::Artifact { path: directory.to_owned(), what, cause });
    };
    let lines = lines.into_iter().filter(|(_, points)| points.len() > 1).map(line).collect();
    Ok(Trend { kind, names, lines })
}

fn line((figure, points): (OneFigure, Vec<(usize, f64)>)) -> Line {
    let values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
    let cuts = level_changes(&values, SEED);
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain(std::iter::once(values.len()));
    let mut before: Option<&[f64]> = None;
    let mut levels = Vec::new();
    for (start, end) in starts.zip(ends) {
        let own = &values[start..end];
        levels.push(Level {
            from: points[start].0,
            to: points[end - 1].0,
            median: median(own).expect("no level is empty"),
            change: before.and_then(|before| change(before, own)),
        });
        before = Some(own);
    }
    let OneFigure { name, unit, more_is_better, .. } = figure;
    Line { figure: name, unit, more_is_better, points, levels }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| quantile_sorted_f64(&sorted, 0.5))
}

/// The order of names, with runs of digits compared as numbers: `run-9` before `run-10`.
fn by_numbers(a: &str, b: &str) -> Ordering {
    let parts = |text: &str| {
        let mut parts: Vec<(u128, String)> = Vec::new();
        for letter in text.chars() {
            let is_digit = letter.is_ascii_digit();
            match parts.last_mut() {
                Some((_, part))
                    if part.ends_with(|last: char| last.is_ascii_digit()) == is_digit =>
                {
                    part.push(letter);
                }
                _ => parts.push((0, letter.to_string())),
            }
        }
        for (number, part) in &mut parts {
            *number = part.parse().unwrap_or(0);
        }
        parts
    };
    parts(a).cmp(&parts(b)).then_with(|| a.cmp(b))
}

impl Trend {
    /// Rows for the terminal, a change each; the first is the header.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let header = ["FIGURE", "UNIT", "FROM", "BEFORE", "SINCE", "FACTOR", ""];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for line in &self.lines {
            for pair in line.levels.windows(2) {
                let [before, since] = pair else { continue };
                rows.push(vec![
                    line.figure.clone(),
                    line.unit.clone(),
                    self.names[since.from].clone(),
                    format::count(before.median),
                    format::count(since.median),
                    since.change.map_or_else(String::new, |change| {
                        format!("{:.3} ({:.3} to {:.3})", change.factor, change.low, change.high)
                    }),
                    if (since.median > before.median) == line.more_is_better {
                        "better".to_owned()
                    } else {
                        "WORSE".to_owned()
                    },
                ]);
            }
        }
        rows
    }

    /// One sentence.
    pub fn headline(&self) -> String {
        let changed = self.lines.iter().filter(|line| line.levels.len() > 1).count();
        let worse: Vec<&str> = self
            .lines
            .iter()
            .filter(|line| line.got_worse())
            .map(|line| line.figure.as_str())
            .collect();
        let last = match worse.as_slice() {
            [] if changed == 0 => "none changed".to_owned(),
            [] => format!("{changed} changed, none for the worse at last"),
            worse => format!("{changed} changed, at last for the worse: {}", worse.join(", ")),
        };
        format!("{} results, {} figures: {last}", self.names.len(), self.lines.len())
    }

    /// The page: those that changed first, each with its levels.
    pub fn page(&self, title: &str) -> Page {
        let changed = self.lines.iter().filter(|line| line.levels.len() > 1);
        let steady = self.lines.iter().filter(|line| line.levels.len() == 1);
        let worse = self.lines.iter().filter(|line| line.got_worse()).count();
        let mut page = Page::new(title, format!("{}: {}", self.kind, self.headline()))
            .fact("Results", self.names.len().to_string(), self.kind.clone())
            .fact("Figures", self.lines.len().to_string(), "of two results or more")
            .fact("Worse at last", worse.to_string(), "by the last change of each figure")
            .caution(worse > 0);
        let mut first = Section::new("changed", "What changed");
        let mut columns: Vec<Column> = Vec::new();
        let rows = self.rows();
        for name in &rows[0] {
            columns.push(Column::text(name.to_lowercase()));
        }
        let mut table = Table::new("changes", "Changes of level", columns);
        for row in &rows[1..] {
            table = table.row(row.clone());
        }
        first = first.paragraph(self.headline() + ".").table(table);
        for (index, line) in changed.enumerate() {
            first = first.figure(self.figure(&format!("changed-{index}"), line));
        }
        let mut rest = Section::new("steady", "What did not");
        for (index, line) in steady.enumerate() {
            rest = rest.figure(self.figure(&format!("steady-{index}"), line));
        }
        let mut names =
            Table::new("results", "Results", vec![Column::number("at", ""), Column::text("name")]);
        for (index, name) in self.names.iter().enumerate() {
            names = names.row([index.to_string(), name.clone()]);
        }
        page = page.section(first).section(rest);
        page.section(Section::new("results", "Results in their order").table(names))
    }

    fn figure(&self, id: &str, line: &Line) -> Figure {
        let measured = line.points.iter().map(|(at, value)| (*at as f64, *value)).collect();
        let mut levels = Vec::new();
        for level in &line.levels {
            let ends = [level.from as f64, level.to as f64];
            levels.extend(ends.map(|at| (at, level.median)));
            levels.push((f64::NAN, f64::NAN));
        }
        let series = vec![
            Series::new("measured", Style::Points, measured),
            Series::new("measured, median of a level", Style::Dashed, levels),
        ];
        let y = Axis::linear(line.figure.clone(), line.unit.clone());
        let title = line.figure.clone();
        Figure::lines(id, title, Axis::linear("Result", ""), y, series).caption(format!(
            "{} is better. From {} to {}.",
            if line.more_is_better { "More" } else { "Less" },
            self.names[line.points[0].0],
            self.names[line.points[line.points.len() - 1].0],
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::probe;
    use super::*;

    #[test]
    fn a_step_in_a_figure_is_told_with_the_result_that_began_it() {
        let place = tempfile::tempdir().unwrap();
        for build in 1..=14 {
            let iops = if build < 8 { 1000.0 } else { 800.0 } + f64::from(build % 3);
            fs::write(place.path().join(format!("build-{build}.json")), probe(iops, 20)).unwrap();
        }
        let found = trend(place.path(), Stop::default()).unwrap();
        assert_eq!((found.names[8].as_str(), found.names.len()), ("build-9.json", 14));
        let line = found.lines.iter().find(|line| line.levels.len() > 1).expect("one changed");
        assert!(line.more_is_better && line.got_worse(), "{line:?}");
        assert_eq!(found.names[line.levels[1].from], "build-8.json");
        let change = line.levels[1].change.unwrap();
        assert!((change.factor - 0.8).abs() < 0.01 && change.high < 0.82, "{change:?}");
        assert!(found.headline().contains("for the worse"), "{}", found.headline());
        assert!(found.rows().iter().any(|row| row[2] == "build-8.json" && row[6] == "WORSE"));
        let page = report::html(&found.page("Probes"));
        assert!(page.contains("build-8.json"));
    }

    #[test]
    fn one_result_is_no_trend() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("a.json"), probe(1000.0, 20)).unwrap();
        let error = trend(place.path(), Stop::default()).unwrap_err().to_string();
        assert!(error.contains("it takes two results"), "{error}");
    }

    #[test]
    fn numbers_in_names_are_compared_as_numbers() {
        let mut names = ["r-10", "r-9", "2026-11-02", "2026-9-30", "r-9b", "a"];
        names.sort_by(|a, b| by_numbers(a, b));
        assert_eq!(names, ["a", "r-9", "r-9b", "r-10", "2026-9-30", "2026-11-02"]);
    }
}
