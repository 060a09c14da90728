//! `wearmark oltp compare`: `wearmark compare` for files of runs.

use study::runs::RunSet;
use study::runs::compare::side;

use super::{Context, Outcome};
use crate::cli::OltpCompare;
use crate::commands::compare::{check_bound, show};

/// Runs the command.
pub fn compare(arguments: &OltpCompare, context: &Context) -> anyhow::Result<Outcome> {
    check_bound(arguments.bound)?;
    let (old, new) = (RunSet::read(&arguments.old)?, RunSet::read(&arguments.new)?);
    let (old, new) = (side(&old), side(&new));
    study::checks::same_kind(&old, &new)?;
    let names = (arguments.old.display().to_string(), arguments.new.display().to_string());
    let names = (names.0.as_str(), names.1.as_str());
    show((&old, &new), arguments.bound, arguments.html.as_deref(), names, context)
}
