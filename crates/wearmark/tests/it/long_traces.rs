//! Traces that are longer than the memory that a command may have.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{fine, finish, place};

/// What a process may map: the program, its threads and a few row groups.
const MOST_KIB: u64 = 256 << 10;
/// At 23 bytes each, more than that.
const REQUESTS: &str = "12000000";

/// Runs the program with that much address space.
fn bounded(directory: &Path, arguments: &str) -> String {
    let program = env!("CARGO_BIN_EXE_wearmark");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {MOST_KIB}; exec {program} --quiet {arguments}")]);
    command.current_dir(directory).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let ran = finish(command.spawn().expect("there is a shell"));
    assert_eq!(ran.code, Some(0), "{arguments}: {}", ran.err);
    ran.out
}

#[test]
fn a_trace_larger_than_memory_is_described_converted_and_simulated() {
    if std::env::var_os("SLOW").is_none() {
        println!("skipped: takes 20 s; SLOW=1 runs it");
        return;
    }
    let dir = place();
    let make = ["trace", "generate", "random", "-n", REQUESTS, "-o", "t.parquet"];
    fine(dir.path(), &make);
    let info: serde_json::Value =
        serde_json::from_str(&bounded(dir.path(), "trace info t.parquet --json")).unwrap();
    assert_eq!(info["all"]["requests"], 12_000_000);
    bounded(dir.path(), "trace convert t.parquet again.parquet");
    let read = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    assert!(read("t.parquet") == read("again.parquet"), "other bytes");
    let sim = "sim t.parquet -p micron-7400 -p intel-320 --json";
    let found: serde_json::Value = serde_json::from_str(&bounded(dir.path(), sim)).unwrap();
    assert_eq!(found["devices"][1]["open_loop"]["requests"], 12_000_000);

    // The same as text, whose streams and order are known only at its end.
    fine(dir.path(), &["trace", "convert", "t.parquet", "t.spc"]);
    let text: serde_json::Value =
        serde_json::from_str(&bounded(dir.path(), "trace info t.spc --json")).unwrap();
    assert_eq!(text["all"]["counts"], info["all"]["counts"]);
    bounded(dir.path(), "trace convert t.spc back.spc");
    assert!(read("t.spc") == read("back.spc"), "other lines");
    let sim = "sim t.spc -p micron-7400 --json";
    let found: serde_json::Value = serde_json::from_str(&bounded(dir.path(), sim)).unwrap();
    assert_eq!(found["devices"][0]["open_loop"]["requests"], 12_000_000);
}
