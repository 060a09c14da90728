//! `wearmark trace`

use std::path::Path;

use anyhow::Context as _;
use report::format;
use trace::Trace;
use trace::formats::{ReadOptions, Reading};

use super::{Context, Outcome, output};
use crate::cli::TraceCommand;
use crate::failure::Advice;

/// Runs the command.
pub fn run(command: TraceCommand, context: &Context) -> anyhow::Result<Outcome> {
    match command {
        TraceCommand::Info { trace } => info(&trace, context)?,
        TraceCommand::Convert { from, to } => convert(&from, &to, context)?,
    }
    Ok(Outcome::Fine)
}

/// Reads a trace of any known format and says on standard error what it was taken for.
pub fn read(path: &Path, _context: &Context) -> anyhow::Result<Trace> {
    Ok(trace::formats::read(path, &ReadOptions::default())?.trace)
}

fn info(path: &Path, context: &Context) -> anyhow::Result<()> {
    let Reading { trace, detected, .. } = trace::formats::read(path, &ReadOptions::default())?;
    let info = trace::info::characterise(&trace);
    if context.json {
        return output::json(&info);
    }
    let mut text =
        format!("{}: {} ({})\n", path.display(), detected.format.title(), detected.evidence);
    if !trace.origin.source.is_empty() {
        text.push_str(&format!("made by: {}\n", trace.origin.source));
    }
    text.push_str(&format!("span: {:.3} s\n\n", trace.span().as_secs_f64()));
    let header =
        ["STREAM", "REQUESTS", "BYTES", "READS", "WRITES", "FLUSHES", "MEAN SIZE", "SEQUENTIAL"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for part in std::iter::once(&info.all).chain(&info.streams) {
        rows.push(vec![
            part.name.clone(),
            part.requests.to_string(),
            format::bytes((part.read_bytes + part.write_bytes) as f64),
            format::percent(part.read_share),
            format::percent(part.write_share),
            format::percent(part.flush_share),
            format::bytes(part.mean_size_bytes),
            format::percent(part.sequential_share),
        ]);
    }
    text.push_str(&output::table(&rows));
    output::print(&text)
}

fn convert(from: &Path, to: &Path, context: &Context) -> anyhow::Result<()> {
    let trace = read(from, context)?;
    match to.extension().and_then(|extension| extension.to_str()) {
        Some("parquet") => trace::formats::own::write(&trace, to)?,
        Some("spc") => {
            trace::formats::spc::write(&trace, to).with_context(|| to.display().to_string())?;
        }
        _ => {
            return Err(Advice::error(
                format!("{}: the name does not say which format to write", to.display()),
                "end it in .parquet or .spc",
            ));
        }
    }
    output::print(&format!("{} requests written to {}\n", trace.count(), to.display()))
}
