//! The gallery: every sweep that is shipped, run anew, with its picture, its figures beside those
//! that were kept, and what one learns; `docs/guide/gallery.md`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::bars::tools::{folder, program};

const HEAD: &str = "\
# Gallery

Questions that come up again and again, each answered by one command, with its picture and what one
learns. `cargo xtask gallery` runs them anew, draws the pictures and says how far the figures are
from those here. [Choosing a volume](choosing-a-volume.md) and `wearmark study run
modern/log-device` (a device of its own for the log) really run PostgreSQL; most of these simulate,
or run SQLite in virtual time. [Your own question](sweeps.md) is a file like theirs.
";

/// Runs all of them, or those that are named, and writes page and pictures anew.
pub fn make(only: &[&str]) -> anyhow::Result<()> {
    let (program, folder) = (program()?, folder("gallery")?);
    let pictures = crate::root().join("docs/pictures");
    let mut page = HEAD.to_owned();
    for name in names()? {
        let kept_at = pictures.join(format!("{name}.json"));
        let kept = fs::read(&kept_at).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let result = if only.is_empty() || only.contains(&&*name) {
            let result = run(&program, &folder, &name)?;
            compare(&name, kept.as_ref(), &result);
            draw(&folder, &name, &pictures.join(format!("{name}.png")))?;
            fs::write(&kept_at, serde_json::to_string_pretty(&result)? + "\n")?;
            result
        } else {
            kept.with_context(|| format!("{name} was never run"))?
        };
        section(&mut page, &name, &result);
    }
    fs::write(crate::root().join("docs/guide/gallery.md"), page)?;
    println!("gallery: wrote docs/guide/gallery.md");
    Ok(())
}

/// The sweeps among the modern studies, by name.
fn names() -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(crate::root().join("studies/modern"))? {
        let path = entry?.path();
        if fs::read_to_string(&path)?.contains("\n[sweep]\n") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

fn run(program: &Path, folder: &Path, name: &str) -> anyhow::Result<Value> {
    println!("gallery: modern/{name}");
    let words = ["study", "run", &format!("modern/{name}"), "--json", "--quiet"];
    let output = Command::new(program).args(words).current_dir(folder).output()?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stdout);
        bail!("{name}: {}{told}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Tells how far the figures are from those that were kept.
fn compare(name: &str, kept: Option<&Value>, found: &Value) {
    let Some(kept) = kept else { return println!("gallery: {name} is new") };
    let mut ratios: Vec<f64> = Vec::new();
    for cell in list(found, "cells") {
        let old = list(kept, "cells").iter().find(|old| old["settings"] == cell["settings"]);
        for (figure, value) in cell["figures"].as_object().into_iter().flatten() {
            let before = old.and_then(|old| old["figures"][figure].as_f64());
            ratios.extend(before.zip(value.as_f64()).map(|(before, now)| now / before));
        }
    }
    let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ratios.iter().copied().fold(0.0, f64::max);
    println!("gallery: {name}: {} figures, {low:.2} to {high:.2} of those kept", ratios.len());
}

/// A picture of the top of a report: the question, and its figure.
fn draw(folder: &Path, name: &str, to: &Path) -> anyhow::Result<()> {
    let report = folder.join("runs").join(format!("{name}-001/report.html"));
    let chromium = std::env::var("WEARMARK_CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
    let status = Command::new(&chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .args(["--window-size=1000,1050", "--virtual-time-budget=3000"])
        .arg(format!("--screenshot={}", to.display()))
        .arg(format!("file://{}", report.display()))
        .output()
        .with_context(|| format!("cannot start {chromium}"))?
        .status;
    if !status.success() || !to.is_file() {
        bail!("{chromium} made no picture of {}", report.display());
    }
    Ok(())
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// A value as text.
fn text(value: &Value) -> String {
    match value.as_f64() {
        Some(number) if number >= 100.0 => format!("{number:.0}"),
        Some(number) if number >= 1.0 => format!("{number:.2}"),
        Some(number) => format!("{number:.4}"),
        None => value.as_str().unwrap_or("").trim().to_owned(),
    }
}

fn section(page: &mut String, name: &str, result: &Value) {
    let [title, question, learned] = ["title", "question", "learned"].map(|key| text(&result[key]));
    // A string takes any text.
    _ = write!(page, "\n## {title}\n\n{}\n\n", wrapped(&question));
    _ = write!(page, "```text\nwearmark study run modern/{name}\n```\n\n");
    _ = write!(page, "![{title}](../pictures/{name}.png)\n\n{}\n\n", wrapped(&learned));
    let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let [axes, figures] = ["axes", "figures"].map(|key| list(result, key));
    let head = |one: &Value| match text(&one["unit"]).as_str() {
        "" => text(&one["title"]),
        unit => format!("{}, {unit}", text(&one["title"])),
    };
    let heads: Vec<String> = axes.iter().chain(figures).map(head).collect();
    let rules: Vec<String> = heads.iter().map(|_| "---".to_owned()).collect();
    page.push_str(&row(&heads));
    page.push_str(&row(&rules).replace(' ', ""));
    for cell in list(result, "cells") {
        let of = |kind: &str, one: &Value| text(&cell[kind][text(&one["name"])]);
        let settings = axes.iter().map(|axis| of("settings", axis));
        let figures = figures.iter().map(|figure| of("figures", figure));
        page.push_str(&row(&settings.chain(figures).collect::<Vec<_>>()));
    }
}

/// Lines of at most 100 columns.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always one");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= 100 {
            _ = write!(line, " {word}");
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}
