//! Transactions on SQLite and what watching them costs.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use super::tools::{example, figure, folder, median, number, output, program};
use super::{Sitting, Target};

/// Runs of the load with and without capture, in turn.
const CAPTURE_PAIRS: usize = 5;

pub fn measure(sitting: &mut Sitting) -> anyhow::Result<()> {
    let (program, folder) = (program()?, folder("oltp")?);
    let place = folder.to_string_lossy().into_owned();
    let loaded = output(&example("oltp", "load_speed")?, &["10", &place])?;
    let database = folder.join("order_entry.db");
    let checked = output(&example("oltp", "check")?, &[&database.to_string_lossy()])?;
    let seconds = checked.lines().last().context("check prints its time")?;
    let mut lost = (Vec::new(), Vec::new());
    let mut shares = Vec::new();
    for _ in 0..CAPTURE_PAIRS {
        let database = order_entry(&program, &place, &["--no-physical"])?;
        let without = order_entry(&program, &place, &["--no-capture"])?;
        let block_layer = order_entry(&program, &place, &[])?;
        let rate = |run: &Value| number(run, &["transactions_per_s"]);
        lost.0.push(1.0 - rate(&database)? / rate(&without)?);
        lost.1.push(1.0 - rate(&block_layer)? / rate(&without)?);
        shares.push(number(&database, &["client_overhead", "share"])?);
    }
    std::fs::remove_dir_all(&folder)?;
    let rate = figure(&loaded, "W/min", "W/min")?;
    sitting.add("loading 10 W, one core", rate, "W/min", Target::AtLeast(10.0));
    let check_s: f64 = seconds.trim_end_matches(" s").parse()?;
    sitting.add("conditions at 10 W", check_s, "s", Target::AtMost(15.0));
    sitting.add("client share of CPU", median(shares), "share", Target::AtMost(0.15));
    sitting.add("lost to capture, database", median(lost.0), "share", Target::AtMost(0.03));
    let block_layer = median(lost.1);
    sitting.add("lost to capture, block layer too", block_layer, "share", Target::AtMost(0.03));
    Ok(())
}

/// One run of the load on a database that exists, with 20 users.
fn order_entry(program: &Path, place: &str, more: &[&str]) -> anyhow::Result<Value> {
    let mut arguments = vec![
        "oltp",
        "run",
        place,
        "--warehouses",
        "10",
        "--warmup",
        "2s",
        "--duration",
        "10s",
        "--json",
        "--quiet",
    ];
    arguments.extend(more);
    let output = Command::new(program)
        .args(&arguments)
        .output()
        .with_context(|| program.display().to_string())?;
    // A missed response-time bound is a finding (exit code 1), not a failure to measure.
    serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())
}
