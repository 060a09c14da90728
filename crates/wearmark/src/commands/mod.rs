//! One function per command: parse nothing, decide little, print the result.

mod advise;
mod capture;
mod compare;
mod doctor;
mod emulate;
mod fleet;
mod here;
mod oltp;
mod output;
mod outputs;
mod papers;
mod predict;
mod probe;
mod profile;
mod prove;
mod reference;
mod replay;
mod serve;
mod sim;
mod study;
mod temp;
mod trace;
mod trend;

use std::path::Path;

use ::serve::Metrics;

use crate::cli::{Cli, Command};
use crate::failure::Advice;
use crate::view::View;

pub use trace::convert::store as save_trace;
pub use trace::generate::recipe;

/// How a command ended, for the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing to complain of.
    Fine,
    /// It ran and found something wrong: a violated condition, an invalid audit.
    Finding,
    /// It ran, and what was measured allows no verdict.
    NoVerdict,
    /// The user stopped it.
    Interrupted,
}

/// What every command is given.
pub struct Context {
    /// The live view.
    pub view: View,
    /// No progress and no remarks; errors and warnings only.
    pub quiet: bool,
    /// Print JSON.
    pub json: bool,
}

/// Runs the command.
pub fn run(cli: Cli) -> anyhow::Result<Outcome> {
    if let Some(command) = &cli.command {
        outputs::check(command, cli.force)?;
    }
    let metrics = cli.command.as_ref().and_then(Command::metrics).map(Metrics::listen);
    let metrics = metrics.transpose()?;
    if let Some(metrics) = &metrics {
        eprintln!("  metrics http://{}/metrics", metrics.address());
    }
    let view = View::new(cli.quiet, metrics);
    let context = Context { view, quiet: cli.quiet, json: cli.json };
    let Some(command) = cli.command else { return here::run(&context) };
    match command {
        Command::Doctor { directory } => doctor::run(&directory, &context),
        Command::Study(command) => study::run(command, &context),
        Command::Report { run } => study::report(&run, &context),
        Command::Probe(arguments) => probe::run(&arguments, &context),
        Command::Fit(arguments) => probe::fit(&arguments, &context),
        Command::Oltp(command) => oltp::run(command, &context),
        Command::Capture(arguments) => capture::run(&arguments, &context),
        Command::Temp(command) => temp::run(command, &context),
        Command::Trace(command) => trace::run(command, &context),
        Command::Sim(arguments) => sim::run(&arguments, &context),
        Command::Compare(arguments) => compare::run(&arguments, &context),
        Command::Trend(arguments) => trend::run(&arguments, &context),
        Command::Fleet(command) => fleet::run(command, &context),
        Command::Emulate(arguments) => emulate::run(&arguments, &context),
        Command::Prove(arguments) => prove::run(&arguments, &context),
        Command::Predict(arguments) => predict::run(&arguments, &context),
        Command::Advise(command) => advise::run(*command, &context),
        Command::Papers(arguments) => papers::run(&arguments, &context),
        Command::Profile(command) => profile::run(command, &context),
        Command::Serve(arguments) => serve::run(&arguments, &context),
        Command::Replay(arguments) => replay::run(&arguments, &context),
        Command::Validate(arguments) => replay::validate(&arguments, &context),
        Command::Completions { shell } => reference::completions(shell),
        Command::Man { directory } => reference::man(&directory),
        Command::Reference => reference::markdown(),
    }
}

/// What a TOML file puts above devices; refused with `why` where it says something of files.
fn devices_of(path: Option<&Path>, why: &str) -> anyhow::Result<Option<host::Spec>> {
    let Some(path) = path else { return Ok(None) };
    let spec = ::study::host_stack::read_spec(path)?;
    if spec.file_layer.is_some() {
        return Err(Advice::error(
            format!("{}: [file_system]: {why}", path.display()),
            "leave out [page_cache] and [file_system]",
        ));
    }
    Ok(Some(spec))
}
