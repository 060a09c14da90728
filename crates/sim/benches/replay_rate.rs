//! Requests per second and core of the open-loop replay, from a trace in memory.
//!
//! The device is the linear model, with a fitted-like distribution or plain as most profiles are,
//! alone or under the papers' 16 MB write cache; the trace is OLTP-like (4 KiB reads and writes of
//! random pages that hardly ever hit the cache, log appends, flushes), and for the extremes all
//! reads, all writes, and all within the cache.
//! Prints requests per second of CPU time and bytes per request of the trace in memory.
//! `cargo bench -p sim --bench replay_rate`.

use std::hint::black_box;
use std::time::Instant;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use load::{cache, linear, oltp};
use model::{Device, Linear, WriteCache};
use profile::linear::{LinearParameters, Mixed};
use trace::{Op, Trace};

mod load;

const REQUESTS: usize = 4_000_000;

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

/// The same trace with every request of one operation.
fn all(trace: &Trace, op: Op) -> Trace {
    let mut trace = trace.clone();
    trace.op.fill(op);
    trace
}

/// The same trace within half of the cache.
fn within_cache(trace: &Trace) -> Trace {
    let mut trace = trace.clone();
    trace.offset.iter_mut().for_each(|offset| *offset %= 2000 * 4096);
    trace
}

fn replay_rate(c: &mut Criterion) {
    let mixed = oltp(REQUESTS, u64::MAX, 0.3);
    let flushing = oltp(REQUESTS, 4, 0.3);
    // As most shipped profiles are: lines and ceilings, no distributions.
    let plain = LinearParameters { residuals: Vec::new(), mixed: Mixed::default(), ..linear() };
    let alone = |parameters: &LinearParameters| {
        let parameters = parameters.clone();
        move || Box::new(Linear::new(&parameters, 1)) as Box<dyn Device>
    };
    let cached = |parameters: &LinearParameters| {
        let parameters = parameters.clone();
        move || Box::new(WriteCache::new(Linear::new(&parameters, 1), &cache())) as Box<dyn Device>
    };
    measure(c, "linear", &mixed, &alone(&linear()));
    measure(c, "plain", &mixed, &alone(&plain));
    measure(c, "linear_cache", &mixed, &cached(&linear()));
    measure(c, "linear_cache_flushes", &flushing, &cached(&linear()));
    measure(c, "plain_cache", &mixed, &cached(&plain));
    measure(c, "plain_cache_read_misses", &all(&mixed, Op::Read), &cached(&plain));
    measure(c, "plain_cache_write_misses", &all(&mixed, Op::Write), &cached(&plain));
    measure(c, "plain_cache_hits", &within_cache(&mixed), &cached(&plain));
}

criterion_group!(benches, replay_rate);
criterion_main!(benches);
