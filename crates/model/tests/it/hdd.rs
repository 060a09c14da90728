//! The disk against closed forms: rotation, seeks, streaming.

use model::Device;
use model::hdd::Hdd;
use model::observe::{Cause, Deaf};
use profile::hdd::{
    BufferParameters, BusParameters, Geometry, HddParameters, Order, Overheads, QueueParameters,
    ReadAhead, SeekCurve, Sparing, Zone,
};
use stats::rng::Rng;
use trace::Op;
use units::Nanos;

use crate::support::{counter, request};

pub const TURN_NS: u64 = 6_000_000;

/// 10,000 rpm, one zone, no overhead, no buffer, a bus that takes next to nothing.
pub fn plain(cylinders: u32, heads: u32, sectors_per_track: u32) -> HddParameters {
    HddParameters {
        geometry: Geometry {
            heads,
            order: Order::Cylinders,
            sparing: Sparing::None,
            range_cylinders: 1,
            zones: vec![Zone {
                first_cylinder: 0,
                last_cylinder: cylinders - 1,
                sectors_per_track,
                offset_sectors: 0.0,
                track_skew_sectors: f64::from(sectors_per_track) / 4.0,
                cylinder_skew_sectors: f64::from(sectors_per_track) / 2.0,
                reserved_sectors: 0,
                spares: 0,
                slips: Vec::new(),
            }],
        },
        sectors: None,
        rpm: 10_000,
        seek: SeekCurve::Lee { single_ms: 1.0, average_ms: 5.0, full_ms: 10.0 },
        head_switch_ns: 1_000_000,
        write_settle_ns: 0,
        overhead: Overheads::default(),
        bus: BusParameters { read_sector_ns: 1, write_sector_ns: 1, ..BusParameters::default() },
        buffer: BufferParameters::default(),
        queue: QueueParameters::default(),
    }
}

/// Mean service time of `count` single-sector requests at random places, each a random while after
/// the one before, ns.
fn mean_random_ns(parameters: &HddParameters, op: Op, count: u64) -> f64 {
    let mut disk = Hdd::new(parameters);
    let sectors = disk.capacity().expect("a disk has one").0 / 512;
    let (mut rng, mut now, mut sum) = (Rng::new(5), 0, 0);
    for _ in 0..count {
        let completion = disk.submit(Nanos(now), &request(op, rng.below(sectors) * 512, 512)).0;
        sum += completion - now;
        now = completion + rng.below(20 * TURN_NS);
    }
    sum as f64 / count as f64
}

#[test]
fn rotation_costs_half_a_turn() {
    let mut parameters = plain(1, 1, 1000);
    parameters.geometry.zones[0].track_skew_sectors = 0.0;
    let found = mean_random_ns(&parameters, Op::Read, 200_000);
    // Half a turn and the sector; the standard error is a turn / sqrt(12 n), 0.004 ms.
    let expected = TURN_NS as f64 / 2.0 + TURN_NS as f64 / 1000.0;
    assert!((found - expected).abs() < 12_000.0, "{found} against {expected}");
}

#[test]
fn random_seeks_cost_the_integral_of_the_curve() {
    let parameters = plain(2000, 1, 100);
    let found = mean_random_ns(&parameters, Op::Read, 200_000);
    let mean_seek: f64 = (1..2000u32)
        .map(|d| parameters.seek.at_ms(d, 2000) * 1e6 * 2.0 * f64::from(2000 - d) / 4e6)
        .sum();
    let expected = mean_seek + TURN_NS as f64 / 2.0 + TURN_NS as f64 / 100.0;
    assert!((found / expected - 1.0).abs() < 0.003, "{found} against {expected}");
}

#[test]
fn streaming_runs_at_the_media_rate_less_the_switches() {
    // A switch costs its skew: a quarter of a turn between heads, half a turn between cylinders.
    let (cylinders, heads, per_track) = (20u64, 4u64, 100u64);
    let parameters = plain(cylinders as u32, heads as u32, per_track as u32);
    let mut disk = Hdd::new(&parameters);
    let bytes = cylinders * heads * per_track * 512;
    let completion = disk.submit(Nanos(0), &request(Op::Read, 0, bytes as u32)).0;
    let switches = cylinders * (heads - 1) * TURN_NS / 4 + (cylinders - 1) * TURN_NS / 2;
    // The first sector passes while the arm settles, so the stream starts a turn later.
    let expected = TURN_NS + cylinders * heads * TURN_NS + switches;
    let off = completion.abs_diff(expected);
    assert!(off < 10_000, "{completion} against {expected}");
    // The same in small pieces, with read-ahead: the stream does not miss a turn.
    let mut small = parameters.clone();
    small.buffer = BufferParameters {
        segments: 2,
        segment_sectors: 400,
        read_ahead: ReadAhead::Segment,
        read_ahead_most_sectors: 400,
        read_ahead_over_requested: true,
        ..BufferParameters::default()
    };
    let mut disk = Hdd::new(&small);
    let mut now = 0;
    for piece in 0..bytes / 4096 {
        now = disk.submit(Nanos(now), &request(Op::Read, piece * 4096, 4096)).0;
    }
    assert!(now.abs_diff(expected) < TURN_NS / 20, "{now} against {expected}");
    assert!(counter(&disk, "device_read_bytes") == bytes);
}

#[test]
fn sequential_writes_without_write_back_lose_a_turn_each() {
    // The host hears of a write when its sector has passed; the next one is a turn away.
    let mut parameters = plain(1, 1, 100);
    parameters.overhead.write_miss_ns = [100_000; 2];
    let mut disk = Hdd::new(&parameters);
    let mut times = Vec::new();
    let mut now = 0;
    for lbn in 0..50u64 {
        let completion = disk.submit(Nanos(now), &request(Op::Write, lbn * 512, 512)).0;
        times.push(completion - now);
        now = completion;
    }
    let turn_and_sector = TURN_NS + TURN_NS / 100;
    assert!(times[1..].iter().all(|time| time.abs_diff(turn_and_sector) < 100), "{times:?}");
    // With write-back it hears at once, and the platter keeps up while there is room.
    parameters.buffer.write_back = 1;
    parameters.buffer.write_back_sectors = 64;
    let mut disk = Hdd::new(&parameters);
    let at_once = disk.submit(Nanos(0), &request(Op::Write, 0, 512)).0;
    assert!(at_once < 10_000, "{at_once}");
    let flushed = disk.submit(Nanos(at_once), &request(Op::Flush, 0, 0)).0;
    assert!(flushed >= TURN_NS / 100, "{flushed}");
}

#[test]
fn immediate_reads_end_within_a_turn() {
    let mut parameters = plain(1, 1, 100);
    for (immediate, mean_turns) in [(false, 1.5), (true, 1.0)] {
        parameters.buffer.immediate_read = immediate;
        let mut disk = Hdd::new(&parameters);
        let (mut rng, mut now, mut sum) = (Rng::new(9), 0, 0);
        for _ in 0..20_000 {
            let completion = disk.submit(Nanos(now), &request(Op::Read, 0, 51_200)).0;
            sum += completion - now;
            now = completion + rng.below(20 * TURN_NS);
        }
        // A whole track: half a turn of waiting and a turn, or just the turn.
        let found = sum as f64 / 20_000.0 / TURN_NS as f64;
        assert!((found - mean_turns).abs() < 0.01, "{found} turns against {mean_turns}");
    }
}

/// The same disk meets, one after another, every cause that a disk has.
#[test]
fn causes_are_told_apart() {
    let mut parameters = plain(500, 2, 100);
    parameters.overhead.read_miss_ns = [100_000; 2];
    parameters.overhead.read_hit_ns = [50_000; 2];
    parameters.overhead.write_hit_ns = [60_000; 2];
    parameters.overhead.write_completion_ns = 1_000;
    parameters.bus.read_sector_ns = 1_000;
    parameters.bus.write_sector_ns = 2_000;
    let buffer = &mut parameters.buffer;
    (buffer.segments, buffer.segment_sectors) = (2, 64);
    (buffer.write_back, buffer.write_back_sectors) = (1, 64);
    let mut disk = Hdd::new(&parameters);
    let mut path = |now: u64, op, lbn: u64, sectors: u32| {
        let found =
            disk.submit_observed(Nanos(now), &request(op, lbn * 512, sectors * 512), &mut Deaf);
        let parts = Cause::ALL.into_iter().filter(|cause| found.1.get(*cause) > 0);
        parts.map(|cause| (cause.name(), found.1.get(cause))).collect::<Vec<_>>()
    };
    // The arm aims for half a single-cylinder seek after the command, which ends just when sector
    // 10 of 100 comes by, a tenth of a turn in. Ten sectors take another tenth.
    let first =
        [("controller", 100_000), ("transfer", 1_000), ("medium", 600_000), ("seek", 500_000)];
    assert_eq!(path(0, Op::Read, 10, 10), first);
    assert_eq!(path(10_000_000, Op::Read, 12, 4), [("controller", 50_000), ("cache", 4_000)]);
    assert_eq!(path(20_000_000, Op::Write, 500, 8), [("controller", 61_000), ("cache", 16_000)]);
    // It waits for the previous command.
    let behind = [("queue", 77_000), ("controller", 50_000), ("cache", 2_000)];
    assert_eq!(path(20_000_000, Op::Read, 14, 2), behind);
    // The buffer was written out meanwhile, to cylinder 2; this is on cylinder 200.
    let far = path(30_000_000, Op::Read, 40_000, 8);
    let seek = (parameters.seek.at_ms(198, 500) * 1e6) as u64;
    assert_eq!(
        far[..4],
        [("controller", 100_000), ("transfer", 1_000), ("medium", 480_000), ("seek", seek)]
    );
    assert!(far[4].0 == "rotation" && far[4].1 < TURN_NS);
    assert_eq!(path(60_000_000, Op::Write, 90_000, 8), [("controller", 61_000), ("cache", 16_000)]);
    // The arm is at it already, and there is room for the next one but not for a third.
    let second = [("queue", 76_999), ("controller", 61_000), ("cache", 16_000)];
    assert_eq!(path(60_000_001, Op::Write, 10, 8), second);
    let third = path(60_000_001, Op::Write, 30, 8);
    assert_eq!((third[3].0, third.len()), ("destage", 4));
    let flush = path(60_000_001, Op::Flush, 0, 0);
    assert_eq!(flush[1], ("controller", 61_000));
    assert_eq!((flush[0].0, flush[2].0, flush.len()), ("queue", "flush", 3));
}
