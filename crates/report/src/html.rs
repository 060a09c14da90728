//! The page as one HTML file: markup, style, script and data together, nothing fetched.
//!
//! The file carries a content security policy of `default-src 'none'`, so even a flaw here cannot
//! send anything anywhere; a page with a simulator allows WebAssembly and a worker besides. Texts
//! pass through the template's HTML escaping; data go into a JSON block in which `<`, `>` and `&`
//! are written as escapes. Charts are drawn by `assets/chart.js`
//! (docs/journal/2026-11-21-charts.md says why it is our own); every figure's data stand in the
//! markup too, so the page is useful without script.
//!
//! Tested in a real browser by `tests/it`, and with hostile texts below.

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use events::Warning;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use crate::figure_data::{self, DataTable, Drawn};
use crate::page::{Figure, FigureKind, Item, Page, Section, Simulator, Table};

const TEMPLATE: &str = include_str!("../assets/page.html");
const STYLE: &str = include_str!("../assets/page.css");
const SCRIPTS: [&str; 4] = [
    include_str!("../assets/scale.js"),
    include_str!("../assets/chart.js"),
    include_str!("../assets/page.js"),
    include_str!("../assets/what_if.js"),
];
/// Rows of one table that are printed; a longer one belongs into a data file.
const TABLE_ROWS: usize = 1_000;

/// Draws a page as one self-contained HTML file that works offline and without script.
///
/// Long curves are thinned and long tables cut, which the page says, so that it stays well below
/// 1.5 MB for any result that is worth reading, its simulator apart.
pub fn html(page: &Page) -> String {
    let series_count = page.figures().map(series_count).sum();
    let mut ids = Ids::default();
    let mut figures = Vec::new();
    let points_max = figure_data::points_per_series(series_count);
    let sections: Vec<_> = page
        .sections
        .iter()
        .map(|section| section_view(section, page, points_max, &mut ids, &mut figures))
        .collect();
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_template("page.html", TEMPLATE).expect("the template parses");
    let view = PageView {
        page,
        sections,
        style: STYLE,
        script: SCRIPTS.join("\n"),
        data: script_safe_json(&figures),
        simulator: page.simulator.as_ref().map(simulator_view),
    };
    let template = environment.get_template("page.html").expect("the template was just added");
    template.render(Serde(view)).expect("the template asks only for what it is given")
}

/// The page as the template sees it.
#[derive(Serialize)]
struct PageView<'a> {
    page: &'a Page,
    sections: Vec<SectionView<'a>>,
    style: &'a str,
    script: String,
    data: String,
    simulator: Option<SimulatorView<'a>>,
}

/// The simulator as the template sees it.
#[derive(Serialize)]
struct SimulatorView<'a> {
    about: &'a str,
    module: String,
    load: String,
    /// What the script needs to know besides.
    given: String,
}

/// What the script of the simulator is given.
#[derive(Serialize)]
struct Given<'a> {
    devices: &'a [(String, String)],
    requests: u64,
    seed: u64,
}

fn simulator_view(simulator: &Simulator) -> SimulatorView<'_> {
    let Simulator { devices, requests, seed, .. } = simulator;
    let given = Given { devices, requests: *requests, seed: *seed };
    SimulatorView {
        about: &simulator.about,
        module: BASE64.encode(&simulator.module),
        load: BASE64.encode(&simulator.load),
        given: script_safe_json(&given),
    }
}

/// A section as the template sees it.
#[derive(Serialize)]
struct SectionView<'a> {
    id: String,
    title: &'a str,
    text: &'a [String],
    warnings: Vec<&'a Warning>,
    items: Vec<ItemView<'a>>,
}

/// A figure or a table as the template sees it: both are a titled table, a figure has a chart.
#[derive(Serialize)]
struct ItemView<'a> {
    id: String,
    title: &'a str,
    caption: &'a str,
    source: &'a str,
    /// Index into the embedded data; none for a table.
    chart: Option<usize>,
    table: DataTable,
}

fn section_view<'a>(
    section: &'a Section,
    page: &'a Page,
    points_max: usize,
    ids: &mut Ids,
    figures: &mut Vec<Drawn<'a>>,
) -> SectionView<'a> {
    let id = ids.unique("section", &section.id);
    let mut items = Vec::new();
    for item in &section.items {
        items.push(match item {
            Item::Figure(figure) => {
                let id = ids.unique("figure", &figure.id);
                figures.push(figure_data::drawn(figure, id.clone(), points_max));
                ItemView {
                    id,
                    title: &figure.title,
                    caption: &figure.caption,
                    source: &figure.source,
                    chart: Some(figures.len() - 1),
                    table: figure_data::data_table(figure),
                }
            }
            Item::Table(table) => ItemView {
                id: ids.unique("table", &table.id),
                title: &table.title,
                caption: &table.caption,
                source: "",
                chart: None,
                table: printed(table),
            },
        });
    }
    let warnings =
        page.warnings.iter().filter(|warning| section.concerns(&warning.stage)).collect();
    SectionView { id, title: &section.title, text: &section.text, warnings, items }
}

fn series_count(figure: &Figure) -> usize {
    match &figure.kind {
        FigureKind::Lines(series) => series.len(),
        FigureKind::Bars { .. } | FigureKind::Grid(_) => 0,
    }
}

/// A table as it is printed: every row as long as the heading, and not endless.
fn printed(table: &Table) -> DataTable {
    let width = table.columns.len();
    let row = |row: &Vec<String>| {
        let mut row = row.clone();
        row.resize(width, String::new());
        row
    };
    let rows = table.rows.iter().take(TABLE_ROWS).map(row).collect();
    let total = table.rows.len();
    let note = if total > TABLE_ROWS {
        format!("The first {TABLE_ROWS} of {total} rows; the run directory has all.")
    } else {
        String::new()
    };
    DataTable { columns: table.columns.clone(), rows, note }
}

/// JSON that is safe inside a script element: it cannot end the element, open a comment or be
/// mistaken for an entity.
fn script_safe_json(data: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(data)
        .expect("data have text keys and plain values")
        .replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Element ids, unique in the page and free of anything that needs escaping.
#[derive(Default)]
struct Ids {
    taken: HashSet<String>,
}

impl Ids {
    fn unique(&mut self, kind: &str, wanted: &str) -> String {
        let slug: String = wanted
            .chars()
            .take(64)
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
            .collect();
        let base = format!("{kind}-{slug}");
        let mut id = base.clone();
        let mut number = 2;
        while !self.taken.insert(id.clone()) {
            id = format!("{base}-{number}");
            number += 1;
        }
        id
    }
}
