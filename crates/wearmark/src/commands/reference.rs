//! Completions, man pages and the Markdown reference, all made from the command tree.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use clap::{Command, CommandFactory};

use super::{Outcome, output};
use crate::cli::Cli;

/// `wearmark completions`
pub fn completions(shell: clap_complete::Shell) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "wearmark", &mut script);
    output::print(&String::from_utf8(script)?)?;
    Ok(Outcome::Fine)
}

/// `wearmark man`
pub fn man(directory: &Path) -> anyhow::Result<Outcome> {
    let place = || directory.display().to_string();
    fs::create_dir_all(directory).with_context(place)?;
    clap_mangen::generate_to(Cli::command(), directory).with_context(place)?;
    let count = fs::read_dir(directory).with_context(place)?.count();
    output::print(&format!("{count} man pages in {}\n", directory.display()))?;
    Ok(Outcome::Fine)
}

/// `wearmark reference`
pub fn markdown() -> anyhow::Result<Outcome> {
    let mut page = String::from(
        "# Commands\n\nPrinted by the program itself (`cargo xtask reference`); do not edit.\n",
    );
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    section(&mut page, &mut root, "");
    output::print(&page)?;
    Ok(Outcome::Fine)
}

fn section(page: &mut String, command: &mut Command, parent: &str) {
    let name = format!("{parent}{}", command.get_name());
    // A fixed width, so that the page does not depend on the terminal it was made in.
    let help = command.clone().term_width(100).render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    page.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", help.join("\n").trim_end()));
    for inner in command.get_subcommands_mut().filter(|inner| !inner.is_hide_set()) {
        section(page, inner, &format!("{name} "));
    }
}
