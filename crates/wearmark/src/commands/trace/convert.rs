//! `wearmark trace convert`

use trace::formats::{self, Format};

use super::input;
use crate::cli::Convert;
use crate::commands::{Context, output};
use crate::failure::Advice;

/// Reads a trace and writes it in another format.
pub fn run(arguments: &Convert, context: &Context) -> anyhow::Result<()> {
    let trace = input::read(&arguments.input, context)?.trace;
    let to = &arguments.output;
    let named = match to.extension().and_then(|extension| extension.to_str()) {
        Some("parquet") => Some(Format::Own),
        Some("spc") => Some(Format::Spc),
        _ => None,
    };
    let Some(format) = arguments.to.or(named) else {
        return Err(Advice::error(
            format!("{}: the name does not say which format to write", to.display()),
            "end it in .parquet or .spc, or name the format with --to",
        ));
    };
    let losses = formats::write(&trace, to, format)?;
    let mut text = format!("{} requests written to {}\n", trace.count(), to.display());
    for loss in losses {
        text.push_str(&format!("not kept: {} ({})\n", loss.what, loss.count));
    }
    output::print(&text)
}
