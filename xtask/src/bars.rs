//! `cargo xtask bars [NAME]`: the figures that we promise, measured where you stand.
//!
//! One line each: name, figure, unit, target, where it stands. Where a rival is named it runs in the
//! same sitting, alternating with ours, and medians are compared. Shared machines are noisy: CPU per
//! request and ratios are the sturdy figures. Nothing here fails; CI does not run it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

/// A promise and how it is measured.
struct Bar {
    name: &'static str,
    measure: fn() -> anyhow::Result<Vec<Line>>,
}

/// One measured figure.
struct Line {
    what: String,
    figure: f64,
    unit: &'static str,
    target: Target,
}

/// What the figure should be.
enum Target {
    AtMost(f64),
    AtLeast(f64),
    Within(f64, f64),
}

const BARS: &[Bar] = &[
    Bar { name: "probe", measure: probe },
    Bar { name: "replay", measure: replay },
    Bar { name: "sim", measure: sim },
    Bar { name: "oltp", measure: oltp },
    Bar { name: "main-job", measure: main_job },
];

/// Measures one bar or all.
pub fn measure(name: Option<&str>) -> anyhow::Result<()> {
    let chosen: Vec<&Bar> = BARS.iter().filter(|bar| name.is_none_or(|n| n == bar.name)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = BARS.iter().map(|bar| bar.name).collect();
        bail!("no bar of that name; there are {}", names.join(", "));
    }
    println!(
        "{:<10} {:<46} {:>12} {:<10} {:<18} stands",
        "bar", "figure of", "figure", "unit", "target"
    );
    for bar in chosen {
        match (bar.measure)() {
            Ok(lines) => lines.iter().for_each(|line| print_line(bar.name, line)),
            Err(error) => println!("{:<10} could not be measured: {error:#}", bar.name),
        }
    }
    Ok(())
}

fn print_line(name: &str, line: &Line) {
    let (target, met) = match line.target {
        Target::AtMost(bound) => (format!("at most {bound}"), line.figure <= bound),
        Target::AtLeast(bound) => (format!("at least {bound}"), line.figure >= bound),
        Target::Within(low, high) => {
            (format!("{low} to {high}"), (low..=high).contains(&line.figure))
        }
    };
    let stands = if met { "met" } else { "not met" };
    println!(
        "{name:<10} {:<46} {:>12.4} {:<10} {target:<18} {stands}",
        line.what, line.figure, line.unit
    );
}

/// Runs a command and returns its standard output.
fn output(program: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let shown = || format!("{} {}", program.display(), arguments.join(" "));
    let output = Command::new(program)
        .args(arguments)
        .current_dir(crate::root())
        .output()
        .with_context(shown)?;
    if !output.status.success() {
        bail!("{}: {}", shown(), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Builds a release example of a package and returns its path.
fn example(package: &str, name: &str) -> anyhow::Result<PathBuf> {
    output(
        Path::new("cargo"),
        &["build", "--quiet", "--release", "--package", package, "--example", name],
    )?;
    Ok(crate::target().join("release/examples").join(name))
}

/// The number at a path of JSON keys.
fn number(value: &Value, path: &[&str]) -> anyhow::Result<f64> {
    let found = path.iter().fold(value, |value, key| &value[key]);
    found.as_f64().with_context(|| format!("no number at {}", path.join(".")))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

/// Pairs of ours against fio's on the same file.
const PAIRS: usize = 5;
const CELL_SECONDS: &str = "2";

/// IOPS and CPU per request of one run.
struct Run {
    iops: f64,
    cpu_us: f64,
}

fn probe() -> anyhow::Result<Vec<Line>> {
    let cell = example("probe", "probe_cell")?;
    let folder = crate::target().join("bars");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("probe.bin");
    fill(&file)?;
    let mut lines = Vec::new();
    for (order, fio_order) in [("random", "rand"), ("sequential", "")] {
        for op in ["read", "write"] {
            for depth in [1, 32] {
                let mut ratios = (Vec::new(), Vec::new());
                for _ in 0..PAIRS {
                    let ours = ours(&cell, &file, order, op, depth)?;
                    let fio = fio(&file, &format!("{fio_order}{op}"), depth)?;
                    ratios.0.push(ours.iops / fio.iops);
                    ratios.1.push(ours.cpu_us / fio.cpu_us);
                }
                let what = format!("{order} {op} 4 KiB depth {depth}");
                lines.push(Line {
                    what: format!("{what}: IOPS over fio's"),
                    figure: median(ratios.0),
                    unit: "ratio",
                    target: Target::AtLeast(0.97),
                });
                lines.push(Line {
                    what: format!("{what}: CPU over fio's"),
                    figure: median(ratios.1),
                    unit: "ratio",
                    target: Target::AtMost(if depth == 1 { 1.0 } else { 0.85 }),
                });
            }
        }
    }
    std::fs::remove_file(&file)?;
    let text = bench("probe", "tool_share")?;
    for name in ["random_read_4KiB_qd1", "random_read_4KiB_qd32", "random_write_4KiB_qd32"] {
        lines.push(Line {
            what: format!("tool's own share, {name}"),
            figure: criterion_us(&text, name)?,
            unit: "us/I/O",
            target: Target::AtMost(0.12),
        });
    }
    Ok(lines)
}

/// Writes the file that both tools measure.
fn fill(file: &Path) -> anyhow::Result<()> {
    let name = format!("--filename={}", file.display());
    output(
        Path::new("fio"),
        &[
            "--name=fill",
            &name,
            "--size=1g",
            "--rw=write",
            "--bs=1m",
            "--direct=1",
            "--ioengine=io_uring",
            "--iodepth=8",
            "--refill_buffers",
            "--end_fsync=1",
        ],
    )?;
    Ok(())
}

fn ours(cell: &Path, file: &Path, order: &str, op: &str, depth: u32) -> anyhow::Result<Run> {
    let share = if op == "read" { "1" } else { "0" };
    let (file, depth) = (file.to_string_lossy(), depth.to_string());
    let text = output(cell, &[&file, CELL_SECONDS, order, share, "4096", &depth])?;
    let json: Value = serde_json::from_str(&text)?;
    Ok(Run { iops: number(&json, &["iops"])?, cpu_us: number(&json, &["cpu_us"])? })
}

/// Runs a benchmark of a package and returns what it printed.
fn bench(package: &str, name: &str) -> anyhow::Result<String> {
    let arguments = ["bench", "--quiet", "--package", package, "--bench", name, "--", "--quick"];
    output(Path::new("cargo"), &arguments)
}

/// The number in front of `unit` in the first line that contains `what`.
fn figure(text: &str, what: &str, unit: &str) -> anyhow::Result<f64> {
    let line = text.lines().find(|line| line.contains(what) && line.contains(unit));
    let line = line.with_context(|| format!("no line with '{what}' and '{unit}'"))?;
    let front = line.split(unit).next().unwrap_or(line).trim_end();
    let number = front.rsplit([' ', '[']).next().unwrap_or(front);
    number.parse().with_context(|| format!("no number before '{unit}' in '{line}'"))
}

/// The middle of criterion's three times of a benchmark, us.
fn criterion_us(text: &str, name: &str) -> anyhow::Result<f64> {
    let found = text.lines().skip_while(|line| !line.contains(name)).find(|l| l.contains("time:"));
    let line = found.with_context(|| format!("no time of {name}"))?;
    let times = line.split('[').nth(1).context("criterion prints times in brackets")?;
    let words: Vec<&str> = times.split_whitespace().collect();
    let (value, unit) = (words.get(2).context("value")?, words.get(3).context("unit")?);
    let factor = match *unit {
        "ns" => 1e-3,
        "ms" => 1e3,
        _ => 1.0,
    };
    Ok(value.parse::<f64>()? * factor)
}

fn fio(file: &Path, rw: &str, depth: u32) -> anyhow::Result<Run> {
    let text = output(
        Path::new("fio"),
        &[
            "--name=x",
            &format!("--filename={}", file.display()),
            "--size=1g",
            "--direct=1",
            "--ioengine=io_uring",
            &format!("--rw={rw}"),
            "--bs=4k",
            &format!("--iodepth={depth}"),
            "--time_based",
            &format!("--runtime={CELL_SECONDS}"),
            "--norandommap",
            "--random_generator=tausworthe64",
            "--refill_buffers",
            "--output-format=json",
        ],
    )?;
    let start = text.find('{').context("fio printed no JSON")?;
    let json: Value = serde_json::from_str(&text[start..])?;
    let job = &json["jobs"][0];
    let side = if rw.ends_with("read") { "read" } else { "write" };
    let ios = number(job, &[side, "total_ios"])?;
    let seconds = number(job, &["job_runtime"])? / 1e3;
    let percent = number(job, &["usr_cpu"])? + number(job, &["sys_cpu"])?;
    Ok(Run { iops: number(job, &[side, "iops"])?, cpu_us: percent / 100.0 * seconds / ios * 1e6 })
}

fn replay() -> anyhow::Result<Vec<Line>> {
    let program = example("probe", "replay_rate")?;
    let folder = crate::target().join("bars");
    std::fs::create_dir_all(&folder)?;
    let mut lines = Vec::new();
    for rate in ["1000", "5000", "20000"] {
        let text = output(&program, &[&folder.to_string_lossy(), rate, "6"])?;
        let json: Value = serde_json::from_str(&text)?;
        lines.push(Line {
            what: format!("duration over ideal at {rate}/s"),
            figure: number(&json, &["duration_ratio"])?,
            unit: "ratio",
            target: Target::Within(0.9995, 1.0005),
        });
        for (quantile, bound) in [("p50", 5.0), ("p99", 50.0)] {
            lines.push(Line {
                what: format!("issue lateness {quantile} at {rate}/s"),
                figure: number(&json, &[&format!("lateness_ns_{quantile}")])? / 1e3,
                unit: "us",
                target: Target::AtMost(bound),
            });
        }
    }
    Ok(lines)
}

fn sim() -> anyhow::Result<Vec<Line>> {
    let text = bench("sim", "replay_rate")?;
    let line = |what: &str| -> anyhow::Result<Line> {
        Ok(Line {
            what: "linear + write cache, trace in memory, one core".into(),
            figure: figure(&text, what, "M requests/s")?,
            unit: "M req/s",
            target: Target::AtLeast(30.0),
        })
    };
    Ok(vec![line("linear_cache:")?])
}

/// Runs of the load with and without capture, in turn.
const CAPTURE_PAIRS: usize = 5;

fn oltp() -> anyhow::Result<Vec<Line>> {
    let folder = crate::target().join("bars/oltp");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let place = folder.to_string_lossy().into_owned();
    let loaded = output(&example("oltp", "load_speed")?, &["10", &place])?;
    let database = folder.join("order_entry.db");
    let checked = output(&example("oltp", "check")?, &[&database.to_string_lossy()])?;
    let seconds = checked.lines().last().context("check prints its time")?;
    let mut lost = (Vec::new(), Vec::new());
    let mut shares = Vec::new();
    for _ in 0..CAPTURE_PAIRS {
        let database = order_entry(&place, &["--no-physical"])?;
        let without = order_entry(&place, &["--no-capture"])?;
        let block_layer = order_entry(&place, &[])?;
        let rate = |run: &Value| number(run, &["transactions_per_s"]);
        lost.0.push(1.0 - rate(&database)? / rate(&without)?);
        lost.1.push(1.0 - rate(&block_layer)? / rate(&without)?);
        shares.push(number(&database, &["client_overhead", "share"])?);
    }
    std::fs::remove_dir_all(&folder)?;
    let line = |what: &str, figure, unit, target| Line { what: what.into(), figure, unit, target };
    let rate = figure(&loaded, "W/min", "W/min")?;
    let check_s: f64 = seconds.trim_end_matches(" s").parse()?;
    Ok(vec![
        line("loading 10 W, one core", rate, "W/min", Target::AtLeast(10.0)),
        line("twelve conditions at 10 W", check_s, "s", Target::AtMost(15.0)),
        line("client share of CPU", median(shares), "share", Target::AtMost(0.15)),
        line("lost to capture, database", median(lost.0), "share", Target::AtMost(0.03)),
        line("lost to capture, block layer too", median(lost.1), "share", Target::AtMost(0.03)),
    ])
}

/// One run of the load on a database that exists, with 20 users.
fn order_entry(place: &str, more: &[&str]) -> anyhow::Result<Value> {
    let program = crate::target().join("release/wearmark");
    let mut arguments = vec![
        "oltp",
        "run",
        place,
        "--warehouses",
        "10",
        "--warmup",
        "2s",
        "--duration",
        "10s",
        "--json",
        "--quiet",
    ];
    arguments.extend(more);
    let output = Command::new(&program)
        .args(&arguments)
        .output()
        .with_context(|| format!("{} (build it with --release first)", program.display()))?;
    // A missed response-time bound is a finding (exit code 1), not a failure to measure.
    serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

/// The newest complete quickstart run, or a new one.
fn main_job() -> anyhow::Result<Vec<Line>> {
    let runs = crate::target().join("bars/runs");
    let start = std::time::Instant::now();
    crate::run(
        "cargo",
        &[
            "run",
            "--quiet",
            "--release",
            "--",
            "study",
            "run",
            "quickstart",
            "--runs",
            &runs.to_string_lossy(),
        ],
    )?;
    let elapsed = start.elapsed().as_secs_f64();
    let newest = std::fs::read_dir(&runs)?.filter_map(|entry| Some(entry.ok()?.path())).max();
    let run = newest.context("the run left no directory")?;
    let result: Value = serde_json::from_slice(&std::fs::read(run.join("result.json"))?)?;
    let error = &result["validation"];
    let aim = number(error, &["aim"])?;
    let report = std::fs::metadata(run.join("report.html"))?.len() as f64 / 1e6;
    let mut lines = vec![
        Line {
            what: "the whole job".into(),
            figure: elapsed,
            unit: "s",
            target: Target::AtMost(240.0),
        },
        Line { what: "report".into(), figure: report, unit: "MB", target: Target::AtMost(1.5) },
        Line {
            what: "E, simulated against real".into(),
            figure: number(error, &["error_ratio"])?,
            unit: "ratio",
            target: Target::AtMost(aim),
        },
    ];
    for operation in error["operations"].as_array().into_iter().flatten() {
        lines.push(Line {
            what: format!(
                "E of {}s (A/A {:.3})",
                operation["op"].as_str().unwrap_or("?"),
                number(operation, &["noise_floor"])?
            ),
            figure: number(operation, &["error_ratio"])?,
            unit: "ratio",
            target: Target::AtMost((1.5 * number(operation, &["noise_floor"])?).max(0.05)),
        });
    }
    Ok(lines)
}
