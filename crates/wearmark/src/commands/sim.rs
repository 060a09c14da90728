//! `wearmark sim`

use std::num::NonZero;

use ::trace::{Outline, Parts, Trace};
use formats::Requests;
use host::FileLayer;
use report::Page;
use serde::Serialize;
use study::compare::{Compared, Comparison, Simulated, compare, page, text, write_timeline};
use study::host_stack::{self, Devices, Host};
use study::profiles::read_device;

use super::trace::input::{in_parts, read};
use super::{Context, Outcome, output};
use crate::cli::Sim;
use crate::failure::Advice;

/// Most spans and requests of a device on a timeline: about 100 MB of text, which the UI still
/// opens.
const MOST_EVENTS: usize = 500_000;

/// What `--json` prints.
#[derive(Serialize)]
struct Found<'a> {
    /// Requests and bytes by layer, where hosts have a file system.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    hosts: &'a [Host],
    devices: &'a [Simulated],
}

/// A host by the name of its file, and the devices below it.
struct Stack {
    name: String,
    files: Option<FileLayer>,
    devices: Vec<Devices>,
}

/// Simulates the trace on every profile, below every host.
pub fn run(arguments: &Sim, context: &Context) -> anyhow::Result<Outcome> {
    let stacks = stacks(arguments)?;
    // What a file system makes of calls is made in memory.
    let in_memory = stacks.iter().any(|stack| stack.files.is_some());
    let requests = if in_memory {
        Requests::Memory(read(&arguments.input, context)?.trace)
    } else {
        in_parts(&arguments.input, context)?.requests
    };
    let Outline { origin, .. } = requests.outline();
    let none = Trace::default();
    let calls = requests.whole().unwrap_or(&none);
    let window = arguments.timeline.is_some().then_some(&arguments.timeline_window);
    let (mut all, mut hosts) = (Compared::default(), Vec::new());
    for stack in &stacks {
        let mut physical = None;
        if let Some(files) = &stack.files {
            let Some((trace, account)) = host_stack::below(files, calls, &context.view)? else {
                all.interrupted = true;
                break;
            };
            physical = Some(trace);
            hosts.push(Host { name: stack.name.clone(), account });
        }
        let parts: &dyn Parts<formats::Error> = match &physical {
            Some(trace) => trace,
            None => &requests,
        };
        let comparison = Comparison {
            trace: parts,
            targets: &stack.devices,
            seed: arguments.seed,
            closed: arguments.closed,
            warm_up_ns: arguments.warm_up.0,
            threads: arguments
                .threads
                .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, NonZero::get)),
            timeline: window.map(|window| (window, MOST_EVENTS)),
        };
        let compared = compare(&comparison, &context.view)?;
        if let Some(path) = &arguments.timeline {
            let collected;
            let trace = if let Some(trace) = parts.whole() {
                trace
            } else {
                collected = formats::collect(parts, u64::MAX)?;
                &collected
            };
            write_timeline(path, &compared, trace)?;
        }
        all.devices.extend(compared.devices);
        all.interrupted |= compared.interrupted;
        if all.interrupted {
            break;
        }
    }
    if let Some(path) = &arguments.html {
        let devices: Vec<_> = stacks.iter().flat_map(|stack| stack.devices.clone()).collect();
        let mut page = page(&all, &devices, &origin.source);
        // The simulator in the page knows devices without a host, and requests when they are due.
        if arguments.host.is_empty() && !arguments.closed {
            let profiles: Vec<_> = devices.iter().map(|own| own.profile().clone()).collect();
            page.simulator = study::what_if::simulator(calls, &profiles, arguments.seed);
        }
        let page = host_stack::sections(&hosts).into_iter().fold(page, Page::section);
        study::run_dir::write_atomically(path, report::html(&page).as_bytes())?;
    }
    show(&all, &hosts, context)?;
    Ok(if all.interrupted { Outcome::Interrupted } else { Outcome::Fine })
}

/// What is asked, checked before anything takes long.
fn stacks(arguments: &Sim) -> anyhow::Result<Vec<Stack>> {
    let several = arguments.host.len() > 1;
    if arguments.timeline.is_some() && several {
        let hint = "name one host for a timeline";
        return Err(Advice::error("a timeline shows one trace, each host makes its own", hint));
    }
    let mut profiles = Vec::new();
    for name in &arguments.profile {
        let profile = read_device(name)?;
        profiles.push(if arguments.no_cache { profile.without_cache() } else { profile });
    }
    if arguments.host.is_empty() {
        let devices = profiles.into_iter().map(Devices::alone).collect();
        return Ok(vec![Stack { name: String::new(), files: None, devices }]);
    }
    let mut stacks = Vec::new();
    for path in &arguments.host {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let spec = host_stack::read_spec(path)?;
        let mut devices = Vec::new();
        for profile in &profiles {
            let made = Devices::new(profile.clone(), Some(&spec))?;
            devices.push(if several { made.below(&name) } else { made });
        }
        if arguments.closed && spec.file_layer.is_some() {
            return Err(Advice::error(
                "--closed with a [file_system]: who waits for which request of its is not known",
                "leave out --closed, or [file_system] and [page_cache]",
            ));
        }
        stacks.push(Stack { name, files: spec.file_layer, devices });
    }
    Ok(stacks)
}

fn show(all: &Compared, hosts: &[Host], context: &Context) -> anyhow::Result<()> {
    if context.json {
        return output::json(&Found { hosts, devices: &all.devices });
    }
    for host in hosts {
        if hosts.len() > 1 {
            output::print(&format!("{}:\n", host.name))?;
        }
        let rows = host_stack::text(&host.account);
        output::print(&format!("{}\n", output::table(&rows)))?;
    }
    output::print(&output::table(&text(&all.devices)))
}
