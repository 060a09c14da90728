//! What a provider lets through to a volume: a rate over reads and writes together, and credits.
//!
//! A volume of a cloud is a fast device behind two counters, one of I/Os and one of bytes. Each has
//! a *rate* at which credits come back; with credits left, requests pass at the *burst* rate, and
//! without at the rate (a token bucket). Amazon's gp2 is the known case: 3 I/Os per second and GiB,
//! bursts of 3,000, 5.4 million credits (Amazon EC2 user guide, EBS volume types).
//!
//! What counts as one I/O: a request larger than `io_bytes` counts as several, and contiguous
//! requests of one operation count as one until they fill `io_bytes` where `merges` is set (the
//! same guide: eight contiguous requests of 32 KiB count as one of 256 KiB on an SSD volume).
//! Nothing can be merged with what has left already: a request joins one that is held back, or that
//! came in the same moment, so that a log whose writes follow each other one at a time pays for
//! each. Merging spends fewer credits; each request still takes the time of the device.
//!
//! Requests pass in the order of their arrival. Flushes and trims cost nothing and wait for what
//! came before them.
//!
//! Invariants: over any time t no more than `credits + rate t` I/Os or bytes pass, and never more
//! than `1 + burst t` (requests for I/Os, one request for bytes); starts never run back. Tested
//! against these bounds, an oracle that steps through time and closed forms of how long credits
//! last.

use profile::limits::{Allowance, LimitParameters};
use trace::{Op, Request};
use units::{Bytes, Nanos};

use crate::device::submit_by_serving;
use crate::observe::{Cause, Watch};
use crate::snapshot::{SnapshotReader, SnapshotWriter, fingerprint};
use crate::{Counter, Device, SnapshotError};

/// A token bucket whose tokens also pass one after the other at a burst rate.
#[derive(Clone, Debug)]
struct Bucket {
    per_ns: f64,
    ns_per_token: f64,
    most: f64,
    /// Credits at the time `at`.
    level: f64,
    at: f64,
    /// When the next request may pass at the burst rate.
    free_at: f64,
}

impl Bucket {
    fn new(allowance: &Allowance) -> Self {
        Self {
            per_ns: allowance.per_s / 1e9,
            ns_per_token: 1e9 / allowance.burst_per_s,
            most: allowance.credits,
            level: allowance.credits * allowance.start_share,
            at: 0.0,
            free_at: 0.0,
        }
    }

    /// Credits at a time that is not before [`Bucket::take`]'s last one.
    fn level_at(&self, time: f64) -> f64 {
        (self.level + (time - self.at) * self.per_ns).min(self.most)
    }

    /// When `tokens` that come at `now` may pass.
    fn ready(&self, now: f64, tokens: f64) -> f64 {
        let ready = self.free_at.max(now);
        // With a steady rate the burst line alone decides.
        if self.most <= 0.0 {
            return ready;
        }
        ready + (tokens - self.level_at(ready)).max(0.0) / self.per_ns
    }

    /// Takes `tokens` at `start`, which [`Bucket::ready`] allowed.
    fn take(&mut self, start: f64, tokens: f64) {
        self.level = (self.level_at(start) - tokens).max(0.0);
        self.at = start;
        self.free_at = start + tokens * self.ns_per_token;
    }

    fn save(&self, to: &mut SnapshotWriter) {
        for value in [self.level, self.at, self.free_at] {
            to.f64(value);
        }
    }

    fn load(&mut self, from: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        for value in [&mut self.level, &mut self.at, &mut self.free_at] {
            *value = from.f64()?;
        }
        Ok(())
    }
}

/// Contiguous requests that count as one I/O so far.
#[derive(Clone, Copy, Debug)]
struct Run {
    op: Op,
    end: u64,
    bytes: u64,
    /// When the last of them passed.
    start: u64,
}

/// Runs that are followed at once; interleaved sequential streams merge each for themselves.
const RUNS: usize = 8;

/// A device behind a provider's limits.
#[derive(Clone, Debug)]
pub struct Limits<D> {
    behind: D,
    ios: Option<Bucket>,
    bytes: Option<Bucket>,
    io_bytes: u64,
    merges: bool,
    runs: [Run; RUNS],
    /// The run to be forgotten next.
    oldest: usize,
    last_start: u64,
    counted_ios: u64,
    held_ns: u64,
    /// Of the parameters.
    fingerprint: u64,
}

impl<D: Device> Limits<D> {
    /// `behind` with what `parameters` let through.
    pub fn new(behind: D, parameters: &LimitParameters) -> Self {
        Self {
            behind,
            ios: parameters.ios.as_ref().map(Bucket::new),
            bytes: parameters.bytes.as_ref().map(Bucket::new),
            io_bytes: parameters.io_bytes.map_or(u64::MAX, u64::from),
            merges: parameters.merges && parameters.io_bytes.is_some(),
            runs: [Run { op: Op::Flush, end: u64::MAX, bytes: 0, start: 0 }; RUNS],
            oldest: 0,
            last_start: 0,
            counted_ios: 0,
            held_ns: 0,
            fingerprint: fingerprint(parameters),
        }
    }

    /// I/Os that `request` counts as, and the run that it belongs to now.
    fn count(&mut self, now: u64, request: &Request) -> (u64, usize) {
        let len = u64::from(request.len);
        let end = request.offset.0 + len;
        let grows =
            |run: &Run| run.op == request.op && run.end == request.offset.0 && run.start >= now;
        if self.merges
            && let Some(slot) = self.runs.iter().position(grows)
        {
            let run = &mut self.runs[slot];
            let before = run.bytes.div_ceil(self.io_bytes);
            (run.end, run.bytes) = (end, run.bytes + len);
            return (run.bytes.div_ceil(self.io_bytes) - before, slot);
        }
        let slot = self.oldest;
        self.runs[slot] = Run { op: request.op, end, bytes: len, start: now };
        self.oldest = (self.oldest + 1) % RUNS;
        (len.div_ceil(self.io_bytes).max(1), slot)
    }

    fn serve<W: Watch>(&mut self, now: u64, request: &Request, watch: &mut W) -> u64 {
        let mut start = now.max(self.last_start);
        if matches!(request.op, Op::Read | Op::Write) {
            let (ios, slot) = self.count(now, request);
            self.counted_ios += ios;
            let mut taken =
                [(&mut self.ios, ios as f64), (&mut self.bytes, f64::from(request.len))];
            let mut passes = start as f64;
            for (bucket, tokens) in &taken {
                passes = bucket.as_ref().map_or(passes, |bucket| bucket.ready(passes, *tokens));
            }
            for (bucket, tokens) in &mut taken {
                if let Some(bucket) = bucket {
                    bucket.take(passes, *tokens);
                }
            }
            start = start.max(passes.ceil() as u64);
            self.runs[slot].start = start;
        }
        self.last_start = start;
        self.held_ns += start - now;
        watch.spend(Cause::SharedWait, start - now);
        watch.forward(&mut self.behind, Nanos(start), request).0
    }
}

impl<D: Device> Device for Limits<D> {
    submit_by_serving!();

    fn snapshot(&self) -> Option<Vec<u8>> {
        let mut to = SnapshotWriter::new("limits", self.fingerprint);
        to.block(&self.behind.snapshot()?);
        for bucket in [&self.ios, &self.bytes].into_iter().flatten() {
            bucket.save(&mut to);
        }
        for run in &self.runs {
            to.u64s(&[run.op as u64, run.end, run.bytes, run.start]);
        }
        to.u64(self.oldest as u64);
        to.u64s(&[self.last_start, self.counted_ios, self.held_ns]);
        Some(to.finish())
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let mut from = SnapshotReader::new(bytes, "limits", self.fingerprint)?;
        self.behind.restore(from.block()?)?;
        for bucket in [&mut self.ios, &mut self.bytes].into_iter().flatten() {
            bucket.load(&mut from)?;
        }
        for run in &mut self.runs {
            let [op, end, bytes, start] = from.array()?;
            let op = Op::ALL.get(op as usize).ok_or_else(|| from.damaged("no operation"))?;
            *run = Run { op: *op, end, bytes, start };
        }
        self.oldest = from.below(RUNS)?;
        [self.last_start, self.counted_ios, self.held_ns] = from.array()?;
        from.finish()
    }

    fn capacity(&self) -> Option<Bytes> {
        self.behind.capacity()
    }

    fn counters(&self) -> Vec<Counter> {
        let mut counters = self.behind.counters();
        counters.push(Counter { name: "counted_ios", value: self.counted_ios });
        counters.push(Counter { name: "held_back_ns", value: self.held_ns });
        let credits = [("io_credits", &self.ios), ("byte_credits", &self.bytes)];
        for (name, bucket) in credits {
            if let Some(bucket) = bucket.as_ref().filter(|bucket| bucket.most > 0.0) {
                counters.push(Counter { name, value: bucket.level as u64 });
            }
        }
        counters
    }
}

#[cfg(test)]
mod tests {
    use profile::ram::RamParameters;

    use super::*;
    use crate::ram::Ram;

    const SECOND: f64 = 1e9;

    fn limits(parameters: &LimitParameters) -> Limits<Ram> {
        let instant =
            RamParameters { capacity: None, latency_ns: 0.0, bytes_per_s: 1e18, ports: 4096 };
        Limits::new(Ram::new(&instant), parameters)
    }

    fn ios(per_s: f64, burst_per_s: f64, credits: f64) -> LimitParameters {
        let ios = Some(Allowance { per_s, burst_per_s, credits, start_share: 1.0 });
        LimitParameters { ios, bytes: None, io_bytes: None, merges: false }
    }

    fn request(offset: u64, len: u32, op: Op) -> Request {
        Request { due: Nanos(0), offset: Bytes(offset), len, op, stream: 0 }
    }

    /// Completions of `count` random requests that all come at 0, s.
    fn all_at_once(device: &mut Limits<Ram>, count: u64) -> Vec<f64> {
        let one = |index: u64| request((index * 7919) << 20, 4096, Op::Read);
        (0..count).map(|index| device.submit(Nanos(0), &one(index)).0 as f64 / SECOND).collect()
    }

    #[test]
    fn credits_last_as_long_as_their_closed_form() {
        // gp2 of 100 GiB, credits scaled down: spent at burst less rate.
        let (rate, burst, credits) = (300.0, 3000.0, 54_000.0);
        let mut device = limits(&ios(rate, burst, credits));
        let lasts_s = credits / (burst - rate);
        let in_burst = (lasts_s * burst) as usize;
        let done = all_at_once(&mut device, in_burst as u64 + 3_000);
        let end_of_burst = done[in_burst - 1];
        assert!((end_of_burst / lasts_s - 1.0).abs() < 1e-3, "{end_of_burst} for {lasts_s}");
        let after = done[done.len() - 1] - end_of_burst;
        assert!((after / (3_000.0 / rate) - 1.0).abs() < 1e-3, "{after} s at the rate");
    }

    #[test]
    fn saved_credits_come_back_while_it_is_idle() {
        let mut device = limits(&ios(100.0, 1000.0, 1000.0));
        let spent = *all_at_once(&mut device, 2_000).last().expect("some");
        // Five seconds bring 500 credits: 500 / (1 - 100/1000) requests at the burst rate.
        let now = Nanos(((spent + 5.0) * SECOND) as u64);
        let burst = (0..555).map(|n| device.submit(now, &request(n << 30, 4096, Op::Read)));
        let took = (burst.last().expect("some").0 - now.0) as f64 / SECOND;
        assert!((took - 0.554).abs() < 0.01, "{took}");
    }

    #[test]
    fn large_requests_count_as_several_and_contiguous_ones_as_one() {
        let merging =
            LimitParameters { io_bytes: Some(256 << 10), merges: true, ..ios(3000.0, 3000.0, 0.0) };
        let counted = |requests: &[(u64, u32)]| {
            let mut device = limits(&merging);
            for (offset, len) in requests {
                device.submit(Nanos(0), &request(*offset, *len, Op::Write));
            }
            device.counted_ios
        };
        assert_eq!(counted(&[(0, 1 << 20)]), 4, "1 MiB is four of 256 KiB");
        let small: Vec<(u64, u32)> = (0..8).map(|n| (n << 15, 1 << 15)).collect();
        assert_eq!(counted(&small), 1, "eight contiguous ones of 32 KiB");
        let apart: Vec<(u64, u32)> = (0..8).map(|n| (n << 16, 1 << 15)).collect();
        assert_eq!(counted(&apart), 8, "eight that are not contiguous");
        let two_streams: Vec<(u64, u32)> =
            (0..16).map(|n| (((n / 2) << 15) + ((n % 2) << 40), 1 << 15)).collect();
        assert_eq!(counted(&two_streams), 2, "two streams in turns");
    }

    #[test]
    fn writes_one_at_a_time_pay_each() {
        let parameters =
            LimitParameters { io_bytes: Some(256 << 10), merges: true, ..ios(3000.0, 3000.0, 0.0) };
        let mut device = limits(&parameters);
        for write in 0..10 {
            device.submit(Nanos(write * 1_000_000), &request(write << 13, 8192, Op::Write));
        }
        assert_eq!(device.counted_ios, 10);
    }

    /// The table of the Amazon EC2 user guide (EBS volume types, gp2, June 2023): how long a full
    /// bucket lasts at 3,000 I/Os per second, by the rate of the volume.
    #[test]
    fn bursts_last_as_long_as_the_provider_says() {
        for (rate, lasts_s) in [(100.0, 1862.0), (300.0, 2000.0), (1002.0, 2703.0)] {
            let mut device = limits(&ios(rate, 3000.0, 5.4e6));
            let mut before = 0.0;
            let one = request(0, 4096, Op::Read);
            let end_s = loop {
                let at = device.submit(Nanos(0), &one).0 as f64 / SECOND;
                if at - before > 0.9 / rate {
                    break before;
                }
                before = at;
            };
            assert!((end_s - lasts_s).abs() < 1.0, "{end_s} for {lasts_s} at {rate}");
        }
    }

    #[test]
    fn a_flush_costs_nothing_and_waits_for_what_is_held_back() {
        let mut device = limits(&ios(10.0, 10.0, 0.0));
        let writes = all_at_once(&mut device, 5);
        let flush = device.submit(Nanos(0), &request(0, 0, Op::Flush)).0 as f64 / SECOND;
        assert_eq!((writes[4], flush), (0.4, 0.4));
        let counts = device.counters();
        let held = counts.iter().find(|one| one.name == "held_back_ns").map(|one| one.value);
        assert_eq!(held, Some(100_000_000 * (1 + 2 + 3 + 4 + 4)));
    }

    proptest::proptest! {
        /// No window of time lets more through than credits, rate and burst allow.
        #[test]
        fn no_window_exceeds_the_allowance(
            gaps in proptest::collection::vec(0_u64..200_000_000, 1..200),
            (rate, more, credits) in (1.0_f64..100.0, 1.0_f64..50.0, 1.0_f64..100.0),
        ) {
            let mut device = limits(&ios(rate, rate * more, credits));
            let mut now = 0;
            let starts: Vec<f64> = gaps.iter().map(|gap| {
                now += gap;
                device.submit(Nanos(now), &request(0, 4096, Op::Read)).0 as f64 / SECOND
            }).collect();
            for (first, from) in starts.iter().enumerate() {
                for (last, to) in starts.iter().enumerate().skip(first) {
                    let (passed, time) = ((last - first) as f64 + 1.0, to - from);
                    proptest::prop_assert!(passed <= 1.0 + time * rate * more + 1e-3);
                    proptest::prop_assert!(passed <= 1.0 + credits + time * rate + 1e-3);
                }
            }
        }
    }
}
