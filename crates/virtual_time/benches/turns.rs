//! What a request in virtual time costs: alone, and where the turn goes to another thread.

use std::hint::black_box;
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use model::Device;
use trace::{Op, Request};
use units::Nanos;
use virtual_time::{Computing, Settings, World};

struct Millisecond;

impl Device for Millisecond {
    fn submit(&mut self, now: Nanos, _: &Request) -> Nanos {
        Nanos(now.0 + 1_000_000)
    }
}

fn requests(bench: &mut Criterion) {
    for workers in [1_usize, 4] {
        bench.bench_function(&format!("requests of {workers} workers"), |bench| {
            bench.iter_custom(|iterations| {
                let settings =
                    Settings { processors: 2, computing: Computing::Measured { speed: 1.0 } };
                let world = World::new(Box::new(Millisecond), &settings);
                world.expect(workers);
                let start = Instant::now();
                std::thread::scope(|scope| {
                    for worker in 0..workers {
                        let world = &world;
                        scope.spawn(move || {
                            let _member = world.join(worker);
                            for step in 0..iterations / workers as u64 {
                                world.io(Op::Write, black_box(step) * 4096, 4096, 0);
                            }
                        });
                    }
                });
                start.elapsed()
            });
        });
    }
}

criterion_group!(benches, requests);
criterion_main!(benches);
