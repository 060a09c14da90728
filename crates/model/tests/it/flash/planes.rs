//! Multi-plane commands by arithmetic: what they save, what they do not, and when they do not join.

use model::flash::FlashDevice;
use model::flash::reference::configuration_a;
use profile::flash::{
    AllocationScheme, EventParameters, FlashParameters, Geometry, Order, ZoneParameters,
};
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use super::support::{completions, device};

/// ns per page on the channel, of a program, of a read, of an erase.
const BUS: u64 = 12_288;
const PROGRAM: u64 = 500_000;
const READ: u64 = 50_000;
const ERASE: u64 = 3_500_000;

/// 2 channels of 3 dies of `planes`; neighbouring pages are in the planes of a die.
fn array(planes: u32, multi_plane: bool) -> FlashParameters {
    let mut parameters = configuration_a();
    let geometry = &mut parameters.geometry;
    *geometry = Geometry { channels: 2, chips_per_channel: 3, planes_per_die: planes, ..*geometry };
    parameters.logical_pages = FlashParameters::logical_pages_at(&parameters.geometry, 0.1875);
    parameters.timing.bus_transfers_per_s = 1e9 / 3.0;
    parameters.allocation = AllocationScheme::Static(Order::parse("PCWD").expect("an order"));
    parameters.multi_plane = multi_plane;
    parameters
}

fn submit(device: &mut dyn FlashDevice, now: u64, op: Op, lpn: u32, pages: u32) -> u64 {
    let offset = Bytes(u64::from(lpn) * 4096);
    let request = Request { due: Nanos(now), offset, len: pages * 4096, op, stream: 0 };
    device.submit(Nanos(now), &request).0
}

/// Time of `count` requests of `pages` each, all due at `now`, until the last completes.
fn burst(device: &mut dyn FlashDevice, now: u64, op: Op, pages: u32, count: u32) -> u64 {
    let done = (0..count).map(|k| submit(device, now, op, k * pages, pages));
    done.max().expect("requests") - now
}

#[test]
fn one_command_serves_all_planes_of_a_die() {
    for planes in [1, 2, 3, 4] {
        let n = u64::from(planes);
        // Each die repeats n transfers and one program; the last die of a channel starts after the
        // transfers of two others.
        let together = 1000 * (n * BUS + PROGRAM) + 2 * n * BUS;
        let apart = 1000 * n * (BUS + PROGRAM);
        let mut device = device(&array(planes, true));
        let found = burst(device.as_mut(), 0, Op::Write, planes, 6000);
        assert_eq!(found, together, "{planes} planes");
        let mut single = super::support::device(&array(planes, false));
        let found = burst(single.as_mut(), 0, Op::Write, planes, 6000);
        assert!(found.abs_diff(apart) <= 2 * n * BUS, "{planes} planes apart: {found}, {apart}");
        // Cells are read once and n pages moved; up to 2 planes the bus is not the bottleneck.
        let idle = 2 * apart;
        let found = burst(device.as_mut(), idle, Op::Read, planes, 6000);
        let expected =
            if n <= 2 { 1000 * (READ + n * BUS) + 2 * n * BUS } else { 3000 * n * BUS + READ };
        assert_eq!(found, expected, "{planes} planes read");
        device.audit();
    }
}

/// The same with an event queue that holds every request.
fn queued(planes: u32, multi_plane: bool) -> FlashParameters {
    let events = EventParameters { depth: 10_000, ..EventParameters::default() };
    FlashParameters { events: Some(events), ..array(planes, multi_plane) }
}

/// All requests of a burst are there at once, so that only the first transfers overlap nothing.
#[test]
fn a_queue_serves_all_planes_of_a_die_with_one_command() {
    for planes in [1, 2, 3, 4] {
        let n = u64::from(planes);
        let together = 1000 * (n * BUS + PROGRAM) + 2 * n * BUS;
        let mut device = device(&queued(planes, true));
        let trace = whole(0, Op::Write, planes, 6000);
        let found = completions(device.as_mut(), &trace).into_iter().max();
        assert_eq!(found, Some(together), "{planes} planes");
        let idle = 10 * together;
        let trace = whole(idle, Op::Read, planes, 6000);
        let found = completions(device.as_mut(), &trace).into_iter().max().expect("reads") - idle;
        // The channel moves n pages for each of its three dies while a fourth time senses.
        let cells = 1000 * (READ + n * BUS);
        let bus = 3000 * n * BUS;
        let least = cells.max(bus);
        assert!((least..least + READ + 3 * n * BUS).contains(&found), "{planes} planes: {found}");
        device.audit();
    }
}

/// Requests of `pages` each, all due at `now`, in order over the device.
fn whole(now: u64, op: Op, pages: u32, count: u32) -> Trace {
    let mut trace = Trace { streams: vec![Stream { name: "a".to_owned() }], ..Trace::default() };
    for k in 0..count {
        let offset = Bytes(u64::from(k * pages) * 4096);
        trace.push(Request { due: Nanos(now), offset, len: pages * 4096, op, stream: 0 });
    }
    trace
}

/// Pages of one each that come while the die is at work: what waits is joined.
#[test]
fn what_waits_is_joined_where_planes_are_in_step() {
    let parameters = queued(2, true);
    let mut device = device(&parameters);
    // The planes of a die are neighbours in this order; dies lie 2 pages apart.
    let at = |lpns: &[(u64, Op, u32)]| {
        let mut trace = whole(0, Op::Write, 1, 0);
        for &(due, op, lpn) in lpns {
            let offset = Bytes(u64::from(lpn) * 4096);
            trace.push(Request { due: Nanos(due), offset, len: 4096, op, stream: 0 });
        }
        trace
    };
    // The second comes while the data of the first cross the channel: one program for both.
    let both = completions(device.as_mut(), &at(&[(0, Op::Write, 0), (BUS / 2, Op::Write, 1)]));
    assert_eq!(both, [2 * BUS + PROGRAM; 2]);
    // The third comes later than that, and its plane is then a page behind: of three more writes it
    // goes first together with the one of its number.
    let now = 1_000_000_000;
    let rows = [
        (now, Op::Write, 0),
        (now + 2 * BUS, Op::Write, 12),
        (now + 2 * BUS + 1, Op::Write, 1),
        (now + 2 * BUS + 2, Op::Write, 13),
    ];
    let done = completions(device.as_mut(), &at(&rows));
    let first = now + BUS + PROGRAM;
    let second = first + BUS + PROGRAM;
    assert_eq!(done, [first, second + 2 * BUS + PROGRAM, second, second + 2 * BUS + PROGRAM]);
    // Read together: the same number in both planes, in two requests behind a third.
    let now = 2 * now;
    let rows = [(now, Op::Read, 0), (now + 1, Op::Read, 12), (now + 2, Op::Read, 13)];
    let done = completions(device.as_mut(), &at(&rows));
    let first = now + READ + BUS;
    assert_eq!(done, [first, first + READ + BUS, first + READ + 2 * BUS]);
    device.audit();
}

#[test]
fn pages_with_other_numbers_and_of_other_requests_do_not_join() {
    let mut device = device(&array(2, true));
    let device = device.as_mut();
    // Plane 0 is a page ahead of plane 1.
    assert_eq!(submit(device, 0, Op::Write, 0, 1), BUS + PROGRAM);
    let now = 1_000_000_000;
    assert_eq!(submit(device, now, Op::Write, 0, 2), now + 2 * (BUS + PROGRAM));
    let now = 2 * now;
    assert_eq!(submit(device, now, Op::Read, 0, 2), now + 2 * (BUS + READ));
    // In step again, but in two requests at the same moment.
    submit(device, now, Op::Write, 1, 1);
    let now = 2 * now;
    submit(device, now, Op::Write, 0, 1);
    assert_eq!(submit(device, now, Op::Write, 1, 1), now + 2 * (BUS + PROGRAM));
    let now = 2 * now;
    assert_eq!(submit(device, now, Op::Write, 0, 2), now + 2 * BUS + PROGRAM);
    assert_eq!(submit(device, 2 * now, Op::Read, 0, 2), 2 * now + 2 * BUS + READ);
    // A plane takes part once: four pages of two planes are two commands.
    let now = 4 * now;
    let done = submit(device, now, Op::Write, 0, 14);
    // The first die has pages 0, 1, 12 and 13, the others two each; its second pair follows the
    // transfers of all on its channel.
    assert_eq!(done, now + 2 * (2 * BUS + PROGRAM));
}

#[test]
fn planes_of_a_zone_are_erased_together() {
    for (multi_plane, erases) in [(true, 1), (false, 2)] {
        let mut parameters = array(2, multi_plane);
        parameters.zones =
            Some(ZoneParameters { zone_pages: 12 * 256, open_most: 2, host_log_low_zones: None });
        parameters.logical_pages = 3 * 12 * 256;
        let mut device = device(&parameters);
        let written = submit(device.as_mut(), 0, Op::Write, 0, 12 * 256);
        submit(device.as_mut(), written, Op::Trim, 0, 12 * 256);
        let done = submit(device.as_mut(), written, Op::Write, 0, 1);
        assert_eq!(done, written + erases * ERASE + BUS + PROGRAM);
        assert_eq!(device.counts().erased_blocks, 12);
    }
}
