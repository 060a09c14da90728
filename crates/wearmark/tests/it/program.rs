//! Starts the program and looks at what it prints.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What a run of the program gave.
#[derive(Debug)]
pub struct Ran {
    /// Exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// The program with `arguments`, in `directory`.
pub fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wearmark"));
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).env("NO_COLOR", "1");
    command
}

/// Runs the program to its end.
pub fn run(directory: &Path, arguments: &[&str]) -> Ran {
    finish(command(directory, arguments).spawn().expect("the binary was built with the tests"))
}

/// Waits for a started program.
pub fn finish(child: Child) -> Ran {
    let output = child.wait_with_output().expect("the child is ours");
    Ran {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs a command that must succeed and returns its output.
pub fn fine(directory: &Path, arguments: &[&str]) -> String {
    let ran = run(directory, arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}\n{}\n{}", ran.out, ran.err);
    ran.out
}

/// Runs a command that must be refused: exit code 2, nothing on standard output, one `error:` line
/// that contains `cause`, then a `hint:` line.
pub fn refused(directory: &Path, arguments: &[&str], cause: &str) {
    let ran = run(directory, arguments);
    let shown = format!("{arguments:?}\n{}\n{}", ran.out, ran.err);
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{shown}");
    let errors: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("error:")).collect();
    assert!(errors.len() == 1 && errors[0].contains(cause), "wanted '{cause}' in\n{shown}");
    assert!(
        ran.err.lines().any(|line| line.trim_start().starts_with("hint:")),
        "no hint:\n{shown}"
    );
}

/// Names in a directory, sorted.
pub fn listing(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the directory is the test's own");
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A temporary directory on the disk that the build is on: /tmp may be memory, which has no device
/// to measure. Any user may enter it: a database server runs as one of its own.
pub fn place() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .expect("the target folder is writable")
}
