//! Where the samples of public traces are, if they are.
//!
//! They are not part of this repository (see their terms); a test that wants one asks here and is
//! skipped, saying so, where there is none.

use std::path::PathBuf;

/// The environment variable that names the folder.
const VARIABLE: &str = "WEARMARK_SHARED";

/// A file of the samples, or `None` with a line on the terminal.
pub fn sample(name: &str) -> Option<PathBuf> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let folder = std::env::var_os(VARIABLE).map_or_else(beside, PathBuf::from);
    let path = folder.join("traces").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {} is not there (set {VARIABLE})", path.display());
    None
}
