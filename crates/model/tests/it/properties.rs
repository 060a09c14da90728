//! What every model promises.

use std::collections::BTreeMap;

use model::observe::{Cause, Probe, Purpose, Span};
use model::{Device, Linear, Ram, WriteCache};
use profile::Quantiles;
use profile::linear::{Context, Line, LinearParameters, Mixed, Residual};
use profile::ram::RamParameters;
use proptest::prelude::*;
use trace::{Op, Request, Trace};
use units::{Bytes, Nanos};

use crate::support::{counter, line, load, plain, request, run, small_cache};

/// A device with everything switched on.
fn rich() -> LinearParameters {
    let ratios = Quantiles(vec![(0.0, 0.5), (0.9, 1.0), (0.99, 3.0), (1.0, 40.0)]);
    let residual = |op, context| Residual {
        op,
        pattern: None,
        size_bytes: None,
        context,
        ratios: ratios.clone(),
    };
    let with_ceiling =
        |line: Line| Line { ceiling_iops: Some(90_000.0), ceiling_bytes_per_s: Some(4e8), ..line };
    LinearParameters {
        read: [with_ceiling(line(40_000.0, 2.0)), with_ceiling(line(60_000.0, 3.0))],
        write: [with_ceiling(line(20_000.0, 2.5)), with_ceiling(line(25_000.0, 4.0))],
        parallelism: 4,
        mixed: Mixed { read_factor: 2.0, write_factor: 1.5, window_requests: 8 },
        residuals: vec![
            residual(Op::Read, Context::Any),
            residual(Op::Write, Context::Any),
            residual(Op::Write, Context::AfterFlush),
            residual(Op::Read, Context::IdleFor(20_000.0)),
            residual(Op::Flush, Context::Any),
        ],
        ..plain(0.0, 0.0)
    }
}

fn ram() -> RamParameters {
    RamParameters { capacity: None, latency_ns: 5_000.0, bytes_per_s: 1e9, ports: 3 }
}

fn devices(seed: u64) -> Vec<(&'static str, Box<dyn Device>)> {
    vec![
        ("plain", Box::new(Linear::new(&plain(50_000.0, 2.0), seed))),
        ("rich", Box::new(Linear::new(&rich(), seed))),
        ("ram", Box::new(Ram::new(&ram()))),
        ("cached", Box::new(WriteCache::new(Linear::new(&rich(), seed), &small_cache(16)))),
        ("cached ram", Box::new(WriteCache::new(Ram::new(&ram()), &small_cache(5)))),
    ]
}

/// The times that a device sees: panics when they fall.
struct Watched<D> {
    inner: D,
    last: u64,
}

impl<D: Device> Device for Watched<D> {
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos {
        assert!(now.0 >= self.last, "time ran back from {} to {}", self.last, now.0);
        self.last = now.0;
        self.inner.submit(now, request)
    }
}

proptest! {
    #[test]
    fn completion_is_never_before_submission(load in load(200)) {
        for (name, mut device) in devices(1) {
            let completions = run(device.as_mut(), &load);
            for ((now, request), completion) in load.iter().zip(completions) {
                prop_assert!(completion >= *now, "{name}: {request:?}");
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_times(load in load(200), seed: u64) {
        for ((name, mut first), (_, mut second)) in devices(seed).into_iter().zip(devices(seed)) {
            let (a, b) = (run(first.as_mut(), &load), run(second.as_mut(), &load));
            prop_assert_eq!(a, b, "{}", name);
            prop_assert_eq!(first.counters(), second.counters());
        }
    }

    #[test]
    fn a_batch_gives_what_single_requests_give(load in load(200)) {
        let mut trace = Trace::default();
        for (_, request) in &load {
            trace.push(*request);
        }
        for ((name, mut single), (_, mut batch)) in devices(7).into_iter().zip(devices(7)) {
            let mut completions = vec![0; load.len()];
            batch.submit_due(&trace, 0..load.len(), &mut completions);
            prop_assert_eq!(run(single.as_mut(), &load), completions, "{}", name);
        }
    }

    /// The cache works out the past when the next request comes; the device behind must not see it.
    #[test]
    fn the_device_behind_a_cache_sees_time_that_never_falls(load in load(300), idle: bool) {
        let inner = Watched { inner: Linear::new(&rich(), 3), last: 0 };
        let mut parameters = small_cache(16);
        parameters.high_watermark = 0.75;
        parameters.low_watermark = 0.25;
        parameters.idle_destage_after_ns = idle.then_some(40_000.0);
        run(&mut WriteCache::new(inner, &parameters), &load);
    }

    #[test]
    fn lines_are_conserved(load in load(300), high in 0.0f64..1.0, lines in 1u64..40) {
        let mut parameters = small_cache(lines);
        parameters.high_watermark = high;
        parameters.low_watermark = high / 2.0;
        let mut cache = WriteCache::new(Linear::new(&rich(), 3), &parameters);
        run(&mut cache, &load);
        let count = |name| counter(&cache, name);
        prop_assert_eq!(
            count("cache_written_lines"),
            count("cache_destaged_lines") + count("cache_dirty_lines")
                + count("cache_overwritten_lines") + count("cache_trimmed_dirty_lines")
        );
        prop_assert!(count("cache_dirty_lines") <= lines);
        prop_assert!(count("device_written_bytes") >= count("cache_destaged_lines") * 4096);
    }

    #[test]
    fn a_larger_request_never_takes_less(size in 1u32..1_000_000, more in 0u32..1_000_000) {
        for op in [Op::Read, Op::Write] {
            for ((name, mut small), (_, mut large)) in devices(5).into_iter().zip(devices(5)) {
                // Below the cache's size: above it writes go around it.
                let largest = if name.starts_with("cached") { 20_000 } else { u32::MAX };
                let (size, larger) = (size.min(largest), (size + more).min(largest));
                let time_small = small.submit(Nanos(0), &request(op, 0, size)).0;
                let time_large = large.submit(Nanos(0), &request(op, 0, larger)).0;
                prop_assert!(time_small <= time_large, "{name} {op:?}");
            }
        }
    }
}

#[test]
fn sequential_is_where_the_previous_request_of_the_stream_ended() {
    let mut parameters = plain(0.0, 0.0);
    parameters.write = [line(1_000.0, 0.0), line(9_000.0, 0.0)];
    let mut device = Linear::new(&parameters, 1);
    let mut times = Vec::new();
    let mut now = 0;
    for (offset, stream) in [(0, 1), (4096, 1), (1 << 20, 0), (8192, 1), (8192, 1)] {
        let request = Request { stream, ..request(Op::Write, offset, 4096) };
        let completion = device.submit(Nanos(now), &request).0;
        times.push(completion - now);
        now = completion;
    }
    assert_eq!(times, [9_000, 1_000, 9_000, 1_000, 9_000]);
    parameters.detection = profile::linear::Detection::Global;
    let mut device = Linear::new(&parameters, 1);
    let mut sequential = 0;
    for (offset, stream) in [(0, 1), (4096, 0), (1 << 20, 0), (8192, 1)] {
        let request = Request { stream, ..request(Op::Write, offset, 4096) };
        device.submit(Nanos(1 << 30), &request);
        sequential += u64::from(offset == 4096);
    }
    assert_eq!(counter(&device, "device_sequential_requests"), sequential);
}

/// A log writes the block that it had not filled again, with what follows; a page that is only
/// written again is no append, and a read repeats nothing.
#[test]
fn a_write_that_repeats_the_end_of_the_previous_one_and_goes_on_is_sequential() {
    let mut device = Linear::new(&plain(1_000.0, 0.0), 1);
    let mut now = 0;
    let mut is_sequential = |op, offset, len| {
        let before = counter(&device, "device_sequential_requests");
        now = device.submit(Nanos(now), &request(op, offset, len)).0;
        counter(&device, "device_sequential_requests") > before
    };
    for (op, offset, len, expected) in [
        (Op::Write, 1 << 20, 16 << 10, false),
        (Op::Write, (1 << 20) + (12 << 10), 20 << 10, true),
        (Op::Write, (1 << 20) + (24 << 10), 16 << 10, true),
        (Op::Write, (1 << 20) + (36 << 10), 4 << 10, false),
        (Op::Write, (1 << 20) + (24 << 10), 64 << 10, false),
        (Op::Read, 0, 8 << 10, false),
        (Op::Read, 4 << 10, 8 << 10, false),
        (Op::Read, 12 << 10, 8 << 10, true),
    ] {
        assert_eq!(is_sequential(op, offset, len), expected, "{op:?} {offset} {len}");
    }
}

#[test]
fn a_mix_costs_its_factor_from_an_even_mix_on() {
    let mut parameters = plain(10_000.0, 0.0);
    parameters.mixed = Mixed { read_factor: 3.0, write_factor: 1.0, window_requests: 16 };
    let mut device = Linear::new(&parameters, 1);
    let mut now = 0;
    let mut time = |op, now: &mut u64| {
        let completion = device.submit(Nanos(*now), &request(op, 0, 512)).0;
        let time = completion - *now;
        *now = completion;
        time
    };
    assert_eq!(time(Op::Read, &mut now), 10_000, "alone");
    for _ in 0..200 {
        time(Op::Write, &mut now);
    }
    assert_eq!(time(Op::Read, &mut now), 30_000, "among writes only");
    for _ in 0..400 {
        time(Op::Read, &mut now);
        time(Op::Write, &mut now);
    }
    let even = time(Op::Read, &mut now);
    assert!((28_000..=30_000).contains(&even), "even mix: {even}");
    for _ in 0..400 {
        time(Op::Read, &mut now);
    }
    assert_eq!(time(Op::Read, &mut now), 10_000, "alone again");
}

/// However times scatter, one request at a time takes its own time: the ceiling is for several.
#[test]
fn one_request_at_a_time_never_meets_the_ceiling() {
    let mut parameters = plain(100_000.0, 0.0);
    let ratios = Quantiles(vec![(0.0, 0.2), (0.9, 0.4), (1.0, 13.4)]);
    let ratios = ratios.scaled(1.0 / ratios.mean());
    let (op, pattern, size_bytes, context) = (Op::Read, None, None, Context::Any);
    parameters.residuals = vec![Residual { op, pattern, size_bytes, context, ratios }];
    let run = |parameters: &LinearParameters| {
        let mut device = Linear::new(parameters, 1);
        (0..1000).fold(0, |now, _| device.submit(Nanos(now), &request(op, 0, 4096)).0)
    };
    let free = run(&parameters);
    for line in &mut parameters.read {
        line.ceiling_iops = Some(10_000.0);
    }
    assert_eq!(run(&parameters), free);
}

#[test]
fn flushes_wait_for_writes_and_share_their_turn() {
    let mut device = Linear::new(&plain(50_000.0, 0.0), 1);
    let flush = request(Op::Flush, 0, 0);
    let mut at = |now, request: &Request| device.submit(Nanos(now), request).0;
    assert_eq!(at(0, &flush), 30_000, "nothing dirty");
    assert_eq!(at(40_000, &request(Op::Write, 0, 10_000)), 90_000);
    // 30 us and 0.1 ns for each of 10,000 bytes, from the end of the write on.
    assert_eq!(at(50_000, &flush), 121_000);
    // The next two arrive while it runs: one more flush serves both.
    assert_eq!(at(95_000, &flush), 151_000);
    assert_eq!(at(96_000, &flush), 151_000);
    // A write in between is not covered by the waiting flush.
    assert_eq!(at(97_000, &request(Op::Write, 0, 10_000)), 147_000);
    assert_eq!(at(98_000, &flush), 182_000);
    assert_eq!(counter(&device, "device_joined_flushes"), 1);
}

#[test]
fn contexts_choose_their_tables() {
    let constant = |ratio: f64| Quantiles(vec![(0.0, ratio), (1.0, ratio)]);
    let residual = |context, size_bytes, ratio| Residual {
        op: Op::Write,
        pattern: None,
        size_bytes,
        context,
        ratios: constant(ratio),
    };
    let mut parameters = plain(10_000.0, 0.0);
    parameters.flush.base_ns = 0.0;
    parameters.flush.ns_per_dirty_byte = 0.0;
    parameters.residuals = vec![
        residual(Context::Any, Some(4096), 1.0),
        residual(Context::Any, Some(65_536), 2.0),
        residual(Context::IdleFor(5_000.0), Some(4096), 3.0),
        residual(Context::IdleFor(80_000.0), None, 4.0),
        residual(Context::AfterFlush, None, 5.0),
    ];
    let mut device = Linear::new(&parameters, 1);
    let mut now = 1_000_000;
    let mut time = |gap: u64, op, len| {
        now += gap;
        let completion = device.submit(Nanos(now), &request(op, 0, len)).0;
        let time = completion - now;
        now = completion;
        time
    };
    assert_eq!(time(0, Op::Write, 4096), 40_000, "the first of all comes after a long pause");
    assert_eq!(time(0, Op::Write, 4096), 10_000);
    assert_eq!(time(0, Op::Write, 11_000), 10_000, "nearer to 4 KiB than to 64 KiB");
    assert_eq!(time(0, Op::Write, 1 << 20), 20_000, "beyond the largest size");
    assert_eq!(time(5_000, Op::Write, 4096), 30_000, "after a pause");
    assert_eq!(time(5_000, Op::Write, 65_536), 20_000, "a pause measured at 4 KiB says nothing");
    assert_eq!(
        time(80_000, Op::Write, 65_536),
        40_000,
        "one measured at no size in particular does"
    );
    assert_eq!(time(0, Op::Flush, 0), 0);
    assert_eq!(time(0, Op::Write, 4096), 50_000, "after a flush");
    assert_eq!(time(6_000, Op::Read, 4096), 10_000, "reads have no table");
    assert_eq!(time(0, Op::Write, 4096), 30_000, "only writes count for the pause of a write");
    assert_eq!(time(0, Op::Flush, 0), 0);
    assert_eq!(time(6_000, Op::Write, 4096), 30_000, "a pause beats a flush");
}

#[test]
fn a_dram_ssd_is_limited_by_its_interface() {
    let mut device = Ram::new(&ram());
    // 64 KiB take 65.5 us at 1 GB/s; three ports cannot help.
    let last = (0..100).map(|_| device.submit(Nanos(0), &request(Op::Read, 0, 65_536)).0).max();
    let expected = 100 * 65_536 + 5_000;
    assert_eq!(last, Some(expected));
    let idle = Ram::new(&ram()).submit(Nanos(0), &request(Op::Write, 0, 1_000)).0;
    assert_eq!(idle, 6_000);
}

#[test]
fn capacity_is_that_of_the_device_behind() {
    let mut parameters = plain(1.0, 1.0);
    parameters.capacity = Some(Bytes(1 << 30));
    let cache = WriteCache::new(Linear::new(&parameters, 1), &small_cache(4));
    assert_eq!(cache.capacity(), Some(Bytes(1 << 30)));
}

/// Keeps every span.
#[derive(Default)]
struct Spans(Vec<Span>);

impl Probe for Spans {
    fn span(&mut self, span: &Span) {
        self.0.push(*span);
    }
}

proptest! {
    /// Observing changes nothing, paths sum to times, and no resource does two things at once.
    #[test]
    fn observation_accounts_for_all_time(load in load(300), seed: u64) {
        let unobserved = devices(seed).into_iter().map(|(_, device)| device);
        for ((name, mut device), mut unobserved) in devices(seed).into_iter().zip(unobserved) {
            let mut spans = Spans::default();
            let expected = run(unobserved.as_mut(), &load);
            for ((now, request), expected) in load.iter().zip(expected) {
                let found = device.submit_observed(Nanos(*now), request, &mut spans);
                prop_assert_eq!(found.0.0, expected, "{}: {:?}", name, request);
                prop_assert_eq!(found.1.total(), expected - now, "{}: {:?}", name, found.1);
                prop_assert_eq!(found.1.get(Cause::Unknown), 0, "{} tells all", name);
            }
            prop_assert_eq!(device.counters(), unobserved.counters());
            let mut free_at = BTreeMap::new();
            spans.0.sort_by_key(|span| (span.track, span.start_ns));
            for span in spans.0 {
                let free_at = free_at.entry(span.track).or_insert(0);
                prop_assert!(span.start_ns >= *free_at, "{}: {:?} while busy", name, span);
                prop_assert!(span.end_ns > span.start_ns, "{}: {:?}", name, span);
                *free_at = span.end_ns;
            }
        }
    }
}

/// The same request meets, one after another, every cause that a cached linear device has.
#[test]
fn causes_are_told_apart() {
    let mut parameters = small_cache(2);
    parameters.hit_base_ns = 100.0;
    parameters.coalesce_bytes = 4096;
    let mut device = WriteCache::new(Linear::new(&plain(1_000.0, 0.0), 1), &parameters);
    let mut spans = Spans::default();
    let mut path = |now: u64, op, block: u64| {
        let request = request(op, block * 4096, if op == Op::Flush { 0 } else { 4096 });
        let path = device.submit_observed(Nanos(now), &request, &mut spans).1;
        let parts = Cause::ALL.into_iter().filter(|cause| path.get(*cause) > 0);
        parts.map(|cause| (cause.name(), path.get(cause))).collect::<Vec<_>>()
    };
    assert_eq!(path(0, Op::Write, 0), [("cache", 100)]);
    // The one port is busy.
    assert_eq!(path(0, Op::Write, 10), [("queue", 100), ("cache", 100)]);
    // Both lines are dirty: one has to go, for 1 us.
    assert_eq!(path(500, Op::Write, 20), [("cache", 100), ("destage", 1_000)]);
    // The one server is busy with it.
    assert_eq!(path(1_000, Op::Read, 30), [("queue", 500), ("medium", 1_000)]);
    // Two destages of 1 us behind each other, then 30 us and 0.1 ns per byte of 12,288.
    assert_eq!(path(3_000, Op::Flush, 0), [("flush", 33_229)]);
    let destages = spans.0.iter().filter(|span| span.purpose == Purpose::Destage).count();
    // Each on its server and, taking no time there, not on the interface.
    assert_eq!(destages, 3);
}

proptest! {
    /// A device that was set aside goes on as if it had not been.
    #[test]
    fn a_restored_device_goes_on(load in load(300), seed: u64, share in 0.0f64..1.0, at: usize) {
        let cut = (load.len() as f64 * share) as usize;
        let restored = devices(seed).into_iter().map(|(_, device)| device);
        for ((name, mut device), mut restored) in devices(seed).into_iter().zip(restored) {
            run(device.as_mut(), &load[..cut]);
            let snapshot = device.snapshot().expect("all of these have snapshots");
            prop_assert_eq!(restored.restore(&snapshot), Ok(()), "{}", name);
            prop_assert_eq!(restored.snapshot(), Some(snapshot.clone()), "{}", name);
            let expected = run(device.as_mut(), &load[cut..]);
            prop_assert_eq!(run(restored.as_mut(), &load[cut..]), expected, "{}", name);
            prop_assert_eq!(restored.counters(), device.counters(), "{}", name);
            // Cut short, changed, or of another device, it is refused.
            let at = at % snapshot.len();
            prop_assert!(restored.restore(&snapshot[..at]).is_err());
            let mut changed = snapshot.clone();
            changed[at] ^= 0x10;
            prop_assert!(restored.restore(&changed).is_err());
            for (other, mut device) in devices(seed) {
                prop_assert!(other == name || device.restore(&snapshot).is_err(), "{}", other);
            }
        }
    }
}
