//! `wearmark probe` and `wearmark fit`

use std::path::{Path, PathBuf};

use ::fit::FitOptions;
use ::fit::measurement::{CellResult, Measurements};
use ::io::target::TargetSpec;
use ::probe::plan::name;
use ::probe::{Options, PlanKind};
use anyhow::Context as _;
use events::Sink;
use report::format;
use study::profiles::read_device;
use study::{modelled_probe, run_dir};

use super::{Context, Outcome, output};
use crate::cli::{Fit, Plan, Probe};
use crate::view::seconds;

/// `wearmark probe`
pub fn run(arguments: &Probe, context: &Context) -> anyhow::Result<Outcome> {
    if let Some(name) = &arguments.profile {
        return modelled(name, arguments, context);
    }
    // By its name: measurements are read elsewhere, where "." is another place.
    let target = match &arguments.target {
        Some(target) => target.clone(),
        None => std::env::current_dir().context("cannot tell the current directory")?,
    };
    let partial = partial(&arguments.output);
    let mut options = Options {
        range_bytes: arguments.range.0,
        plan: match arguments.plan {
            Plan::Quick => PlanKind::Quick,
            Plan::Full => PlanKind::Full,
        },
        seed: arguments.seed,
        ..Options::new(TargetSpec {
            path: target,
            i_will_lose_data: arguments.i_will_lose_data.clone(),
        })
    };
    if arguments.dry_run {
        return dry_run(&options, context);
    }
    options.done = done_before(&partial);
    let mut cells = options.done.clone();
    let mut failed = None;
    let measured = ::probe::run(&options, &context.view, &mut |cell: &CellResult| {
        cells.push(cell.clone());
        failed = failed.take().or(save(&partial, &cells).err());
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    if context.view.cancelled() {
        eprintln!("Stopped; the same command goes on from {}.", partial.display());
        return Ok(Outcome::Interrupted);
    }
    finish(&measured, arguments, context)?;
    let _ = std::fs::remove_file(&partial);
    Ok(Outcome::Fine)
}

/// The same cells on a model.
fn modelled(name: &str, arguments: &Probe, context: &Context) -> anyhow::Result<Outcome> {
    let profile = read_device(name)?;
    let probe = modelled_probe::probe;
    match probe(&profile, arguments.range, arguments.seed, &context.view)? {
        Some(measured) => finish(&measured, arguments, context).map(|()| Outcome::Fine),
        None => Ok(Outcome::Interrupted),
    }
}

/// Keeps and shows what was measured.
fn finish(measured: &Measurements, arguments: &Probe, context: &Context) -> anyhow::Result<()> {
    run_dir::write_atomically(&arguments.output, &serde_json::to_vec(measured)?)?;
    if let Some(path) = &arguments.html {
        // Without lines the curves still stand: a fit that fails says so when it is asked for.
        let options = FitOptions { seed: 1, name: "fitted".to_owned() };
        let lines = ::fit::fit(measured, &options).map_or_else(|_| Vec::new(), |fit| fit.lines);
        let page = study::page::measured(measured, &lines);
        run_dir::write_atomically(path, report::html(&page).as_bytes())?;
    }
    if context.json {
        output::json(measured)
    } else {
        output::print(&(summary(measured, arguments.table) + &next(&arguments.output)))
    }
}

/// Sentences and a picture; every cell too where that is wanted, or where there is nothing to say.
fn summary(measured: &Measurements, every_cell: bool) -> String {
    let sentences = study::probed::sentences(measured);
    let mut text = String::new();
    for sentence in &sentences {
        text.push_str(&output::filled(sentence, output::terminal_width().min(100)));
    }
    if let Some(page) = study::probed::picture(measured) {
        let width = output::terminal_width().min(100);
        text.push_str(&format!("\n{}", report::terminal(&page, width, output::colour())));
    }
    if every_cell || sentences.is_empty() {
        text.push_str(&format!("\n{}", table(measured)));
    }
    text
}

/// Where the measurements are, and what to do with them.
fn next(measurements: &Path) -> String {
    let out = measurements.display();
    format!(
        "\nEvery cell is in {out} (--table prints them, --html draws them).\n\
         Next: wearmark fit {out}\n"
    )
}

/// Where cells are kept until the plan is done.
fn partial(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

fn done_before(partial: &Path) -> Vec<CellResult> {
    run_dir::read_json(partial).unwrap_or_default()
}

fn save(partial: &Path, cells: &[CellResult]) -> anyhow::Result<()> {
    Ok(run_dir::write_atomically(partial, &serde_json::to_vec(cells)?)?)
}

fn dry_run(options: &Options, context: &Context) -> anyhow::Result<Outcome> {
    let plan = ::probe::dry_run(options)?;
    if context.json {
        output::json(&plan.steps)?;
        return Ok(Outcome::Fine);
    }
    let rows: Vec<Vec<String>> = plan
        .steps
        .iter()
        .map(|step| {
            let writes = format::bytes(step.writes_bytes as f64);
            vec![step.name.clone(), seconds(step.expected_s), writes]
        })
        .collect();
    output::print(&format!(
        "{}\nIn all about {}; {} written to {} (its wear). Nothing was done.\n",
        output::table(&rows),
        seconds(plan.expected_s),
        format::bytes(plan.writes_bytes as f64),
        options.target.path.display(),
    ))?;
    Ok(Outcome::Fine)
}

fn table(measured: &Measurements) -> String {
    let header = ["CELL", "IOPS", "BYTES/S", "P50", "P99", "CPU/IO"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for result in &measured.cells {
        let class = result.classes.first();
        let at = |q| {
            class.map_or(format::NOTHING.to_owned(), |class| {
                let histogram = stats::Histogram::from_buckets(&class.response.buckets);
                format::duration_ns(histogram.quantile(q) as f64)
            })
        };
        rows.push(vec![
            name(&result.cell),
            format::count(result.requests as f64 / result.elapsed_s),
            format::bytes_per_s(result.bytes as f64 / result.elapsed_s),
            at(0.5),
            at(0.99),
            format::duration_ns(result.cpu_user_ns + result.cpu_system_ns),
        ]);
    }
    output::table(&rows)
}

/// `wearmark fit`
pub fn fit(arguments: &Fit, context: &Context) -> anyhow::Result<Outcome> {
    let path = if arguments.measurements.is_dir() {
        arguments.measurements.join(study::artifacts::MEASUREMENTS.name)
    } else {
        arguments.measurements.clone()
    };
    let measured: Measurements = run_dir::read_json(&path)?;
    let fit = ::fit::fit(&measured, &FitOptions { seed: 1, name: arguments.name.clone() })
        .with_context(|| path.display().to_string())?;
    for warning in &fit.warnings {
        context.view.emit(events::Event::Warning(warning.clone()));
    }
    run_dir::write_atomically(&arguments.output, fit.profile.to_toml().as_bytes())?;
    if context.json {
        output::json(&fit.lines)?;
        return Ok(Outcome::Fine);
    }
    let header = ["PATTERN", "BASE US", "US PER KIB", "R2", "MEAN ERROR"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for line in &fit.lines {
        rows.push(vec![
            format!("{:?} {}", line.pattern, line.op.name()).to_lowercase(),
            format!("{:.1} ± {:.1}", line.intercept_us, line.intercept_error_us),
            format!("{:.3} ± {:.3}", line.slope_us_per_kib, line.slope_error_us_per_kib),
            format!("{:.3}", line.r_squared),
            format::percent(line.mean_relative_error),
        ]);
    }
    output::print(&format!(
        "{}\nProfile written to {}\n",
        output::table(&rows),
        arguments.output.display()
    ))?;
    Ok(Outcome::Fine)
}
