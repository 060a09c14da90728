//! Write amplification of a log that cleans itself.
//!
//! Closed forms are solved here anew, by fixed-point iteration. A fill is live blocks over those
//! of segments in use: the segments that cleaning keeps free hold nothing and are counted out.

use host::file_system::log_structured::segments::{Cleaning, Counts, Log, Policy, Shape};
use stats::rng;

/// Segments that cleaning keeps free.
const RESERVE: u32 = 2;

fn log(segments: u32, segment_blocks: u32, logs: usize, policy: Policy) -> Log {
    let shape = Shape { segments, segment_blocks, logs, holds_dead: false };
    let reserved_segments = if logs == 1 { RESERVE } else { logs as u32 + 1 };
    Log::new(shape, Cleaning { policy, reserved_segments, batch: 1 })
}

/// Fills `log` with `live` blocks, overwrites `pick(turn)` until `turns` are over, and counts the
/// last half.
fn steady(log: &mut Log, live: u32, turns: u64, pick: impl Fn(u64) -> u32) -> Counts {
    let mut now_ns = 0;
    let mut write = |log: &mut Log, block| {
        now_ns += 1;
        log.write(block, now_ns, |_, _| {}).expect("the log is not full");
    };
    (0..live).for_each(|block| write(log, block));
    (0..turns / 2).for_each(|turn| write(log, pick(turn)));
    let before = log.counts();
    (turns / 2..turns).for_each(|turn| write(log, pick(turn)));
    let after = log.counts();
    Counts {
        user_blocks: after.user_blocks - before.user_blocks,
        moved_blocks: after.moved_blocks - before.moved_blocks,
        cleaned_segments: after.cleaned_segments - before.cleaned_segments,
    }
}

fn amplification(counts: Counts) -> f64 {
    (counts.user_blocks + counts.moved_blocks) as f64 / counts.user_blocks as f64
}

/// `u = exp(-a (1 - u))`, the live share of a segment that is cleaned first in, first out under
/// uniform overwrites, `a` the inverse fill (Menon and Robinson; Desnoyers 2012).
fn first_in_first_out(fill: f64) -> f64 {
    let mut u = 0.0_f64;
    for _ in 0..10_000 {
        u = (-(1.0 - u) / fill).exp();
    }
    u
}

fn uniform(policy: Policy, segments: u32, segment_blocks: u32, share: f64) -> Counts {
    let live = (f64::from(segments * segment_blocks) * share) as u32;
    let turns = 12 * u64::from(segments * segment_blocks);
    let pick = |turn| (rng::at(7, turn) % u64::from(live)) as u32;
    steady(&mut log(segments, segment_blocks, 1, policy), live, turns, pick)
}

/// Checks an amplification against what theory or a simulation says, within 3 %.
fn check(what: &str, found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.03, "{what}: {found:.3}, not {expected:.3}");
}

#[test]
fn first_in_first_out_is_the_closed_form() {
    for (fill, printed) in [
        (0.50, 1.255),
        (0.60, 1.480),
        (0.70, 1.876),
        (0.75, 2.201),
        (0.80, 2.693),
        (0.85, 3.519),
        (0.90, 5.179),
        (0.95, 10.172),
    ] {
        let form = 1.0 / (1.0 - first_in_first_out(fill));
        assert!((form - printed).abs() < 0.002, "{fill}: {form}, printed {printed}");
        let segments = 512;
        let share = fill * f64::from(segments - RESERVE) / f64::from(segments);
        let counts = uniform(Policy::OldestFirst, segments, 64, share);
        check(&format!("fill {fill}"), amplification(counts), form);
    }
}

#[test]
fn the_write_cost_of_whole_segments_is_two_over_one_less_u() {
    // Rosenblum and Ousterhout 1992: segments are read whole, live blocks written back.
    for fill in [0.6, 0.8, 0.9] {
        let counts = uniform(Policy::OldestFirst, 512, 64, fill);
        let read = (counts.cleaned_segments * 64) as f64;
        let (new, moved) = (counts.user_blocks as f64, counts.moved_blocks as f64);
        let cost = (read + moved + new) / new;
        check("cost by u of what was cleaned", cost, 2.0 / (1.0 - moved / read));
        let u = first_in_first_out(fill * 512.0 / f64::from(512 - RESERVE));
        check("cost by u of the closed form", cost, 2.0 / (1.0 - u));
    }
}

#[test]
fn greedy_is_what_was_simulated() {
    // 256 segments, two of them held free, by an independent program.
    for (policy, blocks, share, simulated) in [
        (Policy::OldestFirst, 64, 0.8, 2.785),
        (Policy::OldestFirst, 256, 0.8, 2.782),
        (Policy::Greedy, 16, 0.8, 2.430),
        (Policy::Greedy, 64, 0.8, 2.680),
        (Policy::Greedy, 256, 0.8, 2.755),
        (Policy::OldestFirst, 64, 0.9, 5.572),
        (Policy::Greedy, 64, 0.9, 5.168),
    ] {
        let found = amplification(uniform(policy, 256, blocks, share));
        check(&format!("{policy:?}, {blocks} blocks, {share} live"), found, simulated);
    }
}

/// 90 % of the writes go to the first 10 % of `live` blocks.
fn hot_and_cold(live: u32) -> impl Fn(u64) -> u32 {
    let hot = u64::from(live / 10);
    move |turn| {
        let (class, draw) = (rng::at(11, turn), rng::at(12, turn));
        let cold = u64::from(live) - hot;
        (if class % 10 < 9 { draw % hot } else { hot + draw % cold }) as u32
    }
}

#[test]
fn classes_in_logs_of_their_own_obey_the_form_each() {
    // 10 % of the data get 90 % of the writes. Each class has half of the spare space.
    let (segments, fill) = (1024_f64, 0.8);
    let mut sum = 0.0;
    let mut form = 0.0;
    for (space, writes) in [(0.1, 0.9), (0.9, 0.1)] {
        let spare = 0.5 * (1.0 - fill);
        let own = (segments * (space * fill + spare)).round();
        let share = segments * space * fill / (own + f64::from(RESERVE));
        let found = uniform(Policy::OldestFirst, own as u32 + RESERVE, 64, share);
        sum += writes * amplification(found);
        form += writes / (1.0 - first_in_first_out(segments * space * fill / own));
    }
    check("hot and cold apart", sum, form);
    let mixed = log_of_two_classes(1, Policy::OldestFirst);
    assert!(sum < 0.75 * mixed, "apart {sum}, mixed {mixed}");
}

fn log_of_two_classes(logs: usize, policy: Policy) -> f64 {
    let (segments, blocks) = (512, 64);
    let live = (f64::from(segments * blocks) * 0.8) as u32;
    let turns = 20 * u64::from(segments * blocks);
    let mut log = log(segments, blocks, logs, policy);
    amplification(steady(&mut log, live, turns, hot_and_cold(live)))
}

#[test]
fn first_in_first_out_of_two_classes_is_the_closed_form() {
    // A = sum of r_i / (1 - exp(-(r_i / f_i) a / A)): class i has the share f_i of the data and
    // r_i of the writes, and every place is reached again after the same number of writes.
    let inverse = f64::from(512 - RESERVE) / (512.0 * 0.8);
    let mut form = 2.0;
    for _ in 0..10_000 {
        let hits =
            |space: f64, writes: f64| writes / -(-(writes / space) * inverse / form).exp_m1();
        form = hits(0.1, 0.9) + hits(0.9, 0.1);
    }
    check("two classes in one log", log_of_two_classes(1, Policy::OldestFirst), form);
}

#[test]
fn cost_benefit_and_sorting_by_age_beat_greedy_on_hot_and_cold_data() {
    let greedy = log_of_two_classes(1, Policy::Greedy);
    let sorted = log_of_two_classes(2, Policy::Greedy);
    let cost_benefit = log_of_two_classes(2, Policy::CostBenefit);
    // Rosenblum and Ousterhout: greedy on hot and cold data is worse than on uniform ones, and
    // cost-benefit up to 50 % below it.
    let even = amplification(uniform(Policy::Greedy, 512, 64, 0.8));
    assert!(greedy > even, "greedy {greedy}, on uniform data {even}");
    assert!(cost_benefit < 0.8 * greedy, "cost-benefit {cost_benefit}, greedy {greedy}");
    assert!(sorted < greedy, "sorted by age {sorted}, greedy {greedy}");
}
