//! `wearmark trace convert`

use std::path::Path;

use formats::notes::Counted;
use formats::{Error, Format};
use trace::{Parts, Trace};

use super::input;
use crate::cli::Convert;
use crate::commands::{Context, output};
use crate::failure::Advice;

/// Reads a trace and writes it in another format.
pub fn run(arguments: &Convert, context: &Context) -> anyhow::Result<()> {
    let requests = input::in_parts(&arguments.input, context)?.requests;
    output::print(&save(&requests, &arguments.output, arguments.to)?)
}

/// [`save`]s a trace and prints what it says.
pub fn write(trace: &Trace, to: &Path, format: Option<Format>) -> anyhow::Result<()> {
    output::print(&save(trace, to, format)?)
}

/// Writes a trace in the format given, or that the name says, and says so and what was not kept.
pub fn save(trace: &dyn Parts<Error>, to: &Path, format: Option<Format>) -> anyhow::Result<String> {
    let losses = store(trace, to, format)?;
    let requests = trace.outline().requests;
    let mut text = format!("{requests} requests written to {}\n", to.display());
    for loss in losses {
        text.push_str(&format!("not kept: {} ({})\n", loss.what, loss.count));
    }
    Ok(text)
}

/// Writes a trace in the format given, or that the name says, and gives what was not kept.
///
/// # Errors
/// A name that says no format; a format that is not written; a place that cannot be written.
pub fn store(
    trace: &dyn Parts<Error>,
    to: &Path,
    format: Option<Format>,
) -> anyhow::Result<Vec<Counted>> {
    let named = match to.extension().and_then(|extension| extension.to_str()) {
        Some("parquet") => Some(Format::Own),
        Some("spc") => Some(Format::Spc),
        _ => None,
    };
    let Some(format) = format.or(named) else {
        return Err(Advice::error(
            format!("{}: the name does not say which format to write", to.display()),
            "end it in .parquet or .spc, or name the format with --to",
        ));
    };
    Ok(match trace.whole() {
        Some(trace) => formats::write(trace, to, format)?,
        None => formats::write_parts(trace, to, format)?,
    })
}
