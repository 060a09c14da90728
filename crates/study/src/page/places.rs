//! The page of a study whose load really ran, here and on emulated devices: the devices ranked, with
//! what was measured beside what was predicted, and the run that the predictions rest on.

use report::{Axis, BarSeries, Column, Figure, Page, Section, Table, format};

use super::transactions;
use crate::prove::{Compared, HERE, Place};
use crate::result::StudyResult;
use crate::runs::{Run, page::server_section};

/// Fills the page of a study with its cards and sections; `captured` is the run here that the
/// predictions rest on.
pub(super) fn fill(page: Page, captured: &Run, result: &StudyResult) -> Page {
    let accounts = captured.accounts_of_io();
    let page = headline(page, result)
        .section(devices(result))
        .section(by_kind(result))
        .section(transactions::section(&captured.result, accounts.as_ref()));
    match &captured.server {
        Some(server) => page.section(server_section(server)),
        None => page,
    }
}

fn headline(page: Page, result: &StudyResult) -> Page {
    let Some(here) = result.places.first() else { return page };
    let page = match throughput(here) {
        Some(here) => page.fact(
            "Here",
            format!("{} transactions per minute", format::count(here.measured)),
            spread_words(here.spread),
        ),
        None => page,
    };
    let page = match limit_words(here).split_once(", then ") {
        Some((first, rest)) => page.fact("Limited by", first, format!("then {rest}")),
        None => page.fact("Limited by", limit_words(here), "share of the response time, simulated"),
    };
    let page = match ranked(result).into_iter().find(|place| place.name != HERE) {
        Some(best) => {
            let found = throughput(best).map_or(0.0, |found| found.measured);
            let per_min = format!("{} transactions per minute", format::count(found));
            page.fact("Fastest of the other devices", best.name.clone(), per_min)
        }
        None => page,
    };
    let errors: Vec<f64> =
        emulated(result).filter_map(|place| throughput(place)?.error()).collect();
    match errors.iter().map(|error| error.abs()).reduce(f64::max) {
        Some(worst) => page.fact(
            "Error of the predictions",
            format!("{} at most", format::percent(worst)),
            format!("of transactions per minute, on {} devices; the runs decide", errors.len()),
        ),
        None => page,
    }
}

fn emulated(result: &StudyResult) -> impl Iterator<Item = &Place> {
    result.places.iter().filter(|place| place.name != HERE && !place.runs.is_empty())
}

fn spread_words(spread: Option<f64>) -> String {
    match spread {
        Some(spread) => format!("its runs differ by {} (A/A)", format::percent(spread)),
        None => "one run: there is no A/A".to_owned(),
    }
}

/// Transactions per minute: what was measured, else what was predicted.
fn throughput(place: &Place) -> Option<Compared> {
    place.compared().into_iter().next()
}

/// What can be said of a place's speed: its measurement, else its prediction.
fn speed(place: &Place) -> f64 {
    let predicted = || place.predicted.as_ref().map(|found| found.figures.transactions_per_min);
    throughput(place).map(|found| found.measured).or_else(predicted).unwrap_or(0.0)
}

/// The places, fastest first.
fn ranked(result: &StudyResult) -> Vec<&Place> {
    let mut places: Vec<&Place> = result.places.iter().collect();
    places.sort_by(|a, b| speed(b).total_cmp(&speed(a)));
    places
}

/// `log flush 62 %, then processors 30 %`.
fn limit_words(place: &Place) -> String {
    let limits = place.predicted.as_ref().map_or(&[][..], |found| &found.limits);
    let words = limits
        .iter()
        .take(2)
        .map(|limit| format!("{} {}", limit.what, format::percent(limit.share)));
    let words: Vec<String> = words.collect();
    if words.is_empty() { format::NOTHING.to_owned() } else { words.join(", then ") }
}

fn devices(result: &StudyResult) -> Section {
    let places = ranked(result);
    let names = places.iter().map(|place| name(place)).collect();
    let measured: Vec<_> = places.iter().map(|place| throughput(place)).collect();
    let ends = |place: &&&Place| {
        let runs = place.runs.iter().map(|run| run.figures.transactions_per_min);
        runs.clone().reduce(f64::min).zip(runs.reduce(f64::max)).unwrap_or((0.0, 0.0))
    };
    let measured_series = BarSeries::new(
        "measured",
        measured.iter().map(|found| found.as_ref().map_or(0.0, |found| found.measured)).collect(),
    )
    .interval(places.iter().map(|place| ends(&place)).collect());
    let predicted = |place: &&Place| {
        place.predicted.as_ref().map_or(0.0, |found| found.figures.transactions_per_min)
    };
    let predicted_series = BarSeries::new("predicted", places.iter().map(predicted).collect());
    let figure = Figure::bars(
        "transactions-per-device",
        "Transactions per minute: really run, and predicted from the capture here",
        names,
        Axis::linear("Transactions per minute", ""),
        vec![measured_series, predicted_series],
    )
    .caption("Intervals are the slowest and fastest run at a place.");
    Section::new("devices", "Here and on other devices")
        .paragraph(
            "The load really ran at every place with a measured figure, on an emulated device of \
             that profile, each time from the same copy of the database. Rounds went through the \
             places forwards and backwards in turns. A/A is the spread of the runs at one place over \
             their median: no error below it means anything.",
        )
        .figure(figure)
        .table(rank_table(&places))
}

fn name(place: &Place) -> String {
    if place.name == HERE { "this disk".to_owned() } else { place.name.clone() }
}

/// What the table of devices says of one of them.
struct Ranked {
    cells: [String; 7],
    assumed: String,
    description: String,
}

/// Heads of [`Ranked::cells`].
const HEADS: [&str; 7] =
    ["Device", "Transactions/min", "p99", "Predicted", "Error", "A/A", "Limited by"];

impl Ranked {
    fn of(place: &Place) -> Self {
        let nothing = || format::NOTHING.to_owned();
        let figures = place.compared();
        let measured = figures.first();
        let p99 = figures.iter().find(|figure| figure.name.ends_with("p99 ms"));
        // This disk comes out as it was captured: that is no prediction.
        let is_predicted = place.name != HERE;
        let predicted = place.predicted.as_ref().filter(|_| is_predicted);
        let error = measured.and_then(Compared::error).filter(|_| is_predicted);
        let why = place.not_predicted.as_ref();
        Self {
            cells: [
                name(place),
                measured.map_or_else(nothing, |found| format::count(found.measured)),
                p99.map_or_else(nothing, |p99| ms(p99.measured)),
                predicted.map_or_else(nothing, |found| {
                    format::count(found.figures.transactions_per_min)
                }),
                error.map_or_else(nothing, signed),
                measured.and_then(|found| found.spread).map_or_else(nothing, format::percent),
                limit_words(place),
            ],
            assumed: match place.values {
                0 => nothing(),
                all => format!("{} of {all}", place.assumed_values),
            },
            description: why.map_or_else(
                || place.description.clone(),
                |why| format!("{} Not predicted: {why}.", place.description),
            ),
        }
    }
}

/// The devices, fastest first, as rows for the terminal: a head, then one a device.
pub fn ranking(result: &StudyResult) -> Vec<Vec<String>> {
    let head = HEADS.iter().map(|head| head.to_uppercase()).collect();
    let rows = ranked(result).into_iter().map(|place| Ranked::of(place).cells.to_vec());
    std::iter::once(head).chain(rows).collect()
}

fn rank_table(places: &[&Place]) -> Table {
    let mut columns = vec![Column::text(HEADS[0])];
    columns.extend(HEADS[1..6].iter().map(|head| Column::number(*head, "")));
    columns.extend([HEADS[6], "Values assumed", "What it is"].map(Column::text));
    let caption = "p99 is that of the first kind of transaction below. Limited by: shares of the \
                   response time, simulated; on this disk with the factor that makes the capture \
                   itself come out right.";
    let table = Table::new("device-table", "Devices, fastest first", columns).caption(caption);
    places.iter().fold(table, |table, place| {
        let Ranked { cells, assumed, description } = Ranked::of(place);
        table.row(cells.into_iter().chain([assumed, description]))
    })
}

fn ms(ms: f64) -> String {
    format::duration_ns(ms * 1e6)
}

fn signed(share: f64) -> String {
    format!("{:+.0} %", share * 100.0)
}

/// Response times of every kind at every place.
fn by_kind(result: &StudyResult) -> Section {
    let columns = vec![
        Column::text("Device"),
        Column::text("Figure"),
        Column::number("Measured", ""),
        Column::number("Predicted", ""),
        Column::number("Error", ""),
        Column::number("A/A", ""),
    ];
    let mut table = Table::new("kinds-table", "Response times by kind and device", columns);
    let dash = || format::NOTHING.to_owned();
    for place in &result.places {
        for figure in place.compared().into_iter().skip(1) {
            let is_here = place.name == HERE;
            let predicted = figure.predicted.filter(|_| !is_here);
            table = table.row([
                name(place),
                figure.name.trim_end_matches(" ms").to_owned(),
                ms(figure.measured),
                predicted.map_or_else(dash, ms),
                figure.error().filter(|_| !is_here).map_or_else(dash, signed),
                figure.spread.map_or_else(dash, format::percent),
            ]);
        }
    }
    let mut section = Section::new("kinds", "How long transactions take").table(table);
    for place in emulated(result) {
        if let Some(run) = place.runs.last() {
            let io: Vec<String> =
                run.io.iter().map(|io| format!("{:.2} {}", io.requests, io.op)).collect();
            section = section.paragraph(format!(
                "{}: {} requests per transaction; its answers were at most {:.0} us late (p99).",
                place.name,
                io.join(", "),
                run.lateness_us_p99.unwrap_or(0.0)
            ));
        }
    }
    section
}
