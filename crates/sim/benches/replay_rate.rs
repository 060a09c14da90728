//! Requests per second and core of the open-loop replay, from a trace in memory.
//!
//! The device is the linear model with a fitted-like distribution under the papers' 16 MB write
//! cache; the trace is OLTP-like (4 KiB reads and writes of random pages, log appends, flushes).
//! Prints requests per second of CPU time and bytes per request of the trace in memory.
//! `cargo bench -p sim --bench replay_rate`.

use std::hint::black_box;
use std::time::Instant;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use model::linear::{Context, Detection, Flush, Line, LinearParameters, Mixed, Residual};
use model::{Device, Linear, Quantiles, WriteCache, WriteCacheParameters};
use stats::rng::Rng;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

const REQUESTS: usize = 4_000_000;

/// Pages of a table and a log. `flush_every` log appends.
fn oltp(flush_every: u64, write_share: f64) -> Trace {
    let mut rng = Rng::new(3);
    let mut trace = Trace {
        streams: ["data", "log"].map(|name| Stream { name: name.to_owned() }).to_vec(),
        ..Trace::default()
    };
    let (mut now, mut log, mut appends) = (0, 1u64 << 34, 0);
    while trace.count() < REQUESTS {
        now += rng.below(40_000);
        let due = Nanos(now);
        if rng.unit() < 0.15 {
            let len = 4096 * rng.between(1, 4) as u32;
            trace.push(Request { due, offset: Bytes(log), len, op: Op::Write, stream: 1 });
            log += u64::from(len);
            appends += 1;
            if appends % flush_every == 0 {
                trace.push(Request { due, offset: Bytes(0), len: 0, op: Op::Flush, stream: 1 });
            }
            continue;
        }
        let op = if rng.unit() < write_share { Op::Write } else { Op::Read };
        // Skewed: the square of a uniform number, over 4 GiB.
        let page = (rng.unit() * rng.unit() * (1 << 20) as f64) as u64;
        trace.push(Request { due, offset: Bytes(page * 4096), len: 4096, op, stream: 0 });
    }
    trace
}

fn linear() -> LinearParameters {
    let line = |base_ns, ns_per_byte| Line {
        base_ns,
        ns_per_byte,
        ceiling_iops: Some(200_000.0),
        ceiling_bytes_per_s: Some(1e9),
    };
    let ratios = Quantiles(vec![(0.0, 0.6), (0.5, 0.9), (0.9, 1.3), (0.99, 4.0), (1.0, 40.0)]);
    let residual = |op, context, size| Residual {
        op,
        pattern: None,
        size_bytes: Some(size),
        context,
        ratios: ratios.clone(),
    };
    let mut residuals = Vec::new();
    for op in [Op::Read, Op::Write, Op::Flush] {
        for size in [4096, 16_384, 65_536] {
            residuals.push(residual(op, Context::Any, size));
        }
    }
    residuals.push(residual(Op::Write, Context::AfterFlush, 4096));
    LinearParameters {
        capacity: Some(Bytes(64 << 30)),
        read: [line(40_000.0, 1.0), line(50_000.0, 1.2)],
        write: [line(10_000.0, 1.0), line(12_000.0, 1.5)],
        parallelism: 8,
        detection: Detection::PerStream,
        mixed: Mixed { read_factor: 1.3, write_factor: 1.1, window_requests: 32 },
        flush: Flush { base_ns: 20_000.0, ns_per_dirty_byte: 0.1, ns_per_dirty_request: 0.0 },
        trim_ns: 0.0,
        residuals,
    }
}

fn cache() -> WriteCacheParameters {
    WriteCacheParameters {
        hit_base_ns: 8_000.0,
        ports: 4,
        high_watermark: 0.9,
        low_watermark: 0.5,
        coalesce_bytes: 64 << 10,
        ..WriteCacheParameters::default()
    }
}

/// Bytes that the columns of `trace` hold per request.
fn bytes_per_request() -> usize {
    size_of::<u64>() * 2 + size_of::<u32>() + size_of::<Op>() + size_of::<u16>()
}

/// Seconds of CPU time that this thread has used; wall time where the kernel does not say.
fn cpu_seconds(start: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    match text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()) {
        Some(ns) if ns > 0 => ns as f64 / 1e9,
        _ => start.elapsed().as_secs_f64(),
    }
}

fn measure(c: &mut Criterion, name: &str, trace: &Trace, device: &dyn Fn() -> Box<dyn Device>) {
    let clock = Instant::now();
    let best = |run: &dyn Fn(&mut dyn Device)| {
        let times = (0..5).map(|_| {
            let mut device = device();
            let start = cpu_seconds(clock);
            run(device.as_mut());
            cpu_seconds(clock) - start
        });
        trace.count() as f64 / times.fold(f64::MAX, f64::min) / 1e6
    };
    println!(
        "{name}: {:.1} M requests/s per core with histograms, {:.1} M response times only; \
         {} bytes per request of the trace",
        best(&|device| drop(black_box(sim::replay(device, trace)))),
        best(&|device| drop(black_box(sim::responses(device, trace)))),
        bytes_per_request()
    );
    let mut group = c.benchmark_group("replay");
    group.throughput(Throughput::Elements(trace.count() as u64)).sample_size(10);
    group.bench_function(name, |b| {
        b.iter(|| sim::replay(device().as_mut(), trace));
    });
    group.finish();
}

fn replay_rate(c: &mut Criterion) {
    let mixed = oltp(u64::MAX, 0.3);
    let flushing = oltp(4, 0.3);
    let linear_only = || Box::new(Linear::new(&linear(), 1)) as Box<dyn Device>;
    let cached =
        || Box::new(WriteCache::new(Linear::new(&linear(), 1), &cache())) as Box<dyn Device>;
    measure(c, "linear", &mixed, &linear_only);
    measure(c, "linear_cache", &mixed, &cached);
    measure(c, "linear_cache_flushes", &flushing, &cached);
}

criterion_group!(benches, replay_rate);
criterion_main!(benches);
