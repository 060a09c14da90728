//! Measures the disk. Cells are saved as they are measured; a resumed run goes on after the last.

use std::fs::OpenOptions;
use std::io::Write;

use fit::measurement::CellResult;
use io::target::TargetSpec;
use probe::{Options, PlanKind};

use crate::Error;
use crate::file::Plan;
use crate::pipeline::Context;

/// The artifact.
pub const MEASUREMENTS: &str = "measurements.json";
/// Cells measured so far, one JSON document per line.
const PARTIAL: &str = "measurements.partial.jsonl";

/// Runs the stage.
pub(crate) fn run(context: &Context<'_>) -> Result<(), Error> {
    let path = context.run.join(PARTIAL);
    // The last line of a killed run may be torn; it is measured again.
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let lines = text.lines().map(serde_json::from_str::<CellResult>);
    let done: Vec<CellResult> = lines.map_while(Result::ok).collect();
    let study = context.study;
    let options = Options {
        range_bytes: study.probe.range.0,
        plan: match study.probe.plan {
            Plan::Quick => PlanKind::Quick,
            Plan::Full => PlanKind::Full,
        },
        seed: study.study.seed,
        done: done.clone(),
        budget_s: study.probe.budget.as_secs_f64(),
        ..Options::new(TargetSpec::new(context.run.path()))
    };
    let mut partial = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(Error::io(&path, "open"))?;
    // Cut off a torn line before going on behind it.
    let whole: usize = text.split_inclusive('\n').take(done.len()).map(str::len).sum();
    partial.set_len(whole as u64).map_err(Error::io(&path, "truncate"))?;
    std::io::Seek::seek(&mut partial, std::io::SeekFrom::End(0))
        .map_err(Error::io(&path, "seek"))?;
    let mut failed = None;
    let mut save = |cell: &CellResult| {
        let line = serde_json::to_vec(cell).expect("a cell result holds only plain values");
        let saved = partial.write_all(&line).and_then(|()| partial.write_all(b"\n"));
        failed = failed.take().or(saved.err());
    };
    let measured = probe::run(&options, context.log, &mut save)?;
    if let Some(source) = failed {
        return Err(Error::Io { path, action: "write", source });
    }
    if context.cancelled() {
        return Ok(());
    }
    context.finish(MEASUREMENTS, &measured)?;
    context.run.remove(PARTIAL)
}
