//! `wearmark compare`, and `wearmark oltp compare`: did it get better or worse, and is that sure?

use std::path::{Path, PathBuf};

use formats::Stop;
use serde::Serialize;
use stats::bootstrap::CONFIDENCE;
use study::checks::{Repeat, Repeated, csv, headline, junit, markdown, read, repeat, rows};
use study::run_dir::write_atomically;
use study::runs::page;
use study::verdict::{Compared, Side, Whole, compare, whole};

use super::{Context, Outcome, output};
use crate::cli::Compare;
use crate::failure::Advice;
use crate::view::CANCELLED;

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    verdict: Whole,
    bound: f64,
    kind: &'a str,
    /// How often the intervals hold the true value.
    confidence: f64,
    /// Pairs of runs, where they were made for this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pairs: Option<u32>,
    figures: &'a [Compared],
}

/// Runs `wearmark compare`.
pub fn run(arguments: &Compare, context: &Context) -> anyhow::Result<Outcome> {
    check_bound(arguments.bound)?;
    let Some(most) = arguments.repeat_until else {
        let (old, new) = read(&arguments.old, &arguments.new, Stop::on(&CANCELLED))?;
        let compared = compare(&old, &new, arguments.bound);
        let (kind, confidence) = (old.kind, CONFIDENCE);
        let told = Repeated { kind, compared, pairs: 0, confidence, interrupted: false };
        return tell(arguments, &told, context);
    };
    let [old, new] = arguments.run.as_slice() else { unreachable!("clap asks for two") };
    let asked = Repeat {
        commands: [old, new],
        directories: [&arguments.old, &arguments.new],
        most,
        bound: arguments.bound,
        stop: Stop::on(&CANCELLED),
    };
    let repeated = repeat(&asked, &context.view)?;
    if repeated.interrupted && repeated.compared.is_empty() {
        return Ok(Outcome::Interrupted);
    }
    Ok(match tell(arguments, &repeated, context)? {
        Outcome::NoVerdict if repeated.interrupted => Outcome::Interrupted,
        found => found,
    })
}

/// Writes and prints what was compared.
fn tell(arguments: &Compare, told: &Repeated, context: &Context) -> anyhow::Result<Outcome> {
    let Repeated { kind, compared, pairs, confidence, .. } = told;
    let names = (arguments.old.display().to_string(), arguments.new.display().to_string());
    let names = (names.0.as_str(), names.1.as_str());
    let bound = arguments.bound;
    let write = |path: &Option<PathBuf>, text: &dyn Fn() -> String| match path {
        Some(path) => write_atomically(path, text().as_bytes()),
        None => Ok(()),
    };
    write(&arguments.markdown, &|| markdown(compared, bound, *confidence, names))?;
    write(&arguments.junit, &|| junit(compared))?;
    write(&arguments.csv, &|| csv(compared))?;
    write_page(arguments.html.as_deref(), compared, bound, names)?;
    let is_repeated = arguments.repeat_until.is_some();
    if context.json {
        output::json(&Report {
            verdict: whole(compared),
            bound,
            kind,
            confidence: *confidence,
            pairs: is_repeated.then_some(*pairs),
            figures: compared,
        })?;
    } else {
        output::print(&output::table(&rows(compared)))?;
        let after = is_repeated.then(|| format!(" after {pairs} pairs of runs"));
        output::print(&format!("{}{}\n", headline(compared, bound), after.unwrap_or_default()))?;
    }
    Ok(outcome(compared))
}

/// Compares two sides for a command that prints the figures alone.
pub fn show(
    (old, new): (&Side, &Side),
    bound: f64,
    html: Option<&Path>,
    names: (&str, &str),
    context: &Context,
) -> anyhow::Result<Outcome> {
    let compared = compare(old, new, bound);
    write_page(html, &compared, bound, names)?;
    if context.json {
        output::json(&compared)?;
    } else {
        output::print(&output::table(&rows(&compared)))?;
    }
    Ok(outcome(&compared))
}

/// Refuses what is no share.
pub fn check_bound(bound: f64) -> anyhow::Result<()> {
    if (0.0..=1.0).contains(&bound) {
        return Ok(());
    }
    Err(Advice::error(
        format!("--bound {bound}: is no share"),
        "write a share from 0 to 1, such as 0.05",
    ))
}

fn write_page(
    path: Option<&Path>,
    compared: &[Compared],
    bound: f64,
    names: (&str, &str),
) -> anyhow::Result<()> {
    if let Some(path) = path {
        let page = page::comparison(compared, bound, names);
        write_atomically(path, report::html(&page).as_bytes())?;
    }
    Ok(())
}

fn outcome(compared: &[Compared]) -> Outcome {
    match whole(compared) {
        Whole::Regression => Outcome::Finding,
        Whole::NoRegression => Outcome::Fine,
        Whole::NoVerdict => Outcome::NoVerdict,
    }
}
