//! Whole states as bytes: every kind of device goes on from the middle of a run as if it had not
//! been set aside, and bytes that were cut short or changed are refused.

use model::flash::{
    AllocationScheme, EventParameters, FlashParameters, GcMode, GcPolicy, Geometry, Order, Suspend,
    Translation,
};
use model::hdd::{Hdd, HddParameters, QueueParameters, ReadAhead};
use model::{Device, Linear, Ram, RamParameters, SnapshotError, WriteCache};
use proptest::prelude::*;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use crate::support::{plain, small_cache};

/// Bytes that all devices here can address.
const EXTENT: u64 = 480 * 512;

/// 10 MB, with a buffer that does all that buffers do.
fn disk(depth: u32) -> HddParameters {
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

fn flash(events: Option<EventParameters>, policy: GcPolicy) -> FlashParameters {
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
fn events() -> EventParameters {
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

type Make = Box<dyn Fn() -> Box<dyn Device>>;

/// One of every kind of state.
fn kinds() -> Vec<(String, Make)> {
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
        kind("cache", || {
            Box::new(WriteCache::new(Linear::new(&plain(50_000.0, 2.0), 3), &small_cache(16)))
        }),
        kind("disk", || Box::new(Hdd::new(&disk(1)))),
        kind("queueing disk", || Box::new(Hdd::new(&disk(8)))),
        kind("cache over a disk", || {
            Box::new(WriteCache::new(Hdd::new(&disk(1)), &small_cache(16)))
        }),
    ];
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

type Row = (u64, u8, u64, u32, u16);

fn rows(most: usize) -> impl Strategy<Value = Vec<Row>> {
    prop::collection::vec((0u64..400_000, 0u8..24, 0u64..460, 1u32..10_000, 0u16..3), 2..most)
}

/// Requests that overlap often; writes mostly, so that cleaning is in its course.
fn trace(rows: &[Row]) -> Trace {
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
fn aged(rows: &[Row]) -> Trace {
    let filled: Vec<Row> = (0..90).map(|k| (200_900, 8, k * 37 % 440, 9_000, 0)).collect();
    trace(&[&filled, rows].concat())
}

fn serve(device: &mut dyn Device, trace: &Trace, range: std::ops::Range<usize>) -> Vec<u64> {
    let mut completions = vec![0; range.len()];
    let mut at = range.start;
    for chunk in completions.chunks_mut(7) {
        device.submit_due(trace, at..at + chunk.len(), chunk);
        at += chunk.len();
    }
    completions
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// What is on its way at the moment of the snapshot goes on too.
    #[test]
    fn a_restored_device_goes_on_from_the_middle(rows in rows(160), share in 0.0f64..1.0) {
        let trace = aged(&rows);
        // In the middle of a batch or not: devices that look ahead have taken in more.
        let cut = (trace.count() as f64 * share) as usize;
        for (name, make) in kinds() {
            let (mut device, mut restored) = (make(), make());
            serve(device.as_mut(), &trace, 0..cut);
            let snapshot = device.snapshot().expect("all of these have snapshots");
            prop_assert_eq!(restored.restore(&snapshot), Ok(()), "{}", &name);
            prop_assert_eq!(restored.snapshot(), Some(snapshot), "{}", &name);
            let expected = serve(device.as_mut(), &trace, cut..trace.count());
            let found = serve(restored.as_mut(), &trace, cut..trace.count());
            prop_assert_eq!(found, expected, "{}", &name);
            prop_assert_eq!(restored.counters(), device.counters(), "{}", &name);
            prop_assert_eq!(restored.snapshot(), device.snapshot(), "{}", &name);
        }
    }

    /// A state lands on a device that was used before as on a new one.
    #[test]
    fn a_device_that_was_used_takes_a_state_over(rows in rows(60), other in rows(60)) {
        let (trace, other) = (aged(&rows), aged(&other));
        for (name, make) in kinds() {
            let (mut device, mut used) = (make(), make());
            let cut = trace.count() / 2;
            serve(device.as_mut(), &trace, 0..cut);
            serve(used.as_mut(), &other, 0..other.count());
            let snapshot = device.snapshot().expect("all of these have snapshots");
            prop_assert_eq!(used.restore(&snapshot), Ok(()), "{}", &name);
            let expected = serve(device.as_mut(), &trace, cut..trace.count());
            prop_assert_eq!(serve(used.as_mut(), &trace, cut..trace.count()), expected, "{}", name);
            prop_assert_eq!(used.snapshot(), device.snapshot());
        }
    }

    /// Told of arrivals and asked for completions, as closed loops do, with some outstanding.
    #[test]
    fn outstanding_requests_complete_after_a_restore(rows in rows(80), cut in 0usize..170) {
        let trace = aged(&rows);
        for (name, make) in kinds() {
            let (mut device, mut restored) = (make(), make());
            if device.queued().is_none() {
                continue;
            }
            let cut = cut.min(trace.count());
            for index in 0..cut {
                let queued = device.queued().expect("it looks at its queue");
                while queued.next_completion(Nanos(trace.due[index])).is_some() {}
                queued.arrive(Nanos(trace.due[index]), index as u64, &trace.request(index));
            }
            let snapshot = device.snapshot().expect("all of these have snapshots");
            prop_assert_eq!(restored.restore(&snapshot), Ok(()), "{}", &name);
            let rest = |device: &mut dyn Device| {
                let queued = device.queued().expect("it looks at its queue");
                let next = || queued.next_completion(Nanos(u64::MAX));
                std::iter::from_fn(next).collect::<Vec<_>>()
            };
            prop_assert_eq!(rest(restored.as_mut()), rest(device.as_mut()), "{}", name);
        }
    }
}

/// Every length and every eighth bit or so: an error, and never a panic.
#[test]
fn damaged_snapshots_are_refused() {
    let rows: Vec<Row> =
        (0..60u64).map(|k| (k * 7919 % 400_000, (k % 24) as u8, k * 31 % 440, 3_000, 1)).collect();
    let trace = aged(&rows);
    for (name, make) in kinds() {
        let (mut device, mut victim) = (make(), make());
        serve(device.as_mut(), &trace, 0..trace.count() - 20);
        let snapshot = device.snapshot().expect("all of these have snapshots");
        for length in 0..snapshot.len() {
            // All lengths near the ends, and of those between every kind of remainder.
            if length > 100 && length + 100 < snapshot.len() && length % 13 != 0 {
                continue;
            }
            assert!(victim.restore(&snapshot[..length]).is_err(), "{name}: {length} bytes");
        }
        let mut changed = snapshot.clone();
        for bit in (0..snapshot.len() * 8).step_by(if snapshot.len() > 4096 { 67 } else { 3 }) {
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(victim.restore(&changed).is_err(), "{name}: bit {bit}");
            changed[bit / 8] ^= 1 << (bit % 8);
        }
        changed.extend([0; 8]);
        assert!(victim.restore(&changed).is_err(), "{name}: too long");
        assert_eq!(victim.restore(&snapshot), Ok(()), "{name}: and whole it is taken");
    }
}

/// A state never lands on a device of another kind or of other parameters.
#[test]
fn states_of_other_devices_are_refused() {
    let kinds = kinds();
    let mut first = kinds.iter().map(|(_, make)| make()).collect::<Vec<_>>();
    for (place, (name, make)) in kinds.iter().enumerate() {
        let snapshot = make().snapshot().expect("all of these have snapshots");
        for (own, device) in first.iter_mut().enumerate() {
            let taken = device.restore(&snapshot);
            assert_eq!(taken.is_ok(), own == place, "{name} on {}", kinds[own].0);
            let is_other = matches!(taken, Ok(()) | Err(SnapshotError::OtherDevice { .. }));
            assert!(is_other || kinds[own].0.starts_with("cache"), "{name}: {taken:?}");
        }
    }
    let mut slower = disk(1);
    slower.rpm -= 1;
    let snapshot = Hdd::new(&disk(1)).snapshot().expect("disks have snapshots");
    let refused = Hdd::new(&slower).restore(&snapshot);
    assert_eq!(refused, Err(SnapshotError::OtherDevice { what: "a parameter" }));
}
