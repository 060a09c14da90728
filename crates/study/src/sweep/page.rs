//! The page of a sweep: the question, the picture, what one learns, and all figures.

use std::collections::BTreeSet;

use report::{Axis, BarSeries, Column, Page, Scale, Section, Table};

use super::file::{Figure, SweepFile};
use super::text::{expectation, row};
use super::{Settings, SweepResult};

/// The page of a sweep.
pub fn page(file: &SweepFile, result: &SweepResult) -> Page {
    let mut answer =
        Section::new("answer", "The answer").paragraph(file.sweep.question.trim().to_owned());
    for picture in pictures(file, result) {
        answer = answer.figure(picture);
    }
    answer = answer.paragraph(file.sweep.learned.trim().to_owned());
    if !result.expected.is_empty() {
        answer = answer.table(expected(result));
    }
    let command = format!("wearmark {}", file.sweep.run);
    let steps = file.sweep.once.iter().chain(&file.sweep.before);
    let steps: Vec<String> = steps.map(|step| format!("wearmark {step}")).collect();
    let all = Section::new("figures", "All figures").table(figures(file, result));
    let mut page = Page::new(file.study.title.clone(), file.study.name.clone())
        .section(answer)
        .section(all)
        .provenance("Each cell", command)
        .provenance("wearmark", result.wearmark.clone());
    if !steps.is_empty() {
        page = page.provenance("Before it", steps.join("; "));
    }
    page
}

/// A picture for each combination of the settings that a picture does not show.
fn pictures(file: &SweepFile, result: &SweepResult) -> Vec<report::Figure> {
    let picture = &file.picture;
    let drawn = |name: &String| *name == picture.over || Some(name) == picture.by.as_ref();
    let rest = |settings: &Settings| -> Settings {
        let others = settings.iter().filter(|(name, _)| !drawn(name));
        others.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let mut seen = BTreeSet::new();
    let panels = result.cells.iter().map(|cell| rest(&cell.settings));
    let panels: Vec<Settings> = panels.filter(|panel| seen.insert(panel.clone())).collect();
    let (Ok(over), Ok(figure)) = (file.axis(&picture.over), file.figure(&picture.figure)) else {
        return Vec::new();
    };
    let by = picture.by.as_deref().and_then(|name| file.axis(name).ok());
    let names = by.map_or_else(|| vec![figure.name.clone()], |by| by.values.clone());
    let make = |(index, panel): (usize, &Settings)| {
        let value = |series: &str, category: &String| {
            let mut wanted = panel.clone();
            wanted.insert(over.name.clone(), category.clone());
            if let Some(by) = by {
                wanted.insert(by.name.clone(), series.to_owned());
            }
            let cell = result.cells.iter().find(|cell| cell.settings == wanted);
            cell.and_then(|cell| cell.figures.get(&figure.name).copied()).unwrap_or(f64::NAN)
        };
        let series = names.iter().map(|name| {
            let values = over.values.iter().map(|category| value(name, category));
            BarSeries::new(name.clone(), values.collect())
        });
        let shown: Vec<&str> = panel.values().map(String::as_str).collect();
        let mut title = format!("{} by {}", figure.name, over.title());
        if !shown.is_empty() {
            title += &format!(": {}", shown.join(", "));
        }
        let (id, values) = (format!("picture-{index}"), over.values.clone());
        let mut made = report::Figure::bars(
            id,
            title,
            values,
            axis(figure, picture.logarithmic),
            series.collect(),
        );
        made.x = Axis::linear(over.title(), "");
        made
    };
    panels.iter().enumerate().map(make).collect()
}

fn axis(figure: &Figure, logarithmic: bool) -> Axis {
    let scale = if logarithmic { Scale::Log10 } else { Scale::Linear };
    Axis { scale, ..Axis::linear(figure.name.clone(), figure.unit.clone()) }
}

fn figures(file: &SweepFile, result: &SweepResult) -> Table {
    let settings = file.axis.iter().map(|axis| Column::text(axis.title()));
    let figures = file.figure.iter().map(|figure| Column::number(figure.name.clone(), ""));
    let table = Table::new("cells", "Every combination", settings.chain(figures).collect());
    result.cells.iter().fold(table, |table, cell| table.row(row(file, cell)))
}

fn expected(result: &SweepResult) -> Table {
    let columns = vec![
        Column::text("Expected"),
        Column::number("Ratio", ""),
        Column::number("Bound", ""),
        Column::text(""),
    ];
    let table = Table::new("expected", "What was expected of it", columns)
        .caption("The least and the largest ratio of cells that differ in nothing else.");
    result.expected.iter().fold(table, |table, one| {
        let [ratio, bounds, verdict] = expectation(one);
        table.row([one.what.clone(), ratio, bounds, verdict])
    })
}
