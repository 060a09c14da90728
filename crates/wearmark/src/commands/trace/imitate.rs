//! `wearmark trace imitate`

use formats::own;
use serde::Serialize;
use trace::imitate::{self, Distances};
use trace::recipe::Recipe;

use super::input;
use crate::cli::Imitate;
use crate::commands::{Context, output};
use crate::failure::Advice;

/// What is printed.
#[derive(Serialize)]
struct Report {
    requests: u64,
    recipe_bytes: usize,
    distances: Distances,
}

/// Fits a generator to a trace, makes a trace with it and says how far that is from the original.
pub fn run(arguments: &Imitate, context: &Context) -> anyhow::Result<()> {
    if arguments.output.is_none() && arguments.save_recipe.is_none() {
        return Err(Advice::error(
            "nothing to write",
            "name the trace with -o, the recipe with --save-recipe, or both",
        ));
    }
    let trace = input::read(&arguments.input, context)?.trace;
    let source = arguments.input.trace.file_name().unwrap_or_default().to_string_lossy();
    let imitation = imitate::fit(&trace, &source)?;
    let requests = arguments.requests.unwrap_or(imitation.requests);
    let recipe = Recipe::Imitation(Box::new(imitation));
    let text = recipe.to_toml();
    if let Some(path) = &arguments.save_recipe {
        study::run_dir::write_atomically(path, text.as_bytes())?;
    }
    let made = recipe.generate(arguments.seed, Some(requests))?;
    if let Some(path) = &arguments.output {
        own::write(&made, path)?;
    }
    let distances = imitate::compare(&trace, &made);
    let report = Report { requests, recipe_bytes: text.len(), distances };
    if context.json {
        return output::json(&report);
    }
    output::print(&show(&report))
}

fn show(report: &Report) -> String {
    let Distances {
        size_error,
        gap_error,
        read_share_points,
        stream_share_points,
        sequential_share_points,
        miss_ratio_error,
    } = report.distances;
    let row = |what: &str, found: String| vec![what.to_owned(), found];
    let rows = vec![
        row("DISTANCE FROM THE ORIGINAL", "FOUND".to_owned()),
        row("sizes, E", format!("{size_error:.4}")),
        row("gaps between requests, E", format!("{gap_error:.4}")),
        row("share of reads, points", format!("{read_share_points:.2}")),
        row("share of a stream, points at most", format!("{stream_share_points:.2}")),
        row("share of sequential requests, points", format!("{sequential_share_points:.2}")),
        row("miss-ratio curve, mean difference", format!("{miss_ratio_error:.4}")),
    ];
    let made =
        format!("{} requests from a recipe of {} bytes\n", report.requests, report.recipe_bytes);
    format!("{made}{}", output::table(&rows))
}
