//! How much of the trace follows on.
//!
//! Every figure compares a read or write with its predecessors of the same stream *and* operation,
//! and counts only those that have one:
//!
//! - *sequential*: it starts where the previous one ended;
//! - *near*: it starts at most 64 KiB in front of or behind that place (sequential ones included);
//! - *windowed*: it starts where any of the previous 32 ended (several sequential readers or
//!   writers that take turns; sequential ones included);
//! - *strided*: it starts as far from the previous start as that one did from its own, and is not
//!   sequential.
//!
//! A *run* is a maximal chain of sequential requests, one request at least.

use serde::{Deserialize, Serialize};

use super::ratio;
use crate::{Op, Trace};

const NEAR_BYTES: u64 = 64 * 1024;
const WINDOW: usize = 32;
/// No request ends there: it would have to be empty and at the very end of the address space.
const NOWHERE: u64 = u64::MAX;

/// How much of one stream follows on; the module's header has the definitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sequentiality {
    /// Share that starts where the previous one ended.
    pub sequential_share: f64,
    /// Share that starts within 64 KiB of there.
    pub near_share: f64,
    /// Share that starts where one of the previous 32 ended.
    pub windowed_share: f64,
    /// Share that repeats the previous distance between starts without being sequential.
    pub strided_share: f64,
    /// Mean bytes of a run of sequential requests.
    pub run_bytes_mean: f64,
    /// Mean requests of a run.
    pub run_requests_mean: f64,
}

/// Counts while the requests of one stream go by.
#[derive(Clone, Default)]
pub(super) struct Gather {
    last: [Option<Last>; 2],
    requests: u64,
    bytes: u64,
    followers: u64,
    sequential: u64,
    near: u64,
    windowed: u64,
    strided: u64,
}

#[derive(Clone)]
struct Last {
    start: u64,
    end: u64,
    /// Distance from the start in front of it.
    step: Option<u64>,
    ends: [u64; WINDOW],
    next: usize,
}

impl Gather {
    pub(super) fn add(&mut self, trace: &Trace, requests: impl Iterator<Item = usize>) {
        for index in requests {
            let op = trace.op[index];
            if matches!(op, Op::Read | Op::Write) {
                let (start, len) = (trace.offset[index], u64::from(trace.len[index]));
                self.one(op as usize, start, start + len);
            }
        }
    }

    #[inline]
    fn one(&mut self, op: usize, start: u64, end: u64) {
        self.requests += 1;
        self.bytes += end - start;
        let Some(last) = &mut self.last[op] else {
            let mut ends = [NOWHERE; WINDOW];
            ends[0] = end;
            self.last[op] = Some(Last { start, end, step: None, ends, next: 1 });
            return;
        };
        let sequential = start == last.end;
        let step = start.wrapping_sub(last.start);
        self.followers += 1;
        self.sequential += u64::from(sequential);
        self.near += u64::from(start.abs_diff(last.end) <= NEAR_BYTES);
        self.windowed += u64::from(last.ends.contains(&start));
        self.strided += u64::from(!sequential && last.step == Some(step));
        last.start = start;
        last.end = end;
        last.step = Some(step);
        last.ends[last.next] = end;
        last.next = (last.next + 1) % WINDOW;
    }

    /// Adds the counts of another stream.
    pub(super) fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.followers += other.followers;
        self.sequential += other.sequential;
        self.near += other.near;
        self.windowed += other.windowed;
        self.strided += other.strided;
    }

    pub(super) fn finish(&self) -> Sequentiality {
        let share = |count: u64| ratio(count as f64, self.followers as f64);
        let runs = (self.requests - self.sequential) as f64;
        Sequentiality {
            sequential_share: share(self.sequential),
            near_share: share(self.near),
            windowed_share: share(self.windowed),
            strided_share: share(self.strided),
            run_bytes_mean: ratio(self.bytes as f64, runs),
            run_requests_mean: ratio(self.requests as f64, runs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::tests::trace;

    #[track_caller]
    fn check(blocks: &[u64], expected: (f64, f64, f64, f64)) {
        let rows = blocks.iter().map(|block| (0, block * 4096, 4096, Op::Read, 0));
        let trace = trace(&rows.collect::<Vec<_>>());
        let mut gather = Gather::default();
        gather.add(&trace, 0..trace.count());
        let found = gather.finish();
        let found =
            (found.sequential_share, found.near_share, found.windowed_share, found.strided_share);
        assert_eq!(found, expected, "{blocks:?}");
    }

    #[test]
    fn shares_by_hand() {
        check(&[], (0.0, 0.0, 0.0, 0.0));
        check(&[5], (0.0, 0.0, 0.0, 0.0));
        check(&[1, 2, 3, 4, 5], (1.0, 1.0, 1.0, 0.0));
        // Two readers in turn: each goes on where it was two requests ago.
        check(&[100, 900, 101, 901, 102], (0.0, 0.0, 0.75, 0.0));
        // Steps of 1000 blocks: the first has no step to repeat.
        check(&[0, 1000, 2000, 3000, 4000], (0.0, 0.0, 0.0, 0.75));
        check(&[4000, 3000, 2000, 1000, 0], (0.0, 0.0, 0.0, 0.75));
        // 16 blocks are 64 KiB: 17 is that far behind the end, 18 one block too far.
        check(&[0, 17], (0.0, 1.0, 0.0, 0.0));
        check(&[0, 18], (0.0, 0.0, 0.0, 0.0));
    }

    #[test]
    fn the_window_forgets_the_oldest_end() {
        // An end at block 1, then others, then a start at block 1.
        let with_others = |others: u64| -> Vec<u64> {
            std::iter::once(0).chain((1..=others).map(|i| i * 1000 + i * i)).chain([1]).collect()
        };
        let found = |blocks: &[u64]| {
            let rows = blocks.iter().map(|block| (0, block * 4096, 4096, Op::Write, 0));
            let trace = trace(&rows.collect::<Vec<_>>());
            let mut gather = Gather::default();
            gather.add(&trace, 0..trace.count());
            gather.windowed
        };
        assert_eq!((found(&with_others(31)), found(&with_others(32))), (1, 0));
    }

    #[test]
    fn operations_do_not_follow_each_other() {
        let trace = trace(&[
            (0, 0, 4096, Op::Read, 0),
            (1, 4096, 4096, Op::Write, 0),
            (2, 4096, 8192, Op::Read, 0),
            (3, 0, 0, Op::Flush, 0),
        ]);
        let mut gather = Gather::default();
        gather.add(&trace, 0..trace.count());
        let found = gather.finish();
        assert_eq!(found.sequential_share, 1.0, "one follower, and it is sequential");
        // A run of two reads and one of a write.
        assert_eq!((found.run_requests_mean, found.run_bytes_mean), (1.5, 8192.0));
    }
}
