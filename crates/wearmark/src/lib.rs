//! The `wearmark` command: argument parsing, wiring and presentation of errors. Nothing else lives
//! here; a command that grows logic of its own hands it to a crate.
//!
//! A library, so that the Python package carries the same command and shows the same errors.

mod cli;
mod commands;
pub mod failure;
mod signals;
mod view;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use clap::Parser;

use crate::commands::Outcome;

pub use crate::commands::{recipe, save_trace};

/// Runs the command of these arguments, the first of which is the program's own name, and prints
/// what it reports. It takes over SIGINT and SIGTERM of the whole process.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::from(exit_code(arguments))
}

/// [`run`], with the exit code as a number: 0, 1 for a finding, 2 for an error, 3 for no verdict,
/// 130 for a run that the user stopped.
pub fn exit_code(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match cli::Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(told) => {
            // Where even that cannot be printed, the exit code still tells.
            _ = told.print();
            return u8::try_from(told.exit_code()).unwrap_or(2);
        }
    };
    signals::install();
    signals::end_with_parent();
    match commands::run(cli) {
        Ok(Outcome::Fine) => 0,
        Ok(Outcome::Finding) => 1,
        Ok(Outcome::NoVerdict) => 3,
        Ok(Outcome::Interrupted) => signals::INTERRUPTED,
        Err(error) if broken_pipe(&error) => 0,
        Err(error) if failure::is_interruption(&error) => {
            eprintln!("Stopped: {error}");
            signals::INTERRUPTED
        }
        Err(error) => {
            eprintln!("{}", failure::render(&error));
            let interrupted = view::CANCELLED.load(Ordering::Relaxed);
            if interrupted { signals::INTERRUPTED } else { 2 }
        }
    }
}

/// `wearmark ... | head` is not an error; a server that went away is.
fn broken_pipe(error: &anyhow::Error) -> bool {
    !error.chain().any(<dyn std::error::Error>::is::<dbms::Error>)
        && error.chain().any(|cause| {
            cause
                .downcast_ref::<std::io::Error>()
                .is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
        })
}
