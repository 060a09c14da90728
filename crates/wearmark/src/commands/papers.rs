//! `wearmark papers`

use papers::judge::{Comparison, compare};
use papers::{Effort, data, page, run};

use super::{Context, Outcome, output};
use crate::cli::Papers;

/// Runs the experiments of one paper or of all.
pub fn run(arguments: &Papers, context: &Context) -> anyhow::Result<Outcome> {
    let papers = data::papers(arguments.name.as_deref())?;
    let effort = if arguments.quick { Effort::Quick } else { Effort::Full };
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = arguments.threads.unwrap_or(processors);
    let experiments = ::papers::experiments();
    let (found, stopped) = run::all(&papers, &experiments, effort, threads, &context.view);
    let all: Vec<Comparison> = papers.iter().map(|paper| compare(paper, &found)).collect();
    if let Some(path) = &arguments.html {
        let html = report::html(&page::page(&all));
        study::run_dir::write_atomically(path, html.as_bytes())?;
    }
    if context.json {
        output::json(&all)?;
    } else {
        for own in &all {
            output::print(&format!("{}\n", own.cite))?;
            output::print(&output::table(&page::text(own)))?;
            output::print(&format!("{}\n\n", page::in_words(&own.summary)))?;
        }
    }
    Ok(if stopped { Outcome::Interrupted } else { Outcome::Fine })
}
