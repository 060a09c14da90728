//! `wearmark oltp compare`: did it get better or worse, and is that sure?

use report::format;
use study::runs::compare::{Compared, Verdict, compare as compare_sets};
use study::runs::{RunSet, page};

use super::{Context, Outcome, output};
use crate::cli::OltpCompare;
use crate::failure::Advice;

/// Runs the command.
pub fn compare(arguments: &OltpCompare, context: &Context) -> anyhow::Result<Outcome> {
    if !(0.0..=1.0).contains(&arguments.bound) {
        return Err(Advice::error(
            format!("--bound {}: is no share", arguments.bound),
            "write a share from 0 to 1, such as 0.05",
        ));
    }
    let (old, new) = (RunSet::read(&arguments.old)?, RunSet::read(&arguments.new)?);
    same_kind(&old, &new)?;
    let compared = compare_sets(&old, &new, arguments.bound);
    if let Some(path) = &arguments.html {
        let names = (arguments.old.display().to_string(), arguments.new.display().to_string());
        let page = page::comparison(&compared, arguments.bound, (&names.0, &names.1));
        study::run_dir::write_atomically(path, report::html(&page).as_bytes())?;
    }
    if context.json {
        output::json(&compared)?;
    } else {
        output::print(&text(&compared))?;
    }
    Ok(outcome(&compared))
}

/// A regression of any figure is a finding. Whether there is a verdict at all is the throughput's,
/// the first figure, to say.
fn outcome(compared: &[Compared]) -> Outcome {
    if compared.iter().any(|figure| figure.verdict == Verdict::Regressed) {
        return Outcome::Finding;
    }
    match compared.first().map(|figure| figure.verdict) {
        None | Some(Verdict::Unproven | Verdict::TooWide) => Outcome::NoVerdict,
        Some(_) => Outcome::Fine,
    }
}

/// Runs of another workload, or through another access, are no comparison.
fn same_kind(old: &RunSet, new: &RunSet) -> anyhow::Result<()> {
    let kinds = |set: &RunSet| {
        let mut kinds: Vec<String> = set
            .runs
            .iter()
            .map(|run| {
                let options = &run.result.options;
                let access = options.database.server().map(|server| server.access.name());
                format!("{} by {}", options.workload, access.unwrap_or("embedded statements"))
            })
            .collect();
        kinds.dedup();
        kinds
    };
    let (old, new) = (kinds(old), kinds(new));
    if old == new && old.len() == 1 {
        return Ok(());
    }
    Err(Advice::error(
        format!("the files hold different things: {} and {}", old.join(", "), new.join(", ")),
        "compare runs of one workload and one access; 'oltp run --repeat 5 --save FILE' makes them",
    ))
}

fn text(compared: &[Compared]) -> String {
    let header = ["FIGURE", "UNIT", "OLD", "NEW", "NEW/OLD", "VERDICT"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for figure in compared {
        let ratio = figure.ratio.map_or_else(
            || "-".to_owned(),
            |ratio| format::ratio_with_interval(ratio.ratio, (ratio.low, ratio.high)),
        );
        rows.push(vec![
            figure.figure.clone(),
            figure.unit.clone(),
            format::count(figure.old),
            format::count(figure.new),
            ratio,
            figure.words(),
        ]);
    }
    output::table(&rows)
}
