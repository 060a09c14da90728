//! Pages of runs: one configuration repeated, one setting swept, two sets compared.

use oltp::Workload;
use predict::Limit;
use report::{Axis, BarSeries, Column, Figure, Page, Section, Series, Style, Table, format};

use super::{Run, RunSet, ServerRun, transactions};
use crate::verdict::{Compared, Verdict};

/// The page of a set.
pub fn page(set: &RunSet, title: &str) -> Page {
    let Some(last) = set.runs.last() else { return Page::new(title, "no run was made") };
    let result = &last.result;
    let subtitle = format!(
        "{}, {}, {} users, {} runs",
        result.dbms,
        result.dataset,
        result.options.users,
        set.runs.len()
    );
    let mut page = facts(Page::new(title, subtitle), set);
    if let Some(over) = &set.over {
        page = page.section(sweep(set, over));
    }
    let accounts = last.accounts_of_io();
    page = page.section(table(set)).section(transactions::section(result, accounts.as_ref()));
    if let Some(server) = &last.server {
        page = page.section(server_section(server));
    }
    for run in &set.runs {
        for warning in &run.result.warnings {
            if !page.warnings.iter().any(|known| known.code == warning.code) {
                page.warnings.push(warning.clone());
            }
        }
    }
    provenance(page, set)
}

/// What the server counted itself, who used the processors, and whether the sums close.
pub(crate) fn server_section(server: &ServerRun) -> Section {
    let mut section = Section::new("server", "The server");
    for note in &server.notes {
        section = section.paragraph(note.clone());
    }
    if let Some(seen) = &server.accounts {
        let parts = seen.cpu_us_per_transaction.iter();
        let (names, values): (Vec<String>, Vec<f64>) =
            parts.map(|(name, us)| (name.clone(), *us)).unzip();
        section = section.figure(Figure::bars(
            "server-cpu",
            "Processor time per transaction, by whom",
            names,
            Axis::linear("Processor time", "us"),
            vec![BarSeries::new("per transaction", values)],
        ));
        for closure in &seen.closures {
            section = section.paragraph(format!(
                "{}: the classes add up to {}, the kernel counted {} ({}); {} of it was others'.",
                closure.disk,
                format::bytes(closure.traced_bytes as f64),
                format::bytes(closure.counted_bytes as f64),
                if closure.closes { "closed" } else { "NOT closed" },
                format::percent(closure.foreign_share),
            ));
        }
        for missing in &seen.unavailable {
            section = section.paragraph(format!("Not seen: {missing}."));
        }
    }
    let Some(activity) = &server.activity else { return section };
    let columns = vec![Column::text("The server's own count"), Column::number("Measured", "")];
    let mut table = Table::new("server-activity", "What the server counted", columns);
    let counts = [
        ("commits", activity.commits),
        ("rollbacks", activity.rollbacks),
        ("deadlocks", activity.deadlocks),
        ("pages asked of the buffer", activity.page_requests),
        ("pages read", activity.page_reads),
        ("pages written", activity.page_writes),
        ("doublewrite pages", activity.doublewrite_pages),
        ("page images in the log", activity.page_images_in_log),
        ("bytes of log", activity.log_bytes),
        ("writes of log", activity.log_writes),
        ("syncs of the log", activity.log_syncs),
        ("syncs of all files", activity.syncs),
        ("bytes of temporary files", activity.temp_bytes),
        ("checkpoints", activity.checkpoints),
        ("old versions kept at the end", activity.history_length),
    ];
    for (name, count) in counts {
        if let Some(count) = count {
            table = table.row([name.to_owned(), format::count(count as f64)]);
        }
    }
    if let Some(group) = server.commits_per_log_sync() {
        table = table.row(["commits per sync of the log".to_owned(), format!("{group:.2}")]);
    }
    section.table(table)
}

fn provenance(mut page: Page, set: &RunSet) -> Page {
    if let Some(run) = set.runs.last() {
        page = page
            .provenance("workload", run.result.disclaimer.clone())
            .provenance("database", run.result.place.clone())
            .provenance("seed", run.result.options.seed.to_string());
        for note in run.server.iter().flat_map(|server| &server.notes) {
            page = page.provenance("server", note.clone());
        }
    }
    for (name, value) in &set.machine {
        page = page.provenance(name.clone(), value.clone());
    }
    page
}

/// The middle, lowest and highest of a figure over the runs that have it.
fn spread(set: &RunSet, of: impl Fn(&Run) -> Option<f64>) -> Option<(f64, f64, f64)> {
    let mut values: Vec<f64> = set.runs.iter().filter_map(of).collect();
    values.sort_unstable_by(f64::total_cmp);
    let (low, high) = (*values.first()?, *values.last()?);
    Some((stats::quantile::quantile_sorted_f64(&values, 0.5), low, high))
}

/// The card of what the time of transactions went to, where that is known.
pub(crate) fn limited_by(page: Page, limits: &[Limit]) -> Page {
    let Some((first, others)) = limits.split_first() else { return page };
    let words = |limit: &Limit| format!("{} {}", limit.what, format::percent(limit.share));
    let others: Vec<String> = others.iter().map(words).collect();
    let rest = format!("of the response time; {}", others.join(", "));
    page.fact("Limited by", words(first), rest)
}

fn facts(page: Page, set: &RunSet) -> Page {
    if set.over.is_some() {
        return page;
    }
    type Of = fn(&Run) -> Option<f64>;
    let throughput: (&str, &str, Of) = match set.runs[0].result.workload {
        Workload::OrderEntry => {
            ("New orders", " per minute", |run| Some(run.result.new_orders_per_min))
        }
        _ => ("Transactions", " per second", |run| Some(run.result.transactions_per_s)),
    };
    let all: [(&str, &str, Of); 3] = [
        throughput,
        ("CPU of the client", " us per transaction", |run| Some(run.client_us())),
        ("CPU of the server", " us per transaction", Run::server_us),
    ];
    let page = match set.runs.last().and_then(|run| run.server.as_ref()) {
        Some(server) => limited_by(page, &server.limits),
        None => page,
    };
    all.into_iter().fold(page, |page, (name, unit, of)| match spread(set, of) {
        Some((middle, low, high)) => {
            let detail = format!("{} to {}", format::count(low), format::count(high));
            page.fact(name, format!("{}{unit}", format::count(middle)), detail)
        }
        None => page,
    })
}

/// Figures against the setting that was swept.
fn sweep(set: &RunSet, over: &str) -> Section {
    let categories: Vec<String> = set.runs.iter().map(|run| run.at.clone()).collect();
    let values = |of: &dyn Fn(&Run) -> f64| -> Vec<f64> { set.runs.iter().map(of).collect() };
    let section = Section::new("sweep", format!("Over {over}"));
    let figure = |id: &str, title: &str, axis: Axis, series: Vec<BarSeries>| {
        Figure::bars(id, title, categories.clone(), axis, series)
    };
    let throughput = match set.runs[0].result.workload {
        Workload::OrderEntry => figure(
            "sweep-throughput",
            "New orders per minute",
            Axis::linear("New orders per minute", ""),
            vec![BarSeries::new("new orders", values(&|run| run.result.new_orders_per_min))],
        ),
        _ => figure(
            "sweep-throughput",
            "Transactions per second",
            Axis::linear("Transactions per second", ""),
            vec![BarSeries::new("transactions", values(&|run| run.result.transactions_per_s))],
        ),
    };
    let kinds = set.runs[0].result.kinds().iter().map(|kind| {
        let p90 = |run: &Run| run.result.of(*kind).map_or(0.0, |found| found.response_ms_p90);
        BarSeries::new(kind.name(), values(&p90))
    });
    let cpu = vec![
        BarSeries::new("client", values(&Run::client_us)),
        BarSeries::new("server", values(&|run| run.server_us().unwrap_or(0.0))),
    ];
    section
        .figure(throughput.source("after Oi 2007"))
        .figure(figure(
            "sweep-p90",
            "90th percentile of the response time",
            Axis::linear("Response time", "ms"),
            kinds.collect(),
        ))
        .figure(Figure::stacked_bars(
            "sweep-cpu",
            "CPU per transaction",
            categories.clone(),
            Axis::linear("CPU per transaction", "us"),
            cpu,
        ))
}

fn table(set: &RunSet) -> Section {
    let columns = vec![
        Column::text(set.over.clone().unwrap_or_else(|| "Run".to_owned())),
        Column::number("Transactions", "/s"),
        Column::number("New orders", "/min"),
        Column::number("Client CPU", "us"),
        Column::number("Server CPU", "us"),
        Column::number("Retries", ""),
        Column::number("Failures", ""),
        Column::text("Audit"),
    ];
    let table = Table::new("runs", "Runs", columns).caption("CPU is per transaction.");
    let table = set.runs.iter().zip(1..).fold(table, |table, (run, number)| {
        let at = if run.at.is_empty() { number.to_string() } else { run.at.clone() };
        table.row([
            at,
            format::count(run.result.transactions_per_s),
            format::count(run.result.new_orders_per_min),
            format::count(run.client_us()),
            run.server_us().map_or_else(|| "-".to_owned(), format::count),
            run.result.retries.to_string(),
            run.result.failures.to_string(),
            if run.result.audit.passed { "passed" } else { "FAILED" }.to_owned(),
        ])
    });
    let points = |of: &dyn Fn(&Run) -> f64| -> Vec<(f64, f64)> {
        set.runs.iter().zip(1..).map(|(run, number)| (f64::from(number), of(run))).collect()
    };
    let section = Section::new("runs", "All runs").table(table);
    if set.over.is_some() || set.runs.len() < 2 {
        return section;
    }
    section.figure(Figure::lines(
        "runs-throughput",
        "Throughput run by run",
        Axis::linear("Run", ""),
        Axis::linear("Transactions per second", ""),
        vec![Series::new(
            "transactions",
            Style::Line,
            points(&|run: &Run| run.result.transactions_per_s),
        )],
    ))
}

/// The page of a comparison.
pub fn comparison(compared: &[Compared], bound: f64, names: (&str, &str)) -> Page {
    let regressed: Vec<&str> = compared
        .iter()
        .filter(|figure| figure.verdict == Verdict::Regressed)
        .map(|figure| figure.figure.as_str())
        .collect();
    let verdict = if regressed.is_empty() { "none".to_owned() } else { regressed.join(", ") };
    let bound = format!("bound {}", format::percent(bound));
    let columns = vec![
        Column::text("Figure"),
        Column::text("Unit"),
        Column::number(names.0, ""),
        Column::number(names.1, ""),
        Column::number("New over old", ""),
        Column::text("Verdict"),
    ];
    let caption = "Medians; the ratio's interval is a bootstrap over the runs (95 %).";
    let table = Table::new("compared", "Figures", columns).caption(caption);
    let table = compared.iter().fold(table, |table, figure| {
        let ratio = figure.ratio.map_or_else(
            || "-".to_owned(),
            |ratio| format::ratio_with_interval(ratio.ratio, (ratio.low, ratio.high)),
        );
        table.row([
            figure.figure.clone(),
            figure.unit.clone(),
            format::count(figure.old),
            format::count(figure.new),
            ratio,
            figure.words(),
        ])
    });
    Page::new("Results compared", format!("{} against {}", names.1, names.0))
        .fact("Regressed", verdict, bound)
        .section(Section::new("compared", "Figure by figure").table(table))
}
