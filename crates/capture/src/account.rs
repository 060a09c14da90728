//! How much each file class asked, and how fast: the logical against the physical figures.
//!
//! The quantities of the 2011 paper's figures 7 to 9: request rates over time, average request
//! sizes, read against write, per layer. Plain sums; tested on a hand-made trace.

use serde::{Deserialize, Serialize};
use trace::{Op, Trace};
use units::Nanos;

/// The account of one trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// `logical`, `device`, or whatever the trace says.
    pub layer: String,
    /// From the start of the trace to its last completion, ns.
    pub span_ns: u64,
    /// One entry per stream that has requests, in the order of the stream table.
    pub classes: Vec<ClassAccount>,
    /// All streams together.
    pub total: ClassAccount,
}

/// The account of one file class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassAccount {
    /// The stream's name; `all` for the total.
    pub class: String,
    /// Reads.
    pub read: OpAccount,
    /// Writes.
    pub write: OpAccount,
    /// Flushes; they carry no bytes.
    pub flush: OpAccount,
    /// Truncations and deletions.
    pub trim: OpAccount,
    /// Share of reads among reads and writes, 0 to 1; 0 where there is neither.
    pub read_share: f64,
    /// Rates over time, one point per window, without gaps.
    pub rates: Vec<RatePoint>,
}

/// The account of one kind of request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpAccount {
    /// How many.
    pub requests: u64,
    /// Their bytes together.
    pub bytes: u64,
    /// Bytes per request; 0 where there is none.
    pub average_bytes: f64,
    /// Mean measured service time, ns; 0 where it was not measured.
    pub service_ns_mean: f64,
}

/// One window of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RatePoint {
    /// Start of the window, seconds from the start of the trace.
    pub at_s: f64,
    /// Reads per second.
    pub reads_per_s: f64,
    /// Writes per second.
    pub writes_per_s: f64,
    /// Flushes per second.
    pub flushes_per_s: f64,
    /// Bytes read per second.
    pub read_bytes_per_s: f64,
    /// Bytes written per second.
    pub written_bytes_per_s: f64,
}

/// Most windows that a series may have: a longer trace gets wider windows.
const MOST_WINDOWS: u64 = 100_000;

/// Sums up a trace, with rates per `window` (one second where it is zero).
pub fn account(trace: &Trace, window: Nanos) -> Account {
    let service = |index: usize| trace.service.as_ref().map_or(0, |service| service[index]);
    let last = (0..trace.count()).map(|index| trace.due[index] + service(index)).max();
    let span = last.unwrap_or(0);
    let asked = if window.0 == 0 { 1_000_000_000 } else { window.0 };
    let window = asked.max(span.div_ceil(MOST_WINDOWS));
    let windows = (trace.span().0 / window + u64::from(!trace.is_empty())) as usize;
    let mut sums: Vec<Sum> = trace.streams.iter().map(|_| Sum::new(windows)).collect();
    let mut total = Sum::new(windows);
    for (index, request) in trace.requests().enumerate() {
        let at = (request.due.0 / window) as usize;
        for sum in [&mut sums[usize::from(request.stream)], &mut total] {
            sum.add(at, request.op, u64::from(request.len), service(index));
        }
    }
    let classes = sums
        .into_iter()
        .zip(&trace.streams)
        .filter(|(sum, _)| sum.ops.iter().any(|op| op.requests > 0))
        .map(|(sum, stream)| sum.finish(&stream.name, window, span))
        .collect();
    let total = total.finish("all", window, span);
    Account { layer: trace.origin.layer.clone(), span_ns: span, classes, total }
}

/// Sums of one class.
struct Sum {
    /// By operation code.
    ops: [OpSum; 4],
    windows: Vec<[OpSum; 4]>,
}

#[derive(Clone, Copy, Default)]
struct OpSum {
    requests: u64,
    bytes: u64,
    service_ns: u64,
}

impl Sum {
    fn new(windows: usize) -> Self {
        Self { ops: Default::default(), windows: vec![Default::default(); windows] }
    }

    fn add(&mut self, window: usize, op: Op, bytes: u64, service_ns: u64) {
        for sum in [&mut self.ops[op as usize], &mut self.windows[window][op as usize]] {
            sum.requests += 1;
            sum.bytes += bytes;
            sum.service_ns += service_ns;
        }
    }

    fn finish(self, class: &str, window_ns: u64, span_ns: u64) -> ClassAccount {
        let [read, write, trim, flush] = self.ops.map(OpSum::account);
        let both = (read.requests + write.requests).max(1);
        let point = |(index, ops): (usize, &[OpSum; 4])| {
            let start = index as u64 * window_ns;
            // The last window is as long as the trace goes on in it.
            let seconds = window_ns.min(span_ns.saturating_sub(start)).max(1) as f64 / 1e9;
            RatePoint {
                at_s: start as f64 / 1e9,
                reads_per_s: ops[Op::Read as usize].requests as f64 / seconds,
                writes_per_s: ops[Op::Write as usize].requests as f64 / seconds,
                flushes_per_s: ops[Op::Flush as usize].requests as f64 / seconds,
                read_bytes_per_s: ops[Op::Read as usize].bytes as f64 / seconds,
                written_bytes_per_s: ops[Op::Write as usize].bytes as f64 / seconds,
            }
        };
        ClassAccount {
            class: class.to_owned(),
            read,
            write,
            flush,
            trim,
            read_share: read.requests as f64 / both as f64,
            rates: self.windows.iter().enumerate().map(point).collect(),
        }
    }
}

impl OpSum {
    fn account(self) -> OpAccount {
        let count = self.requests.max(1) as f64;
        OpAccount {
            requests: self.requests,
            bytes: self.bytes,
            average_bytes: self.bytes as f64 / count,
            service_ns_mean: self.service_ns as f64 / count,
        }
    }
}

#[cfg(test)]
mod tests {
    use trace::{Request, Stream};
    use units::Bytes;

    use super::*;

    fn sample() -> Trace {
        let mut trace = Trace {
            streams: ["data", "log", "temp"].map(|name| Stream { name: name.into() }).to_vec(),
            ..Trace::default()
        };
        let requests = [
            (0, Op::Read, 4096, 0, 100),
            (500_000_000, Op::Read, 8192, 0, 300),
            (1_000_000_000, Op::Write, 1000, 1, 50),
            (1_000_000_001, Op::Flush, 0, 1, 900),
            (2_400_000_000, Op::Write, 3000, 0, 100_000_000),
        ];
        for (due, op, len, stream, service) in requests {
            trace.push(Request { due: Nanos(due), offset: Bytes(0), len, op, stream });
            trace.service.get_or_insert_default().push(service);
        }
        trace
    }

    #[test]
    fn sums_averages_and_shares_per_class() {
        let account = account(&sample(), Nanos(1_000_000_000));
        let names: Vec<_> = account.classes.iter().map(|class| class.class.as_str()).collect();
        assert_eq!(names, ["data", "log"], "a class without requests is left out");
        let data = &account.classes[0];
        let read =
            OpAccount { requests: 2, bytes: 12288, average_bytes: 6144.0, service_ns_mean: 200.0 };
        assert_eq!(data.read, read);
        assert_eq!((data.write.requests, data.write.bytes), (1, 3000));
        assert!((data.read_share - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!((account.total.flush.requests, account.total.trim.requests), (1, 0));
        assert_eq!(account.span_ns, 2_500_000_000);
    }

    #[test]
    fn rates_without_gaps_and_a_short_last_window() {
        let account = account(&sample(), Nanos(1_000_000_000));
        let rates = &account.total.rates;
        assert_eq!(rates.iter().map(|point| point.at_s).collect::<Vec<_>>(), [0.0, 1.0, 2.0]);
        assert_eq!((rates[0].reads_per_s, rates[0].read_bytes_per_s), (2.0, 12288.0));
        assert_eq!((rates[1].writes_per_s, rates[1].flushes_per_s), (1.0, 1.0));
        // Half a second of the last window happened.
        assert_eq!((rates[2].writes_per_s, rates[2].written_bytes_per_s), (2.0, 6000.0));
    }

    #[test]
    fn an_empty_trace_and_a_window_of_nothing() {
        let empty = account(&Trace::default(), Nanos(0));
        assert_eq!((empty.classes.len(), empty.total.rates.len()), (0, 0));
        assert_eq!(account(&sample(), Nanos(0)).total.rates.len(), 3);
        let many = account(&sample(), Nanos(1));
        assert!(many.total.rates.len() as u64 <= MOST_WINDOWS);
    }
}
