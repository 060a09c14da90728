//! The package's own tests: the wheel is built, installed into an empty virtual environment, and
//! pytest runs `tests/*.py` on what was installed.
//!
//! Needs a Python from 3.11 on with venv, pip, pytest and maturin (`WEARMARK_PYTHON` names another
//! than `python3`); skips otherwise. What pytest skips is told as a skip of ours.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What a Python must have; prints the first thing that is missing.
const LOOK: &str = "
import importlib.util, sys
if sys.version_info < (3, 11):
    sys.exit('Python from 3.11 on')
for name in ('venv', 'pip', 'pytest', 'maturin'):
    if importlib.util.find_spec(name) is None:
        sys.exit(name)
";

fn python() -> String {
    std::env::var("WEARMARK_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// What is missing for these tests.
fn missing() -> Option<String> {
    let Ok(output) = Command::new(python()).args(["-c", LOOK]).output() else {
        return Some(python());
    };
    let told = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    (!output.status.success()).then_some(told)
}

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[track_caller]
fn run(command: &mut Command) -> Output {
    let output = command.output().expect("the program starts");
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// The wheel of this workspace, built without optimisation that the tests do not need.
fn wheel(out: &Path) -> PathBuf {
    run(Command::new(python())
        .args(["-m", "maturin", "build", "--quiet", "--profile", "dev", "--locked"])
        .args(["--compatibility", "linux", "--interpreter", &python(), "--out"])
        .arg(out)
        .current_dir(here()));
    let mut found = std::fs::read_dir(out).expect("maturin made it");
    found.next().expect("there is a wheel").expect("it can be listed").path()
}

#[test]
fn the_installed_package_passes_its_own_tests() {
    if let Some(what) = missing() {
        println!("skipped: no Python with venv, pip, pytest and maturin: {what} is missing");
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let wheel = wheel(&dir.path().join("wheels"));
    let venv = dir.path().join("venv");
    run(Command::new(python()).args(["-m", "venv", "--without-pip"]).arg(&venv));
    let own = venv.join("bin/python");
    run(Command::new(python())
        .args(["-m", "pip", "--quiet", "--python"])
        .arg(&own)
        .args(["install", "--no-index", "--no-deps"])
        .arg(&wheel));
    // The empty environment has no pytest: it runs from the outer one, on what was installed.
    let place = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let place = run(Command::new(&own).args(["-c", place])).stdout;
    let output = Command::new(python())
        .args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "tests"])
        .env("PYTHONPATH", String::from_utf8_lossy(&place).trim())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("WEARMARK_VENV", &venv)
        .current_dir(here())
        .output()
        .expect("pytest starts");
    let text = String::from_utf8_lossy(&output.stdout);
    for line in text.lines().filter(|line| line.starts_with("SKIPPED ")) {
        let reason = line.splitn(3, ':').nth(2).unwrap_or(line);
        println!("skipped: {} (in pytest)", reason.trim());
    }
    println!("{text}");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
}
