//! The nine micro-benchmarks of uFLIP (Bouganim, Jonsson and Bonnet, "uFLIP: Understanding flash
//! I/O patterns", CIDR 2009, section 3): each varies one parameter of a baseline pattern SR, RR, SW
//! or RW.
//!
//! uFLIP issues one request after the other; a trace has due times, so the gap between them is the
//! option `rate`: a rate above what the device bears gives its back-to-back behaviour. The
//! parameter that a micro-benchmark varies is an option; make one trace per value.

use super::basic::named;
use super::{NamedPattern, Options, PatternOption, RANGE, RATE, option};
use crate::generate::Invalid;
use crate::generate::{Addresses, Arrivals, Ops, Phase, SizeShare, StreamLoad, Turns, Workload};

const SOURCE: &str = "Bouganim, Jonsson, Bonnet: uFLIP, CIDR 2009, section 3.2";
const BASE: PatternOption = option("base", "RW", "baseline pattern: SR, RR, SW or RW");
const SIZE: PatternOption = option("size", "32KiB", "bytes per request, the paper's default");
const SECOND: PatternOption = option("second", "SR", "the other baseline pattern");
const TARGET: PatternOption = option("target", "8MiB", "bytes that the offsets cover");
const SHIFT: PatternOption = option("shift", "512B", "bytes that every offset is shifted by");
const PARTITIONS: PatternOption = option("partitions", "4", "parts of the range, in turn");
const INCREMENT: PatternOption =
    option("increment", "-1", "requests from one to the next: -1 walks back, 0 stays");
const DEGREE: PatternOption = option("degree", "4", "processes, each on its part of the range");
const RATIO: PatternOption =
    option("ratio", "4", "requests of the first pattern per one of the second");
const PAUSE: PatternOption = option("pause-ms", "10", "pause after each request, ms");
const BURST_PAUSE: PatternOption = option("pause-ms", "100", "pause after each burst, ms");
const BURST: PatternOption = option("burst", "10", "requests per burst");

/// The table.
pub(super) const PATTERNS: &[NamedPattern] = &[
    NamedPattern {
        name: "uflip-granularity",
        what: "uFLIP 1: a baseline pattern with another request size",
        options: &[BASE, RATE, SIZE, RANGE],
        build: |options| one(options, stream(options, "data", options.text("base"))?),
    },
    NamedPattern {
        name: "uflip-alignment",
        what: "uFLIP 2: a baseline pattern whose offsets are shifted off their alignment",
        options: &[BASE, RATE, SIZE, RANGE, SHIFT],
        build: |options| {
            let mut stream = stream(options, "data", options.text("base"))?;
            stream.start_bytes = options.bytes("shift")?;
            one(options, stream)
        },
    },
    NamedPattern {
        name: "uflip-locality",
        what: "uFLIP 3: a baseline pattern confined to a smaller target",
        options: &[BASE, RATE, SIZE, TARGET],
        build: |options| {
            let mut stream = stream(options, "data", options.text("base"))?;
            stream.range_bytes = options.bytes("target")?;
            one(options, stream)
        },
    },
    NamedPattern {
        name: "uflip-partitioning",
        what: "uFLIP 4: sequential in each of several partitions, in turn",
        options: &[option("base", "SW", "SR or SW"), RATE, SIZE, RANGE, PARTITIONS],
        build: |options| {
            let mut stream = stream(options, "data", options.text("base"))?;
            stream.addresses = Addresses::Partitioned { partitions: options.count("partitions")? };
            one(options, stream)
        },
    },
    NamedPattern {
        name: "uflip-order",
        what: "uFLIP 5: offsets in linear order with an increment: reverse, in place, with gaps",
        options: &[option("base", "SW", "SR or SW"), RATE, SIZE, RANGE, INCREMENT],
        build: |options| {
            let mut stream = stream(options, "data", options.text("base"))?;
            stream.addresses =
                Addresses::Strided { stride: options.parse("increment", "a whole number")? };
            one(options, stream)
        },
    },
    NamedPattern {
        name: "uflip-parallelism",
        what: "uFLIP 6: several processes, each a baseline pattern on its own part of the range",
        options: &[BASE, RATE, SIZE, RANGE, DEGREE],
        build: parallelism,
    },
    NamedPattern {
        name: "uflip-mix",
        what: "uFLIP 7: two baseline patterns in a ratio, each on its half of the range",
        options: &[BASE, SECOND, RATE, SIZE, RANGE, RATIO],
        build: mix,
    },
    NamedPattern {
        name: "uflip-pause",
        what: "uFLIP 8: a baseline pattern with a pause after every request",
        options: &[BASE, RATE, SIZE, RANGE, PAUSE],
        build: |options| bursts(options, 1),
    },
    NamedPattern {
        name: "uflip-bursts",
        what: "uFLIP 9: a baseline pattern in bursts with a pause after each",
        options: &[BASE, RATE, SIZE, RANGE, BURST, BURST_PAUSE],
        build: |options| bursts(options, options.count("burst")?),
    },
];

/// A stream of a baseline pattern.
fn stream(options: &Options, name: &str, base: &str) -> Result<StreamLoad, Invalid> {
    let (addresses, read_share) = match base {
        "SR" => (Addresses::Sequential, 1.0),
        "RR" => (Addresses::Random, 1.0),
        "SW" => (Addresses::Sequential, 0.0),
        "RW" => (Addresses::Random, 0.0),
        other => {
            let cause = format!("is '{other}', not one of SR, RR, SW or RW");
            return Err(Invalid::new("base", &cause));
        }
    };
    let range_bytes = if options.text("range").is_empty() { 0 } else { options.bytes("range")? };
    Ok(StreamLoad {
        name: name.to_owned(),
        share: 1.0,
        ops: Ops::independent(read_share),
        start_bytes: 0,
        range_bytes,
        slot_bytes: 0,
        addresses,
        sizes: vec![SizeShare { size_bytes: options.size("size")?, share: 1.0 }],
    })
}

fn one(options: &Options, stream: StreamLoad) -> Result<Workload, Invalid> {
    let arrivals = Arrivals::Fixed { rate_per_s: options.rate()? };
    Ok(workload(arrivals, Turns::Random, vec![stream]))
}

fn workload(arrivals: Arrivals, turns: Turns, streams: Vec<StreamLoad>) -> Workload {
    named(vec![Phase { share: 1.0, arrivals, turns, streams }], 10_000, &[SOURCE])
}

fn parallelism(options: &Options) -> Result<Workload, Invalid> {
    let degree = options.count("degree")?.clamp(1, 1024);
    let mut streams = Vec::new();
    for process in 0..degree {
        let mut stream = stream(options, &format!("process{process}"), options.text("base"))?;
        stream.range_bytes /= u64::from(degree);
        stream.start_bytes = u64::from(process) * stream.range_bytes;
        streams.push(stream);
    }
    Ok(workload(Arrivals::Fixed { rate_per_s: options.rate()? }, Turns::Rotate, streams))
}

fn mix(options: &Options) -> Result<Workload, Invalid> {
    let mut first = stream(options, "first", options.text("base"))?;
    let mut second = stream(options, "second", options.text("second"))?;
    first.share = f64::from(options.count("ratio")?.max(1));
    first.range_bytes /= 2;
    second.range_bytes = first.range_bytes;
    second.start_bytes = first.range_bytes;
    let arrivals = Arrivals::Fixed { rate_per_s: options.rate()? };
    Ok(workload(arrivals, Turns::Rotate, vec![first, second]))
}

fn bursts(options: &Options, burst: u32) -> Result<Workload, Invalid> {
    let (rate_per_s, pause_ms) = (options.rate()?, options.number("pause-ms")?);
    let stream = stream(options, "data", options.text("base"))?;
    Ok(workload(Arrivals::Bursts { rate_per_s, burst, pause_ms }, Turns::Random, vec![stream]))
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use crate::{Op, Trace};

    fn made(pattern: &str, given: &[(&str, &str)], count: u64) -> Trace {
        let given: Vec<_> = given.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let workload = find(pattern).expect("known").workload(&given).expect("sound");
        workload.generate(1, count).expect("sound")
    }

    const K32: u64 = 32 << 10;

    #[test]
    fn each_varies_what_it_says() {
        assert_eq!(made("uflip-granularity", &[("size", "8KiB")], 5).len, [8192; 5]);
        let shifted = made("uflip-alignment", &[("shift", "1KiB")], 50);
        assert!(shifted.offset.iter().all(|offset| offset % K32 == 1024));
        assert!(made("uflip-locality", &[("target", "64KiB")], 50).extent().0 <= 64 << 10);
        let parts = made("uflip-partitioning", &[("partitions", "2")], 4).offset;
        assert_eq!(parts, [0, 1 << 29, K32, (1 << 29) + K32]);
        let reverse = made("uflip-order", &[], 3).offset;
        assert_eq!(reverse, [0, (1 << 30) - K32, (1 << 30) - 2 * K32]);
        assert_eq!(made("uflip-order", &[("increment", "0")], 3).offset, [0; 3]);
        let parallel = made("uflip-parallelism", &[("base", "SR"), ("degree", "2")], 4);
        assert_eq!((parallel.offset, parallel.stream), (parts, vec![0, 1, 0, 1]));
        let mixed = made("uflip-mix", &[("ratio", "2")], 6);
        assert_eq!(mixed.stream, [0, 0, 1, 0, 0, 1]);
        assert_eq!((mixed.op[0], mixed.op[2]), (Op::Write, Op::Read));
        assert_eq!(made("uflip-pause", &[], 3).due, [0, 11_000_000, 22_000_000]);
        let bursts = made("uflip-bursts", &[("burst", "2")], 4).due;
        assert_eq!(bursts, [0, 1_000_000, 102_000_000, 103_000_000]);
    }
}
