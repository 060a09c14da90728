//! The host as modelled beside the kernel: the same calls on file systems that are made for them.
//!
//! A part is any piece of a name, such as `host/postgresql` or `host/xfs`. Root only.

use serde_json::Value;

use super::tools::{folder, number, program, timed};
use super::{Sitting, Target};

/// A load, as `oltp run` takes it.
const LOADS: [(&str, &[&str]); 4] = [
    ("sqlite commit", &["--dbms", "sqlite", "--workload", "commit", "--rows", "10000"]),
    ("postgresql commit", &["--dbms", "postgresql", "--workload", "commit", "--rows", "10000"]),
    ("postgresql order entry", &["--dbms", "postgresql", "--warehouses", "1"]),
    ("mariadb commit", &["--dbms", "mariadb", "--workload", "commit", "--rows", "10000"]),
];
const KINDS: [&str; 4] = ["ext4", "ext2", "xfs", "btrfs"];

pub fn measure(sitting: &mut Sitting) -> anyhow::Result<()> {
    let (program, folder) = (program()?, folder("host")?);
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    // The page cache of the model has as much as this machine's, or it evicts what the other keeps.
    let meminfo = std::fs::read_to_string("/proc/meminfo")?;
    let kib = meminfo.split_whitespace().nth(1).unwrap_or("1048576").to_owned();
    for kind in KINDS {
        let stack =
            format!("[page_cache]\nmemory = \"{kib}KiB\"\n[file_system]\nkind = \"{kind}\"\n");
        std::fs::write(path(kind), stack)?;
    }
    let room = path("room");
    std::fs::create_dir(&room)?;
    for (number, (load, words)) in LOADS.iter().enumerate() {
        let wanted = |kind: &&&str| sitting.wants(&format!("{load}, {kind}"));
        let kinds: Vec<_> = KINDS.iter().filter(wanted).collect();
        if kinds.is_empty() {
            continue;
        }
        let (database, prefix) = (path(&format!("db-{number}")), path(&format!("calls-{number}")));
        let mut run = vec!["oltp", "run", &database, "--quiet", "--users", "4"];
        run.extend(["--warmup", "2s", "--duration", "20s", "--trace", &prefix]);
        run.extend(*words);
        timed(&program, &run)?;
        // Half as fast: what is late because the machine is slow would be written at other times.
        let (captured, calls) = (format!("{prefix}-logical.parquet"), path("calls.parquet"));
        timed(&program, &["trace", "scale", &captured, "--factor", "2", "-o", &calls, "--force"])?;
        for kind in kinds {
            let (stack, below) = (path(kind), path("below.parquet"));
            let words = ["trace", "host", &calls, "--host", &stack, "-o", &below];
            let more = ["--run-in", &room, "--json", "--quiet", "--force"];
            let (text, _) = timed(&program, &[&words[..], &more].concat())?;
            let allowed = if *kind == "btrfs" { 0.2 } else { 0.1 };
            let name = format!("{load}, {kind}");
            lines(sitting, &name, allowed, &serde_json::from_str(&text)?)?;
        }
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

fn lines(sitting: &mut Sitting, name: &str, allowed: f64, found: &Value) -> anyhow::Result<()> {
    let real = &found["real"];
    let sum = |side: &str, what: &str| -> anyhow::Result<f64> {
        let part = |part: &str| number(real, &[side, part, "write", what]);
        Ok(part("files")? + part("other")?)
    };
    let bytes = sum("modelled", "bytes")? / sum("real", "bytes")?;
    let requests = sum("modelled", "requests")? / sum("real", "requests")?;
    let flushes = |side: &str| number(real, &[side, "other", "flushes"]);
    let flushes = flushes("modelled")? / flushes("real")?.max(1.0);
    let elsewhen = number(real, &["written_elsewhen"])?;
    let ratio = |width: f64| Target::Within(1.0 - width, 1.0 + width);
    sitting.add(
        format!("{name}: bytes written, modelled over real"),
        bytes,
        "ratio",
        ratio(allowed),
    );
    sitting.add(format!("{name}: writes"), requests, "ratio", ratio(0.15));
    sitting.add(format!("{name}: mean write"), bytes / requests, "ratio", ratio(0.15));
    sitting.add(format!("{name}: flushes"), flushes, "ratio", ratio(0.05));
    sitting.add(format!("{name}: in another second"), elsewhen, "share", Target::AtMost(0.1));
    Ok(())
}
