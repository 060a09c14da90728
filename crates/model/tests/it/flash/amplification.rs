//! Write amplification against its closed forms: `model::flash::theory`.
//!
//! One plane is written over at random until its state no longer depends on the fill, then its
//! amplification is counted and compared with the form at the fill factor that the device reports.
//! Finite planes differ from infinitely many blocks by terms of the order of one over their blocks,
//! which is why the planes are large. The quick set has a few points, `SLOW=1` the whole table and
//! points between.

use model::flash::FlashDevice;
use model::flash::reference::configuration_a;
use model::flash::theory::{self, Class};
use profile::flash::{FlashParameters, GcPolicy, Geometry};
use stats::rng::Rng;
use trace::{Op, Request};
use units::{Bytes, Nanos};

use super::support::{device, slow};

/// Times that a device is written over at random before counting begins, and again while it lasts:
/// the fill decays exponentially in them.
const ROUNDS: f64 = 5.0;

/// One plane whose blocks in use have the over-provisioning `T / U - 1`, but for the few that
/// cleaning keeps free.
fn plane(policy: GcPolicy, b: u32, blocks: u32, over_provisioning: f64) -> FlashParameters {
    let mut parameters = configuration_a();
    parameters.geometry = Geometry {
        channels: 1,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: blocks + 3,
        pages_per_block: b,
        page_bytes: 4096,
    };
    parameters.logical_pages =
        (f64::from(blocks * b) * theory::fill_factor(over_provisioning)).round() as u32;
    parameters.gc.policy = policy;
    parameters.gc.low_blocks = 2;
    // New and moved pages in one log, as the theory has it.
    parameters.gc.separate = false;
    parameters
}

/// Writes pages that `page` draws, each when the device is idle.
fn write(device: &mut dyn FlashDevice, now: &mut u64, count: u64, mut page: impl FnMut() -> u32) {
    for _ in 0..count {
        *now += 1_000_000_000;
        let offset = Bytes(u64::from(page()) * 4096);
        let request = Request { due: Nanos(*now), offset, len: 4096, op: Op::Write, stream: 0 };
        device.submit(Nanos(*now), &request);
    }
}

/// Amplification and fill factor after `rounds` times the capacity, over as much again.
fn measured(parameters: &FlashParameters, rounds: f64, draw: impl Fn(&mut Rng) -> u32) -> [f64; 2] {
    let mut device = device(parameters);
    let mut rng = Rng::new(5);
    let mut now = 0;
    let pages = u64::from(parameters.logical_pages);
    let mut next = 0;
    write(device.as_mut(), &mut now, pages, || {
        next += 1;
        next - 1
    });
    let count = (pages as f64 * rounds) as u64;
    write(device.as_mut(), &mut now, count, || draw(&mut rng));
    device.reset_counts();
    write(device.as_mut(), &mut now, count, || draw(&mut rng));
    let counts = device.counts();
    let b = f64::from(parameters.geometry.pages_per_block);
    let mut in_use = counts.in_use_pages_mean().expect("cleaning");
    if parameters.gc.policy == GcPolicy::Fifo {
        // A block of a log is as old as its middle page when it is cleaned.
        in_use -= b / 2.0;
    }
    [counts.write_amplification(), f64::from(parameters.logical_pages) / in_use]
}

fn uniform(parameters: &FlashParameters) -> impl Fn(&mut Rng) -> u32 + use<> {
    let pages = u64::from(parameters.logical_pages);
    move |rng| rng.below(pages) as u32
}

/// Measured over theoretical amplification under uniform random writes.
fn ratio(policy: GcPolicy, b: u32, blocks: u32, over_provisioning: f64) -> f64 {
    let parameters = plane(policy, b, blocks, over_provisioning);
    let [waf, rho] = measured(&parameters, ROUNDS, uniform(&parameters));
    let expected = match policy {
        GcPolicy::Fifo => theory::fifo(rho),
        GcPolicy::DChoices(d) => theory::d_choices(rho, b, d),
        _ => theory::greedy(rho, b),
    };
    println!(
        "{policy:?} b {b} OP {over_provisioning} ({:.4}): {waf:.4}, theory {expected:.4}, {:+.3} %",
        1.0 / rho - 1.0,
        (waf / expected - 1.0) * 100.0
    );
    waf / expected
}

fn check(policy: GcPolicy, b: u32, blocks: u32, over_provisioning: f64) {
    let ratio = ratio(policy, b, blocks, over_provisioning);
    assert!((ratio - 1.0).abs() < 0.01, "{policy:?} b {b} OP {over_provisioning}: {ratio}");
}

/// Blocks for half a million pages or more, and at least 1,024.
fn blocks(b: u32) -> u32 {
    (1 << 19) / b.min(512)
}

#[test]
fn amplification_is_that_of_theory() {
    for (b, over_provisioning) in [(64, 0.1), (64, 0.28), (256, 0.07), (256, 0.5)] {
        for policy in [GcPolicy::Greedy, GcPolicy::Fifo, GcPolicy::DChoices(3)] {
            check(policy, b, blocks(b), over_provisioning);
        }
    }
    check(GcPolicy::Greedy, 1024, blocks(1024), 0.2);
}

#[test]
fn amplification_is_that_of_theory_at_every_point() {
    if !slow("the whole table of amplifications") {
        return;
    }
    for over_provisioning in [0.05, 0.06, 0.07, 0.1, 0.13, 0.15, 0.2, 0.24, 0.28, 0.37, 0.5] {
        for b in [64, 256, 1024] {
            let blocks = 4 * blocks(b);
            for policy in [
                GcPolicy::Greedy,
                GcPolicy::Fifo,
                GcPolicy::DChoices(1),
                GcPolicy::DChoices(2),
                GcPolicy::DChoices(3),
                GcPolicy::DChoices(5),
                GcPolicy::DChoices(10),
            ] {
                check(policy, b, blocks, over_provisioning);
            }
        }
    }
}

/// Pages of which `hot` (a share) get the share `1 - hot` of the writes.
fn hot_and_cold(parameters: &FlashParameters, hot: f64) -> impl Fn(&mut Rng) -> u32 + use<> {
    let pages = u64::from(parameters.logical_pages);
    let hot_pages = (pages as f64 * hot).round() as u64;
    move |rng| {
        let page =
            if rng.unit() < hot { rng.between(hot_pages, pages - 1) } else { rng.below(hot_pages) };
        page as u32
    }
}

fn check_one_log(hot: f64, over_provisioning: f64, blocks: u32, rounds: f64) {
    let parameters = plane(GcPolicy::Fifo, 64, blocks, over_provisioning);
    let [waf, rho] = measured(&parameters, rounds, hot_and_cold(&parameters, hot));
    let classes =
        [Class { space: hot, writes: 1.0 - hot }, Class { space: 1.0 - hot, writes: hot }];
    let expected = theory::one_log(rho, &classes);
    let error = waf / expected - 1.0;
    println!(
        "one log {hot} OP {over_provisioning}: {waf:.4}, {expected:.4}, {:+.3} %",
        error * 1e2
    );
    assert!(error.abs() < 0.015, "hot {hot} OP {over_provisioning}: {waf}, theory {expected}");
}

/// Two planes with a log each, their spare space split best.
fn check_two_logs(hot: f64, over_provisioning: f64, blocks: u32) {
    let classes =
        [Class { space: hot, writes: 1.0 - hot }, Class { space: 1.0 - hot, writes: hot }];
    let rho = theory::fill_factor(over_provisioning);
    let (expected, share) = theory::two_logs(rho, classes);
    let waf: f64 = classes
        .iter()
        .zip([share, 1.0 - share])
        .map(|(class, part)| {
            let own = over_provisioning * part / class.space;
            // Blocks that cleaning keeps free take their share from no log; measure at the fill
            // that results and scale to the one that was asked for.
            let own_blocks = (f64::from(blocks) * class.space * (1.0 + own)).round() as u32;
            let parameters = plane(GcPolicy::Fifo, 64, own_blocks, own);
            let [waf, rho] = measured(&parameters, ROUNDS, uniform(&parameters));
            class.writes * waf * theory::fifo(theory::fill_factor(own)) / theory::fifo(rho)
        })
        .sum();
    let error = waf / expected - 1.0;
    println!(
        "two logs {hot} OP {over_provisioning}: {waf:.4}, {expected:.4}, {:+.3} %",
        error * 1e2
    );
    assert!(error.abs() < 0.015, "hot {hot} OP {over_provisioning}: {waf}, theory {expected}");
}

#[test]
fn hot_and_cold_data_amplify_as_theory_says() {
    check_one_log(0.2, 0.15, 8192, 4.0);
    check_two_logs(0.1, 0.15, 8192);
}

#[test]
fn hot_and_cold_data_amplify_as_theory_says_at_every_point() {
    if !slow("the whole table of hot and cold data") {
        return;
    }
    for over_provisioning in [0.07, 0.1, 0.15, 0.28] {
        for hot in [0.2, 0.1, 0.05] {
            check_one_log(hot, over_provisioning, 16_384, 12.0);
            check_two_logs(hot, over_provisioning, 16_384);
        }
    }
}
