//! Parameters and loads that the tests share.

use model::Device;
use profile::linear::{Detection, Flush, Line, LinearParameters, Mixed};
use profile::write_cache::WriteCacheParameters;
use proptest::prelude::*;
use trace::{Op, Request};
use units::{Bytes, Nanos};

pub fn line(base_ns: f64, ns_per_byte: f64) -> Line {
    Line { base_ns, ns_per_byte, ceiling_iops: None, ceiling_bytes_per_s: None }
}

/// One line for everything, one server, no noise.
pub fn plain(base_ns: f64, ns_per_byte: f64) -> LinearParameters {
    LinearParameters {
        capacity: None,
        read: [line(base_ns, ns_per_byte); 2],
        write: [line(base_ns, ns_per_byte); 2],
        parallelism: 1,
        detection: Detection::PerStream,
        mixed: Mixed::default(),
        flush: Flush { base_ns: 30_000.0, ns_per_dirty_byte: 0.1, ns_per_dirty_request: 0.0 },
        trim_ns: 1_000.0,
        residuals: Vec::new(),
    }
}

pub fn request(op: Op, offset: u64, len: u32) -> Request {
    Request { due: Nanos(0), offset: Bytes(offset), len, op, stream: 0 }
}

/// A small cache that random loads fill.
pub fn small_cache(lines: u64) -> WriteCacheParameters {
    WriteCacheParameters {
        capacity: Bytes(lines * 4096),
        hit_base_ns: 1_000.0,
        coalesce_bytes: 16 << 10,
        ..WriteCacheParameters::default()
    }
}

/// Requests with gaps, over a small range so that they meet each other.
pub fn load(most: usize) -> impl Strategy<Value = Vec<(u64, Request)>> {
    let one = (0u64..60_000, 0u8..12, 0u64..48, 1u32..20_000, 0u16..3);
    prop::collection::vec(one, 1..most).prop_map(|items| {
        let mut now = 0;
        items
            .into_iter()
            .map(|(gap, kind, block, len, stream)| {
                now += gap;
                let op = match kind {
                    0..=3 => Op::Read,
                    4..=9 => Op::Write,
                    10 => Op::Trim,
                    _ => Op::Flush,
                };
                let len = if op == Op::Flush { 0 } else { len };
                let offset = if op == Op::Flush { 0 } else { block * 4096 };
                let due = Nanos(now);
                (now, Request { due, offset: Bytes(offset), len, op, stream })
            })
            .collect()
    })
}

pub fn run(device: &mut dyn Device, load: &[(u64, Request)]) -> Vec<u64> {
    load.iter().map(|(now, request)| device.submit(Nanos(*now), request).0).collect()
}

/// The counter `name` of a device.
pub fn counter(device: &dyn Device, name: &str) -> u64 {
    let counters = device.counters();
    counters.iter().find(|counter| counter.name == name).map_or(0, |counter| counter.value)
}
