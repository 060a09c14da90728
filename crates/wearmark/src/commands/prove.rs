//! `wearmark prove`

use clap::ValueEnum;
use study::prove::{Plan, page, prove, remarks, text};
use study::scenarios::read_profile;

use super::{Context, Outcome, output};
use crate::cli::{Prove, WorkloadArguments};
use crate::failure::Advice;

/// Runs the load here and on every device, and compares.
pub fn run(arguments: &Prove, context: &Context) -> anyhow::Result<Outcome> {
    // Before anything is created: a mistyped name must not cost a database.
    for name in &arguments.on {
        read_profile(name)?;
    }
    if let Some((cause, hint)) = ::emulate::directories_missing() {
        return Err(Advice::error(cause, hint));
    }
    let plan = planned(arguments)?;
    let proof = prove(&plan, &context.view)?;
    if let Some(path) = &arguments.html {
        let html = report::html(&page(&proof));
        study::run_dir::write_atomically(path, html.as_bytes())?;
    }
    if context.json {
        output::json(&proof)?;
    } else {
        let mut printed = output::table(&text(&proof));
        for remark in remarks(&proof) {
            printed.push_str(&remark);
            printed.push('\n');
        }
        output::print(&printed)?;
    }
    Ok(if proof.interrupted { Outcome::Interrupted } else { Outcome::Fine })
}

fn planned(arguments: &Prove) -> anyhow::Result<Plan> {
    let workload = &arguments.workload;
    let dbms = arguments.dbms.to_possible_value().expect("no value is hidden");
    let mut load = vec!["--dbms".to_owned(), dbms.get_name().to_owned()];
    load.extend(words(workload));
    if let Some(buffer) = arguments.buffer {
        load.extend(["--buffer".to_owned(), buffer.to_string()]);
    }
    for setting in &arguments.set {
        load.extend(["--set".to_owned(), setting.clone()]);
    }
    let program = std::env::current_exe().map_err(study::Error::io("wearmark", "find"))?;
    let path = |name: &String| match std::path::Path::new(name).canonicalize() {
        // A file: the steps may stand elsewhere.
        Ok(path) if model::profile::find_shipped(name).is_none() => path.display().to_string(),
        _ => name.clone(),
    };
    Ok(Plan {
        program,
        directory: arguments.directory.clone(),
        load,
        times: [workload.warmup, workload.duration].map(|time| time.to_string()),
        run_s: (workload.warmup.0 + workload.duration.0) as f64 / 1e9,
        devices: arguments.on.iter().map(path).collect(),
        rounds: arguments.rounds.max(1),
    })
}

/// The workload as arguments again.
fn words(workload: &WorkloadArguments) -> Vec<String> {
    let mut words = Vec::new();
    let mut add = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    add("workload", workload.workload.clone());
    add("warehouses", workload.warehouses.to_string());
    add("branches", workload.branches.to_string());
    add("rows", workload.rows.to_string());
    add("users", workload.users.to_string());
    add("access", workload.access.clone());
    add("connections", workload.connections.to_string());
    add("mix", workload.mix.clone());
    add("seed", workload.seed.unwrap_or(1).to_string());
    match workload.rate {
        Some(rate) => add("rate", rate.to_string()),
        None => add("think-scale", workload.think_scale.to_string()),
    }
    words
}
