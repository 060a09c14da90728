//! Streams against the closed forms of logs that mix hot and cold data and of logs that do not.
//!
//! Greedy cleaning that looks at all blocks alike gives every isolated stream the same fill, so
//! that two streams amplify as one of uniform data would; shares of the blocks make them the two
//! logs of theory; a stream that is overwritten in order dies block by block and costs nothing.

use model::flash::reference::configuration_a;
use model::flash::theory::{self, Class};
use model::flash::{FlashDevice, StreamCounts};
use profile::flash::{
    AllocationScheme, FlashParameters, GcPolicy, Geometry, Isolation, StreamParameters,
};
use stats::rng::Rng;
use trace::{Op, Request};
use units::{Bytes, Nanos};

use super::support::device;

const B: u32 = 64;

/// One plane of `blocks` in use, with two streams.
fn plane(policy: GcPolicy, blocks: u32, over_provisioning: f64) -> FlashParameters {
    let mut parameters = configuration_a();
    parameters.geometry = Geometry {
        channels: 1,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: blocks + 3,
        pages_per_block: B,
        page_bytes: 4096,
    };
    let rho = theory::fill_factor(over_provisioning);
    parameters.logical_pages = (f64::from(blocks * B) * rho).round() as u32;
    parameters.gc.policy = policy;
    parameters.gc.low_blocks = 2;
    parameters.gc.separate = false;
    parameters.host_streams = 2;
    parameters.streams.isolation = Isolation::Persistent;
    parameters
}

/// Writes pages that `draw` gives with their streams, each when the device is idle.
fn write(
    device: &mut dyn FlashDevice,
    now: &mut u64,
    count: u64,
    mut draw: impl FnMut(u64) -> (u32, u16),
) {
    for k in 0..count {
        *now += 1_000_000_000;
        let (page, stream) = draw(k);
        let offset = Bytes(u64::from(page) * 4096);
        let request = Request { due: Nanos(*now), offset, len: 4096, op: Op::Write, stream };
        device.submit(Nanos(*now), &request);
    }
}

/// The device after it was filled and written over `rounds` times, and as often again, counted.
fn written(
    parameters: &FlashParameters,
    rounds: u64,
    stream_of: impl Fn(u32) -> u16,
    mut draw: impl FnMut(u64) -> u32,
) -> Box<dyn FlashDevice> {
    let mut device = device(parameters);
    let pages = u64::from(parameters.logical_pages);
    let mut now = 0;
    write(device.as_mut(), &mut now, pages, |k| (k as u32, stream_of(k as u32)));
    let mut next = |k| {
        let page = draw(k);
        (page, stream_of(page))
    };
    write(device.as_mut(), &mut now, rounds * pages, &mut next);
    device.reset_counts();
    write(device.as_mut(), &mut now, rounds * pages, &mut next);
    device.audit();
    device
}

/// Pages of which the share `hot` gets the share `1 - hot` of the writes: where the cold ones
/// begin, and the draw.
fn hot_and_cold(parameters: &FlashParameters, hot: f64) -> (u32, impl FnMut(u64) -> u32 + use<>) {
    let pages = u64::from(parameters.logical_pages);
    let cold_from = (pages as f64 * hot).round() as u64;
    let mut rng = Rng::new(5);
    let draw = move |_| {
        let cold = rng.unit() < hot;
        (if cold { rng.between(cold_from, pages - 1) } else { rng.below(cold_from) }) as u32
    };
    (cold_from as u32, draw)
}

fn classes(hot: f64) -> [Class; 2] {
    [Class { space: hot, writes: 1.0 - hot }, Class { space: 1.0 - hot, writes: hot }]
}

fn check(what: &str, found: f64, expected: f64) {
    let error = found / expected - 1.0;
    println!("{what}: {found:.4}, theory {expected:.4}, {:+.2} %", error * 1e2);
    assert!(error.abs() < 0.02, "{what}: {found}, theory {expected}");
}

fn fill_factor(device: &dyn FlashDevice, parameters: &FlashParameters, unseen_pages: f64) -> f64 {
    let in_use = device.counts().in_use_pages_mean().expect("cleaning");
    f64::from(parameters.logical_pages) / (in_use - unseen_pages)
}

/// What the streams counted is what the device counted.
fn check_sums(device: &dyn FlashDevice) -> Vec<StreamCounts> {
    let streams = device.stream_counts();
    let sum = |of: fn(&StreamCounts) -> u64| streams.iter().map(of).sum::<u64>();
    let counts = device.counts();
    assert_eq!(sum(|stream| stream.host_pages), counts.host_pages);
    assert_eq!(sum(|stream| stream.moved_pages), counts.moved_pages);
    assert_eq!(sum(|stream| stream.erased_blocks), counts.erased_blocks);
    streams
}

#[test]
fn two_streams_with_their_best_shares_are_two_logs() {
    for (hot, over_provisioning) in [(0.2, 0.15), (0.2, 0.28), (0.1, 0.28)] {
        let mut parameters = plane(GcPolicy::Fifo, 1024, over_provisioning);
        let rho = theory::fill_factor(over_provisioning);
        let (_, share) = theory::two_logs(rho, classes(hot));
        let (hot_spare, cold_spare) =
            (over_provisioning * share, over_provisioning * (1.0 - share));
        parameters.streams.block_shares = vec![hot + hot_spare, 1.0 - hot + cold_spare];
        let (cold_from, draw) = hot_and_cold(&parameters, hot);
        let device = written(&parameters, 20, |page| u16::from(page >= cold_from), draw);
        // A block of a log is as old as its middle page when it is cleaned, in both logs.
        let rho = fill_factor(device.as_ref(), &parameters, f64::from(B));
        let (expected, _) = theory::two_logs(rho, classes(hot));
        check("two logs", device.counts().write_amplification(), expected);
        let mixed = theory::one_log(rho, &classes(hot));
        assert!(expected < 0.75 * mixed, "separation is worth it: {expected}, mixed {mixed}");
        check_sums(device.as_ref());
    }
}

#[test]
fn isolated_streams_under_greedy_cleaning_amplify_as_uniform_data() {
    for over_provisioning in [0.15, 0.28] {
        let parameters = plane(GcPolicy::Greedy, 1024, over_provisioning);
        let (cold_from, draw) = hot_and_cold(&parameters, 0.2);
        let device = written(&parameters, 20, |page| u16::from(page >= cold_from), draw);
        let rho = fill_factor(device.as_ref(), &parameters, 0.0);
        let uniform = theory::greedy(rho, B);
        check("isolated", device.counts().write_amplification(), uniform);
        for stream in &check_sums(device.as_ref())[..2] {
            check("each of them", stream.write_amplification(), uniform);
        }
    }
}

/// A quarter of the pages are a log that is written round and round, with half of the writes; gives
/// the device and the pages of the log.
fn beside_a_log(parameters: &FlashParameters) -> (Box<dyn FlashDevice>, u32) {
    let pages = parameters.logical_pages;
    let log = pages / 4;
    let (mut rng, mut head) = (Rng::new(3), 0);
    let draw = |k: u64| {
        if k.is_multiple_of(2) {
            return rng.between(u64::from(log), u64::from(pages) - 1) as u32;
        }
        head = (head + 1) % log;
        head
    };
    (written(parameters, 12, |page| u16::from(page < log), draw), log)
}

#[test]
fn a_log_in_a_stream_of_its_own_costs_nothing() {
    let mut parameters = plane(GcPolicy::Greedy, 1024, 0.15);
    // Room for the log, the block that is written and the one that dies.
    let share = (f64::from(parameters.logical_pages / 4) / f64::from(B) + 3.0) / 1024.0;
    parameters.streams.block_shares = vec![1.0 - share, share];
    let (device, log) = beside_a_log(&parameters);
    let streams = check_sums(device.as_ref());
    assert_eq!(streams[1].moved_pages, 0, "the log dies block by block");
    assert_eq!(streams[1].host_pages * 2, device.counts().host_pages);
    let in_use = device.counts().in_use_pages_mean().expect("cleaning");
    let data = f64::from(parameters.logical_pages - log);
    let expected = theory::greedy(data / (in_use * (1.0 - share)), B);
    check("data beside a log", streams[0].write_amplification(), expected);
    let together = device.counts().write_amplification();
    check("together", together, 0.5 + 0.5 * expected);
    // Without shares greedy cleaning takes the block that is dying before it is dead.
    parameters.streams.block_shares.clear();
    let (greedy, _) = beside_a_log(&parameters);
    assert!(check_sums(greedy.as_ref())[1].moved_pages > 0);
    assert!(greedy.counts().write_amplification() > 1.1 * together);
}

#[test]
fn every_stream_has_its_reclaim_units() {
    let mut parameters = plane(GcPolicy::Greedy, 64, 0.3);
    parameters.gc.separate = true;
    let mut device = device(&parameters);
    let mut now = 0;
    // Three streams on two handles: the third shares the first.
    write(device.as_mut(), &mut now, 3 * u64::from(B), |k| (k as u32, (k % 3) as u16));
    let streams = device.stream_counts();
    let units: Vec<_> = streams.iter().map(|own| (own.host_pages, own.opened_blocks)).collect();
    assert_eq!(units, [(128, 2), (64, 1), (0, 0)]);
    // Pages of a stream share no block with those of another.
    let blocks = |stream: u32| -> Vec<u32> {
        let own = (0..3 * B).filter(|lpn| lpn % 3 % 2 == stream);
        own.map(|lpn| device.locate(lpn).expect("written") / B).collect()
    };
    assert!(blocks(0).iter().all(|block| !blocks(1).contains(block)));
}

#[test]
fn impossible_streams_are_refused() {
    let good = plane(GcPolicy::Fifo, 64, 0.3);
    let with = |isolation, shares: &[f64], policy| {
        let mut parameters = good.clone();
        parameters.streams = StreamParameters { isolation, block_shares: shares.to_vec() };
        parameters.gc.policy = policy;
        parameters.allocation = AllocationScheme::RoundRobin;
        parameters.check().err().map(|error| error.to_string())
    };
    let fifo = GcPolicy::Fifo;
    assert_eq!(with(Isolation::Persistent, &[1.0, 3.0], fifo), None);
    for (isolation, shares, policy, expected) in [
        (Isolation::Persistent, &[1.0][..], fifo, "stream_shares: give one share for each of 2"),
        (Isolation::Persistent, &[1.0, 0.0], fifo, "stream_shares: a share is above zero"),
        (Isolation::Initial, &[1.0, 1.0], fifo, "stream_shares: moved pages are in no stream"),
        (
            Isolation::Persistent,
            &[1.0, 1.0],
            GcPolicy::CostBenefit,
            "stream_shares: the policy within a stream",
        ),
    ] {
        let found = with(isolation, shares, policy).expect(expected);
        assert!(found.starts_with(expected), "{found}");
    }
}
