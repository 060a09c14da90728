//! Simulates the replayed requests on the fitted profile and says how wrong that is.

use probe::reference::Measured;

use super::replay::{judge, replayed_part, slices};
use crate::Error;
use crate::artifacts::{REFERENCES_OF_FIT, REFERENCES_OF_LOAD, REPLAY, VALIDATION};
use crate::context::Context;
use crate::drift::drift;
use crate::validation::{self, Sides};

/// Runs the stage.
pub(crate) fn run(context: &Context<'_>) -> Result<(), Error> {
    let trace = replayed_part(context)?;
    let slices = slices(&trace);
    let rounds = context.run.read(&REPLAY)?;
    let judge = judge(context, &slices)?;
    let together = judge.together(&rounds)?;
    let replays: Vec<Measured> =
        rounds.iter().flat_map(|round| round.references.iter().cloned()).collect();
    let fit = context.run.read(&REFERENCES_OF_FIT)?;
    let load = context.run.read(&REFERENCES_OF_LOAD)?;
    let sides = Sides {
        trace: &together.trace,
        real: [&together.real[0], &together.real[1]],
        simulated: &together.simulated,
        without_cache: together.without_cache.as_deref(),
        block_ns: judge.block_ns(),
        drift: &drift(&fit, &load, &replays),
    };
    let mut validation = validation::compare(&sides, context.study.study.seed);
    validation.certificates = together.certificates;
    validation.late_rounds = together.late_rounds;
    context.finish(&VALIDATION, &validation)
}
