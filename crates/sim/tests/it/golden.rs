//! Pinned outcomes: every completion of these runs, as one number each.
//!
//! A faster model is the same model. Where an outcome changes on purpose, the commit says why and
//! the numbers here change with it.

use model::{Device, Linear, Ram, WriteCache};
use profile::Quantiles;
use profile::linear::{Context, Detection, LinearParameters, Residual};
use profile::ram::RamParameters;
use profile::write_cache::WriteCacheParameters;
use stats::rng::Rng;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

use crate::load;

/// Requests of all kinds and sizes over a small range, with pauses.
fn mixture(count: usize) -> Trace {
    let mut rng = Rng::new(17);
    let streams = ["a", "b", "c"].map(|name| Stream { name: name.to_owned() }).to_vec();
    let mut trace = Trace { streams, ..Trace::default() };
    let mut now = 0;
    for _ in 0..count {
        now += if rng.below(50) == 0 { rng.below(20_000_000) } else { rng.below(60_000) };
        let op = Op::ALL[[0, 0, 0, 1, 1, 1, 1, 1, 2, 3][rng.below(10) as usize]];
        let len = if op == Op::Flush { 0 } else { 1 << rng.between(9, 18) as u32 };
        let offset =
            if op == Op::Flush { 0 } else { rng.below(12_000) * 4096 + rng.below(8) * 512 };
        let stream = rng.below(3) as u16;
        trace.push(Request { due: Nanos(now), offset: Bytes(offset), len, op, stream });
    }
    trace
}

/// Distributions by pause and by size, on three servers.
fn pausing() -> LinearParameters {
    let mut parameters = load::linear();
    for (op, idle_ns) in [(Op::Read, 1e5), (Op::Read, 5e6), (Op::Write, 1e6), (Op::Flush, 1e6)] {
        parameters.residuals.push(Residual {
            op,
            pattern: None,
            size_bytes: None,
            context: Context::IdleFor(idle_ns),
            ratios: Quantiles(vec![(0.0, 1.0), (0.5, 1.5), (1.0, 3.0)]),
        });
    }
    LinearParameters { parallelism: 3, detection: Detection::Global, ..parameters }
}

/// A cache that everything happens to: pauses, watermarks, stalls, bypasses.
fn busy_cache() -> WriteCacheParameters {
    WriteCacheParameters {
        capacity: Bytes(200_000),
        idle_destage_after_ns: Some(3e6),
        high_watermark: 0.7,
        low_watermark: 0.2,
        ..load::cache()
    }
}

fn number(mut device: impl Device, trace: &Trace) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut take = |value: u64| hash = (hash ^ value).wrapping_mul(0x0100_0000_01b3);
    sim::responses(&mut device, trace).into_iter().for_each(&mut take);
    device.counters().iter().for_each(|counter| take(counter.value));
    format!("{hash:016x}")
}

#[test]
fn outcomes_are_pinned() {
    let oltp = load::oltp(100_000, u64::MAX, 0.3);
    let flushing = load::oltp(100_000, 4, 0.3);
    let mixture = mixture(100_000);
    let mut found = String::new();
    for (name, trace) in [("oltp", &oltp), ("flushing", &flushing), ("mixture", &mixture)] {
        let ram = RamParameters { capacity: None, latency_ns: 7e3, bytes_per_s: 7e8, ports: 3 };
        let rich = || Linear::new(&load::linear(), 5);
        let pausing = || Linear::new(&pausing(), 6);
        let plain = LinearParameters { residuals: Vec::new(), ..load::linear() };
        for (device, number) in [
            ("rich", number(rich(), trace)),
            ("pausing", number(pausing(), trace)),
            ("plain", number(Linear::new(&plain, 7), trace)),
            ("ram", number(Ram::new(&ram), trace)),
            ("cached rich", number(WriteCache::new(rich(), &load::cache()), trace)),
            ("busy pausing", number(WriteCache::new(pausing(), &busy_cache()), trace)),
            ("busy ram", number(WriteCache::new(Ram::new(&ram), &busy_cache()), trace)),
        ] {
            found.push_str(&format!("{name}, {device}: {number}\n"));
        }
    }
    insta::assert_snapshot!(found, @r"
    oltp, rich: 2f2d82958919f359
    oltp, pausing: e088db35f83f0b7a
    oltp, plain: 1aebea7ca55c0f2c
    oltp, ram: 930f5645a8e39fc8
    oltp, cached rich: ff86a4c313867b77
    oltp, busy pausing: 6845dd2545654a6b
    oltp, busy ram: 2d7b758f2cfad9db
    flushing, rich: 8244ed701a0aca62
    flushing, pausing: f5c641680858ab0f
    flushing, plain: 4eeb07b1b04ac766
    flushing, ram: 9fac713127921041
    flushing, cached rich: 902eebe6ebe516fa
    flushing, busy pausing: e5ff8321855bd8ce
    flushing, busy ram: b410a030f6b40d1d
    mixture, rich: 20c9814b34dfb9d2
    mixture, pausing: 9b3cea7bd7efbc64
    mixture, plain: 8de6b70bc623dd22
    mixture, ram: 759903deffef4eb3
    mixture, cached rich: 9d3509358e69e411
    mixture, busy pausing: 8eaff05778785530
    mixture, busy ram: f140c21395348e5a
    ");
}
