//! `wearmark sim`

use std::num::NonZero;

use profile::Profile;
use study::compare::{Comparison, compare, page, text, write_timeline};
use study::scenarios::read_profile;

use super::trace::input::read;
use super::{Context, Outcome, output};
use crate::cli::Sim;

/// Most spans and requests of a device on a timeline: about 100 MB of text, which the UI still
/// opens.
const MOST_EVENTS: usize = 500_000;

/// Simulates the trace on every profile.
pub fn run(arguments: &Sim, context: &Context) -> anyhow::Result<Outcome> {
    let mut profiles: Vec<Profile> = Vec::new();
    for name in &arguments.profile {
        let profile = read_profile(name)?;
        profiles.push(if arguments.no_cache { profile.without_cache() } else { profile });
    }
    let trace = read(&arguments.input, context)?.trace;
    let window = arguments.timeline.is_some().then_some(&arguments.timeline_window);
    let comparison = Comparison {
        trace: &trace,
        profiles: &profiles,
        seed: arguments.seed,
        closed: arguments.closed,
        threads: arguments
            .threads
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, NonZero::get)),
        timeline: window.map(|window| (window, MOST_EVENTS)),
    };
    let compared = compare(&comparison, &context.view)?;
    if let Some(path) = &arguments.timeline {
        write_timeline(path, &compared, &trace)?;
    }
    if let Some(path) = &arguments.html {
        let html = report::html(&page(&compared, &profiles, &trace.origin.source));
        study::run_dir::write_atomically(path, html.as_bytes())?;
    }
    if context.json {
        output::json(&compared.devices)?;
    } else {
        output::print(&output::table(&text(&compared.devices)))?;
    }
    Ok(if compared.interrupted { Outcome::Interrupted } else { Outcome::Fine })
}
