//! The model agrees with the slow layer page for page, whatever is written, trimmed and cleaned.

use model::flash::FlashDevice;
use model::flash::reference::configuration_a;
use profile::flash::{
    AllocationScheme, FlashParameters, GcMode, GcPolicy, Geometry, Isolation, Order,
    StreamParameters, WearParameters,
};
use proptest::prelude::*;
use stats::rng::Rng;
use trace::{Op, Request};
use units::{Bytes, Nanos};

use super::slow_ftl::SlowFtl;
use super::support::{device, slow};

/// A device of few and small blocks, so that it is cleaned all the time.
fn small(rooms: Rooms) -> FlashParameters {
    let mut parameters = configuration_a();
    parameters.geometry = Geometry {
        channels: 2,
        chips_per_channel: 1,
        dies_per_chip: 2,
        planes_per_die: rooms.planes,
        blocks_per_plane: rooms.blocks,
        pages_per_block: rooms.pages,
        page_bytes: 4096,
    };
    parameters.gc.policy = rooms.policy;
    parameters.gc.mode = rooms.mode;
    parameters.gc.separate = rooms.separate;
    parameters.gc.low_blocks = rooms.low;
    parameters.host_streams = rooms.streams;
    parameters.streams = rooms.isolation(rooms.streams);
    parameters.wear = rooms.wear;
    if rooms.round_robin {
        parameters.allocation = AllocationScheme::RoundRobin;
    } else {
        parameters.allocation = AllocationScheme::Static(Order::CWDP);
    }
    let room = rooms.blocks - parameters.reserved_blocks_per_plane();
    let most = parameters.geometry.plane_count() * room * rooms.pages - 8 * rooms.planes;
    parameters.logical_pages = (f64::from(most) * rooms.fill) as u32;
    parameters
}

#[derive(Clone, Copy, Debug)]
struct Rooms {
    planes: u32,
    blocks: u32,
    pages: u32,
    policy: GcPolicy,
    mode: GcMode,
    separate: bool,
    low: u32,
    streams: u32,
    /// Whether streams are persistently isolated, and have shares of the blocks.
    isolated: (bool, bool),
    wear: WearParameters,
    round_robin: bool,
    fill: f64,
}

impl Rooms {
    fn isolation(&self, streams: u32) -> StreamParameters {
        let (persistent, shares) = self.isolated;
        let can = matches!(self.policy, GcPolicy::Greedy | GcPolicy::Fifo);
        let count = if persistent && shares && can { streams } else { 0 };
        StreamParameters {
            isolation: if persistent { Isolation::Persistent } else { Isolation::Initial },
            block_shares: (1..=count).map(f64::from).collect(),
        }
    }
}

fn rooms() -> impl Strategy<Value = Rooms> {
    let policy = prop_oneof![
        Just(GcPolicy::Greedy),
        Just(GcPolicy::Fifo),
        (1u32..5).prop_map(GcPolicy::DChoices),
        (1u32..9).prop_map(GcPolicy::Windowed),
        Just(GcPolicy::CostBenefit),
    ];
    let mode = prop_oneof![
        Just(GcMode::Foreground),
        (1u32..6).prop_map(|pages_per_write| GcMode::Incremental { pages_per_write }),
    ];
    let wear = (0u32..4, prop::option::of(1u32..6), prop::option::of(5u32..60)).prop_map(
        |(dynamic_look_blocks, static_spread, cycles_most)| WearParameters {
            dynamic_look_blocks,
            static_spread,
            cycles_most,
        },
    );
    let shape = (1u32..3, 14u32..28, 2u32..17, 2u32..5, 1u32..4);
    let flags = (any::<bool>(), any::<bool>(), any::<(bool, bool)>());
    (shape, policy, mode, wear, flags, 0.3f64..1.0).prop_map(
        |(
            (planes, blocks, pages, low, streams),
            policy,
            mode,
            wear,
            (separate, round_robin, isolated),
            fill,
        )| {
            Rooms {
                planes,
                blocks,
                pages,
                policy,
                mode,
                separate,
                low,
                streams,
                isolated,
                wear,
                round_robin,
                fill,
            }
        },
    )
}

/// One page or a few, whole or in part; skewed, with trims.
fn request(rng: &mut Rng, now: u64, pages: u64) -> Request {
    let kind = rng.below(20);
    let op = match kind {
        0 => Op::Trim,
        1 => Op::Flush,
        2..=6 => Op::Read,
        _ => Op::Write,
    };
    let page = if rng.unit() < 0.5 { rng.below(pages) } else { rng.below(pages / 4 + 1) };
    let many = if rng.below(8) == 0 { rng.between(1, 5) } else { 1 };
    let many = many.min(pages - page);
    let (mut offset, mut len) = (page * 4096, many as u32 * 4096);
    if rng.below(6) == 0 {
        offset += 512 * rng.below(4);
        len -= (offset - page * 4096) as u32 + 512 * rng.below(3) as u32;
    }
    if op == Op::Flush {
        (offset, len) = (0, 0);
    }
    let stream = rng.below(3) as u16;
    Request { due: Nanos(now), offset: Bytes(offset), len, op, stream }
}

/// Gives `request` to the slow layer, page by page.
fn tell(slow: &mut SlowFtl, request: &Request) {
    let (start, end) = (request.offset.0, request.offset.0 + u64::from(request.len));
    match request.op {
        Op::Write => (start / 4096..end.div_ceil(4096))
            .for_each(|lpn| slow.write(lpn as u32, u32::from(request.stream))),
        Op::Trim => {
            (start.div_ceil(4096)..end / 4096).for_each(|lpn| slow.trim(lpn as u32));
        }
        _ => {}
    }
}

fn compare(device: &dyn FlashDevice, slow: &SlowFtl, pages: u32) {
    for lpn in 0..pages {
        let expected = slow.locate(lpn);
        assert_eq!(device.locate(lpn), expected.map(|(ppn, _)| ppn), "logical page {lpn}");
        let newest = slow.written.get(&lpn).copied();
        assert_eq!(expected.map(|(_, write)| write), newest, "logical page {lpn} is lost or stale");
    }
    assert_eq!(device.counts().moved_pages, slow.moved);
    assert_eq!(device.counts().erased_blocks, slow.erased);
}

/// Runs random requests through both; gives how many pages cleaning moved.
fn agree(parameters: &FlashParameters, requests: u64, every: u64, seed: u64) -> u64 {
    let mut device = device(parameters);
    let mut slow = SlowFtl::new(parameters, 1);
    let mut rng = Rng::new(seed);
    let (mut now, mut reads) = (0, 0);
    for index in 0..requests {
        now += rng.below(2_000_000);
        let request = request(&mut rng, now, u64::from(parameters.logical_pages));
        let completion = device.submit(Nanos(now), &request);
        assert!(completion.0 >= now, "request {index} completes before it is submitted");
        reads += u64::from(request.op == Op::Read);
        tell(&mut slow, &request);
        if index % every == 0 {
            compare(device.as_ref(), &slow, parameters.logical_pages);
            device.audit();
        }
        if index % (5 * every) == every {
            let bytes = device.snapshot().expect("flash has snapshots");
            device = super::support::device(parameters);
            device.restore(&bytes).expect("its own snapshot");
            assert_eq!(device.snapshot().as_ref(), Some(&bytes), "the same bytes back");
        }
    }
    compare(device.as_ref(), &slow, parameters.logical_pages);
    device.audit();
    let counts = device.counts();
    assert!(reads == 0 || counts.read_pages + counts.unwritten_pages >= reads);
    counts.moved_pages
}

/// Devices to try; `SLOW=1` tries many more.
fn cases() -> u32 {
    if std::env::var_os("SLOW").is_some() { 3000 } else { 48 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn the_model_does_what_the_slow_layer_does(rooms in rooms(), seed in any::<u64>()) {
        let parameters = small(rooms);
        prop_assume!(parameters.check().is_ok());
        agree(&parameters, 3000, 300, seed);
    }
}

fn every_policy_agrees(requests: u64) {
    for (policy, round_robin) in [
        (GcPolicy::Greedy, false),
        (GcPolicy::Greedy, true),
        (GcPolicy::Fifo, false),
        (GcPolicy::DChoices(3), false),
        (GcPolicy::Windowed(5), true),
        (GcPolicy::CostBenefit, false),
    ] {
        let parameters = small(Rooms {
            planes: 1,
            blocks: 20,
            pages: 8,
            policy,
            mode: GcMode::Foreground,
            separate: true,
            low: 2,
            streams: 1,
            isolated: (false, false),
            wear: WearParameters::default(),
            round_robin,
            fill: 0.9,
        });
        let moved = agree(&parameters, requests, requests / 20, 3);
        assert!(moved > requests / 2, "{policy:?} moved {moved} pages only");
    }
}

#[test]
fn every_policy_agrees_with_the_slow_layer() {
    every_policy_agrees(6_000);
}

#[test]
fn every_policy_agrees_for_a_million_requests() {
    if slow("a million requests against the slow layer") {
        every_policy_agrees(1_000_000);
    }
}
