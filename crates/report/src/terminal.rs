//! The page on one screen: the answers, what a glance can take in, and what to be careful about.
//!
//! Order of importance decides what stays when lines run out: title and facts, warnings with their
//! hints, then bars and sparklines as far as they fit; whatever is left out is counted. Lines are
//! never wider than asked for, and there are at most [`LINES_MAX`], so that a caller's own lines
//! (the report's path) still fit a screen of 40.
//!
//! Invariants: no control character of a text reaches the terminal; without colour the output is
//! plain text without escapes.

use crate::format;
use crate::page::{Axis, BarSeries, Fact, Figure, FigureKind, Grid, Page, Scale, Series, Style};

/// Lines at most; two are left for the caller.
const LINES_MAX: usize = 38;
/// Widths that the layout is made for; others are clamped.
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=120;
const FACTS_MAX: usize = 10;
const WARNINGS_MAX: usize = 5;
/// Rows of one plot; more than this is a table, not a glance.
const ROWS_MAX: usize = 8;
const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const BAR_PARTS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const LAYERS: [char; 4] = ['█', '▓', '▒', '░'];
/// Shades of a map, from little to much; nothing is a space.
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];

/// Draws a page for a terminal of `width` columns (clamped to 60..=120), at most 38 lines, with
/// ANSI colours only where `colour` says so (the caller asks `NO_COLOR` and whether it is a
/// terminal). Ends with a line break.
pub fn terminal(page: &Page, width: usize, colour: bool) -> String {
    let screen = Screen { width: width.clamp(*WIDTHS.start(), *WIDTHS.end()), colour };
    let mut lines = screen.heading(page);
    lines.extend(screen.facts(&page.verdict));
    let warnings = screen.warnings(page);
    let room = LINES_MAX.saturating_sub(lines.len() + warnings.len());
    lines.extend(screen.plots(page, room));
    lines.extend(warnings);
    lines.truncate(LINES_MAX);
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

struct Screen {
    width: usize,
    colour: bool,
}

/// SGR codes; the eight basic colours follow the terminal's own theme.
const BOLD: &str = "1";
const DIM: &str = "2";
const CYAN: &str = "36";
const YELLOW: &str = "1;33";

impl Screen {
    fn paint(&self, text: &str, code: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    fn heading(&self, page: &Page) -> Vec<String> {
        let mut lines = vec![self.paint(&cut(&clean(&page.title), self.width), BOLD)];
        if !page.subtitle.is_empty() {
            lines.push(self.paint(&cut(&clean(&page.subtitle), self.width), DIM));
        }
        lines
    }

    /// One line per fact: label, value, detail.
    fn facts(&self, facts: &[Fact]) -> Vec<String> {
        let mut lines = Vec::new();
        if facts.is_empty() {
            return lines;
        }
        lines.push(String::new());
        let shown = &facts[..facts.len().min(FACTS_MAX)];
        let widest = |text: fn(&Fact) -> &String, limit: usize| {
            shown.iter().map(|fact| columns(&clean(text(fact)))).max().unwrap_or(0).min(limit)
        };
        let label_width = widest(|fact| &fact.label, self.width / 3);
        let value_width = widest(|fact| &fact.value, self.width / 3);
        for fact in shown {
            let label = pad_right(&clean(&fact.label), label_width);
            let value = self.paint(
                &pad_right(&clean(&fact.value), value_width),
                if fact.caution { YELLOW } else { BOLD },
            );
            let rest = self.width.saturating_sub(2 + label_width + 2 + value_width + 2);
            let detail = self.paint(&cut(&clean(&fact.detail), rest), DIM);
            lines.push(format!("  {label}  {value}  {detail}"));
        }
        if facts.len() > shown.len() {
            lines.push(format!("  and {} more in the report", facts.len() - shown.len()));
        }
        lines
    }

    fn warnings(&self, page: &Page) -> Vec<String> {
        let mut lines = Vec::new();
        if page.warnings.is_empty() {
            return lines;
        }
        lines.push(String::new());
        let room = self.width - 2;
        for warning in page.warnings.iter().take(WARNINGS_MAX) {
            for (index, part) in wrap(&clean(&warning.message), room, 2).into_iter().enumerate() {
                let mark = if index == 0 { self.paint("!", YELLOW) } else { " ".to_owned() };
                lines.push(format!("{mark} {part}"));
            }
            if !warning.hint.is_empty() {
                let hint = wrap(&format!("hint: {}", clean(&warning.hint)), room, 2);
                lines.extend(hint.into_iter().map(|part| format!("  {}", self.paint(&part, DIM))));
            }
        }
        let left = page.warnings.len().saturating_sub(WARNINGS_MAX);
        if left > 0 {
            let noun = if left == 1 { "warning" } else { "warnings" };
            let text = format!("! and {left} more {noun} in the report");
            lines.push(self.paint(&text, YELLOW));
        }
        lines
    }

    /// As many plots as fit, bars and curves in turn: bars answer, curves explain.
    fn plots(&self, page: &Page, room: usize) -> Vec<String> {
        let is_bars = |figure: &&Figure| matches!(figure.kind, FigureKind::Bars { .. });
        let mut bars = page.figures().filter(is_bars);
        let mut curves = page.figures().filter(|figure| !is_bars(figure));
        let in_turn = || {
            let pair = [bars.next(), curves.next()];
            pair.iter().any(Option::is_some).then_some(pair)
        };
        let mut lines = Vec::new();
        for figure in std::iter::from_fn(in_turn).flatten().flatten() {
            let plot = match &figure.kind {
                FigureKind::Bars { categories, series, stacked: true } => {
                    self.layers(figure, categories, series)
                }
                FigureKind::Bars { categories, series, .. } => {
                    self.bars(figure, categories, series)
                }
                FigureKind::Lines(series) => self.sparks(figure, series),
                FigureKind::Grid(grid) => self.map(figure, grid),
            };
            if plot.len() > 1 && lines.len() + 1 + plot.len() <= room {
                lines.push(String::new());
                lines.extend(plot);
            }
        }
        lines
    }

    fn plot_title(&self, title: &str, aside: &str) -> String {
        let title = cut(&clean(title), self.width);
        let room = self.width.saturating_sub(columns(&title) + 2);
        let aside = if room > 8 { cut(&clean(aside), room) } else { String::new() };
        format!("{}  {}", self.paint(&title, BOLD), self.paint(&aside, DIM))
    }

    /// Plain bars, one row per category and series; only the first series where that is too much.
    fn bars(&self, figure: &Figure, categories: &[String], series: &[BarSeries]) -> Vec<String> {
        let all = categories.len() * series.len() <= ROWS_MAX;
        let shown = if all { series } else { &series[..series.len().min(1)] };
        let aside = if series.len() > 1 && !all { shown[0].name.as_str() } else { "" };
        let mut rows = Vec::new();
        for (index, category) in categories.iter().enumerate().take(ROWS_MAX) {
            for one in shown {
                let value = one.values.get(index).copied().unwrap_or(f64::NAN);
                let name = if shown.len() > 1 {
                    format!("{category} {}", one.name)
                } else {
                    category.clone()
                };
                // With other series beside it, a value that there is not needs no line.
                if shown.len() == 1 || !value.is_nan() {
                    rows.push((clean(&name), value));
                }
            }
        }
        let values: Vec<_> = rows.iter().map(|row| row.1).collect();
        let range = Range::of(&figure.y, &values, true);
        let name_width =
            rows.iter().map(|row| columns(&row.0)).max().unwrap_or(0).min(self.width / 3);
        let room = self.width.saturating_sub(2 + name_width + 2 + 16);
        let mut lines = vec![self.plot_title(&figure.title, aside)];
        for (name, value) in rows {
            let bar = self.paint(&bar(range.share(value), room), CYAN);
            let value = cut(&format::value(value, &clean(&figure.y.unit)), 15);
            lines.push(format!("  {}  {bar} {value}", pad_right(&name, name_width)));
        }
        let left = categories.len().saturating_sub(ROWS_MAX);
        if left > 0 {
            lines.push(format!("  and {left} more in the report"));
        }
        lines
    }

    /// Stacked bars: layers told apart by their shading, so that they need no colour.
    fn layers(&self, figure: &Figure, categories: &[String], series: &[BarSeries]) -> Vec<String> {
        let shade = |index: usize| LAYERS[index % LAYERS.len()];
        let legend: Vec<_> = series
            .iter()
            .enumerate()
            .map(|(index, one)| format!("{} {}", shade(index), clean(&one.name)))
            .collect();
        let at = |one: &BarSeries, index: usize| {
            one.values.get(index).copied().filter(|value| value.is_finite()).unwrap_or(0.0).max(0.0)
        };
        let totals: Vec<f64> = (0..categories.len())
            .map(|index| series.iter().map(|one| at(one, index)).sum())
            .collect();
        let most = totals.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let names: Vec<_> = categories.iter().take(ROWS_MAX).map(|name| clean(name)).collect();
        let name_width =
            names.iter().map(|name| columns(name)).max().unwrap_or(0).min(self.width / 3);
        let room = self.width.saturating_sub(2 + name_width + 2 + 16) as f64;
        let mut lines = vec![self.plot_title(&figure.title, &legend.join("  "))];
        for (index, name) in names.iter().enumerate() {
            let (mut bar, mut sum, mut drawn) = (String::new(), 0.0, 0);
            for (layer, one) in series.iter().enumerate() {
                sum += at(one, index);
                let end = (sum / most * room).round() as usize;
                bar.extend(std::iter::repeat_n(shade(layer), end.saturating_sub(drawn)));
                drawn = drawn.max(end);
            }
            let total = cut(&format::value(totals[index], &clean(&figure.y.unit)), 15);
            lines.push(format!(
                "  {}  {} {total}",
                pad_right(name, name_width),
                self.paint(&bar, CYAN)
            ));
        }
        lines
    }

    /// All layers of a map together, shaded by the logarithm of the count.
    fn map(&self, figure: &Figure, grid: &Grid) -> Vec<String> {
        let [columns_all, rows_all] = [grid.columns, grid.rows].map(|n| n.min(Grid::SIDE_MAX));
        if columns_all == 0 || rows_all == 0 {
            return Vec::new();
        }
        let label_width = 10;
        let shown = (rows_all.min(ROWS_MAX), columns_all.min(self.width - 4 - label_width));
        let mut cells = vec![0u64; shown.0 * shown.1];
        for layer in &grid.layers {
            for row in 0..rows_all {
                for column in 0..columns_all {
                    let cell = row * shown.0 / rows_all * shown.1 + column * shown.1 / columns_all;
                    cells[cell] = cells[cell].saturating_add(grid.count(layer, row, column));
                }
            }
        }
        let most = cells.iter().copied().max().unwrap_or(0) as f64;
        let shade = |count: &u64| {
            let share = (*count as f64).ln_1p() / most.ln_1p().max(f64::MIN_POSITIVE);
            let level = (share * SHADES.len() as f64).ceil() as usize;
            if *count == 0 { ' ' } else { SHADES[level.clamp(1, SHADES.len()) - 1] }
        };
        let end = grid.x.0 + grid.x.1 * columns_all as f64;
        let ends = [grid.x.0, end];
        let over = span(&ends, &figure.x).unwrap_or_else(|| format::NOTHING.to_owned());
        let aside = format!("{} over {} {over}", figure.y.label, figure.x.label.to_lowercase());
        let mut lines = vec![self.plot_title(&figure.title, &aside)];
        // Large addresses above, as on the page.
        for row in (0..shown.0).rev() {
            let start = grid.y.0 + grid.y.1 * (row * rows_all / shown.0) as f64;
            let label = cut(&format::value(start, &clean(&figure.y.unit)), label_width);
            let gap = " ".repeat(label_width - columns(&label));
            let text: String =
                cells[row * shown.1..(row + 1) * shown.1].iter().map(shade).collect();
            lines.push(format!("  {gap}{label}  {}", self.paint(&text, CYAN)));
        }
        lines
    }

    /// One small curve per series over the common range of x.
    fn sparks(&self, figure: &Figure, series: &[Series]) -> Vec<String> {
        let measured = |one: &&Series| one.style != Style::Dashed && !one.points.is_empty();
        let shown: Vec<_> = series.iter().filter(measured).take(ROWS_MAX).collect();
        let xs: Vec<_> = shown.iter().flat_map(|one| &one.points).map(|point| point.0).collect();
        let ys: Vec<_> = shown.iter().flat_map(|one| &one.points).map(|point| point.1).collect();
        let (over_x, over_y) = (Range::of(&figure.x, &xs, false), Range::of(&figure.y, &ys, false));
        let name_width = shown
            .iter()
            .map(|one| columns(&clean(&one.name)))
            .max()
            .unwrap_or(0)
            .min(self.width / 3);
        let room = self.width.saturating_sub(2 + name_width + 2 + 26).min(48);
        let aside = format!(
            "{} {}",
            figure.x.label,
            span(&xs, &figure.x).unwrap_or_else(|| format::NOTHING.to_owned())
        );
        let mut lines = vec![self.plot_title(&figure.title, &aside)];
        for one in shown {
            let name = pad_right(&clean(&one.name), name_width);
            let curve = self.paint(&spark(one, &over_x, &over_y, room), CYAN);
            let values: Vec<_> = one.points.iter().map(|point| point.1).collect();
            let ends = span(&values, &figure.y).unwrap_or_else(|| format::NOTHING.to_owned());
            lines.push(format!("  {name}  {curve} {}", cut(&clean(&ends), 25)));
        }
        lines
    }
}

/// Lowest and highest finite value as text: `4 KiB to 1 MiB`.
fn span(values: &[f64], axis: &Axis) -> Option<String> {
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let (low, high) = (finite().reduce(f64::min)?, finite().reduce(f64::max)?);
    let (low, high) = (format::value(low, &axis.unit), format::value(high, &axis.unit));
    Some(if low == high { low } else { format!("{low} to {high}") })
}

/// A range of values on an axis, mapped to 0..1.
struct Range {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Range {
    /// The range of the drawable values; bars on a linear axis start at zero, on a logarithmic one
    /// a little below the lowest.
    fn of(axis: &Axis, values: &[f64], from_zero: bool) -> Self {
        let scale = axis.scale;
        let mapped: Vec<_> = values.iter().filter_map(|&value| map(scale, value)).collect();
        let low = mapped.iter().copied().fold(f64::INFINITY, f64::min);
        let high = mapped.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let low = match (from_zero, scale) {
            (false, _) => low,
            (true, Scale::Linear) => low.min(0.0),
            (true, _) => low - (high - low) / 8.0 - 0.1,
        };
        Self { scale, low, high }
    }

    /// Where a value is, 0 to 1; none if it cannot be drawn.
    fn share(&self, value: f64) -> Option<f64> {
        let width = self.high - self.low;
        let share = (map(self.scale, value)? - self.low) / width;
        Some(if width > 0.0 { share.clamp(0.0, 1.0) } else { 1.0 })
    }
}

/// A value on its scale; none where it has no place.
fn map(scale: Scale, value: f64) -> Option<f64> {
    let drawable = value.is_finite() && (scale == Scale::Linear || value > 0.0);
    drawable.then(|| if scale == Scale::Linear { value } else { value.log10() })
}

/// A bar in eighths of a column.
fn bar(share: Option<f64>, room: usize) -> String {
    let eighths = (share.unwrap_or(0.0) * room as f64 * 8.0).round() as usize;
    let mut bar: String = std::iter::repeat_n('█', eighths / 8).collect();
    if !eighths.is_multiple_of(8) {
        bar.push(BAR_PARTS[eighths % 8 - 1]);
    }
    bar
}

/// A curve of `room` columns: the mean of the points in a column, between points a straight line
/// on the axes' scales.
fn spark(series: &Series, over_x: &Range, over_y: &Range, room: usize) -> String {
    let mut points: Vec<(f64, f64)> = series
        .points
        .iter()
        .filter_map(|&(x, y)| Some((over_x.share(x)?, over_y.share(y)?)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let step = 1.0 / (room.max(2) - 1) as f64;
    let height = |column: usize| {
        let at = column as f64 * step;
        let from = points.partition_point(|point| point.0 < at - step / 2.0);
        let to = points.partition_point(|point| point.0 < at + step / 2.0);
        if from < to {
            let sum: f64 = points[from..to].iter().map(|point| point.1).sum();
            return Some(sum / (to - from) as f64);
        }
        let (before, after) = (points.get(from.checked_sub(1)?)?, points.get(from)?);
        Some(before.1 + (at - before.0) / (after.0 - before.0) * (after.1 - before.1))
    };
    let mark = |height: f64| SPARKS[(height * 7.0).round() as usize];
    (0..room).map(|column| height(column).map_or(' ', mark)).collect()
}

/// Text without anything that a terminal would act upon: control characters and the marks that
/// change the direction of writing.
fn clean(text: &str) -> String {
    let acts = |c: &char| {
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
            || *c == '\u{feff}'
    };
    let shown = |c: char| match c {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().filter(|c| !acts(c)).map(shown).collect()
}

/// Columns that a character takes: none for combining marks, two for East Asian and emoji.
fn char_columns(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

/// At most `room` columns, with an ellipsis where something was cut.
fn cut(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        if used + char_columns(c) + 1 > room {
            break;
        }
        used += char_columns(c);
        out.push(c);
    }
    if room > 0 {
        out.push('…');
    }
    out
}

fn pad_right(text: &str, room: usize) -> String {
    let text = cut(text, room);
    let gap = room.saturating_sub(columns(&text));
    text + &" ".repeat(gap)
}

/// Breaks a text at spaces into at most `lines_max` lines of `room` columns; the last one is cut.
fn wrap(text: &str, room: usize, lines_max: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let count = lines.len();
        let last = lines.last_mut().expect("there is always a line");
        let fits = columns(last) + 1 + columns(word) <= room;
        if last.is_empty() {
            last.push_str(word);
        } else if fits || count == lines_max {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.iter().map(|line| cut(line, room)).collect()
}
