//! Petrov et al. 2010: one X25-E, written in order and over and over at random.

use profile::Profile;
use profile::linear::Pattern;

use crate::load::{KIB, Load, mean_ms, run, shipped};
use crate::{Effort, Found, Paper};

/// The four loads of the fragmentation slides: name in the percentages, name in the table.
const LOADS: [(&str, &str, Load); 4] = [
    ("seq_read", "seq64k.read", Load::reads(Pattern::Sequential, 64 * KIB).deep(32).long(20_000)),
    (
        "seq_write",
        "seq64k.write",
        Load::writes(Pattern::Sequential, 64 * KIB).deep(32).long(50_000),
    ),
    ("rand_read", "rand4k.read", Load::reads(Pattern::Random, 4 * KIB).deep(32).long(20_000)),
    ("rand_write", "rand4k.write", Load::writes(Pattern::Random, 4 * KIB).deep(32).long(50_000)),
];

/// The drive with a share of it written in order or at random.
fn drive(fill: f64, random: bool) -> Profile {
    let changed = shipped("intel-x25-e-ftl")
        .with_field("device.precondition.fill", &fill.to_string())
        .and_then(|own| own.with_field("device.precondition.random", &random.to_string()));
    changed.unwrap_or_else(|error| panic!("{error}"))
}

/// Loss in per cent and, at 90 %, the table, of one load.
fn slowed(fill: f64, load: usize, effort: Effort) -> Vec<Found> {
    let (loss, row, load) = LOADS[load];
    let percent = (fill * 100.0).round();
    let [fresh, fragmented] =
        [false, true].map(|random| run(&drive(fill, random), fill, load, effort));
    let how = format!("intel-x25-e-ftl {percent} % full, 32 in flight, in order and at random");
    let slower = (1.0 - fragmented.iops / fresh.iops) * 100.0;
    let id = format!("frag{percent}.slowdown.{loss}");
    let mut found = vec![Found::value(id, slower, how.clone())];
    if fill < 0.8 {
        return found;
    }
    for (state, outcome) in [("fragmented", &fragmented), ("fresh", &fresh)] {
        let (name, rate) = if row.starts_with("seq") {
            ("bw", outcome.bytes_per_s / 1e6)
        } else {
            ("iops", outcome.iops)
        };
        found.push(Found::value(format!("frag90.{row}.{name}.{state}"), rate, how.clone()));
        let id = format!("frag90.{row}.avg_latency.{state}");
        found.push(Found::value(id, mean_ms(outcome), how.clone()));
    }
    let derived = format!("derived.frag90.loss.{row}");
    found.push(Found::value(derived, slower, how));
    found
}

macro_rules! slowdowns {
    ($($name:ident $fill:literal $load:literal;)*) => {$(
        pub(crate) fn $name(_: &Paper, effort: Effort) -> Vec<Found> {
            slowed($fill, $load, effort)
        }
    )*};
}

slowdowns! {
    seq_read_70 0.7 0;
    seq_write_70 0.7 1;
    rand_read_70 0.7 2;
    rand_write_70 0.7 3;
    seq_read_90 0.9 0;
    seq_write_90 0.9 1;
    rand_read_90 0.9 2;
    rand_write_90 0.9 3;
}

/// Requests in flight of the table by Little's law, from our own rates and latencies.
pub(crate) fn in_flight(_: &Paper, effort: Effort) -> Vec<Found> {
    let outcome = run(&drive(0.9, true), 0.9, LOADS[2].2, effort);
    let reads = outcome.iops * mean_ms(&outcome) / 1e3;
    let writes = run(&drive(0.9, true), 0.9, LOADS[3].2, effort);
    let how = "rate times mean response of the simulated load";
    vec![
        Found::value("derived.frag90.rand4k.read.inflight", reads, how),
        Found::value(
            "derived.frag90.rand4k.write.inflight",
            writes.iops * mean_ms(&writes) / 1e3,
            how,
        ),
    ]
}

/// Rates and latencies of the drive as a line, which was made from them.
pub(crate) fn line(_: &Paper, effort: Effort) -> Vec<Found> {
    let profile = shipped("intel-x25-e");
    let of = |load: Load| run(&profile, 0.9, load, effort);
    let random = [Load::reads(Pattern::Random, 4 * KIB), Load::writes(Pattern::Random, 4 * KIB)];
    let larger = [Load::reads(Pattern::Random, 8 * KIB), Load::writes(Pattern::Random, 8 * KIB)];
    let sequence =
        [Load::reads(Pattern::Sequential, 4 * KIB), Load::writes(Pattern::Sequential, 4 * KIB)];
    let how = "intel-x25-e, a line made from the drive's published rates";
    let mut found = Vec::new();
    for (at, op) in ["read", "write"].into_iter().enumerate() {
        let rate = of(random[at].deep(32)).iops;
        found.push(Found::value(format!("random.4k.{op}"), rate, how));
        found.push(Found::value(format!("random.8k.{op}"), of(larger[at].deep(32)).iops, how));
        if op == "write" {
            let large = Load::writes(Pattern::Sequential, 256 * KIB);
            let rate = of(large.deep(4)).bytes_per_s / 1e6;
            found.push(Found::value("seq.write_caching", rate, "256 KiB, four in flight"));
        }
        let mean = mean_ms(&of(random[at]));
        found.push(Found::value(format!("latency.avg.rand_{op}.wc_on"), mean, how));
        let mean = mean_ms(&of(sequence[at]));
        found.push(Found::value(format!("latency.avg.seq_{op}.wc_on"), mean, how));
    }
    found
}
