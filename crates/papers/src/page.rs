//! A section per paper: in short, differences drawn, and every outcome in a table.

use report::{Axis, Column, Fact, Figure, Page, Section, Series, Style, Table};

use crate::Ours;
use crate::data::Entry;
use crate::judge::{Comparison, LARGE, Row, Summary, Verdict};

/// The page of all comparisons.
pub fn page(all: &[Comparison]) -> Page {
    let count =
        |of: &dyn Fn(&Summary) -> usize| all.iter().map(|own| of(&own.summary)).sum::<usize>();
    let outcomes = count(&|own| own.outcomes);
    let subtitle = format!("{outcomes} printed outcomes of {} papers, each beside ours", all.len());
    let mut page = Page::new("Papers, figure by figure", subtitle)
        .provenance("wearmark", env!("CARGO_PKG_VERSION"))
        .provenance("command", "wearmark papers --html FILE");
    page.verdict = vec![
        fact(
            "Figures compared",
            format!("{}", count(&|own| own.compared)),
            median(all).map_or_else(String::new, |median| {
                format!("median difference {:.1} %, without sign", median * 100.0)
            }),
        ),
        fact(
            "Statements that hold",
            format!("{} of {}", count(&|own| own.hold), count(&|own| own.statements)),
            "directions, bounds and ranges".to_owned(),
        ),
        fact(
            "Not compared",
            format!("{}", count(&|own| own.not_compared) + count(&|own| own.not_run)),
            format!("each with its reason; {} more are given back", count(&|own| own.given_back)),
        ),
    ];
    for comparison in all {
        page = page.section(section(comparison));
    }
    page
}

fn fact(label: &str, value: String, detail: String) -> Fact {
    Fact { label: label.to_owned(), value, detail, caution: false }
}

/// Median difference over all papers.
pub fn median(all: &[Comparison]) -> Option<f64> {
    let rows = all.iter().flat_map(|own| &own.rows);
    let compared = rows.filter(|row| row.verdict == Verdict::Compared);
    let mut sorted: Vec<f64> = compared.filter_map(|row| row.difference).map(f64::abs).collect();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
    Some(f64::midpoint(sorted[low], sorted[high]))
}

fn section(comparison: &Comparison) -> Section {
    let Comparison { paper, title, cite, inputs, rows, summary } = comparison;
    let facts = format!("{inputs} entries are facts of the setup or context, and not compared.");
    let mut made = Section::new(paper.clone(), title.clone())
        .paragraph(format!("{cite}."))
        .paragraph(in_words(summary))
        .paragraph(facts);
    if let Some(figure) = differences(paper, rows) {
        made = made.figure(figure);
    }
    made.table(table(paper, rows)).table(notes(paper, rows))
}

/// A comparison in a sentence.
pub fn in_words(summary: &Summary) -> String {
    let median = summary.median_difference.map_or_else(String::new, |median| {
        format!(" (median difference {:.1} %, {} above 30 %)", median * 100.0, summary.large)
    });
    let not_run = match summary.not_run {
        0 => String::new(),
        count => format!(", {count} not run"),
    };
    format!(
        "{} outcomes: {} figures compared{median}, {} of {} statements hold, {} given back to the \
         profile that was made from them, {} not compared{not_run}.",
        summary.outcomes,
        summary.compared,
        summary.hold,
        summary.statements,
        summary.given_back,
        summary.not_compared
    )
}

/// Ours over printed, in the order of the paper.
fn differences(paper: &str, rows: &[Row]) -> Option<Figure> {
    let compared = rows.iter().filter(|row| row.verdict == Verdict::Compared);
    let ratios: Vec<f64> = compared.filter_map(|row| Some(row.difference? + 1.0)).collect();
    let points: Vec<(f64, f64)> =
        ratios.iter().enumerate().map(|(at, ratio)| (at as f64 + 1.0, *ratio)).collect();
    let last = points.len() as f64;
    let line =
        |name: &str, at: f64| Series::new(name, Style::Line, vec![(1.0, at), (last.max(2.0), at)]);
    let series = vec![
        Series::new("ours over printed", Style::Points, points),
        line("the same", 1.0),
        line("30 % more", 1.0 + LARGE),
        line("30 % less", 1.0 - LARGE),
    ];
    (last >= 5.0).then(|| {
        Figure::lines(
            format!("{paper}-differences"),
            "Ours over printed",
            Axis::linear("Figures in the order of the table", ""),
            Axis::log10("Ours over printed", "times"),
            series,
        )
        .caption("Compared figures only; the table below names each.")
    })
}

fn table(paper: &str, rows: &[Row]) -> Table {
    let columns = vec![
        Column::text("Outcome"),
        Column::text("Where"),
        Column::text("Printed"),
        Column::text("Ours"),
        Column::number("Difference", "%"),
        Column::text("Verdict"),
    ];
    let table = Table::new(format!("{paper}-outcomes"), "Every outcome", columns);
    rows.iter().fold(table, |table, row| table.row(cells(row)))
}

/// What was simulated for each, and why it differs or is missing.
fn notes(paper: &str, rows: &[Row]) -> Table {
    let columns = vec![
        Column::text("Outcome"),
        Column::text("What was simulated or computed"),
        Column::text("Why it differs, or is not compared"),
    ];
    let table = Table::new(format!("{paper}-notes"), "How, and why not", columns);
    rows.iter().fold(table, |table, row| {
        table.row([row.entry.id.as_str(), row.how.as_str(), row.why.as_str()])
    })
}

fn cells(row: &Row) -> [String; 6] {
    let entry = &row.entry;
    [
        entry.id.clone(),
        entry.place.clone(),
        printed(entry),
        ours(row),
        row.difference.map_or_else(String::new, |own| format!("{:+.1}", own * 100.0)),
        verdict(row.verdict).to_owned(),
    ]
}

/// The printed figure with its unit and conditions.
fn printed(entry: &Entry) -> String {
    let conditions = match entry.conditions.as_str() {
        "" => String::new(),
        conditions => format!(" ({conditions})"),
    };
    let text = format!("{} {}", entry.text(), entry.unit);
    format!("{}{conditions}", text.trim_end())
}

fn ours(row: &Row) -> String {
    match row.ours {
        None => String::new(),
        Some(Ours::Holds(true)) => "so here".to_owned(),
        Some(Ours::Holds(false)) => "not so here".to_owned(),
        Some(Ours::Value(value)) => {
            let digits = match value.abs() {
                size if size >= 1000.0 => format!("{value:.0}"),
                size if size >= 10.0 => format!("{value:.1}"),
                _ => format!("{value:.3}"),
            };
            format!("{digits} {}", row.entry.unit).trim_end().to_owned()
        }
    }
}

/// A verdict as a word.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Compared => "compared",
        Verdict::Holds => "holds",
        Verdict::Fails => "does not hold",
        Verdict::GivenBack => "given back",
        Verdict::NotCompared => "not compared",
        Verdict::NotRun => "not run",
    }
}

/// Outcomes as rows of cells for the terminal, the first one the header.
pub fn text(comparison: &Comparison) -> Vec<Vec<String>> {
    let header = ["OUTCOME", "PRINTED", "OURS", "DIFFERENCE", "VERDICT"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for row in &comparison.rows {
        let [id, _, _, ours, difference, verdict] = cells(row);
        let figure = row.entry.number().is_some() || row.entry.range().is_some();
        let printed = format!("{} {}", row.entry.text(), row.entry.unit);
        let printed = if figure { printed.trim_end().to_owned() } else { "statement".to_owned() };
        let difference = if difference.is_empty() { difference } else { format!("{difference} %") };
        rows.push(vec![id, printed, ours, difference, verdict]);
    }
    rows
}
