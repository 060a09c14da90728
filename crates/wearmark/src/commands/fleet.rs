//! `wearmark fleet`

use std::num::NonZero;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use formats::Stop;
use report::format;
use study::fleet::{Asked, Plan, Ran, collect, missing, plan, summary, worst};
use study::run_dir::write_atomically;

use super::{Context, Outcome, output};
use crate::cli::{Executor, Fleet, FleetCollect, FleetPlan, FleetRun};
use crate::failure::Advice;
use crate::view::CANCELLED;

/// Runs the command.
pub fn run(command: Fleet, context: &Context) -> anyhow::Result<Outcome> {
    match command {
        Fleet::Plan(arguments) => make(arguments, context),
        Fleet::Run(arguments) => work(&arguments, context),
        Fleet::Collect(arguments) => gather(&arguments, context),
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

fn make(arguments: FleetPlan, context: &Context) -> anyhow::Result<Outcome> {
    let asked = Asked {
        traces: arguments.traces,
        profiles: arguments.profile,
        seeds: arguments.seed,
        by_stream: arguments.by_stream,
        closed: arguments.closed,
    };
    let planned = plan(&asked, Stop::on(&CANCELLED), &context.view)?;
    write_atomically(&arguments.output, planned.plan.to_text().as_bytes())?;
    let jobs = planned.plan.jobs.len();
    if context.json {
        output::json(&serde_json::json!({
            "jobs": jobs,
            "requests": planned.requests,
            "trace_bytes": planned.trace_bytes,
            "simulation_s": planned.simulation_s,
        }))?;
        return Ok(Outcome::Fine);
    }
    let processors = processors();
    output::print(&format!(
        "{jobs} jobs, {} requests, traces of {}; about {} of simulation, {} on the {processors} \
         processors here\nSaved to {plan}. Next: wearmark fleet run {plan}\n",
        format::count(planned.requests as f64),
        format::bytes(planned.trace_bytes as f64),
        format::duration_ns(planned.simulation_s * 1e9),
        format::duration_ns(planned.simulation_s * 1e9 / processors as f64),
        plan = arguments.output.display(),
    ))?;
    Ok(Outcome::Fine)
}

fn work(arguments: &FleetRun, context: &Context) -> anyhow::Result<Outcome> {
    let plan = Plan::read(&arguments.plan)?;
    let jobs = missing(&plan, &arguments.plan, &arguments.results, &arguments.job)?;
    if arguments.executor == Executor::Exec {
        let (file, results) = (quoted(&arguments.plan), quoted(&arguments.results));
        let line = |id: &str| format!("wearmark fleet run {file} --results {results} --job {id}\n");
        output::print(&jobs.iter().map(|job| line(&job.id)).collect::<String>())?;
        return Ok(Outcome::Fine);
    }
    if arguments.executor == Executor::Ray {
        return on_ray(arguments, context);
    }
    let threads = arguments.threads.unwrap_or_else(processors);
    let stop = Stop::on(&CANCELLED);
    let ran = study::fleet::run(&plan, &jobs, &arguments.results, threads, stop, &context.view)?;
    show(&ran, context)?;
    Ok(match (ran.interrupted, ran.failed.is_empty()) {
        (true, _) => Outcome::Interrupted,
        (false, false) => Outcome::Finding,
        (false, true) => Outcome::Fine,
    })
}

/// Hands the plan to the Python package, which takes the place of this process.
fn on_ray(arguments: &FleetRun, context: &Context) -> anyhow::Result<Outcome> {
    let python = std::env::var_os("WEARMARK_PYTHON").unwrap_or_else(|| "python3".into());
    let look = "import importlib.util as u, sys; sys.exit(not u.find_spec('wearmark'))";
    let found = Command::new(&python).args(["-c", look]).status();
    if !found.is_ok_and(|status| status.success()) {
        return Err(Advice::error(
            format!("{} has no package 'wearmark'", python.display()),
            "pip install 'wearmark[ray]'; WEARMARK_PYTHON names another Python",
        ));
    }
    let mut command = Command::new(&python);
    command.args(["-m", "wearmark.fleet"]).arg(&arguments.plan);
    command.arg("--results").arg(&arguments.results);
    command.args(arguments.job.iter().flat_map(|id| ["--job", id]));
    command.args(arguments.address.iter().flat_map(|address| ["--address", address]));
    command.args(context.json.then_some("--json")).args(context.quiet.then_some("--quiet"));
    Err(anyhow::Error::new(command.exec()).context(python.display().to_string()))
}

fn show(ran: &Ran, context: &Context) -> anyhow::Result<()> {
    if context.json {
        let failed: Vec<_> = ran
            .failed
            .iter()
            .map(|(job, cause)| serde_json::json!({ "job": job, "cause": cause }))
            .collect();
        return output::json(&serde_json::json!({
            "done_before": ran.before,
            "done": ran.done,
            "failed": failed,
            "simulating_s": ran.simulating_s,
        }));
    }
    output::print(&format!(
        "{} jobs done, {} done before, {} failed; {} in simulations\n",
        ran.done,
        ran.before,
        ran.failed.len(),
        format::duration_ns(ran.simulating_s * 1e9)
    ))
}

/// A path as a word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn gather(arguments: &FleetCollect, context: &Context) -> anyhow::Result<Outcome> {
    let plan = Plan::read(&arguments.plan)?;
    let all = collect(&plan, &arguments.results)?;
    if let Some(path) = &arguments.output {
        write_atomically(path, all.to_text().as_bytes())?;
    }
    if context.json {
        let (devices, missing) = (all.devices(), all.missing);
        output::json(&serde_json::json!({ "devices": devices, "jobs_missing": missing }))?;
    } else {
        output::print(&output::table(&summary(&all)))?;
        if arguments.worst > 0 {
            output::print(&format!("\n{}", output::table(&worst(&all, arguments.worst))))?;
        }
        if all.missing > 0 {
            let of = plan.jobs.len();
            output::print(&format!("\n{} of {of} jobs have no result yet\n", all.missing))?;
        }
    }
    Ok(if all.missing > 0 { Outcome::NoVerdict } else { Outcome::Fine })
}

#[cfg(test)]
mod tests {
    use super::quoted;
    use std::path::Path;

    #[test]
    fn paths_are_words_of_a_shell() {
        assert_eq!(quoted(Path::new("a/b-1.jsonl")), "a/b-1.jsonl");
        assert_eq!(quoted(Path::new("it's here")), r"'it'\''s here'");
    }
}
