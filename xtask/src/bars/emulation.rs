//! Models served in real time, asked by fio: does a request take what the model says?

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use super::tools::{folder, median, number, output, program};
use super::{Sitting, Target};

const SECONDS: &str = "4";
/// Runs of each cell; medians count.
const ROUNDS: usize = 3;

/// What fio saw of one run.
struct Seen {
    iops: f64,
    mean_us: f64,
    p50_us: f64,
    p99_us: f64,
    /// What the emulator says of its own lateness.
    late_us: f64,
}

/// A profile of one figure, and the directory that is served by it.
struct Bench {
    program: PathBuf,
    folder: PathBuf,
}

pub fn measure(sitting: &mut Sitting) -> anyhow::Result<()> {
    let bench = Bench { program: program()?, folder: folder("emulation")? };
    std::fs::create_dir(bench.folder.join("db"))?;
    for (service_us, depth) in [75, 200, 1000, 5000].into_iter().flat_map(|us| [(us, 1), (us, 8)]) {
        let name = format!("{service_us} us at depth {depth}");
        if sitting.wants(&name) {
            constant(sitting, &bench, service_us, depth)?;
        }
    }
    for (rate, depth) in [(3_000, 16), (20_000, 16)] {
        let name = format!("cap of {rate} a second");
        if sitting.wants(&name) {
            let profile = bench.constant(200, Some(rate))?;
            let iops = bench.median(&profile, &depth.to_string(), &[], |seen| seen.iops)?;
            let what = format!("{name}, depth {depth}: rate over the model's");
            sitting.add(what, iops / f64::from(rate), "ratio", Target::Within(0.99, 1.01));
        }
    }
    if sitting.wants("no delay") {
        path(sitting, &bench)?;
    }
    std::fs::remove_dir_all(&bench.folder)?;
    Ok(())
}

fn constant(sitting: &mut Sitting, bench: &Bench, us: u32, depth: u32) -> anyhow::Result<()> {
    let (profile, depth) = (bench.constant(us, None)?, depth.to_string());
    let seen: Vec<Seen> = (0..ROUNDS)
        .map(|_| bench.run(&profile.to_string_lossy(), &depth, &[]))
        .collect::<Result<_, _>>()?;
    let over =
        |figure: &dyn Fn(&Seen) -> f64| median(seen.iter().map(figure).collect()) / f64::from(us);
    let name = format!("{us} us at depth {depth}");
    let near = Target::Within(0.98, 1.02);
    sitting.add(format!("{name}: mean over the model's"), over(&|s| s.mean_us), "ratio", near);
    sitting.add(format!("{name}: p50 over the model's"), over(&|s| s.p50_us), "ratio", near);
    let near = Target::Within(0.9, 1.1);
    sitting.add(format!("{name}: p99 over the model's"), over(&|s| s.p99_us), "ratio", near);
    let late = median(seen.iter().map(|seen| seen.late_us).collect());
    sitting.add(format!("{name}: the emulator's own lateness, p99"), late, "us", Target::Beside);
    Ok(())
}

/// What the way through the kernel takes, and how much goes through it.
fn path(sitting: &mut Sitting, bench: &Bench) -> anyhow::Result<()> {
    let profile = bench.folder.join("nothing.toml");
    let text = format!("{HEAD}[device]\nkind = \"ram\"\nlatency_us = {}\n", value(0.0));
    let text = format!("{text}interface_mb_per_s = {}\nports = {}\n", value(1e6), value(1024.0));
    std::fs::write(&profile, text)?;
    let p50 = bench.median(&profile, "1", &["--path", "0s"], |seen| seen.p50_us)?;
    sitting.add("no delay: added to p50 at depth 1", p50, "us", Target::AtMost(7.0));
    let iops = bench.median(&profile, "32", &["--path", "0s"], |seen| seen.iops)?;
    sitting.add("no delay: rate at depth 32", iops, "IOPS", Target::AtLeast(150_000.0));
    Ok(())
}

const HEAD: &str = "\
[profile]
name = \"bar\"
description = \"a device of one figure\"
class = \"emulated\"
sources = [\"chosen\"]

[state]
condition = \"steady\"
note = \"not a device that can be bought\"

";

fn value(value: f64) -> String {
    format!("{{ value = {value}, source = \"chosen\" }}")
}

impl Bench {
    /// Writes the profile of a device that takes one time for everything.
    fn constant(&self, us: u32, cap: Option<u32>) -> anyhow::Result<PathBuf> {
        let us = value(f64::from(us));
        let cap = cap.map(|cap| format!("ceiling_iops = {}\n", value(f64::from(cap))));
        let cap = cap.unwrap_or_default();
        let mut text = format!(
            "{HEAD}[device]\nkind = \"linear\"\nsequential_detection = \"per_stream\"\n\
             parallelism = {}\n",
            value(64.0)
        );
        for line in ["read.sequential", "read.random", "write.sequential", "write.random"] {
            let none = value(0.0);
            let line = format!("\n[device.{line}]\nbase_us = {us}\nus_per_kib = {none}\n{cap}");
            text.push_str(&line);
        }
        text.push_str(&format!("\n[device.flush]\nbase_us = {us}\n"));
        let path = self.folder.join("constant.toml");
        std::fs::write(&path, text)?;
        Ok(path)
    }

    fn median(
        &self,
        profile: &Path,
        depth: &str,
        more: &[&str],
        figure: fn(&Seen) -> f64,
    ) -> anyhow::Result<f64> {
        let seen = (0..ROUNDS).map(|_| {
            let rw = ["--rw=randread"];
            self.fio(&profile.to_string_lossy(), depth, more, &rw).map(|seen| figure(&seen))
        });
        Ok(median(seen.collect::<Result<_, _>>()?))
    }

    /// Random reads for four seconds.
    fn run(&self, profile: &str, depth: &str, more: &[&str]) -> anyhow::Result<Seen> {
        self.fio(profile, depth, more, &["--rw=randread"])
    }

    /// Runs fio on the emulated device. Not by io_uring: it hands each request on a FUSE file to a
    /// worker thread, whose wake-ups would be measured.
    fn fio(&self, profile: &str, depth: &str, more: &[&str], job: &[&str]) -> anyhow::Result<Seen> {
        let place = self.folder.join("db");
        let (place, seen) = (place.to_string_lossy(), self.folder.join("fio.json"));
        let (file, seen_name) = (format!("--filename={place}/file"), seen.to_string_lossy());
        let (depth, log) = (format!("--iodepth={depth}"), format!("--output={seen_name}"));
        let (time, mut words) = (format!("--runtime={SECONDS}"), vec!["emulate", profile]);
        words.extend(["--dir", &place, "--json", "--quiet"]);
        words.extend(more);
        words.extend(["--", "fio", "--name=bar", &file, "--size=64m", "--bs=4k", "--direct=1"]);
        words.extend(["--ioengine=libaio", &depth, "--time_based", &time, "--ramp_time=1"]);
        words.extend(["--lat_percentiles=1", "--output-format=json", &log]);
        words.extend(job);
        let served: Value = serde_json::from_str(&output(&self.program, &words)?)?;
        let json: Value = serde_json::from_str(&std::fs::read_to_string(&seen)?)?;
        let (job, read) = (&json["jobs"][0], &json["jobs"][0]["read"]);
        let lateness = served["devices"][0]["lateness_us_p99"].as_f64();
        Ok(Seen {
            iops: number(job, &["read", "iops"])? + number(job, &["write", "iops"])?,
            mean_us: number(read, &["lat_ns", "mean"])? / 1e3,
            p50_us: number(read, &["lat_ns", "percentile", "50.000000"])? / 1e3,
            p99_us: number(read, &["lat_ns", "percentile", "99.000000"])? / 1e3,
            late_us: lateness.context("the emulator tells its lateness")?,
        })
    }
}
