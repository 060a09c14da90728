//! Fits a profile to the measurements.

use fit::FitOptions;

use crate::Error;
use crate::artifacts::{FIT, FitReport, MEASUREMENTS, PROFILE};
use crate::context::Context;

/// Runs the stage.
pub(crate) fn run(context: &Context<'_>) -> Result<(), Error> {
    let measured = context.run.read(&MEASUREMENTS)?;
    let options = FitOptions { seed: context.study.study.seed, name: "this-disk".into() };
    let fit = fit::fit(&measured, &options)?;
    for warning in fit.warnings {
        context.warn(warning);
    }
    context.run.write(PROFILE, fit.profile.to_toml().as_bytes())?;
    context.finish(&FIT, &FitReport { lines: fit.lines })
}
