//! Runs one cell on an existing file and prints what it cost, as one JSON line.
//!
//! `probe_cell FILE SECONDS ORDER READ_SHARE SIZE_BYTES DEPTH [DURABILITY] [ENGINE]`, for example
//! `probe_cell /tmp/f 5 random 1 4096 32 none`. The file named is written if the cell writes: it is
//! meant for a scratch file, which `cargo xtask bars` makes. ENGINE is `auto` or `psync`.
//! The issuing thread keeps its priority, so that other tools can be compared on equal terms.

use std::process::ExitCode;

use events::{Hint, Quiet};
use fit::measurement::{Arrival, Cell, CellResult, Durability, Measurements, Order};
use io::target::TargetSpec;
use probe::{Options, PlanKind};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((options, psync)) = parse(&arguments) else {
        eprintln!("usage: probe_cell FILE SECONDS random|sequential READ_SHARE SIZE_BYTES DEPTH");
        eprintln!("                  [none|flush|dsync] [auto|psync]");
        return ExitCode::from(2);
    };
    match measure(&options, psync) {
        Ok(measured) => {
            print(&measured.cells[0]);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            if let Some(hint) = error.hint() {
                eprintln!("hint: {hint}");
            }
            ExitCode::from(2)
        }
    }
}

fn parse(arguments: &[String]) -> Option<(Options, bool)> {
    let [path, seconds, order, read_share, size_bytes, depth, rest @ ..] = arguments else {
        return None;
    };
    let cell = Cell {
        order: match order.as_str() {
            "random" => Order::Random,
            "sequential" => Order::Sequential,
            _ => return None,
        },
        read_share: read_share.parse().ok()?,
        size_bytes: size_bytes.parse().ok()?,
        depth: depth.parse().ok()?,
        durability: match rest.first().map_or("none", String::as_str) {
            "none" => Durability::None,
            "flush" => Durability::Flush,
            "dsync" => Durability::Dsync,
            _ => return None,
        },
        arrival: Arrival::Closed,
    };
    let target = TargetSpec {
        path: path.into(),
        i_will_lose_data: (cell.read_share < 1.0).then(|| path.into()),
    };
    let range_bytes = std::fs::metadata(path).ok()?.len();
    let options = Options {
        range_bytes,
        plan: PlanKind::Cells(vec![cell]),
        cell_seconds: Some(seconds.parse().ok()?),
        realtime: false,
        ..Options::new(target)
    };
    Some((options, rest.get(1).is_some_and(|engine| engine == "psync")))
}

/// The cell alone: the file is as the caller prepared it, and is not written beforehand.
fn measure(options: &Options, psync: bool) -> Result<Measurements, probe::Error> {
    let PlanKind::Cells(cells) = &options.plan else { unreachable!("made above") };
    let must_write = cells[0].read_share < 1.0;
    let need = io::target::Need { range_bytes: options.range_bytes, keep_file: true, must_write };
    let prepared = io::target::prepare(&options.target, &need)?;
    if psync {
        prepared.device.use_psync();
    }
    let options = Options { precondition: false, ..options.clone() };
    let warnings = prepared.warnings.clone();
    probe::run_on(&prepared.device, &prepared.info, &options, warnings, &Quiet, &mut |_| {})
}

fn print(result: &CellResult) {
    let us = |class: usize, q| {
        let service = result.classes.get(class).map(|class| &class.service);
        service.map_or(0.0, |service| probe::cell::quantile_ns(service, q) as f64 / 1e3)
    };
    println!(
        "{}",
        serde_json::json!({
            "iops": result.requests as f64 / result.elapsed_s,
            "cpu_user_us": result.cpu_user_ns / 1e3,
            "cpu_system_us": result.cpu_system_ns / 1e3,
            "cpu_us": (result.cpu_user_ns + result.cpu_system_ns) / 1e3,
            "service_us_p50": us(0, 0.5),
            "service_us_p99": us(0, 0.99),
            "elapsed_s": result.elapsed_s,
            "requests": result.requests,
            "warnings": result.warnings.iter().map(|w| w.code.clone()).collect::<Vec<_>>(),
        })
    );
}
