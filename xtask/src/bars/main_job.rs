//! The first study of the README.

use anyhow::Context;
use serde_json::Value;

use super::tools::{folder, number, program};
use super::{Sitting, Target};

pub fn measure(sitting: &mut Sitting) -> anyhow::Result<()> {
    let (program, runs) = (program()?, folder("main-job")?);
    let started = std::time::Instant::now();
    let place = runs.to_string_lossy();
    crate::run(&program.to_string_lossy(), &["study", "run", "quickstart", "--runs", &place])?;
    sitting.add("the whole job", started.elapsed().as_secs_f64(), "s", Target::AtMost(240.0));
    let newest = std::fs::read_dir(&runs)?.filter_map(|entry| Some(entry.ok()?.path())).max();
    let run = newest.context("the run left no directory")?;
    let result: Value = serde_json::from_slice(&std::fs::read(run.join("result.json"))?)?;
    let report = std::fs::metadata(run.join("report.html"))?.len() as f64 / 1e6;
    sitting.add("report, its simulator included", report, "MB", Target::AtMost(3.0));
    let error = &result["validation"];
    let aim = Target::AtMost(number(error, &["aim"])?);
    sitting.add("E, simulated against real", number(error, &["error_ratio"])?, "ratio", aim);
    for operation in error["operations"].as_array().into_iter().flatten() {
        let floor = number(operation, &["noise_floor"])?;
        let op = operation["op"].as_str().unwrap_or("?");
        let (error, aim) = (number(operation, &["error_ratio"])?, (1.5 * floor).max(0.05));
        sitting.add(format!("E of {op}s (A/A {floor:.3})"), error, "ratio", Target::AtMost(aim));
    }
    std::fs::remove_dir_all(&runs)?;
    Ok(())
}
