//! The test programs of the workspace: built and linted in one pass, run one after the other, with
//! every skip and every second attempt named at the end.
//!
//! libtest hides what a passing test prints, so a test that skipped would look like one that
//! passed. The programs run with `--show-output`; lines that start with `skipped: ` are collected.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;

/// A test program that has not ended by then hangs.
const PROGRAM_LIMIT: Duration = Duration::from_mins(20);

/// One test program.
struct Program {
    /// Package and target, as people call it: `sim`, `sim/it`.
    name: String,
    package: String,
    executable: PathBuf,
    /// Where cargo would start it.
    folder: PathBuf,
}

/// What the tests said.
#[derive(Default)]
pub struct Outcome {
    passed: u64,
    /// `program: test`, with what it printed.
    failed: Vec<(String, String)>,
    /// Tests that failed beside others and passed alone.
    second_attempts: Vec<String>,
    /// `program: test` by reason.
    skipped: BTreeMap<String, Vec<String>>,
}

/// Builds, lints and runs the tests of `crates`, or of the whole workspace with the reference.
pub fn run(crates: &[&str]) -> anyhow::Result<()> {
    let programs = build(crates)?;
    if crates.is_empty() {
        // The program that the tests start: cargo would build another, for its own features.
        crate::reference::check(&crate::target().join("debug/wearmark"))?;
    }
    let mut outcome = Outcome::default();
    for program in &programs {
        run_program(program, &mut outcome)?;
    }
    for example in &examples(crates)? {
        run_example(example, &mut outcome)?;
    }
    documentation(crates, &mut outcome)?;
    if crates.is_empty() {
        pages(&mut outcome)?;
        elsewhere(&mut outcome)?;
    }
    report(&outcome)
}

/// Flags of cargo that choose `crates`.
fn chosen(crates: &[&str]) -> Vec<String> {
    match crates {
        [] => vec!["--workspace".into()],
        some => some.iter().flat_map(|name| ["--package".into(), (*name).to_owned()]).collect(),
    }
}

/// Builds every target with clippy as the compiler: a lint fails the build, and nothing is
/// compiled twice.
fn build(crates: &[&str]) -> anyhow::Result<Vec<Program>> {
    built(&["test", "--no-run", "--all-targets"], crates, program)
}

/// Builds the examples as programs: among all targets they are built as tests only.
fn examples(crates: &[&str]) -> anyhow::Result<Vec<Program>> {
    built(&["build", "--examples"], crates, example)
}

/// What `cargo` builds with clippy as the compiler, and `of` takes.
fn built(
    arguments: &[&str],
    crates: &[&str],
    of: fn(&str) -> Option<Program>,
) -> anyhow::Result<Vec<Program>> {
    let mut command = Command::new("cargo");
    command.args(arguments).arg("--locked").args(chosen(crates));
    command.arg("--message-format=json-render-diagnostics").current_dir(crate::root());
    lint(&mut command);
    println!("$ cargo {}, with clippy as the compiler", arguments.join(" "));
    let output = command.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the build failed ({}); what is wrong is printed above", output.status);
    }
    let text = String::from_utf8(output.stdout)?;
    let mut programs: Vec<Program> = text.lines().filter_map(of).collect();
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(programs)
}

/// Makes cargo compile the workspace's own crates with clippy, warnings as errors.
fn lint(command: &mut Command) {
    let driver = Command::new("rustup").args(["which", "clippy-driver"]).output();
    let driver = driver.ok().filter(|output| output.status.success());
    let driver = driver.and_then(|output| String::from_utf8(output.stdout).ok());
    let driver = driver.map_or_else(|| "clippy-driver".to_owned(), |path| path.trim().to_owned());
    command.env("RUSTC_WORKSPACE_WRAPPER", driver);
    // clippy-driver's own separator, as `cargo clippy -- -D warnings` sets it.
    command.env("CLIPPY_ARGS", "-Dwarnings__CLIPPY_HACKERY__");
}

/// The test program that a line of cargo's messages announces.
fn program(line: &str) -> Option<Program> {
    let built = Built::parse(line)?;
    (built.is_test && built.kind != "bench" && built.kind != "example").then_some(built.program)
}

/// The example of a library that a line of cargo's messages announces. Those of edge crates measure
/// something, and want to be told what.
fn example(line: &str) -> Option<Program> {
    let built = Built::parse(line)?;
    let is_library = EXAMPLES.contains(&built.program.package.as_str());
    (!built.is_test && built.kind == "example" && is_library).then_some(built.program)
}

/// Crates whose examples need no argument, take seconds and check what they compute.
const EXAMPLES: &[&str] = &["formats", "model", "report", "sim"];

/// An executable that cargo built.
struct Built {
    program: Program,
    kind: String,
    is_test: bool,
}

impl Built {
    fn parse(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        if message["reason"] != "compiler-artifact" {
            return None;
        }
        let executable = PathBuf::from(message["executable"].as_str()?);
        let kind = message["target"]["kind"][0].as_str()?.to_owned();
        let is_test = message["profile"]["test"].as_bool()?;
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
        let package = folder.file_name()?.to_str()?.to_owned();
        let target = message["target"]["name"].as_str()?;
        let name = match kind.as_str() {
            "test" | "example" => format!("{package}/{target}"),
            _ => package.clone(),
        };
        Some(Self { program: Program { name, package, executable, folder }, kind, is_test })
    }
}

/// Runs an example, which checks itself and ends with an error where it finds something wrong.
fn run_example(example: &Program, outcome: &mut Outcome) -> anyhow::Result<()> {
    let began = Instant::now();
    let (text, ended) = output(example, &[])?;
    let said = if ended { "ended well" } else { "FAILED" };
    println!("{:<32} {said} {:>7.1} s", example.name, began.elapsed().as_secs_f64());
    if ended {
        outcome.passed += 1;
    } else {
        outcome.failed.push((format!("example {}", example.name), text));
    }
    Ok(())
}

/// Runs a program; tests that fail are run once more, alone.
fn run_program(program: &Program, outcome: &mut Outcome) -> anyhow::Result<()> {
    let began = Instant::now();
    let (text, ended) = output(program, &["--show-output"])?;
    let said = Said::parse(&text);
    outcome.passed += said.passed;
    println!(
        "{:<20} {:>5} passed {:>3} failed {:>7.1} s",
        program.name,
        said.passed,
        said.failed.len(),
        began.elapsed().as_secs_f64()
    );
    for (reason, test) in said.skipped {
        outcome.skipped.entry(reason).or_default().push(format!("{}: {test}", program.name));
    }
    if !ended && said.failed.is_empty() {
        let last: Vec<&str> = text.lines().rev().take(30).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        outcome.failed.push((format!("{}: did not end well", program.name), last.join("\n")));
    }
    for test in said.failed {
        let shown = format!("{}: {test}", program.name);
        println!("  {test} failed; once more, alone");
        let (again, ended) = output(program, &["--exact", &test, "--show-output"])?;
        if ended && Said::parse(&again).passed == 1 {
            outcome.passed += 1;
            println!("{}", section(&text, &test));
            outcome.second_attempts.push(shown);
        } else {
            let both = format!("{}\n-- alone:\n{}", section(&text, &test), section(&again, &test));
            outcome.failed.push((shown, both));
        }
    }
    Ok(())
}

/// What a program prints, and whether it ended with success.
fn output(program: &Program, arguments: &[&str]) -> anyhow::Result<(String, bool)> {
    let path = std::env::temp_dir().join(format!("wearmark-tests-{}.log", std::process::id()));
    let file = File::create(&path).with_context(|| path.display().to_string())?;
    let mut child = Command::new(&program.executable)
        .args(arguments)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("CARGO_PKG_NAME", &program.package)
        .stdin(Stdio::null())
        .stderr(file.try_clone()?)
        .stdout(file)
        .spawn()
        .with_context(|| program.executable.display().to_string())?;
    let ended = wait(&mut child)?;
    let bytes = std::fs::read(&path)?;
    std::fs::remove_file(&path)?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), ended))
}

/// Waits for a test program, and ends it when it hangs.
fn wait(child: &mut Child) -> anyhow::Result<bool> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if began.elapsed() > PROGRAM_LIMIT {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Examples in documentation, in one call of cargo for all crates.
fn documentation(crates: &[&str], outcome: &mut Outcome) -> anyhow::Result<()> {
    let mut command = Command::new("cargo");
    command.args(["test", "--doc", "--locked"]).args(chosen(crates)).current_dir(crate::root());
    lint(&mut command);
    println!("$ cargo test --doc");
    let output = command.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let said = Said::parse(&text);
    outcome.passed += said.passed;
    if !output.status.success() {
        outcome.failed.push(("examples in documentation".into(), text.into_owned()));
    }
    Ok(())
}

/// The pages that `cargo doc` makes, warnings as errors.
fn pages(outcome: &mut Outcome) -> anyhow::Result<()> {
    println!("$ cargo doc, warnings as errors");
    let mut command = Command::new("cargo");
    command.args(["doc", "--workspace", "--no-deps", "--locked", "--quiet"]);
    command.env("RUSTDOCFLAGS", "-Dwarnings").current_dir(crate::root());
    let output = command.output().context("cannot start cargo")?;
    if output.status.success() {
        outcome.passed += 1;
    } else {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        outcome.failed.push(("cargo doc".into(), text));
    }
    Ok(())
}

/// Systems that inner crates must compile for, besides this one.
const ELSEWHERE: &[&str] =
    &["wasm32-unknown-unknown", "x86_64-apple-darwin", "x86_64-pc-windows-msvc"];

/// Checks the inner crates for the systems whose targets are installed.
pub fn elsewhere(outcome: &mut Outcome) -> anyhow::Result<()> {
    let installed = Command::new("rustup").args(["target", "list", "--installed"]).output();
    let installed = installed.map_or_else(|_| Vec::new(), |output| output.stdout);
    let installed = String::from_utf8(installed)?;
    for target in ELSEWHERE {
        if !installed.lines().any(|line| line == *target) {
            println!("skipped: the target {target} is not installed");
            let reason = format!("the target {target} is not installed");
            outcome.skipped.entry(reason).or_default().push("inner crates elsewhere".into());
            continue;
        }
        let mut command = Command::new("cargo");
        command.args(["check", "--locked", "--quiet", "--target", target]);
        command.args(chosen(crate::tidy::INNER)).current_dir(crate::root());
        println!("$ cargo check --target {target}, inner crates");
        let output = command.output().context("cannot start cargo")?;
        if output.status.success() {
            outcome.passed += 1;
        } else {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            bail!("the inner crates do not compile for {target}:\n{text}");
        }
    }
    Ok(())
}

/// What libtest printed.
#[derive(Default, Debug, PartialEq)]
struct Said {
    passed: u64,
    failed: Vec<String>,
    /// Reason and test.
    skipped: Vec<(String, String)>,
}

impl Said {
    fn parse(text: &str) -> Self {
        let mut said = Self::default();
        let mut test = "";
        for line in text.lines() {
            if let Some(name) = heading(line) {
                test = name;
            } else if let Some(reason) = line.strip_prefix("skipped: ") {
                let skip = (reason.to_owned(), test.to_owned());
                if !said.skipped.contains(&skip) {
                    said.skipped.push(skip);
                }
            } else if let Some(result) = line.strip_prefix("test result: ") {
                let words: Vec<&str> = result.split_whitespace().collect();
                let count = words.iter().position(|word| word.starts_with("passed"));
                let count = count.and_then(|at| words[at - 1].parse::<u64>().ok());
                said.passed += count.unwrap_or(0);
            } else if let Some(name) = line.strip_prefix("test ")
                && let Some(name) = name.strip_suffix(" ... FAILED")
            {
                said.failed.push(name.to_owned());
            }
        }
        said
    }
}

/// The test whose output begins after this line.
fn heading(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// What one test printed.
fn section(text: &str, test: &str) -> String {
    let from = text.lines().skip_while(|line| heading(line) != Some(test));
    let lines = from.take_while(|line| heading(line).is_none_or(|name| name == test));
    lines.collect::<Vec<_>>().join("\n")
}

/// Variables that ask for more than the usual set: a skip that names one was chosen by the user.
const CHOSEN: &[&str] = &["SLOW=1", "SOAK_REQUESTS", "WEARMARK_SHARED"];

/// Prints the sums; fails if a test did, or if a skip is one that `WEARMARK_REQUIRE` forbids.
fn report(outcome: &Outcome) -> anyhow::Result<()> {
    for (test, text) in &outcome.failed {
        println!("\n==== {test}\n{text}");
    }
    let skips: usize = outcome.skipped.values().map(Vec::len).sum();
    println!("\n{} passed, {} failed, {skips} skipped", outcome.passed, outcome.failed.len());
    for (reason, tests) in &outcome.skipped {
        println!("  skipped: {reason}");
        for test in tests {
            println!("    {test}");
        }
    }
    for test in &outcome.second_attempts {
        println!("  passed only alone, at the second attempt: {test}");
    }
    let required = std::env::var("WEARMARK_REQUIRE").unwrap_or_default();
    let forbidden = forbidden(&required, outcome.skipped.keys());
    for (test, _) in &outcome.failed {
        println!("  failed: {test}");
    }
    if !forbidden.is_empty() {
        bail!(
            "WEARMARK_REQUIRE={required} forbids to skip because: {}\nhint: install what is \
             missing, or leave the word out of WEARMARK_REQUIRE",
            forbidden.join("; ")
        );
    }
    if !outcome.failed.is_empty() {
        bail!("{} tests failed", outcome.failed.len());
    }
    Ok(())
}

/// Reasons that contain a word of `required` (`all`: every reason that the user did not choose).
fn forbidden<'a>(required: &str, reasons: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let words: Vec<String> = required
        .split(',')
        .map(|word| word.trim().to_lowercase())
        .filter(|word| !word.is_empty())
        .collect();
    let by_choice = |reason: &str| CHOSEN.iter().any(|name| reason.contains(name));
    reasons
        .map(String::as_str)
        .filter(|reason| !by_choice(reason))
        .filter(|reason| {
            let reason = reason.to_lowercase();
            words.iter().any(|word| word == "all" || reason.contains(word))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Said, example, forbidden, program, section};

    const TEXT: &str = "\
running 3 tests
test a::first ... ok
test a::second ... FAILED
test third ... ok

successes:

---- third stdout ----
skipped: there is no fio
skipped: there is no fio
more

failures:

---- a::second stdout ----
thread 'a::second' panicked at x.rs:1:1

failures:
    a::second

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn results_and_skips_are_read_from_what_libtest_prints() {
        let said = Said::parse(TEXT);
        assert_eq!((said.passed, said.failed), (2, vec!["a::second".to_owned()]));
        assert_eq!(said.skipped, [("there is no fio".to_owned(), "third".to_owned())]);
        assert!(section(TEXT, "a::second").contains("panicked at x.rs"));
        assert!(!section(TEXT, "a::second").contains("more"));
    }

    #[test]
    fn a_required_word_forbids_its_skips_but_not_those_that_were_chosen() {
        let reasons = ["there is no fio".to_owned(), "a soak; SLOW=1 runs it".to_owned()];
        assert_eq!(forbidden("node,Fio", reasons.iter()), ["there is no fio"]);
        assert_eq!(forbidden("all", reasons.iter()), ["there is no fio"]);
        assert_eq!(forbidden("", reasons.iter()), [""; 0]);
        assert_eq!(forbidden("node", reasons.iter()), [""; 0]);
    }

    #[test]
    fn programs_are_named_after_their_package_and_target() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/x/crates/sim/Cargo.toml",
            "target":{"kind":["test"],"name":"it"},"profile":{"test":true},
            "executable":"/x/it-1"}"#;
        let found = program(&line.replace('\n', "")).unwrap();
        assert_eq!((found.name.as_str(), found.package.as_str()), ("sim/it", "sim"));
        assert!(program(&line.replace("\"test\":true", "\"test\":false")).is_none());
        assert!(example(&line.replace('\n', "")).is_none());
        let line = line.replace("\"test\":true", "\"test\":false").replace('\n', "");
        let line = line.replace("[\"test\"]", "[\"example\"]");
        assert_eq!(example(&line).expect("of a library").name, "sim/it");
        assert!(program(&line).is_none());
        assert!(example(&line.replace("crates/sim", "crates/probe")).is_none());
    }
}
