//! What the tests share.

use std::sync::atomic::{AtomicU64, Ordering};

use events::{Event, Sink};
use model::Linear;
use profile::linear::{Detection, Flush, Line, LinearParameters, Mixed};
use spill::{Keys, Resources, Rows, Simulated};
use units::Bytes;

pub fn rows(count: u64, width_bytes: u32, keys: Keys) -> Rows {
    Rows { count, width_bytes, keys, seed: 11 }
}

pub fn resources(memory: u64, cluster: u64, depth: u32) -> Resources {
    Resources { memory: Bytes(memory), cluster: Bytes(cluster), depth }
}

/// A directory on the disk that the build is on.
pub fn place() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the target folder is writable")
}

/// Names in a directory.
pub fn listing(directory: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the directory is the test's own");
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// A device on which every request takes `base_ns`, `parallelism` at a time.
pub fn constant(base_ns: f64, parallelism: u32) -> Simulated {
    let line = Line { base_ns, ns_per_byte: 0.0, ceiling_iops: None, ceiling_bytes_per_s: None };
    let parameters = LinearParameters {
        capacity: None,
        read: [line; 2],
        write: [line; 2],
        parallelism,
        detection: Detection::PerStream,
        mixed: Mixed::default(),
        flush: Flush::default(),
        trim_ns: 0.0,
        residuals: Vec::new(),
    };
    Simulated::new("constant", Box::new(Linear::new(&parameters, 1)), 0)
}

/// Turns cancelled after it was asked so often.
#[derive(Debug)]
pub struct Impatient(pub AtomicU64);

impl Sink for Impatient {
    fn emit(&self, _event: Event) {}

    fn cancelled(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) <= 1
    }
}
