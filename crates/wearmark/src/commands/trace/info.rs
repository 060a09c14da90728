//! `wearmark trace info`

use std::time::Instant;

use events::{Ending, Event, Sink};
use formats::InParts;
use report::format;
use study::page::trace::{Place, page, screen};
use trace::info::{Info, Options, StreamInfo, characterise_parts};
use trace::{Origin, Parts};

use super::input;
use crate::cli::TraceInfo;
use crate::commands::{Context, Outcome, output};

/// Streams listed below the screen.
const STREAMS_SHOWN: usize = 6;

/// Prints what is in a trace.
pub fn run(arguments: &TraceInfo, context: &Context) -> anyhow::Result<Outcome> {
    let options = Options { full: arguments.full };
    let InParts { requests, detected, .. } = input::in_parts(&arguments.input, context)?;
    let place = place(arguments, detected.format.title(), &requests.outline().origin);
    let started = Instant::now();
    let found = characterise_parts(&requests, options, &context.view)?;
    let Some(info) = found else { return Ok(Outcome::Interrupted) };
    let elapsed_s = started.elapsed().as_secs_f64();
    if elapsed_s > 2.0 {
        let (stage, ending) = ("info".to_owned(), Ending::Complete);
        context.view.emit(Event::Done { stage, elapsed_s, ending });
    }
    if let Some(file) = &arguments.html {
        let html = report::html(&page(&info, &place));
        study::run_dir::write_atomically(file, html.as_bytes())?;
    }
    if context.json {
        output::json(&info)?;
        return Ok(Outcome::Fine);
    }
    let mut text =
        report::terminal(&screen(&info, &place), output::terminal_width(), output::colour());
    if info.streams.len() > 1 {
        text.push('\n');
        text.push_str(&streams(&info));
    }
    if let Some(file) = &arguments.html {
        text.push_str(&format!("\nPage: {}\n", std::path::absolute(file)?.display()));
    }
    output::print(&text)?;
    Ok(Outcome::Fine)
}

fn place(arguments: &TraceInfo, format: &str, origin: &Origin) -> Place {
    let facts = origin.facts.iter().map(|(name, value)| (name.clone(), value.clone()));
    Place {
        file: arguments.input.trace.display().to_string(),
        format: format.to_owned(),
        source: origin.source.clone(),
        facts: facts.collect(),
    }
}

/// The busiest streams, one line each.
fn streams(info: &Info) -> String {
    let header =
        ["STREAM", "REQUESTS", "READS", "WRITES", "MEAN SIZE", "SEQUENTIAL", "WORKING SET"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let mut busiest: Vec<&StreamInfo> = info.streams.iter().collect();
    busiest.sort_by_key(|stream| std::cmp::Reverse(stream.counts.requests));
    for stream in busiest.iter().take(STREAMS_SHOWN) {
        let counts = &stream.counts;
        rows.push(vec![
            stream.name.clone(),
            format::count(counts.requests as f64),
            format::percent(counts.read_share),
            format::percent(counts.write_share),
            format::bytes(counts.mean_size_bytes),
            format::percent(stream.sequentiality.sequential_share),
            format::bytes((stream.blocks.working_set_blocks * trace::info::BLOCK_BYTES) as f64),
        ]);
    }
    let mut text = output::table(&rows);
    if let Some(left) = busiest.len().checked_sub(STREAMS_SHOWN).filter(|left| *left > 0) {
        text.push_str(&format!("and {left} more streams; --json and --html have them\n"));
    }
    text
}
