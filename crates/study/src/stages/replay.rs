//! Replays the captured device trace twice on the real disk, with its dependencies: the run was a
//! closed loop (see `docs/journal/2026-11-21-dependent-replay.md`).

use io::target::TargetSpec;
use probe::replay::{Mode, ReplayOptions};
use trace::Trace;
use units::Nanos;

use super::oltp::DEVICE_TRACE;
use crate::Error;
use crate::pipeline::Context;
use crate::validation::Replayed;

/// The artifacts: run A and run B.
pub const RUNS: [&str; 2] = ["replay-a.json", "replay-b.json"];

/// Runs the stage.
pub(crate) fn run(context: &Context<'_>) -> Result<(), Error> {
    let trace = replayed_part(context)?;
    for name in RUNS {
        if context.run.has(name) {
            continue;
        }
        let options = ReplayOptions {
            mode: mode(&trace),
            seed: context.study.study.seed,
            ..ReplayOptions::new(TargetSpec::new(context.run.path()))
        };
        let replayed = probe::replay::replay(&trace, &options, context.log)?;
        if context.cancelled() {
            return Ok(());
        }
        let saved = Replayed {
            response_ns: replayed.response_ns,
            service_ns: replayed.service_ns,
            certificate: replayed.certificate,
        };
        if name == RUNS[1] {
            context.finish(name, &saved)?;
        } else {
            context.run.write_json(name, &saved)?;
        }
    }
    Ok(())
}

/// How a trace is replayed for a validation: a capture that says who waited for what reacts to the
/// device; any other keeps its times.
pub fn mode(trace: &Trace) -> Mode {
    if trace.captured().is_some() { Mode::Dependent } else { Mode::Timed }
}

/// The captured device trace, cut to the length that the study validates on.
pub(crate) fn replayed_part(context: &Context<'_>) -> Result<Trace, Error> {
    let trace = formats::own::read(&context.run.join(DEVICE_TRACE))?;
    Ok(first(trace, context.study.validate.duration))
}

/// The requests of a trace that are due within `duration` of its start.
pub fn first(mut trace: Trace, duration: Nanos) -> Trace {
    let count = trace.due.partition_point(|due| *due <= duration.0);
    trace.truncate(count);
    trace
}
