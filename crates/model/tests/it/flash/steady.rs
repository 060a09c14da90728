//! The constructed steady state against writing it out.

use model::flash::FlashDevice;
use model::flash::reference::{Load, configuration_a};
use profile::flash::{AllocationScheme, FlashParameters, GcPolicy};

use super::support::{completions, device, slow};

/// A device of 131,072 pages in 8 planes of 128 blocks.
fn small(policy: GcPolicy) -> FlashParameters {
    let mut parameters = configuration_a();
    let geometry = &mut parameters.geometry;
    (geometry.channels, geometry.blocks_per_plane, geometry.pages_per_block) = (2, 256, 128);
    parameters.logical_pages = FlashParameters::logical_pages_at(geometry, 0.1875);
    parameters.gc.policy = policy;
    parameters.gc.low_blocks = 4;
    parameters
}

/// Amplification of each of `windows` windows of `share` of the capacity, uniform random writes.
fn windows(
    device: &mut dyn FlashDevice,
    parameters: &FlashParameters,
    (windows, share): (u64, f64),
) -> Vec<f64> {
    let requests = (f64::from(parameters.logical_pages) * share) as u64;
    let mut now = 1_000_000_000_000_000;
    let window = |seed: u64| {
        let mut load = Load::on(parameters, requests, 1e3, 0.0);
        load.seed = 100 + seed;
        device.reset_counts();
        let done = completions(device, &load.uniform(now));
        now = done.into_iter().max().expect("requests");
        device.counts().write_amplification()
    };
    (0..windows).map(window).collect()
}

fn check(policy: GcPolicy, allocation: AllocationScheme) {
    let parameters = FlashParameters { allocation, ..small(policy) };
    let mut device = device(&parameters);
    assert!(device.precondition(1.0, true, 9));
    device.audit();
    let found = windows(device.as_mut(), &parameters, (8, 0.5));
    let long_run = found[4..].iter().sum::<f64>() / 4.0;
    println!("{policy:?}: {found:?}");
    assert!((found[0] / long_run - 1.0).abs() < 0.02, "{policy:?}: {found:?}");
    device.audit();
}

#[test]
fn the_first_window_amplifies_as_the_long_run() {
    let fixed = configuration_a().allocation;
    check(GcPolicy::Greedy, fixed);
    check(GcPolicy::Fifo, fixed);
    check(GcPolicy::DChoices(2), fixed);
    check(GcPolicy::Greedy, AllocationScheme::RoundRobin);
    // No theory: written out.
    check(GcPolicy::Windowed(40), fixed);
}

#[test]
fn a_device_is_filled_to_any_level() {
    let parameters = small(GcPolicy::Greedy);
    for (fill, random) in [(0.0, true), (0.001, true), (0.3, false), (0.7, true), (1.0, false)] {
        let mut device = device(&parameters);
        device.precondition(fill, random, 1);
        device.audit();
        let pages = (f64::from(parameters.logical_pages) * fill).round() as u32;
        let written = (0..parameters.logical_pages).filter(|lpn| device.locate(*lpn).is_some());
        assert_eq!(written.count() as u32, pages);
        assert!(pages == 0 || device.locate(pages - 1).is_some());
        // A device that holds less amplifies less, and goes on working.
        let found = windows(device.as_mut(), &parameters, (2, 0.5));
        assert!(found[0] >= 1.0, "{found:?}");
        device.audit();
    }
}

/// Written out with the same pages in all, the device has the same amplification and blocks in use.
#[test]
fn construction_agrees_with_writing_it_out() {
    if !slow("writing a steady state out") {
        return;
    }
    for policy in [GcPolicy::Greedy, GcPolicy::Fifo, GcPolicy::DChoices(3)] {
        let parameters = small(policy);
        let mut constructed = device(&parameters);
        constructed.precondition(1.0, true, 3);
        let first = windows(constructed.as_mut(), &parameters, (1, 1.0))[0];
        let mut written = device(&parameters);
        let long = windows(written.as_mut(), &parameters, (12, 1.0));
        let expected = long[8..].iter().sum::<f64>() / 4.0;
        assert!((first / expected - 1.0).abs() < 0.02, "{policy:?}: {first}, not {expected}");
    }
}
