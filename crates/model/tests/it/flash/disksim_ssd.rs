//! The published outputs of DiskSim's SSD extension (Agrawal et al., "Design Tradeoffs for SSD
//! Performance", USENIX ATC 2008), in the configuration that its validation folder ships: eight
//! elements of eight planes, page-mapped, greedy copy-back cleaning when a request waits, a summary
//! page at the end of each block, 2,000 requests a second with uniform gaps, sizes exponential.
//!
//! Mean responses and cleaning counts within 2 %, cleaning time exact. Where a sequential run ends
//! and the next begins decides the 5 M sequential writes: the published run wrote 713,044 pages to
//! its first element, so this one does.

use model::Device;
use model::flash::{Counts, build};
use profile::flash::{
    AllocationScheme, CellKind, FlashParameters, GcMode, GcParameters, GcPolicy, Geometry, Order,
    Timing, Translation, WearParameters,
};
use stats::rng::Rng;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

/// Pages that requests go to.
const PAGES: u64 = 877_363;

fn configuration() -> FlashParameters {
    let geometry = Geometry {
        channels: 8,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 8,
        blocks_per_plane: 2048,
        pages_per_block: 63,
        page_bytes: 4096,
    };
    FlashParameters {
        geometry,
        timing: Timing {
            cell: CellKind::Slc,
            read_ns: vec![25_000.0],
            program_ns: vec![200_000.0],
            erase_ns: 1_500_000.0,
            command_ns: 0.0,
            bus_transfers_per_s: 40e6,
            bus_width_bits: 8,
        },
        // 15 % of the blocks of a plane are reserved: 307 of 2048.
        logical_pages: 8 * 8 * 1741 * 63,
        translation: Translation::Page,
        allocation: AllocationScheme::ByDie(Order::CWDP),
        host_streams: 1,
        streams: profile::flash::StreamParameters::default(),
        zones: None,
        slc: None,
        multi_plane: false,
        gc: GcParameters {
            policy: GcPolicy::Greedy,
            mode: GcMode::Deferred,
            // Cleaning starts at 5 % of the blocks or fewer, which is 102.
            low_blocks: 103,
            separate: false,
            copy_back: true,
        },
        wear: WearParameters::default(),
        summary_bytes: Some(512),
        // Handshakes on the bus of the host.
        overhead_ns: 3_200,
        // 0.0002384 ms for a sector.
        interface_bytes_per_s: Some(512.0 / 238.4e-9),
        interface_command_ns: 0,
        one_at_a_time: false,
        behind_cache: false,
        events: None,
    }
}

/// The published load: gaps uniform up to 1 ms, sizes exponential with a mean of 8 sectors and
/// rounded up to pages, random places; or runs that keep their size up to the end of the device,
/// of which those at `double` have two pages and the others one.
fn load(op: Op, count: u64, start_ns: u64, double: Option<&[usize]>) -> Trace {
    let mut rng = Rng::new(1);
    let mut trace = Trace { streams: vec![Stream { name: "data".to_owned() }], ..Trace::default() };
    let (mut now, mut page, mut pages, mut run) = (start_ns as f64, PAGES, 1, 0);
    for _ in 0..count {
        now += rng.unit() * 1e6;
        let goes_on = double.is_some() && page + 2 * pages < PAGES;
        if goes_on {
            page += pages;
        } else {
            page = rng.below(PAGES - 64);
            pages = match double {
                Some(double) => 1 + u64::from(double.contains(&run)),
                None => loop {
                    let sectors = rng.exponential(8.0) as u64;
                    if sectors > 0 {
                        break sectors.div_ceil(8);
                    }
                },
            };
            run += 1;
        }
        trace.push(Request {
            due: Nanos(now as u64),
            offset: Bytes(page * 4096),
            len: pages as u32 * 4096,
            op,
            stream: 0,
        });
    }
    trace
}

/// Mean response in ms and the counts of a load on the device whose pages were all written.
fn run(op: Op, count: u64, double: Option<&[usize]>) -> (f64, Counts, f64) {
    let parameters = configuration();
    let mut device = build(&parameters, 1).expect("a device that can exist");
    assert!(device.precondition(1.0, false, 1));
    let trace = load(op, count, 0, double);
    let mut done = vec![0; trace.count()];
    device.submit_due(&trace, 0..trace.count(), &mut done);
    let sum: u64 = done.iter().zip(&trace.due).map(|(at, due)| at - due).sum();
    let pages: u64 = trace.len.iter().map(|len| u64::from(len / 4096)).sum();
    (sum as f64 / count as f64 / 1e6, *device.counts(), pages as f64 / 8.0)
}

#[track_caller]
fn check_near(what: &str, found: f64, published: f64) {
    println!("{what}: {found:.6}, published {published:.6}");
    assert!((found / published - 1.0).abs() < 0.02, "{what}: {found}, published {published}");
}

#[test]
fn reads_take_what_was_published() {
    check_near("sequential reads, ms", run(Op::Read, 250_000, Some(&[])).0, 0.132511);
    check_near("random reads, ms", run(Op::Read, 250_000, None).0, 0.136118);
}

#[test]
fn writes_without_cleaning_take_what_was_published() {
    check_near("sequential writes, ms", run(Op::Write, 250_000, Some(&[])).0, 0.310895);
    check_near("random writes, ms", run(Op::Write, 250_000, None).0, 0.329458);
}

#[test]
fn random_writes_are_cleaned_as_published() {
    let (mean_ms, counts, pages) = run(Op::Write, 5_000_000, None);
    check_near("pages of an element", pages, 989_084.0);
    check_near("random writes, ms", mean_ms, 0.593438);
    check_near("cleans of an element", counts.erased_blocks as f64 / 8.0, 17_891.0);
    check_near("pages moved by an element", counts.moved_pages as f64 / 8.0, 240_844.0);
}

#[test]
fn sequential_writes_are_cleaned_as_published() {
    let (mean_ms, counts, pages) = run(Op::Write, 5_000_000, Some(&[5, 6]));
    check_near("pages of an element", pages, 713_044.0);
    check_near("sequential writes, ms", mean_ms, 0.334365);
    check_near("cleans of an element", counts.erased_blocks as f64 / 8.0, 9_687.0);
    assert_eq!(counts.moved_pages, 0);
}
