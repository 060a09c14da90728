//! `wearmark replay` and `wearmark validate`

use std::path::Path;

use ::trace::Trace;
use events::Sink;
use io::target::TargetSpec;
use probe::replay::{Certificate, Mode, ReplayOptions, Replayed};
use report::format;
use study::profiles::read_device;
use study::recorded;
use study::stages::replay::{first, mode};
use study::validation::{self, Sides};
use units::{Nanos, Rate};

use super::trace::input::read;
use super::{Context, Outcome, output};
use crate::cli;

/// `wearmark replay`
pub fn run(arguments: &cli::Replay, context: &Context) -> anyhow::Result<Outcome> {
    let mut trace = read(&arguments.input, context)?.trace;
    if let Some(duration) = arguments.duration {
        trace = first(trace, duration);
    }
    if let Some(rate) = arguments.rate {
        stretch(&mut trace, rate);
    }
    let options = ReplayOptions {
        mode: match arguments.mode {
            cli::Mode::Timed => Mode::Timed,
            cli::Mode::Dependent => Mode::Dependent,
            cli::Mode::Fast => Mode::AsFastAsPossible,
            cli::Mode::Closed => Mode::ClosedLoop { depth: arguments.depth },
        },
        ..ReplayOptions::new(target(&arguments.target, arguments.i_will_lose_data.as_deref()))
    };
    let replayed = replay_once(&trace, &options, context)?;
    if context.json {
        output::json(&replayed.certificate)?;
    } else {
        output::print(&(times(&trace, &replayed) + "\n" + &certificate(&replayed.certificate)))?;
    }
    Ok(ended(context, replayed.certificate.valid))
}

fn target(path: &Path, again: Option<&Path>) -> TargetSpec {
    TargetSpec { path: path.to_owned(), i_will_lose_data: again.map(Path::to_owned) }
}

fn ended(context: &Context, valid: bool) -> Outcome {
    match (context.view.cancelled(), valid) {
        (true, _) => Outcome::Interrupted,
        (false, true) => Outcome::Fine,
        (false, false) => Outcome::Finding,
    }
}

/// Plays the trace at another mean rate: every due time is scaled alike.
fn stretch(trace: &mut Trace, rate: Rate) {
    let span = trace.span().as_secs_f64();
    let wanted = trace.count() as f64 / rate.0;
    if span > 0.0 && wanted > 0.0 {
        let factor = wanted / span;
        for due in &mut trace.due {
            *due = (*due as f64 * factor).round() as u64;
        }
    }
}

fn replay_once(
    trace: &Trace,
    options: &ReplayOptions,
    context: &Context,
) -> anyhow::Result<Replayed> {
    Ok(probe::replay::replay(trace, options, &context.view)?)
}

fn times(trace: &Trace, replayed: &Replayed) -> String {
    let header = ["OP", "REQUESTS", "RESPONSE P50", "P99", "P99.9", "SERVICE P50", "P99"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for op in ::trace::Op::ALL {
        let (mut response, mut service) = (stats::Histogram::new(), stats::Histogram::new());
        for (index, of) in trace.op.iter().enumerate().take(replayed.response_ns.len()) {
            if *of == op {
                response.record(replayed.response_ns[index]);
                service.record(replayed.service_ns[index]);
            }
        }
        if response.count() > 0 {
            let at = |h: &stats::Histogram, q| format::duration_ns(h.quantile(q) as f64);
            rows.push(vec![
                op.name().to_owned(),
                response.count().to_string(),
                at(&response, 0.5),
                at(&response, 0.99),
                at(&response, 0.999),
                at(&service, 0.5),
                at(&service, 0.99),
            ]);
        }
    }
    output::table(&rows)
}

fn certificate(certificate: &Certificate) -> String {
    let verdict = if certificate.valid {
        "valid".to_owned()
    } else {
        format!("NOT VALID: {}", certificate.invalid_because.join("; "))
    };
    format!(
        "timing certificate: {verdict}\n  duration / ideal {:.5}; issue lateness p50 {}, p99 {}, \
         max {}\n  {} requests in, {} completions out, {} skipped; priority {}\n",
        certificate.duration_ratio,
        format::duration_ns(certificate.lateness_ns_p50 as f64),
        format::duration_ns(certificate.lateness_ns_p99 as f64),
        format::duration_ns(certificate.lateness_ns_max as f64),
        certificate.requests_in,
        certificate.completions_out,
        certificate.skipped,
        certificate.priority,
    )
}

/// Part of a trace that is replayed where nothing is said.
const REPLAYED: Nanos = Nanos(25_000_000_000);

/// `wearmark validate`
pub fn validate(arguments: &cli::Validate, context: &Context) -> anyhow::Result<Outcome> {
    match &arguments.target {
        Some(at) => against_replays(arguments, at, context),
        None => against_recording(arguments, context),
    }
}

fn against_recording(arguments: &cli::Validate, context: &Context) -> anyhow::Result<Outcome> {
    let profile = read_device(&arguments.profile)?;
    let mut trace = read(&arguments.input, context)?.trace;
    if let Some(duration) = arguments.duration {
        trace = first(trace, duration);
    }
    let Some(found) = recorded::compare(&profile, &trace, arguments.seed, &context.view)? else {
        return Ok(Outcome::Interrupted);
    };
    if let Some(path) = &arguments.html {
        let page = report::html(&recorded::page(&found, &trace.origin.source));
        study::run_dir::write_atomically(path, page.as_bytes())?;
    }
    if context.json {
        output::json(&found)?;
    } else {
        let (rows, note) = recorded::text(&found);
        output::print(&format!("{}\n{note}\n", output::table(&rows)))?;
    }
    Ok(Outcome::Fine)
}

fn against_replays(
    arguments: &cli::Validate,
    at: &Path,
    context: &Context,
) -> anyhow::Result<Outcome> {
    let duration = arguments.duration.unwrap_or(REPLAYED);
    let trace = first(read(&arguments.input, context)?.trace, duration);
    let profile = read_device(&arguments.profile)?;
    let mut runs = Vec::new();
    for _ in 0..2 {
        let target = target(at, arguments.i_will_lose_data.as_deref());
        let options = ReplayOptions { mode: mode(&trace), ..ReplayOptions::new(target) };
        let replayed = replay_once(&trace, &options, context)?;
        if context.view.cancelled() {
            return Ok(Outcome::Interrupted);
        }
        runs.push(validation::Replayed {
            response_ns: replayed.response_ns,
            service_ns: replayed.service_ns,
            certificate: replayed.certificate,
        });
    }
    let seed = arguments.seed;
    let simulated = validation::simulate(&profile, &trace, seed)?;
    let without_cache = profile
        .write_cache
        .is_some()
        .then(|| validation::simulate(&profile.without_cache(), &trace, seed))
        .transpose()?;
    let sides = Sides {
        trace: &trace,
        real: [&runs[0], &runs[1]],
        simulated: &simulated,
        without_cache: without_cache.as_deref(),
        block_ns: validation::BLOCK_NS,
        drift: &[],
    };
    let found = validation::compare(&sides, seed);
    if context.json {
        output::json(&found)?;
    } else {
        output::print(&summary(&found))?;
    }
    Ok(ended(context, runs.iter().all(|run| run.certificate.valid)))
}

fn summary(found: &validation::Validation) -> String {
    let header = ["REQUESTS", "COUNT", "E", "E OF THE DISK AGAINST ITSELF", "MEAN"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let pooled = ("all", &found.simulated.pooled, &found.noise_floor.pooled);
    let operations = found.operations.iter();
    let operations = operations.map(|o| (o.op.name(), &o.simulated, &o.noise_floor));
    for (name, simulated, floor) in std::iter::once(pooled).chain(operations) {
        rows.push(vec![
            name.to_owned(),
            simulated.count_real.to_string(),
            format!("{:.3}", simulated.error_ratio),
            format!("{:.3}", floor.error_ratio),
            format!("{:+.1} %", simulated.signed_mean_error * 100.0),
        ]);
    }
    let runs = found.certificates.iter().map(certificate).collect::<String>();
    let (table, aim) = (output::table(&rows), found.aim);
    format!("{table}\naim: E at most {aim:.3}\n{}\n\n{runs}", found.verdict_words())
}
