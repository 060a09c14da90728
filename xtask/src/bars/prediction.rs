//! The grid of predictions: three systems, two loads, three numbers of terminals, five devices of
//! known behaviour (`xtask/devices`); each predicted from one capture here, and really run.
//!
//! A part is any piece of a cell's name, such as `prediction/postgresql commit 20`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::tools::{folder, median, program, timed};
use super::{Sitting, Target};

const SYSTEMS: [&str; 3] = ["sqlite", "postgresql", "mariadb"];
const LOADS: [(&str, &[&str]); 2] =
    [("commit", &["--rows", "1000"]), ("order-entry", &["--warehouses", "2"])];
const TERMINALS: [&str; 3] = ["1", "4", "20"];

/// Relative errors by what they are errors of.
#[derive(Default)]
struct Errors {
    throughput: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
}

pub fn measure(sitting: &mut Sitting) -> anyhow::Result<()> {
    let (program, folder) = (program()?, folder("prediction")?);
    let mut devices: Vec<PathBuf> = std::fs::read_dir(crate::root().join("xtask/devices"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<anyhow::Result<_>>()?;
    devices.sort();
    let mut errors = Errors::default();
    for system in SYSTEMS {
        for (load, scale) in LOADS {
            for terminals in TERMINALS {
                let name = format!("{system} {load} {terminals}");
                if !sitting.wants(&name) {
                    continue;
                }
                let runs = folder.to_string_lossy().into_owned();
                let mut words =
                    vec!["prove", "--runs", &runs, "--dbms", system, "--workload", load];
                words.extend(scale);
                words.extend(["--users", terminals, "--rounds", "2", "--json", "--quiet"]);
                words.extend(["--warmup", "2s", "--duration", "8s"]);
                let devices: Vec<_> = devices.iter().map(|path| path.to_string_lossy()).collect();
                for device in &devices {
                    words.extend(["--on", device]);
                }
                let (text, _) = timed(&program, &words)?;
                cells(sitting, &name, &serde_json::from_str(&text)?, &mut errors);
            }
        }
    }
    std::fs::remove_dir_all(&folder)?;
    summary(sitting, &errors);
    Ok(())
}

/// The figures of one load on all devices.
fn cells(sitting: &mut Sitting, name: &str, result: &Value, errors: &mut Errors) {
    for place in result["places"].as_array().into_iter().flatten() {
        let predicted = figures(&place["predicted"]["figures"]);
        let runs: Vec<_> = place["runs"].as_array().into_iter().flatten().collect();
        let runs: Vec<_> = runs.iter().map(|run| figures(&run["figures"])).collect();
        let device = place["name"].as_str().unwrap_or("?");
        let device = device.rsplit('/').next().unwrap_or(device).trim_end_matches(".toml");
        for (figure, predicted) in &predicted {
            let mut measured: Vec<f64> =
                runs.iter().filter_map(|run| run.get(figure).copied()).collect();
            measured.sort_by(f64::total_cmp);
            let (Some(least), Some(most)) = (measured.first(), measured.last()) else { continue };
            let (spread, middle) = (most - least, median(measured.clone()));
            if device == "here" || middle <= 0.0 {
                continue;
            }
            let list = match () {
                () if figure.ends_with("p50") => &mut errors.p50,
                () if figure.ends_with("p99") => &mut errors.p99,
                () => &mut errors.throughput,
            };
            let error = (predicted / middle - 1.0) * 100.0;
            list.push(error.abs());
            let floor = spread / middle * 100.0;
            let what = format!("{name} on {device}: {figure} of {middle:.4} (A/A {floor:.0} %)");
            sitting.add(what, error, "%", Target::Within(-25.0, 25.0));
        }
    }
}

/// What a user sees, by name: transactions per minute, and p50 and p99 of each kind in ms.
fn figures(figures: &Value) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    let mut add = |name: String, value: &Value| {
        if let Some(value) = value.as_f64() {
            found.insert(name, value);
        }
    };
    add("transactions/min".to_owned(), &figures["transactions_per_min"]);
    for kind in figures["kinds"].as_array().into_iter().flatten() {
        let name = kind["kind"].as_str().unwrap_or("?");
        add(format!("{name} p50"), &kind["p50_ms"]);
        add(format!("{name} p99"), &kind["p99_ms"]);
    }
    found
}

fn summary(sitting: &mut Sitting, errors: &Errors) {
    let groups = [
        ("transactions per minute", &errors.throughput, 10.0),
        ("p50 by kind", &errors.p50, 15.0),
        ("p99 by kind", &errors.p99, 25.0),
    ];
    for (what, errors, bound) in groups {
        if errors.is_empty() {
            continue;
        }
        let what = format!("{what}: median error of {} cells", errors.len());
        sitting.add(what, median(errors.clone()), "%", Target::AtMost(bound));
    }
    let worst = errors.throughput.iter().copied().fold(0.0, f64::max);
    if worst > 0.0 {
        sitting.add("transactions per minute: worst", worst, "%", Target::AtMost(25.0));
    }
}
