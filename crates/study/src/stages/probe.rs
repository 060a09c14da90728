//! Measures the disk. Cells are saved as they are measured; a resumed run goes on after the last.

use fit::measurement::CellResult;
use io::target::TargetSpec;
use probe::{Options, PlanKind};

use crate::Error;
use crate::file::Plan;
use crate::partial::Partial;
use crate::pipeline::Context;

/// The artifact.
pub const MEASUREMENTS: &str = "measurements.json";
/// Cells measured so far, one JSON document per line.
const PARTIAL: &str = "measurements.partial.jsonl";

/// Runs the stage.
pub(crate) fn run(context: &Context<'_>) -> Result<(), Error> {
    let (mut partial, done) = Partial::<CellResult>::open(context.run, PARTIAL)?;
    let study = context.study;
    let options = Options {
        range_bytes: study.probe.range.0,
        plan: match study.probe.plan {
            Plan::Quick => PlanKind::Quick,
            Plan::Full => PlanKind::Full,
        },
        seed: study.study.seed,
        done,
        budget_s: study.probe.budget.as_secs_f64(),
        ..Options::new(TargetSpec::new(context.run.path()))
    };
    let mut failed = None;
    let mut save = |cell: &CellResult| {
        if let Err(error) = partial.push(cell) {
            failed.get_or_insert(error);
        }
    };
    let measured = probe::run(&options, context.log, &mut save)?;
    if let Some(error) = failed {
        return Err(error);
    }
    if context.cancelled() {
        return Ok(());
    }
    context.finish(MEASUREMENTS, &measured)?;
    context.run.remove(PARTIAL)
}
