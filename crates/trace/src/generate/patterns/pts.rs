//! The workloads of SNIA's Solid State Storage Performance Test Specification (Enterprise) 2.0:
//! IOPS (clause 7), throughput (8), latency (9) and write saturation (annex of the enterprise
//! tests).
//!
//! The specification runs each cell for a minute at a given depth; a trace has due times, so the
//! cells of one round follow each other with equal numbers of requests at the option `rate`.

use super::basic::named;
use super::{NamedPattern, Options, PatternOption, RANGE, RATE, option};
use crate::generate::Invalid;
use crate::generate::{Addresses, Arrivals, Ops, Phase, SizeShare, StreamLoad, Turns, Workload};

const SOURCE: &str = "SNIA Solid State Storage Performance Test Specification (Enterprise) 2.0";
/// Read shares of the IOPS test, percent, in its order.
const IOPS_READ_PERCENT: [u32; 7] = [100, 95, 65, 50, 35, 5, 0];
/// Block sizes of the IOPS test, bytes, in its order.
const IOPS_SIZE_BYTES: [u32; 8] =
    [1 << 20, 128 << 10, 64 << 10, 32 << 10, 16 << 10, 8 << 10, 4 << 10, 512];
const LATENCY_READ_PERCENT: [u32; 3] = [100, 65, 0];
const LATENCY_SIZE_BYTES: [u32; 3] = [8 << 10, 4 << 10, 512];
const THROUGHPUT_READ_PERCENT: [u32; 2] = [100, 0];
const SIZES: PatternOption = option("size", "all", "one block size instead of all");
const READS: PatternOption = option("reads", "all", "one read share, 0 to 1, instead of all");

/// The table.
pub(super) const PATTERNS: &[NamedPattern] = &[
    NamedPattern {
        name: "pts-iops",
        what: "SNIA PTS: one round of the IOPS test, 7 read/write mixes by 8 block sizes, random",
        options: &[RATE, RANGE, READS, SIZES],
        build: |options| round(options, &Addresses::Random, &IOPS_READ_PERCENT, &IOPS_SIZE_BYTES),
    },
    NamedPattern {
        name: "pts-throughput",
        what: "SNIA PTS: one round of the throughput test, sequential reads and writes",
        options: &[RATE, RANGE, READS, option("size", "128KiB", "block size: 128KiB or 1MiB")],
        build: |options| {
            round(options, &Addresses::Sequential, &THROUGHPUT_READ_PERCENT, &[128 << 10])
        },
    },
    NamedPattern {
        name: "pts-latency",
        what: "SNIA PTS: one round of the latency test, 3 read/write mixes by 3 block sizes, \
               random",
        options: &[RATE, RANGE, READS, SIZES],
        build: |options| {
            round(options, &Addresses::Random, &LATENCY_READ_PERCENT, &LATENCY_SIZE_BYTES)
        },
    },
    NamedPattern {
        name: "pts-write-saturation",
        what: "SNIA PTS: random 4 KiB writes without an end",
        options: &[RATE, RANGE, option("size", "4KiB", "block size")],
        build: |options| round(options, &Addresses::Random, &[0], &[4096]),
    },
];

/// The cells in the order of the specification: sizes within mixes.
fn round(
    options: &Options,
    addresses: &Addresses,
    read_percent: &[u32],
    sizes: &[u32],
) -> Result<Workload, Invalid> {
    let read_shares: Vec<f64> = match options.text("reads") {
        "" | "all" => read_percent.iter().map(|percent| f64::from(*percent) / 100.0).collect(),
        _ => vec![options.number("reads")?],
    };
    let sizes = match options.text("size") {
        "all" => sizes.to_vec(),
        _ => vec![options.size("size")?],
    };
    let mut phases = Vec::new();
    for read_share in read_shares {
        for size_bytes in &sizes {
            let stream = StreamLoad {
                name: "data".to_owned(),
                share: 1.0,
                ops: Ops::independent(read_share),
                start_bytes: 0,
                range_bytes: options.bytes("range")?,
                slot_bytes: 0,
                addresses: addresses.clone(),
                sizes: vec![SizeShare { size_bytes: *size_bytes, share: 1.0 }],
            };
            let arrivals = Arrivals::Fixed { rate_per_s: options.rate()? };
            let turns = Turns::Random;
            phases.push(Phase { share: 1.0, arrivals, turns, streams: vec![stream] });
        }
    }
    let requests = 1000 * phases.len() as u64;
    Ok(named(phases, requests, &[SOURCE]))
}

#[cfg(test)]
mod tests {
    use super::super::find;

    #[test]
    fn the_iops_round_has_56_cells_in_order() {
        let workload = find("pts-iops").expect("known").workload(&[]).expect("sound");
        assert_eq!((workload.phases.len(), workload.requests), (56, 56_000));
        let trace = workload.generate(1, 56_000).expect("sound");
        assert!(trace.len[..1000].iter().all(|len| *len == 1 << 20));
        assert!(trace.len[55_000..].iter().all(|len| *len == 512));
        let reads = |from: usize| {
            trace.op[from..from + 8000].iter().filter(|op| **op == crate::Op::Read).count()
        };
        assert_eq!((reads(0), reads(48_000)), (8000, 0));
        assert!(reads(16_000).abs_diff(5200) < 200, "{} of 65 %", reads(16_000));
    }

    #[test]
    fn a_single_cell_can_be_asked_for() {
        let given = [("size", "8KiB"), ("reads", "0.65")];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let workload = find("pts-latency").expect("known").workload(&given).expect("sound");
        assert_eq!(workload.phases.len(), 1);
        assert_eq!(workload.phases[0].streams[0].sizes[0].size_bytes, 8192);
        assert_eq!(
            find("pts-latency").expect("known").workload(&[]).expect("sound").phases.len(),
            9
        );
        assert_eq!(
            find("pts-throughput").expect("known").workload(&[]).expect("sound").phases.len(),
            2
        );
    }
}
