//! The page of a study whose load really ran, here and on emulated devices: the devices ranked,
//! with what was measured beside what was predicted, and the run that the predictions rest on.

use predict::Limit;
use report::{Axis, BarSeries, Column, Figure, Page, Section, Table, format};

use super::transactions;
use crate::prove::{By, Compared, DeviceIo, HERE, Place};
use crate::result::StudyResult;
use crate::runs::Run;
use crate::runs::page::{limited_by, server_section};

/// Fills the page of a study with its cards and sections; `captured` is the run here that the
/// predictions rest on.
pub(super) fn fill(page: Page, captured: &Run, result: &StudyResult) -> Page {
    let accounts = captured.accounts_of_io();
    let page = headline(page, captured, result)
        .section(devices(result))
        .section(by_kind(result))
        .section(transactions::section(&captured.result, accounts.as_ref()));
    match &captured.server {
        Some(server) => page.section(server_section(server)),
        None => page,
    }
}

fn headline(page: Page, captured: &Run, result: &StudyResult) -> Page {
    let Some(here) = result.places.first() else { return page };
    let page = match throughput(here) {
        Some(here) => page.fact(
            "This disk",
            format!("{} transactions per minute", format::count(here.measured)),
            spread_words(here.spread),
        ),
        None => page,
    };
    let limits = measured_limits(captured);
    let limits = if limits.is_empty() { predicted_limits(here) } else { limits };
    let page = limited_by(page, limits);
    let ranked = ranked(result);
    let others = || ranked.iter().copied().filter(|place| place.name != HERE);
    let page = match others().next() {
        Some(best) => page.fact("Fastest of the others", best.name.clone(), speed_words(best)),
        None => page,
    };
    let dear = |place: &&Place| usd_per_million(place).unwrap_or(f64::MAX);
    let page = match others().min_by(|a, b| dear(a).total_cmp(&dear(b))) {
        Some(cheapest) if usd_per_million(cheapest).is_some() => page.fact(
            "Cheapest transactions",
            cheapest.name.clone(),
            format!("{} per million; {}", usd(dear(&cheapest)), speed_words(cheapest)),
        ),
        _ => page,
    };
    let errors: Vec<f64> =
        emulated(result).filter_map(|place| throughput(place)?.error()).collect();
    match errors.iter().map(|error| error.abs()).reduce(f64::max) {
        Some(worst) => page.fact(
            "Error of the predictions",
            format!("{} at most", format::percent(worst)),
            format!("of transactions per minute, on {} devices", errors.len()),
        ),
        None => page,
    }
}

/// Where the time of the captured run went, as measured.
fn measured_limits(captured: &Run) -> &[Limit] {
    captured.server.as_ref().map_or(&[], |server| &server.limits)
}

fn predicted_limits(place: &Place) -> &[Limit] {
    place.predicted.as_ref().map_or(&[], |found| &found.limits)
}

fn speed_words(place: &Place) -> String {
    format!("{} transactions per minute", format::count(speed(place)))
}

/// What a million transactions cost at a place, where its price is known.
fn usd_per_million(place: &Place) -> Option<f64> {
    let per_min = speed(place);
    place.cost.as_ref().filter(|_| per_min > 0.0).map(|cost| cost.usd_per_million(per_min))
}

fn usd(usd: f64) -> String {
    match usd {
        large if large >= 100.0 => format!("{large:.0} USD"),
        middle if middle >= 1.0 => format!("{middle:.2} USD"),
        small => format!("{small:.3} USD"),
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

/// `log flush 62 %, processors 30 %`.
fn limit_words(limits: &[Limit]) -> String {
    let words = limits
        .iter()
        .take(2)
        .map(|limit| format!("{} {}", limit.what, format::percent(limit.share)));
    let words: Vec<String> = words.collect();
    if words.is_empty() { format::NOTHING.to_owned() } else { words.join(", ") }
}

fn devices(result: &StudyResult) -> Section {
    let places = ranked(result);
    let names = places.iter().map(|place| name(place)).collect();
    let measured: Vec<_> = places.iter().map(|place| throughput(place)).collect();
    let ends = |place: &&&Place| {
        let runs = place.runs.iter().map(|run| run.figures.transactions_per_min);
        runs.clone().reduce(f64::min).zip(runs.reduce(f64::max)).unwrap_or((f64::NAN, f64::NAN))
    };
    let measured_series = BarSeries::new(
        "measured",
        measured.iter().map(|found| found.as_ref().map_or(f64::NAN, |one| one.measured)).collect(),
    )
    .interval(places.iter().map(|place| ends(&place)).collect());
    // This disk comes out as it was captured: that is no prediction.
    let predicted = |place: &&Place| {
        let predicted = place.expected().filter(|_| place.name != HERE);
        predicted.map_or(f64::NAN, |figures| figures.transactions_per_min)
    };
    let predicted_series = BarSeries::new("predicted", places.iter().map(predicted).collect());
    let figure = Figure::bars(
        "transactions-per-device",
        format!("Transactions per minute: really run, and predicted {}", by(&places)),
        names,
        Axis::linear("Transactions per minute", ""),
        vec![measured_series, predicted_series],
    )
    .caption("Intervals are the slowest and fastest run at a place.");
    let section = Section::new("devices", "Here and on other devices").paragraph(
        "The load really ran at every place with a measured figure, on an emulated device of \
         that profile, each time from the same copy of the database. Rounds went through the \
         places forwards and backwards in turns. A/A is the spread of the runs at one place \
         over their median: no error below it means anything. Where that was allowed, idle \
         processors polled instead of sleeping in all of these runs, so that places differ by \
         their devices alone.",
    );
    let section = match machine_speed(&places) {
        Some(text) => section.paragraph(text),
        None => section,
    };
    section.figure(figure).table(rank_table(&places)).table(about_table(&places))
}

/// How fast the processors were in the runs, which the predictions beside them are for.
fn machine_speed(places: &[&Place]) -> Option<String> {
    let found = places.iter().filter(|place| place.name != HERE).find_map(|place| {
        let as_run = place.as_run.as_ref()?;
        (as_run.speed != 1.0).then_some(as_run.speed)
    })?;
    Some(format!(
        "In these runs processors had {} of the speed that they had in the capture, by what the \
         machine computed for each transaction on this disk; predictions beside them are for that \
         speed.",
        format::percent(found)
    ))
}

fn name(place: &Place) -> String {
    if place.name == HERE { "this disk".to_owned() } else { place.name.clone() }
}

/// Heads of the ranking.
const HEADS: [&str; 9] = [
    "Device",
    "Transactions/min",
    "p99",
    "USD/month",
    "USD/million",
    "Predicted",
    "Error",
    "A/A",
    "Limited by",
];

/// The devices, fastest first, as rows for the terminal: a head, then one a device.
pub fn ranking(result: &StudyResult) -> Vec<Vec<String>> {
    let head = HEADS.iter().map(|head| head.to_uppercase()).collect();
    let places = ranked(result);
    std::iter::once(head).chain(rows(&places)).collect()
}

/// One row a place. In parentheses stands its rank in a column that more than one place has.
fn rows(places: &[&Place]) -> Vec<Vec<String>> {
    let column =
        |of: &dyn Fn(&Place) -> Option<f64>, more_is_better: bool, text: fn(f64) -> String| {
            let values: Vec<Option<f64>> = places.iter().map(|place| of(place)).collect();
            let rank = |value: f64| {
                let is_ahead =
                    |other: &&f64| if more_is_better { **other > value } else { **other < value };
                1 + values.iter().flatten().filter(is_ahead).count()
            };
            let is_ranked = values.iter().flatten().count() > 1;
            let cell = |value: &Option<f64>| match value {
                Some(value) if is_ranked => format!("{} ({})", text(*value), rank(*value)),
                Some(value) => text(*value),
                None => format::NOTHING.to_owned(),
            };
            values.iter().map(cell).collect::<Vec<String>>()
        };
    let measured = |place: &Place| throughput(place).map(|found| found.measured);
    let columns = [
        column(&measured, true, format::count),
        column(&p99_ms, false, ms),
        column(&|place| Some(place.cost.as_ref()?.usd_per_month), false, |usd| format!("{usd:.2}")),
        column(&usd_per_million, false, |usd| format!("{usd:.3}")),
    ];
    let row = |(index, place): (usize, &&Place)| {
        let [per_min, p99, month, million] = columns.each_ref().map(|column| column[index].clone());
        let nothing = || format::NOTHING.to_owned();
        // This disk comes out as it was captured: that is no prediction.
        let predicted = place.expected().filter(|_| place.name != HERE);
        let found = throughput(place);
        let error = found.as_ref().and_then(Compared::error).filter(|_| place.name != HERE);
        let predicted =
            predicted.map_or_else(nothing, |one| format::count(one.transactions_per_min));
        let (error, spread) = (
            error.map_or_else(nothing, signed),
            found.and_then(|found| found.spread).map_or_else(nothing, format::percent),
        );
        let limits = limit_words(predicted_limits(place));
        vec![name(place), per_min, p99, month, million, predicted, error, spread, limits]
    };
    places.iter().enumerate().map(row).collect()
}

/// What the predictions come from.
fn by(places: &[&Place]) -> &'static str {
    let engine = |place: &&Place| place.predicted.as_ref().is_some_and(|one| one.by == By::Engine);
    if places.iter().any(engine) {
        "by the engine itself in virtual time"
    } else {
        "from the capture here"
    }
}

/// p99 of the kind that the ranking shows: the first of the workload.
fn p99_ms(place: &Place) -> Option<f64> {
    let figures = place.compared();
    let found = figures.iter().find(|figure| figure.name.ends_with("p99 ms"))?;
    Some(found.measured)
}

fn rank_table(places: &[&Place]) -> Table {
    let mut columns = vec![Column::text(HEADS[0])];
    columns.extend(HEADS[1..8].iter().map(|head| Column::number(*head, "")));
    columns.push(Column::text(HEADS[8]));
    let caption = "In parentheses: the rank. p99 is that of the first kind of transaction below. \
                   USD per million transactions is for a device that is as busy around the clock; \
                   only storage is counted. Limited by: shares of the response time, simulated; on \
                   this disk with the factor that makes the capture itself come out right, where \
                   other programs did not disturb it.";
    let table = Table::new("device-table", "Devices, fastest first", columns).caption(caption);
    rows(places).into_iter().fold(table, Table::row)
}

/// What each device is, what its price is and how much of it is assumed.
fn about_table(places: &[&Place]) -> Table {
    let columns = ["Device", "What it is", "What is paid for", "Values assumed"].map(Column::text);
    let table = Table::new("about-table", "What they are", columns.to_vec());
    places.iter().filter(|place| place.name != HERE).fold(table, |table, place| {
        let paid = place.cost.as_ref().map_or_else(
            || "no price in its profile, or too small".to_owned(),
            |cost| {
                format!(
                    "{}{}",
                    cost.terms,
                    if cost.assumed { "; the price is assumed" } else { "" }
                )
            },
        );
        let not_predicted = place.not_predicted.as_ref();
        let why = not_predicted.map_or_else(String::new, |why| format!(" Not predicted: {why}."));
        table.row([
            name(place),
            format!("{}{why}", place.description),
            paid,
            format!("{} of {}", place.assumed_values, place.values),
        ])
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
    if let Some(table) = io(result) {
        section = section.table(table);
    }
    for place in emulated(result) {
        if let Some(run) = place.runs.last() {
            let alone = place.predicted.as_ref().map_or_else(String::new, |found| {
                let per_min = format::count(found.figures.transactions_per_min);
                format!(": {per_min} transactions per minute are predicted there")
            });
            section = section.paragraph(format!(
                "{}: its answers were at most {:.0} us late (p99), and the emulator itself used \
                 {} of the processors, which a real device leaves to the load{alone}.",
                place.name,
                run.lateness_us_p99.unwrap_or(0.0),
                format::percent(place.emulator_share().unwrap_or(0.0))
            ));
        }
    }
    section
}

/// What each emulated device was asked, beside what was predicted.
fn io(result: &StudyResult) -> Option<Table> {
    let columns = vec![
        Column::text("Device"),
        Column::text("Requests"),
        Column::number("Measured", "per transaction"),
        Column::number("Predicted", "per transaction"),
        Column::number("Bytes measured", ""),
        Column::number("Bytes predicted", ""),
    ];
    let title = "What devices are asked, per transaction";
    let mut table = Table::new("io-table", title, columns);
    let dash = || format::NOTHING.to_owned();
    let mut any = false;
    for place in emulated(result) {
        let Some(run) = place.runs.last() else { continue };
        for io in run.io.iter().filter(|io| io.requests > 0.0) {
            let predicted = place.predicted.as_ref().and_then(|found| {
                let known = !found.io.is_empty();
                let none = || DeviceIo { op: io.op.clone(), requests: 0.0, bytes: 0.0 };
                let own = found.io.iter().find(|other| other.op == io.op).cloned();
                known.then(|| own.unwrap_or_else(none))
            });
            any = true;
            let bytes = |bytes: f64| if io.bytes > 0.0 { format::bytes(bytes) } else { dash() };
            table = table.row([
                name(place),
                io.op.clone(),
                format!("{:.3}", io.requests),
                predicted.as_ref().map_or_else(dash, |own| format!("{:.3}", own.requests)),
                bytes(io.bytes),
                predicted.map_or_else(dash, |own| bytes(own.bytes)),
            ]);
        }
    }
    any.then_some(table)
}
