//! `wearmark trace`: one file per subcommand.

mod anonymise;
pub mod convert;
pub mod generate;
mod host;
mod imitate;
mod info;
pub mod input;
mod merge;
mod remap;
mod scale;
mod slice;

use super::{Context, Outcome};
use crate::cli::TraceCommand;

/// Runs the command.
pub fn run(command: TraceCommand, context: &Context) -> anyhow::Result<Outcome> {
    match command {
        TraceCommand::Info(arguments) => return info::run(&arguments, context),
        TraceCommand::Convert(arguments) => convert::run(&arguments, context)?,
        TraceCommand::Generate(arguments) => generate::run(&arguments, context)?,
        TraceCommand::Imitate(arguments) => imitate::run(&arguments, context)?,
        TraceCommand::Slice(arguments) => slice::run(arguments, context)?,
        TraceCommand::Remap(arguments) => remap::run(&arguments, context)?,
        TraceCommand::Scale(arguments) => scale::run(&arguments, context)?,
        TraceCommand::Host(arguments) => return host::run(&arguments, context),
        TraceCommand::Merge(arguments) => merge::run(arguments, context)?,
        TraceCommand::Anonymise(arguments) => anonymise::run(&arguments, context)?,
    }
    Ok(Outcome::Fine)
}
