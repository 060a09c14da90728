//! What a page says, before anybody decides how it looks.
//!
//! A [`Page`] is plain data: a builder fills it from a study's result, [`crate::html`] and
//! [`crate::terminal`] draw it. It serialises with serde, so a page can be stored and drawn again.
//! Constructors below keep builder code to one expression per figure.
//!
//! Invariants: none that a renderer relies on. Any text, any number (also NaN and infinities) and
//! any length is drawn as something sensible; ragged rows and short value lists are padded.

use events::Warning;
use serde::{Deserialize, Deserializer, Serialize};

/// Everything one report shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// What was studied, a few words.
    pub title: String,
    /// Where and when, one line.
    pub subtitle: String,
    /// The headline answers, most important first.
    pub verdict: Vec<Fact>,
    /// The body, in reading order.
    pub sections: Vec<Section>,
    /// Why results are suspect. All are listed at the top; one whose stage is a section's id (or
    /// the id's first word: `probe` for `probe-random`) is repeated beside that section's figures.
    pub warnings: Vec<Warning>,
    /// What is needed to reproduce the page: version, seed, machine, date, as name and value.
    pub provenance: Vec<(String, String)>,
    /// Answers questions while the page is read. Part of the HTML file only: a stored page is
    /// without.
    #[serde(skip)]
    pub simulator: Option<Simulator>,
}

/// A program inside the page that answers *what if* about a load. What it computes is its own
/// matter: the page hands it the load and questions in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simulator {
    /// WebAssembly, compressed with gzip.
    pub module: Vec<u8>,
    /// The load in the form that the module reads, compressed with gzip.
    pub load: Vec<u8>,
    /// Requests of the load.
    pub requests: u64,
    /// What the load is, one sentence.
    pub about: String,
    /// Devices of the page, the first to compare with: name and profile.
    pub devices: Vec<(String, String)>,
    /// Decides every random draw.
    pub seed: u64,
}

/// One headline answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// The question in two or three words: `Transactions`.
    pub label: String,
    /// The answer with its unit: `1,240 tx/min`.
    pub value: String,
    /// Its interval, limit or comparison, one line; may be empty.
    pub detail: String,
    /// The answer is doubtful or withheld: drawn so that nobody takes it for a good one.
    #[serde(default)]
    pub caution: bool,
}

/// A heading with paragraphs, then figures and tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Name for links, lower case with dashes: `probe`, `response-time`. See [`Page::warnings`].
    pub id: String,
    /// Heading.
    pub title: String,
    /// Paragraphs of plain text.
    pub text: Vec<String>,
    /// Figures and tables in reading order.
    pub items: Vec<Item>,
}

/// A figure or a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// A chart.
    Figure(Figure),
    /// A table.
    Table(Table),
}

/// One chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name for links, lower case with dashes.
    pub id: String,
    /// What is compared with what.
    pub title: String,
    /// What to see in it; may be empty.
    pub caption: String,
    /// Whose figure it follows, such as `after Wang et al. 2011, fig. 1`; may be empty.
    pub source: String,
    /// Horizontal axis. For bars only its label is used.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The data.
    pub kind: FigureKind,
}

/// What an axis measures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// The quantity: `Request size`.
    pub label: String,
    /// The unit that the numbers are in. `ns`, `us`, `ms`, `s` are drawn as readable times,
    /// `bytes` as `4 KiB`, `bytes/s` as `12.5 MB/s`, `%` as given; any other is put behind the
    /// number; empty for none.
    pub unit: String,
    /// How values map to lengths.
    pub scale: Scale,
}

/// How values map to lengths. Values at or below zero are not drawn on a logarithmic axis (the
/// figure says how many) and stay in its data table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Equal steps.
    #[default]
    Linear,
    /// Doublings, with ticks at powers of two.
    Log2,
    /// Decades, with ticks at powers of ten.
    Log10,
}

/// The data of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureKind {
    /// Curves: throughput against size, distributions, fitted lines, time series.
    Lines(Vec<Series>),
    /// Bars per category.
    Bars {
        /// Names along the horizontal axis.
        categories: Vec<String>,
        /// One bar (or one layer of each bar) per series and category.
        series: Vec<BarSeries>,
        /// Layers upon each other instead of bars beside each other.
        stacked: bool,
    },
    /// A map of counts over two linear axes: addresses over time.
    Grid(Grid),
}

/// Counts in cells of equal size. Cells that are missing are empty, more than 256 rows or columns
/// are not drawn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Grid {
    /// Cells along the horizontal axis.
    pub columns: usize,
    /// Cells along the vertical axis.
    pub rows: usize,
    /// Where the first column starts and how wide each is, in the axis' unit.
    pub x: (f64, f64),
    /// Where the lowest row starts and how high each is, in the axis' unit.
    pub y: (f64, f64),
    /// What is counted, drawn upon each other.
    pub layers: Vec<GridLayer>,
}

/// One count per cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GridLayer {
    /// Name in the legend.
    pub name: String,
    /// Row by row from the lowest, each from left to right.
    pub cells: Vec<u64>,
}

impl Grid {
    /// Rows and columns along a side that are drawn.
    pub(crate) const SIDE_MAX: usize = 256;

    /// What a cell of a layer holds.
    pub(crate) fn count(&self, layer: &GridLayer, row: usize, column: usize) -> u64 {
        let before = row.saturating_mul(self.columns);
        layer.cells.get(before.saturating_add(column)).copied().unwrap_or(0)
    }
}

/// One curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name in the legend. A dashed series whose name starts with another series' name (`random
    /// read, fitted` beside `random read`) takes that one's colour.
    pub name: String,
    /// `(x, y)` in the axes' units, in drawing order; a NaN breaks the line.
    #[serde(deserialize_with = "points_with_gaps")]
    pub points: Vec<(f64, f64)>,
    /// How it is drawn.
    pub style: Style,
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Marks only: measured values around a fitted line.
    Points,
    /// A line, with a few marks to tell it from others without colour.
    #[default]
    Line,
    /// A line with a mark on every point: few measured values.
    LinePoints,
    /// A dashed line: a model, a fit, a limit.
    Dashed,
    /// A staircase that keeps each value up to the next x: exact distributions.
    Step,
}

/// One value per category.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BarSeries {
    /// Name in the legend.
    pub name: String,
    /// One per category, in the vertical axis' unit; NaN for none.
    #[serde(deserialize_with = "numbers_with_gaps")]
    pub values: Vec<f64>,
    /// Low and high end per value, drawn as whiskers.
    #[serde(default, deserialize_with = "maybe_points_with_gaps")]
    pub interval: Option<Vec<(f64, f64)>>,
}

/// One table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Name for links, lower case with dashes.
    pub id: String,
    /// What it lists.
    pub title: String,
    /// What to see in it; may be empty.
    pub caption: String,
    /// Columns, left to right.
    pub columns: Vec<Column>,
    /// Rows of cells as they are printed.
    pub rows: Vec<Vec<String>>,
}

/// One column of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// Unit of all cells; may be empty.
    pub unit: String,
    /// Side on which the cells line up.
    pub align: Align,
}

/// Side on which cells line up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Align {
    /// Text.
    #[default]
    Left,
    /// Numbers.
    Right,
}

impl Page {
    /// A page without content.
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>) -> Self {
        Self { title: title.into(), subtitle: subtitle.into(), ..Self::default() }
    }

    /// Adds a headline answer; see [`Fact`].
    #[must_use]
    pub fn fact(
        mut self,
        label: impl Into<String>,
        value: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        let (label, value, detail) = (label.into(), value.into(), detail.into());
        self.verdict.push(Fact { label, value, detail, caution: false });
        self
    }

    /// Marks the last headline answer as one to be read with care.
    #[must_use]
    pub fn caution(mut self, caution: bool) -> Self {
        if let Some(fact) = self.verdict.last_mut() {
            fact.caution = caution;
        }
        self
    }

    /// Adds a section.
    #[must_use]
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// Adds a warning.
    #[must_use]
    pub fn warning(mut self, warning: Warning) -> Self {
        self.warnings.push(warning);
        self
    }

    /// Adds a line of provenance.
    #[must_use]
    pub fn provenance(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.provenance.push((name.into(), value.into()));
        self
    }

    /// All figures in reading order.
    pub(crate) fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.sections.iter().flat_map(|section| &section.items).filter_map(|item| match item {
            Item::Figure(figure) => Some(figure),
            Item::Table(_) => None,
        })
    }
}

impl Section {
    /// A section without content.
    pub fn new(id: impl Into<String>, title: impl Into<String>) -> Self {
        Self { id: id.into(), title: title.into(), ..Self::default() }
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn paragraph(mut self, text: impl Into<String>) -> Self {
        self.text.push(text.into());
        self
    }

    /// Adds a figure.
    #[must_use]
    pub fn figure(mut self, figure: Figure) -> Self {
        self.items.push(Item::Figure(figure));
        self
    }

    /// Adds a table.
    #[must_use]
    pub fn table(mut self, table: Table) -> Self {
        self.items.push(Item::Table(table));
        self
    }

    /// Whether a warning of this stage is shown beside the section; see [`Page::warnings`].
    pub(crate) fn concerns(&self, stage: &str) -> bool {
        !stage.is_empty()
            && self
                .id
                .strip_prefix(stage)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }
}

impl Figure {
    /// Curves over two axes.
    pub fn lines(
        id: impl Into<String>,
        title: impl Into<String>,
        x: Axis,
        y: Axis,
        series: Vec<Series>,
    ) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            caption: String::new(),
            source: String::new(),
            x,
            y,
            kind: FigureKind::Lines(series),
        }
    }

    /// A map of counts over two linear axes.
    pub fn grid(
        id: impl Into<String>,
        title: impl Into<String>,
        x: Axis,
        y: Axis,
        grid: Grid,
    ) -> Self {
        Self { kind: FigureKind::Grid(grid), ..Self::lines(id, title, x, y, Vec::new()) }
    }

    /// Bars beside each other, one group per category.
    pub fn bars(
        id: impl Into<String>,
        title: impl Into<String>,
        categories: Vec<String>,
        y: Axis,
        series: Vec<BarSeries>,
    ) -> Self {
        let kind = FigureKind::Bars { categories, series, stacked: false };
        Self { kind, ..Self::lines(id, title, Axis::default(), y, Vec::new()) }
    }

    /// Bars upon each other, one per category: the parts of a whole.
    pub fn stacked_bars(
        id: impl Into<String>,
        title: impl Into<String>,
        categories: Vec<String>,
        y: Axis,
        series: Vec<BarSeries>,
    ) -> Self {
        let kind = FigureKind::Bars { categories, series, stacked: true };
        Self { kind, ..Self::lines(id, title, Axis::default(), y, Vec::new()) }
    }

    /// The same figure with a caption.
    #[must_use]
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }

    /// The same figure with the work that it follows.
    #[must_use]
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.source = source.into();
        self
    }
}

impl Axis {
    /// Equal steps.
    pub fn linear(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), scale: Scale::Linear }
    }

    /// Doublings: request sizes, outstanding I/Os.
    pub fn log2(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { scale: Scale::Log2, ..Self::linear(label, unit) }
    }

    /// Decades: response times.
    pub fn log10(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { scale: Scale::Log10, ..Self::linear(label, unit) }
    }
}

impl Series {
    /// A curve in the given style.
    pub fn new(name: impl Into<String>, style: Style, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, style }
    }
}

impl BarSeries {
    /// Bars without whiskers.
    pub fn new(name: impl Into<String>, values: Vec<f64>) -> Self {
        Self { name: name.into(), values, interval: None }
    }

    /// The same bars with whiskers, one `(low, high)` per value.
    #[must_use]
    pub fn interval(mut self, interval: Vec<(f64, f64)>) -> Self {
        self.interval = Some(interval);
        self
    }
}

impl Table {
    /// A table without rows.
    pub fn new(id: impl Into<String>, title: impl Into<String>, columns: Vec<Column>) -> Self {
        Self { id: id.into(), title: title.into(), columns, ..Self::default() }
    }

    /// Adds a row.
    #[must_use]
    pub fn row<Cell: Into<String>>(mut self, cells: impl IntoIterator<Item = Cell>) -> Self {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        self
    }

    /// The same table with a caption.
    #[must_use]
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }
}

impl Column {
    /// A column of text.
    pub fn text(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// A column of numbers, lined up on the right.
    pub fn number(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { name: name.into(), unit: unit.into(), align: Align::Right }
    }
}

/// JSON has no NaN and writes `null`: read it back as NaN, so that a stored page draws the same.
fn gap(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

fn numbers_with_gaps<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    Ok(Vec::<Option<f64>>::deserialize(from)?.into_iter().map(gap).collect())
}

fn points_with_gaps<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(f64, f64)>, D::Error> {
    let pairs = Vec::<(Option<f64>, Option<f64>)>::deserialize(from)?;
    Ok(pairs.into_iter().map(|(x, y)| (gap(x), gap(y))).collect())
}

#[allow(clippy::type_complexity, reason = "serde names this type, nobody reads it")]
fn maybe_points_with_gaps<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Vec<(f64, f64)>>, D::Error> {
    let pairs = Option::<Vec<(Option<f64>, Option<f64>)>>::deserialize(from)?;
    Ok(pairs.map(|pairs| pairs.into_iter().map(|(x, y)| (gap(x), gap(y))).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_with_gaps_is_stored_and_read_back() {
        let series = Series::new("s", Style::Step, vec![(1.0, f64::NAN), (2.0, 3.5)]);
        let bars = BarSeries::new("b", vec![f64::INFINITY, 2.0])
            .interval(vec![(f64::NAN, 1.0), (1.0, 2.0)]);
        let page = Page::new("t", "s").provenance("seed", "7").section(
            Section::new("probe", "Probe")
                .figure(Figure::lines("a", "A", Axis::log2("x", ""), Axis::default(), vec![series]))
                .figure(Figure::bars("b", "B", vec!["c".into()], Axis::default(), vec![bars])),
        );
        let text = serde_json::to_string(&page).unwrap();
        let read: Page = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        let Item::Figure(Figure { kind: FigureKind::Lines(lines), .. }) =
            &read.sections[0].items[0]
        else {
            panic!("the first item is the figure of lines");
        };
        assert!(lines[0].points[0].1.is_nan());
        assert_eq!(lines[0].points[1], (2.0, 3.5));
    }

    #[test]
    fn warnings_meet_their_sections() {
        for (id, stage, expected) in [
            ("probe", "probe", true),
            ("probe-random", "probe", true),
            ("probes", "probe", false),
            ("sim", "probe", false),
            ("sim", "", false),
        ] {
            assert_eq!(Section::new(id, "").concerns(stage), expected, "{id} {stage}");
        }
    }
}
