//! Licences of everything that ships, from `cargo metadata` (offline).
//!
//! Advisories need a database that is fetched from the network; where `cargo deny` is installed and
//! has one, run `cargo deny check advisories` beside this.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

/// SPDX identifiers that may be linked into an MIT OR Apache-2.0 program.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    // Permissive, with the notices of zlib: of libbz2-rs-sys.
    "bzip2-1.0.6",
];

/// Fails if any package of the lock file has a licence that is not on the list.
pub fn check() -> anyhow::Result<()> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(crate::root())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let packages = metadata["packages"].as_array().context("cargo metadata has packages")?;
    let mut refused = BTreeMap::new();
    for package in packages {
        let licence = package["license"].as_str().unwrap_or("none stated");
        if !allowed(licence) {
            refused.insert(package["name"].to_string(), licence.to_owned());
        }
    }
    if !refused.is_empty() {
        bail!("licences that are not on the list in xtask/src/licences.rs: {refused:?}");
    }
    println!("licences: {} packages, all on the list", packages.len());
    Ok(())
}

/// Whether an SPDX expression can be satisfied from the list. `OR` binds weaker than `AND`; older
/// packages write `/` for `OR`.
fn allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace(['(', ')'], " ");
    expression
        .split(" OR ")
        .any(|choice| choice.split(" AND ").all(|licence| ALLOWED.contains(&licence.trim())))
}

#[cfg(test)]
mod tests {
    use super::{ALLOWED, allowed};

    #[test]
    fn cargo_deny_allows_the_same() {
        let text = std::fs::read_to_string(crate::root().join("deny.toml")).unwrap();
        let list = text.split_once("allow = [").unwrap().1.split_once(']').unwrap().0;
        let list: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
        assert_eq!(list, ALLOWED);
    }

    #[test]
    fn expressions_are_understood() {
        for good in ["MIT", "MIT OR Apache-2.0", "MIT/GPL-3.0", "MPL-2.0 OR MIT AND Zlib"] {
            assert!(allowed(good), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "none stated", "MPL-2.0", ""] {
            assert!(!allowed(bad), "{bad}");
        }
    }
}
