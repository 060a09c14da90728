//! What recording one time costs, against the `hdrhistogram` crate at the nearest precision.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use stats::Histogram;
use stats::rng::Rng;
use std::hint::black_box;

/// Service times as a disk gives them: exponential around 80 us, one in a hundred 20 times longer.
fn times() -> Vec<u64> {
    let mut rng = Rng::new(1);
    let mut next = || {
        let tail = if rng.below(100) == 0 { 20.0 } else { 1.0 };
        (20_000.0 + rng.exponential(60_000.0) * tail) as u64
    };
    (0..4096).map(|_| next()).collect()
}

fn record(criterion: &mut Criterion) {
    let times = times();
    let mut group = criterion.benchmark_group("record");
    group.throughput(Throughput::Elements(times.len() as u64));
    group.bench_function("wearmark", |bencher| {
        let mut histogram = Histogram::new();
        bencher.iter(|| times.iter().for_each(|time| histogram.record(black_box(*time))));
    });
    group.bench_function("hdrhistogram", |bencher| {
        let mut histogram =
            hdrhistogram::Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 2)
                .expect("bounds");
        bencher
            .iter(|| times.iter().for_each(|time| histogram.saturating_record(black_box(*time))));
    });
    group.finish();
}

criterion_group!(benches, record);
criterion_main!(benches);
