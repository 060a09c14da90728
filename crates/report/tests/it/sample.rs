//! A page with every kind of figure, shaped like those of the papers. The numbers are made up.

use events::Warning;
use report::{
    Axis, BarSeries, Column, Figure, Grid, GridLayer, Page, Section, Series, Style, Table,
    format::{self, ratio_with_interval},
};

/// The sample page.
pub fn page() -> Page {
    let mut page = Page::new(
        "Order entry on this disk and four others",
        "SQLite 3.54 in WAL mode, 4 warehouses, 8 users, 60 s; probed and replayed on /data/target",
    )
    .fact("Transactions", "1,240 tx/min", "95% interval 1,180 to 1,300")
    .fact("New order, p99", format::duration_ns(18.4e6), "p50 2.1 ms, p90 7.9 ms")
    .fact("Limited by", "commit flushes", "71% of the time at least one fsync is outstanding")
    .fact(
        "Simulation error E",
        ratio_with_interval(0.0816, (0.0712, 0.0934)),
        "noise floor A/A 0.061",
    )
    .fact("Best alternative", "x4.2", "DRAM SSD, simulated: 5,210 tx/min")
    .fact("Endurance", "6.3 years", "at 11.4 GB a day on 60 TBW");
    for (name, value) in [
        ("version", "wearmark 0.1.0 (abc1234, release)"),
        ("seed", "42"),
        ("machine", "2 x Xeon at 2.8 GHz, 24 GiB, Linux 6.18, ext4 on virtio"),
        ("date", "2026-11-21 01:00 UTC"),
        ("command", "wearmark study run studies/quickstart.toml"),
    ] {
        page = page.provenance(name, value);
    }
    page.warning(
        Warning::new("probe", "disturbed", "Other processes took 18% of the CPU while probing.")
            .with_hint("Stop them, or run again with `--settle 60s`."),
    )
    .warning(
        Warning::new("validate", "short", "The replay lasted 9 s, too short for a p99.9.")
            .with_hint("Give it at least 60 s of trace."),
    )
    .section(probe())
    .section(load())
    .section(validation())
}

const PATTERNS: [(&str, f64, f64); 4] = [
    ("sequential read", 68_000.0, 540e6),
    ("random read", 92_000.0, 510e6),
    ("sequential write", 110_000.0, 420e6),
    ("random write", 260_000.0, 310e6),
];

/// Request sizes from 4 KiB to 1 MiB.
fn sizes() -> impl Iterator<Item = f64> + Clone {
    (12..=20).map(|power| f64::from(1 << power))
}

fn probe() -> Section {
    let throughput = PATTERNS.map(|(name, overhead_ns, rate)| {
        let at = |size: f64| (size, size / (overhead_ns / 1e9 + size / rate));
        Series::new(name, Style::LinePoints, sizes().map(at).collect())
    });
    let mut fits = Vec::new();
    for (index, (name, overhead_ns, rate)) in PATTERNS.into_iter().enumerate() {
        let line = |size: f64| overhead_ns + size / rate * 1e9;
        let wobble =
            |size: f64| line(size) * (1.0 + 0.12 * (size.log2() * 3.1 + index as f64).sin());
        let points = sizes().map(|size| (size, wobble(size))).collect();
        fits.push(Series::new(name, Style::Points, points));
        let points = sizes().map(|size| (size, line(size))).collect();
        fits.push(Series::new(format!("{name}, fitted"), Style::Dashed, points));
    }
    let rate = Axis::linear("Throughput", "bytes/s");
    let size = Axis::log2("Request size", "bytes");
    Section::new("probe", "What the disk can do")
        .paragraph(
            "Direct I/O through io_uring, one outstanding request, closed loop, after the whole \
             range was written once.",
        )
        .figure(
            Figure::lines(
                "throughput",
                "Throughput against request size",
                size.clone(),
                rate,
                throughput.into(),
            )
            .caption("Sequential reads reach the interface's limit from 256 KiB on.")
            .source("after Wang et al. 2011, figs. 1-3"),
        )
        .figure(
            Figure::lines(
                "response",
                "Response time against request size, with the fitted lines",
                size,
                Axis::log10("Response time", "ns"),
                fits,
            )
            .caption("y = ax + b for each access pattern; b is the cost of a request of no size.")
            .source("after Wang et al. 2010, figs. 2-3"),
        )
        .table(
            Table::new(
                "fit",
                "Fitted linear model",
                vec![
                    Column::text("Pattern"),
                    Column::number("a", "ns/KiB"),
                    Column::number("b", "us"),
                    Column::number("R²", ""),
                ],
            )
            .caption("Ordinary least squares over the medians of nine request sizes.")
            .row(["sequential read", "1,896", "68", "0.998"])
            .row(["random read", "2,008", "92", "0.996"])
            .row(["sequential write", "2,438", "110", "0.991"])
            .row(["random write", "3,303", "260", "0.987"]),
        )
}

/// A log that is appended and data that are read where they are hot.
fn heat() -> Figure {
    let cell = |at: usize| (at / 32, at % 32);
    let reads =
        |at| if cell(at).0 < 12 { (cell(at).1 * 7 + cell(at).0 * 3) as u64 % 40 } else { 0 };
    let writes = |at| if cell(at).0 == 16 + cell(at).1 / 4 { 900 } else { 0 };
    let layer = |name: &str, count: &dyn Fn(usize) -> u64| GridLayer {
        name: name.to_owned(),
        cells: (0..24 * 32).map(count).collect(),
    };
    Figure::grid(
        "heat",
        "Where requests go over time",
        Axis::linear("Time", "s"),
        Axis::linear("Address", "bytes"),
        Grid {
            columns: 32,
            rows: 24,
            x: (0.0, 2.0),
            y: (0.0, 1e9),
            layers: vec![layer("reads", &reads), layer("writes", &writes)],
        },
    )
}

fn load() -> Section {
    let devices =
        ["this disk", "this disk, simulated", "Mtron SLC 32 GB", "7,200 rpm disk", "DRAM SSD"];
    let devices = || devices.map(str::to_owned).to_vec();
    let rates = [1240.0, 1195.0, 410.0, 96.0, 5210.0];
    let interval = rates.map(|rate| (rate * 0.94, rate * 1.05)).to_vec();
    let tpm = BarSeries::new("new orders", rates.to_vec()).interval(interval);
    let layer = |name: &str, values: [f64; 5]| BarSeries::new(name, values.to_vec());
    let cpu = vec![
        layer("user", [31.0, 30.0, 12.0, 3.0, 61.0]),
        layer("system", [17.0, 16.0, 8.0, 2.0, 22.0]),
        layer("wait", [41.0, 43.0, 70.0, 91.0, 5.0]),
        layer("idle", [11.0, 11.0, 10.0, 4.0, 12.0]),
    ];
    let bytes = vec![
        BarSeries::new("logical", vec![4.1e6, 9.8e6, 0.3e6]),
        BarSeries::new("physical", vec![6.2e6, 11.9e6, 1.1e6]),
    ];
    let wave = |second: i32| {
        let t = f64::from(second) / 10.0;
        let checkpoint = if second % 150 < 12 { 0.45 } else { 1.0 };
        (t, 1240.0 / 60.0 * checkpoint * (1.0 + 0.08 * (t * 2.3).sin() + 0.05 * (t * 7.7).cos()))
    };
    let classes = vec!["data".to_owned(), "log".to_owned(), "temp".to_owned()];
    Section::new("oltp", "How the transactions run")
        .figure(
            Figure::bars(
                "tpm",
                "Transactions per minute per device",
                devices(),
                Axis::linear("Throughput", "tx/min"),
                vec![tpm],
            )
            .caption("Whiskers are 95% intervals. Only the first bar is measured.")
            .source("after Wang et al. 2011, fig. 6"),
        )
        .figure(
            Figure::lines(
                "rate",
                "Transactions per second over time",
                Axis::linear("Time", "s"),
                Axis::linear("Rate", "tx/s"),
                vec![Series::new("new orders", Style::Line, (0..600).map(wave).collect())],
            )
            .caption("The dips are checkpoints of the write-ahead log."),
        )
        .figure(heat())
        .figure(
            Figure::bars(
                "bytes",
                "Logical and physical I/O rate per file class",
                classes,
                Axis::linear("Rate", "bytes/s"),
                bytes,
            )
            .source("after Wang et al. 2011, figs. 7-8"),
        )
        .figure(
            Figure::stacked_bars(
                "cpu",
                "Where the CPU time goes",
                devices(),
                Axis::linear("CPU time", "%"),
                cpu,
            )
            .source("after Oi 2007, figs. 4-5"),
        )
}

/// Response times in microseconds at each share of requests, as from a skewed device.
fn distribution(scale: f64, spread: f64) -> Vec<(f64, f64)> {
    let at = |step: i32| {
        let share = f64::from(step) / 400.0;
        let z = (share / (1.0 - share)).ln();
        (scale * (z * spread).exp(), share)
    };
    (1..400).map(at).collect()
}

fn validation() -> Section {
    let curve =
        |name: &str, style, scale, spread| Series::new(name, style, distribution(scale, spread));
    Section::new("validate", "How wrong the simulation is")
        .paragraph(
            "The trace was captured from another run than the one the profile was fitted to.",
        )
        .figure(
            Figure::lines(
                "cdf",
                "Response times, simulated and real",
                Axis::log10("Response time", "us"),
                Axis::linear("Share of requests", ""),
                vec![
                    curve("real", Style::Step, 120.0, 0.42),
                    curve("real, second run", Style::Step, 123.0, 0.43),
                    curve("linear model", Style::Line, 150.0, 0.22),
                    curve("linear model and cache", Style::Line, 118.0, 0.39),
                ],
            )
            .caption("The area between two curves, over the real mean, is the error ratio E.")
            .source("after Wang et al. 2010, figs. 4-5"),
        )
}
