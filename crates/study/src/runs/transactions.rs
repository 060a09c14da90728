//! The section about the database load: response times, I/O by layer and file class, CPU.

use capture::sqlite::{Account, RatePoint};
use oltp::{OltpResult, Verdict, Workload};
use report::{Axis, BarSeries, Column, Figure, Section, Series, Style, Table, format};

use crate::curves;
use crate::observe::Accounts;

/// Bars of the CPU figure at most.
const CPU_BARS: usize = 12;

/// Builds the section.
pub fn section(oltp: &OltpResult, accounts: Option<&Accounts>) -> Section {
    let capture = match accounts.map(|accounts| &accounts.physical_unavailable) {
        Some(Some(reason)) => format!("Physical I/O could not be captured: {reason}"),
        Some(None) => "Physical I/O was captured at the block layer.".to_owned(),
        None => "Its I/O was not captured.".to_owned(),
    };
    let section = Section::new("oltp", "Your transactions")
        .paragraph(oltp.disclaimer.clone())
        .paragraph(format!(
            "{}, {} users without think time unless stated, measured for {:.0} s after {:.0} s of \
             warm-up. {capture}",
            oltp.dbms, oltp.options.users, oltp.measured_s, oltp.warmup_s
        ))
        .table(kind_table(oltp))
        .figure(throughput(oltp))
        .figure(response(oltp));
    let Some(accounts) = accounts else { return section };
    section
        .figure(io_rate(accounts))
        .figure(io_rate_over_time(accounts))
        .figure(io_size(accounts))
        .table(io_table(oltp, accounts))
        .figure(cpu(accounts))
}

fn kind_table(oltp: &OltpResult) -> Table {
    let columns = vec![
        Column::text("Transaction"),
        Column::number("Count", ""),
        Column::number("Unanswered", ""),
        Column::number("Rolled back", ""),
        Column::number("Service p50", ""),
        Column::number("Response p50", ""),
        Column::number("p90", ""),
        Column::number("p99", ""),
        Column::text("p90 bound holds"),
    ];
    let caption = "Response counts from the intended start, waiting for a connection included; \
                   service from the start of execution. Requests without an answer when an open \
                   loop ended count as having taken at least as long as they had waited.";
    let table = Table::new("kind-table", "Response times by transaction", columns).caption(caption);
    oltp.transactions.iter().fold(table, |table, kind| {
        table.row([
            kind.kind.name().to_owned(),
            kind.count.to_string(),
            kind.waiting.to_string(),
            kind.rollbacks.to_string(),
            format::duration_ns(kind.service_ns.quantile(0.5) as f64),
            format::at_least_ns(kind.response_ms_p50 * 1e6, kind.at_least.p50),
            format::at_least_ns(kind.response_ms_p90 * 1e6, kind.at_least.p90),
            format::at_least_ns(kind.response_ms_p99 * 1e6, kind.at_least.p99),
            match kind.p90_verdict() {
                Verdict::Holds => "yes",
                Verdict::Unknown => "unknown",
                Verdict::Violated => "no",
            }
            .to_owned(),
        ])
    })
}

fn throughput(oltp: &OltpResult) -> Figure {
    let series = &oltp.series;
    // A second per point: shorter ones show the arithmetic of counting, not the database.
    let group = (1.0 / series.interval_s).round().max(1.0) as usize;
    let points = |counts: &[u32]| -> Vec<(f64, f64)> {
        let windows = counts.chunks(group).filter(|window| window.len() == group).enumerate();
        windows
            .map(|(index, window)| {
                let length = series.interval_s * group as f64;
                let count: u32 = window.iter().sum();
                let at = (index as f64 + 0.5) * length - series.measure_from_s;
                (at, f64::from(count) / length)
            })
            .collect()
    };
    Figure::lines(
        "throughput-over-time",
        "Transactions per second over time",
        Axis::linear("Since the start of the measurement", "s"),
        Axis::linear("Transactions per second", ""),
        if oltp.workload == Workload::OrderEntry {
            let new_orders = Series::new("new orders", Style::Line, points(&series.new_orders));
            vec![Series::new("all", Style::Line, points(&series.transactions)), new_orders]
        } else {
            vec![Series::new("all", Style::Line, points(&series.transactions))]
        },
    )
}

fn response(oltp: &OltpResult) -> Figure {
    let kinds = oltp.transactions.iter().filter(|kind| kind.count + kind.waiting > 0);
    let series = kinds.map(|kind| {
        let points = curves::slower(curves::thinned(&kind.at_least_ns()));
        Series::new(kind.kind.name(), Style::Line, points)
    });
    Figure::lines(
        "transaction-response",
        "Response times of transactions",
        Axis::log10("Response time", "ns"),
        curves::slower_axis("Transactions"),
        series.collect(),
    )
}

/// One bar group per (layer, file class).
fn by_class(
    accounts: &Accounts,
    value: impl Fn(&Account, &capture::sqlite::ClassAccount) -> (f64, f64),
) -> (Vec<String>, Vec<BarSeries>) {
    let mut names = Vec::new();
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for account in &accounts.layers {
        for class in &account.classes {
            names.push(format!("{} {}", account.layer, class.class));
            let (read, write) = value(account, class);
            reads.push(read);
            writes.push(write);
        }
    }
    (names, vec![BarSeries::new("read", reads), BarSeries::new("write", writes)])
}

fn io_rate(accounts: &Accounts) -> Figure {
    let (names, series) = by_class(accounts, |account, class| {
        let seconds = (account.span_ns as f64 / 1e9).max(f64::MIN_POSITIVE);
        (class.read.requests as f64 / seconds, class.write.requests as f64 / seconds)
    });
    Figure::bars(
        "io-rate",
        "I/O rate by layer and file class",
        names,
        Axis::linear("Requests per second", ""),
        series,
    )
    .source("after Wang et al. 2011, figs. 7-9")
}

fn io_size(accounts: &Accounts) -> Figure {
    let (names, series) =
        by_class(accounts, |_, class| (class.read.average_bytes, class.write.average_bytes));
    Figure::bars(
        "io-size",
        "Average I/O size by layer and file class",
        names,
        Axis::linear("Average size", "bytes"),
        series,
    )
    .source("after Wang et al. 2011, figs. 7-9")
}

fn io_rate_over_time(accounts: &Accounts) -> Figure {
    let mut series = Vec::new();
    for account in &accounts.layers {
        type Rate = fn(&RatePoint) -> f64;
        let rates: [(&str, Rate); 2] =
            [("read", |p| p.read_bytes_per_s), ("write", |p| p.written_bytes_per_s)];
        for (name, rate) in rates {
            let points = account.total.rates.iter().map(|point| (point.at_s, rate(point)));
            let name = format!("{} {name}", account.layer);
            series.push(Series::new(name, Style::Line, points.collect()));
        }
    }
    Figure::lines(
        "io-over-time",
        "Bytes read and written over time",
        Axis::linear("Since the start of the measurement", "s"),
        Axis::linear("Rate", "bytes/s"),
        series,
    )
}

fn io_table(oltp: &OltpResult, accounts: &Accounts) -> Table {
    let columns = vec![
        Column::text("Layer"),
        Column::text("File class"),
        Column::number("Read per transaction", ""),
        Column::number("Written per transaction", ""),
        Column::number("Flushes per transaction", ""),
        Column::number("Mean read", ""),
        Column::number("Mean write", ""),
        Column::number("Time of a flush", ""),
    ];
    let transactions = (oltp.transactions_per_s * oltp.measured_s).max(1.0);
    let caption = "Logical: what the database asks of the file system. Device: what reaches the \
                   block device. Physical: what the block layer saw, file system journal included.";
    let mut table = Table::new("io-table", "I/O per transaction", columns).caption(caption);
    for account in &accounts.layers {
        for class in &account.classes {
            table = table.row([
                account.layer.clone(),
                class.class.clone(),
                format::bytes(class.read.bytes as f64 / transactions),
                format::bytes(class.write.bytes as f64 / transactions),
                format!("{:.2}", class.flush.requests as f64 / transactions),
                format::bytes(class.read.average_bytes),
                format::bytes(class.write.average_bytes),
                format::duration_ns(class.flush.service_ns_mean),
            ]);
        }
    }
    table
}

fn cpu(accounts: &Accounts) -> Figure {
    let cpu = &accounts.cpu;
    // A dozen bars: more are unreadable, and a sample of 200 ms is mostly its own rounding.
    let groups: Vec<_> = cpu.points.chunks(cpu.points.len().div_ceil(CPU_BARS).max(1)).collect();
    let categories = groups.iter().map(|group| format!("{:.0} s", group[0].at_s)).collect();
    let share = |part: fn(&capture::cpu::MachineCpu) -> f64| -> Vec<f64> {
        let of = |group: &&[capture::cpu::CpuPoint]| {
            let length: f64 = group.iter().map(|point| point.length_s).sum();
            let used: f64 = group.iter().map(|point| part(&point.machine)).sum();
            100.0 * used / (length * f64::from(cpu.processors))
        };
        groups.iter().map(of).collect()
    };
    Figure::stacked_bars(
        "cpu",
        "CPU of the machine over time",
        categories,
        Axis::linear("Share of all processors", "%"),
        vec![
            BarSeries::new("user", share(|cpu| cpu.user_s)),
            BarSeries::new("system", share(|cpu| cpu.system_s + cpu.interrupt_s)),
            BarSeries::new("waiting for I/O", share(|cpu| cpu.io_wait_s)),
            BarSeries::new("stolen", share(|cpu| cpu.steal_s)),
        ],
    )
    .caption(format!(
        "Other programs used {} of the processors' time.",
        format::percent(cpu.foreign_share)
    ))
    .source("after Oi 2007, figs. 4-5")
}
