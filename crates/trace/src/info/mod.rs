//! What is in a trace: the figures by which people compare workloads.
//!
//! Definitions: a request is *sequential* when it starts where the previous request of the same
//! stream and operation ended; *aligned* when offset and length are multiples of 4 KiB; the *working
//! set* is the number of distinct 4 KiB blocks that reads and writes touch. Flushes carry no data and
//! count only as requests and in the times. Addresses of different streams are taken as those of one
//! device for the figures in all. Table-tested against hand-counted traces.

mod lru;
pub mod miss_ratio;
mod touches;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Op, Trace};

/// Block in which the working set and alignment are counted.
pub const BLOCK_BYTES: u64 = 4096;
/// Sizes listed per stream.
const TOP_SIZES: usize = 8;
/// Points of the rate series at most, and their shortest length.
const RATE_POINTS: u64 = 200;
const SHORTEST_WINDOW_NS: u64 = 1_000_000;

/// A trace, characterised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// Due time of the last request, s.
    pub span_s: f64,
    /// One byte past the last one touched.
    pub extent_bytes: u64,
    /// All requests together; its name is `all`.
    pub all: StreamInfo,
    /// Each stream of the table, in its order.
    pub streams: Vec<StreamInfo>,
    /// Rate over time: at most 200 windows of equal length, at least 1 ms each.
    pub rates: Vec<RateWindow>,
}

/// One stream, characterised. Means and shares of nothing are 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamInfo {
    /// Name in the stream table.
    pub name: String,
    /// Requests of any kind.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Trims.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Reads over requests.
    pub read_share: f64,
    /// Writes over requests.
    pub write_share: f64,
    /// Flushes over requests.
    pub flush_share: f64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Mean size of reads and writes, bytes.
    pub mean_size_bytes: f64,
    /// The most frequent sizes of reads and writes, most frequent first, at most eight.
    pub sizes: Vec<SizeCount>,
    /// Share of reads and writes that are sequential, of those that have a predecessor.
    pub sequential_share: f64,
    /// Share of reads and writes that are aligned to 4 KiB.
    pub aligned_share: f64,
    /// Distinct 4 KiB blocks that reads and writes touch.
    pub working_set_blocks: u64,
    /// Requests over the span of the trace.
    pub requests_per_s: f64,
    /// Mean time between two requests, ns.
    pub gap_mean_ns: f64,
    /// Standard deviation of that time over its mean: 1 for a Poisson process, more for bursts.
    pub gap_variation: f64,
}

/// How often a size occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeCount {
    /// Bytes per request.
    pub size_bytes: u32,
    /// Reads of that size.
    pub reads: u64,
    /// Writes of that size.
    pub writes: u64,
}

/// One interval of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateWindow {
    /// Start, s.
    pub at_s: f64,
    /// Reads per second.
    pub reads_per_s: f64,
    /// Writes per second.
    pub writes_per_s: f64,
    /// Flushes per second.
    pub flushes_per_s: f64,
    /// Bytes read and written per second.
    pub bytes_per_s: f64,
}

/// Characterises a well-formed trace (see [`Trace::validate`]).
pub fn characterise(trace: &Trace) -> Info {
    let mut all = Gather::default();
    let mut streams: Vec<Gather> = trace.streams.iter().map(|_| Gather::default()).collect();
    let mut ends = vec![[None; Op::ALL.len()]; trace.streams.len()];
    for index in 0..trace.count() {
        let stream = usize::from(trace.stream[index]);
        let previous_end = &mut ends[stream][trace.op[index] as usize];
        let sequential = previous_end.map(|end| end == trace.offset[index]);
        *previous_end = Some(trace.offset[index] + u64::from(trace.len[index]));
        all.add(trace, index, sequential);
        streams[stream].add(trace, index, sequential);
    }
    let span_s = trace.span().as_secs_f64();
    let named = streams.into_iter().zip(&trace.streams);
    Info {
        span_s,
        extent_bytes: trace.extent().0,
        all: all.finish("all", span_s),
        streams: named.map(|(gather, stream)| gather.finish(&stream.name, span_s)).collect(),
        rates: rates(trace),
    }
}

/// Counts of one stream while its requests go by.
#[derive(Default)]
struct Gather {
    counts: [u64; Op::ALL.len()],
    bytes: [u64; Op::ALL.len()],
    sizes: BTreeMap<u32, SizeCount>,
    followers: u64,
    sequential: u64,
    aligned: u64,
    /// First and last block of each read and write.
    blocks: Vec<(u64, u64)>,
    last_due: Option<u64>,
    gaps: u64,
    gap_mean: f64,
    gap_squares: f64,
}

impl Gather {
    fn add(&mut self, trace: &Trace, index: usize, sequential: Option<bool>) {
        let (op, len, offset) = (trace.op[index], trace.len[index], trace.offset[index]);
        self.counts[op as usize] += 1;
        self.bytes[op as usize] += u64::from(len);
        if let Some(last) = self.last_due.replace(trace.due[index]) {
            // Welford's update, which does not cancel.
            let gap = (trace.due[index] - last) as f64;
            self.gaps += 1;
            let from_old = gap - self.gap_mean;
            self.gap_mean += from_old / self.gaps as f64;
            self.gap_squares += from_old * (gap - self.gap_mean);
        }
        if !matches!(op, Op::Read | Op::Write) {
            return;
        }
        let size =
            self.sizes.entry(len).or_insert(SizeCount { size_bytes: len, reads: 0, writes: 0 });
        if op == Op::Read {
            size.reads += 1;
        } else {
            size.writes += 1;
        }
        self.followers += u64::from(sequential.is_some());
        self.sequential += u64::from(sequential == Some(true));
        let aligned = (offset | u64::from(len)).is_multiple_of(BLOCK_BYTES);
        self.aligned += u64::from(aligned);
        if len > 0 {
            self.blocks.push((offset / BLOCK_BYTES, (offset + u64::from(len) - 1) / BLOCK_BYTES));
        }
    }

    fn finish(mut self, name: &str, span_s: f64) -> StreamInfo {
        let [reads, writes, trims, flushes] = self.counts;
        let requests = reads + writes + trims + flushes;
        let mut sizes: Vec<SizeCount> = self.sizes.into_values().collect();
        sizes.sort_by_key(|size| (std::cmp::Reverse(size.reads + size.writes), size.size_bytes));
        sizes.truncate(TOP_SIZES);
        let deviation = (self.gap_squares / self.gaps.max(1) as f64).sqrt();
        StreamInfo {
            name: name.to_owned(),
            requests,
            reads,
            writes,
            trims,
            flushes,
            read_share: ratio(reads as f64, requests as f64),
            write_share: ratio(writes as f64, requests as f64),
            flush_share: ratio(flushes as f64, requests as f64),
            read_bytes: self.bytes[Op::Read as usize],
            write_bytes: self.bytes[Op::Write as usize],
            mean_size_bytes: ratio(
                (self.bytes[Op::Read as usize] + self.bytes[Op::Write as usize]) as f64,
                (reads + writes) as f64,
            ),
            sizes,
            sequential_share: ratio(self.sequential as f64, self.followers as f64),
            aligned_share: ratio(self.aligned as f64, (reads + writes) as f64),
            working_set_blocks: covered(&mut self.blocks),
            requests_per_s: ratio(requests as f64, span_s),
            gap_mean_ns: self.gap_mean,
            gap_variation: ratio(deviation, self.gap_mean),
        }
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Blocks in the union of closed ranges.
fn covered(ranges: &mut [(u64, u64)]) -> u64 {
    ranges.sort_unstable();
    let mut total = 0;
    let mut next_free = 0;
    for &mut (first, last) in ranges {
        let first = first.max(next_free);
        if first <= last {
            total += last - first + 1;
            next_free = last + 1;
        }
    }
    total
}

fn rates(trace: &Trace) -> Vec<RateWindow> {
    if trace.is_empty() {
        return Vec::new();
    }
    let window_ns = (trace.span().0 / RATE_POINTS + 1).max(SHORTEST_WINDOW_NS);
    let count = (trace.span().0 / window_ns + 1) as usize;
    let seconds = window_ns as f64 / 1e9;
    let mut windows = vec![([0u64; Op::ALL.len()], 0u64); count];
    for index in 0..trace.count() {
        let window = &mut windows[(trace.due[index] / window_ns) as usize];
        window.0[trace.op[index] as usize] += 1;
        if matches!(trace.op[index], Op::Read | Op::Write) {
            window.1 += u64::from(trace.len[index]);
        }
    }
    let series = windows.iter().enumerate().map(|(index, (counts, bytes))| RateWindow {
        at_s: index as f64 * seconds,
        reads_per_s: counts[Op::Read as usize] as f64 / seconds,
        writes_per_s: counts[Op::Write as usize] as f64 / seconds,
        flushes_per_s: counts[Op::Flush as usize] as f64 / seconds,
        bytes_per_s: *bytes as f64 / seconds,
    });
    series.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{OltpLike, Pattern, oltp_like, poisson, uniform};
    use crate::{Request, Stream};
    use proptest::prelude::*;
    use units::{Bytes, Nanos, Rate};

    /// (due, offset, len, op, stream) on streams `data` and `log`.
    fn trace(rows: &[(u64, u64, u32, Op, u16)]) -> Trace {
        let streams = ["data", "log"].map(|name| Stream { name: name.to_owned() }).to_vec();
        let mut trace = Trace { streams, ..Trace::default() };
        for &(due, offset, len, op, stream) in rows {
            let (due, offset) = (Nanos(due), Bytes(offset));
            trace.push(Request { due, offset, len, op, stream });
        }
        trace
    }

    #[test]
    fn counted_by_hand() {
        let second = 1_000_000_000;
        let info = characterise(&trace(&[
            (0, 0, 4096, Op::Read, 0),
            // Sequential to the read in front, although a log write lies between them.
            (second, 4096, 8192, Op::Write, 1),
            (2 * second, 4096, 4096, Op::Read, 0),
            // Touches the two blocks at 8192 again and half of a third.
            (2 * second, 10_000, 8192, Op::Write, 0),
            (4 * second, 0, 0, Op::Flush, 1),
            (4 * second, 1 << 20, 4096, Op::Trim, 1),
        ]));
        assert_eq!((info.span_s, info.extent_bytes), (4.0, (1 << 20) + 4096));
        let all = &info.all;
        assert_eq!((all.reads, all.writes, all.trims, all.flushes, all.requests), (2, 2, 1, 1, 6));
        assert_eq!((all.read_bytes, all.write_bytes, all.mean_size_bytes), (8192, 16_384, 6144.0));
        assert_eq!((all.requests_per_s, all.gap_mean_ns), (1.5, 0.8e9));
        // Gaps 1, 1, 0, 2, 0 s: variance 0.56 s^2 about a mean of 0.8 s.
        assert!((all.gap_variation - 0.56f64.sqrt() / 0.8).abs() < 1e-12);
        // Blocks 0; 1, 2; 1; 2, 3, 4.
        assert_eq!((all.working_set_blocks, all.aligned_share), (5, 0.75));
        assert_eq!(all.sequential_share, 1.0, "one follower, and it is sequential");
        let sizes: Vec<_> = all.sizes.iter().map(|s| (s.size_bytes, s.reads, s.writes)).collect();
        assert_eq!(sizes, [(4096, 2, 0), (8192, 0, 2)]);
        let [data, log] = &info.streams[..] else { panic!("two streams") };
        assert_eq!((data.name.as_str(), data.requests, data.working_set_blocks), ("data", 3, 5));
        assert_eq!((log.requests, log.flush_share, log.sequential_share), (3, 1.0 / 3.0, 0.0));
    }

    #[test]
    fn rates_add_up_to_the_counts() {
        let trace = oltp_like(&OltpLike { transactions: 3000, ..OltpLike::default() });
        let info = characterise(&trace);
        assert!((100..=200).contains(&info.rates.len()), "{}", info.rates.len());
        let seconds = info.rates[1].at_s;
        let sum = |rate: fn(&RateWindow) -> f64| info.rates.iter().map(rate).sum::<f64>() * seconds;
        assert!((sum(|w| w.reads_per_s) - info.all.reads as f64).abs() < 1e-6);
        assert!((sum(|w| w.flushes_per_s) - info.all.flushes as f64).abs() < 1e-6);
        let bytes = (info.all.read_bytes + info.all.write_bytes) as f64;
        assert!((sum(|w| w.bytes_per_s) - bytes).abs() < 1.0);
    }

    #[test]
    fn patterns_have_their_closed_forms() {
        let pattern = Pattern { read_share: 0.25, ..Pattern::default() };
        let info = characterise(&poisson(1, 100_000, Rate(5000.0), &pattern)).all;
        assert!((info.gap_variation - 1.0).abs() < 0.02, "Poisson: {}", info.gap_variation);
        assert!((info.requests_per_s / 5000.0 - 1.0).abs() < 0.02);
        assert!((info.read_share - 0.25).abs() < 0.01 && info.aligned_share == 1.0);
        // 100,000 draws of 262,144 blocks leave exp(-100,000 / 262,144) of them untouched.
        let expected = 262_144.0 * (1.0 - (-100_000.0f64 / 262_144.0).exp());
        assert!((info.working_set_blocks as f64 / expected - 1.0).abs() < 0.01);
        let pattern = Pattern { sequential: true, ..Pattern::default() };
        let info = characterise(&uniform(1, 1000, Rate(1000.0), &pattern)).all;
        assert_eq!((info.gap_mean_ns, info.gap_variation), (1e6, 0.0));
        assert_eq!((info.sequential_share, info.working_set_blocks), (1.0, 1000));
    }

    #[test]
    fn an_empty_trace_has_figures_too() {
        let info = characterise(&trace(&[]));
        assert_eq!((info.all.requests, info.all.read_share, info.rates.len()), (0, 0.0, 0));
        assert_eq!(info.streams.len(), 2);
        let one = characterise(&trace(&[(0, 0, 512, Op::Read, 0)]));
        assert_eq!((one.all.requests_per_s, one.all.aligned_share), (0.0, 0.0));
        let text = serde_json::to_string(&one).expect("serialises");
        assert_eq!(serde_json::from_str::<Info>(&text).expect("reads"), one);
    }

    proptest! {
        #[test]
        fn the_union_of_ranges_is_counted_once(ranges in prop::collection::vec((0u64..50, 0u64..9), 0..30)) {
            let mut touched = std::collections::BTreeSet::new();
            let mut closed: Vec<_> = ranges.iter().map(|(first, more)| (*first, first + more)).collect();
            for (first, last) in &closed {
                touched.extend(*first..=*last);
            }
            prop_assert_eq!(covered(&mut closed), touched.len() as u64);
        }
    }
}
