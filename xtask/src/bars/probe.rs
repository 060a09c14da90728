//! The probe against fio on the same file.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use super::tools::{bench, criterion_us, example, folder, median, number, output};
use super::{Sitting, Target};

/// Pairs of ours against fio's on the same file.
const PAIRS: usize = 5;
const CELL_SECONDS: &str = "2";

/// IOPS and CPU per request of one run.
struct Run {
    iops: f64,
    cpu_us: f64,
}

pub fn measure(sitting: &mut Sitting) -> anyhow::Result<()> {
    let cell = example("probe", "probe_cell")?;
    let file = folder("probe")?.join("probe.bin");
    fill(&file)?;
    for (order, fio_order) in [("random", "rand"), ("sequential", "")] {
        for op in ["read", "write"] {
            for depth in [1, 32] {
                let mut ratios = (Vec::new(), Vec::new());
                for pair in 0..PAIRS {
                    let rw = format!("{fio_order}{op}");
                    let first = (pair % 2 == 1).then(|| fio(&file, &rw, depth)).transpose()?;
                    let ours = ours(&cell, &file, order, op, depth)?;
                    let fio = first.map_or_else(|| fio(&file, &rw, depth), Ok)?;
                    ratios.0.push(ours.iops / fio.iops);
                    ratios.1.push(ours.cpu_us / fio.cpu_us);
                }
                let what = format!("{order} {op} 4 KiB depth {depth}");
                sitting.add(
                    format!("{what}: IOPS over fio's"),
                    median(ratios.0),
                    "ratio",
                    Target::AtLeast(0.97),
                );
                sitting.add(
                    format!("{what}: CPU over fio's"),
                    median(ratios.1),
                    "ratio",
                    Target::AtMost(if depth == 1 { 1.0 } else { 0.85 }),
                );
            }
        }
    }
    std::fs::remove_file(&file)?;
    let text = bench("probe", "tool_share")?;
    for name in ["random_read_4KiB_qd1", "random_read_4KiB_qd32", "random_write_4KiB_qd32"] {
        sitting.add(
            format!("tool's own share, {name}"),
            criterion_us(&text, name)?,
            "us/I/O",
            Target::AtMost(0.12),
        );
    }
    Ok(())
}

/// Writes the file that both tools measure.
fn fill(file: &Path) -> anyhow::Result<()> {
    let name = format!("--filename={}", file.display());
    output(
        Path::new("fio"),
        &[
            "--name=fill",
            &name,
            "--size=1g",
            "--rw=write",
            "--bs=1m",
            "--direct=1",
            "--ioengine=io_uring",
            "--iodepth=8",
            "--refill_buffers",
            "--end_fsync=1",
        ],
    )?;
    Ok(())
}

fn ours(cell: &Path, file: &Path, order: &str, op: &str, depth: u32) -> anyhow::Result<Run> {
    let share = if op == "read" { "1" } else { "0" };
    let (file, depth) = (file.to_string_lossy(), depth.to_string());
    let text = output(cell, &[&file, CELL_SECONDS, order, share, "4096", &depth])?;
    let json: Value = serde_json::from_str(&text)?;
    Ok(Run { iops: number(&json, &["iops"])?, cpu_us: number(&json, &["cpu_us"])? })
}

fn fio(file: &Path, rw: &str, depth: u32) -> anyhow::Result<Run> {
    let text = output(
        Path::new("fio"),
        &[
            "--name=x",
            &format!("--filename={}", file.display()),
            "--size=1g",
            "--direct=1",
            "--ioengine=io_uring",
            &format!("--rw={rw}"),
            "--bs=4k",
            &format!("--iodepth={depth}"),
            "--time_based",
            &format!("--runtime={CELL_SECONDS}"),
            "--norandommap",
            "--random_generator=tausworthe64",
            "--refill_buffers",
            "--output-format=json",
        ],
    )?;
    let start = text.find('{').context("fio printed no JSON")?;
    let json: Value = serde_json::from_str(&text[start..])?;
    let job = &json["jobs"][0];
    let side = if rw.ends_with("read") { "read" } else { "write" };
    let ios = number(job, &[side, "total_ios"])?;
    let seconds = number(job, &["job_runtime"])? / 1e3;
    let percent = number(job, &["usr_cpu"])? + number(job, &["sys_cpu"])?;
    Ok(Run { iops: number(job, &[side, "iops"])?, cpu_us: percent / 100.0 * seconds / ios * 1e6 })
}
