//! The SLC cache by arithmetic: before, during and after the cliff, and how much is written twice.

use model::flash::FlashDevice;
use model::flash::reference::configuration_a;
use profile::flash::{
    AllocationScheme, CellKind, EventParameters, FlashParameters, GcMode, Geometry, SlcParameters,
    WhenFull,
};
use proptest::prelude::*;
use stats::rng::Rng;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use super::support::{completions, device};

/// ns per page on the channel, and of the cells.
const BUS: u64 = 12_288;
const SLC_READ: u64 = 20_000;
const SLC_PROGRAM: u64 = 200_000;
/// The three page classes of a cell, one after another: four of each in a block of 12 pages.
const BLOCK_PROGRAMS: u64 = 4 * (400_000 + 700_000 + 1_000_000);
const ERASE: u64 = 3_500_000;
/// Pages of a block that is written as SLC.
const SLC_PAGES: u64 = 4;

/// One die with 64 blocks of 12 pages of TLC, of which this many may be written as SLC.
fn tlc(slc: SlcParameters) -> FlashParameters {
    let mut parameters = configuration_a();
    parameters.geometry = Geometry {
        channels: 1,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: 64,
        pages_per_block: 12,
        page_bytes: 4096,
    };
    parameters.logical_pages = 600;
    parameters.timing.cell = CellKind::Tlc;
    parameters.timing.read_ns = vec![40_000.0, 60_000.0, 80_000.0];
    parameters.timing.program_ns = vec![400_000.0, 700_000.0, 1_000_000.0];
    parameters.timing.bus_transfers_per_s = 1e9 / 3.0;
    parameters.gc.low_blocks = 2;
    parameters.slc = Some(slc);
    parameters
}

fn cache(blocks: u32, dynamic: bool, when_full: WhenFull) -> SlcParameters {
    SlcParameters {
        blocks,
        dynamic,
        read_ns: SLC_READ as u32,
        program_ns: SLC_PROGRAM as u32,
        fold_after_ns: None,
        when_full,
    }
}

fn submit(device: &mut dyn FlashDevice, now: u64, op: Op, lpn: u32) -> u64 {
    let offset = Bytes(u64::from(lpn) * 4096);
    let request = Request { due: Nanos(now), offset, len: 4096, op, stream: 0 };
    device.submit(Nanos(now), &request).0
}

/// Writes pages that are all due at `now`; gives how long they take.
fn burst(device: &mut dyn FlashDevice, now: u64, pages: std::ops::Range<u32>) -> u64 {
    let mut trace = Trace { streams: vec![Stream { name: "a".to_owned() }], ..Trace::default() };
    for lpn in pages {
        let offset = Bytes(u64::from(lpn) * 4096);
        trace.push(Request { due: Nanos(now), offset, len: 4096, op: Op::Write, stream: 0 });
    }
    completions(device, &trace).into_iter().max().expect("pages") - now
}

/// By timelines and with an event queue, where the outcome is the same.
fn both(parameters: FlashParameters) -> [FlashParameters; 2] {
    let events = Some(EventParameters { depth: 10_000, ..EventParameters::default() });
    [parameters.clone(), FlashParameters { events, ..parameters }]
}

fn counter(device: &dyn FlashDevice, name: &str) -> u64 {
    device.counters().into_iter().find(|own| own.name == name).expect(name).value
}

/// Four blocks hold 16 pages; then every four pages wait for four to be folded.
#[test]
fn the_cliff_is_where_and_as_high_as_arithmetic_says() {
    let mut parameters = tlc(cache(4, false, WhenFull::Fold));
    parameters.slc.as_mut().expect("a cache").fold_after_ns = Some(100_000);
    both(parameters).iter().for_each(cliff);
}

fn cliff(parameters: &FlashParameters) {
    let mut device = device(parameters);
    let device = device.as_mut();
    let fast = 16 * (BUS + SLC_PROGRAM);
    assert_eq!(burst(device, 0, 0..16), fast, "before");
    assert_eq!(device.counts().folded_pages, 0);
    // 12 pages in three groups fill a dense block and empty three of the cache.
    let copies = 12 * (SLC_READ + 2 * BUS) + BLOCK_PROGRAMS;
    let slow = copies + 3 * ERASE + 12 * (BUS + SLC_PROGRAM);
    assert_eq!(burst(device, fast, 16..28), slow, "during");
    assert_eq!(burst(device, fast + slow, 28..40), slow, "as long as it lasts");
    let counts = *device.counts();
    assert_eq!((counts.host_pages, counts.folded_pages, counts.moved_pages), (40, 24, 0));
    assert!((counts.write_amplification() - 64.0 / 40.0).abs() < 1e-12, "folding counts");
    assert_eq!(counter(device, "slc_cached_pages"), 16);
    // A pause of a second: all is folded, and the cache takes 16 pages again.
    let rested = fast + 2 * slow + 1_000_000_000;
    assert_eq!(burst(device, rested, 40..56), fast, "after");
    assert_eq!(device.counts().folded_pages, 40);
    device.audit();
    // Cells read at their own speed: page 0 was folded into the first page of a block.
    let idle = rested + fast;
    assert_eq!(submit(device, idle, Op::Read, 55), idle + SLC_READ + BUS);
    assert_eq!(submit(device, idle + 90_000, Op::Read, 0), idle + 90_000 + 40_000 + BUS);
}

#[test]
fn a_full_cache_may_let_writes_pass() {
    let mut parameters = tlc(cache(4, false, WhenFull::Direct));
    parameters.slc.as_mut().expect("a cache").fold_after_ns = Some(100_000);
    for parameters in both(parameters) {
        let mut device = device(&parameters);
        let device = device.as_mut();
        let fast = 16 * (BUS + SLC_PROGRAM);
        assert_eq!(burst(device, 0, 0..16), fast);
        assert_eq!(burst(device, fast, 16..28), 12 * BUS + BLOCK_PROGRAMS, "dense cells");
        assert_eq!(device.counts().programmed_pages(), 28, "nothing is written twice");
        device.audit();
    }
}

/// What is overwritten in the cache is never folded.
#[test]
fn dead_pages_are_not_folded() {
    for parameters in both(tlc(cache(4, false, WhenFull::Fold))) {
        let mut device = device(&parameters);
        let device = device.as_mut();
        for round in 0..50 {
            burst(device, round * 1_000_000_000, 0..8);
        }
        let counts = device.counts();
        assert_eq!((counts.host_pages, counts.folded_pages), (400, 0));
        assert_eq!(counts.erased_blocks, 100 - 4);
    }
}

#[test]
fn a_dynamic_cache_is_as_large_as_the_device_is_empty() {
    for (fill, most) in [(0.0, 32), (0.0, 8), (0.5, 62), (0.9, 62), (1.0, 62)] {
        for parameters in both(tlc(cache(most, true, WhenFull::Direct))) {
            let mut device = device(&parameters);
            device.precondition(fill, false, 1);
            let used = (600.0 * fill / 12.0_f64).ceil() as u32;
            let expected = u64::from(most.min(64 - used - 2)) * SLC_PAGES;
            let mut now = 1_000_000_000;
            let mut fast = 0;
            while submit(device.as_mut(), now, Op::Write, fast as u32) == now + BUS + SLC_PROGRAM {
                (now, fast) = (now + 1_000_000_000, fast + 1);
            }
            assert_eq!(fast, expected, "{fill} full, {most} blocks at most");
            device.audit();
        }
    }
}

#[test]
fn impossible_caches_are_refused() {
    let check = |change: &dyn Fn(&mut FlashParameters), expected: &str| {
        let mut parameters = tlc(cache(4, false, WhenFull::Fold));
        change(&mut parameters);
        let error = parameters.check().expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    check(&|own| own.slc.as_mut().expect("one").blocks = 1, "slc_cache.share: a plane needs two");
    check(&|own| own.slc.as_mut().expect("one").blocks = 64, "slc_cache.share: nothing is left");
    check(&|own| own.host_streams = 2, "slc_cache: its blocks take data of all streams");
    check(
        &|own| own.slc.as_mut().expect("one").when_full = WhenFull::Direct,
        "slc_cache.fold_after_us: writes pass a full cache",
    );
    // Set apart, its blocks hold no other data.
    check(&|own| own.slc.as_mut().expect("one").blocks = 12, "over_provisioning: it cannot hold");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_page_is_lost_in_a_cache(
        blocks in 2u32..9,
        dynamic in any::<bool>(),
        direct in any::<bool>(),
        idle in prop::option::of(0u64..2_000_000),
        mode in 0usize..4,
        round_robin in any::<bool>(),
        events in prop::option::of(any::<bool>()),
        seed in any::<u64>(),
    ) {
        let when_full = if direct { WhenFull::Direct } else { WhenFull::Fold };
        let idle = idle.or((direct && !dynamic).then_some(500_000));
        let slc = SlcParameters { fold_after_ns: idle, ..cache(blocks, dynamic, when_full) };
        let mut parameters = tlc(slc);
        parameters.geometry.planes_per_die = 2;
        parameters.geometry.blocks_per_plane = 32;
        parameters.logical_pages = if dynamic { 600 } else { 450 };
        parameters.gc.mode = [
            GcMode::Foreground,
            GcMode::Deferred,
            GcMode::Incremental { pages_per_write: 3 },
            GcMode::Idle { after_ns: 100_000, until_blocks: 4 },
        ][mode];
        if round_robin {
            parameters.allocation = AllocationScheme::RoundRobin;
        }
        parameters.multi_plane = events.unwrap_or(false);
        parameters.events = events.map(|_| EventParameters::default());
        prop_assert_eq!(parameters.check(), Ok(()));
        let mut device = device(&parameters);
        let streams = vec![Stream { name: "a".to_owned() }];
        let mut trace = Trace { streams, ..Trace::default() };
        let mut written = vec![false; parameters.logical_pages as usize];
        let (mut rng, mut now, mut host_pages) = (Rng::new(seed), 0, 0);
        for _ in 0..6000 {
            now += rng.below(3_000_000);
            let lpn = rng.below(u64::from(parameters.logical_pages)) as u32;
            let op = [Op::Write, Op::Write, Op::Write, Op::Write, Op::Read, Op::Trim]
                [rng.below(6) as usize];
            let offset = Bytes(u64::from(lpn) * 4096);
            trace.push(Request { due: Nanos(now), offset, len: 4096, op, stream: 0 });
            match op {
                Op::Write => written[lpn as usize] = true,
                Op::Trim => written[lpn as usize] = false,
                _ => {}
            }
            host_pages += u64::from(op == Op::Write);
        }
        let mut done = vec![0; trace.count()];
        for start in (0..trace.count()).step_by(500) {
            device.submit_due(&trace, start..start + 500, &mut done[start..start + 500]);
            device.audit();
        }
        prop_assert!(done.iter().zip(&trace.due).all(|(at, due)| at >= due));
        for (lpn, written) in written.iter().enumerate() {
            prop_assert_eq!(device.locate(lpn as u32).is_some(), *written, "page {}", lpn);
        }
        let counts = device.counts();
        prop_assert_eq!(counts.host_pages, host_pages);
        prop_assert!(counts.folded_pages > 0 && counts.folded_pages < host_pages);
    }
}
