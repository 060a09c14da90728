//! One run: open, warm up, measure, and put the result together.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use capture::cpu::MachineCpu;
use events::{Ending, Event, Sink, Step, Warning};
use stats::Histogram;
use virtual_time::World;

use crate::censored::Bounds;
use crate::driver::{Dbms, Lanes, LoadReport, Null};
use crate::engine::{Gathered, INTERVAL_NS, Phase, Plan, STAGE, Span, Watch, execute};
use crate::options::{Database, Load, LoadOptions, Options, Synchronous};
use crate::result::{
    AtLeast, ClientOverhead, Cpu, DeliveryResult, KindResult, OltpResult, Series, Sizes, Verdict,
};
use crate::workload::nurand::Constants;
use crate::workload::own::Dialect;
use crate::workload::{Dataset, Own, Source};
use crate::{Error, Kind, Scale};

/// A measurement shorter than this carries a warning.
const SHORT_S: f64 = 30.0;

/// The largest part of the response time that may be the lateness of our own clock.
const SCHEDULE_SHARE: f64 = 0.1;

const OVERHEAD_METHOD: &str = "of one transaction in sixteen the time outside calls of the DBMS \
    (sqlite3_step and sqlite3_reset; send and receive), over the CPU time of the workers per \
    transaction: taking the request, making its inputs, binding parameters, reading columns and \
    recording count as client; stretches over 30 us were preempted and are left out";

/// Loads a database, in place of an earlier one that wearmark made.
///
/// # Errors
/// A dataset without meaning; a place that is missing or not ours; a full disk; a stop by the user.
/// Nothing is left behind then.
pub fn load(options: &LoadOptions, sink: &dyn Sink) -> Result<LoadReport, Error> {
    options.dataset.validate()?;
    let dbms = options.database.dbms(options.dataset.workload())?;
    dbms.load(options.dataset, options.seed, sink)
}

/// Runs the terminals of `options` on a loaded database.
///
/// A stop by the user ends the run early and keeps what was done, marked as interrupted. A failed
/// input audit or response-time bound is not an error: see [`OltpResult::passed`].
///
/// # Errors
/// Options without meaning; a database that is missing, not ours, half-loaded, or of another size;
/// a full disk; whatever else SQLite refuses.
pub fn run(options: &Options, sink: &dyn Sink) -> Result<OltpResult, Error> {
    run_observed(options, sink, &mut |_| {})
}

/// As [`run`], and calls `phase` from the calling thread as each phase begins: to start and stop a
/// capture with the measurement.
pub fn run_observed(
    options: &Options,
    sink: &dyn Sink,
    phase: &mut dyn FnMut(Phase),
) -> Result<OltpResult, Error> {
    run_noted(options, false, sink, phase).map(|(result, _)| result)
}

/// As [`run_observed`], and returns with `note_spans` when each transaction ran on which task of
/// the server, from the start of the warm-up: 32 bytes each.
pub fn run_noted(
    options: &Options,
    note_spans: bool,
    sink: &dyn Sink,
    phase: &mut dyn FnMut(Phase),
) -> Result<(OltpResult, Vec<Span>), Error> {
    announced(options, sink, || run_inner(options, (note_spans, None), sink, phase))
}

/// As [`run`], in virtual time: the workers are those of `world`, and what they wait for must be on
/// its device. Nothing is noted in the database, which is to be left as it is.
pub fn run_in(options: &Options, world: &Arc<World>, sink: &dyn Sink) -> Result<OltpResult, Error> {
    let inner = || run_inner(options, (false, Some(Arc::clone(world))), sink, &mut |_| {});
    announced(options, sink, inner).map(|(result, _)| result)
}

/// Tells the sink of a run's beginning and end.
fn announced(
    options: &Options,
    sink: &dyn Sink,
    run: impl FnOnce() -> Result<(OltpResult, Vec<Span>), Error>,
) -> Result<(OltpResult, Vec<Span>), Error> {
    options.validate()?;
    let expected_s = options.warmup.as_secs_f64() + options.measure.as_secs_f64();
    let step = Step { name: options.workload.name().to_owned(), expected_s, writes_bytes: 0 };
    sink.emit(Event::Plan { stage: STAGE.to_owned(), steps: vec![step] });
    let start = Instant::now();
    let result = run();
    let ending = match &result {
        Ok((result, _)) if result.interrupted => Ending::Interrupted,
        Ok(_) => Ending::Complete,
        Err(_) => Ending::Failed,
    };
    if let Ok((result, _)) = &result {
        result.warnings.iter().for_each(|warning| sink.emit(Event::Warning(warning.clone())));
    }
    let elapsed_s = start.elapsed().as_secs_f64();
    sink.emit(Event::Done { stage: STAGE.to_owned(), elapsed_s, ending });
    result
}

fn run_inner(
    options: &Options,
    (note_spans, world): (bool, Option<Arc<World>>),
    sink: &dyn Sink,
    phase: &mut dyn FnMut(Phase),
) -> Result<(OltpResult, Vec<Span>), Error> {
    let dbms = options.database.dbms(options.workload)?;
    let meta = dbms.meta()?;
    check_dataset(options, &*dbms, meta.dataset)?;
    if world.is_none() {
        dbms.count_run()?;
    }
    let constants = Constants::for_run(options.seed, meta.c_last_load);
    // Of an own workload the user's is what runs: its tables are those of the database.
    let dataset = options.dataset.unwrap_or(meta.dataset);
    let mut source = dataset.source(options.mix, options.seed, constants);
    source.begin_phases(options.warmup.0);
    if let Dataset::Own(own) = dataset {
        refuse_what_cannot_run(own, &options.database, world.is_some())?;
    }
    if let Source::Own(inputs) = &source {
        inputs.go_on(&mut |sql| dbms.integer(sql))?;
    }
    let plan = Plan { note_spans, world, ..plan(options, source) };
    let source = &plan.source;
    let mut sizes = Sizes { database_before: dbms.stored().data, ..Sizes::default() };
    // Of a server that is a query: once a second, not at each of the ten ticks.
    let mut ticks = 0u64;
    let mut tick = || {
        if ticks.is_multiple_of(10) {
            sizes.log_max = sizes.log_max.max(dbms.stored().log);
        }
        ticks += 1;
    };
    let driver = dbms.driver(dataset)?;
    let is_simulated = plan.world.is_some();
    let mut busy_s = None;
    let mut phase = |now: Phase| {
        let read = || MachineCpu::read().map(MachineCpu::busy_s);
        // Whatever watches the measurement begins before it, and ends after it.
        if now == Phase::End {
            busy_s = read().zip(busy_s).map(|(end, begin)| end - begin);
        }
        phase(now);
        if now == Phase::Measurement {
            busy_s = read();
        }
    };
    let watch = Watch { sink, phase: &mut phase, tick: &mut tick };
    let mut gathered = execute(&*driver, &plan, watch)?;
    drop(driver);
    sizes.database_after = dbms.stored().data;
    if let Some(path) = &options.delivery_log {
        write_delivery_log(path, &gathered)?;
    }
    let spans = std::mem::take(&mut gathered.spans);
    let mut result = assemble(options, (&*dbms, source), &gathered, sizes)?;
    result.cpu.machine_busy_s = busy_s.filter(|_| !is_simulated);
    Ok((result, spans))
}

/// Kinds that have no SQL for the DBMS, and those that sleep where the time is not the machine's.
fn refuse_what_cannot_run(own: Own, database: &Database, simulated: bool) -> Result<(), Error> {
    let dialect = match database {
        Database::Sqlite(_) => Dialect::Sqlite,
        Database::Postgresql(_) => Dialect::Postgresql,
        Database::Mariadb(_) => Dialect::Mariadb,
    };
    for (kind, program) in own.kinds().iter().zip(&own.body()?.programs) {
        let refused = |what: String, hint: &str| {
            let place = format!("{} of {}", kind.name(), own.name());
            Err(Error::Workload { place, what, hint: hint.to_owned() })
        };
        if let Err(what) = program.script(dialect) {
            return refused(what, "write the file that its workload.toml names for this DBMS");
        }
        if simulated && program.sleeps() {
            let what = "it sleeps inside a transaction, which virtual time cannot".to_owned();
            return refused(what, "leave \\sleep out, or run it without --on");
        }
    }
    Ok(())
}

fn plan(options: &Options, source: Source) -> Plan {
    Plan {
        source,
        users: options.users,
        load: options.load,
        warmup_ns: options.warmup.0,
        measure_ns: options.measure.0,
        log_deliveries: options.delivery_log.is_some(),
        note_spans: false,
        world: None,
    }
}

/// CPU time per transaction of the workload framework alone, nanoseconds: the same terminals,
/// queues, inputs and records as a run, on a driver that answers at once.
pub fn framework_cost_ns(scale: Scale, options: &Options, sink: &dyn Sink) -> Result<f64, Error> {
    options.validate()?;
    scale.validate()?;
    let constants = Constants::for_run(options.seed, 0);
    let plan =
        plan(options, Dataset::OrderEntry(scale).source(options.mix, options.seed, constants));
    let lanes = match &options.database {
        Database::Sqlite(settings) => (1, settings.readers),
        Database::Postgresql(server) | Database::Mariadb(server) => {
            (server.connections.min(options.users), 0)
        }
    };
    let (writers, readers) = (lanes.0 as usize, lanes.1 as usize);
    let driver = Null(Lanes { writers, readers, overlap: true });
    let watch = Watch { sink, phase: &mut |_| {}, tick: &mut || {} };
    let gathered = execute(&driver, &plan, watch)?;
    Ok(gathered.cpu.cpu.total_s() * 1e9 / gathered.cpu.transactions.max(1) as f64)
}

fn check_dataset(options: &Options, dbms: &dyn Dbms, found: Dataset) -> Result<(), Error> {
    let other = |wanted: String| Error::OtherScale {
        place: dbms.place(),
        what: "scale",
        found: found.to_string(),
        wanted,
    };
    match options.dataset {
        Some(wanted) if wanted != found => Err(other(wanted.to_string())),
        None if found.workload() != options.workload => Err(other(options.workload.to_string())),
        _ => Ok(()),
    }
}

/// The result log of clause 2.7.2: one line per executed request.
fn write_delivery_log(path: &Path, gathered: &Gathered) -> Result<(), Error> {
    let mut text = String::from("queued_ms,completed_ms,warehouse,carrier");
    (1..=10).for_each(|district| _ = write!(text, ",order_{district}"));
    text.push('\n');
    for record in gathered.ledger.log.iter().flatten() {
        let date = |ns: u64| gathered.started_ms + (ns / 1_000_000) as i64;
        let (queued, done) = (date(record.queued_ns), date(record.done_ns));
        _ = write!(text, "{queued},{done},{},{}", record.warehouse, record.carrier);
        record.delivered.iter().for_each(|order| _ = write!(text, ",{order}"));
        text.push('\n');
    }
    std::fs::write(path, text).map_err(|source| Error::Io {
        path: path.to_owned(),
        doing: "writing the delivery log",
        source,
    })
}

fn assemble(
    options: &Options,
    (dbms, source): (&dyn Dbms, &Source),
    gathered: &Gathered,
    sizes: Sizes,
) -> Result<OltpResult, Error> {
    let measured_s = gathered.measured_ns as f64 / 1e9;
    let ledger = &gathered.ledger;
    let kinds = source.dataset().workload().kinds();
    let transactions: Vec<KindResult> = kinds.iter().map(|&k| of_kind(gathered, k)).collect();
    let (new_orders, count) = match options.load {
        // Those that were due before the measurement are what an overloaded database then does.
        Load::Open { .. } => (ledger.ended_new_orders, ledger.ended),
        Load::Closed { .. } => (
            ledger.of(Kind::NewOrder).map_or(0, |counts| counts.count),
            transactions.iter().map(|kind| kind.count).sum(),
        ),
    };
    let waiting = transactions.iter().map(|kind| kind.waiting).sum();
    let per_s = |count: u64| if measured_s > 0.0 { count as f64 / measured_s } else { 0.0 };
    let mut result = OltpResult {
        schema: 1,
        workload: options.workload,
        disclaimer: options.workload.disclaimer().to_owned(),
        result_class: "engineering".to_owned(),
        dbms: dbms.version()?,
        dataset: source.dataset(),
        options: options.clone(),
        place: dbms.place(),
        interrupted: gathered.interrupted,
        warmup_s: options.warmup.as_secs_f64(),
        measured_s,
        new_orders_per_min: per_s(new_orders) * 60.0,
        transactions_per_s: per_s(count),
        transactions,
        delivery: delivery(gathered),
        attempts: ledger.attempts,
        retries: ledger.retries,
        failures: ledger.failures,
        dropped: gathered.queues.dropped,
        waiting,
        schedule_error_ns: gathered.queues.schedule_error_ns.clone(),
        series: series(options, gathered),
        cpu: cpu(gathered),
        client_overhead: overhead(gathered),
        sizes,
        audit: ledger.tally.audit(source),
        warnings: Vec::new(),
    };
    result.warnings = warnings(&result);
    Ok(result)
}

fn of_kind(gathered: &Gathered, kind: Kind) -> KindResult {
    let counts = gathered.ledger.of(kind).expect("kinds of the workload are counted");
    let bounds = |q: f64| Bounds::of(&counts.response_ns, &counts.waited_ns, q);
    let ms = |q: f64| bounds(q).least_ns as f64 / 1e6;
    let p90_limit_ms = kind.response_p90_limit_s() * 1e3;
    let p90_most_ms = bounds(0.9).most_ns.map(|ns| ns as f64 / 1e6);
    KindResult {
        kind,
        count: counts.count,
        rollbacks: counts.rollbacks,
        response_ms_p50: ms(0.5),
        response_ms_p90: ms(0.9),
        response_ms_p99: ms(0.99),
        p90_limit_ms,
        p90_holds: p90_most_ms.is_some_and(|most| most <= p90_limit_ms),
        at_least: AtLeast {
            p50: bounds(0.5).open_ended(),
            p90: bounds(0.9).open_ended(),
            p99: bounds(0.99).open_ended(),
        },
        waiting: counts.waited_ns.count(),
        waited_ns: counts.waited_ns.clone(),
        response_ns: counts.response_ns.clone(),
        service_ns: counts.service_ns.clone(),
    }
}

fn delivery(gathered: &Gathered) -> DeliveryResult {
    let recorder = &gathered.ledger;
    let counted = recorder.of(Kind::Delivery).map_or(0, |counts| counts.count);
    let waiting = recorder.of(Kind::Delivery).map_or(0, |counts| counts.waited_ns.count());
    let late = (recorder.late_deliveries + waiting) as f64 / (counted + waiting).max(1) as f64;
    let submit_ns: Histogram = gathered.queues.submit_ns.clone();
    let submit_p90_s = submit_ns.quantile(0.9) as f64 / 1e9;
    let skipped_share = recorder.skipped as f64 / recorder.districts.max(1) as f64;
    DeliveryResult {
        queued: gathered.queues.deliveries_queued,
        executed: recorder.deliveries,
        districts: recorder.districts,
        skipped: recorder.skipped,
        within_80_s: 1.0 - late,
        backpressured: gathered.queues.backpressured,
        holds: late <= 0.1 && submit_p90_s <= 5.0 && skipped_share <= 0.01,
        submit_ns,
    }
}

fn series(options: &Options, gathered: &Gathered) -> Series {
    let ran = (gathered.ended_ns / INTERVAL_NS) as usize;
    let part = |counts: &[u32]| counts[..ran.min(counts.len())].to_vec();
    Series {
        interval_s: INTERVAL_NS as f64 / 1e9,
        measure_from_s: options.warmup.as_secs_f64(),
        transactions: part(&gathered.ledger.transactions),
        new_orders: part(&gathered.ledger.new_orders),
    }
}

fn cpu(gathered: &Gathered) -> Cpu {
    let workers = &gathered.cpu;
    let per = |seconds: f64| seconds * 1e9 / workers.transactions.max(1) as f64;
    Cpu {
        user_ns_per_transaction: per(workers.cpu.user_s),
        system_ns_per_transaction: per(workers.cpu.system_s),
        user_s: workers.cpu.user_s,
        system_s: workers.cpu.system_s,
        transactions: workers.transactions,
        machine_busy_s: None,
    }
}

fn overhead(gathered: &Gathered) -> ClientOverhead {
    let (client, workers) = (gathered.cpu.client, &gathered.cpu);
    let cpu_ns = workers.cpu.total_s() * 1e9 / workers.transactions.max(1) as f64;
    let method = OVERHEAD_METHOD.to_owned();
    if client.transactions == 0 || cpu_ns <= 0.0 {
        return ClientOverhead { method, ..ClientOverhead::default() };
    }
    let count = client.transactions as f64;
    let mean = client.client_ns / count;
    let variance = (client.client_ns_squares / count - mean * mean).max(0.0);
    ClientOverhead {
        share: mean / cpu_ns,
        standard_error: (variance / count).sqrt() / cpu_ns,
        client_ns_per_transaction: mean,
        samples: client.transactions,
        method,
    }
}

/// Everything that makes the figures suspect.
fn warnings(result: &OltpResult) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |holds: bool, code: &str, message: String, hint: &str| {
        if holds {
            warnings.push(Warning::new(STAGE, code, message).with_hint(hint));
        }
    };
    let (dataset, options) = (&result.dataset, &result.options);
    warn(
        dataset.is_miniature(),
        "miniature_scale",
        format!("the database is a miniature ({dataset}), not the workload's shape"),
        "load the workload's own cardinalities for figures that mean something",
    );
    warn(
        result.interrupted,
        "interrupted",
        format!("the run was stopped after {:.1} s of measurement", result.measured_s),
        "let it run to its end",
    );
    warn(
        result.measured_s < SHORT_S,
        "too_short",
        format!("{:.1} s of measurement is too short for a steady figure", result.measured_s),
        "measure for 30 s at least",
    );
    let warehouses = dataset.scale().map_or(0, |scale| scale.warehouses);
    warn(
        options.users < warehouses,
        "warehouses_without_users",
        format!(
            "{} users use {} of {warehouses} warehouses as home, so the data in use are fewer than \
             loaded",
            options.users, options.users
        ),
        "run at least one user per warehouse",
    );
    warn(
        cfg!(debug_assertions),
        "debug_build",
        "this is a debug build".to_owned(),
        "build with --release",
    );
    if let Some(settings) = options.database.sqlite() {
        warn(
            !settings.synchronous.durable(),
            "not_durable",
            format!(
                "synchronous = {}: acknowledged transactions may be lost in a power cut",
                settings.synchronous.pragma()
            ),
            if settings.synchronous == Synchronous::Off {
                "use synchronous = full; off may destroy the database"
            } else {
                "use synchronous = full"
            },
        );
    }
    service_warnings(result, &mut warn);
    warnings
}

/// Those that come from what the run did.
fn service_warnings(result: &OltpResult, warn: &mut dyn FnMut(bool, &str, String, &str)) {
    let failed: Vec<&str> = result
        .audit
        .checks
        .iter()
        .filter(|check| !check.passed)
        .map(|check| check.name.as_str())
        .collect();
    warn(
        !result.audit.passed,
        "audit_failed",
        format!("the input audit failed: {}", failed.join(", ")),
        "the inputs were not the workload's: do not use the figures, and report the seed",
    );
    let late: Vec<&str> = result
        .transactions
        .iter()
        .filter(|kind| kind.p90_verdict() == Verdict::Violated)
        .map(|kind| kind.kind.name())
        .collect();
    warn(
        !late.is_empty(),
        "response_time_bound",
        format!("p90 of the response time is over its bound for {}", late.join(", ")),
        "run fewer users or a lower rate",
    );
    warn(
        !result.delivery.holds,
        "deliveries",
        format!(
            "{} of {} districts had no order to deliver; {:.1} % of deliveries took at most 80 s",
            result.delivery.skipped,
            result.delivery.districts,
            result.delivery.within_80_s * 100.0
        ),
        "a mix with more deliveries than a tenth of its new orders runs out of orders; load again",
    );
    warn(
        result.failures > 0,
        "failed_transactions",
        format!("{} transactions were given up after retries", result.failures),
        "close other users of the database",
    );
    warn(
        result.dropped > 0,
        "arrivals_dropped",
        format!("{} arrivals found the queue full", result.dropped),
        "lower the rate",
    );
    let offered = match result.options.load {
        Load::Open { rate } => rate.0,
        Load::Closed { .. } => 0.0,
    };
    warn(
        result.transactions_per_s < 0.9 * offered && result.measured_s > 1.0,
        "overload",
        format!("{:.0} of {offered:.0} transactions/s were done", result.transactions_per_s),
        "lower the rate: response times grow for as long as this runs",
    );
    let due = result.due();
    warn(
        result.left_a_queue(),
        "unanswered",
        format!(
            "{} of {due} requests had no answer at the end; they count as having taken at least \
             as long as they had waited",
            result.waiting
        ),
        "lower the rate; percentiles marked '>=' are lower bounds",
    );
    schedule_warning(result, warn);
}

/// An arrival that we queued late was answered late, and it is not the database that was slow.
fn schedule_warning(result: &OltpResult, warn: &mut dyn FnMut(bool, &str, String, &str)) {
    let mut response = Histogram::new();
    for kind in &result.transactions {
        response.merge(&kind.at_least_ns());
    }
    if let Some((name, late, took)) = late_beside(&result.schedule_error_ns, &response) {
        let ms = |ns: u64| ns as f64 / 1e6;
        warn(
            true,
            "schedule_late",
            format!(
                "arrivals were queued late by our own clock: its {name} of {:.2} ms is more than a \
                 tenth of the response's, {:.2} ms",
                ms(late),
                ms(took)
            ),
            "run it on a machine with a processor to spare: part of the response is ours",
        );
    }
}

/// The quantile at which our lateness is more than its share of the response: its name and both.
fn late_beside(late: &Histogram, response: &Histogram) -> Option<(&'static str, u64, u64)> {
    let both = |(name, q)| (name, late.quantile(q), response.quantile(q));
    [("median", 0.5), ("99th percentile", 0.99)]
        .map(both)
        .into_iter()
        .find(|&(_, late, took)| took > 0 && late as f64 > SCHEDULE_SHARE * took as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_beyond_a_tenth_of_the_response_is_named() {
        let all = |ns: u64| {
            let mut histogram = Histogram::new();
            histogram.record_n(ns, 1000);
            histogram
        };
        assert_eq!(late_beside(&all(10), &all(100)), None);
        assert_eq!(late_beside(&all(11), &all(100)), Some(("median", 11, 100)));
        let mut tail = all(5);
        tail.record_n(80, 20);
        assert_eq!(late_beside(&tail, &all(400)), Some(("99th percentile", 80, 400)));
        assert_eq!(late_beside(&all(5), &Histogram::new()), None);
    }
}
