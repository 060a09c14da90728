//! Automation: `cargo xtask test | tidy | wrap | links | book | ...`.
//!
//! `test` is the one test command; the others are its parts, or report figures.

mod bars;
mod book;
mod gallery;
mod licences;
mod lines;
mod links;
mod reference;
mod suite;
mod tidy;
mod wasm;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [CRATE...]   everything that must pass: format, tidy, licences, reference, lints, tests;
                    with names, the format, lints and tests of these crates
  tidy              structure (arrows between crates point inward, inner crates stay pure) and
                    style (no line is too long, no word that only this project knows)
  elsewhere         the inner crates compile for other systems whose targets are installed
  wrap              breaks lines of Markdown and TOML that are too long for 'tidy'
  wasm [--check]    builds the simulator that pages carry and writes it into crates/whatif; with
                    --check compares it with the one that is there
  links             links between our pages lead somewhere
  book              docs/ as a static site with search, by mdBook, in target/book
  licences          licences of all dependencies are on the list
  reference         writes docs/reference from the program itself; 'test' checks it
  gallery [NAME...] runs the shipped sweeps and writes docs/guide/gallery.md with their pictures
  bars [AREA[/PART]...]
                    measures the figures that we promise and writes docs/bars.md; never a gate
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test"] => test(),
        ["test", crates @ ..] => format().and_then(|()| suite::run(crates)),
        ["tidy"] => tidy::check(),
        ["wasm"] => wasm::build(false),
        ["wasm", "--check"] => wasm::build(true),
        ["links"] => links::check(&root()),
        ["book"] => book::build(),
        ["elsewhere"] => suite::elsewhere(&mut suite::Outcome::default()),
        ["wrap"] => lines::wrap(&root()),
        ["licences"] => licences::check(),
        ["reference"] => reference::write(),
        ["gallery", only @ ..] => gallery::make(only),
        ["bars", areas @ ..] => bars::measure(areas),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(1)
        }
    }
}

/// The workspace's root folder.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask is a folder of the workspace").to_path_buf()
}

/// Runs a command in the root and fails with its name if it fails.
fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    println!("$ {program} {}", arguments.join(" "));
    let status = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .status()
        .with_context(|| format!("cannot start {program}"))?;
    if !status.success() {
        bail!("{program} {} failed ({status})", arguments.join(" "));
    }
    Ok(())
}

/// Where cargo builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |path| root().join(path))
}

fn format() -> anyhow::Result<()> {
    run("cargo", &["fmt", "--all", "--check"])
}

fn test() -> anyhow::Result<()> {
    format()?;
    tidy::check()?;
    licences::check()?;
    links::check(&root())?;
    suite::run(&[])
}
