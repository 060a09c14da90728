//! A trace in one row per file class and operation: how many, how much, how long, by whom.
//!
//! Plain sums and quantiles. Invariant: requests and bytes of the rows add up to the trace's.
//! Tested on a hand-made trace.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stats::Histogram;
use trace::{Op, Trace};

/// Requests of one class and operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The stream's name.
    pub class: String,
    /// `read`, `write`, `flush` or `trim`.
    pub op: String,
    /// How many.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many per second of the capture.
    pub per_s: f64,
    /// Bytes per second of the capture.
    pub bytes_per_s: f64,
    /// Quantiles of the time that they took, ns: p50, p90, p99; and the longest. Zeros where it was
    /// not measured.
    pub service_ns: [u64; 4],
    /// Roles that issued them, with their shares of the requests, largest first; empty for disks.
    pub by: Vec<(String, f64)>,
}

/// Sums up a trace that took `seconds`; `roles` are the roles of its actors.
pub fn rows(trace: &Trace, roles: &[&str], seconds: f64) -> Vec<Row> {
    #[derive(Default)]
    struct Sum {
        bytes: u64,
        service: Histogram,
        by: BTreeMap<u16, u64>,
    }
    let mut sums: BTreeMap<(u16, u8), Sum> = BTreeMap::new();
    for at in 0..trace.count() {
        let sum = sums.entry((trace.stream[at], trace.op[at] as u8)).or_default();
        sum.bytes += u64::from(trace.len[at]);
        sum.service.record(trace.service.as_ref().map_or(0, |service| service[at]));
        if let Some(chains) = &trace.chains {
            *sum.by.entry(chains.actor[at]).or_default() += 1;
        }
    }
    let seconds = seconds.max(1e-9);
    let row = |((stream, op), sum): ((u16, u8), Sum)| {
        let requests = sum.service.count();
        let mut by: BTreeMap<&str, u64> = BTreeMap::new();
        for (actor, count) in sum.by {
            if let Some(role) = roles.get(usize::from(actor)) {
                *by.entry(role).or_default() += count;
            }
        }
        let share = |(role, count): (&str, u64)| (role.to_owned(), count as f64 / requests as f64);
        let mut by: Vec<(String, f64)> = by.into_iter().map(share).collect();
        by.sort_by(|a, b| b.1.total_cmp(&a.1));
        let class = trace.streams.get(usize::from(stream)).map(|stream| stream.name.clone());
        let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|q| sum.service.quantile(q));
        Row {
            class: class.unwrap_or_default(),
            op: op_name(op).to_owned(),
            requests,
            bytes: sum.bytes,
            per_s: requests as f64 / seconds,
            bytes_per_s: sum.bytes as f64 / seconds,
            service_ns: [p50, p90, p99, sum.service.max()],
            by,
        }
    };
    sums.into_iter().map(row).collect()
}

fn op_name(op: u8) -> &'static str {
    let names =
        [(Op::Read, "read"), (Op::Write, "write"), (Op::Flush, "flush"), (Op::Trim, "trim")];
    let found = names.into_iter().find(|(own, _)| *own as u8 == op);
    found.map_or("other", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use trace::{Request, Stream};
    use units::{Bytes, Nanos};

    use super::*;

    #[test]
    fn rows_add_up_and_name_who_issued_them() {
        let mut trace = Trace {
            streams: ["data", "log"].map(|name| Stream { name: name.into() }).to_vec(),
            ..Trace::default()
        };
        for (op, len, stream, actor, service) in [
            (Op::Write, 100, 1, 0, 10),
            (Op::Write, 300, 1, 1, 30),
            (Op::Write, 300, 1, 2, 30),
            (Op::Flush, 0, 1, 1, 900),
            (Op::Read, 50, 0, 0, 5),
        ] {
            let request = Request { due: Nanos(0), offset: Bytes(0), len, op, stream };
            trace.push_captured(request, Nanos(service), actor, 0);
        }
        let found = rows(&trace, &["connection", "walwriter", "walwriter"], 2.0);
        let short: Vec<_> = found
            .iter()
            .map(|row| (row.class.as_str(), row.op.as_str(), row.requests, row.bytes))
            .collect();
        let expected = [("data", "read", 1, 50), ("log", "write", 3, 700), ("log", "flush", 1, 0)];
        assert!(expected.iter().all(|one| short.contains(one)) && short.len() == 3, "{short:?}");
        let writes = found.iter().find(|row| row.op == "write").unwrap();
        assert_eq!((writes.per_s, writes.bytes_per_s), (1.5, 350.0));
        assert_eq!(writes.service_ns[3], 30);
        let names: Vec<&str> = writes.by.iter().map(|(role, _)| role.as_str()).collect();
        assert_eq!(names, ["walwriter", "connection"]);
        assert!((writes.by[0].1 - 2.0 / 3.0).abs() < 1e-12);
        let bytes: u64 = found.iter().map(|row| row.bytes).sum();
        assert_eq!(bytes, trace.len.iter().map(|len| u64::from(*len)).sum::<u64>());
    }
}
