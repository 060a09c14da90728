//! How many requests are outstanding, where the trace holds measured service times.
//!
//! A request is outstanding from its due time, which in a captured trace is its issue, for its
//! service time. Figures are averages over time from the start of the trace to the last completion,
//! not over requests. By Little's law the mean is the sum of service times over that span.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use super::{Windows, ratio};
use crate::Trace;

/// Depths told apart; the last stands for all above.
const DEPTHS: usize = 257;

/// Outstanding requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Depth {
    /// Mean over time.
    pub mean: f64,
    /// Most at any time.
    pub max: u64,
    /// Share of the time with at least one.
    pub busy_share: f64,
    /// Share of the time at each depth from 0 up; the last of 257 stands for it and all above.
    pub time_shares: Vec<f64>,
    /// Mean over windows of equal length, at most 200.
    pub series: Vec<DepthWindow>,
}

/// Mean depth in one window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DepthWindow {
    /// Start, s.
    pub at_s: f64,
    /// Mean outstanding requests.
    pub mean: f64,
}

/// When the last of these requests is done, ns; 0 without service times.
pub(super) fn end(trace: &Trace) -> u64 {
    let service = trace.service.iter().flatten();
    let ends = trace.due.iter().zip(service).map(|(due, service)| due.saturating_add(*service));
    ends.max().unwrap_or(0)
}

/// Counts while requests with service times go by.
pub(super) struct Gather {
    end: u64,
    account: Account,
    running: BinaryHeap<Reverse<u64>>,
}

impl Gather {
    /// Of requests that are all done by `end`.
    pub(super) fn new(end: u64) -> Self {
        Self { end, account: Account::new(end), running: BinaryHeap::new() }
    }

    pub(super) fn add(&mut self, trace: &Trace) {
        let Self { account, running, .. } = self;
        for (&due, &service) in trace.due.iter().zip(trace.service.iter().flatten()) {
            while let Some(&Reverse(done)) = running.peek().filter(|done| done.0 <= due) {
                account.until(done, running.len());
                running.pop();
            }
            account.until(due, running.len());
            running.push(Reverse(due.saturating_add(service)));
            account.max = account.max.max(running.len());
        }
    }

    pub(super) fn finish(self) -> Depth {
        let Self { end, mut account, mut running } = self;
        while let Some(&Reverse(done)) = running.peek() {
            account.until(done, running.len());
            running.pop();
        }
        account.finish(end)
    }
}

/// Time spent at each depth.
struct Account {
    now: u64,
    max: usize,
    at_depth: Vec<u64>,
    windows: Windows,
    /// Request-nanoseconds per window.
    load: Vec<f64>,
}

impl Account {
    fn new(end: u64) -> Self {
        let windows = Windows::new(end);
        let (at_depth, load) = (vec![0; 1], vec![0.0; windows.count]);
        Self { now: 0, max: 0, at_depth, windows, load }
    }

    /// The depth was this from the last time to `time`.
    #[inline]
    fn until(&mut self, time: u64, depth: usize) {
        if time == self.now {
            return;
        }
        let class = depth.min(DEPTHS - 1);
        if class >= self.at_depth.len() {
            self.at_depth.resize(class + 1, 0);
        }
        self.at_depth[class] += time - self.now;
        let (mut from, last) = (self.now, self.windows.of(time));
        for window in self.windows.of(from)..=last {
            let to = if window == last { time } else { self.windows.end_ns(window) };
            self.load[window] += (to - from) as f64 * depth as f64;
            from = to;
        }
        self.now = time;
    }

    fn finish(self, end: u64) -> Depth {
        let time = end as f64;
        let at_s = |window| self.windows.start_s(window);
        let length = |window: usize| {
            (self.windows.end_ns(window).min(end) - self.windows.start_ns(window)) as f64
        };
        let series = self.load.iter().enumerate().map(|(window, load)| DepthWindow {
            at_s: at_s(window),
            mean: ratio(*load, length(window)),
        });
        Depth {
            mean: ratio(self.load.iter().sum(), time),
            max: self.max as u64,
            busy_share: ratio(self.at_depth[1..].iter().sum::<u64>() as f64, time),
            time_shares: self.at_depth.iter().map(|spent| ratio(*spent as f64, time)).collect(),
            series: series.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Pattern, poisson};
    use crate::info::tests::at;
    use units::Rate;

    /// In two parts, which changes nothing.
    fn depth(trace: &Trace) -> Depth {
        let mut gather = Gather::new(end(trace));
        let mut second = trace.clone();
        let mut first = Trace::default();
        first.extend_rows(trace, 0..trace.count() / 2);
        gather.add(&first);
        second.due.drain(..first.count());
        second.service.as_mut().expect("service times").drain(..first.count());
        gather.add(&second);
        gather.finish()
    }

    #[test]
    fn depth_by_hand() {
        let ms = 1_000_000;
        let mut trace = at(&[ms, 2 * ms, 2 * ms, 8 * ms]);
        trace.service = Some(vec![4 * ms, 2 * ms, 0, 2 * ms]);
        // 0 until 1 ms, 1 until 2, 2 until 4, 1 until 5, 0 until 8, 1 until 10.
        let found = depth(&trace);
        assert_eq!((found.mean, found.max, found.busy_share), (0.8, 3, 0.6));
        assert_eq!(found.time_shares, [0.4, 0.4, 0.2]);
        let series: Vec<f64> = found.series.iter().map(|window| window.mean).collect();
        assert_eq!(series, [0.0, 1.0, 2.0, 2.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
    }

    #[test]
    fn infinite_servers_have_a_poisson_depth() {
        // M/G/infinity: depths are Poisson with mean rate x service, whatever the service times.
        let mut trace = poisson(4, 300_000, Rate(10_000.0), &Pattern::default());
        let mut rng = stats::rng::Rng::new(8);
        trace.service = Some((0..trace.count()).map(|_| rng.below(400_000)).collect());
        let found = depth(&trace);
        assert!((found.mean - 2.0).abs() < 0.02, "{}", found.mean);
        let mut expected = (-2.0f64).exp();
        for (depth, share) in found.time_shares.iter().take(6).enumerate() {
            assert!((share - expected).abs() < 0.005, "{depth}: {share} for {expected}");
            expected *= 2.0 / (depth as f64 + 1.0);
        }
        let sum: f64 = found.time_shares.iter().sum();
        assert!((sum - 1.0).abs() < 1e-12);
    }
}
