//! Structure that the compiler does not check: which crate may use which, and that inner crates
//! stay pure.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

/// Crates in rings: each may use only crates that stand before it.
const ORDER: &[&str] = &[
    "units", "events", "stats", "report", "trace", "model", "sim", "probe", "capture", "dbms",
    "spill", "oltp", "study", "wearmark",
];

/// Crates that do no I/O, read no clock and start no threads.
const INNER: &[&str] = &["units", "events", "stats", "trace", "model", "sim"];

/// What an inner crate must not name outside its tests, and the only files excused: trace formats
/// read and write files by design.
const IMPURE: &[&str] = &[
    "std::net",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime",
    "std::fs",
    "println!",
];
const EXCUSED: &[&str] = &["trace/src/formats"];

/// Fails with every violation found.
pub fn check() -> anyhow::Result<()> {
    let crates = crate::root().join("crates");
    let mut found = Vec::new();
    for (position, name) in ORDER.iter().enumerate() {
        let manifest = crates.join(name).join("Cargo.toml");
        let text = fs::read_to_string(&manifest).with_context(|| manifest.display().to_string())?;
        for used in dependencies(&text) {
            if ORDER.iter().position(|other| *other == used).is_some_and(|at| at >= position) {
                found.push(format!("{name} uses {used}, which stands outside of it"));
            }
        }
    }
    for entry in fs::read_dir(&crates)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !ORDER.contains(&name.as_str()) {
            found.push(format!("crate {name} has no place in xtask/src/tidy.rs"));
        }
    }
    for name in INNER {
        pure(&crates.join(name).join("src"), &mut found)?;
    }
    let listed = fs::read_to_string(crate::root().join("docs/reference/warnings.md"))?;
    for name in ORDER {
        warnings_listed(&crates.join(name).join("src"), &listed, &mut found)?;
    }
    if !found.is_empty() {
        bail!("tidy:\n  {}", found.join("\n  "));
    }
    println!("tidy: arrows point inward, inner crates are pure, warnings are documented");
    Ok(())
}

/// Codes of `Warning::new(stage, "code", ...)` that `docs/reference/warnings.md` does not list.
fn warnings_listed(folder: &Path, listed: &str, found: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            warnings_listed(&path, listed, found)?;
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        for call in code.split("Warning::new(").skip(1) {
            let arguments = call.split(',').nth(1).unwrap_or("").trim();
            let code = arguments.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            if let Some(code) = code.filter(|code| !listed.contains(&format!("| `{code}` |"))) {
                found.push(format!("{}: warning '{code}' is not documented", path.display()));
            }
        }
    }
    Ok(())
}

/// Names in `[dependencies]` of a manifest.
fn dependencies(manifest: &str) -> Vec<&str> {
    let section = manifest.split("[dependencies]").nth(1).unwrap_or("");
    let section = section.split("\n[").next().unwrap_or("");
    section.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).collect()
}

/// Lines of the sources below `folder`, tests excluded, that name something impure.
fn pure(folder: &Path, found: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let shown = path.display().to_string();
        let is_test = path.file_name().is_some_and(|name| name == "tests.rs");
        if is_test || EXCUSED.iter().any(|excused| shown.contains(excused)) {
            continue;
        }
        if path.is_dir() {
            pure(&path, found)?;
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        for (index, line) in code.lines().enumerate() {
            let statement = line.trim_start();
            if !statement.starts_with("//") && IMPURE.iter().any(|word| line.contains(word)) {
                found.push(format!("{shown}:{}: not pure: {statement}", index + 1));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::dependencies;

    #[test]
    fn dependencies_end_where_the_next_section_starts() {
        let manifest = "[package]\nname = 'x'\n\n[dependencies]\nunits.workspace = true\n\
                        serde = '1'\n\n[dev-dependencies]\nsim.workspace = true\n";
        let names: Vec<_> = dependencies(manifest).into_iter().filter(|n| !n.is_empty()).collect();
        assert_eq!(names, ["units", "serde"]);
    }
}
