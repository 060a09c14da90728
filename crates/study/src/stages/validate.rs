//! Simulates the replayed requests on the fitted profile and says how wrong that is.

use super::fit::PROFILE;
use super::replay::{RUNS, replayed_part};
use crate::Error;
use crate::pipeline::Context;
use crate::scenarios::read_profile;
use crate::validation::{self, Replayed, Sides};

/// The artifact.
pub const VALIDATION: &str = "validation.json";

/// Runs the stage.
pub(crate) fn run(context: &Context<'_>) -> Result<(), Error> {
    let trace = replayed_part(context)?;
    let a: Replayed = context.run.read_json(RUNS[0])?;
    let b: Replayed = context.run.read_json(RUNS[1])?;
    let profile = read_profile(&context.run.join(PROFILE).to_string_lossy())?;
    let seed = context.study.study.seed;
    let simulated = validation::simulate(&profile, &trace, seed)?;
    let without_cache = profile
        .write_cache
        .is_some()
        .then(|| validation::simulate(&profile.without_cache(), &trace, seed))
        .transpose()?;
    let sides = Sides {
        trace: &trace,
        real: [&a, &b],
        simulated: &simulated,
        without_cache: without_cache.as_deref(),
    };
    context.finish(VALIDATION, &validation::compare(&sides, seed))
}
