//! Reading and writing traces in our format: requests per second and bytes per request.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use formats::own;
use trace::generate::{OltpLike, oltp_like};

/// Under foreign load, compare the processor time that `own/read` prints rather than the wall
/// clock.
fn own_format(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("oltp.parquet");
    let trace = oltp_like(&OltpLike { transactions: 1_000_000, ..OltpLike::default() });
    own::write(&trace, &path).expect("written");
    let size = std::fs::metadata(&path).expect("there").len();
    let count = trace.count() as f64;
    println!("{count} requests, {:.2} bytes each", size as f64 / count);
    if let Some(best) = least_cpu_ns(|| drop(own::read(&path).expect("read"))) {
        println!(
            "own/read: {:.1} million requests per second of processor time",
            count * 1e3 / best
        );
    }
    let mut group = criterion.benchmark_group("own");
    group.sample_size(10).throughput(Throughput::Elements(trace.count() as u64));
    group.bench_function("read", |bencher| bencher.iter(|| own::read(&path).expect("read")));
    group.bench_function("read on two threads", |bencher| {
        bencher.iter(|| own::read_on(&path, 2).expect("read"));
    });
    group.bench_function("write", |bencher| {
        bencher.iter(|| own::write(&trace, &path).expect("written"));
    });
    group.finish();
}

/// The least processor time of this thread over fifteen runs, where the kernel counts it.
fn least_cpu_ns(mut run: impl FnMut()) -> Option<f64> {
    let now = || -> Option<f64> {
        let counted = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        counted.split(' ').next()?.parse().ok()
    };
    let mut least: Option<f64> = None;
    for _ in 0..15 {
        let start = now()?;
        run();
        let took = now()? - start;
        least = Some(least.map_or(took, |least| least.min(took)));
    }
    least
}

criterion_group!(benches, own_format);
criterion_main!(benches);
