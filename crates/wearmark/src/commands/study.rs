//! `wearmark study` and `wearmark report`

use std::path::Path;

use ::study::file::StudyFile;
use ::study::page::ranking;
use ::study::pipeline::{self, Options};
use ::study::result::StudyResult;
use report::format;

use super::{Context, Outcome, output};
use crate::cli::Study;
use crate::failure::Advice;
use crate::view::seconds;

/// Runs the command.
pub fn run(command: Study, context: &Context) -> anyhow::Result<Outcome> {
    match command {
        Study::Show { file } => {
            output::print(&StudyFile::read(&file)?.to_toml())?;
            Ok(Outcome::Fine)
        }
        Study::Run { file, dry_run: true, .. } => {
            dry_run(&StudyFile::read(&file)?, context)?;
            Ok(Outcome::Fine)
        }
        Study::Run { file, runs, dry_run: false, live: _ } => {
            start(&StudyFile::read(&file)?, &Options { runs }, context)
        }
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

/// `wearmark report RUN`
pub fn report(run: &Path, context: &Context) -> anyhow::Result<Outcome> {
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

fn dry_run(study: &StudyFile, context: &Context) -> anyhow::Result<()> {
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
