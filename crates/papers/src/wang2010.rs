//! Wang et al. 2010: a line per pattern, a write-back cache, a trace like Financial1.
//!
//! The drive that they measured is not at hand. In its place stands the same drive modelled from
//! the cell up (`mtron-pro-7500-ftl`), which the line does not know: E is of the line against it.

use model::Device;
use profile::Profile;
use profile::linear::Pattern;
use stats::error_ratio::{Comparison, compare};
use trace::{Op, Trace};

use crate::load::{KIB, Load, for_effort, mean_ms, run, shipped};
use crate::{Effort, Experiment, Found, Paper};

const PAPER: &str = "wang2010";

pub(crate) const EXPERIMENTS: &[Experiment] = &[
    Experiment { paper: PAPER, name: "trace like Financial1", run: trace },
    Experiment { paper: PAPER, name: "response time by size", run: lines },
    Experiment { paper: PAPER, name: "arithmetic", run: arithmetic },
];

const RECIPE: &str = "financial1-like";
/// Requests of the trace that are simulated: its first hours.
const REQUESTS: u64 = 300_000;

/// Mean response at each size, and how much of its variance a straight line explains.
fn lines(_: &Paper, effort: Effort) -> Vec<Found> {
    let profile = shipped("mtron-pro-7500-ftl");
    let sizes = [4, 8, 16, 32, 64, 128];
    let patterns = [
        ("sequential reads", Load::reads(Pattern::Sequential, 0)),
        ("random reads", Load::reads(Pattern::Random, 0)),
        ("sequential writes", Load::writes(Pattern::Sequential, 0).long(20_000)),
        ("random writes", Load::writes(Pattern::Random, 0).long(6000)),
    ];
    let explained = patterns.map(|(_, load)| {
        let points = sizes.map(|kib| {
            let outcome = run(&profile, 1.0, Load { bytes: kib * KIB, ..load }, effort);
            (f64::from(kib), mean_ms(&outcome))
        });
        straight(&points)
    });
    let words: Vec<String> = patterns
        .iter()
        .zip(explained)
        .map(|((name, _), share)| format!("{name} {share:.3}"))
        .collect();
    let how = format!(
        "share of the variance that a line over 4 to 128 KiB explains: {}",
        words.join(", ")
    );
    vec![Found::holds("model.linear", explained.iter().all(|share| *share > 0.95), how)]
}

/// Coefficient of determination of a straight line.
fn straight(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
    let covariance = mean(&|point| (point.0 - x) * (point.1 - y));
    covariance.powi(2)
        / (mean(&|point| (point.0 - x).powi(2)) * mean(&|point| (point.1 - y).powi(2)))
}

fn generated(effort: Effort) -> (Trace, u64) {
    let text = trace::recipe::find_shipped(RECIPE).expect("it ships");
    let recipe = trace::recipe::Recipe::from_toml(text).expect("it is sound");
    let all = recipe.to_toml().lines().find_map(|line| {
        line.strip_prefix("requests = ").and_then(|count| count.trim().parse().ok())
    });
    let trace = recipe.generate(1, Some(effort.count(REQUESTS))).expect("it was checked");
    (trace, all.unwrap_or(0))
}

/// Response times of the writes that do not follow the request before them.
fn random_writes(trace: &Trace, responses: &[u64]) -> Vec<u64> {
    let chosen = (0..trace.count()).filter(|index| is_random_write(trace, *index));
    chosen.map(|index| responses[index]).collect()
}

fn is_random_write(trace: &Trace, index: usize) -> bool {
    let follows = index > 0
        && trace.offset[index - 1] + u64::from(trace.len[index - 1]) == trace.offset[index];
    trace.op[index] == Op::Write && !follows
}

fn responses(profile: &Profile, trace: &Trace, effort: Effort) -> Vec<u64> {
    let profile = for_effort(profile.clone(), effort);
    let mut device: Box<dyn Device> = model::device(&profile, 1);
    sim::responses(device.as_mut(), trace)
}

/// Share of the responses above a millisecond.
fn long(times: &[u64]) -> f64 {
    times.iter().filter(|time| **time > 1_000_000).count() as f64 / times.len().max(1) as f64
}

fn trace(_: &Paper, effort: Effort) -> Vec<Found> {
    let (trace, records) = generated(effort);
    let writes = trace.op.iter().filter(|op| **op == Op::Write).count();
    let random = (0..trace.count()).filter(|index| is_random_write(&trace, *index)).count();
    let line = shipped("mtron-pro-7500");
    let bare = Profile { write_cache: None, ..line.clone() };
    let of = |profile: &Profile| random_writes(&trace, &responses(profile, &trace, effort));
    let (real, cached, uncached) = (of(&shipped("mtron-pro-7500-ftl")), of(&line), of(&bare));
    let [with, without]: [Comparison; 2] = [&cached, &uncached].map(|own| compare(own, &real));
    let again = compare(&of(&shipped("mtron-pro-7500-ftl")), &real).error_ratio;
    let share = |part: usize, all: usize| part as f64 / all.max(1) as f64 * 100.0;
    let how = format!(
        "{} requests of the recipe {RECIPE}: E of the line with its cache against the drive from \
         the cell up, {:.3}; without the cache {:.3}; the drive against itself {again:.3}; \
         difference of the means with the cache {:+.1} %",
        trace.count(),
        with.error_ratio,
        without.error_ratio,
        with.signed_mean_error * 100.0
    );
    vec![
        Found::value("trace.records.min", records as f64, "of the recipe"),
        Found::value("trace.write_share.min", share(writes, trace.count()), "of the recipe"),
        Found::value(
            "trace.random_share_of_writes.min",
            share(random, writes),
            "writes that do not begin where the request before them ended",
        ),
        Found::holds(
            "sim.no_cache_gap",
            long(&uncached) > 2.0 * long(&real).max(0.01),
            format!(
                "random writes above 1 ms: {:.1} % of the line without a cache, {:.1} % with it, \
                 {:.1} % of the drive from the cell up",
                long(&uncached) * 100.0,
                long(&cached) * 100.0,
                long(&real) * 100.0
            ),
        ),
        Found::value("sim.error_ratio", with.error_ratio, how),
    ]
}

fn arithmetic(paper: &Paper, _: Effort) -> Vec<Found> {
    let [writes, random] =
        ["trace.write_share.min", "trace.random_share_of_writes.min"].map(|id| paper.number(id));
    let count = paper.number("trace.records.min") * writes / 100.0 * random / 100.0;
    vec![Found::value("derived.trace.random_writes.min", count, "product of printed figures")]
}
