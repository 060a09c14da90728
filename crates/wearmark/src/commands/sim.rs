//! `wearmark sim`

use std::num::NonZero;

use serde::Serialize;
use study::compare::{Comparison, Simulated, compare, page, text, write_timeline};
use study::host_stack::{self, Devices};
use study::profiles::read_profile;

use super::trace::input::read;
use super::{Context, Outcome, output};
use crate::cli::Sim;
use crate::failure::Advice;

/// Most spans and requests of a device on a timeline: about 100 MB of text, which the UI still
/// opens.
const MOST_EVENTS: usize = 500_000;

/// What `--json` prints.
#[derive(Serialize)]
struct Found<'a> {
    /// Requests and bytes by layer, where there is a host.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a host::Account>,
    devices: &'a [Simulated],
}

/// Simulates the trace on every profile.
pub fn run(arguments: &Sim, context: &Context) -> anyhow::Result<Outcome> {
    let spec = arguments.host.as_deref().map(host_stack::read_spec).transpose()?;
    let mut targets = Vec::new();
    for name in &arguments.profile {
        let profile = read_profile(name)?;
        let profile = if arguments.no_cache { profile.without_cache() } else { profile };
        targets.push(Devices::new(profile, spec.as_ref())?);
    }
    if arguments.closed && spec.as_ref().is_some_and(|spec| spec.file_layer.is_some()) {
        return Err(Advice::error(
            "--closed with a [file_system]: who waits for which request of its is not known",
            "leave out --closed, or [file_system] and [page_cache]",
        ));
    }
    let mut trace = read(&arguments.input, context)?.trace;
    let mut account = None;
    if let Some(files) = spec.as_ref().and_then(|spec| spec.file_layer.as_ref()) {
        let Some(below) = host_stack::below(files, &trace, &context.view)? else {
            return Ok(Outcome::Interrupted);
        };
        (trace, account) = (below.0, Some(below.1));
    }
    let window = arguments.timeline.is_some().then_some(&arguments.timeline_window);
    let comparison = Comparison {
        trace: &trace,
        targets: &targets,
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
        let mut page = page(&compared, &targets, &trace.origin.source);
        if let Some(account) = &account {
            page = page.section(host_stack::section(account));
        }
        study::run_dir::write_atomically(path, report::html(&page).as_bytes())?;
    }
    if context.json {
        output::json(&Found { host: account.as_ref(), devices: &compared.devices })?;
    } else {
        if let Some(account) = &account {
            output::print(&format!("{}\n", output::table(&host_stack::text(account))))?;
        }
        output::print(&output::table(&text(&compared.devices)))?;
    }
    Ok(if compared.interrupted { Outcome::Interrupted } else { Outcome::Fine })
}
