//! `wearmark study` and `wearmark report`

use std::path::Path;

use ::study::file::StudyFile;
use ::study::page::ranking;
use ::study::pipeline::{self, Options};
use ::study::result::StudyResult;
use ::study::run_dir::write_atomically;
use ::study::sweep::{self, SweepFile, SweepResult};
use report::format;

use super::{Context, Outcome, output};
use crate::cli::Study;
use crate::failure::Advice;
use crate::view::seconds;

/// Runs the command.
pub fn run(command: Study, context: &Context) -> anyhow::Result<Outcome> {
    match command {
        Study::Show { file } => {
            let text = match SweepFile::read(&file)? {
                Some((_, text)) => text,
                None => StudyFile::read(&file)?.to_toml(),
            };
            output::print(&text)?;
            Ok(Outcome::Fine)
        }
        Study::Run { file, runs, dry_run, live: _ } => match SweepFile::read(&file)? {
            Some((sweep, _)) if dry_run => {
                cells(&sweep)?;
                Ok(Outcome::Fine)
            }
            Some((sweep, text)) => start_sweep(&sweep, &text, &runs, context),
            None if dry_run => {
                show_plan(&StudyFile::read(&file)?, context)?;
                Ok(Outcome::Fine)
            }
            None => start(&StudyFile::read(&file)?, &Options { runs }, context),
        },
    }
}

/// Runs a study, or goes on with it, and shows what came of it.
pub fn start(study: &StudyFile, options: &Options, context: &Context) -> anyhow::Result<Outcome> {
    if study.is_run_on_devices()
        && let Some((cause, hint)) = ::emulate::directories_missing()
    {
        return Err(Advice::error(cause, hint));
    }
    let ended = pipeline::run(study, options, &context.view)?;
    let place = ended.path.display();
    if ended.interrupted {
        let anew = ended
            .stopped_in
            .map_or_else(String::new, |stage| format!(" in stage {stage}, which will start again"));
        let kept = match ended.kept.as_slice() {
            [] => "No stage was done yet".to_owned(),
            stages => format!("Done and kept: {}", stages.join(", ")),
        };
        eprintln!(
            "\nStopped{anew}. {kept}. The same command goes on from there.\nRun directory: {place}"
        );
        return Ok(Outcome::Interrupted);
    }
    show(&ended.path, context)?;
    Ok(Outcome::Fine)
}

/// Runs a sweep, or goes on with it.
fn start_sweep(
    file: &SweepFile,
    text: &str,
    runs: &Path,
    context: &Context,
) -> anyhow::Result<Outcome> {
    let ended = sweep::run(file, text, runs, &context.view)?;
    let place = ended.path.display();
    let Some(result) = &ended.result else {
        let (done, all) = ended.done;
        eprintln!(
            "\nStopped. Done and kept: {done} of {all} cells. The same command goes on from \
             there.\nRun directory: {place}"
        );
        return Ok(Outcome::Interrupted);
    };
    show_sweep(&ended.path, file, result, context)
}

/// The commands of a sweep, as they would run.
fn cells(file: &SweepFile) -> anyhow::Result<()> {
    let all = file.combinations();
    let count = all.len();
    output::print(&format!("{count} cells, each: wearmark {}\nNothing was done.\n", file.sweep.run))
}

fn show_sweep(
    run: &Path,
    file: &SweepFile,
    result: &SweepResult,
    context: &Context,
) -> anyhow::Result<Outcome> {
    if context.json {
        output::json(result)?;
    } else {
        let text = report::terminal(
            &sweep::page(file, result),
            output::terminal_width(),
            output::colour(),
        );
        let path = std::path::absolute(run.join("report.html"))?;
        let mut shown = format!("{text}\n{}\n\n", result.question);
        shown += &output::table(&sweep::table(file, result));
        shown += &format!("\n{}\n\n", result.learned);
        shown += &output::table(&sweep::expectations(result));
        output::print(&format!("{shown}\nReport: {}\n", path.display()))?;
    }
    Ok(if result.holds() { Outcome::Fine } else { Outcome::Finding })
}

/// `wearmark report RUN`
pub fn report(run: &Path, context: &Context) -> anyhow::Result<Outcome> {
    if let Some((file, result)) = sweep::read(run)? {
        let page = report::html(&sweep::page(&file, &result));
        write_atomically(&run.join("report.html"), page.as_bytes())?;
        return show_sweep(run, &file, &result, context);
    }
    show(run, context)?;
    Ok(Outcome::Fine)
}

/// Writes the report and prints the run in short, with the report's path as the last line.
fn show(run: &Path, context: &Context) -> anyhow::Result<()> {
    let page = pipeline::rewrite_report(run)?;
    if context.json {
        return output::print(&std::fs::read_to_string(run.join("result.json"))?);
    }
    let text = report::terminal(&page, output::terminal_width(), output::colour());
    let path = std::path::absolute(run.join("report.html"))?;
    let result = StudyResult::read_from(run)?;
    let ranking = if result.places.is_empty() {
        String::new()
    } else {
        format!("\n{}", output::table(&ranking(&result)))
    };
    output::print(&format!("{text}{ranking}\nReport: {}\n", path.display()))
}

fn show_plan(study: &StudyFile, context: &Context) -> anyhow::Result<()> {
    let steps = pipeline::plan(study);
    if context.json {
        return output::json(&steps);
    }
    let mut rows = vec![["STAGE", "TAKES", "WRITES"].map(str::to_owned).to_vec()];
    for step in &steps {
        let writes = format::bytes(step.writes_bytes as f64);
        rows.push(vec![step.name.clone(), seconds(step.expected_s), writes]);
    }
    let total: f64 = steps.iter().map(|step| step.expected_s).sum();
    let written: u64 = steps.iter().map(|step| step.writes_bytes).sum();
    let needed = format::bytes(study.space_needed().0 as f64);
    output::print(&format!(
        "{}\nIn all about {}; {} written to the disk (its wear); up to {needed} in use at once.\n\
         Nothing was done.\n",
        output::table(&rows),
        seconds(total),
        format::bytes(written as f64),
    ))
}
