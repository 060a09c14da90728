//! Circles between the top modules of a crate: each of them could be read only after the others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context;

use super::without_tests;

/// By module: the modules of the same crate that it names.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Adds one line per circle of the crate whose sources stand in a folder.
pub(super) fn check(source: &Path, found: &mut Vec<String>) -> anyhow::Result<()> {
    let mut uses = Uses::new();
    for entry in fs::read_dir(source).with_context(|| source.display().to_string())? {
        let path = entry?.path();
        let module = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !matches!(module.as_str(), "lib" | "main") && !is_test(&path) {
            collect(&path, uses.entry(module).or_default())?;
        }
    }
    let mut told = BTreeSet::new();
    for module in uses.keys() {
        let circle = circle(module, &uses);
        if circle.len() > 1 && told.insert(circle.clone()) {
            let names = Vec::from_iter(circle).join(", ");
            found.push(format!("{}: modules use each other: {names}", source.display()));
        }
    }
    Ok(())
}

fn is_test(path: &Path) -> bool {
    path.file_stem().is_some_and(|name| name == "tests")
}

fn collect(path: &Path, uses: &mut BTreeSet<String>) -> anyhow::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path).with_context(|| path.display().to_string())? {
            let path = entry?.path();
            if !is_test(&path) {
                collect(&path, uses)?;
            }
        }
    } else {
        uses.extend(named(without_tests(&fs::read_to_string(path)?).as_str()));
    }
    Ok(())
}

/// Modules that a source names from the root of its crate on.
fn named(code: &str) -> Vec<String> {
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for rest in code.split("crate::").skip(1) {
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut name = String::new();
            for letter in group.chars() {
                match letter {
                    ',' | '}' if depth == 0 => {
                        found.push(first_name(&std::mem::take(&mut name)));
                        if letter == '}' {
                            break;
                        }
                    }
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    _ if depth == 0 => name.push(letter),
                    _ => {}
                }
            }
        } else {
            found.push(first_name(rest));
        }
    }
    found
}

fn first_name(path: &str) -> String {
    let is_word = |letter: &char| letter.is_alphanumeric() || *letter == '_';
    path.trim_start().chars().take_while(is_word).collect()
}

/// The module and those that it reaches and that reach it.
fn circle(module: &str, uses: &Uses) -> BTreeSet<String> {
    let reached = reach(module, uses);
    let both = reached.into_iter().filter(|other| reach(other, uses).contains(module));
    both.collect()
}

fn reach(module: &str, uses: &Uses) -> BTreeSet<String> {
    let mut reached = BTreeSet::from([module.to_owned()]);
    let mut open = vec![module.to_owned()];
    while let Some(next) = open.pop() {
        for used in uses[&next].iter().filter(|used| uses.contains_key(*used)) {
            if reached.insert(used.clone()) {
                open.push(used.clone());
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(of: &[(&str, &str)]) -> Uses {
        let each =
            of.iter().map(|(name, code)| ((*name).to_owned(), BTreeSet::from_iter(named(code))));
        each.collect()
    }

    #[test]
    fn modules_are_found_in_paths_and_in_groups() {
        let code = "use crate::one::{a, b};\nuse crate::{two::{c, crate_thing}, three, Error};\n\
                    // crate::four\nfn f() { crate::five::g() }";
        assert_eq!(named(code), ["one", "two", "three", "Error", "five"]);
    }

    #[test]
    fn a_circle_is_found_and_a_chain_is_none() {
        let chain = uses(&[("a", "crate::b::x"), ("b", "crate::c::x"), ("c", "")]);
        assert_eq!(circle("a", &chain).len(), 1);
        let round = uses(&[("a", "crate::b::x"), ("b", "crate::c::x"), ("c", "crate::a::x")]);
        assert_eq!(Vec::from_iter(circle("b", &round)), ["a", "b", "c"]);
    }
}
