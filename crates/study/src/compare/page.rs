//! A comparison as a page.

use report::{Axis, BarSeries, Column, Figure, Page, Section, Series, Style, Table, format};
use sim::{MeanPath, WearMark};

use super::text::{causes, of_slowest, path_of_all, text};
use super::{Compared, Simulated};
use crate::host_stack::Devices;

/// Builds the page. `trace` is what the trace is called.
pub fn page(compared: &Compared, targets: &[Devices], trace: &str) -> Page {
    let devices = &compared.devices;
    let mut page = Page::new("One trace, several devices", trace);
    let fastest = devices.iter().min_by(|a, b| mean_ns(a).total_cmp(&mean_ns(b)));
    if let Some(fastest) = fastest {
        let (assumed, values) = (fastest.assumed_values, fastest.values);
        let mean = format!(
            "{} on average; {assumed} of {values} values assumed",
            format::duration_ns(mean_ns(fastest))
        );
        page = page.fact("Shortest response", fastest.profile.clone(), mean);
        page = page.caution(2 * assumed > values);
    }
    if compared.interrupted {
        page = page.fact("Stopped", "not all devices were simulated", "");
    }
    page = page.section(times(devices)).section(where_it_goes(devices));
    if let Some(wear) = wear(devices) {
        page = page.section(wear);
    }
    page.section(about(devices, targets))
}

/// Mean response of all requests, ns.
fn mean_ns(device: &Simulated) -> f64 {
    let sum: f64 = device.classes().iter().map(|class| class.response.sum() as f64).sum();
    let count: u64 = device.classes().iter().map(|class| class.response.count()).sum();
    sum / count.max(1) as f64
}

fn times(devices: &[Simulated]) -> Section {
    let mut section = Section::new("times", "Response times");
    let distributions = devices.iter().map(|device| {
        let mut all = stats::Histogram::new();
        device.classes().iter().for_each(|class| all.merge(&class.response));
        Series::new(device.profile.clone(), Style::Step, distribution(&all))
    });
    let shares = Axis::linear("Share of the requests", "%");
    section = section.figure(
        Figure::lines(
            "distribution",
            "Distribution of the response times",
            Axis::log10("Response time", "ns"),
            shares,
            distributions.collect(),
        )
        .caption("The curve further to the left is the faster device."),
    );
    let over_time: Vec<Series> = devices
        .iter()
        .filter_map(|device| device.open_loop.as_ref().map(|outcome| (device, outcome)))
        .map(|(device, outcome)| {
            let points = outcome.intervals.iter().map(|i| (i.at_s, i.mean_response_ns)).collect();
            Series::new(device.profile.clone(), Style::Line, points)
        })
        .collect();
    if !over_time.is_empty() {
        section = section.figure(Figure::lines(
            "over-time",
            "Mean response over the run",
            Axis::linear("Time", "s"),
            Axis::log10("Mean response time", "ns"),
            over_time,
        ));
    }
    section.table(figures(devices))
}

/// `(time, percent at most so long)`, at most a few hundred points.
fn distribution(histogram: &stats::Histogram) -> Vec<(f64, f64)> {
    const POINTS: u64 = 400;
    let count = histogram.count();
    let (mut seen, mut last) = (0, 0);
    let mut points = Vec::new();
    for (value, own) in histogram.buckets() {
        seen += own;
        if points.is_empty() || seen == count || (seen - last) * POINTS >= count {
            points.push((value as f64, 100.0 * seen as f64 / count as f64));
            last = seen;
        }
    }
    points
}

fn figures(devices: &[Simulated]) -> Table {
    let mut columns = vec![Column::text("Request"), Column::text("Figure")];
    columns.extend(devices.iter().map(|device| Column::number(device.profile.clone(), "")));
    let table = Table::new("figures", "All figures", columns);
    text(devices).into_iter().skip(1).fold(table, Table::row)
}

fn where_it_goes(devices: &[Simulated]) -> Section {
    let section = Section::new("path", "Where the time goes").paragraph(
        "The parts of the mean response time along the path of the requests: they add up to the \
         mean.",
    );
    if devices.iter().all(|device| path_of_all(device).is_none()) {
        return section.paragraph("Closed-loop simulations do not tell.");
    }
    section.figure(parts("path-all", "All requests", devices, path_of_all)).figure(parts(
        "path-slowest",
        "The slowest percent",
        devices,
        of_slowest,
    ))
}

fn parts(
    id: &str,
    title: &str,
    devices: &[Simulated],
    of: fn(&Simulated) -> Option<&MeanPath>,
) -> Figure {
    let names = devices.iter().map(|device| device.profile.clone()).collect();
    let series = causes(devices, of).into_iter().map(|cause| {
        let values = devices.iter().map(|device| of(device).map_or(f64::NAN, |p| p.of(cause)));
        BarSeries::new(cause.name().replace('_', " "), values.collect())
    });
    let axis = Axis::linear("Mean response time", "ns");
    Figure::stacked_bars(id, title, names, axis, series.collect())
}

/// How the flash of the devices wears; nothing where none has any.
fn wear(devices: &[Simulated]) -> Option<Section> {
    let amplification = |device: &Simulated| {
        let marks = &device.open_loop.as_ref()?.wear;
        let step = |pair: &[WearMark]| {
            let written = (pair[1].written_bytes - pair[0].written_bytes) as f64;
            let programmed = pair[1].flash?.programmed_bytes - pair[0].flash?.programmed_bytes;
            (written > 0.0).then(|| (pair[1].at_s, programmed as f64 / written))
        };
        let points: Vec<_> = marks.windows(2).filter_map(step).collect();
        device.life.as_ref()?.flash.as_ref()?;
        (!points.is_empty()).then(|| Series::new(device.profile.clone(), Style::Line, points))
    };
    let series: Vec<Series> = devices.iter().filter_map(amplification).collect();
    let lives = |device: &Simulated| device.life.as_ref()?.flash.as_ref()?.years;
    let years: Vec<_> = devices
        .iter()
        .filter_map(|device| Some((device.profile.clone(), lives(device)?)))
        .collect();
    if series.is_empty() {
        return None;
    }
    let mut section = Section::new("wear", "How it wears").paragraph(
        "Bytes that the flash programs for each byte that a request writes: cleaning moves what is \
         still needed. Where the curve has become level, the device is in its steady state.",
    );
    section = section.figure(Figure::lines(
        "amplification",
        "Write amplification over the trace",
        Axis::linear("Time", "s"),
        Axis::linear("Programmed over written", ""),
        series,
    ));
    if !years.is_empty() {
        let (names, values): (Vec<_>, Vec<_>) = years.into_iter().unzip();
        let ends = values.iter().map(|v| (v.low.unwrap_or(v.value), v.high.unwrap_or(v.value)));
        let bars = BarSeries::new("years", values.iter().map(|v| v.value).collect())
            .interval(ends.collect());
        let axis = Axis::linear("Years", "");
        section = section.figure(
            Figure::bars("years", "How long its cells last", names, axis, vec![bars]).caption(
                "At the erases of the last half of the trace, all day, spread over all blocks.",
            ),
        );
    }
    Some(section)
}

fn about(devices: &[Simulated], targets: &[Devices]) -> Section {
    let columns = vec![Column::text("Device"), Column::text("What it is")];
    let table = Table::new("devices", "Devices", columns);
    let known = devices.iter().map(|device| {
        let found = targets.iter().find(|target| target.name() == device.profile);
        let about = found.map_or("", |target| target.profile().profile.description.as_str());
        [device.profile.clone(), about.to_owned()]
    });
    Section::new("devices", "The devices").table(known.fold(table, Table::row))
}
