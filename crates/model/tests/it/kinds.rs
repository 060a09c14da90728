//! One device of every kind, as small as it can be, and loads under which all of them are busy with
//! whatever they do besides requests.

use model::hdd::Hdd;
use model::{Device, Limits, Linear, QueuedCache, Ram, ReadCache, WriteCache};
use profile::flash::{
    AllocationScheme, CellKind, EventParameters, FlashParameters, GcMode, GcPolicy, Geometry,
    Isolation, Order, SlcParameters, Suspend, Translation, WhenFull, ZoneParameters,
};
use profile::hdd::{HddParameters, QueueParameters, ReadAhead};
use profile::limits::{Allowance, LimitParameters};
use profile::ram::RamParameters;
use profile::read_cache::{ReadCacheParameters, ReadPolicy};
use profile::write_cache::WriteCacheParameters;
use proptest::prelude::*;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use crate::support::{plain, small_cache};

/// A read cache of this many lines of 4 KiB.
fn read_cache(lines: u64) -> ReadCacheParameters {
    ReadCacheParameters {
        capacity: Bytes(lines * 4096),
        line_bytes: 4096,
        policy: ReadPolicy::Clock,
        hit_base_ns: 1_000.0,
        hit_ns_per_byte: 0.1,
        ports: 2,
    }
}

/// Credits for some requests, and a rate of bytes that large ones meet.
fn limits() -> LimitParameters {
    let ios = Allowance { per_s: 3_000.0, burst_per_s: 20_000.0, credits: 20.0, start_share: 0.5 };
    LimitParameters {
        ios: Some(ios),
        bytes: Some(Allowance::steady(20e6)),
        io_bytes: Some(8192),
        merges: true,
    }
}

/// Bytes that all devices here can address.
const EXTENT: u64 = 480 * 512;

/// 10 MB, with a buffer that does all that buffers do.
pub fn disk(depth: u32) -> HddParameters {
    let mut parameters = crate::hdd::plain(100, 2, 100);
    parameters.overhead.read_miss_ns = [100_000; 2];
    parameters.overhead.read_hit_ns = [50_000, 70_000];
    parameters.overhead.write_hit_ns = [60_000; 2];
    parameters.queue = QueueParameters { depth, most_wait_ns: 50_000_000 };
    let buffer = &mut parameters.buffer;
    (buffer.segments, buffer.segment_sectors) = (4, 64);
    (buffer.read_ahead, buffer.read_ahead_most_sectors) = (ReadAhead::Segment, 64);
    (buffer.write_back, buffer.write_back_sectors) = (6, 256);
    (buffer.keep_passed, buffer.read_written, buffer.read_ahead_after_hit) = (true, true, true);
    parameters
}

pub fn flash(events: Option<EventParameters>, policy: GcPolicy) -> FlashParameters {
    let mut parameters = model::flash::reference::configuration_a();
    parameters.geometry = Geometry {
        channels: 2,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 2,
        blocks_per_plane: 40,
        pages_per_block: 8,
        page_bytes: 512,
    };
    parameters.logical_pages = 480;
    parameters.interface_bytes_per_s = Some(50e6);
    (parameters.gc.policy, parameters.gc.low_blocks) = (policy, 3);
    parameters.events = events;
    parameters
}

/// Everything that the event model has.
pub fn events() -> EventParameters {
    EventParameters {
        depth: 8,
        host_queues: 2,
        reads_first: true,
        suspend: Some(Suspend { suspend_ns: 10_000, resume_ns: 20_000, most: 3 }),
        read_retries: vec![0.2, 0.1],
        map_cache_pages: Some(2),
    }
}

const POLICIES: [GcPolicy; 5] = [
    GcPolicy::Greedy,
    GcPolicy::Fifo,
    GcPolicy::DChoices(3),
    GcPolicy::Windowed(4),
    GcPolicy::CostBenefit,
];

/// Flash with what a profile can add to it.
fn features() -> Vec<(&'static str, FlashParameters)> {
    let with = |change: &dyn Fn(&mut FlashParameters)| {
        let mut parameters = flash(None, GcPolicy::Greedy);
        change(&mut parameters);
        if parameters.slc.is_some() {
            parameters.timing.cell = CellKind::Tlc;
        }
        parameters
    };
    let zones = |host_log_low_zones| {
        Some(ZoneParameters { zone_pages: 16, open_most: 3, host_log_low_zones })
    };
    let slc = |dynamic: bool, when_full| {
        let fold_after_ns = dynamic.then_some(100_000);
        Some(SlcParameters {
            blocks: 4,
            dynamic,
            read_ns: 20_000,
            program_ns: 100_000,
            fold_after_ns,
            when_full,
        })
    };
    let planes_first = AllocationScheme::Static(Order::parse("PCWD").expect("an order"));
    vec![
        (
            "streams",
            with(&|own| {
                own.host_streams = 2;
                own.streams.isolation = Isolation::Persistent;
                own.streams.block_shares = vec![0.6, 0.4];
            }),
        ),
        ("fixed SLC cache", with(&|own| own.slc = slc(false, WhenFull::Fold))),
        ("dynamic SLC cache", with(&|own| own.slc = slc(true, WhenFull::Direct))),
        ("zones", with(&|own| own.zones = zones(None))),
        ("zones behind a log", with(&|own| own.zones = zones(Some(3)))),
        ("planes together", with(&|own| (own.multi_plane, own.allocation) = (true, planes_first))),
        (
            "events of planes with an SLC cache",
            with(&|own| {
                (own.multi_plane, own.slc) = (true, slc(true, WhenFull::Fold));
                own.events = Some(events());
            }),
        ),
        (
            "events with a fixed SLC cache",
            with(&|own| {
                own.slc = slc(false, WhenFull::Direct)
                    .map(|slc| SlcParameters { fold_after_ns: Some(100_000), ..slc });
                own.events = Some(events());
            }),
        ),
        (
            "events of planes together",
            with(&|own| {
                (own.multi_plane, own.allocation) = (true, AllocationScheme::RoundRobin);
                own.events = Some(events());
            }),
        ),
        (
            "zones of planes together",
            with(&|own| (own.multi_plane, own.zones) = (true, zones(None))),
        ),
    ]
}

pub type Make = Box<dyn Fn() -> Box<dyn Device>>;

/// Write caches with one and with several destages outstanding.
fn caches_over_events() -> Vec<(String, Make)> {
    let mut all: Vec<(String, Make)> = Vec::new();
    for (name, depth, watermark) in [("deep", 8, 0.5), ("shallow", 1, 1.0)] {
        let mut parameters = small_cache(24);
        (parameters.line_bytes, parameters.capacity) = (512, Bytes(24 * 512));
        (parameters.destage_depth, parameters.high_watermark) = (depth, watermark);
        (parameters.low_watermark, parameters.coalesce_bytes) = (watermark / 2.0, 2048);
        parameters.idle_destage_after_ns = Some(300_000.0);
        let make = move || -> Box<dyn Device> {
            let flash = flash(Some(events()), GcPolicy::Greedy);
            let device = model::flash::build(&flash, 3).expect("it can exist");
            Box::new(QueuedCache::new(device, &parameters))
        };
        all.push((format!("{name} cache over events"), Box::new(make)));
    }
    all
}

/// One of every kind of state.
pub fn kinds() -> Vec<(String, Make)> {
    fn kind(
        name: impl Into<String>,
        make: impl Fn() -> Box<dyn Device> + 'static,
    ) -> (String, Make) {
        (name.into(), Box::new(make))
    }
    let ram = RamParameters { capacity: None, latency_ns: 5_000.0, bytes_per_s: 1e9, ports: 3 };
    let flash_of = |name: String, parameters: FlashParameters| {
        kind(name, move || model::flash::build(&parameters, 3).expect("it can exist"))
    };
    let mut all = vec![
        kind("linear", || Box::new(Linear::new(&plain(50_000.0, 2.0), 3))),
        kind("ram", move || Box::new(Ram::new(&ram))),
        kind("cache that durable writes cross", || {
            let cache = WriteCacheParameters { durable_streams: 0b10, ..small_cache(16) };
            Box::new(WriteCache::new(Linear::new(&plain(50_000.0, 2.0), 3), &cache))
        }),
        kind("read cache", || {
            Box::new(ReadCache::new(Linear::new(&plain(50_000.0, 2.0), 3), &read_cache(16)))
        }),
        kind("limits", || Box::new(Limits::new(Linear::new(&plain(50_000.0, 2.0), 3), &limits()))),
        kind("cache", || {
            Box::new(WriteCache::new(Linear::new(&plain(50_000.0, 2.0), 3), &small_cache(16)))
        }),
        kind("disk", || Box::new(Hdd::new(&disk(1)))),
        kind("queueing disk", || Box::new(Hdd::new(&disk(8)))),
        kind("cache over a disk", || {
            Box::new(WriteCache::new(Hdd::new(&disk(1)), &small_cache(16)))
        }),
    ];
    all.extend(caches_over_events());
    for policy in POLICIES {
        all.push(flash_of(format!("timelines {policy:?}"), flash(None, policy)));
        all.push(flash_of(format!("events {policy:?}"), flash(Some(events()), policy)));
    }
    for (place, allocation) in [
        AllocationScheme::Static(Order::CWDP),
        AllocationScheme::ByDie(Order::CWDP),
        AllocationScheme::RoundRobin,
        AllocationScheme::Dynamic,
    ]
    .into_iter()
    .enumerate()
    {
        let mode = [
            GcMode::Incremental { pages_per_write: 2 },
            GcMode::Deferred,
            GcMode::Foreground,
            GcMode::Idle { after_ns: 50_000, until_blocks: 6 },
        ][place];
        for events in [None, Some(events())] {
            let mut parameters = flash(events, GcPolicy::Greedy);
            (parameters.allocation, parameters.gc.mode) = (allocation, mode);
            let name = if parameters.events.is_some() { "events" } else { "timelines" };
            all.push(flash_of(format!("{name} {allocation:?} {mode:?}"), parameters));
        }
    }
    all.extend(features().into_iter().map(|(name, own)| flash_of(name.to_owned(), own)));
    for translation in [
        Translation::Block { width: 1, open: 2 },
        Translation::Bast { width: 2, logs: 3 },
        Translation::Fast { width: 1, logs: 3 },
    ] {
        let mut parameters = flash(None, GcPolicy::Greedy);
        parameters.translation = translation;
        all.push(flash_of(format!("{translation:?}"), parameters));
    }
    all
}

pub type Row = (u64, u8, u64, u32, u16);

pub fn rows(most: usize) -> impl Strategy<Value = Vec<Row>> {
    prop::collection::vec((0u64..400_000, 0u8..24, 0u64..460, 1u32..10_000, 0u16..3), 2..most)
}

/// Requests that overlap often; writes mostly, so that cleaning is in its course.
pub fn trace(rows: &[Row]) -> Trace {
    let streams = ["a", "b", "c"].map(|name| Stream { name: name.to_owned() }).to_vec();
    let mut trace = Trace { streams, ..Trace::default() };
    let mut due = 0;
    for &(gap, kind, sector, len, stream) in rows {
        due += gap.saturating_sub(200_000);
        let op = match kind {
            0..=7 => Op::Read,
            8..=21 => Op::Write,
            22 => Op::Trim,
            _ => Op::Flush,
        };
        let len = if op == Op::Flush { 0 } else { len.min((EXTENT - sector * 512) as u32) };
        let (due, offset) = (Nanos(due), Bytes(sector * 512));
        trace.push(Request { due, offset, len, op, stream });
    }
    trace
}

/// Enough writes that flash has been cleaned.
pub fn aged(rows: &[Row]) -> Trace {
    let filled: Vec<Row> = (0..90).map(|k| (200_900, 8, k * 37 % 440, 9_000, 0)).collect();
    trace(&[&filled, rows].concat())
}
