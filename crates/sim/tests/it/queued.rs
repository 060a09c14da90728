//! Devices that look at their queue, with the simplest one: one server that takes the lowest offset
//! of those that wait.

use model::queued::{self, Ahead};
use model::{Device, Queued};
use proptest::prelude::*;
use sim::{closed_loop_times, replay};
use std::ops::Range;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

/// Takes `offset` ns for a request at `offset`, the lowest offset first, the earliest at a tie.
#[derive(Default)]
pub struct LowestFirst {
    clock: u64,
    /// (offset, ticket)
    waiting: Vec<(u64, u64)>,
    /// (end, ticket)
    serving: Option<(u64, u64)>,
    ahead: Ahead,
}

impl LowestFirst {
    fn start(&mut self) {
        if self.serving.is_none() && !self.waiting.is_empty() {
            self.waiting.sort_unstable();
            let (offset, ticket) = self.waiting.remove(0);
            self.serving = Some((self.clock + offset, ticket));
        }
    }
}

impl Queued for LowestFirst {
    fn arrive(&mut self, now: Nanos, ticket: u64, request: &Request) {
        assert!(now.0 >= self.clock, "time runs back");
        self.clock = now.0;
        self.waiting.push((request.offset.0, ticket));
        self.start();
    }

    fn next_completion(&mut self, until: Nanos) -> Option<(Nanos, u64)> {
        match self.serving {
            Some((end, ticket)) if end <= until.0 => {
                self.clock = end;
                self.serving = None;
                self.start();
                Some((Nanos(end), ticket))
            }
            _ => {
                self.clock = until.0;
                None
            }
        }
    }

    fn next_event(&mut self) -> Option<Nanos> {
        self.serving.map(|(end, _)| Nanos(end))
    }
}

impl Device for LowestFirst {
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos {
        queued::submit(self, now, request)
    }

    fn submit_due(&mut self, trace: &Trace, range: Range<usize>, completions: &mut [u64]) {
        let mut ahead = std::mem::take(&mut self.ahead);
        queued::submit_due(self, &mut ahead, trace, range, completions);
        self.ahead = ahead;
    }

    fn queued(&mut self) -> Option<&mut dyn Queued> {
        Some(self)
    }
}

/// (due, offset), on actors in turn.
fn trace(rows: &[(u64, u64)], actors: u16) -> Trace {
    let mut trace = Trace { streams: vec![Stream { name: "data".to_owned() }], ..Trace::default() };
    for (index, &(due, offset)) in rows.iter().enumerate() {
        let (due, offset) = (Nanos(due), Bytes(offset));
        let request = Request { due, offset, len: 512, op: Op::Read, stream: 0 };
        trace.push_captured(request, Nanos(0), index as u16 % actors, 1);
    }
    trace
}

#[test]
fn later_arrivals_overtake_whatever_the_batch() {
    // 30 is served first; then 10 overtakes 20 although it arrives last.
    let rows = [(0, 30), (1, 20), (2, 40), (29, 10)];
    let expected = [30, 60, 100, 40];
    for batch in 1..=4 {
        let trace = trace(&rows, 1);
        let mut device = LowestFirst::default();
        let mut found = vec![0; 4];
        for start in (0..4).step_by(batch) {
            let range = start..4.min(start + batch);
            device.submit_due(&trace, range.clone(), &mut found[range]);
        }
        assert_eq!(found, expected, "batches of {batch}");
    }
    let outcome = replay(&mut LowestFirst::default(), &trace(&rows, 1));
    assert_eq!((outcome.requests, outcome.span_ns), (4, 100));
}

#[test]
fn one_at_a_time_nothing_overtakes() {
    let trace = trace(&[(0, 30), (1, 20), (2, 10)], 1);
    let mut device = LowestFirst::default();
    let mut now = Nanos(0);
    for (index, expected) in [30, 50, 60].into_iter().enumerate() {
        now = device.submit(now, &trace.request(index));
        assert_eq!(now.0, expected);
    }
}

#[test]
fn a_closed_loop_overtakes_too() {
    // Three actors with one request each: 20 waits for 30 and then for 10.
    let trace = trace(&[(0, 30), (1, 20), (2, 10)], 3);
    let times = closed_loop_times(&mut LowestFirst::default(), &trace).expect("captured");
    assert_eq!(times, [30, 60 - 1, 40 - 2]);
}

proptest! {
    #[test]
    fn batches_do_not_change_the_answer(
        rows in prop::collection::vec((0u64..40, 1u64..60), 1..60), batch in 1usize..9,
    ) {
        let mut due = 0;
        let mut next = |(gap, offset)| {
            due += gap;
            (due, offset)
        };
        let rows: Vec<_> = rows.into_iter().map(&mut next).collect();
        let trace = trace(&rows, 1);
        let mut whole = vec![0; rows.len()];
        LowestFirst::default().submit_due(&trace, 0..rows.len(), &mut whole);
        let mut device = LowestFirst::default();
        let mut found = vec![0; rows.len()];
        for start in (0..rows.len()).step_by(batch) {
            let range = start..rows.len().min(start + batch);
            device.submit_due(&trace, range.clone(), &mut found[range]);
        }
        prop_assert_eq!(&found, &whole);
        let busy: u64 = rows.iter().map(|(_, offset)| offset).sum();
        prop_assert!(whole.iter().all(|end| *end <= due + busy));
    }
}

#[test]
fn outstanding_requests_are_served_out_of_order() {
    // Offsets of 0 to 99 blocks of 512 bytes. The order changes who waits, not how long it takes.
    let load = |depth| {
        let load = sim::Synthetic {
            range_bytes: 100 * 512,
            ..sim::Synthetic::new(profile::linear::Pattern::Random, 1.0, 512)
        };
        sim::closed_loop_depth(&mut LowestFirst::default(), load, depth, 10_000)
    };
    let (one, many) = (load(1), load(64));
    assert_eq!((one.requests, many.requests), (10_000, 10_000));
    assert!((one.reads.mean() / (49.5 * 512.0) - 1.0).abs() < 0.02, "{}", one.reads.mean());
    assert_eq!(many.elapsed_ns, one.elapsed_ns);
    assert!(many.reads.quantile(0.5) < 3 * one.reads.quantile(0.5), "the lowest ones go first");
    assert!(many.reads.max() > 50 * one.reads.max(), "the highest offsets starve");
}

/// A model that does not say where the time went is still asked as it would be otherwise.
#[test]
fn watching_does_not_serve_one_at_a_time() {
    let rows: Vec<(u64, u64)> = (0..3_000).map(|i| (i * 40, i * 7919 % 97)).collect();
    let trace = trace(&rows, 1);
    let watched = sim::Watched { breakdown: true, ..sim::Watched::default() };
    let mut outcome =
        sim::replay_with(&mut LowestFirst::default(), &trace, watched).expect("nobody stops it");
    let breakdown = outcome.breakdown.take().expect("it was asked for");
    assert_eq!(outcome, replay(&mut LowestFirst::default(), &trace));
    let unknown = breakdown.all.of(model::observe::Cause::Unknown);
    assert_eq!(unknown, breakdown.all.mean_ns);
}
