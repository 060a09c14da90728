//! The captured transactions on the fitted profile and on the study's other devices.

use oltp::{Kind, OltpResult};

use super::fit::PROFILE;
use super::oltp::{DEVICE_TRACE, RESULT};
use crate::Error;
use crate::pipeline::Context;
use crate::scenarios::{read_profile, simulate};

/// The artifact.
pub const SCENARIOS: &str = "scenarios.json";

/// Runs the stage.
pub(crate) fn run(context: &Context<'_>) -> Result<(), Error> {
    let trace = formats::own::read(&context.run.join(DEVICE_TRACE))?;
    let result: OltpResult = context.run.read_json(RESULT)?;
    let all: u64 = result.transactions.iter().map(|kind| kind.count).sum();
    let share = result.of(Kind::NewOrder).map_or(0, |kind| kind.count) as f64 / all.max(1) as f64;
    let seed = context.study.study.seed;
    let fitted = read_profile(&context.run.join(PROFILE).to_string_lossy())?;
    let mut results = vec![simulate(&fitted, true, &trace, share, seed)?];
    for (index, scenario) in context.study.scenario.iter().enumerate() {
        if context.cancelled() {
            return Ok(());
        }
        let done = index as f64 / context.study.scenario.len() as f64;
        context.progress("scenarios", done, &scenario.profile, None);
        let profile = read_profile(&scenario.profile)?;
        results.push(simulate(&profile, false, &trace, share, seed)?);
    }
    context.run.write_json(SCENARIOS, &results)
}
