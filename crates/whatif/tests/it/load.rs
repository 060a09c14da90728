//! A load for all tests.

use stats::rng::Rng;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

/// `count` requests of a database: small reads and writes at random, a log with flushes.
pub fn database(count: u64) -> Trace {
    let streams = ["data", "log"].map(|name| Stream { name: name.into() });
    let mut trace = Trace { streams: streams.to_vec(), ..Trace::default() };
    let mut rng = Rng::new(11);
    let (mut due, mut log) = (0, 0);
    for number in 0..count {
        due += 50_000 + rng.below(400_000);
        let request = match number % 8 {
            6 => {
                log += 512;
                let offset = Bytes((1 << 30) + log - 512);
                Request { due: Nanos(due), offset, len: 512, op: Op::Write, stream: 1 }
            }
            7 => Request { due: Nanos(due), offset: Bytes(0), len: 0, op: Op::Flush, stream: 1 },
            kind => {
                let op = if kind < 4 { Op::Read } else { Op::Write };
                let offset = Bytes(4096 * rng.below(1 << 16));
                Request { due: Nanos(due), offset, len: 4096, op, stream: 0 }
            }
        };
        trace.push(request);
    }
    trace
}
