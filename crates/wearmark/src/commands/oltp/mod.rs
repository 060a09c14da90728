//! `wearmark oltp`: one file per job, [`target`] for what they share.

mod check;
mod compare;
mod find_rate;
mod run;
mod server;
mod statements;
mod sweep;
mod target;
mod torture;

use super::{Context, Outcome, output};
use crate::cli::Oltp;

pub use target::login;

/// Runs the command.
pub fn run(command: Oltp, context: &Context) -> anyhow::Result<Outcome> {
    match command {
        Oltp::Run(arguments) => run::run(&arguments, context),
        Oltp::Sweep(arguments) => sweep::sweep(&arguments, context),
        Oltp::Compare(arguments) => compare::compare(&arguments, context),
        Oltp::Check(arguments) => check::check(&arguments, context),
        Oltp::Temp(arguments) => statements::temp(&arguments, context),
        Oltp::Versions(arguments) => statements::versions(&arguments, context),
        Oltp::Server(command) => server::server(command, context),
        Oltp::Torture(arguments) => torture::torture(&arguments, context),
    }
}
