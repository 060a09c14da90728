//! What the check of consistency finds, and what servers keep through losses of power.
//!
//! Ten cycles per server and kind of loss; 500 with `SLOW=1`, which is a night. Here nothing is
//! timed, so the development build runs.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use super::tools::{development, figure, folder, number, output};
use super::{Sitting, Target};

/// Cycles of each torture.
const CYCLES: u32 = 10;

/// With `SLOW=1`.
const NIGHT: u32 = 500;

const SERVERS: [&str; 2] = ["postgresql", "mariadb"];

pub fn measure(sitting: &mut Sitting) -> anyhow::Result<()> {
    let folder = folder("torture")?;
    if sitting.wants("planted") {
        planted(sitting, &folder)?;
    }
    let program = development("wearmark", None)?;
    let slow = std::env::var_os("SLOW").is_some_and(|slow| slow == "1");
    let cycles = if slow { NIGHT } else { CYCLES }.to_string();
    for server in SERVERS {
        for loss in ["process", "unsynced", "torn"] {
            let name = format!("{server}, {loss}");
            if sitting.wants(&name) {
                let arguments = ["-n", cycles.as_str(), "--loss", loss];
                durable(sitting, &name, &torture(&program, &folder, server, &arguments)?)?;
            }
        }
        for (what, arguments) in
            [("lying disk", &["--lying-disk"][..]), ("durability off", &["--durability", "off"])]
        {
            let name = format!("{server}, {what}");
            if sitting.wants(&name) {
                let mut all = vec!["-n", cycles.as_str(), "--workload", "commit"];
                all.extend(arguments);
                let result = torture(&program, &folder, server, &all)?;
                let caught = !is_sound(&result)?;
                let caught = f64::from(u8::from(caught));
                sitting.add(format!("{name}: caught"), caught, "", Target::AtLeast(1.0));
            }
        }
    }
    Ok(std::fs::remove_dir_all(&folder)?)
}

/// Defects planted and found by name.
fn planted(sitting: &mut Sitting, folder: &Path) -> anyhow::Result<()> {
    let place = folder.join("planted");
    let mut arguments = vec![place.to_str().context("a path of text")?, "sqlite"];
    arguments.extend(SERVERS);
    let printed = output(&development("planted", Some("oltp"))?, &arguments)?;
    for dbms in ["sqlite"].into_iter().chain(SERVERS) {
        let mut lines = printed.lines().filter(|line| line.starts_with(&format!("{dbms}: ")));
        let summary = lines.next_back().with_context(|| format!("no figures of {dbms}"))?;
        let found = figure(summary, dbms, " of ")?;
        let planted = figure(summary, dbms, " defects")?;
        let name = format!("planted defects found, {dbms}");
        sitting.add(name, found, "", Target::Within(planted, planted));
    }
    Ok(())
}

/// A torture of order entry, unless the arguments say otherwise, with small buffer and log so that
/// checkpoints fall within the cycles.
fn torture(
    program: &Path,
    folder: &Path,
    server: &str,
    arguments: &[&str],
) -> anyhow::Result<Value> {
    let place = folder.join(server);
    let place = place.to_str().context("a path of text")?;
    let mut all = vec!["oltp", "torture", place, "--dbms", server, "--access", "pipelined"];
    all.extend(["--buffer", "16MiB", "--log-size", "32MiB", "--json", "--quiet"]);
    all.extend(arguments);
    let ran = std::process::Command::new(program).args(&all).output()?;
    serde_json::from_slice(&ran.stdout)
        .with_context(|| String::from_utf8_lossy(&ran.stderr).trim().to_owned())
}

/// Violated conditions of a torture, those of its cycles included, and damage.
fn wrong(result: &Value) -> anyhow::Result<f64> {
    let cycles = result["cycles"].as_array().context("cycles")?;
    let inside: f64 =
        cycles.iter().map(|cycle| number(cycle, &["inconsistent"])).sum::<anyhow::Result<f64>>()?;
    let conditions = result["conditions"].as_array().context("conditions")?;
    let violated = conditions.iter().filter(|condition| condition["holds"] != true).count();
    let damaged = f64::from(u8::from(!result["damage"].is_null()));
    Ok(inside + violated as f64 + damaged + number(result, &["unasked"])?)
}

fn is_sound(result: &Value) -> anyhow::Result<bool> {
    Ok(number(result, &["lost"])? == 0.0 && wrong(result)? == 0.0)
}

fn durable(sitting: &mut Sitting, name: &str, result: &Value) -> anyhow::Result<()> {
    let cycles = result["cycles"].as_array().context("cycles")?.len();
    let acknowledged = number(result, &["acknowledged"])?;
    sitting.add(format!("{name}: acknowledged"), acknowledged, "", Target::Beside);
    let asked = number(result, &["options", "cycles"])?;
    sitting.add(format!("{name}: cycles"), cycles as f64, "", Target::AtLeast(asked));
    let lost = number(result, &["lost"])?;
    sitting.add(format!("{name}: lost"), lost, "", Target::AtMost(0.0));
    sitting.add(format!("{name}: violations, damage"), wrong(result)?, "", Target::AtMost(0.0));
    Ok(())
}
