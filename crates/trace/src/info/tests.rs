//! Traces counted by hand, closed forms of the generators, and how a walk is driven.

use super::*;
use crate::generate::{OltpLike, Pattern, oltp_like, poisson, uniform};
use crate::{Request, Stream};
use std::sync::Mutex;
use units::{Bytes, Nanos, Rate};

/// (due, offset, len, op, stream) on streams `data` and `log`.
pub(crate) fn trace(rows: &[(u64, u64, u32, Op, u16)]) -> Trace {
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
    let counts = &all.counts;
    assert_eq!(
        (counts.reads, counts.writes, counts.trims, counts.flushes, counts.requests),
        (2, 2, 1, 1, 6)
    );
    assert_eq!(
        (counts.read_bytes, counts.write_bytes, counts.mean_size_bytes),
        (8192, 16_384, 6144.0)
    );
    assert_eq!((all.requests_per_s, all.arrivals.gap_mean_ns), (1.5, 0.8e9));
    // Gaps 1, 1, 0, 2, 0 s: variance 0.56 s^2 about a mean of 0.8 s.
    assert!((all.arrivals.gap_variation - 0.56f64.sqrt() / 0.8).abs() < 1e-12);
    // Blocks 0; 1, 2; 1; 2, 3, 4.
    assert_eq!((all.blocks.working_set_blocks, counts.aligned_share), (5, 0.75));
    assert_eq!(all.sequentiality.sequential_share, 1.0, "one follower, and it is sequential");
    let sizes: Vec<_> = counts.sizes.iter().map(|s| (s.size_bytes, s.reads, s.writes)).collect();
    assert_eq!(sizes, [(4096, 2, 0), (8192, 0, 2)]);
    let [data, log] = &info.streams[..] else { panic!("two streams") };
    assert_eq!(
        (data.name.as_str(), data.counts.requests, data.blocks.working_set_blocks),
        ("data", 3, 5)
    );
    assert_eq!(
        (log.counts.requests, log.counts.flush_share, log.sequentiality.sequential_share),
        (3, 1.0 / 3.0, 0.0)
    );
}

#[test]
fn rates_add_up_to_the_counts() {
    let trace = oltp_like(&OltpLike { transactions: 3000, ..OltpLike::default() });
    let info = characterise(&trace);
    assert!((100..=200).contains(&info.rates.len()), "{}", info.rates.len());
    let seconds = info.rates[1].at_s;
    let sum = |rate: fn(&RateWindow) -> f64| info.rates.iter().map(rate).sum::<f64>() * seconds;
    assert!((sum(|w| w.reads_per_s) - info.all.counts.reads as f64).abs() < 1e-6);
    assert!((sum(|w| w.flushes_per_s) - info.all.counts.flushes as f64).abs() < 1e-6);
    let bytes = (info.all.counts.read_bytes + info.all.counts.write_bytes) as f64;
    assert!((sum(|w| w.bytes_per_s) - bytes).abs() < 1.0);
}

#[test]
fn patterns_have_their_closed_forms() {
    let pattern = Pattern { read_share: 0.25, ..Pattern::default() };
    let info = characterise(&poisson(1, 100_000, Rate(5000.0), &pattern)).all;
    assert!(
        (info.arrivals.gap_variation - 1.0).abs() < 0.02,
        "Poisson: {}",
        info.arrivals.gap_variation
    );
    assert!((info.requests_per_s / 5000.0 - 1.0).abs() < 0.02);
    assert!((info.counts.read_share - 0.25).abs() < 0.01 && info.counts.aligned_share == 1.0);
    // 100,000 draws of 262,144 blocks leave exp(-100,000 / 262,144) of them untouched.
    let expected = 262_144.0 * (1.0 - (-100_000.0f64 / 262_144.0).exp());
    assert!((info.blocks.working_set_blocks as f64 / expected - 1.0).abs() < 0.01);
    let pattern = Pattern { sequential: true, ..Pattern::default() };
    let info = characterise(&uniform(1, 1000, Rate(1000.0), &pattern)).all;
    assert_eq!((info.arrivals.gap_mean_ns, info.arrivals.gap_variation), (1e6, 0.0));
    assert_eq!((info.sequentiality.sequential_share, info.blocks.working_set_blocks), (1.0, 1000));
}

#[test]
fn an_empty_trace_has_figures_too() {
    let info = characterise(&trace(&[]));
    assert_eq!(
        (info.all.counts.requests, info.all.counts.read_share, info.rates.len()),
        (0, 0.0, 0)
    );
    assert_eq!(info.streams.len(), 2);
    let one = characterise(&trace(&[(0, 0, 512, Op::Read, 0)]));
    assert_eq!((one.all.requests_per_s, one.all.counts.aligned_share), (0.0, 0.0));
    let text = serde_json::to_string(&one).expect("serialises");
    let back: Info = serde_json::from_str(&text).expect("reads");
    assert_eq!((back.all, back.heat, back.rates), (one.all, one.heat, one.rates));
}

/// Reads of one block at these times.
pub(crate) fn at(dues: &[u64]) -> Trace {
    trace(&dues.iter().map(|due| (*due, 0, 4096, Op::Read, 0)).collect::<Vec<_>>())
}

#[test]
fn all_adds_up_from_its_streams() {
    let info = characterise(&oltp_like(&OltpLike { transactions: 3000, ..OltpLike::default() }));
    let sum = |of: fn(&StreamInfo) -> u64| info.streams.iter().map(of).sum::<u64>();
    assert_eq!(sum(|s| s.counts.requests), info.all.counts.requests);
    assert_eq!(sum(|s| s.blocks.touches), info.all.blocks.touches);
    // The log lies behind the data.
    assert_eq!(sum(|s| s.blocks.working_set_blocks), info.all.blocks.working_set_blocks);
    let log = &info.streams[1];
    assert!(log.sequentiality.sequential_share > 0.99 && log.blocks.overwrites.once_share == 1.0);
    assert!(info.all.blocks.sampled.is_some() && log.blocks.sampled.is_none());
    assert_eq!(info.heat.reads.iter().flatten().sum::<u64>(), info.all.counts.reads);
    assert!(info.depth.is_none() && info.similar.len() >= 5);
}

#[test]
fn chunks_leave_no_seams() {
    // More requests than a chunk: the same figures as one chunk each would give, by closed form.
    let pattern = Pattern { sequential: true, ..Pattern::default() };
    let info = characterise(&uniform(1, CHUNK * 2 + 3, Rate(1000.0), &pattern));
    let all = &info.all;
    assert_eq!((all.counts.requests, all.blocks.touches), (524_291, 524_291));
    assert_eq!((all.sequentiality.sequential_share < 1.0, info.streams.len()), (true, 1));
    assert_eq!(all.arrivals.gap_variation, 0.0);
    assert_eq!(info.streams[0].counts, all.counts);
}

/// Keeps progress; cancels after this many looks.
struct Watcher(Mutex<(Vec<f64>, usize)>);

impl Sink for Watcher {
    fn emit(&self, event: Event) {
        if let Event::Progress { done, .. } = event {
            self.0.lock().expect("not poisoned").0.push(done);
        }
    }

    fn cancelled(&self) -> bool {
        let left = &mut self.0.lock().expect("not poisoned").1;
        *left = left.saturating_sub(1);
        *left == 0
    }
}

#[test]
fn long_walks_say_where_they_are_and_can_be_stopped() {
    let trace = uniform(1, WORTH_PROGRESS, Rate(1e6), &Pattern::default());
    let watch = |looks| {
        let watcher = Watcher(Mutex::new((Vec::new(), looks)));
        let info = characterise_with(&trace, Options::default(), &watcher);
        (info.is_some(), watcher.0.into_inner().expect("not poisoned").0)
    };
    let (finished, done) = watch(usize::MAX);
    assert!(finished && done.is_sorted() && done.last() == Some(&1.0), "{done:?}");
    let (finished, done) = watch(2);
    assert!(!finished && done.len() == 2, "{done:?}");
}

/// A trace that is handed over in parts of this many requests.
struct Cut(Trace, usize);

impl Parts<Infallible> for Cut {
    fn outline(&self) -> crate::Outline {
        Parts::<Infallible>::outline(&self.0)
    }

    fn each(&self, take: &mut dyn FnMut(&Trace) -> ControlFlow<()>) -> Result<(), Infallible> {
        for start in (0..self.0.count()).step_by(self.1) {
            let mut part = Trace { streams: self.0.streams.clone(), ..Trace::default() };
            part.extend_rows(&self.0, start..(start + self.1).min(self.0.count()));
            if take(&part).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// More streams than are followed at once, and service times.
#[test]
fn a_trace_in_parts_is_the_same_trace() {
    let mut trace = oltp_like(&OltpLike { transactions: 1_500, ..OltpLike::default() });
    let count = trace.count() as u64;
    trace.service = Some((0..count).map(|index| 90_000 + index * 7919 % 3_000_000).collect());
    let check = |trace: &Trace| {
        let whole = characterise(trace);
        for size in [777, 5_000] {
            let cut = Cut(trace.clone(), size);
            let Ok(found) = characterise_parts(&cut, Options::default(), &Quiet);
            assert_eq!(found.as_ref(), Some(&whole), "parts of {size}");
        }
    };
    check(&trace);
    trace.streams = (0..150).map(|at| Stream { name: format!("asu{at}") }).collect();
    trace.stream.iter_mut().enumerate().for_each(|(at, stream)| *stream = (at % 147) as u16);
    check(&trace);
    trace.streams.truncate(1);
    trace.stream.fill(0);
    trace.service = None;
    check(&trace);
}
