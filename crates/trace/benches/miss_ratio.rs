//! Miss-ratio curves: requests per second on 4 KiB requests, exact and sampled, beside the stack as
//! a list and the textbook way (a standard hash map and a Fenwick tree over time). Prints the error
//! of the sample.

use std::collections::HashMap;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use stats::rng::Rng;
use trace::info::miss_ratio::{Sampling, exact, mean_absolute_error, sampled};
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

const BLOCK_BYTES: u64 = 4096;

/// Reads of single blocks, skewed: a block's number is a power of a uniform number.
fn skewed(requests: u64, blocks: u64, power: i32) -> Trace {
    let mut trace = Trace { streams: vec![Stream::default()], ..Trace::default() };
    let mut rng = Rng::new(5);
    for at in 0..requests {
        let rank = (rng.unit().powi(power) * blocks as f64) as u64;
        // Scattered, or neighbours in rank would be neighbours on the device.
        let block = stats::rng::mix(rank) % (blocks * 4);
        let (due, offset) = (Nanos(at * 1000), Bytes(block * BLOCK_BYTES));
        trace.push(Request { due, offset, len: BLOCK_BYTES as u32, op: Op::Read, stream: 0 });
    }
    trace
}

/// Distances from a stack that is a list; the sum keeps the work from being left out.
fn list(trace: &Trace) -> usize {
    let mut stack: Vec<u64> = Vec::new();
    let mut sum = 0;
    for offset in &trace.offset {
        let block = offset / BLOCK_BYTES;
        if let Some(depth) = stack.iter().rev().position(|other| *other == block) {
            stack.remove(stack.len() - 1 - depth);
            sum += depth;
        }
        stack.push(block);
    }
    sum
}

/// Distances from a hash map of last touches and a Fenwick tree over all touches.
fn textbook(trace: &Trace) -> u64 {
    let mut tree = vec![0i32; trace.count() + 1];
    let mut last: HashMap<u64, usize> = HashMap::new();
    let add = |tree: &mut Vec<i32>, mut node: usize, change: i32| {
        while node < tree.len() {
            tree[node] += change;
            node += node & node.wrapping_neg();
        }
    };
    let mut sum = 0;
    for (at, offset) in trace.offset.iter().enumerate() {
        let previous = last.insert(offset / BLOCK_BYTES, at + 1);
        if let Some(previous) = previous {
            let mut node = previous;
            let mut before = 0;
            while node > 0 {
                before += tree[node];
                node &= node - 1;
            }
            sum += (last.len() as i64 - i64::from(before)) as u64;
            add(&mut tree, previous, -1);
        }
        add(&mut tree, at + 1, 1);
    }
    sum
}

fn curves(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("miss_ratio");
    group.sample_size(10);
    for (name, blocks, power) in
        [("100k blocks", 100_000, 3), ("1M blocks", 1_000_000, 3), ("8M blocks", 8_000_000, 2)]
    {
        let trace = skewed(10_000_000, blocks, power);
        let whole = exact(&trace);
        let sample = sampled(&trace, Sampling::default());
        println!(
            "{name}: {} distinct, mean absolute error of SHARDS at 1 %: {:.5}",
            whole.working_set_blocks,
            mean_absolute_error(&whole, &sample)
        );
        group.throughput(Throughput::Elements(trace.count() as u64));
        group.bench_function(BenchmarkId::new("exact", name), |b| b.iter(|| exact(&trace)));
        group.bench_function(BenchmarkId::new("SHARDS 1 %", name), |b| {
            b.iter(|| sampled(&trace, Sampling::default()));
        });
        if blocks == 1_000_000 {
            group.bench_function(BenchmarkId::new("textbook", name), |b| {
                b.iter(|| textbook(&trace));
            });
        }
    }
    let trace = skewed(100_000, 1_000_000, 3);
    group.throughput(Throughput::Elements(trace.count() as u64));
    group.bench_function(BenchmarkId::new("list", "100k requests"), |b| b.iter(|| list(&trace)));
    group.finish();
}

criterion_group!(benches, curves);
criterion_main!(benches);
