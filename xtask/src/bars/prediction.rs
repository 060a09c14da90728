//! The grid of predictions: three systems, two loads, three numbers of terminals, five devices of
//! known behaviour (`xtask/devices`); each predicted from one capture here, and really run. Where
//! both ends of the terminals were run, each is also predicted from the capture of the other; and
//! each cell by profiles that were fitted to the emulated devices, of which a probe knew nothing.
//!
//! A part is any piece of a cell's name, such as `prediction/postgresql commit 20`. What an
//! interrupted grid, or a part, has probed and run is not run again, but predicted with the program
//! that there is now; a whole grid removes it at its end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use super::tools::{median, program, timed};
use super::{Sitting, Target, page};

const SYSTEMS: [&str; 3] = ["postgresql", "mariadb", "sqlite"];
const LOADS: [(&str, &[&str]); 2] =
    [("commit", &["--rows", "1000"]), ("order-entry", &["--warehouses", "2"])];
const TERMINALS: [&str; 3] = ["1", "4", "20"];

/// The figure that every load has.
const RATE: &str = "transactions/min";
/// From how many terminals to how many it is predicted, too.
const OTHER_TERMINALS: [[&str; 2]; 2] = [["1", "20"], ["20", "1"]];

/// Figures by name.
type Figures = BTreeMap<String, f64>;

/// Predicts for the profile of this name, beside the emulators of a place.
type Ask<'a> = dyn Fn(&str, &Value) -> anyhow::Result<Figures> + 'a;

/// Sizes of relative errors, %.
#[derive(Default)]
struct Errors {
    by_true: ByFigure,
    by_fits: ByFigure,
    other_terminals: Vec<f64>,
}

/// By what they are errors of.
#[derive(Default)]
struct ByFigure {
    throughput: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
}

impl ByFigure {
    fn push(&mut self, figure: &str, error: f64) {
        let list = match () {
            () if figure.ends_with("p50") => &mut self.p50,
            () if figure.ends_with("p99") => &mut self.p99,
            () => &mut self.throughput,
        };
        list.push(error.abs());
    }
}

/// What a load left with one number of terminals.
struct Ran {
    /// What the files of its capture begin with.
    captured: String,
    result: Value,
}

pub fn measure(sitting: &mut Sitting) -> anyhow::Result<()> {
    let (program, folder) = (program()?, crate::target().join("bars/prediction"));
    std::fs::create_dir_all(&folder)?;
    let mut devices: Vec<PathBuf> = std::fs::read_dir(crate::root().join("xtask/devices"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<anyhow::Result<_>>()?;
    devices.sort();
    let fits = fit_all(sitting, &program, &folder, &devices)?;
    let (mut errors, mut before) = (Errors::default(), 0);
    for system in SYSTEMS {
        for (load, scale) in LOADS {
            let mut ran = BTreeMap::new();
            for terminals in TERMINALS {
                let name = format!("{system} {load} {terminals}");
                if !sitting.wants(&name) {
                    continue;
                }
                let cell = (system, load, terminals);
                let run = if let Some(run) = kept(&folder, cell) {
                    before += 1;
                    run
                } else {
                    prove(&program, &folder, (cell, scale), &devices)?;
                    kept(&folder, cell).context("a proof leaves its result")?
                };
                let dir = folder.join(load).to_string_lossy().into_owned();
                let engine = [&[&*dir, "--workload", load], scale].concat();
                let ask = |profile: &str, place: &Value| {
                    // As its true profiles are asked: the engine itself, on files in virtual time.
                    if system == "sqlite" {
                        let share = of_runs(place, "emulator_share");
                        return by_engine(&program, &engine, (profile, share), terminals);
                    }
                    predicted(&program, &run.captured, (profile, place, speed(place)), terminals)
                };
                if let Some(place) = emulated(&run).find(|place| speed(place) != 1.0) {
                    let what = format!("{name}: speed of processors over that in the capture");
                    sitting.add(what, speed(place), "ratio", Target::Beside);
                }
                by_true(sitting, &name, &run, &ask, &mut errors.by_true)?;
                by_fits(sitting, &name, &run, (&fits, &ask), &mut errors.by_fits)?;
                ran.insert(terminals, run);
            }
            // SQLite is asked for another number by running it in virtual time, as for its own.
            for [from, to] in OTHER_TERMINALS.into_iter().filter(|_| system != "sqlite") {
                if let (Some(from), Some(run)) = (ran.get(from), ran.get(to)) {
                    let name = format!("{system} {load} {to} from another number");
                    other_terminals(sitting, (&program, &name), from, (to, run), &mut errors)?;
                }
            }
        }
    }
    if before > 0 {
        sitting.add("loads that an earlier grid had run", f64::from(before), "", Target::Beside);
    }
    // A part leaves what an interrupted grid has run.
    if sitting.part.is_none() {
        std::fs::remove_dir_all(&folder)?;
    }
    summary(sitting, &errors);
    Ok(())
}

/// A cell of the grid: the system, the load, the terminals.
type Cell<'a> = (&'a str, &'a str, &'a str);

/// Runs a load really, here and on all devices.
fn prove(
    program: &Path,
    folder: &Path,
    ((system, load, terminals), scale): (Cell<'_>, &[&str]),
    devices: &[PathBuf],
) -> anyhow::Result<()> {
    let runs = folder.to_string_lossy();
    let mut words = vec!["prove", "--runs", &runs, "--dbms", system, "--workload", load];
    words.extend(scale);
    words.extend(["--users", terminals, "--rounds", "2", "--json", "--quiet"]);
    words.extend(["--warmup", "2s", "--duration", "8s"]);
    let devices: Vec<_> = devices.iter().map(|path| path.to_string_lossy()).collect();
    for device in &devices {
        words.extend(["--on", device]);
    }
    timed(program, &words)?;
    Ok(())
}

/// The run directory of a cell that was run to its end.
fn kept(folder: &Path, (system, load, terminals): Cell<'_>) -> Option<Ran> {
    let entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    entries.filter(|dir| dir.join("result.json").exists()).find_map(|dir| {
        let read = |name: &str| -> Option<Value> {
            serde_json::from_str(&std::fs::read_to_string(dir.join(name)).ok()?).ok()
        };
        let oltp = &read("loaded.json")?;
        let is_own = text(&oltp["dbms"]) == system
            && text(&oltp["workload"]) == load
            && oltp["users"].as_u64() == terminals.parse().ok();
        let captured = dir.join("captured").to_string_lossy().into_owned();
        is_own.then_some(Ran { captured, result: read("result.json")? })
    })
}

/// What one number of terminals would reach, from the capture of another, on every device.
fn other_terminals(
    sitting: &mut Sitting,
    (program, name): (&Path, &str),
    from: &Ran,
    (to, run): (&str, &Ran),
    errors: &mut Errors,
) -> anyhow::Result<()> {
    for place in emulated(run) {
        let device = text(&place["profile"]);
        // How fast processors were then, the other capture does not tell.
        let found = predicted(program, &from.captured, (device, place, 1.0), to)?;
        let measured = measured(place);
        let error = (found[RATE] / median(measured[RATE].clone()) - 1.0) * 100.0;
        errors.other_terminals.push(error.abs());
        let what = format!("{name} on {}: {RATE}", short(device));
        sitting.add(what, error, "%", Target::Within(-15.0, 15.0));
    }
    Ok(())
}

/// What a load would reach by the profiles that were fitted to the devices.
fn by_fits(
    sitting: &mut Sitting,
    name: &str,
    run: &Ran,
    (fits, ask): (&BTreeMap<String, PathBuf>, &Ask<'_>),
    errors: &mut ByFigure,
) -> anyhow::Result<()> {
    for place in emulated(run) {
        let device = short(text(&place["profile"]));
        let found = ask(&fits[device].to_string_lossy(), place)?;
        let measured = measured(place);
        for (figure, predicted) in found {
            let Some(middle) = measured.get(&figure).cloned().map(median) else { continue };
            if middle <= 0.0 {
                continue;
            }
            let error = (predicted / middle - 1.0) * 100.0;
            errors.push(&figure, error);
            if figure == RATE {
                let what = format!("{name} on {device} by its fitted profile: {RATE}");
                sitting.add(what, error, "%", Target::Within(-25.0, 25.0));
            }
        }
    }
    Ok(())
}

/// Probes every device as somebody would who knows nothing of it, and fits a profile to that.
fn fit_all(
    sitting: &mut Sitting,
    program: &Path,
    folder: &Path,
    devices: &[PathBuf],
) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let mut fits = BTreeMap::new();
    let own = program.to_string_lossy();
    for device in devices {
        let path = device.to_string_lossy();
        let name = short(&path).to_owned();
        let place = folder.join("served");
        let measured = folder.join(format!("{name}-measurements.json"));
        let fitted = folder.join(format!("{name}-fitted.toml"));
        if fitted.exists() {
            fits.insert(name, fitted);
            continue;
        }
        std::fs::create_dir_all(&place)?;
        let [place, to, profile] =
            [&place, &measured, &fitted].map(|path| path.to_string_lossy().into_owned());
        let probe = ["--quiet", "--", &*own, "probe", &place, "--output", &to, "--quiet"];
        timed(program, &[&["emulate", &*path, "--dir", &place][..], &probe].concat())?;
        timed(program, &["fit", &to, "--output", &profile, "--name", &name, "--quiet"])?;
        fits.insert(name, fitted);
    }
    let count = fits.len() as f64;
    sitting.add("devices probed and fitted", count, "", Target::AtLeast(devices.len() as f64));
    Ok(fits)
}

/// The places of a run that are emulated devices.
fn emulated(run: &Ran) -> impl Iterator<Item = &Value> {
    let places = run.result["places"].as_array().into_iter().flatten();
    places.filter(|place| !text(&place["profile"]).is_empty())
}

/// How fast processors were in the runs, over the capture; 1 where that was not measured.
fn speed(place: &Value) -> f64 {
    place["as_run"]["speed"].as_f64().unwrap_or(1.0)
}

/// What emulators took of the processors in the runs at a place: it is not the load's.
fn of_runs(place: &Value, figure: &str) -> f64 {
    let runs = place["runs"].as_array().into_iter().flatten();
    let each: Vec<f64> = runs.filter_map(|run| run[figure].as_f64()).collect();
    each.iter().sum::<f64>() / each.len().max(1) as f64
}

/// What a capture predicts for a device and this many terminals, beside the emulators of a place
/// and with processors of this speed over that of the capture.
fn predicted(
    program: &Path,
    captured: &str,
    (device, place, speed): (&str, &Value, f64),
    terminals: &str,
) -> anyhow::Result<Figures> {
    let load = format!("{:.0}ns", of_runs(place, "emulator_ns"));
    let speed = speed.to_string();
    let late = format!("{:.0}ns", place["as_run"]["late_ns"].as_f64().unwrap_or(0.0));
    let less = format!("{:.0}ns", place["as_run"]["sync_less_ns"].as_f64().unwrap_or(0.0));
    let emulator = ["--request-load", &load, "--request-late", &late, "--sync-less", &less];
    let beside = [&["--speed", &speed][..], &emulator].concat();
    let asked = ["--on", device, "--users", terminals, "--cold", "--json", "--quiet"];
    let words = [&["predict", captured][..], &asked, &beside].concat();
    let (printed, _) = timed(program, &words)?;
    let printed: Value = serde_json::from_str(&printed)?;
    let answer = &printed["devices"][0];
    let per_min = answer["per_min"].as_f64().context("a rate is predicted")?;
    let mut found = Figures::from([(RATE.to_owned(), per_min)]);
    for kind in answer["kinds"].as_array().into_iter().flatten() {
        for quantile in ["p50", "p99"] {
            if let Some(ns) = kind[format!("response_ns_{quantile}")].as_f64() {
                found.insert(format!("{} {quantile}", text(&kind["kind"])), ns / 1e6);
            }
        }
    }
    Ok(found)
}

/// What SQLite reaches on a device in virtual time.
fn by_engine(
    program: &Path,
    load: &[&str],
    (device, share): (&str, f64),
    terminals: &str,
) -> anyhow::Result<Figures> {
    let speed = (1.0 - share).to_string();
    let asked = ["--users", terminals, "--on", device, "--speed", &speed];
    let times = ["--warmup", "2s", "--duration", "8s"];
    let words = [&["oltp", "run"], load, &asked, &times, &["--json", "--quiet"]].concat();
    let (printed, _) = timed(program, &words)?;
    let printed: Value = serde_json::from_str(&printed)?;
    let per_s = printed["transactions_per_s"].as_f64().context("a rate is printed")?;
    let mut found = Figures::from([(RATE.to_owned(), per_s * 60.0)]);
    for kind in printed["transactions"].as_array().into_iter().flatten() {
        for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
            if let Some(ns) = quantile(&kind["response_ns"]["buckets"], share) {
                found.insert(format!("{} {name}", text(&kind["kind"])), ns / 1e6);
            }
        }
    }
    Ok(found)
}

/// The value of a histogram (values and how many there are of each) that this share is below.
fn quantile(buckets: &Value, share: f64) -> Option<f64> {
    let buckets: Vec<(f64, u64)> = serde_json::from_value(buckets.clone()).ok()?;
    let all: u64 = buckets.iter().map(|(_, count)| count).sum();
    let mut left = (all as f64 * share).ceil() as u64;
    let found = buckets.iter().find(|(_, count)| {
        left = left.saturating_sub(*count);
        left == 0
    });
    found.map(|(value, _)| *value)
}

/// Every figure of a place, with its value in each run.
fn measured(place: &Value) -> BTreeMap<String, Vec<f64>> {
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for run in place["runs"].as_array().into_iter().flatten() {
        for (figure, value) in figures(&run["figures"]) {
            all.entry(figure).or_default().push(value);
        }
    }
    all
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// The name of a device's profile.
fn short(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path).trim_end_matches(".toml")
}

/// The figures of one load on all devices, by their true profiles.
fn by_true(
    sitting: &mut Sitting,
    name: &str,
    run: &Ran,
    ask: &Ask<'_>,
    errors: &mut ByFigure,
) -> anyhow::Result<()> {
    for place in emulated(run) {
        let (runs, profile) = (measured(place), text(&place["profile"]));
        for (figure, predicted) in &ask(profile, place)? {
            let mut measured = runs.get(figure).cloned().unwrap_or_default();
            measured.sort_by(f64::total_cmp);
            let (Some(least), Some(most)) = (measured.first(), measured.last()) else { continue };
            let (spread, middle) = (most - least, median(measured.clone()));
            if middle <= 0.0 {
                continue;
            }
            let error = (predicted / middle - 1.0) * 100.0;
            errors.push(figure, error);
            let floor = spread / middle * 100.0;
            let (device, middle) = (short(profile), page::figure(middle));
            let what = format!("{name} on {device}: {figure} of {middle} (A/A {floor:.0} %)");
            sitting.add(what, error, "%", Target::Within(-25.0, 25.0));
        }
    }
    Ok(())
}

/// What a user sees, by name: transactions per minute, and p50 and p99 of each kind in ms.
fn figures(figures: &Value) -> Figures {
    let mut found = Figures::new();
    let mut add = |name: String, value: &Value| {
        if let Some(value) = value.as_f64() {
            found.insert(name, value);
        }
    };
    add(RATE.to_owned(), &figures["transactions_per_min"]);
    for kind in figures["kinds"].as_array().into_iter().flatten() {
        let name = text(&kind["kind"]);
        add(format!("{name} p50"), &kind["p50_ms"]);
        add(format!("{name} p99"), &kind["p99_ms"]);
    }
    found
}

fn summary(sitting: &mut Sitting, errors: &Errors) {
    let groups = [
        ("transactions per minute", &errors.by_true.throughput, 10.0),
        ("p50 by kind", &errors.by_true.p50, 15.0),
        ("p99 by kind", &errors.by_true.p99, 25.0),
        ("transactions per minute, another number of terminals", &errors.other_terminals, 15.0),
        ("transactions per minute, by fitted profiles", &errors.by_fits.throughput, 10.0),
        ("p50 by kind, by fitted profiles", &errors.by_fits.p50, 15.0),
        ("p99 by kind, by fitted profiles", &errors.by_fits.p99, 25.0),
    ];
    for (what, errors, bound) in groups {
        if errors.is_empty() {
            continue;
        }
        let what = format!("{what}: median error of {} cells", errors.len());
        sitting.add(what, median(errors.clone()), "%", Target::AtMost(bound));
    }
    let worst = errors.by_true.throughput.iter().copied().fold(0.0, f64::max);
    if worst > 0.0 {
        sitting.add("transactions per minute: worst", worst, "%", Target::AtMost(25.0));
    }
}
