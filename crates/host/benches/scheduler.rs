//! Requests per second and core of each scheduler over a device that costs nothing to model.
//!
//! The device serves up to `depth` requests at once, each in 100 us. Eight processes, 30 % writes,
//! half of the requests sequential, at times that the device can follow, with bursts in which the
//! queue fills. `cargo bench -p host --bench scheduler` prints millions of requests per second by
//! CPU time, the best of five.

use std::hint::black_box;
use std::time::Instant;

use host::scheduler::{Kind, Scheduled, Settings};
use model::Device;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

const REQUESTS: u64 = 400_000;

/// Completes everything 100 us after it was issued.
struct Constant;

impl Device for Constant {
    fn submit(&mut self, now: Nanos, _request: &Request) -> Nanos {
        Nanos(now.0 + 100_000)
    }
}

/// Numbers that look random (Lehmer, 128 bits).
struct Numbers(u128);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0xda94_2042_e4dd_58b5);
        (((self.0 >> 64) * u128::from(limit)) >> 64) as u64
    }
}

fn load() -> Trace {
    let streams = (0..8).map(|at| Stream { name: format!("process{at}") }).collect();
    let mut trace = Trace { streams, ..Trace::default() };
    let mut numbers = Numbers(0x5851_f42d_4c95_7f2d_1405_7b7e_f767_814f);
    let (mut now, mut next) = (0, [0; 8]);
    for at in 0..REQUESTS {
        // A burst of 64 each thousand requests.
        now += if at % 1000 < 64 { 0 } else { numbers.below(10_000) };
        let stream = numbers.below(8) as usize;
        let follows = numbers.below(2) == 0;
        let page = if follows { next[stream] } else { numbers.below(35_000_000) };
        next[stream] = page + 1;
        let op = if numbers.below(10) < 7 { Op::Read } else { Op::Write };
        let offset = Bytes(page * 4096);
        trace.push(Request { due: Nanos(now), offset, len: 4096, op, stream: stream as u16 });
    }
    trace
}

/// Seconds of CPU time of this thread; wall time where the kernel does not say.
fn cpu_seconds(start: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    match text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()) {
        Some(ns) if ns > 0 => ns as f64 / 1e9,
        _ => start.elapsed().as_secs_f64(),
    }
}

fn rate(settings: &Settings, trace: &Trace) -> f64 {
    let mut completions = vec![0; 1024];
    let times = (0..5).map(|_| {
        let mut device = Scheduled::new(Box::new(Constant), settings);
        let start = Instant::now();
        let before = cpu_seconds(start);
        for from in (0..trace.count()).step_by(completions.len()) {
            let to = (from + completions.len()).min(trace.count());
            device.submit_due(trace, from..to, &mut completions[..to - from]);
            black_box(&completions);
        }
        cpu_seconds(start) - before
    });
    REQUESTS as f64 / times.fold(f64::MAX, f64::min) / 1e6
}

fn main() {
    let trace = load();
    let kinds = [
        ("none", Kind::None),
        ("deadline", Kind::Deadline),
        ("mq_deadline", Kind::MqDeadline),
        ("anticipatory", Kind::Anticipatory),
        ("cfq", Kind::Cfq),
        ("bfq", Kind::Bfq),
        ("kyber", Kind::Kyber),
    ];
    for (name, kind) in kinds {
        let rotational = matches!(kind, Kind::Anticipatory | Kind::Cfq);
        let settings = Settings { rotational, ..Settings::new(kind) };
        println!("{name:<14} {:>6.2} M requests/s per core", rate(&settings, &trace));
    }
    let gentle = Settings { write_back_throttling: true, ..Settings::new(Kind::None) };
    println!("{:<14} {:>6.2} M requests/s per core", "none and wbt", rate(&gentle, &trace));
}
