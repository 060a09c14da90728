//! The section about other devices: what the captured transactions would do there.

use report::{Axis, BarSeries, Column, Figure, Section, Table, format};

use crate::result::StudyResult;
use crate::scenarios::ScenarioResult;

/// Builds the section.
pub fn section(result: &StudyResult) -> Section {
    let scenarios = &result.scenarios;
    let measured = result.oltp.transactions_per_min;
    let mut names = vec!["this disk, measured".to_owned()];
    let (mut rates, mut intervals) = (vec![measured], vec![(measured, measured)]);
    for scenario in scenarios.iter().filter(|scenario| !scenario.fitted) {
        let Some(prediction) = scenario.prediction else { continue };
        names.push(format!("{} ({})", scenario.profile, scenario.assumptions()));
        rates.push(prediction.transactions_per_min);
        let ends = (prediction.transactions_per_min_low, prediction.transactions_per_min_high);
        intervals.push(ends);
    }
    let figure = Figure::bars(
        "transactions-per-device",
        "Transactions per minute: measured here, predicted for the others",
        names,
        Axis::linear("Transactions per minute", ""),
        vec![BarSeries::new("transactions per minute", rates).interval(intervals)],
    )
    .caption(
        "A prediction is measured here x simulated there / simulated here. Its interval holds the \
         bias of the simulation on this disk, E weighted by the time waited, and what halving or \
         doubling each assumed value changes.",
    )
    .source("after Wang et al. 2011, fig. 6");
    Section::new("scenarios", "Here and on other devices")
        .paragraph(
            "Simulated with the captured I/O of the run below. What a faster device would change \
             beyond I/O times (group commits, lock waits) is kept as captured.",
        )
        .paragraph(doubts(result))
        .figure(figure)
        .table(table(scenarios))
        .table(class_table(scenarios))
}

/// What the reader must know before he compares bars.
fn doubts(result: &StudyResult) -> String {
    let measured = result.oltp.transactions_per_min;
    let here = result.scenarios.iter().find(|scenario| scenario.fitted);
    let simulated = here.map_or(measured, |here| here.transactions_per_min);
    let bias = format!(
        "On this disk itself {} transactions per minute are simulated and {} were measured ({:+.0} \
         %).",
        format::count(simulated),
        format::count(measured),
        (simulated / measured - 1.0) * 100.0
    );
    match &result.advice {
        Some(advice) if !advice.withheld.is_empty() => {
            format!("{bias} No advice: {}.", advice.withheld.join("; "))
        }
        _ => bias,
    }
}

fn name(scenario: &ScenarioResult) -> String {
    if scenario.fitted { "this disk, simulated".into() } else { scenario.profile.clone() }
}

fn table(scenarios: &[ScenarioResult]) -> Table {
    let columns = vec![
        Column::text("Device"),
        Column::number("New orders, predicted", "/min"),
        Column::text("Interval"),
        Column::text("Values assumed"),
        Column::number("Simulated", "/min"),
        Column::number("I/O part of a transaction, p50", ""),
        Column::number("p90", ""),
        Column::number("p99", ""),
        Column::number("A connection waits on average", ""),
        Column::text("What it is"),
    ];
    let caption = "The I/O part runs from the first to the last I/O of a transaction: it is not \
                   the response time of the tables below, which counts the wait for a turn too. \
                   The average connection waits less than the writer of the first screen, since \
                   readers find most pages in the buffer.";
    let table = Table::new("device-table", "Devices", columns).caption(caption);
    scenarios.iter().fold(table, |table, scenario| {
        table.row([
            name(scenario),
            predicted(scenario).0,
            predicted(scenario).1,
            format!("{} of {}", scenario.assumed_values, scenario.values),
            format::count(scenario.new_orders_per_min),
            format::duration_ns(scenario.transaction_ns_p50 as f64),
            format::duration_ns(scenario.transaction_ns_p90 as f64),
            format::duration_ns(scenario.transaction_ns_p99 as f64),
            format::percent(scenario.waiting_share),
            scenario.description.clone(),
        ])
    })
}

/// New orders per minute and their interval.
fn predicted(scenario: &ScenarioResult) -> (String, String) {
    let Some(of) = scenario.prediction else {
        return (format::NOTHING.to_owned(), "measured above".to_owned());
    };
    let share = of.new_orders_per_min / of.transactions_per_min;
    let end = |per_min: f64| format::count(per_min * share);
    let interval =
        format!("{} to {}", end(of.transactions_per_min_low), end(of.transactions_per_min_high));
    (format::count(of.new_orders_per_min), interval)
}

fn class_table(scenarios: &[ScenarioResult]) -> Table {
    let mut columns = vec![Column::text("Request")];
    columns.extend(scenarios.iter().map(|scenario| Column::number(name(scenario), "")));
    let caption = "Mean time of a request on each device, by operation and file class.";
    let table = Table::new("device-class-table", "Where the time goes", columns).caption(caption);
    let Some(first) = scenarios.first() else { return table };
    first.classes.iter().fold(table, |table, class| {
        let mut row = vec![format!("{} {}", class.stream, class.op)];
        row.extend(scenarios.iter().map(|scenario| {
            let same =
                |c: &&crate::scenarios::ClassTimes| c.op == class.op && c.stream == class.stream;
            let found = scenario.classes.iter().find(same);
            found.map_or(format::NOTHING.into(), |found| format::duration_ns(found.mean_ns))
        }));
        table.row(row)
    })
}
