//! `wearmark serve`: a directory of runs in a browser.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ::serve::Runs;

use super::{Context, Outcome, output};
use crate::cli::Serve;
use crate::view::CANCELLED;

/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// Runs `wearmark serve`.
pub fn run(arguments: &Serve, context: &Context) -> anyhow::Result<Outcome> {
    let place = std::env::current_dir()?;
    let runs = std::path::absolute(&arguments.runs)?;
    let served = Runs::listen(arguments.at, (runs, place), std::env::current_exe()?, &CANCELLED)?;
    if context.json {
        output::json(&serde_json::json!({ "url": served.url() }))?;
    } else {
        output::print(&format!("{}\n", served.url()))?;
    }
    if !context.quiet {
        eprintln!("  the address holds a key: whoever has it can start studies; Ctrl-C ends");
    }
    while !CANCELLED.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
    }
    Ok(Outcome::Fine)
}
