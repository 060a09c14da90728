//! `wearmark predict`

use anyhow::Context as _;
use predict::Question;
use sim::transactions::CommitDelay;
use study::host_stack::Devices;
use study::predictions::{ask, page, text};
use study::profiles::read_device;

use super::{Context, Outcome, output};
use crate::cli::Predict;
use crate::failure::Advice;

/// Why a prediction has no file system of its own.
const KEPT: &str = "a prediction keeps the page cache and the file system of the captured machine";

/// Predicts the captured run on every profile.
pub fn run(arguments: &Predict, context: &Context) -> anyhow::Result<Outcome> {
    let kept =
        ["run", "accounts"].map(|name| format!("{}-{name}.json", arguments.prefix.display()));
    if !kept.iter().any(|kept| std::path::Path::new(kept).exists()) {
        let prefix = arguments.prefix.display();
        let hint = format!(
            "make it as root: wearmark oltp run DIR --dbms postgresql --trace {prefix}, or \
             wearmark capture --pid PID --output {prefix}"
        );
        return Err(Advice::error(format!("{}: no such capture", kept[0]), hint));
    }
    if let Some(speed) = arguments.speed.filter(|speed| !(speed.is_finite() && *speed > 0.0)) {
        let hint = "2 is twice as fast as the captured machine, 0.5 half as fast";
        return Err(Advice::error(format!("a processor speed of {speed} is not above 0"), hint));
    }
    if !(0.0..=1.0).contains(&arguments.other_load) {
        let hint = "0.2 is a fifth of all processors";
        let share = arguments.other_load;
        return Err(Advice::error(format!("a share of the processors of {share}"), hint));
    }
    let host = super::devices_of(arguments.host.as_deref(), KEPT)?;
    let log_host = super::devices_of(arguments.log_host.as_deref(), KEPT)?;
    let target = |name: &String, host: &Option<host::Spec>| -> anyhow::Result<Devices> {
        Ok(Devices::new(read_device(name)?, host.as_ref())?)
    };
    let targets: anyhow::Result<Vec<_>> =
        arguments.on.iter().map(|name| target(name, &host)).collect();
    let log_on = arguments.log_on.as_ref().map(|name| target(name, &log_host)).transpose()?;
    let question = Question {
        while_captured: false,
        terminals: arguments.users,
        rate: arguments.rate.map(|rate| rate.0),
        goal: arguments.find_rate.clone(),
        buffer_bytes: arguments.buffer.map(|bytes| bytes.0),
        commit_delay: arguments
            .commit_delay
            .map(|delay| CommitDelay { ns: delay.0, siblings: arguments.commit_siblings }),
        processors: arguments.processors,
        speed: arguments.speed,
        other_load: arguments.other_load,
        request_load_ns: arguments.request_load.0,
        request_late_ns: u32::try_from(arguments.request_late.0)
            .ok()
            .context("--request-late is 4 s at most")?,
        sync_less_ns: arguments.sync_less.0,
        no_commit_wait: arguments.no_commit_wait,
        log_apart: log_on.is_some(),
        from_start: arguments.cold,
        seed: arguments.seed,
    };
    let (prefix, view) = (&arguments.prefix, &context.view);
    let (all, stopped) = ask(prefix, &question, &targets?, log_on.as_ref(), view)?;
    if let Some(path) = &arguments.html {
        study::run_dir::write_atomically(path, report::html(&page(&all)).as_bytes())?;
    }
    if context.json {
        output::json(&all)?;
    } else {
        output::print(&output::table(&text(&all)))?;
        for line in all.devices.first().iter().flat_map(|device| &device.rests_on) {
            output::print(&format!("rests on {line}\n"))?;
        }
    }
    Ok(if stopped { Outcome::Interrupted } else { Outcome::Fine })
}
