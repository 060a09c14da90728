//! The program's build and its test command, in processor time: a shared machine says little else.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::bail;

use super::tools::{children_cpu_s, folder};
use super::{Sitting, Target};

/// Wall and processor time of a cargo command in a target folder of its own, s.
fn cargo(target: &Path, arguments: &[&str]) -> anyhow::Result<(f64, f64)> {
    let (started, before) = (Instant::now(), children_cpu_s()?);
    let status = Command::new("cargo")
        .args(arguments)
        .current_dir(crate::root())
        .env("CARGO_TARGET_DIR", target)
        .status()?;
    if !status.success() {
        bail!("cargo {}: {status}", arguments.join(" "));
    }
    Ok((started.elapsed().as_secs_f64(), children_cpu_s()? - before))
}

/// A release build from nothing, and again after one file of the flash models has changed.
pub fn build(sitting: &mut Sitting) -> anyhow::Result<()> {
    let target = folder("build")?;
    let release = ["build", "--release", "--locked", "--quiet"];
    let (wall, cpu) = cargo(&target, &release)?;
    sitting.add("release build from nothing", wall, "s", Target::AtMost(180.0));
    sitting.add("release build from nothing, processors", cpu, "CPU s", Target::AtMost(400.0));
    let file = crate::root().join("crates/model/src/flash/mod.rs");
    std::fs::File::options().append(true).open(file)?.set_modified(std::time::SystemTime::now())?;
    let (wall, cpu) = cargo(&target, &release)?;
    sitting.add("again after a change of a flash model", wall, "s", Target::AtMost(60.0));
    sitting.add("the same, processors", cpu, "CPU s", Target::Beside);
    std::fs::remove_dir_all(&target)?;
    Ok(())
}

/// The test command from nothing.
pub fn tests(sitting: &mut Sitting) -> anyhow::Result<()> {
    let target = folder("tests")?;
    let (wall, cpu) = cargo(&target, &["xtask", "test"])?;
    sitting.add("the test command from nothing", wall / 60.0, "min", Target::Beside);
    let what = "the test command from nothing, processors";
    sitting.add(what, cpu / 60.0, "CPU min", Target::AtMost(15.0));
    std::fs::remove_dir_all(&target)?;
    Ok(())
}
