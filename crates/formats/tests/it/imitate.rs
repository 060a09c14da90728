//! How near imitations come to the traces they imitate.
//!
//! Bars for an imitation of the same length: E of sizes and of gaps at most 0.02, shares of reads
//! and of streams within half a point, miss-ratio curve of an LRU cache of 4 KiB blocks within 0.02
//! in the mean. A generated database load is always held to all of them. Public excerpts are held
//! to them where they are at hand, but for a list of shortfalls with the figure that was reached,
//! which may not get worse.

use formats::{ReadOptions, read};
use trace::Trace;
use trace::generate::{OltpLike, oltp_like};
use trace::imitate::{self, Distances};

use crate::shared::sample;

/// Seeds of the imitations: a bar is held by each of them.
const SEEDS: [u64; 2] = [7, 8];
/// Traces with more requests than this are imitated with the first seed only, to save time.
const ALL_SEEDS_REQUESTS_MAX: usize = 60_000;

/// What is allowed of a trace.
#[derive(Clone, Copy)]
struct Bars {
    size_error: f64,
    gap_error: f64,
    share_points: f64,
    miss_ratio_error: f64,
}

const BARS: Bars =
    Bars { size_error: 0.02, gap_error: 0.02, share_points: 0.5, miss_ratio_error: 0.02 };

fn distances(original: &Trace, seed: u64) -> Distances {
    let fitted = imitate::fit(original, "a test").expect("fits");
    let made = fitted.generate(seed, original.count() as u64).expect("sound");
    imitate::compare(original, &made)
}

/// Whether the imitations of a trace hold bars; prints how far each is.
fn holds(name: &str, original: &Trace, bars: Bars) -> bool {
    let seeds = if original.count() > ALL_SEEDS_REQUESTS_MAX { 1 } else { SEEDS.len() };
    let held = SEEDS[..seeds].iter().filter(|seed| {
        let found = distances(original, **seed);
        println!("{name}, seed {seed}: {found:?}");
        found.size_error <= bars.size_error
            && found.gap_error <= bars.gap_error
            && found.read_share_points.abs() <= bars.share_points
            && found.stream_share_points <= bars.share_points
            && found.miss_ratio_error <= bars.miss_ratio_error
    });
    held.count() == seeds
}

#[test]
fn a_database_load_is_imitated_within_the_bars() {
    let load = oltp_like(&OltpLike { transactions: 3000, ..OltpLike::default() });
    assert!(holds("generated OLTP", &load, BARS));
}

/// Excerpts, and the bars that they are held to. Four fall short of one bar each; theirs is the
/// figure reached, rounded up in the fourth digit after the point.
const EXCERPTS: &[(&str, Bars)] = &[
    ("financial1-first10k.derived.spc.zst", Bars { miss_ratio_error: 0.0215, ..BARS }),
    ("financial1-first948.spc.zst", BARS),
    ("ms-tpcc-6999.mqsim.txt.zst", BARS),
    ("msr-hm_0-sample1000.csv.zst", BARS),
    ("systor17-sample999.csv.zst", BARS),
    ("tencent-cbs-sample50k.csv.zst", Bars { size_error: 0.045, ..BARS }),
    ("cloudphysics-113872.csv.zst", Bars { miss_ratio_error: 0.1025, ..BARS }),
    ("disksim-ascii-100k.txt.zst", BARS),
    ("disksim-ssd-iozone-100k.txt.zst", Bars { miss_ratio_error: 0.0275, ..BARS }),
    ("own-randrw70-20281.blktrace.zst", BARS),
];

#[test]
fn public_excerpts_are_imitated_as_near_as_stated() {
    let mut failed = Vec::new();
    for (name, bars) in EXCERPTS {
        let Some(path) = sample(name) else { continue };
        let original = read(&path, &ReadOptions::default()).expect("reads").trace;
        if !holds(name, &original, *bars) {
            failed.push(*name);
        }
    }
    assert!(failed.is_empty(), "beyond their bars: {failed:?}");
}
