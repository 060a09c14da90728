//! Closed loop over a captured run: actors wait for their I/O.
//!
//! The requests of one actor form a chain. Between the end of one and the issue of the next lies
//! CPU time (and lock waits), which is taken as captured: `due[i + 1] - (due[i] + service[i])`.
//! Where the capture shows them overlapping, the gap is zero. I/O times come from the model. Actors
//! run in parallel in virtual time: the one with the earliest next issue goes first, the lower
//! number at a tie.
//!
//! What this keeps fixed although a faster device would change it: which actor executes which
//! transaction, waits for locks and for each other, and group commits. It is exact where CPU and
//! I/O of an actor do not depend on the others (one embedded database user), and optimistic on
//! faster devices where they do.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use model::Device;
use serde::{Deserialize, Serialize};
use stats::Histogram;
use trace::{Chains, Request, Trace};
use units::Nanos;

use crate::Error;
use crate::counters::counters;
use crate::outcome::{ClassOutcome, Classes};
use crate::users::{Users, serve};

/// What a closed-loop simulation found, beside the same figures as captured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClosedOutcome {
    /// Requests completed.
    pub requests: u64,
    /// Actors that issued them.
    pub actors: u64,
    /// From the start of the trace to the last completion in virtual time, ns.
    pub span_ns: u64,
    /// The same as captured, ns.
    pub captured_span_ns: u64,
    /// Distinct transactions completed.
    pub transactions: u64,
    /// Transactions per second of virtual time.
    pub transactions_per_s: f64,
    /// The same as captured.
    pub captured_transactions_per_s: f64,
    /// From the issue of a transaction's first request to the completion of its last, ns.
    pub transaction_response: Histogram,
    /// The same as captured, ns.
    pub captured_transaction_response: Histogram,
    /// One per (operation, stream) that occurs; `response` and `service` count from the issue.
    pub classes: Vec<ClassOutcome>,
    /// Counts of the device model, by name.
    pub counters: BTreeMap<String, u64>,
}

impl ClosedOutcome {
    /// Transactions per minute of virtual time, the unit of Wang et al. 2011.
    pub fn transactions_per_min(&self) -> f64 {
        self.transactions_per_s * 60.0
    }
}

/// Runs the captured `trace` against `device`, keeping each actor's CPU time between requests.
///
/// # Errors
/// Where the trace is malformed, or lacks service times or chains.
pub fn closed_loop(device: &mut dyn Device, trace: &Trace) -> Result<ClosedOutcome, Error> {
    let (service, chains) = captured(trace)?;
    let mut classes = Classes::new(trace.streams.len());
    let mut transactions = Transactions::new(chains);
    let mut captured = Transactions::new(chains);
    let mut span_ns = 0;
    let mut captured_span_ns = 0;
    let actors = run(device, trace, (service, chains), |index, issue, completion| {
        let class = (trace.op[index], trace.stream[index]);
        classes.record_one(class, trace.len[index], completion - issue);
        transactions.note(index, issue, completion);
        let captured_end = trace.due[index] + service[index];
        captured.note(index, trace.due[index], captured_end);
        span_ns = span_ns.max(completion);
        captured_span_ns = captured_span_ns.max(captured_end);
    });
    let (transaction_response, count) = transactions.finish();
    let (captured_transaction_response, _) = captured.finish();
    let per_s = |span: u64| if span == 0 { 0.0 } else { count as f64 * 1e9 / span as f64 };
    Ok(ClosedOutcome {
        requests: trace.count() as u64,
        actors,
        span_ns,
        captured_span_ns,
        transactions: count,
        transactions_per_s: per_s(span_ns),
        captured_transactions_per_s: per_s(captured_span_ns),
        transaction_response,
        captured_transaction_response,
        classes: classes.finish(&trace.streams),
        counters: counters(device),
    })
}

/// The time of every request (completion - issue, ns) in the same run, in the order of the trace:
/// the simulated side of an error ratio against a replay that waits as the actors did.
///
/// # Errors
/// As [`closed_loop`].
pub fn closed_loop_times(device: &mut dyn Device, trace: &Trace) -> Result<Vec<u64>, Error> {
    let captured = captured(trace)?;
    let mut times = vec![0; trace.count()];
    run(device, trace, captured, |index, issue, completion| times[index] = completion - issue);
    Ok(times)
}

fn captured(trace: &Trace) -> Result<(&[u64], &Chains), Error> {
    trace.validate()?;
    trace.captured().ok_or(Error::NotObserved)
}

/// Runs every chain to its end and tells `done` of each request its index, issue and completion.
/// Gives the number of actors.
fn run(
    device: &mut dyn Device,
    trace: &Trace,
    (service, chains): (&[u64], &Chains),
    done: impl FnMut(usize, u64, u64),
) -> u64 {
    let chains = requests_by_actor(chains);
    let first = |(actor, chain): (usize, &Vec<usize>)| {
        chain.first().map(|&index| Reverse((trace.due[index], actor, 0)))
    };
    let ready: BinaryHeap<_> = chains.iter().enumerate().filter_map(first).collect();
    let count = ready.len() as u64;
    let waiting = vec![(0, 0); chains.len()];
    serve(device, &mut Actors { trace, service, chains, ready, waiting, done });
    count
}

/// Who issues what when.
struct Actors<'a, D> {
    trace: &'a Trace,
    service: &'a [u64],
    /// The request indices of every actor, in order.
    chains: Vec<Vec<usize>>,
    /// (next issue, actor, position in its chain)
    ready: BinaryHeap<Reverse<(u64, usize, usize)>>,
    /// By actor: issue and position of the request that it waits for. The ticket is the actor.
    waiting: Vec<(u64, usize)>,
    done: D,
}

impl<D: FnMut(usize, u64, u64)> Users for Actors<'_, D> {
    fn next_issue(&mut self) -> Option<u64> {
        self.ready.peek().map(|Reverse((issue, ..))| *issue)
    }

    fn issue(&mut self) -> (u64, Nanos, Request) {
        let Reverse((issue, actor, position)) = self.ready.pop().expect("a request to issue");
        self.waiting[actor] = (issue, position);
        let request = self.trace.request(self.chains[actor][position]);
        (actor as u64, Nanos(issue), request)
    }

    /// The actor issues its next request after its captured CPU time.
    fn completed(&mut self, ticket: u64, at: u64) {
        let actor = ticket as usize;
        let (issue, position) = self.waiting[actor];
        let index = self.chains[actor][position];
        (self.done)(index, issue, at);
        if let Some(&next) = self.chains[actor].get(position + 1) {
            let captured_end = self.trace.due[index] + self.service[index];
            let gap = self.trace.due[next].saturating_sub(captured_end);
            self.ready.push(Reverse((at + gap, actor, position + 1)));
        }
    }
}

/// The request indices of every actor, in order.
fn requests_by_actor(captured: &Chains) -> Vec<Vec<usize>> {
    let count = captured.actor.iter().max().map_or(0, |&most| usize::from(most) + 1);
    let mut chains = vec![Vec::new(); count];
    for (index, &actor) in captured.actor.iter().enumerate() {
        chains[usize::from(actor)].push(index);
    }
    chains
}

/// First issue and last completion of every transaction.
#[derive(Debug)]
struct Transactions<'a> {
    numbers: &'a [u32],
    spans: BTreeMap<u32, (u64, u64)>,
}

impl<'a> Transactions<'a> {
    fn new(chains: &'a Chains) -> Self {
        Self { numbers: &chains.transaction, spans: BTreeMap::new() }
    }

    fn note(&mut self, index: usize, issue: u64, completion: u64) {
        let number = self.numbers[index];
        if number == 0 {
            return;
        }
        let span = self.spans.entry(number).or_insert((issue, completion));
        span.0 = span.0.min(issue);
        span.1 = span.1.max(completion);
    }

    fn finish(self) -> (Histogram, u64) {
        let mut response = Histogram::new();
        self.spans.values().for_each(|(start, end)| response.record(end - start));
        (response, self.spans.len() as u64)
    }
}
