//! A figure's numbers in the two forms the page needs: a small JSON for the script and a table for
//! people, both bounded whatever the figure holds.
//!
//! Long curves are thinned to the lowest and highest point of each stretch, so that spikes stay
//! visible; the figure says so. Invariants: order, first and last point and the extremes survive
//! thinning; series that share their x values become one row per x in the table.

use std::collections::HashMap;

use serde::Serialize;

use crate::format;
use crate::page::{Axis, BarSeries, Column, Figure, FigureKind, Grid, Scale, Series, Style};

/// Points that all figures of a page may embed together: about 20 bytes each, so 600 KB.
const POINTS_PER_PAGE: usize = 30_000;
/// More points than a curve has pixels are not seen.
const POINTS_PER_SERIES: usize = 2_000;
/// Rows of a figure's data table: enough to read, few enough to keep the page small.
const TABLE_ROWS: usize = 200;

/// What the script draws a figure from.
#[derive(Debug, Serialize)]
pub(crate) struct Drawn<'a> {
    id: String,
    title: &'a str,
    x: &'a Axis,
    y: &'a Axis,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<Vec<DrawnSeries<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bars: Option<DrawnBars<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grid: Option<DrawnGrid<'a>>,
    note: String,
}

#[derive(Debug, Serialize)]
struct DrawnGrid<'a> {
    columns: usize,
    rows: usize,
    x: (Number, Number),
    y: (Number, Number),
    series: Vec<DrawnLayer<'a>>,
}

#[derive(Debug, Serialize)]
struct DrawnLayer<'a> {
    name: &'a str,
    cells: Vec<u64>,
}

#[derive(Debug, Serialize)]
struct DrawnSeries<'a> {
    name: &'a str,
    style: Style,
    colour: usize,
    xs: Vec<Number>,
    ys: Vec<Number>,
}

#[derive(Debug, Serialize)]
struct DrawnBars<'a> {
    categories: &'a [String],
    stacked: bool,
    series: Vec<DrawnBarSeries<'a>>,
}

#[derive(Debug, Serialize)]
struct DrawnBarSeries<'a> {
    name: &'a str,
    values: Vec<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<Vec<(Number, Number)>>,
}

/// Seven significant digits: more than a screen shows, half the bytes. NaN is `null`, and a whole
/// number has no `.0`.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
enum Number {
    Whole(i64),
    Real(f64),
}

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        let short: f64 = format!("{number:.6e}").parse().unwrap_or(f64::NAN);
        if short.fract() == 0.0 && short.abs() < 1e15 {
            Self::Whole(short as i64)
        } else {
            Self::Real(short)
        }
    }
}

/// A figure's numbers as text.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct DataTable {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<String>>,
    pub(crate) note: String,
}

/// How many points each series may embed when the page draws `series_count` of them.
pub(crate) fn points_per_series(series_count: usize) -> usize {
    (POINTS_PER_PAGE / series_count.max(1)).clamp(16, POINTS_PER_SERIES)
}

/// The script's view of a figure; `id` is the element's unique id.
pub(crate) fn drawn(figure: &Figure, id: String, points_max: usize) -> Drawn<'_> {
    let (x, y) = (&figure.x, &figure.y);
    let (title, note) = (figure.title.as_str(), String::new());
    let empty = Drawn { id, title, x, y, lines: None, bars: None, grid: None, note };
    match &figure.kind {
        FigureKind::Lines(series) => {
            let colours = colours(series);
            let lines = series
                .iter()
                .zip(colours)
                .map(|(one, colour)| drawn_series(one, colour, points_max));
            let note = drawing_note(figure, series, points_max);
            Drawn { lines: Some(lines.collect()), note, ..empty }
        }
        FigureKind::Bars { categories, series, stacked } => {
            let series = series.iter().map(drawn_bars).collect();
            Drawn { bars: Some(DrawnBars { categories, stacked: *stacked, series }), ..empty }
        }
        FigureKind::Grid(grid) => Drawn { grid: Some(drawn_grid(grid)), ..empty },
    }
}

fn drawn_grid(grid: &Grid) -> DrawnGrid<'_> {
    let [columns, rows] = [grid.columns, grid.rows].map(|side| side.clamp(1, Grid::SIDE_MAX));
    let pair = |(start, step): (f64, f64)| {
        let fine = start.is_finite() && step.is_finite() && step > 0.0;
        let (start, step) = if fine { (start, step) } else { (0.0, 1.0) };
        (Number::from(start), Number::from(step))
    };
    let layer = |layer| {
        let row = |row| (0..columns).map(move |column| grid.count(layer, row, column));
        DrawnLayer { name: &layer.name, cells: (0..rows).flat_map(row).collect() }
    };
    let series = grid.layers.iter().map(layer).collect();
    DrawnGrid { columns, rows, x: pair(grid.x), y: pair(grid.y), series }
}

fn drawn_series(series: &Series, colour: usize, points_max: usize) -> DrawnSeries<'_> {
    let points = thinned(&series.points, points_max);
    DrawnSeries {
        name: &series.name,
        style: series.style,
        colour,
        xs: points.iter().map(|point| point.0.into()).collect(),
        ys: points.iter().map(|point| point.1.into()).collect(),
    }
}

fn drawn_bars(series: &BarSeries) -> DrawnBarSeries<'_> {
    let pairs = |pairs: &Vec<(f64, f64)>| {
        pairs.iter().map(|&(low, high)| (low.into(), high.into())).collect()
    };
    DrawnBarSeries {
        name: &series.name,
        values: series.values.iter().map(|&value| value.into()).collect(),
        interval: series.interval.as_ref().map(pairs),
    }
}

/// A colour number per series: a dashed one takes that of the series it is named after, so that a
/// fit looks like what it fits.
pub(crate) fn colours(series: &[Series]) -> Vec<usize> {
    let mut colours = vec![0; series.len()];
    let parent = |index: usize| {
        let name = &series[index].name;
        let named_after = |other: &usize| {
            let other = &series[*other];
            other.style != Style::Dashed && !other.name.is_empty() && name.starts_with(&other.name)
        };
        (series[index].style == Style::Dashed)
            .then(|| {
                (0..series.len()).filter(named_after).max_by_key(|other| series[*other].name.len())
            })
            .flatten()
    };
    let independent = (0..series.len()).filter(|index| parent(*index).is_none());
    for (colour, index) in independent.enumerate() {
        colours[index] = colour;
    }
    for index in 0..series.len() {
        if let Some(parent) = parent(index) {
            colours[index] = colours[parent];
        }
    }
    colours
}

/// What is not drawn, so that nobody takes the picture for the whole.
fn drawing_note(figure: &Figure, series: &[Series], points_max: usize) -> String {
    let mut parts = Vec::new();
    let total: usize = series.iter().map(|one| one.points.len()).sum();
    let kept: usize = series.iter().map(|one| one.points.len().min(points_max)).sum();
    if kept < total {
        parts.push(format!(
            "About {} of {} points are drawn: the lowest and highest of each stretch.",
            format::count(kept as f64),
            format::count(total as f64)
        ));
    }
    let undrawable = |&&(x, y): &&(f64, f64)| {
        (figure.x.scale != Scale::Linear && x <= 0.0)
            || (figure.y.scale != Scale::Linear && y <= 0.0)
    };
    let hidden = series.iter().flat_map(|one| &one.points).filter(undrawable).count();
    if hidden > 0 {
        parts.push(format!(
            "{} at or below zero cannot be drawn on a logarithmic axis; the data table has {}.",
            if hidden == 1 { "One value".to_owned() } else { format!("{hidden} values") },
            if hidden == 1 { "it" } else { "them" },
        ));
    }
    parts.join(" ")
}

/// At most about `points_max` points: first, last, and per stretch the lowest, the highest and a
/// gap where there is one.
fn thinned(points: &[(f64, f64)], points_max: usize) -> Vec<(f64, f64)> {
    if points.len() <= points_max {
        return points.to_vec();
    }
    let stretches = (points_max / 2).max(1);
    let mut kept = Vec::with_capacity(points_max + 2);
    for stretch in 0..stretches {
        let from = stretch * points.len() / stretches;
        let to = (stretch + 1) * points.len() / stretches;
        let by_height = |a: &usize, b: &usize| points[*a].1.total_cmp(&points[*b].1);
        let whole = |index: &usize| points[*index].1.is_finite();
        let mut chosen = Vec::new();
        chosen.extend((from..to).filter(whole).min_by(by_height));
        chosen.extend((from..to).filter(whole).max_by(by_height));
        chosen.extend((from..to).find(|index| !whole(index)));
        chosen.extend((stretch == 0).then_some(0));
        chosen.extend((stretch + 1 == stretches).then_some(points.len() - 1));
        chosen.sort_unstable();
        chosen.dedup();
        kept.extend(chosen.into_iter().map(|index| points[index]));
    }
    kept
}

/// A figure's numbers as a table for people.
pub(crate) fn data_table(figure: &Figure) -> DataTable {
    let (columns, mut rows) = match &figure.kind {
        FigureKind::Lines(series) => line_rows(figure, series),
        FigureKind::Bars { categories, series, .. } => bar_rows(figure, categories, series),
        FigureKind::Grid(grid) => grid_rows(figure, grid),
    };
    let total = rows.len();
    let mut note = String::new();
    if total > TABLE_ROWS {
        let kept = |index: usize| index * (total - 1) / (TABLE_ROWS - 1);
        rows = (0..TABLE_ROWS).map(|index| std::mem::take(&mut rows[kept(index)])).collect();
        note = format!(
            "{TABLE_ROWS} of {} rows, evenly spaced; the run directory has all.",
            format::count(total as f64)
        );
    }
    DataTable { columns, rows, note }
}

/// One row per x where the series share their x values, else one row per point.
fn line_rows(figure: &Figure, series: &[Series]) -> (Vec<Column>, Vec<Vec<String>>) {
    let show_x = |x: f64| format::value(x, &figure.x.unit);
    let show_y = |y: f64| format::value(y, &figure.y.unit);
    let mut xs: Vec<f64> = series.iter().flat_map(|one| &one.points).map(|point| point.0).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let longest = series.iter().map(|one| one.points.len()).max().unwrap_or(0);
    let heading = |axis: &Axis, or: &str| {
        Column::number(if axis.label.is_empty() { or } else { &axis.label }, "")
    };
    if xs.len() <= longest + longest / 2 {
        let mut columns = vec![heading(&figure.x, "x")];
        columns.extend(series.iter().map(|one| Column::number(&one.name, "")));
        let lookups: Vec<HashMap<u64, f64>> = series
            .iter()
            .map(|one| one.points.iter().rev().map(|&(x, y)| (x.to_bits(), y)).collect())
            .collect();
        let row = |&x: &f64| {
            let cell = |ys: &HashMap<u64, f64>| {
                ys.get(&x.to_bits()).copied().map_or(String::new(), show_y)
            };
            std::iter::once(show_x(x)).chain(lookups.iter().map(cell)).collect()
        };
        return (columns, xs.iter().map(row).collect());
    }
    let columns = vec![Column::text("Series"), heading(&figure.x, "x"), heading(&figure.y, "y")];
    let rows = series.iter().flat_map(|one| {
        one.points.iter().map(|&(x, y)| vec![one.name.clone(), show_x(x), show_y(y)])
    });
    (columns, rows.collect())
}

/// One row per row of the map: the sum of its cells.
fn grid_rows(figure: &Figure, grid: &Grid) -> (Vec<Column>, Vec<Vec<String>>) {
    let mut columns = vec![Column::number(format!("{} from", figure.y.label), "")];
    columns.extend(grid.layers.iter().map(|layer| Column::number(&layer.name, "")));
    let row = |row: usize| {
        let start = format::value(grid.y.0 + row as f64 * grid.y.1, &figure.y.unit);
        let cells = |layer| {
            (0..grid.columns.min(Grid::SIDE_MAX)).map(move |at| grid.count(layer, row, at) as f64)
        };
        let sums = grid.layers.iter().map(|layer| format::count(cells(layer).sum()));
        std::iter::once(start).chain(sums).collect()
    };
    (columns, (0..grid.rows.min(Grid::SIDE_MAX)).map(row).collect())
}

fn bar_rows(
    figure: &Figure,
    categories: &[String],
    series: &[BarSeries],
) -> (Vec<Column>, Vec<Vec<String>>) {
    let show = |number: f64| format::value(number, &figure.y.unit);
    let mut columns = vec![Column::text(&figure.x.label)];
    columns.extend(series.iter().map(|one| Column::number(&one.name, "")));
    let cell = |one: &BarSeries, index: usize| {
        let Some(&value) = one.values.get(index) else { return String::new() };
        match one.interval.as_ref().and_then(|pairs| pairs.get(index)) {
            Some(&(low, high)) => format!("{} ({} to {})", show(value), show(low), show(high)),
            None => show(value),
        }
    };
    let row = |(index, category): (usize, &String)| {
        std::iter::once(category.clone()).chain(series.iter().map(|one| cell(one, index))).collect()
    };
    (columns, categories.iter().enumerate().map(row).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(series: Vec<Series>) -> Figure {
        Figure::lines(
            "f",
            "F",
            Axis::log2("Size", "bytes"),
            Axis::linear("Rate", "bytes/s"),
            series,
        )
    }

    #[test]
    fn shared_sizes_are_one_row_each() {
        let figure = lines(vec![
            Series::new("read", Style::Line, vec![(4096.0, 1e6), (8192.0, 2e6)]),
            Series::new("write", Style::Line, vec![(4096.0, 3e6), (16384.0, f64::NAN)]),
        ]);
        let table = data_table(&figure);
        let names: Vec<_> = table.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["Size", "read", "write"]);
        assert_eq!(
            table.rows,
            [["4 KiB", "1 MB/s", "3 MB/s"], ["8 KiB", "2 MB/s", ""], ["16 KiB", "", "n/a"]]
        );
    }

    #[test]
    fn distributions_are_one_row_per_point_and_few() {
        let curve = |shift: f64| (0..500).map(|i| (i as f64 + shift, i as f64)).collect();
        let table = data_table(&lines(vec![
            Series::new("a", Style::Step, curve(0.0)),
            Series::new("b", Style::Step, curve(0.5)),
        ]));
        assert_eq!(table.columns.len(), 3);
        assert_eq!(table.rows.len(), TABLE_ROWS);
        assert_eq!(table.rows[0], ["a", "0 B", "0 B/s"]);
        assert_eq!(table.rows[TABLE_ROWS - 1], ["b", "500 B", "499 B/s"]);
        assert!(table.note.contains("200 of 1,000"), "{}", table.note);
    }

    #[test]
    fn whiskers_stand_in_the_table_and_short_lists_leave_blanks() {
        let figure = Figure::bars(
            "f",
            "F",
            vec!["a".into(), "b".into()],
            Axis::linear("Rate", "tx/min"),
            vec![BarSeries::new("s", vec![5.0]).interval(vec![(4.0, 6.0)])],
        );
        let table = data_table(&figure);
        assert_eq!(table.rows, [["a", "5 tx/min (4 tx/min to 6 tx/min)"], ["b", ""]]);
    }

    #[test]
    fn a_map_is_one_row_per_row_and_pads_what_is_missing() {
        let layer = |name: &str, cells: &[u64]| crate::page::GridLayer {
            name: name.into(),
            cells: cells.to_vec(),
        };
        let layers = vec![layer("reads", &[1, 2, 3, 4]), layer("writes", &[7])];
        let grid = Grid { columns: 2, rows: 2, x: (0.0, 1.0), y: (4096.0, 4096.0), layers };
        let axes = (Axis::linear("Time", "s"), Axis::linear("Address", "bytes"));
        let figure = Figure::grid("f", "F", axes.0, axes.1, grid);
        let table = data_table(&figure);
        assert_eq!(table.rows, [["4 KiB", "3", "7"], ["8 KiB", "7", "0"]]);
        let text = serde_json::to_string(&drawn(&figure, "f".into(), 9)).expect("serialises");
        assert!(text.contains(r#""cells":[7,0,0,0]"#), "{text}");
    }

    #[test]
    fn a_fit_has_the_colour_of_what_it_fits() {
        let named = |name: &str, style| Series::new(name, style, Vec::new());
        let series = [
            named("read, fitted", Style::Dashed),
            named("read", Style::Points),
            named("random read", Style::Points),
            named("random read, fitted", Style::Dashed),
            named("limit", Style::Dashed),
        ];
        assert_eq!(colours(&series), [0, 0, 1, 1, 2]);
    }

    #[test]
    fn what_is_not_drawn_is_said() {
        let figure = lines(vec![Series::new("s", Style::Line, vec![(0.0, 1.0), (2.0, 0.0)])]);
        assert!(drawn(&figure, String::new(), 10).note.starts_with("One value at or below zero"));
        let long = lines(vec![Series::new("s", Style::Line, vec![(1.0, 1.0); 100])]);
        assert!(drawn(&long, String::new(), 10).note.starts_with("About 10 of 100 points"));
    }

    proptest! {
        #[test]
        fn thinning_keeps_ends_extremes_and_order(
            heights in prop::collection::vec(-1e9f64..1e9, 1..600),
            points_max in 4usize..80,
        ) {
            let points: Vec<_> =
                heights.iter().enumerate().map(|(index, &y)| (index as f64, y)).collect();
            let kept = thinned(&points, points_max);
            prop_assert!(kept.len() <= points_max + 2 || kept.len() == points.len());
            prop_assert_eq!(kept.first(), points.first());
            prop_assert_eq!(kept.last(), points.last());
            prop_assert!(kept.is_sorted_by(|a, b| a.0 < b.0));
            let heights = |all: &[(f64, f64)]| all.iter().map(|point| point.1).collect::<Vec<_>>();
            let highest = |all| heights(all).into_iter().fold(f64::MIN, f64::max);
            let lowest = |all| heights(all).into_iter().fold(f64::MAX, f64::min);
            prop_assert_eq!(highest(&kept), highest(&points));
            prop_assert_eq!(lowest(&kept), lowest(&points));
        }
    }
}
