//! One stream, one kind of address.

use super::{ARRIVALS, NamedPattern, Options, PatternOption, RANGE, RATE, READS, SIZE, option};
use crate::generate::Invalid;
use crate::generate::{Addresses, Hotspot, Ops, Phase, SizeShare, StreamLoad, Turns, Workload};

/// The table.
pub(super) const PATTERNS: &[NamedPattern] = &[
    NamedPattern {
        name: "random",
        what: "uniformly random requests",
        options: &[RATE, ARRIVALS, SIZE, RANGE, READS, TRIMS],
        build: |options| workload(options, Addresses::Random),
    },
    NamedPattern {
        name: "sequential",
        what: "one request behind the other",
        options: &[RATE, ARRIVALS, SIZE, RANGE, READS, TRIMS],
        build: |options| workload(options, Addresses::Sequential),
    },
    NamedPattern {
        name: "strided",
        what: "every request a fixed number of requests after the one before",
        options: &[RATE, ARRIVALS, SIZE, RANGE, READS, TRIMS, STRIDE],
        build: |options| {
            workload(
                options,
                Addresses::Strided { stride: options.parse("stride", "a whole number")? },
            )
        },
    },
    NamedPattern {
        name: "zipf",
        what: "popularity of rank r proportional to r^-exponent, spread over the range",
        options: &[RATE, ARRIVALS, SIZE, RANGE, READS, TRIMS, EXPONENT],
        build: |options| {
            let exponent = options.number("exponent")?;
            workload(options, Addresses::Zipf { exponent, permuted: true })
        },
    },
    NamedPattern {
        name: "hot-cold",
        what: "a share of the accesses goes to a share of the range",
        options: &[RATE, ARRIVALS, SIZE, RANGE, READS, TRIMS, HOT_ACCESSES, HOT_RANGE],
        build: |options| {
            let access_share = options.number("hot-accesses")?;
            let range_share = options.number("hot-range")?;
            workload(options, Addresses::HotCold { access_share, range_share })
        },
    },
    NamedPattern {
        name: "hotspots",
        what: "equal hotspots, evenly spread, on top of uniform requests",
        options: &[RATE, ARRIVALS, SIZE, RANGE, READS, TRIMS, SPOTS, HOT_ACCESSES, HOT_RANGE],
        build: |options| {
            let count = options.count("spots")?.clamp(1, 1024);
            let spot = |index| Hotspot {
                start_share: f64::from(index) / f64::from(count),
                width_share: options.number("hot-range").unwrap_or(0.2) / f64::from(count),
                access_share: options.number("hot-accesses").unwrap_or(0.8) / f64::from(count),
            };
            options.number("hot-range").and(options.number("hot-accesses"))?;
            workload(options, Addresses::Hotspots { spots: (0..count).map(spot).collect() })
        },
    },
];

const TRIMS: PatternOption =
    option("trims", "0", "share of trims, 0 to 1; the rest of reads and trims are writes");
const STRIDE: PatternOption =
    option("stride", "16", "requests from one to the next; may be negative");
const EXPONENT: PatternOption = option("exponent", "0.99", "exponent of the popularity");
const HOT_ACCESSES: PatternOption = option("hot-accesses", "0.8", "share of the accesses");
const HOT_RANGE: PatternOption = option("hot-range", "0.2", "share of the range");
const SPOTS: PatternOption = option("spots", "4", "hotspots");

fn workload(options: &Options, addresses: Addresses) -> Result<Workload, Invalid> {
    let stream = StreamLoad {
        name: "data".to_owned(),
        share: 1.0,
        ops: Ops {
            trim_share: options.number("trims")?,
            ..Ops::independent(options.number("reads")?)
        },
        start_bytes: 0,
        range_bytes: options.bytes("range")?,
        slot_bytes: 0,
        addresses,
        sizes: vec![SizeShare { size_bytes: options.size("size")?, share: 1.0 }],
    };
    let arrivals = options.arrivals()?;
    let phase = Phase { share: 1.0, arrivals, turns: Turns::Random, streams: vec![stream] };
    Ok(named(vec![phase], 100_000, &[]))
}

/// A workload that its pattern will give name and description.
pub(super) fn named(phases: Vec<Phase>, requests: u64, sources: &[&str]) -> Workload {
    Workload {
        name: String::new(),
        description: String::new(),
        sources: sources.iter().map(|source| (*source).to_owned()).collect(),
        requests,
        phases,
    }
}

#[cfg(test)]
mod tests {
    use super::super::find;

    fn offsets(pattern: &str, given: &[(&str, &str)], count: u64) -> Vec<u64> {
        let given: Vec<_> = given.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let workload = find(pattern).expect("known").workload(&given).expect("sound");
        workload.generate(1, count).expect("sound").offset
    }

    #[test]
    fn patterns_do_what_their_names_say() {
        assert_eq!(offsets("sequential", &[("range", "12KiB")], 4), [0, 4096, 8192, 0]);
        assert_eq!(offsets("strided", &[("stride", "2"), ("size", "1KiB")], 3), [0, 2048, 4096]);
        let hot = offsets("hot-cold", &[], 20_000);
        let share = hot.iter().filter(|offset| **offset < (1 << 30) / 5).count() as f64 / 2e4;
        assert!((share - 0.8).abs() < 0.02, "{share}");
        let mut zipf = offsets("zipf", &[], 20_000);
        zipf.sort_unstable();
        let longest = zipf.chunk_by(|a, b| a == b).map(<[u64]>::len).max().expect("some");
        // 262,144 ranks: the first has a share of 1 / (sum of k^-0.99), about 7.3 %.
        assert!((1_200..1_700).contains(&longest), "{longest}");
        // The second of four spots, a twentieth of the range, has a fifth of 80 % and of the rest.
        let spots = offsets("hotspots", &[], 20_000);
        let quarter = (1u64 << 30) / 4;
        let inside = |at: &&u64| (quarter..quarter + (1 << 30) / 20).contains(*at);
        let share = spots.iter().filter(inside).count() as f64 / 2e4;
        assert!((share - 0.21).abs() < 0.02, "{share}");
    }
}
