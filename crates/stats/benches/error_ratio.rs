//! What a comparison of a million requests costs, with and without its interval.

use criterion::{Criterion, criterion_group, criterion_main};
use stats::error_ratio::{Block, Resampling, compare, compare_with_interval};
use stats::rng::Rng;

fn comparisons(criterion: &mut Criterion) {
    let mut rng = Rng::new(1);
    let mut side =
        |mean: f64| -> Vec<u64> { (0..1_000_000).map(|_| rng.exponential(mean) as u64).collect() };
    let (simulated, real) = (side(90_000.0), side(100_000.0));
    let mut group = criterion.benchmark_group("error_ratio of 1 M requests");
    group.sample_size(10);
    group.bench_function("exact", |bencher| bencher.iter(|| compare(&simulated, &real)));
    let resampling = Resampling { resamples: 200, seed: 1, block: Block::Requests(5_000) };
    group.bench_function("with interval, 200 resamples", |bencher| {
        bencher.iter(|| compare_with_interval(&simulated, &real, &resampling));
    });
    group.finish();
}

criterion_group!(benches, comparisons);
criterion_main!(benches);
