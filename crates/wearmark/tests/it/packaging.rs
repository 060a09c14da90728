//! What a release offers, made by the script that the release job calls, from the binary of these
//! tests: installed into a directory of its own and run there.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Runs a command that must succeed; gives what it prints.
fn done(command: &mut Command) -> String {
    let output = command.output().expect("the program is there");
    let shown = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{shown}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn build(output: &Path) {
    let mut command = Command::new(root().join("packaging/build"));
    command.args(["--binary", env!("CARGO_BIN_EXE_wearmark"), "--output"]).arg(output);
    done(command.env("SOURCE_DATE_EPOCH", "1700000000"));
}

fn only(folder: &Path, end: &str) -> PathBuf {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.to_str().is_some_and(|path| path.ends_with(end))).collect();
    assert_eq!(found.len(), 1, "*{end}: {found:?}");
    found.pop().expect("one")
}

#[test]
fn the_package_installs_a_command_that_runs_with_its_completions_and_manual() {
    if !is_there("dpkg-deb") {
        println!("skipped: there is no dpkg-deb");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (dist, installed) = (dir.path().join("dist"), dir.path().join("installed"));
    build(&dist);
    done(Command::new("sha256sum").arg("-c").arg("SHA256SUMS-amd64").current_dir(&dist));

    let package = only(&dist, ".deb");
    let control = done(Command::new("dpkg-deb").arg("--info").arg(&package));
    let version = env!("CARGO_PKG_VERSION");
    assert!(control.contains(&format!(" Version: {version}\n")), "{control}");
    assert!(!control.contains("@VERSION@") && !control.contains("@DEPENDS@"), "{control}");
    done(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&installed));
    let program = installed.join("usr/bin/wearmark");
    let said = done(Command::new(&program).arg("--version").env_clear());
    assert_eq!(said, format!("wearmark {version}\n"));
    let traced = done(
        Command::new(&program)
            .args(["trace", "generate", "random", "-n", "1000", "-o", "made.parquet", "--json"])
            .current_dir(dir.path())
            .env_clear(),
    );
    assert!(traced.contains("1000"), "{traced}");
    for file in [
        "usr/share/bash-completion/completions/wearmark",
        "usr/share/zsh/vendor-completions/_wearmark",
        "usr/share/fish/vendor_completions.d/wearmark.fish",
        "usr/share/man/man1/wearmark.1.gz",
        "usr/share/man/man1/wearmark-study-run.1.gz",
        "usr/share/doc/wearmark/copyright",
    ] {
        let length = std::fs::metadata(installed.join(file)).expect(file).len();
        assert!(length > 100, "{file} has {length} bytes");
    }

    // The archive for machines without dpkg, and the same bytes from the same source.
    let archive = only(&dist, ".tar.gz");
    done(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(dir.path()));
    let folder = archive.file_name().unwrap().to_str().unwrap().trim_end_matches(".tar.gz");
    let unpacked = dir.path().join(folder).join("wearmark");
    assert_eq!(std::fs::read(&unpacked).unwrap(), std::fs::read(&program).unwrap());
    let again = dir.path().join("again");
    build(&again);
    for made in [&package, &archive] {
        let same = again.join(made.file_name().unwrap());
        assert_eq!(std::fs::read(made).unwrap(), std::fs::read(same).unwrap(), "{made:?}");
    }
}

#[test]
fn a_build_that_cannot_be_says_what_to_install() {
    if !is_there("dpkg-deb") {
        println!("skipped: there is no dpkg-deb");
        return;
    }
    for (arguments, cause, hint) in [
        (["--target", "mips-unknown-linux-musl"], "no Debian architecture", "packaging/build"),
        (["--target", "aarch64-unknown-linux-none"], "is not installed", "rustup target add"),
        (["--colour", "blue"], "unknown option", "packaging/build [--target"),
    ] {
        let output =
            Command::new(root().join("packaging/build")).args(arguments).output().expect("bash");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        let mut lines = said.lines();
        let error = lines.next().unwrap_or("");
        assert!(error.starts_with("error: ") && error.contains(cause), "{said}");
        assert!(lines.next().unwrap_or("").starts_with("hint: ") && said.contains(hint), "{said}");
    }
}

#[test]
fn the_image_runs_the_quick_study() {
    let daemon = Command::new("docker").arg("info").output();
    if !daemon.is_ok_and(|output| output.status.success()) {
        println!("skipped: there is no container engine that answers");
        return;
    }
    let mut build = Command::new("docker");
    build.args(["build", "-f", "packaging/Dockerfile", "-t", "wearmark-test", "."]);
    done(build.current_dir(root()));
    let mut run = Command::new("docker");
    run.args(["run", "--rm", "wearmark-test", "study", "run", "quickstart", "--dry-run"]);
    assert!(done(&mut run).contains("Nothing was done"));
}
