//! The captured transactions on the fitted profile and on the study's other devices.

use oltp::Kind;

use crate::Error;
use crate::advice::{LimitingError, predict};
use crate::artifacts::{DEVICE_TRACE, LOAD, PROFILE, SCENARIOS, VALIDATION};
use crate::context::Context;
use crate::file::devices_above;
use crate::profiles::read_text;
use crate::scenarios::simulate_swept;

/// Runs the stage.
pub(crate) fn run(context: &Context<'_>) -> Result<(), Error> {
    let trace = formats::own::read(&context.run.join(DEVICE_TRACE))?;
    let result = context.run.read(&LOAD)?;
    let all: u64 = result.transactions.iter().map(|kind| kind.count).sum();
    let share = result.of(Kind::NewOrder).map_or(0, |kind| kind.count) as f64 / all.max(1) as f64;
    let seed = context.study.study.seed;
    let simulated = |name: &str, host: Option<&toml::Table>, fitted: bool| {
        let text = read_text(name)?;
        let host = devices_above(host).expect("the study was checked");
        let stop = || context.cancelled();
        simulate_swept((name, &text, host.as_ref()), fitted, &trace, share, seed, &stop)
    };
    let mut results = vec![simulated(&context.run.join(PROFILE).to_string_lossy(), None, true)?];
    for (index, scenario) in context.study.scenario.iter().enumerate() {
        if context.cancelled() {
            return Ok(());
        }
        let done = index as f64 / context.study.scenario.len() as f64;
        context.progress("scenarios", done, &scenario.profile, None);
        results.push(simulated(&scenario.profile, scenario.host.as_ref(), false)?);
    }
    if context.cancelled() {
        return Ok(());
    }
    let validation = context.run.read(&VALIDATION)?;
    let error = LimitingError::of(&validation);
    predict(&mut results, result.transactions_per_s * 60.0, &error);
    context.finish(&SCENARIOS, &results)
}
