//! Requests per second and core of the disk model, from a trace in memory.
//!
//! The disk is the shipped 15,000 rpm profile, once with its queue and once without. The trace is
//! random 4 KiB reads and writes and a sequential stream, at times that the disk can follow.
//! `cargo bench -p model --bench hdd_rate` prints millions of requests per second, the best of
//! five.

use std::hint::black_box;
use std::time::Instant;

use model::Device;
use model::Hdd;
use profile::hdd::HddParameters;
use profile::{DeviceSpec, Profile, find_shipped};
use stats::rng::Rng;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

const REQUESTS: u64 = 1_000_000;

/// `streaming` of the requests follow each other, the others go anywhere.
fn load(streaming: f64) -> Trace {
    let mut rng = Rng::new(7);
    let mut trace = Trace { streams: vec![Stream { name: "data".to_owned() }], ..Trace::default() };
    let (mut now, mut next) = (0, 0);
    for _ in 0..REQUESTS {
        now += rng.below(12_000_000);
        let stream = rng.unit() < streaming;
        let page = if stream { next } else { rng.below(35_000_000) };
        next = if stream { (next + 1) % 35_000_000 } else { next };
        let op = if rng.unit() < 0.7 { Op::Read } else { Op::Write };
        let offset = Bytes(page * 4096);
        trace.push(Request { due: Nanos(now), offset, len: 4096, op, stream: 0 });
    }
    trace
}

fn rate(parameters: &HddParameters, trace: &Trace) -> f64 {
    let mut completions = vec![0; 1024];
    let times = (0..5).map(|_| {
        let mut disk = Hdd::new(parameters);
        let start = Instant::now();
        for from in (0..trace.count()).step_by(completions.len()) {
            let to = (from + completions.len()).min(trace.count());
            disk.submit_due(trace, from..to, &mut completions[..to - from]);
            black_box(&completions);
        }
        start.elapsed().as_secs_f64()
    });
    REQUESTS as f64 / times.fold(f64::MAX, f64::min) / 1e6
}

fn main() {
    let text = find_shipped("seagate-savvio-15k").expect("it ships");
    let profile = Profile::from_toml(text, "savvio").expect("it is sound");
    let DeviceSpec::Hdd(spec) = &profile.device else { unreachable!("it is a disk") };
    let queued = spec.parameters();
    let mut in_order = queued.clone();
    in_order.queue.depth = 1;
    for (name, streaming) in [("random", 0.0), ("half streaming", 0.5)] {
        let trace = load(streaming);
        println!(
            "{name}: {:.2} M requests/s in order, {:.2} M with the queue",
            rate(&in_order, &trace),
            rate(&queued, &trace)
        );
    }
}
