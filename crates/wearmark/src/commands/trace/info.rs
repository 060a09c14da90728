//! `wearmark trace info`

use report::format;

use super::input;
use crate::cli::TraceInput;
use crate::commands::{Context, output};

/// Prints what is in a trace.
pub fn run(arguments: &TraceInput, context: &Context) -> anyhow::Result<()> {
    let reading = input::read(arguments, context)?;
    let (trace, detected) = (&reading.trace, &reading.detected);
    let info = trace::info::characterise(trace);
    if context.json {
        return output::json(&info);
    }
    let mut text = format!(
        "{}: {} ({})\n",
        arguments.trace.display(),
        detected.format.title(),
        detected.evidence
    );
    if !trace.origin.source.is_empty() {
        text.push_str(&format!("made by: {}\n", trace.origin.source));
    }
    text.push_str(&format!("span: {:.3} s\n\n", trace.span().as_secs_f64()));
    let header =
        ["STREAM", "REQUESTS", "BYTES", "READS", "WRITES", "FLUSHES", "MEAN SIZE", "SEQUENTIAL"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for part in std::iter::once(&info.all).chain(&info.streams) {
        let counts = &part.counts;
        rows.push(vec![
            part.name.clone(),
            counts.requests.to_string(),
            format::bytes((counts.read_bytes + counts.write_bytes) as f64),
            format::percent(counts.read_share),
            format::percent(counts.write_share),
            format::percent(counts.flush_share),
            format::bytes(counts.mean_size_bytes),
            format::percent(part.sequentiality.sequential_share),
        ]);
    }
    text.push_str(&output::table(&rows));
    output::print(&text)
}
