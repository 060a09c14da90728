//! The tool's own share of the CPU per request: cells on the null device, clocks and histograms on.
//!
//! The time per request of one second of work; target: at most 120 ns. `cargo bench -p probe`.

use criterion::{Criterion, criterion_group, criterion_main};
use events::Quiet;
use fit::measurement::{Arrival, Cell, Durability, Order};
use io::engine::NullDevice;
use io::target::{TargetInfo, TargetSpec};
use probe::{Options, PlanKind, run_on};
use std::time::Duration;

const RANGE: u64 = 1 << 30;

/// CPU time of `requests` requests, scaled from a cell of fixed length.
fn share(cell: Cell, requests: u64) -> Duration {
    let info = TargetInfo {
        path: "null".into(),
        range_bytes: RANGE,
        logical_block_bytes: 512,
        writable: true,
        fresh: false,
        ..TargetInfo::default()
    };
    let options = Options {
        range_bytes: RANGE,
        plan: PlanKind::Cells(vec![cell]),
        cell_seconds: Some(0.2),
        precondition: false,
        realtime: false,
        ..Options::new(TargetSpec::new("null"))
    };
    let device = NullDevice { size_bytes: RANGE };
    let measured = run_on(&device, &info, &options, Vec::new(), &Quiet, &mut |_| {});
    let cell = &measured.expect("the null device cannot fail").cells[0];
    Duration::from_nanos(((cell.cpu_user_ns + cell.cpu_system_ns) * requests as f64) as u64)
}

fn tool_share(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tool_share");
    group.sample_size(10).measurement_time(Duration::from_secs(3));
    group.warm_up_time(Duration::from_millis(500));
    for (depth, read_share) in [(1, 1.0), (1, 0.0), (32, 1.0), (32, 0.0)] {
        let (order, durability) = (Order::Random, Durability::None);
        let arrival = Arrival::Closed;
        let cell = Cell { order, read_share, size_bytes: 4096, depth, durability, arrival };
        let what = if read_share > 0.5 { "read" } else { "write" };
        group.bench_function(format!("random_{what}_4KiB_qd{depth}"), |bencher| {
            bencher.iter_custom(|requests| share(cell, requests));
        });
    }
    group.finish();
    criterion.bench_function("clock_read", |bencher| bencher.iter(probe::clock::now_ns));
}

criterion_group!(benches, tool_share);
criterion_main!(benches);
