//! Zones: in order they amplify by exactly 1, out of order they refuse, and a log of the host's
//! above them amplifies as a page map whose blocks are zones.

use model::flash::reference::configuration_a;
use model::flash::{FlashDevice, ZoneCounts, theory};
use profile::flash::{FlashParameters, Geometry, ZoneParameters};
use proptest::prelude::*;
use stats::rng::Rng;
use trace::{Op, Request};
use units::{Bytes, Nanos};

use super::support::device;

/// 2 channels of 3 dies of 1 plane; zones of `blocks` erase blocks.
fn zoned(blocks: u32, open_most: u32, low_zones: Option<u32>) -> FlashParameters {
    let mut parameters = configuration_a();
    parameters.geometry = Geometry {
        channels: 2,
        chips_per_channel: 3,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: 24,
        pages_per_block: 16,
        page_bytes: 4096,
    };
    parameters.timing.bus_transfers_per_s = 1e9 / 3.0;
    let zone_pages = blocks * 16;
    parameters.logical_pages = 6 * 24 * 16 / zone_pages * zone_pages;
    parameters.zones =
        Some(ZoneParameters { zone_pages, open_most, host_log_low_zones: low_zones });
    parameters
}

/// The same behind a log of the host's, with a share `fill` of all pages addressed.
fn logged(fill: f64) -> FlashParameters {
    let mut parameters = zoned(6, 4, Some(2));
    let pages = f64::from(parameters.logical_pages) * fill;
    parameters.logical_pages = pages as u32;
    parameters
}

fn request(op: Op, now: u64, lpn: u32, pages: u32) -> Request {
    let offset = Bytes(u64::from(lpn) * 4096);
    Request { due: Nanos(now), offset, len: pages * 4096, op, stream: 0 }
}

fn submit(device: &mut dyn FlashDevice, now: u64, op: Op, lpn: u32, pages: u32) -> u64 {
    device.submit(Nanos(now), &request(op, now, lpn, pages)).0
}

fn zones(device: &dyn FlashDevice) -> ZoneCounts {
    device.zone_counts().expect("a device of zones")
}

#[test]
fn zones_written_in_order_and_reset_amplify_by_exactly_one() {
    for blocks in [1, 2, 3, 6, 12] {
        let parameters = zoned(blocks, 3, None);
        let mut device = device(&parameters);
        let (zone_pages, all) = (blocks * 16, parameters.logical_pages / (blocks * 16));
        let mut rng = Rng::new(u64::from(blocks));
        // Three zones at a time, each in pieces of any length.
        let mut written = vec![0u32; all as usize];
        let mut open: Vec<u32> = vec![0, 1, 2];
        let (mut now, mut pages, mut resets) = (0, 0u64, 0);
        for _ in 0..4000 {
            now += 3_000_000;
            let at = rng.below(3) as usize;
            let zone = open[at];
            let own = &mut written[zone as usize];
            let piece = (rng.between(1, 9) as u32).min(zone_pages - *own);
            let done = submit(device.as_mut(), now, Op::Write, zone * zone_pages + *own, piece);
            assert!(done >= now + 500_000, "a program takes 500 us");
            *own += piece;
            pages += u64::from(piece);
            if *own == zone_pages {
                let next = (0..all).filter(|zone| !open.contains(zone)).collect::<Vec<_>>();
                let next = next[rng.below(next.len() as u64) as usize];
                if written[next as usize] > 0 {
                    submit(device.as_mut(), now, Op::Trim, next * zone_pages, zone_pages);
                    written[next as usize] = 0;
                    resets += 1;
                }
                open[at] = next;
            }
        }
        device.audit();
        let counts = device.counts();
        assert_eq!((counts.host_pages, counts.programmed_pages()), (pages, pages));
        assert_eq!(counts.erased_blocks, resets * u64::from(blocks));
        assert_eq!(zones(device.as_ref()), ZoneCounts { resets, ..ZoneCounts::default() });
        assert!(resets > 50, "{resets} resets");
        for lpn in 0..parameters.logical_pages {
            let expected = lpn % zone_pages < written[(lpn / zone_pages) as usize];
            assert_eq!(device.locate(lpn).is_some(), expected, "page {lpn}");
        }
    }
}

#[test]
fn what_does_not_fit_the_interface_is_refused_and_counted() {
    let parameters = zoned(6, 2, None);
    let mut device = device(&parameters);
    let device = device.as_mut();
    let refused = |device: &dyn FlashDevice| {
        let counts = zones(device);
        (counts.misplaced_pages, counts.over_limit_pages, counts.kept_pages)
    };
    assert_eq!(submit(device, 0, Op::Write, 1, 1), 0, "not at the write pointer");
    submit(device, 0, Op::Write, 0, 10);
    submit(device, 0, Op::Write, 5, 2);
    assert_eq!(refused(device), (3, 0, 0));
    submit(device, 0, Op::Write, 96, 1);
    submit(device, 0, Op::Write, 192, 4);
    // The first page opens no third zone, so the others are not at the write pointer.
    assert_eq!(refused(device), (6, 1, 0));
    submit(device, 0, Op::Trim, 0, 50);
    assert_eq!(refused(device), (6, 1, 50), "zones are given back whole");
    assert!(device.locate(9).is_some() && device.locate(10).is_none());
    submit(device, 0, Op::Trim, 0, 100);
    assert_eq!((refused(device), zones(device).resets), ((6, 1, 54), 1));
    assert!(device.locate(0).is_none() && device.locate(96).is_some());
    submit(device, 0, Op::Write, 192, 1);
    assert_eq!((refused(device), device.counts().host_pages), ((6, 1, 54), 12));
    device.audit();
}

/// 6 dies on 2 channels, programs of 500 us, transfers of 12.288 us: as without zones.
#[test]
fn a_zone_is_as_fast_as_its_dies() {
    let parameters = zoned(6, 2, None);
    let mut device = device(&parameters);
    let done = submit(device.as_mut(), 0, Op::Write, 0, 96);
    assert_eq!(done, 16 * (500_000 + 12_288) + 2 * 12_288);
    // A reset is over at once; what comes next waits for the erases.
    assert_eq!(submit(device.as_mut(), done, Op::Trim, 0, 96), done);
    let again = submit(device.as_mut(), done, Op::Write, 0, 6);
    assert_eq!(again, done + 3_500_000 + 12_288 * 3 + 500_000);
}

/// One plane, zones of one block: what the log amplifies is what cleaning of blocks would.
#[test]
fn the_log_of_a_host_amplifies_as_theory_says() {
    let mut parameters = zoned(1, 4, Some(2));
    parameters.geometry.channels = 1;
    parameters.geometry.chips_per_channel = 1;
    parameters.geometry.blocks_per_plane = 1024;
    parameters.geometry.pages_per_block = 64;
    parameters.zones.as_mut().expect("zones").zone_pages = 64;
    parameters.logical_pages = (1021.0 * 64.0 / 1.28) as u32;
    let mut device = device(&parameters);
    assert!(device.precondition(1.0, true, 1));
    let pages = u64::from(parameters.logical_pages);
    let (mut rng, mut now) = (Rng::new(2), 0);
    for _ in 0..5 * pages {
        now += 1_000_000_000;
        submit(device.as_mut(), now, Op::Write, rng.below(pages) as u32, 1);
    }
    device.audit();
    let counts = device.counts();
    let moved = zones(device.as_ref()).host_moved_pages;
    // For the device every page is the host's: it amplifies by 1.
    assert_eq!(counts.host_pages, 5 * pages + moved);
    assert_eq!(counts.write_amplification().to_bits(), 1.0f64.to_bits());
    let bytes = device.counters().into_iter().find(|own| own.name == "host_written_bytes");
    assert_eq!(bytes.expect("a counter").value, counts.host_pages * 4096);
    let found = counts.host_pages as f64 / (5 * pages) as f64;
    // One zone is free when a victim is chosen; the open one for moved pages is half full.
    let in_use = f64::from((1024 - 1) * 64 - 32);
    let expected = theory::greedy(pages as f64 / in_use, 64);
    println!("{found:.4}, theory {expected:.4}, {:+.2} %", (found / expected - 1.0) * 1e2);
    assert!((found / expected - 1.0).abs() < 0.02, "{found}, theory {expected}");
}

#[test]
fn impossible_zones_are_refused() {
    let check = |change: &dyn Fn(&mut FlashParameters), expected: &str| {
        let mut parameters = logged(0.51);
        change(&mut parameters);
        let error = parameters.check().expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    let zones = |change: fn(&mut ZoneParameters)| {
        move |parameters: &mut FlashParameters| change(parameters.zones.as_mut().expect("zones"))
    };
    check(&zones(|own| own.zone_pages = 20), "zones.size: a zone is a whole number of erase");
    check(&zones(|own| own.zone_pages = 64), "zones.size: its 4 blocks must divide the 6");
    check(&zones(|own| own.open_most = 1), "zones.open_most: the host's log");
    check(&zones(|own| own.host_log_low_zones = Some(1)), "zones.low_zones: the host needs");
    check(&zones(|own| own.host_log_low_zones = None), "over_provisioning: the capacity is no");
    check(&|parameters| parameters.logical_pages = 2000, "over_provisioning: it cannot hold");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any requests, against a set of written pages; in the middle the device is set aside.
    #[test]
    fn the_log_loses_no_page(fill in 0.3f64..0.72, seed in any::<u64>()) {
        let parameters = logged(fill);
        prop_assume!(parameters.check().is_ok());
        let mut device = device(&parameters);
        let mut written = vec![false; parameters.logical_pages as usize];
        let (mut rng, mut now) = (Rng::new(seed), 0);
        let (mut host_pages, mut partly) = (0, 0);
        for index in 0..3000 {
            now += rng.below(3_000_000);
            let lpn = rng.below(u64::from(parameters.logical_pages)) as u32;
            let pages = (rng.between(1, 12) as u32).min(parameters.logical_pages - lpn);
            let op = [Op::Write, Op::Write, Op::Write, Op::Read, Op::Trim][rng.below(5) as usize];
            let mut request = request(op, now, lpn, pages);
            let part = op != Op::Trim && rng.below(4) == 0;
            if part {
                request.offset.0 += 512;
                request.len -= 1024;
            }
            let done = device.submit(Nanos(now), &request).0;
            prop_assert!(done >= now);
            let own = &mut written[lpn as usize..(lpn + pages) as usize];
            if op == Op::Write {
                host_pages += u64::from(pages);
                partly += u64::from(part);
            }
            match op {
                Op::Write => own.fill(true),
                Op::Trim => own.fill(false),
                _ => {}
            }
            if index % 700 == 350 {
                let bytes = device.snapshot().expect("a snapshot");
                let mut other = super::support::device(&parameters);
                other.restore(&bytes).expect("its own snapshot");
                prop_assert_eq!(other.snapshot(), Some(bytes));
                device = other;
                device.audit();
            }
        }
        device.audit();
        for (lpn, written) in written.iter().enumerate() {
            prop_assert_eq!(device.locate(lpn as u32).is_some(), *written, "page {}", lpn);
        }
        let moved = zones(device.as_ref()).host_moved_pages;
        prop_assert_eq!(device.counts().host_pages, host_pages + moved);
        prop_assert!(partly > 0 && device.counts().moved_pages == 0);
    }
}
