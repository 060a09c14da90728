//! Making traces: requests per second of the patterns.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use trace::generate::{Pattern, patterns, poisson};
use units::Rate;

const COUNT: u64 = 1_000_000;

fn named(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("generate");
    group.sample_size(10).throughput(Throughput::Elements(COUNT));
    for (pattern, arrivals) in [
        ("sequential", "fixed"),
        ("random", "fixed"),
        ("random", "poisson"),
        ("random", "on-off"),
        ("random", "pareto"),
        ("random", "cascade"),
        ("hot-cold", "poisson"),
        ("zipf", "poisson"),
    ] {
        let options = [("arrivals".to_owned(), arrivals.to_owned())];
        let found = patterns::find(pattern).expect("known");
        let workload = found.workload(&options).expect("sound");
        group.bench_function(format!("{pattern}, {arrivals}"), |bencher| {
            bencher.iter(|| workload.generate(1, COUNT).expect("sound"));
        });
    }
    group.bench_function("the plain function", |bencher| {
        bencher.iter(|| poisson(1, COUNT as usize, Rate(1000.0), &Pattern::default()));
    });
    group.finish();
}

criterion_group!(benches, named);
criterion_main!(benches);
