//! Service times, where the trace holds them: for a captured block trace the time from issue to
//! completion (D2C), or, where it was read by queue times, from queueing to completion (Q2C).
//!
//! Counted by operation, by operation and size, by operation and stream. Quantiles come from a
//! histogram with a relative error below 1 %; mean and maximum are exact.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stats::Histogram;

use crate::{Op, Stream, Trace};

/// Sizes told apart for each operation: the most frequent ones.
const SIZES: usize = 8;

/// Service times of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// By operation.
    pub by_op: Vec<ServiceTimes>,
    /// By operation and size in bytes, the most frequent eight sizes of each, ascending.
    pub by_size: Vec<(u32, ServiceTimes)>,
    /// By operation and stream; empty where there is one stream.
    pub by_stream: Vec<(String, ServiceTimes)>,
}

/// The service times of a class of requests, ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceTimes {
    /// The operation.
    pub op: Op,
    /// Requests.
    pub count: u64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Median, ns.
    pub ns_p50: u64,
    /// 90th percentile, ns.
    pub ns_p90: u64,
    /// 99th percentile, ns.
    pub ns_p99: u64,
    /// 99.9th percentile, ns.
    pub ns_p999: u64,
    /// Longest, ns.
    pub max_ns: u64,
}

impl ServiceTimes {
    fn of(op: Op, times: &Histogram) -> Self {
        Self {
            op,
            count: times.count(),
            mean_ns: times.mean(),
            ns_p50: times.quantile(0.5),
            ns_p90: times.quantile(0.9),
            ns_p99: times.quantile(0.99),
            ns_p999: times.quantile(0.999),
            max_ns: times.max(),
        }
    }
}

/// Requests by operation and size.
pub(super) type Sizes = BTreeMap<(Op, u32), u64>;

/// Counts the requests of `trace` by operation and size.
pub(super) fn count_sizes(trace: &Trace, sizes: &mut Sizes) {
    for (&op, &len) in trace.op.iter().zip(&trace.len) {
        *sizes.entry((op, len)).or_default() += 1;
    }
}

/// Counts while requests with service times go by.
pub(super) struct Gather {
    frequent: Vec<(Op, u32)>,
    by_op: BTreeMap<Op, Histogram>,
    by_size: BTreeMap<(Op, u32), Histogram>,
    by_stream: BTreeMap<(u16, Op), Histogram>,
}

impl Gather {
    /// Of a trace with these sizes.
    pub(super) fn new(sizes: &Sizes) -> Self {
        let (by_op, by_size, by_stream) = Default::default();
        Self { frequent: frequent(sizes), by_op, by_size, by_stream }
    }

    pub(super) fn add(&mut self, trace: &Trace) {
        for (index, &ns) in trace.service.iter().flatten().enumerate() {
            let (op, size, stream) = (trace.op[index], trace.len[index], trace.stream[index]);
            self.by_op.entry(op).or_default().record(ns);
            if self.frequent.contains(&(op, size)) {
                self.by_size.entry((op, size)).or_default().record(ns);
            }
            if trace.streams.len() > 1 {
                self.by_stream.entry((stream, op)).or_default().record(ns);
            }
        }
    }

    pub(super) fn finish(self, streams: &[Stream]) -> Service {
        let name = |stream: u16| streams[usize::from(stream)].name.clone();
        let by_op = self.by_op.iter();
        let by_size = self.by_size.iter();
        let by_stream = self.by_stream.iter();
        Service {
            by_op: by_op.map(|(op, times)| ServiceTimes::of(*op, times)).collect(),
            by_size: by_size
                .map(|((op, size), times)| (*size, ServiceTimes::of(*op, times)))
                .collect(),
            by_stream: by_stream
                .map(|((stream, op), times)| (name(*stream), ServiceTimes::of(*op, times)))
                .collect(),
        }
    }
}

/// The most frequent sizes of reads and of writes; flushes and trims are not told apart by size.
fn frequent(sizes: &Sizes) -> Vec<(Op, u32)> {
    let mut chosen = Vec::new();
    for op in [Op::Read, Op::Write] {
        let mut of_op: Vec<_> = sizes.iter().filter(|((other, _), _)| *other == op).collect();
        of_op.sort_by_key(|(key, count)| (std::cmp::Reverse(**count), **key));
        chosen.extend(of_op.iter().take(SIZES).map(|(key, _)| **key));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Request;
    use units::{Bytes, Nanos};

    #[test]
    fn times_are_counted_by_operation_size_and_stream() {
        let streams = ["data", "log"].map(|name| Stream { name: name.to_owned() }).to_vec();
        let mut trace = Trace { streams, ..Trace::default() };
        // (operation, bytes, stream, service): ten reads of 4 KiB, one of 8, two log writes.
        let reads = (1..=10).map(|at| (Op::Read, 4096, 0, at * 100));
        let others = [(Op::Read, 8192, 0, 5_000), (Op::Write, 512, 1, 30), (Op::Write, 512, 1, 50)];
        let mut times = Vec::new();
        for (at, (op, len, stream, ns)) in reads.chain(others).enumerate() {
            let due = Nanos(at as u64);
            trace.push(Request { due, offset: Bytes(0), len, op, stream });
            times.push(ns);
        }
        trace.service = Some(times);
        let mut sizes = Sizes::default();
        count_sizes(&trace, &mut sizes);
        let mut gather = Gather::new(&sizes);
        gather.add(&trace);
        let found = gather.finish(&trace.streams);
        let counts = |of: &[ServiceTimes]| of.iter().map(|t| (t.op, t.count)).collect::<Vec<_>>();
        assert_eq!(counts(&found.by_op), [(Op::Read, 11), (Op::Write, 2)]);
        let reads = found.by_op[0];
        assert_eq!((reads.mean_ns, reads.max_ns), ((5_500.0 + 5_000.0) / 11.0, 5_000));
        assert!((reads.ns_p50 as f64 - 600.0).abs() < 6.0, "{reads:?}");
        let sizes: Vec<_> = found.by_size.iter().map(|(size, t)| (*size, t.count)).collect();
        assert_eq!(sizes, [(4096, 10), (8192, 1), (512, 2)]);
        let streams: Vec<_> =
            found.by_stream.iter().map(|(name, t)| (&name[..], t.count)).collect();
        assert_eq!(streams, [("data", 11), ("log", 2)]);
        assert_eq!(found.by_stream[1].1.mean_ns, 40.0);
    }
}
