//! The simulator of a page as a WebAssembly module, built so that its bytes do not tell where.
//!
//! The module is part of the repository: whoever builds the program needs no other target. A test
//! of `whatif` asks the module and the program the same questions; where their answers differ, the
//! module is older than the models, and this command renews it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

const TARGET: &str = "wasm32-unknown-unknown";
/// The module, compressed as pages carry it.
const ASSET: &str = "crates/whatif/assets/simulator.wasm.gz";
/// The compiler that made it: another one gives other bytes.
const MADE_BY: &str = "crates/whatif/assets/simulator.rustc";

/// Builds the module and writes it, or with `check` only compares it with the one that is there.
pub fn build(check: bool) -> anyhow::Result<()> {
    let compiler = printed("rustc", &["--version"])?;
    let root = crate::root();
    if check {
        let made_by = fs::read_to_string(root.join(MADE_BY)).context(MADE_BY)?;
        if made_by.trim() != compiler {
            bail!("the module was made by {}, here is {compiler}", made_by.trim());
        }
    }
    let module = compile()?;
    let packed = compressed(&module)?;
    println!("{} bytes, {} compressed", module.len(), packed.len());
    if !check {
        fs::write(root.join(ASSET), packed)?;
        fs::write(root.join(MADE_BY), format!("{compiler}\n"))?;
    } else if fs::read(root.join(ASSET))? != packed {
        bail!("{ASSET} is not what the sources give\nhint: cargo xtask wasm renews it");
    } else {
        println!("{ASSET} is what the sources give");
    }
    Ok(())
}

fn compile() -> anyhow::Result<Vec<u8>> {
    let installed = printed("rustup", &["target", "list", "--installed"])?;
    if !installed.lines().any(|line| line == TARGET) {
        bail!("the target {TARGET} is not installed\nhint: rustup target add {TARGET}");
    }
    let mut command = Command::new("cargo");
    command.args(["rustc", "--locked", "--package", "whatif", "--lib", "--crate-type", "cdylib"]);
    command.args(["--target", TARGET, "--profile", "wasm"]).current_dir(crate::root());
    command.env("CARGO_ENCODED_RUSTFLAGS", remapped()?.join("\u{1f}"));
    if !command.status().context("cannot start cargo")?.success() {
        bail!("the module does not build; what is wrong is printed above");
    }
    let built = crate::target().join(TARGET).join("wasm/whatif.wasm");
    fs::read(&built).with_context(|| built.display().to_string())
}

/// Flags that take this machine's folders out of the messages of panics.
fn remapped() -> anyhow::Result<Vec<String>> {
    let cargo_home = match std::env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".cargo"),
    };
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let mut flags = vec![
        remap(&crate::root(), "/wearmark"),
        remap(Path::new(&printed("rustc", &["--print", "sysroot"])?), "/rust"),
    ];
    for registry in fs::read_dir(cargo_home.join("registry/src"))? {
        flags.push(remap(&registry?.path(), "/registry"));
    }
    Ok(flags)
}

/// The module under gzip, which browsers can undo themselves; without a name and a date.
fn compressed(module: &[u8]) -> anyhow::Result<Vec<u8>> {
    use std::io::Write;
    let best = flate2::Compression::best();
    let mut encoder = flate2::GzBuilder::new().mtime(0).write(Vec::new(), best);
    encoder.write_all(module)?;
    Ok(encoder.finish()?)
}

/// What a program prints, without the last line break.
fn printed(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.with_context(|| format!("cannot start {program}"))?;
    if !output.status.success() {
        bail!("{program} {} failed ({})", arguments.join(" "), output.status);
    }
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}
