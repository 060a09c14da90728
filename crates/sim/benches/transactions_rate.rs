//! Simulated transactions per second of processor time: commits and order entry.
//!
//! `commit` is one record and one commit per transaction at 20 terminals on 2 processors; `order
//! entry` computes in 14 pieces between messages, takes two locks, reads two pages and commits.
//! `cargo bench -p sim --bench transactions_rate`.

use std::hint::black_box;
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use model::{Device, Linear};
use sim::transactions::{
    Class, Delays, Discipline, GroupCommit, Length, Load, LockClass, Log, Path, Processors,
    Scheduling, Setup, Step, Switching, Templates, Think, transactions,
};
use stats::rng::Rng;

#[allow(dead_code)]
mod load;

const TRANSACTIONS: u64 = 1_000_000;

/// Seconds of CPU time that this thread has used; wall time where the kernel does not say.
fn cpu_seconds(start: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    match text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()) {
        Some(ns) if ns > 0 => ns as f64 / 1e9,
        _ => start.elapsed().as_secs_f64(),
    }
}

fn commit(rng: &mut Rng) -> Vec<Step> {
    vec![
        Step::Cpu(rng.between(60_000, 140_000)),
        Step::Insert(rng.between(100, 300) as u32),
        Step::Commit,
        Step::Cpu(20_000),
    ]
}

fn order_entry(rng: &mut Rng) -> Vec<Step> {
    let mut steps = vec![Step::Cpu(rng.between(60_000, 140_000)), Step::Lock(0), Step::Lock(1)];
    for _ in 0..12 {
        steps.extend([Step::Client(20_000), Step::Cpu(rng.between(60_000, 140_000))]);
    }
    for _ in 0..2 {
        steps.push(Step::Read { class: 1, bytes: 8192, offset: rng.below(1 << 20) * 8192 });
    }
    steps.extend([Step::Insert(2_000), Step::Commit, Step::Cpu(20_000)]);
    steps
}

fn setup(make: fn(&mut Rng) -> Vec<Step>) -> Setup {
    let mut rng = Rng::new(1);
    let mut templates = Templates::default();
    for _ in 0..10_000 {
        templates.push(0, &make(&mut rng));
    }
    let class = |name: &str| Class {
        name: name.to_owned(),
        path: Path { flush: Delays((10_000..60_000).collect()), ..Path::default() },
        ..Class::default()
    };
    Setup {
        load: Load::Closed(Think::default()),
        terminals: 20,
        processors: Processors {
            count: 2,
            speed: 1.0,
            discipline: Discipline::Fair { slice_ns: 3_000_000, scheduling: Scheduling::default() },
            wake_ns: 5_000,
            switching: Switching::default(),
        },
        classes: vec![class("log"), class("data")],
        log: Log {
            class: 0,
            rule: GroupCommit::POSTGRESQL,
            commit_waits: true,
            page_bytes: 8192,
            region_bytes: 1 << 30,
            delay: None,
            between_cpu_ns: 0,
            leader_cpu_ns: 10_000,
            waiter_cpu_ns: 3_000,
            images: None,
            fill: None,
        },
        locks: [("warehouse", 2), ("district", 20)]
            .map(|(name, keys)| LockClass { name: name.to_owned(), keys, home: false })
            .to_vec(),
        kinds: vec!["transaction".to_owned()],
        templates,
        background: Vec::new(),
        deferred: None,
        warming: None,
        length: Length { warmup_ns: 0, measure_ns: u64::MAX / 2, max_transactions: TRANSACTIONS },
        seed: 1,
    }
}

fn measure(c: &mut Criterion, name: &str, make: fn(&mut Rng) -> Vec<Step>) {
    let mut setup = setup(make);
    let run = |setup: &Setup| {
        let device: Box<dyn Device> = Box::new(Linear::new(&load::linear(), 1));
        transactions(&mut [device], setup).expect("it can be simulated").transactions
    };
    let clock = Instant::now();
    let best = (0..3).map(|_| {
        let start = cpu_seconds(clock);
        let done = black_box(run(&setup));
        (cpu_seconds(clock) - start) / done as f64
    });
    let rate = 1.0 / best.fold(f64::MAX, f64::min);
    println!("{name}: {rate:.0} simulated transactions per second of processor time");
    setup.length.max_transactions = TRANSACTIONS / 20;
    c.benchmark_group("transactions").sample_size(10).bench_function(name, |b| {
        b.iter(|| run(&setup));
    });
}

fn transactions_rate(c: &mut Criterion) {
    measure(c, "commit", commit);
    measure(c, "order_entry", order_entry);
}

criterion_group!(benches, transactions_rate);
criterion_main!(benches);
