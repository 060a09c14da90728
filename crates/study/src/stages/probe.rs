//! Measures the disk. Cells are saved as they are measured; a resumed run goes on after the last.
//!
//! Reference measurements stand before, within and after the cells: the state that the profile is
//! fitted to, which later stages compare theirs with ([`crate::drift`]).

use fit::measurement::CellResult;
use io::target::TargetSpec;
use probe::reference::{self, Measured};
use probe::{Options, PlanKind};

use crate::Error;
use crate::artifacts::{MEASUREMENTS, REFERENCES_OF_FIT};
use crate::context::Context;
use crate::drift::References;
use crate::file::Plan;
use crate::partial::Partial;

/// Cells measured so far, one JSON document per line.
const PARTIAL: &str = "measurements.partial.jsonl";

/// Reference measurements so far, likewise.
const PARTIAL_REFERENCES: &str = "references-fit.partial.jsonl";
/// Cells between two reference measurements.
const CELLS_BETWEEN: usize = 24;
/// Reference measurements after the last cell.
const AT_END: usize = 2;
/// Reference measurements of the quick plan, about.
const REFERENCES: f64 = 7.0;

/// Runs the stage.
pub(crate) fn run(context: &Context<'_>) -> Result<(), Error> {
    let (mut partial, done) = Partial::<CellResult>::open(context.run, PARTIAL)?;
    let (mut kept, mut measured) = Partial::<Measured>::open(context.run, PARTIAL_REFERENCES)?;
    let study = context.study;
    let options = Options {
        range_bytes: study.probe.range.0,
        plan: match study.probe.plan {
            Plan::Quick => PlanKind::Quick,
            Plan::Full => PlanKind::Full,
        },
        seed: study.study.seed,
        done,
        budget_s: (study.probe.budget.as_secs_f64() - REFERENCES * reference::SECONDS).max(1.0),
        ..Options::new(TargetSpec::new(context.run.path()))
    };
    let mut references = References::new(context.run, study.study.seed);
    let mut refer = |times: usize| -> Result<(), Error> {
        for one in references.measure(times, context.log)? {
            kept.push(&one)?;
            measured.push(one);
        }
        Ok(())
    };
    refer(1)?;
    let mut cells = 0usize;
    let mut failed = None;
    let mut save = |cell: &CellResult| {
        cells += 1;
        let saved = partial.push(cell);
        let referred = if cells.is_multiple_of(CELLS_BETWEEN) { refer(1) } else { Ok(()) };
        if let Err(error) = saved.and(referred) {
            failed.get_or_insert(error);
        }
    };
    let result = probe::run(&options, context.log, &mut save)?;
    if let Some(error) = failed {
        return Err(error);
    }
    refer(AT_END)?;
    if context.cancelled() {
        return Ok(());
    }
    context.run.save(&REFERENCES_OF_FIT, &measured)?;
    context.finish(&MEASUREMENTS, &result)?;
    context.run.remove(PARTIAL_REFERENCES)?;
    context.run.remove(PARTIAL)
}
