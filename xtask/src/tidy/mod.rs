//! Structure that the compiler does not check: which crate may use which, that inner crates stay
//! pure, that the modules of a crate stand above one another, that all modules with parts look
//! alike, that no line is too long, and that texts use words that readers know.

mod circles;
mod words;

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use crate::lines::{self, COLUMNS};

/// Crates in rings: each may use only crates that stand before it.
const ORDER: &[&str] = &[
    "units",
    "events",
    "advise",
    "stats",
    "report",
    "trace",
    "profile",
    "model",
    "host",
    "sim",
    "fit",
    "predict",
    "whatif",
    "formats",
    "emulate",
    "io",
    "probe",
    "virtual_time",
    "capture",
    "dbms",
    "spill",
    "oltp",
    "study",
    "papers",
    "serve",
    "wearmark",
    "python",
];

/// Crates that do no I/O, read no clock and start no threads. None of their files is exempt, tests
/// among the sources included; a test that reads a file stands in `tests/it`.
pub const INNER: &[&str] = &[
    "units", "events", "stats", "report", "trace", "profile", "model", "host", "sim", "fit",
    "predict", "advise",
];

/// What the sources of an inner crate must not name. A grouped import from `std` would hide it.
const IMPURE: &[&str] = &[
    "std::net",
    "std::process",
    "std::thread",
    "std::fs",
    "std::env",
    "std::os",
    "std::{",
    "io::stdin",
    "io::stdout",
    "io::stderr",
    "Instant::now",
    "SystemTime",
    "println!",
    "print!",
    "dbg!",
    "rustix",
    "libc",
    "unsafe",
];

/// What an inner crate must not depend on, besides crates that stand outside of it.
const IMPURE_DEPENDENCIES: &[&str] = &["rustix", "libc", "io-uring", "tempfile"];

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
            if INNER.contains(name) && IMPURE_DEPENDENCIES.contains(&used) {
                found.push(format!("{name} is an inner crate and depends on {used}"));
            }
        }
    }
    for entry in fs::read_dir(&crates)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !ORDER.contains(&name.as_str()) {
            found.push(format!("crate {name} has no place in xtask/src/tidy.rs"));
        }
    }
    for name in ORDER {
        readme(&crates.join(name), INNER.contains(name), &mut found);
    }
    for name in INNER {
        pure(&crates.join(name).join("src"), &mut found)?;
    }
    let listed = fs::read_to_string(crate::root().join("docs/reference/warnings.md"))?;
    for name in ORDER {
        let source = crates.join(name).join("src");
        warnings_listed(&source, &listed, &mut found)?;
        circles::check(&source, &mut found)?;
    }
    for folder in ["crates", "xtask/src", "fuzz/src", "fuzz/fuzz_targets"] {
        modules(&crate::root().join(folder), &mut found)?;
    }
    texts(&crate::root(), &mut found)?;
    if !found.is_empty() {
        bail!("tidy:\n  {}", found.join("\n  "));
    }
    println!(
        "tidy: arrows point inward, no modules use each other in a circle, inner crates are pure, \
         warnings are documented, modules with parts have a mod.rs, no line is too long, no \
         text uses a private word"
    );
    Ok(())
}

/// A crate whose README is missing, or, for an inner crate, whose example is not run as a test.
fn readme(folder: &Path, is_inner: bool, found: &mut Vec<String>) {
    let path = folder.join("README.md");
    let Ok(text) = fs::read_to_string(&path) else {
        found.push(format!("{} is missing: what is the crate for?", path.display()));
        return;
    };
    let root = fs::read_to_string(folder.join("src/lib.rs")).unwrap_or_default();
    if is_inner && !(text.contains("```rust") && root.contains("include_str!(\"../README.md\")")) {
        found.push(format!("{}: no example that the tests run", path.display()));
    }
}

/// Modules that are both a file and a folder: one with parts of its own is `name/mod.rs`.
fn modules(folder: &Path, found: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            let file = path.with_extension("rs");
            if file.is_file() {
                let shown = path.display();
                found.push(format!("{}: belongs into {shown}/mod.rs", file.display()));
            }
            modules(&path, found)?;
        }
    }
    Ok(())
}

/// Lines of all files below `root` that are too long, and words that a reader does not know.
fn texts(root: &Path, found: &mut Vec<String>) -> anyhow::Result<()> {
    for path in lines::written(root)? {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let shown = path.strip_prefix(root).unwrap_or(&path);
        let place = |line: usize| format!("{}:{line}", shown.display());
        for line in lines::too_long(&text) {
            found.push(format!(
                "{}: longer than {COLUMNS} columns ('cargo xtask wrap' breaks Markdown and TOML)",
                place(line)
            ));
        }
        if words::is_checked(shown) {
            for (line, word) in words::found(&text) {
                found.push(format!("{}: '{}': write {}", place(line), word.not, word.but));
            }
        }
    }
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
        let code = without_tests(&text);
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

/// A source without its test modules: a `#[cfg(test)]` item ends at its `;`, or at the brace that
/// closes it in the column where it began.
fn without_tests(text: &str) -> String {
    let mut kept = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push_str(line);
            kept.push('\n');
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let close = format!("{indent}}}");
        if lines.next().is_some_and(|item| item.ends_with('{')) {
            lines.find(|line| *line == close);
        }
    }
    kept
}

/// What a line of code names that is impure, comments aside.
fn impurity(line: &str) -> Option<&'static str> {
    let code = line.trim_start();
    if code.starts_with("//") || code == "#![forbid(unsafe_code)]" {
        return None;
    }
    IMPURE.iter().copied().find(|word| code.contains(word))
}

/// Lines of the sources below `folder` that name something impure.
fn pure(folder: &Path, found: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            pure(&path, found)?;
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        for (index, line) in fs::read_to_string(&path)?.lines().enumerate() {
            if let Some(word) = impurity(line) {
                let place = format!("{}:{}", path.display(), index + 1);
                found.push(format!("{place}: not pure, names {word}: {}", line.trim()));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, dependencies, impurity, modules, readme, texts, without_tests};

    #[test]
    fn impure_code_is_named_and_comments_are_not() {
        assert_eq!(impurity("use std::fs::File;"), Some("std::fs"));
        assert_eq!(impurity("    let now = Instant::now();"), Some("Instant::now"));
        assert_eq!(impurity("use std::{collections, fs};"), Some("std::{"));
        assert_eq!(impurity("rustix::fs::sync();"), Some("rustix"));
        assert_eq!(impurity("    /// as `std::fs` does"), None);
        assert_eq!(impurity("use std::collections::BTreeMap;"), None);
    }

    #[test]
    fn code_behind_a_test_module_is_kept() {
        let text = "a\n#[cfg(test)]\nmod t;\nb\n#[cfg(test)]\nmod u {\n    x {\n    }\n}\nc\n";
        assert_eq!(without_tests(text), "a\nb\nc\n");
    }

    /// What `check` finds in a tree of `files`, sorted.
    fn found_in(files: &[(&str, &str)]) -> Vec<String> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static TREES: AtomicU32 = AtomicU32::new(0);
        let tree = TREES.fetch_add(1, Ordering::Relaxed);
        let name = format!("wearmark-tidy-{}-{tree}", std::process::id());
        let root = std::env::temp_dir().join(name);
        for (file, text) in files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let mut found = Vec::new();
        modules(&root, &mut found).unwrap();
        texts(&root, &mut found).unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        found.sort();
        found
    }

    #[test]
    fn a_crate_has_a_readme_and_an_inner_one_an_example_that_is_run() {
        let root = std::env::temp_dir().join(format!("wearmark-readme-{}", std::process::id()));
        std::fs::create_dir_all(root.join("src")).unwrap();
        let mut found = Vec::new();
        readme(&root, false, &mut found);
        std::fs::write(root.join("README.md"), "# x\n\n```rust\nlet x = 1;\n```\n").unwrap();
        readme(&root, false, &mut found);
        readme(&root, true, &mut found);
        let hook = "#[doc = include_str!(\"../README.md\")]\nstruct Readme;\n";
        std::fs::write(root.join("src/lib.rs"), hook).unwrap();
        readme(&root, true, &mut found);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("is missing") && found[1].contains("no example"), "{found:?}");
    }

    #[test]
    fn a_module_is_a_file_or_a_folder() {
        let found = found_in(&[("a/mod.rs", ""), ("a/b/mod.rs", ""), ("a/b.rs", ""), ("c.rs", "")]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("a/b.rs: belongs into"), "{found:?}");
    }

    #[test]
    fn long_lines_and_private_words_are_named_with_their_places() {
        let long = "x ".repeat(COLUMNS);
        let private = concat!("Its how-", "manieth request.\n");
        let files = [
            ("a/b.rs", format!("a\n// {long}\n")),
            ("docs/c.md", format!("{private}\n{long}\n")),
            ("docs/journal/d.md", private.to_owned()),
            ("e.toml", format!("x = 1 # {long}\n")),
            ("target/f.rs", long.clone()),
            ("g.bin", long.clone()),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, &**text)).collect();
        let found = found_in(&files);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].starts_with("a/b.rs:2: longer"), "{found:?}");
        assert!(found[1].starts_with("docs/c.md:1: 'how-"), "{found:?}");
        assert!(found[1].ends_with("write sequence number"), "{found:?}");
        assert!(found[2].starts_with("docs/c.md:3: longer"), "{found:?}");
        assert!(found[3].starts_with("e.toml:1: longer"), "{found:?}");
    }

    #[test]
    fn dependencies_end_where_the_next_section_starts() {
        let manifest = "[package]\nname = 'x'\n\n[dependencies]\nunits.workspace = true\n\
                        serde = '1'\n\n[dev-dependencies]\nsim.workspace = true\n";
        let names: Vec<_> = dependencies(manifest).into_iter().filter(|n| !n.is_empty()).collect();
        assert_eq!(names, ["units", "serde"]);
    }
}
