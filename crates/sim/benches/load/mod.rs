//! Devices and traces that the bench and the golden outcomes share.

use profile::Quantiles;
use profile::linear::{Context, Detection, Flush, Line, LinearParameters, Mixed, Residual};
use profile::write_cache::WriteCacheParameters;
use stats::rng::Rng;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

/// Pages of a table and a log. `flush_every` log appends.
pub fn oltp(count: usize, flush_every: u64, write_share: f64) -> Trace {
    let mut rng = Rng::new(3);
    let mut trace = Trace {
        streams: ["data", "log"].map(|name| Stream { name: name.to_owned() }).to_vec(),
        ..Trace::default()
    };
    let (mut now, mut log, mut appends) = (0, 1u64 << 34, 0);
    while trace.count() < count {
        now += rng.below(40_000);
        let due = Nanos(now);
        if rng.unit() < 0.15 {
            let len = 4096 * rng.between(1, 4) as u32;
            trace.push(Request { due, offset: Bytes(log), len, op: Op::Write, stream: 1 });
            log += u64::from(len);
            appends += 1;
            if appends % flush_every == 0 {
                trace.push(Request { due, offset: Bytes(0), len: 0, op: Op::Flush, stream: 1 });
            }
            continue;
        }
        let op = if rng.unit() < write_share { Op::Write } else { Op::Read };
        // Skewed: the square of a uniform number, over 4 GiB.
        let page = (rng.unit() * rng.unit() * (1 << 20) as f64) as u64;
        trace.push(Request { due, offset: Bytes(page * 4096), len: 4096, op, stream: 0 });
    }
    trace
}

pub fn linear() -> LinearParameters {
    let line = |base_ns, ns_per_byte| Line {
        base_ns,
        ns_per_byte,
        ceiling_iops: Some(200_000.0),
        ceiling_bytes_per_s: Some(1e9),
    };
    let ratios = Quantiles(vec![(0.0, 0.6), (0.5, 0.9), (0.9, 1.3), (0.99, 4.0), (1.0, 40.0)]);
    let residual = |op, context, size| Residual {
        op,
        pattern: None,
        size_bytes: Some(size),
        context,
        ratios: ratios.clone(),
    };
    let mut residuals = Vec::new();
    for op in [Op::Read, Op::Write, Op::Flush] {
        for size in [4096, 16_384, 65_536] {
            residuals.push(residual(op, Context::Any, size));
        }
    }
    residuals.push(residual(Op::Write, Context::AfterFlush, 4096));
    LinearParameters {
        capacity: Some(Bytes(64 << 30)),
        read: [line(40_000.0, 1.0), line(50_000.0, 1.2)],
        write: [line(10_000.0, 1.0), line(12_000.0, 1.5)],
        parallelism: 8,
        detection: Detection::PerStream,
        mixed: Mixed { read_factor: 1.3, write_factor: 1.1, window_requests: 32 },
        flush: Flush { base_ns: 20_000.0, ns_per_dirty_byte: 0.1, ns_per_dirty_request: 0.0 },
        trim_ns: 0.0,
        residuals,
    }
}

pub fn cache() -> WriteCacheParameters {
    WriteCacheParameters {
        hit_base_ns: 8_000.0,
        ports: 4,
        high_watermark: 0.9,
        low_watermark: 0.5,
        coalesce_bytes: 64 << 10,
        ..WriteCacheParameters::default()
    }
}
