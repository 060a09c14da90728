//! What the client makes for each transaction, and the row generator: `cargo bench -p oltp`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use oltp::audit::Tally;
use oltp::postgresql::rows::append;
use oltp::workload::Dataset;
use oltp::workload::nurand::Constants;
use oltp::workload::population::Population;
use oltp::workload::rows::Rows;
use oltp::{Kind, Mix, Scale};

fn inputs(c: &mut Criterion) {
    let scale = Scale::new(10);
    let inputs = Dataset::OrderEntry(scale).source(Mix::NORMAL, 1, Constants::for_run(1, 0));
    let mut group = c.benchmark_group("inputs");
    for kind in Kind::ORDER_ENTRY {
        let mut sequence = 0;
        group.bench_function(kind.name(), |b| {
            b.iter(|| {
                sequence += 1;
                inputs.draw(7, sequence, kind)
            });
        });
    }
    let mut tally = Tally::new(&inputs);
    let mut sequence = 0;
    group.bench_function("mixed_with_audit", |b| {
        b.iter(|| {
            sequence += 1;
            let (kind, _) = inputs.kind(7, sequence);
            tally.observe(&inputs.draw(7, sequence, kind));
        });
    });
    group.finish();

    let population = Population::new(scale, 1);
    let mut group = c.benchmark_group("population");
    let mut key = 0;
    // About 310 bytes of text per stock row.
    group.throughput(Throughput::Bytes(310));
    group.bench_function("stock_row", |b| {
        b.iter(|| {
            key = key % 100_000 + 1;
            population.stock(3, key)
        });
    });
    group.finish();
}

/// Rows of each table in the format of PostgreSQL's binary COPY: bytes per second of one core.
fn copy_rows(c: &mut Criterion) {
    let rows = Rows::new(Dataset::OrderEntry(Scale::new(1)), 1);
    let mut group = c.benchmark_group("copy_rows");
    let mut out = Vec::new();
    for &table in rows.tables() {
        let chunks = rows.chunks(table);
        out.clear();
        append(&rows, chunks[0], &mut out);
        group.throughput(Throughput::Bytes(out.len() as u64));
        group.bench_function(table.name(), |b| {
            b.iter(|| {
                out.clear();
                append(&rows, chunks[0], &mut out)
            });
        });
    }
    // A whole warehouse and the items.
    let all = rows.chunks_by_place();
    let mut bytes = 0;
    let mut warehouse = |bytes: &mut u64| {
        *bytes = 0;
        for &chunk in &all {
            out.clear();
            append(&rows, chunk, &mut out);
            *bytes += out.len() as u64;
        }
    };
    warehouse(&mut bytes);
    group.throughput(Throughput::Bytes(bytes)).sample_size(10);
    group.bench_function("one_warehouse", |b| b.iter(|| warehouse(&mut bytes)));
    group.finish();
}

criterion_group!(benches, inputs, copy_rows);
criterion_main!(benches);
