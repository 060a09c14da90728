//! A comparison as rows for the terminal: figures down, devices across.

use report::format;
use sim::{ClassOutcome, MeanPath};
use stats::Histogram;
use trace::Op;

use super::life::{years_text, years_within};
use super::{Life, Simulated};

/// In the place of a number, and lined up like one.
const NOTHING: &str = "-";

/// Rows of cells, the first one the header.
pub fn text(devices: &[Simulated]) -> Vec<Vec<String>> {
    let mut header = vec!["REQUEST".to_owned(), "FIGURE".to_owned()];
    header.extend(devices.iter().map(|device| device.profile.clone()));
    let mut rows = vec![header];
    let mut assumed = vec!["profile".to_owned(), "values assumed".to_owned()];
    let of = |device: &Simulated| format!("{} of {}", device.assumed_values, device.values);
    assumed.extend(devices.iter().map(of));
    rows.push(assumed);
    let classes = classes(devices);
    // All streams of an operation together come first: of many streams nobody reads every row.
    for op in Op::ALL {
        if classes.iter().filter(|class| class.0 == op).count() > 1 {
            rows.extend(times(devices, &format!("{} all", op.name()), |class| class.op == op));
        }
    }
    for (op, stream) in &classes {
        let name = format!("{} {stream}", op.name());
        rows.extend(times(devices, &name, |class| class.op == *op && class.stream == *stream));
    }
    rows.extend(rates(devices));
    rows.extend(per_minute(devices));
    rows.extend(life(devices));
    for (name, of) in
        [("all", path_of_all as fn(&Simulated) -> Option<&MeanPath>), ("slowest 1 %", of_slowest)]
    {
        rows.extend(paths(devices, name, of));
    }
    rows
}

/// The rows of the classes that `is_of` picks, taken together.
fn times(
    devices: &[Simulated],
    name: &str,
    is_of: impl Fn(&ClassOutcome) -> bool,
) -> Vec<Vec<String>> {
    let merged = |device: &Simulated| {
        let mut all = Histogram::new();
        device.classes().iter().filter(|c| is_of(c)).for_each(|c| all.merge(&c.response));
        all
    };
    let found: Vec<Histogram> = devices.iter().map(merged).collect();
    let row = |figure: &str, of: &dyn Fn(&Histogram) -> String| {
        let cells =
            found.iter().map(|all| if all.is_empty() { NOTHING.to_owned() } else { of(all) });
        [name.to_owned(), figure.to_owned()].into_iter().chain(cells).collect()
    };
    let quantile = |q| move |all: &Histogram| format::duration_ns(all.quantile(q) as f64);
    vec![
        row("requests", &|all| all.count().to_string()),
        row("mean", &|all| format::duration_ns(all.mean())),
        row("p50", &quantile(0.5)),
        row("p99", &quantile(0.99)),
        row("p99.9", &quantile(0.999)),
        row("max", &quantile(1.0)),
    ]
}

/// Operations and streams that occur, in order.
pub(super) fn classes(devices: &[Simulated]) -> Vec<(Op, String)> {
    let mut all: Vec<(Op, String)> = Vec::new();
    for class in devices.iter().flat_map(Simulated::classes) {
        if !all.iter().any(|(op, stream)| *op == class.op && *stream == class.stream) {
            all.push((class.op, class.stream.clone()));
        }
    }
    all
}

pub(super) fn path_of_all(device: &Simulated) -> Option<&MeanPath> {
    device.open_loop.as_ref()?.breakdown.as_ref().map(|breakdown| &breakdown.all)
}

pub(super) fn of_slowest(device: &Simulated) -> Option<&MeanPath> {
    device.open_loop.as_ref()?.breakdown.as_ref().map(|breakdown| &breakdown.slowest)
}

/// The causes that take any time on one of the devices.
pub(super) fn causes(
    devices: &[Simulated],
    of: fn(&Simulated) -> Option<&MeanPath>,
) -> Vec<model::observe::Cause> {
    let takes = |cause: &model::observe::Cause| {
        devices.iter().filter_map(of).any(|path| path.of(*cause) > 0.0)
    };
    model::observe::Cause::ALL.into_iter().filter(takes).collect()
}

fn paths(
    devices: &[Simulated],
    name: &str,
    of: fn(&Simulated) -> Option<&MeanPath>,
) -> Vec<Vec<String>> {
    let row = |cause: model::observe::Cause| {
        let mut row = vec![name.to_owned(), format!("in {}", cause.name())];
        row.extend(devices.iter().map(|device| match of(device).map(|path| path.of(cause)) {
            Some(ns) if ns > 0.0 => format::duration_ns(ns),
            _ => NOTHING.to_owned(),
        }));
        row
    };
    causes(devices, of).into_iter().map(row).collect()
}

/// Rates offered and completed, where one of the devices fell behind.
fn rates(devices: &[Simulated]) -> Vec<Vec<String>> {
    let overloaded =
        |device: &Simulated| device.open_loop.as_ref().is_some_and(sim::Outcome::is_overloaded);
    if !devices.iter().any(overloaded) {
        return Vec::new();
    }
    let row = |figure: &str, of: fn(&sim::Outcome) -> f64| {
        let cells = devices.iter().map(|device| match &device.open_loop {
            Some(outcome) => format!("{}/s", format::count(of(outcome))),
            None => NOTHING.to_owned(),
        });
        ["requests".to_owned(), figure.to_owned()].into_iter().chain(cells).collect()
    };
    vec![
        row("offered", sim::Outcome::offered_per_s),
        row("completed", sim::Outcome::completed_per_s),
    ]
}

/// How the devices wear, where one of them says more than what is written to it.
fn life(devices: &[Simulated]) -> Vec<Vec<String>> {
    type Cell = fn(&Life) -> Option<String>;
    const ROWS: [(&str, Cell); 7] = [
        ("written per day", |life| Some(format::bytes(life.written_bytes_per_day))),
        ("drive writes per day", |life| Some(format!("{:.3}", life.drive_writes_per_day?))),
        ("write amplification", |life| {
            Some(format!("{:.2}", life.flash.as_ref()?.write_amplification))
        }),
        ("in the last half", |life| {
            Some(life.flash.as_ref()?.steady_write_amplification.text(|x| format!("{x:.2}")))
        }),
        ("erases of a block", |life| {
            let flash = life.flash.as_ref()?;
            let (least, most) = (flash.least_worn_erases, flash.most_worn_erases);
            Some(format!("{:.1} ({least} to {most})", flash.mean_erases))
        }),
        ("lasts, by its cells", |life| Some(years_within(life.flash.as_ref()?.years?))),
        ("lasts, as rated", |life| Some(years_text(life.years_by_rating?))),
    ];
    let tells = |life: &Life| life.flash.is_some() || life.years_by_rating.is_some();
    if !devices.iter().filter_map(|device| device.life.as_ref()).any(tells) {
        return Vec::new();
    }
    let row = |(figure, of): (&str, Cell)| {
        let cells: Vec<_> =
            devices.iter().map(|device| device.life.as_ref().and_then(of)).collect();
        let cells = cells.iter().any(Option::is_some).then_some(cells)?;
        let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| NOTHING.to_owned()));
        Some(["life".to_owned(), figure.to_owned()].into_iter().chain(cells).collect())
    };
    ROWS.into_iter().filter_map(row).collect()
}

fn per_minute(devices: &[Simulated]) -> Option<Vec<String>> {
    devices.first()?.closed_loop.as_ref()?;
    let mut row = vec!["transactions".to_owned(), "per minute".to_owned()];
    row.extend(devices.iter().map(|device| match &device.closed_loop {
        Some(outcome) => format::count(outcome.transactions_per_min()),
        None => NOTHING.to_owned(),
    }));
    Some(row)
}
