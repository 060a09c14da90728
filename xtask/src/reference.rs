//! `docs/reference/cli.md`, printed by the program itself, so that help and reference never differ.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// Writes the page anew.
pub fn write() -> anyhow::Result<()> {
    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--locked", "--package", "wearmark", "--", "reference"]);
    let text = printed(&mut command)?;
    let page = page();
    fs::write(&page, text).with_context(|| page.display().to_string())?;
    println!("reference: wrote docs/reference/cli.md");
    Ok(())
}

/// Fails where the page is not what `program` prints.
pub fn check(program: &Path) -> anyhow::Result<()> {
    let text = printed(Command::new(program).arg("reference"))?;
    if fs::read(page()).unwrap_or_default() != text {
        bail!("docs/reference/cli.md is out of date: run 'cargo xtask reference'");
    }
    println!("reference: up to date");
    Ok(())
}

fn page() -> PathBuf {
    crate::root().join("docs/reference/cli.md")
}

/// What the program prints as its reference.
fn printed(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let output = command.current_dir(crate::root()).output();
    let output = output.context("cannot start the program that prints the reference")?;
    if !output.status.success() {
        bail!("wearmark reference: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}
