//! Fits a profile to the measurements.

use fit::measurement::Measurements;
use fit::{FitOptions, FittedLine};
use serde::{Deserialize, Serialize};

use super::probe::MEASUREMENTS;
use crate::Error;
use crate::pipeline::Context;

/// The fitted profile.
pub const PROFILE: &str = "profile.toml";
/// The artifact.
pub const FIT: &str = "fit.json";

/// What the fit leaves beside the profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitReport {
    /// The fitted lines with their points.
    pub lines: Vec<FittedLine>,
}

/// Runs the stage.
pub(crate) fn run(context: &Context<'_>) -> Result<(), Error> {
    let measured: Measurements = context.run.read_json(MEASUREMENTS)?;
    let options = FitOptions { seed: context.study.study.seed, name: "this-disk".into() };
    let fit = fit::fit(&measured, &options)?;
    for warning in fit.warnings {
        context.warn(warning);
    }
    context.run.write(PROFILE, fit.profile.to_toml().as_bytes())?;
    context.finish(FIT, &FitReport { lines: fit.lines })
}
