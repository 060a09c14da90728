//! `wearmark oltp`

use std::path::Path;

use ::oltp::{Database, Dataset, Load, LoadOptions, OltpResult, Options, Scale, SqliteSettings};
use events::Sink;
use report::format;
use study::stages::oltp::{Capture, observe};

use super::{Context, Outcome, output};
use crate::cli::{Oltp, OltpRun};
use crate::failure::Advice;

/// Runs the command.
pub fn run(command: Oltp, context: &Context) -> anyhow::Result<Outcome> {
    match command {
        Oltp::Run(arguments) => load_and_run(&arguments, context),
        Oltp::Check { database } => check(&database, context),
    }
}

/// A value of one of the crates' enums by the name that its files use.
fn named<T: serde::de::DeserializeOwned>(option: &str, text: &str) -> anyhow::Result<T> {
    let value = serde_json::Value::String(text.to_owned());
    serde_json::from_value(value).map_err(|error| {
        Advice::error(format!("--{option}: {error}"), "see 'wearmark help oltp run'")
    })
}

fn load_and_run(arguments: &OltpRun, context: &Context) -> anyhow::Result<Outcome> {
    let sqlite = SqliteSettings {
        directory: arguments.directory.clone(),
        journal_mode: named("journal", &arguments.journal)?,
        synchronous: named("synchronous", &arguments.synchronous)?,
        page_size: arguments.page,
        buffer: arguments.buffer,
        ..SqliteSettings::default()
    };
    let io = named("io", &arguments.io)?;
    let dataset = Dataset::OrderEntry(Scale::new(arguments.warehouses));
    let database = Database::Sqlite(sqlite.clone());
    let options = Options {
        database: database.clone(),
        workload: dataset.workload(),
        dataset: Some(dataset),
        users: arguments.users,
        load: Load::Closed { think: f64::from(arguments.think_scale) },
        mix: arguments.mix.parse()?,
        warmup: arguments.warmup,
        measure: arguments.duration,
        seed: arguments.seed,
        delivery_log: None,
    };
    options.validate()?;
    if !sqlite.database().exists() {
        let load = LoadOptions { database, dataset, seed: arguments.seed };
        match ::oltp::load(&load, &context.view) {
            Err(_) if context.view.cancelled() => return Ok(Outcome::Interrupted),
            loaded => loaded?,
        };
    }
    let capture = match (arguments.no_capture, arguments.no_physical) {
        (true, _) => Capture::Off,
        (false, true) => Capture::Database,
        (false, false) => Capture::BlockLayer,
    };
    let observed = observe(options, io, capture, &context.view)?;
    if let (Some(prefix), Some(captured)) = (&arguments.trace, &observed.captured) {
        for (name, trace) in [("device", &captured.device), ("logical", &captured.logical)] {
            let mut path = prefix.as_os_str().to_owned();
            path.push(format!("-{name}.parquet"));
            ::trace::formats::own::write(trace, Path::new(&path))?;
        }
    }
    let result = &observed.result;
    if context.json {
        output::json(result)?;
    } else {
        output::print(&text(result))?;
    }
    Ok(match (result.interrupted, result.passed()) {
        (true, _) => Outcome::Interrupted,
        (false, true) => Outcome::Fine,
        (false, false) => Outcome::Finding,
    })
}

fn text(result: &OltpResult) -> String {
    let header = ["TRANSACTION", "COUNT", "ROLLED BACK", "P50", "P90", "P99", "P90 BOUND"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for found in &result.transactions {
        rows.push(vec![
            found.kind.name().to_owned(),
            found.count.to_string(),
            found.rollbacks.to_string(),
            format::duration_ns(found.response_ms_p50 * 1e6),
            format::duration_ns(found.response_ms_p90 * 1e6),
            format::duration_ns(found.response_ms_p99 * 1e6),
            if found.p90_holds { "holds" } else { "VIOLATED" }.to_owned(),
        ]);
    }
    let cpu = result.cpu.user_ns_per_transaction + result.cpu.system_ns_per_transaction;
    format!(
        "{}\n{} new orders per minute, {} transactions per second, {} CPU per transaction \
         ({} of it ours)\ninput audit: {}\n{}\n",
        output::table(&rows),
        format::count(result.new_orders_per_min),
        format::count(result.transactions_per_s),
        format::duration_ns(cpu),
        format::percent(result.client_overhead.share),
        if result.audit.passed { "passed" } else { "FAILED" },
        result.disclaimer,
    )
}

fn check(database: &Path, context: &Context) -> anyhow::Result<Outcome> {
    let conditions = ::oltp::consistency::check(database)?;
    if context.json {
        output::json(&conditions)?;
    } else {
        let mut rows = Vec::new();
        for condition in &conditions {
            let verdict = if condition.holds { "holds" } else { "VIOLATED" };
            let place = format!("{:>2}  {}", condition.number, condition.clause);
            rows.push(vec![place, verdict.to_owned(), condition.states.clone()]);
            rows.extend(
                condition.detail.iter().map(|row| vec![String::new(), String::new(), row.clone()]),
            );
        }
        output::print(&output::table(&rows))?;
    }
    let violated = conditions.iter().any(|condition| !condition.holds);
    Ok(if violated { Outcome::Finding } else { Outcome::Fine })
}
