//! The section about other devices: what the captured transactions would do there.

use report::{Axis, BarSeries, Column, Figure, Section, Table, format};

use crate::scenarios::ScenarioResult;

/// Builds the section. `measured` is the measured rate of transactions per minute.
pub fn section(scenarios: &[ScenarioResult], measured: f64) -> Section {
    let mut names = vec!["this disk, measured".to_owned()];
    let mut rates = vec![measured];
    for scenario in scenarios {
        names.push(name(scenario));
        rates.push(scenario.transactions_per_min);
    }
    let figure = Figure::bars(
        "transactions-per-device",
        "Transactions per minute",
        names,
        Axis::linear("Transactions per minute", ""),
        vec![BarSeries::new("transactions per minute", rates)],
    )
    .caption(
        "The captured run in a closed loop: every connection keeps its CPU time and waits for the \
         simulated device. The second bar against the first is the error of doing so on this disk.",
    )
    .source("after Wang et al. 2011, fig. 6");
    Section::new("scenarios", "Here and on other devices")
        .paragraph(
            "Simulated with the captured I/O of the run below. What a faster device would change \
             beyond I/O times (group commits, lock waits) is kept as captured.",
        )
        .figure(figure)
        .table(table(scenarios))
        .table(class_table(scenarios))
}

fn name(scenario: &ScenarioResult) -> String {
    if scenario.fitted { "this disk, simulated".into() } else { scenario.profile.clone() }
}

fn table(scenarios: &[ScenarioResult]) -> Table {
    let columns = vec![
        Column::text("Device"),
        Column::number("New orders", "/min"),
        Column::number("Transaction p50", ""),
        Column::number("p90", ""),
        Column::number("p99", ""),
        Column::number("Time waiting for the device", ""),
        Column::text("What it is"),
    ];
    let caption = "Transaction times run from the first to the last I/O of a transaction, without \
                   waiting for its turn.";
    let table = Table::new("device-table", "Devices", columns).caption(caption);
    scenarios.iter().fold(table, |table, scenario| {
        table.row([
            name(scenario),
            format::count(scenario.new_orders_per_min),
            format::duration_ns(scenario.transaction_ns_p50 as f64),
            format::duration_ns(scenario.transaction_ns_p90 as f64),
            format::duration_ns(scenario.transaction_ns_p99 as f64),
            format::percent(scenario.waiting_share),
            scenario.description.clone(),
        ])
    })
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
