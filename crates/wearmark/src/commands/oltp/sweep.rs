//! `wearmark oltp sweep`: a run at each value of one setting.
//!
//! Settings of the data get a directory each, below the one named; the others share the database.
//! Points that the file of `--save` already has are not run again.

use ::oltp::Workload;
use study::runs::{RunSet, make};

use super::run::{capture, keep, outcome};
use super::target::{Opened, data_seed, dataset, options, run_seed};
use super::{Context, Outcome, output};
use crate::cli::{OltpSweep, WorkloadArguments};
use crate::failure::Advice;

/// Settings that need data of their own for each value.
const OF_THE_DATA: [&str; 3] = ["warehouses", "branches", "rows"];

/// Runs the command.
pub fn sweep(arguments: &OltpSweep, context: &Context) -> anyhow::Result<Outcome> {
    let (setting, values) = over(&arguments.over)?;
    let mut set = begun(arguments, &setting)?;
    for value in values {
        if set.runs.iter().any(|run| run.at == value) {
            continue;
        }
        let stopped = point(arguments, (&setting, &value), &mut set, context)?;
        keep(&set, &arguments.watching)?;
        if stopped || set.runs.last().is_some_and(|run| run.result.interrupted) {
            set.runs.retain(|run| !run.result.interrupted);
            keep(&set, &arguments.watching)?;
            return Ok(Outcome::Interrupted);
        }
    }
    if context.json {
        output::json(&set)?;
    } else {
        output::print(&text(&set, &setting))?;
    }
    Ok(outcome(&set))
}

/// Splits `users=4,8,16`. Weights of a mix are separated by colons here.
fn over(text: &str) -> anyhow::Result<(String, Vec<String>)> {
    let hint = "write a setting and its values, such as --over users=4,8,16";
    let (setting, values) =
        text.split_once('=').ok_or_else(|| Advice::error(format!("--over {text}"), hint))?;
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    if values.iter().any(String::is_empty) {
        return Err(Advice::error(format!("--over {text}: a value is empty"), hint));
    }
    Ok((setting.trim().to_owned(), values))
}

/// The set to go on with.
fn begun(arguments: &OltpSweep, setting: &str) -> anyhow::Result<RunSet> {
    let place = arguments.place.data().cloned().unwrap_or_else(|| ".".into());
    let fresh = RunSet::new(Some(setting.to_owned()), &place);
    match &arguments.watching.save {
        Some(path) if path.exists() => {
            let set = RunSet::read(path)?;
            if set.over.as_deref() == Some(setting) {
                return Ok(set);
            }
            let held = set.over.map_or_else(|| "no sweep".to_owned(), |over| format!("'{over}'"));
            Err(Advice::error(
                format!("'{}' holds a sweep over {held}", path.display()),
                "name another file with --save, or remove that one",
            ))
        }
        _ => Ok(fresh),
    }
}

fn is_built_in(workload: &WorkloadArguments) -> bool {
    workload.own.script.is_empty()
        && Workload::ALL.iter().any(|known| known.name() == workload.workload)
}

/// Runs at one value; tells whether the user stopped the load.
fn point(
    arguments: &OltpSweep,
    (setting, value): (&str, &str),
    set: &mut RunSet,
    context: &Context,
) -> anyhow::Result<bool> {
    let made = set.runs.len() as u32;
    let (mut place, mut settings, mut workload) =
        (arguments.place.clone(), arguments.settings.clone(), arguments.workload.clone());
    let bad = |why: &str| {
        Advice::error(format!("--over {setting}={value}: {why}"), "see 'wearmark help oltp sweep'")
    };
    let given = workload.own.size.len();
    let number = || value.parse::<u32>().map_err(|error| bad(&error.to_string()));
    match setting {
        "users" => workload.users = number()?,
        "connections" => workload.connections = number()?,
        "warehouses" => workload.warehouses = number()?,
        "branches" => workload.branches = number()?,
        "rows" if is_built_in(&workload) => workload.rows = number()?,
        "buffer" => settings.buffer = Some(value.parse().map_err(|_| bad("is no size"))?),
        "rate" => workload.rate = Some(value.parse().map_err(|_| bad("is no rate"))?),
        "mix" => workload.mix = value.replace(':', ","),
        "access" => value.clone_into(&mut workload.access),
        _ if !is_built_in(&workload) => workload.own.size.push(format!("{setting}={value}")),
        _ => return Err(bad("cannot be swept")),
    }
    let of_the_data = OF_THE_DATA.contains(&setting) || workload.own.size.len() > given;
    if of_the_data && place.server.url.is_none() {
        let parent = place.data().cloned().unwrap_or_default();
        let directory = parent.join(format!("{setting}-{value}"));
        std::fs::create_dir_all(&parent).map_err(study::Error::io(&parent, "create"))?;
        (place.directory, place.data_dir) = (Some(directory), None);
    }
    let dataset = dataset(&workload)?;
    options(&workload, dataset, ::oltp::Database::default())?;
    let opened =
        Opened::open(&place, &settings, &workload, !arguments.watching.no_capture, context)?;
    let run = || -> anyhow::Result<Option<study::runs::Run>> {
        let mut options = options(&workload, dataset, opened.database.clone())?;
        if opened.load(dataset, data_seed(&workload), context)?.is_some() {
            return Ok(None);
        }
        options.seed = run_seed(&workload, &opened.database, made)?;
        let capture = capture(&arguments.watching);
        Ok(Some(make(options, &opened.target(), capture, &context.view)?.run))
    };
    let run = run();
    let closed = opened.close(dataset.workload(), arguments.watching.remove);
    let run = run?;
    closed?;
    let stopped = run.is_none();
    if let Some(mut run) = run {
        value.clone_into(&mut run.at);
        set.runs.push(run);
    }
    Ok(stopped)
}

fn text(set: &RunSet, setting: &str) -> String {
    use report::format;
    let header = [
        &setting.to_uppercase(),
        "TRANSACTIONS/S",
        "NEW ORDERS/MIN",
        "P90",
        "CLIENT CPU",
        "SERVER CPU",
        "AUDIT",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for run in &set.runs {
        let result = &run.result;
        let p90 = result.transactions.first().map_or_else(
            || "-".to_owned(),
            |kind| format::at_least_ns(1e6 * kind.response_ms_p90, kind.at_least.p90),
        );
        rows.push(vec![
            run.at.clone(),
            format::count(result.transactions_per_s),
            format::count(result.new_orders_per_min),
            p90,
            format::duration_ns(run.client_us() * 1e3),
            run.server_us().map_or_else(|| "-".to_owned(), |us| format::duration_ns(us * 1e3)),
            if result.audit.passed { "passed" } else { "FAILED" }.to_owned(),
        ]);
    }
    output::table(&rows)
}
