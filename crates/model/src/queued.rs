//! Devices that look at their queue: a later arrival can change when an earlier request completes.
//!
//! A reordering disk, reads that overtake writes, a suspended program: such a model cannot say at
//! the arrival of a request when it will be done. It is told of arrivals and asked for completions
//! instead ([`Queued`]), and is a [`Device`](crate::Device) as well:
//!
//! - a trace at its due times is exact: [`submit_due`] lets requests behind a batch arrive as long as
//!   they can change a completion within it;
//! - a closed loop is exact: the engine asks for [`Device::queued`](crate::Device::queued);
//! - [`submit`], one request at a time, serves one request at a time: nothing can overtake. A layer
//!   above that has no other way (a write cache in front) sees the device so.
//!
//! Invariants: arrivals and completions never run back; every ticket that arrived completes once;
//! nothing completes before it arrived.

use std::collections::VecDeque;
use std::ops::Range;

use trace::{Request, Trace};
use units::Nanos;

/// A device that is told of arrivals and asked for completions.
pub trait Queued: Send {
    /// `request` arrives at `now`, which is not before anything told or asked so far; `ticket` will
    /// name it.
    fn arrive(&mut self, now: Nanos, ticket: u64, request: &Request);

    /// The next completion at or before `until`, in the order of their times; `None` where there is
    /// none and the clock has reached `until`.
    fn next_completion(&mut self, until: Nanos) -> Option<(Nanos, u64)>;
}

/// What a queued device knows beyond the batch that it was last asked for: part of its state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// First request of the trace that was not answered yet.
    answered: usize,
    /// Requests from there on that have arrived, with their completions.
    arrived: VecDeque<Option<u64>>,
}

impl Ahead {
    /// Its parts, for a snapshot: requests answered, and completions known beyond them.
    pub fn parts(&self) -> (usize, impl ExactSizeIterator<Item = Option<u64>> + '_) {
        (self.answered, self.arrived.iter().copied())
    }

    /// From its parts.
    pub fn from_parts(answered: usize, arrived: impl IntoIterator<Item = Option<u64>>) -> Self {
        Self { answered, arrived: arrived.into_iter().collect() }
    }
}

/// [`Device::submit`](crate::Device::submit) for a queued device: waits for the answer.
pub fn submit<Q: Queued + ?Sized>(device: &mut Q, now: Nanos, request: &Request) -> Nanos {
    /// No trace has so many requests.
    const TICKET: u64 = u64::MAX;
    device.arrive(now, TICKET, request);
    loop {
        let (at, ticket) = device.next_completion(Nanos(u64::MAX)).expect("what arrived completes");
        if ticket == TICKET {
            return at;
        }
    }
}

/// [`Device::submit_due`](crate::Device::submit_due) for a queued device. Tickets are places in the
/// trace; batches follow one another, and a batch that starts at 0 starts a new trace.
pub fn submit_due<Q: Queued + ?Sized>(
    device: &mut Q,
    ahead: &mut Ahead,
    trace: &Trace,
    range: Range<usize>,
    completions: &mut [u64],
) {
    assert_eq!(range.len(), completions.len(), "one completion per request");
    if range.start == 0 {
        *ahead = Ahead::default();
    }
    if ahead.answered != range.start {
        assert!(ahead.arrived.is_empty(), "batches of a trace follow one another");
        ahead.answered = range.start;
    }
    let mut missing = range.len();
    missing -= ahead.arrived.iter().take(range.len()).filter(|at| at.is_some()).count();
    while missing > 0 {
        let next = ahead.answered + ahead.arrived.len();
        let due = trace.due.get(next).copied().unwrap_or(u64::MAX);
        if let Some((at, ticket)) = device.next_completion(Nanos(due)) {
            let place = ticket as usize - ahead.answered;
            ahead.arrived[place] = Some(at.0);
            missing -= usize::from(place < range.len());
        } else {
            assert!(next < trace.count(), "what arrived completes");
            device.arrive(Nanos(due), next as u64, &trace.request(next));
            ahead.arrived.push_back(None);
        }
    }
    ahead.answered = range.end;
    for (completion, known) in completions.iter_mut().zip(ahead.arrived.drain(..range.len())) {
        *completion = known.expect("none of them is missing");
    }
}
