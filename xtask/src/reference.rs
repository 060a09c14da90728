//! `docs/reference/cli.md`, printed by the program itself, so that help and reference never differ.

use std::fs;
use std::process::Command;

use anyhow::{Context, bail};

/// Writes the page, or with `check` fails where the stored one is out of date.
pub fn write(check: bool) -> anyhow::Result<()> {
    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--locked", "--package", "wearmark", "--", "reference"]);
    // The same compiler as the tests have, or everything would be built a second time.
    crate::suite::lint(&mut command);
    let output = command.current_dir(crate::root()).output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("wearmark reference: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let page = crate::root().join("docs/reference/cli.md");
    let stored = fs::read(&page).unwrap_or_default();
    if stored == output.stdout {
        println!("reference: up to date");
        return Ok(());
    }
    if check {
        bail!("docs/reference/cli.md is out of date: run 'cargo xtask reference'");
    }
    fs::write(&page, output.stdout).with_context(|| page.display().to_string())?;
    println!("reference: wrote docs/reference/cli.md");
    Ok(())
}
