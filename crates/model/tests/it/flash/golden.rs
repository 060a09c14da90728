//! Golden latencies of configuration A and ceilings by arithmetic.

use model::flash::reference::{Load, configuration_a};
use profile::flash::{FlashParameters, Geometry, Timing};

use super::support::{completions, device, fill, mean_us};

fn check_near(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() < share, "found {found}, expected {expected}");
}

/// MQSim's mean response, where it is sound.
#[test]
fn a1_writes_without_cleaning_take_562_us() {
    let parameters = configuration_a();
    let trace = Load::on(&parameters, 1_000_000, 5e3, 0.0).uniform(0);
    let mut device = device(&parameters);
    check_near(mean_us(device.as_mut(), &trace), 562.0, 0.02);
    assert_eq!(device.counts().moved_pages, 0);
}

/// MQSim's mean response, where it is sound.
#[test]
fn a2_mixed_requests_after_a_fill_take_226_us() {
    let parameters = configuration_a();
    let mut device = device(&parameters);
    let idle = fill(device.as_mut(), &parameters);
    let trace = Load::on(&parameters, 900_000, 1e4, 0.7).uniform(idle);
    check_near(mean_us(device.as_mut(), &trace), 226.0, 0.02);
    assert_eq!(device.counts().unwritten_pages, 0);
}

/// Time of `pages` requests, all due at once, until the last completes.
fn burst_ns(parameters: &FlashParameters, read_share: f64, pages: u64) -> u64 {
    let mut device = device(parameters);
    let idle = fill(device.as_mut(), parameters);
    let mut trace = Load::on(parameters, pages, 1e9, read_share).sequential(idle);
    trace.due.fill(idle);
    let done = completions(device.as_mut(), &trace);
    done.into_iter().max().expect("requests") - idle
}

/// 2 channels of 3 dies each.
fn array(read_ns: f64, program_ns: f64, mt_per_s: f64) -> FlashParameters {
    let mut parameters = configuration_a();
    parameters.geometry =
        Geometry { channels: 2, chips_per_channel: 3, planes_per_die: 1, ..parameters.geometry };
    parameters.logical_pages = FlashParameters::logical_pages_at(&parameters.geometry, 0.1875);
    parameters.timing = Timing {
        read_ns: vec![read_ns],
        program_ns: vec![program_ns],
        bus_transfers_per_s: mt_per_s * 1e6,
        ..parameters.timing
    };
    parameters
}

#[test]
fn slow_dies_bound_the_rate_exactly() {
    // 512 us per program and 6 dies, the bus of 12.288 us per page never the bottleneck: the last
    // die of a channel starts two transfers late and then repeats its cycle without a gap.
    let parameters = array(50_000.0, 500_000.0, 1000.0 / 3.0);
    let cycle = 500_000 + 12_288;
    assert_eq!(burst_ns(&parameters, 0.0, 6000), 1000 * cycle + 2 * 12_288);
    assert_eq!(burst_ns(&parameters, 1.0, 6000), 1000 * (50_000 + 12_288) + 2 * 12_288);
}

#[test]
fn slow_buses_bound_the_rate_exactly() {
    // Cells take 5 us, the bus 12.288: it never stops, but for the first read or the last program.
    let parameters = array(5_000.0, 5_000.0, 1000.0 / 3.0);
    assert_eq!(burst_ns(&parameters, 0.0, 6000), 3000 * 12_288 + 5_000);
    assert_eq!(burst_ns(&parameters, 1.0, 6000), 3000 * 12_288 + 5_000);
}

#[test]
fn fast_channels_are_not_free() {
    // 4096 bytes at 3600 MT/s are 1137.7778 us per thousand pages.
    let parameters = array(0.0, 0.0, 3600.0);
    for read_share in [0.0, 1.0] {
        let ns = burst_ns(&parameters, read_share, 6000);
        assert!((3_413_332..=3_413_335).contains(&ns), "{ns} ns for 3000 pages on each channel");
    }
}

#[test]
fn the_first_and_the_last_page_are_served() {
    let parameters = configuration_a();
    let mut device = device(&parameters);
    let mut trace = Load::on(&parameters, 4, 1.0, 0.5).uniform(0);
    let last = u64::from(parameters.logical_pages - 1) * 4096;
    trace.offset.copy_from_slice(&[0, last, last, 0]);
    trace.op.copy_from_slice(&[
        trace::Op::Write,
        trace::Op::Write,
        trace::Op::Read,
        trace::Op::Read,
    ]);
    let done = completions(device.as_mut(), &trace);
    for (at, due) in done.iter().zip(&trace.due) {
        assert!(at > due, "{done:?}");
    }
    assert_eq!(device.counts().read_pages, 2);
    device.audit();
}
