//! `wearmark capture`

use study::captures::{Capture, Ending, Piece, Plan, Target, commands, page, take, text};

use super::oltp::login;
use super::{Context, Outcome, output};
use crate::cli;
use crate::failure::Advice;

/// Captures what runs already.
pub fn run(arguments: &cli::Capture, context: &Context) -> anyhow::Result<Outcome> {
    let seconds = arguments.duration.0 as f64 / 1e9;
    if arguments.print_commands {
        let device = arguments.device.as_ref().map(|device| device.display().to_string());
        let device = device.unwrap_or_else(|| "/dev/sda".to_owned());
        output::print(&commands(&device, seconds.ceil() as u64))?;
        return Ok(Outcome::Fine);
    }
    if seconds < 0.1 {
        let hint = "a minute is a good time; a checkpoint of the server should be within it";
        return Err(Advice::error(format!("--for {}: too short", arguments.duration), hint));
    }
    let plan = Plan {
        target: target(arguments)?,
        seconds,
        prefix: arguments.output.clone(),
        disks: !arguments.no_physical,
        login: login(&arguments.server)?,
    };
    let capture = take(&plan, &context.view)?;
    if let Some(path) = &arguments.html {
        let html = report::html(&page(&capture));
        study::run_dir::write_atomically(path, html.as_bytes())?;
    }
    if context.json {
        output::json(&capture)?;
    } else {
        show(&capture, arguments)?;
    }
    Ok(outcome(&capture))
}

fn target(arguments: &cli::Capture) -> anyhow::Result<Target> {
    let named = [
        arguments.pid.map(Target::Pid),
        arguments.data_dir.clone().map(Target::DataDirectory),
        arguments.cgroup.clone().map(Target::ControlGroup),
        arguments.device.clone().map(Target::Device),
    ];
    named.into_iter().flatten().next().ok_or_else(|| {
        Advice::error(
            "it is not said what to capture",
            "name a process with --pid, a server with --data-dir, a --cgroup or a --device",
        )
    })
}

fn outcome(capture: &Capture) -> Outcome {
    let missing = capture.files.iter().any(|file| file.missing.is_some());
    match capture.ending {
        Ending::Interrupted => Outcome::Interrupted,
        Ending::ServerEnded => Outcome::Finding,
        _ if missing => Outcome::Finding,
        _ => Outcome::Fine,
    }
}

fn show(capture: &Capture, arguments: &cli::Capture) -> anyhow::Result<()> {
    let mut printed = String::new();
    let mut after_table = false;
    for piece in text(capture) {
        match piece {
            Piece::Table(rows) => {
                printed.push('\n');
                printed.push_str(&output::table(&rows));
                after_table = true;
            }
            Piece::Line(line) => {
                if std::mem::take(&mut after_table) {
                    printed.push('\n');
                }
                printed.push_str(&line);
                printed.push('\n');
            }
        }
    }
    let whole = capture.files.iter().all(|file| file.missing.is_none());
    if whole && capture.requests.as_ref().is_some_and(|all| all.count > 0) {
        let prefix = arguments.output.display();
        printed.push_str(&format!("next: wearmark predict {prefix} --on PROFILE\n"));
    }
    output::print(&printed)
}
