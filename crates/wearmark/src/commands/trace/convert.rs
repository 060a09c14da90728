//! `wearmark trace convert`

use trace::formats::{Format, own, spc};

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
    match arguments.to.or(named) {
        Some(Format::Own) => own::write(&trace, to)?,
        Some(Format::Spc) => spc::write(&trace, to)?,
        Some(other) => {
            return Err(Advice::error(
                format!("{} is read, but not written", other.title()),
                "write own (.parquet) or spc (.spc)",
            ));
        }
        None => {
            return Err(Advice::error(
                format!("{}: the name does not say which format to write", to.display()),
                "end it in .parquet or .spc, or name the format with --to",
            ));
        }
    }
    output::print(&format!("{} requests written to {}\n", trace.count(), to.display()))
}
