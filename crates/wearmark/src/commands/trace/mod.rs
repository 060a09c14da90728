//! `wearmark trace`: one file per subcommand.

mod convert;
mod generate;
mod imitate;
mod info;
pub mod input;

use super::{Context, Outcome};
use crate::cli::TraceCommand;

/// Runs the command.
pub fn run(command: TraceCommand, context: &Context) -> anyhow::Result<Outcome> {
    match command {
        TraceCommand::Info(arguments) => return info::run(&arguments, context),
        TraceCommand::Convert(arguments) => convert::run(&arguments, context)?,
        TraceCommand::Generate(arguments) => generate::run(&arguments, context)?,
        TraceCommand::Imitate(arguments) => imitate::run(&arguments, context)?,
    }
    Ok(Outcome::Fine)
}
