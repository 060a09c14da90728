//! `wearmark oltp run`: loads where nothing is loaded, runs, says what came of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::oltp::{Database, KindResult, Load, Options, Verdict, Workload};
use capture::server::TransactionIo;
use events::Sink;
use report::format;
use study::host_stack::Devices;
use study::observe::Capture;
use study::profiles::read_device;
use study::runs::{Made, Run, RunSet, Target, make, page};
use virtual_time::{Computing, World};

use super::target::{Opened, data_seed, dataset, options, run_seed};
use super::{Context, Outcome, find_rate, output};
use crate::cli::{DbmsName, OltpRun, Simulated, Watching};
use crate::failure::Advice;

/// Runs the command.
pub fn run(arguments: &OltpRun, context: &Context) -> anyhow::Result<Outcome> {
    let dataset = dataset(&arguments.workload)?;
    let workload = dataset.workload();
    // Before anything is created: a mistyped option must not cost a server.
    options(&arguments.workload, dataset, Database::default())?;
    let (place, settings) = (&arguments.place, &arguments.settings);
    let captured = !arguments.watching.no_capture && arguments.simulated.on.is_none();
    if let Some(goal) = &arguments.find_rate {
        find_rate::refuse_other_kinds(goal, workload)?;
    }
    if let Some(name) = &arguments.simulated.on {
        simulated_only_sqlite(arguments, name)?;
    }
    let opened = Opened::open(place, settings, &arguments.workload, captured, context)?;
    let outcome = on(arguments, &opened, context);
    let closed = opened.close(workload, arguments.watching.remove);
    let outcome = outcome?;
    closed?;
    Ok(outcome)
}

fn on(arguments: &OltpRun, opened: &Opened, context: &Context) -> anyhow::Result<Outcome> {
    let dataset = dataset(&arguments.workload)?;
    let mut options = options(&arguments.workload, dataset, opened.database.clone())?;
    if let Some(stopped) = opened.load(dataset, data_seed(&arguments.workload), context)? {
        return Ok(stopped);
    }
    if let Some(goal) = &arguments.find_rate {
        return find_rate::find_rate(arguments, (opened, &options), goal, context);
    }
    let place = opened.directory.clone().unwrap_or_else(|| ".".into());
    let mut set = RunSet::new(None, &place);
    for repetition in 0..arguments.repeat.max(1) {
        options.seed = seed(arguments, opened, repetition)?;
        let Made { run, traces, transactions } =
            one(arguments, opened, options.clone(), &context.view)?;
        if let Some(prefix) = &arguments.trace {
            write_capture(prefix, &run, &traces, &transactions)?;
        }
        let interrupted = run.result.interrupted;
        set.runs.push(run);
        keep(&set, &arguments.watching)?;
        if interrupted {
            break;
        }
    }
    show(&set, context)?;
    Ok(outcome(&set))
}

/// The seed of the n-th run of a command, so that none repeats the transactions of another.
pub fn seed(arguments: &OltpRun, opened: &Opened, run: u32) -> anyhow::Result<u64> {
    let seed = run_seed(&arguments.workload, &opened.database, run)?;
    // A run in virtual time is not counted in the database, which it leaves as it is.
    let uncounted = arguments.simulated.on.is_some() && arguments.workload.seed.is_none();
    Ok(seed + if uncounted { u64::from(run) } else { 0 })
}

/// One run, here or in virtual time.
pub fn one(
    arguments: &OltpRun,
    opened: &Opened,
    options: Options,
    sink: &dyn Sink,
) -> anyhow::Result<Made> {
    let world = world(arguments, options.seed)?;
    let target = world
        .as_ref()
        .map_or_else(|| opened.target(), |world| Target::Simulated(Arc::clone(world)));
    let capture = match capture(&arguments.watching) {
        Capture::BlockLayer if arguments.trace.is_some() => Capture::WithItsCost,
        other => other,
    };
    Ok(make(options, &target, capture, sink)?)
}

/// Why a world of one database has no file system of its own.
const KEPT: &str = "a run in virtual time writes past the page cache, at offsets of its files";

fn simulated_only_sqlite(arguments: &OltpRun, name: &str) -> anyhow::Result<()> {
    if arguments.place.dbms != DbmsName::Sqlite || arguments.place.server.url.is_some() {
        let hint = format!("wearmark prove --on {name}, or capture a run and use wearmark predict");
        return Err(Advice::error("a server cannot run in virtual time", hint));
    }
    let speed = arguments.simulated.speed;
    if !(speed.is_finite() && speed > 0.0) {
        let hint = "2 is twice as fast as this machine, 0.5 half as fast";
        return Err(Advice::error(format!("a processor speed of {speed} is not above 0"), hint));
    }
    Ok(())
}

/// The world to run in, where one is asked for.
fn world(arguments: &OltpRun, seed: u64) -> anyhow::Result<Option<Arc<World>>> {
    let Simulated { on, host, processors, speed } = &arguments.simulated;
    let Some(name) = on else { return Ok(None) };
    let host = crate::commands::devices_of(host.as_deref(), KEPT)?;
    let devices = Devices::new(read_device(name)?, host.as_ref())?;
    let here = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    let settings = virtual_time::Settings {
        processors: processors.unwrap_or(here),
        computing: Computing::Measured { speed: *speed },
    };
    Ok(Some(World::new(devices.device(seed), &settings)))
}

/// Writes the files of a capture: traces, the table of transactions, and the run itself.
fn write_capture(
    prefix: &Path,
    run: &Run,
    traces: &[(String, ::trace::Trace)],
    transactions: &[TransactionIo],
) -> anyhow::Result<()> {
    let with = |suffix: &str| {
        let mut path = prefix.as_os_str().to_owned();
        path.push(suffix);
        PathBuf::from(path)
    };
    for (name, trace) in traces {
        formats::own::write(trace, &with(&format!("-{name}.parquet")))?;
    }
    if !transactions.is_empty() {
        let kinds = run.result.dataset.workload().by_code();
        let name = |number: u16| kinds.get(usize::from(number)).map_or("unknown", |k| k.name());
        let text = study::captures::table(transactions, name);
        study::run_dir::write_atomically(&with("-transactions.csv"), text.as_bytes())?;
    }
    let mut set = RunSet::new(None, prefix.parent().unwrap_or(Path::new(".")));
    set.runs.push(run.clone());
    Ok(set.write(&with("-run.json"))?)
}

/// What is captured.
pub fn capture(watching: &Watching) -> Capture {
    match (watching.no_capture, watching.no_physical) {
        (true, _) => Capture::Off,
        (false, true) => Capture::Database,
        (false, false) => Capture::BlockLayer,
    }
}

/// Writes what is to be kept, after each run, so that nothing is lost.
pub fn keep(set: &RunSet, watching: &Watching) -> anyhow::Result<()> {
    if let Some(path) = &watching.save {
        set.write(path)?;
    }
    if let (Some(path), Some(run)) = (&watching.html, set.runs.last()) {
        let title = format!("{} on {}", run.result.workload, run.result.dbms);
        let html = report::html(&page::page(set, &title));
        study::run_dir::write_atomically(path, html.as_bytes())?;
    }
    Ok(())
}

/// How the runs ended.
pub fn outcome(set: &RunSet) -> Outcome {
    if set.runs.iter().any(|run| run.result.interrupted) {
        Outcome::Interrupted
    } else if set.runs.iter().all(|run| run.result.passed()) {
        Outcome::Fine
    } else {
        Outcome::Finding
    }
}

fn show(set: &RunSet, context: &Context) -> anyhow::Result<()> {
    match (context.json, set.runs.as_slice()) {
        (true, [run]) => output::json(&run.result),
        (true, _) => output::json(set),
        (false, [.., last]) => output::print(&text(set, last)),
        (false, []) => Ok(()),
    }
}

fn text(set: &RunSet, run: &Run) -> String {
    let result = &run.result;
    let header = ["TRANSACTION", "COUNT", "ROLLED BACK", "P50", "P90", "P99", "P90 BOUND"];
    let mut header = header.map(str::to_owned).to_vec();
    let open_loop = matches!(result.options.load, Load::Open { .. });
    if open_loop {
        header.insert(2, "UNANSWERED".to_owned());
    }
    let mut rows = vec![header];
    // Kinds that the mix leaves out would be lines of zeros.
    let own = matches!(result.workload, Workload::Own(_));
    let seen = |found: &&KindResult| !own || found.count + found.waiting > 0;
    for found in result.transactions.iter().filter(seen) {
        let verdict = match found.p90_verdict() {
            Verdict::Holds => "holds",
            Verdict::Unknown => "UNKNOWN",
            Verdict::Violated => "VIOLATED",
        };
        let mut row = vec![
            found.kind.name().to_owned(),
            found.count.to_string(),
            found.rollbacks.to_string(),
            format::at_least_ns(1e6 * found.response_ms_p50, found.at_least.p50),
            format::at_least_ns(1e6 * found.response_ms_p90, found.at_least.p90),
            format::at_least_ns(1e6 * found.response_ms_p99, found.at_least.p99),
            verdict.to_owned(),
        ];
        if open_loop {
            row.insert(2, found.waiting.to_string());
        }
        rows.push(row);
    }
    let mut text = output::table(&rows);
    if set.runs.len() > 1 {
        let each = set.runs.iter().map(|run| format::count(run.result.transactions_per_s));
        let each: Vec<String> = each.collect();
        let seeds = set.runs.iter().map(|run| run.result.options.seed.to_string());
        let seeds: Vec<String> = seeds.collect();
        text.push_str(&format!(
            "\ntransactions per second, run by run: {}; seeds {}",
            each.join(", "),
            seeds.join(", ")
        ));
    }
    let new_orders = if result.new_orders_per_min > 0.0 {
        format!("{} new orders per minute, ", format::count(result.new_orders_per_min))
    } else {
        String::new()
    };
    if !result.schedule_error_ns.is_empty() {
        let late = result.schedule_error_ns.quantile(0.99) as f64;
        let late = format::duration_ns(late);
        text.push_str(&format!("\np99 of the schedule's own error: {late}"));
    }
    text.push_str(&format!(
        "\n{new_orders}{} transactions per second\n{}\ninput audit: {}; {} attempts, {} retries, \
         {} given up\n{}\n",
        format::count(result.transactions_per_s),
        cpu(run),
        if result.audit.passed { "passed" } else { "FAILED" },
        result.attempts,
        result.retries,
        result.failures,
        result.disclaimer,
    ));
    text
}

fn cpu(run: &Run) -> String {
    let client = format::duration_ns(run.client_us() * 1e3);
    let group = run.server.as_ref().and_then(study::runs::ServerRun::commits_per_log_sync);
    let group =
        group.map_or_else(String::new, |group| format!("; {group:.1} commits per sync of the log"));
    match (&run.server, run.server_us()) {
        (None, _) => format!(
            "{client} CPU per transaction ({} of it ours)",
            format::percent(run.result.client_overhead.share)
        ),
        (Some(_), Some(server)) => {
            let server = format::duration_ns(server * 1e3);
            format!("CPU per transaction: client {client}, server {server}{group}")
        }
        (Some(_), None) => format!("CPU per transaction: client {client}, server out of sight"),
    }
}
