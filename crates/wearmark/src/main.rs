//! The `wearmark` binary: argument parsing, wiring and presentation of errors. Nothing else lives
//! here; a command that grows logic of its own hands it to a crate.

mod cli;
mod commands;
mod failure;
mod signals;
mod view;

use std::process::ExitCode;
use std::sync::atomic::Ordering;

use clap::Parser;

use crate::commands::Outcome;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    signals::install();
    signals::end_with_parent();
    match commands::run(cli) {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::Finding) => ExitCode::from(1),
        Ok(Outcome::NoVerdict) => ExitCode::from(3),
        Ok(Outcome::Interrupted) => ExitCode::from(signals::INTERRUPTED),
        Err(error) if broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if interrupted(&error) => {
            eprintln!("Stopped: {error}");
            ExitCode::from(signals::INTERRUPTED)
        }
        Err(error) => {
            eprintln!("{}", failure::render(&error));
            let interrupted = view::CANCELLED.load(Ordering::Relaxed);
            ExitCode::from(if interrupted { signals::INTERRUPTED } else { 2 })
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

/// The user stopped a reading, which nothing is the result of.
fn interrupted(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        matches!(cause.downcast_ref::<formats::Error>(), Some(formats::Error::Interrupted { .. }))
    })
}
