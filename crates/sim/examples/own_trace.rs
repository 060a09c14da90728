//! A trace of one's own on two drives: `cargo run -p sim --example own_trace`.
//!
//! A database of a sort: random reads of 8 KiB, and every ten milliseconds a commit that appends to
//! a log and flushes it.

use profile::Profile;
use stats::rng::Rng;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

fn database(seed: u64) -> Trace {
    let streams = ["data", "log"].map(|name| Stream { name: name.to_owned() });
    let mut trace = Trace { streams: streams.into(), ..Trace::default() };
    let mut rng = Rng::new(seed);
    for at_ms in 0..20_000 {
        let due = Nanos(at_ms * 1_000_000);
        let offset = Bytes((1 << 30) + rng.below(100_000) * 8192);
        trace.push(Request { due, offset, len: 8192, op: Op::Read, stream: 0 });
        if at_ms % 10 == 0 {
            let offset = Bytes(at_ms / 10 * 4096);
            trace.push(Request { due, offset, len: 4096, op: Op::Write, stream: 1 });
            trace.push(Request { due, offset: Bytes(0), len: 0, op: Op::Flush, stream: 1 });
        }
    }
    trace
}

fn main() {
    let trace = database(1);
    trace.validate().expect("well formed");
    let mut flush_p99 = Vec::new();
    for name in ["samsung-860-qvo", "intel-p3700"] {
        let text = profile::find_shipped(name).expect("it ships");
        let profile = Profile::from_toml(text, name).expect("a sound profile");
        let mut drive = model::device(&profile, 1);
        sim::check(drive.as_ref(), &trace).expect("it fits");
        let outcome = sim::replay(drive.as_mut(), &trace);
        assert_eq!(outcome.requests, trace.count() as u64);
        let (reads, flushes) = (outcome.response_of(Op::Read), outcome.response_of(Op::Flush));
        println!(
            "{name}: reads {:.0} us in the mean, flushes {:.0} us at p99",
            reads.mean() / 1e3,
            flushes.quantile(0.99) as f64 / 1e3
        );
        flush_p99.push(flushes.quantile(0.99));
    }
    assert!(flush_p99[1] < flush_p99[0], "the drive for servers commits faster");
}
