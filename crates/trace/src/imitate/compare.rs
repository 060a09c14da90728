//! How far a trace is from another: the distances that an imitation is judged by.
//!
//! Sizes and gaps by E (`stats::error_ratio`: Wasserstein-1 over the mean), shares in points of
//! percent, locality by the mean absolute difference of the exact miss-ratio curves. Streams are
//! laid out side by side for the curves ([`Trace::stack_streams`]), because the addresses of most
//! formats count anew for each.

use serde::{Deserialize, Serialize};
use stats::error_ratio;

use crate::info::miss_ratio;
use crate::{Op, Trace};

/// Distances of a trace from an original.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distances {
    /// E of the sizes of reads and writes.
    pub size_error: f64,
    /// E of the gaps between requests.
    pub gap_error: f64,
    /// Share of reads, less that of the original, points of percent.
    pub read_share_points: f64,
    /// Largest difference of a stream's share, points of percent.
    pub stream_share_points: f64,
    /// Share of requests that go on where the last one of their stream and operation ended, less
    /// that of the original, points of percent.
    pub sequential_share_points: f64,
    /// Mean absolute difference of the LRU miss-ratio curves of 4 KiB blocks.
    pub miss_ratio_error: f64,
}

/// The distances of `made` from `original`; streams are taken by their index.
pub fn compare(original: &Trace, made: &Trace) -> Distances {
    let sizes = |trace: &Trace| -> Vec<u64> {
        let data =
            trace.len.iter().zip(&trace.op).filter(|(_, op)| matches!(op, Op::Read | Op::Write));
        data.map(|(len, _)| u64::from(*len)).collect()
    };
    let gaps = |trace: &Trace| -> Vec<u64> {
        trace.due.windows(2).map(|pair| pair[1] - pair[0]).collect()
    };
    let reads = |trace: &Trace| share(trace, |index| trace.op[index] == Op::Read);
    let curve = |trace: &Trace| {
        let stacked = trace.clone().stack_streams();
        miss_ratio::exact(stacked.as_ref().unwrap_or(trace))
    };
    Distances {
        size_error: error_ratio::compare(&sizes(made), &sizes(original)).error_ratio,
        gap_error: error_ratio::compare(&gaps(made), &gaps(original)).error_ratio,
        read_share_points: 100.0 * (reads(made) - reads(original)),
        stream_share_points: 100.0 * stream_distance(original, made),
        sequential_share_points: 100.0 * (sequential(made) - sequential(original)),
        miss_ratio_error: miss_ratio::mean_absolute_error(&curve(made), &curve(original)),
    }
}

fn share(trace: &Trace, counts: impl Fn(usize) -> bool) -> f64 {
    let found = (0..trace.count()).filter(|index| counts(*index)).count();
    found as f64 / trace.count().max(1) as f64
}

fn stream_distance(original: &Trace, made: &Trace) -> f64 {
    let shares = |trace: &Trace| {
        let mut counts = vec![0u64; original.streams.len().max(made.streams.len())];
        for stream in &trace.stream {
            counts[usize::from(*stream)] += 1;
        }
        let all = trace.count().max(1) as f64;
        counts.into_iter().map(move |count| count as f64 / all)
    };
    shares(original).zip(shares(made)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn sequential(trace: &Trace) -> f64 {
    let mut ends = std::collections::HashMap::new();
    let mut found = 0u64;
    for request in trace.requests().filter(|request| request.op != Op::Flush) {
        let end = request.offset.0.saturating_add(u64::from(request.len));
        found +=
            u64::from(ends.insert((request.stream, request.op), end) == Some(request.offset.0));
    }
    found as f64 / trace.count().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Pattern, uniform};
    use units::Rate;

    #[test]
    fn a_trace_is_no_distance_from_itself_and_some_from_another() {
        let pattern = Pattern { read_share: 0.5, range_bytes: 1 << 20, ..Pattern::default() };
        let trace = uniform(1, 4000, Rate(1000.0), &pattern);
        let none = Distances {
            size_error: 0.0,
            gap_error: 0.0,
            read_share_points: 0.0,
            stream_share_points: 0.0,
            sequential_share_points: 0.0,
            miss_ratio_error: 0.0,
        };
        assert_eq!(compare(&trace, &trace), none);
        let mut other = trace.clone();
        other.len.iter_mut().for_each(|len| *len /= 2);
        other.due.iter_mut().for_each(|due| *due *= 2);
        other.op[..400].fill(Op::Read);
        let found = compare(&trace, &other);
        assert!((found.size_error - 0.5).abs() < 1e-9 && (found.gap_error - 1.0).abs() < 1e-9);
        assert!((found.read_share_points - 5.0).abs() < 1.0, "{found:?}");
        let sequential = uniform(1, 4000, Rate(1000.0), &Pattern { sequential: true, ..pattern });
        let found = compare(&trace, &sequential);
        // 256 blocks, at random hit by half with half the cache; in a loop never before all fit.
        assert!(found.miss_ratio_error > 0.3 && found.sequential_share_points > 30.0, "{found:?}");
    }
}
