//! Running programs and reading what they print.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

/// Runs a command in the root and returns its standard output.
pub fn output(program: &Path, arguments: &[&str]) -> anyhow::Result<String> {
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

/// Builds the program as users have it and returns its path.
pub fn program() -> anyhow::Result<PathBuf> {
    output(Path::new("cargo"), &["build", "--quiet", "--release", "--locked"])?;
    Ok(crate::target().join("release/wearmark"))
}

/// Builds the development profile's program, or an example of a package, and returns its path: for
/// what is no matter of speed.
pub fn development(name: &str, package: Option<&str>) -> anyhow::Result<PathBuf> {
    let debug = crate::target().join("debug");
    let Some(package) = package else {
        output(Path::new("cargo"), &["build", "--quiet", "--locked"])?;
        return Ok(debug.join(name));
    };
    let arguments = ["build", "--quiet", "--package", package, "--example", name];
    output(Path::new("cargo"), &arguments)?;
    Ok(debug.join("examples").join(name))
}

/// Builds a release example of a package and returns its path.
pub fn example(package: &str, name: &str) -> anyhow::Result<PathBuf> {
    output(
        Path::new("cargo"),
        &["build", "--quiet", "--release", "--package", package, "--example", name],
    )?;
    Ok(crate::target().join("release/examples").join(name))
}

/// Runs a benchmark of a package and returns what it printed.
pub fn bench(package: &str, name: &str) -> anyhow::Result<String> {
    let arguments = ["bench", "--quiet", "--package", package, "--bench", name, "--", "--quick"];
    output(Path::new("cargo"), &arguments)
}

/// An empty folder for an area; what is in it is ours.
pub fn folder(area: &str) -> anyhow::Result<PathBuf> {
    let folder = crate::target().join("bars").join(area);
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Runs a command and returns its standard output and the processor time that it took, s. Exit code
/// 1 is a finding, no failure.
pub fn timed(program: &Path, arguments: &[&str]) -> anyhow::Result<(String, f64)> {
    let before = children_cpu_s()?;
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| program.display().to_string())?;
    if !matches!(output.status.code(), Some(0 | 1)) {
        let shown = format!("{} {}", program.display(), arguments.join(" "));
        bail!("{shown}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok((String::from_utf8(output.stdout)?, children_cpu_s()? - before))
}

/// Processor time of all children that have ended, s (proc(5): `cutime` and `cstime` in ticks of 10
/// ms).
pub fn children_cpu_s() -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, rest) = stat.rsplit_once(')').context("no name in /proc/self/stat")?;
    let ticks = rest.split_whitespace().skip(13).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? / 100.0)
}

/// The number at a path of JSON keys.
pub fn number(value: &Value, path: &[&str]) -> anyhow::Result<f64> {
    let found = path.iter().fold(value, |value, key| &value[key]);
    found.as_f64().with_context(|| format!("no number at {}", path.join(".")))
}

/// The number in front of `unit` in the first line that contains `what`.
pub fn figure(text: &str, what: &str, unit: &str) -> anyhow::Result<f64> {
    let line = text.lines().find(|line| line.contains(what) && line.contains(unit));
    let line = line.with_context(|| format!("no line with '{what}' and '{unit}'"))?;
    let front = line.split(unit).next().unwrap_or(line).trim_end();
    let number = front.rsplit([' ', '[']).next().unwrap_or(front);
    number.parse().with_context(|| format!("no number before '{unit}' in '{line}'"))
}

/// The middle of criterion's three times of a benchmark, us.
pub fn criterion_us(text: &str, name: &str) -> anyhow::Result<f64> {
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

/// The middle value.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}
